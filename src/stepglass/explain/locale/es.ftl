# Lo que dice `stepglass explain`. Los valores llegan con formato (duraciones, pérdidas, números de
# iteración), salvo $count, $lines, $more y $replayed, que son números: eligen el plural.
# Los nombres de ajustes (eval_interval) y las palabras del log (iter, step, mfu) no se traducen.

## El marco

log-is = { $name }: { $format }, { $lines ->
    [one] una línea
   *[other] { $lines } líneas
  }, { $understood } con formato reconocido ({ $share })
log-segments = { $count ->
    [one] una ejecución
   *[other] { $count } ejecuciones, una tras otra (el número de iteración retrocede o el propio log lo indica)
  }
segment-title = Ejecución { $number }: iteraciones { $first } a { $last }
normal-is = Una iteración normal tarda { $normal_ms }.
ends-with = Termina con un error (línea { $line }): { $detail }
loss-row = loss
time-row = tiempo
where-title = En qué se fue el tiempo
basis-run-log = según el registro de la ejecución: cada milisegundo quedó anotado
basis-timestamps = según las marcas de tiempo del log
basis-wall-clock = según el total que indica el log
basis-printed = según los tiempos impresos: se imprimen todas las iteraciones
basis-estimated = estimado: las iteraciones que no se imprimen se dan por normales
phase-step = pasos de entrenamiento
phase-eval = evaluaciones
phase-checkpoint = checkpoints
phase-eval-checkpoint = evaluaciones y checkpoints
phase-warmup-eval = calentamiento y primera evaluación
phase-warmup = calentamiento
phase-stall = pausas sin explicar
phase-unattributed = sin atribuir
phase-data = espera de datos
phase-forward_backward = pasadas forward y backward
phase-optimizer = optimizador
phase-log = escritura del log
phase-gc = recolector de basura de Python
phase-other = otros
wall-clock = tiempo total
findings-title = Hallazgos
no-findings = No se encontró nada que cambiar.
status-established = comprobado
status-supported = probable
status-hypothesis = hipótesis
level-problem = problema
level-advice = consejo
level-note = apunte
lines-cited = { $count ->
    [one] línea { $lines }
   *[other] líneas { $lines }
  }
lines-more = { $lines } y { $more } más
change-is = para cambiarlo: { $flags }
cannot-title = Lo que este log no permite saber
top-findings = Lo más destacado (más detalles con stepglass explain { $run }):

## Reglas

rule-eval-inside-iteration-title = iter { $iter } no es una iteración lenta: su tiempo incluye una evaluación
rule-eval-inside-iteration-text = El cronómetro de nanoGPT va del final de una iteración al final de la siguiente. En { $count ->
    [one] este caso
   *[other] estos { $count } casos
  } incluye también la evaluación impresa justo antes{ $variant ->
    [eval] {""}
   *[other] {" "}y, donde una línea lo indica, el guardado de un checkpoint
  }. Del tiempo de iter { $iter } ({ $time_ms }), { $excess_ms } corresponden a eso{ $variant ->
    [split] {" "}(unos { $eval_ms } de evaluación y { $save_ms } de checkpoint)
   *[other] {""}
  }; el paso de entrenamiento en sí tardó lo habitual, { $normal_ms }. Para tener menos líneas así, subir eval_interval (bajarlo produce más); para que sean más cortas, bajar eval_iters.

rule-mfu-echo-title = La caída de mfu es el eco de una sola línea lenta, no una ralentización
rule-mfu-echo-text = El mfu impreso es una media móvil: nueve décimas partes del valor anterior y una del nuevo. La línea de iter { $iter } lo bajó de { $before_mfu } a { $printed_mfu }, y tarda unas veinte líneas en recuperarse. Al recalcular esa media con los tiempos impresos se obtiene la misma columna, hasta la última cifra, en las { $replayed } líneas probadas. La velocidad en sí no cambió: { $clean_mfu }.

rule-warm-up-title = iter { $iter } incluye el calentamiento
rule-warm-up-text = { $variant ->
    [eval] El tiempo de la primera iteración ({ $time_ms }) es su evaluación más un paso normal ({ $normal_ms }); el calentamiento apenas se nota.
    [both] La primera iteración tardó { $time_ms }: unos { $warmup_ms } de calentamiento (compilación, kernels, primeros batches), { $eval_ms } de evaluación y un paso de { $normal_ms }.
    [together] La primera iteración tardó { $time_ms }: el calentamiento (compilación, kernels, primeros batches) junto con la evaluación que nanoGPT hace en la iteración 0. En este log no hay ninguna evaluación posterior aislada que permita separarlos; un paso normal tarda { $normal_ms }.
   *[plain] La primera iteración tardó { $time_ms } frente a los { $normal_ms } habituales: compilación, selección de kernels y primeros batches. Solo ocurre una vez.
  }

rule-mfu-wrong-peak-title = El mfu impreso se calcula con un pico que no corresponde
rule-mfu-wrong-peak-text = { $variant ->
    [other] El log divide entre { $assumed_tflops } TFLOP/s. En { $device } ({ $peak_tflops } TFLOP/s), el { $clean_mfu } de una iteración normal equivale a { $corrected_mfu }: el valor impreso × { $assumed_tflops } / { $peak_tflops }.
    [over] { $printed_mfu } es más de lo que puede dar cualquier dispositivo: el log divide entre { $assumed_tflops } TFLOP/s, el pico de una A100, y se entrenó en algo más rápido. Indicar el dispositivo con --device para obtener la cifra real.
   *[no-peak] nanoGPT divide entre { $assumed_tflops } TFLOP/s, el pico de una A100, sea cual sea el dispositivo. En { $device } la cifra solo sirve para comparar con una A100; en realidad se alcanzaron { $achieved_tflops } TFLOP/s.
  }

rule-small-kernels-title = La GPU espera trabajo: los kernels son demasiado pequeños
rule-small-kernels-text = { $device } alcanza el { $corrected_mfu } de su pico con iteraciones de { $normal_ms }. Con un modelo o un micro-batch tan pequeño, lanzar los kernels lleva tanto tiempo como ejecutarlos. Mientras sea así, un batch mayor apenas cuesta más tiempo.

rule-accumulation-waste-title = La acumulación de gradientes ejecuta batches pequeños uno tras otro
rule-accumulation-waste-text = Se ejecutan { $accumulation } micro-batches de tamaño { $batch } uno tras otro cuando bastarían menos y más grandes. Los valores propuestos mantienen los tokens por iteración ({ $tokens_per_iter }) y necesitan unos { $memory_bytes } de memoria.

rule-slow-path-title = { $variant ->
    [attention] La atención va por la vía lenta
    [compile] torch.compile se rindió con una parte del modelo
    [float32] Entrenar en float32 deja inactivos los tensor cores
   *[mps] En mps nanoGPT entrena en float32, diga lo que diga dtype
  }
rule-slow-path-text = { $variant ->
    [attention] El log dice que no hay atención fusionada, así que cada capa escribe en memoria su matriz de atención completa. Una versión más reciente de PyTorch la incluye.
    [compile] El log muestra { $count ->
        [one] un aviso
       *[other] { $count } avisos
      } de código que volvió al modo eager: se paga la compilación sin obtener la mejora.
    [float32] En una GPU con unidades bfloat16, los productos de matrices en float32 van a una fracción de la velocidad posible.
   *[mps] nanoGPT trata como CPU todo lo que no sea CUDA y desactiva la precisión mixta. No hay ningún fallo; la velocidad será la de float32.
  }

rule-data-bound-title = El entrenamiento espera a los datos
rule-data-bound-text = El { $data_share } del tiempo de trabajo se fue en esperar batches{ $variant ->
    [phases] {""}, { $total_ms } en total
   *[plain] {""}, { $total_ms } en total: { $median_ms } por batch de mediana, { $worst_ms } en el peor caso
  }. Conviene tener los datos en un disco local o en memoria y leerlos por adelantado.

rule-periodic-stall-title = Una pausa cada { $every } iteraciones, fuera de evaluaciones y checkpoints
rule-periodic-stall-text = { $count } iteraciones tardaron unos { $excess_ms } más que sus vecinas, a intervalos regulares y sin coincidir con evaluaciones ni checkpoints: { $total_ms } en total. { $variant ->
    [gc] El log muestra que ahí actúa el recolector de basura de Python.
   *[plain] El recolector de basura de Python hace eso, y también otros procesos con temporizador.
  } Con gc.freeze() y gc.disable() tras las primeras iteraciones se descarta el recolector.

rule-slowdown-title = Las iteraciones se volvieron un { $rise_percent } más lentas
rule-slowdown-text = Una iteración normal pasó de { $first_ms } a { $last_ms }{ $variant ->
    [drift] , de forma gradual
   *[other] , hacia iter { $iter }
  }, y ahí se quedó. { $variant ->
    [throttle] El log menciona un límite térmico o de potencia: la causa es la refrigeración o el ajuste de potencia.
   *[other] Puede ser por temperatura, por otro programa en el mismo dispositivo o por falta de memoria; el log no dice cuál. Mirar la frecuencia y la temperatura del dispositivo mientras entrena.
  }

rule-eval-too-expensive-title = { $variant ->
    [together] Las evaluaciones y los checkpoints se llevan el { $eval_share } del tiempo
   *[plain] La evaluación se lleva el { $eval_share } del tiempo
  }
rule-eval-too-expensive-text = Cada { $variant ->
    [together] evaluación con su checkpoint
   *[plain] evaluación
  } cuesta { $each_ms }, lo mismo que muchos pasos de { $normal_ms }, y llega cada { $interval } iteraciones. Un eval_interval de { $wanted } la dejaría en el 5{"\u00A0"}%; también se consigue con menos batches por evaluación (eval_iters{ $fewer_iters ->
    [none] {""}
   *[other] {" "}{ $fewer_iters }
  }), a costa de pérdidas más ruidosas.

rule-eval-noise-title = Las últimas evaluaciones difieren menos que su ruido
rule-eval-noise-text = Una evaluación tiene una incertidumbre de { $se_loss }; dos de ellas deben diferir en { $least_loss } para que signifique algo, y los últimos { $count } cambios fueron como mucho de { $largest_loss }. No conviene elegir un checkpoint por ellas{ $variant ->
    [more] {""}: para decidir hacen falta más eval_iters, o las mismas ventanas fijas cada vez
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } de trabajo y todavía ningún checkpoint
   *[plain] Los checkpoints se llevan el { $save_share } del tiempo
  }
rule-checkpoint-interval-text = { $variant ->
    [none] Ninguna línea de este log dice que se guardara un checkpoint. Si ahora fallara algo, se perdería todo.
   *[plain] { $count } checkpoints de unos { $save_ms } cada uno detuvieron el entrenamiento durante { $total_ms } en total. Contando con un fallo al día, lo mejor es uno cada { $wanted_ms }; en nanoGPT el guardado va ligado a eval_interval.
  }

rule-overfitting-title = { $variant ->
    [gap] Sobreajuste: la pérdida de validación está muy por encima de la de entrenamiento
   *[other] Sobreajuste desde la iteración { $best_iter }
  }
rule-overfitting-text = { $variant ->
    [gap] En step { $last_iter } el modelo obtiene { $train_loss } en texto que ha visto y { $last_loss } en texto que no: una diferencia de { $gap_loss }, el { $gap_percent } de la pérdida de entrenamiento; ante texto nuevo, su perplejidad se multiplica por { $perplexity_times }. Eso es memorizar, no una diferencia leve. Con tan pocas evaluaciones el log no permite ver cuándo empezó: buscar el step con el val loss más bajo.
    [no-train] La pérdida de validación tuvo su mejor valor en step { $best_iter } ({ $best_loss }) y ha subido { $rise_loss } ({ $rise_percent }) hasta { $last_loss } mientras bajaba la de entrenamiento. Todo lo posterior a ese step empeoró el modelo en texto nuevo.
   *[rising] La pérdida de validación tuvo su mejor valor en step { $best_iter } ({ $best_loss }) y ha subido { $rise_loss } ({ $rise_percent }) hasta { $last_loss }, mientras la de entrenamiento bajaba a { $train_loss }. Todo lo posterior a ese step empeoró el modelo en texto nuevo: parar ahí, usar más dropout o más datos, o un modelo más pequeño.
  }

rule-best-checkpoint-lost-title = El mejor checkpoint se sobrescribió con uno peor
rule-best-checkpoint-lost-text = nanoGPT conserva un solo checkpoint. El mejor era el de step { $best_iter } (val loss { $best_loss }); ahora el archivo contiene el de step { $kept_iter } ({ $kept_loss }), peor por { $worse_loss }.

rule-stopped-early-title = El entrenamiento terminó cuando el modelo aún aprendía
rule-stopped-early-text = Al final la pérdida de validación seguía bajando (step { $last_iter }: { $last_loss }), unos { $gain_loss } cada mil iteraciones, y la de entrenamiento no está muy por debajo. Un entrenamiento más largo, con el decaimiento alargado en la misma medida, debería mejorar más.

rule-schedule-mismatch-title = { $variant ->
    [batch] La tasa de aprendizaje es alta para tan pocos tokens por iteración
    [floor] El mínimo de la tasa de aprendizaje es poco habitual
    [warmup] El calentamiento ocupa gran parte del entrenamiento
   *[other] El decaimiento de la tasa de aprendizaje no cuadra con la duración del entrenamiento
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr es { $low_lr } con una learning_rate de { $rate }; lo habitual es una décima parte.
    [batch] learning_rate { $rate } está pensada para medio millón de tokens por iteración; aquí son { $batch_tokens }. Con menos tokens el gradiente es más ruidoso: escalar la tasa con la raíz cuadrada.
    [warmup] La tasa de aprendizaje sube durante { $warmup_iters } de { $max_iters } iteraciones; lo habitual es el uno o el dos por ciento.
    [long] lr_decay_iters es { $decay_iters } pero el entrenamiento acaba en { $max_iters }: la tasa de aprendizaje nunca llega a ser baja, que es cuando más mejora la pérdida.
   *[short] lr_decay_iters es { $decay_iters } y el entrenamiento sigue hasta { $max_iters }: todas las iteraciones posteriores al decaimiento van con min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] Una evaluación no dio un número (step { $iter }, línea { $line })
   *[other] La pérdida no es un número desde iter { $iter } (línea { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] La pérdida de entrenamiento sigue siendo finita: el modelo aún aprende. El fallo está en la evaluación misma: sin batches, o sin objetivos válidos en ellos.
   *[other] { $last_iter ->
        [none] Ni siquiera la primera pérdida impresa es un número.
       *[other] La última pérdida finita fue { $last_loss } en iter { $last_iter }.
      } A partir de ahí no se aprendió nada: detener el entrenamiento{ $save_iter ->
        [none] {""}
       *[other] {" "}y volver al checkpoint de la iteración { $save_iter }, si no se ha sobrescrito
      }. { $variant ->
        [fp16] En float16 los valores grandes desbordan; en bfloat16 o float32, no.
       *[other] Causas habituales: una tasa de aprendizaje demasiado alta, desbordamiento en float16 o un id de token fuera del vocabulario.
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Desde entonces las iteraciones son un { $faster_percent } más rápidas: es lo que se ve cuando el escalador de gradientes se salta todas las actualizaciones.
      }
  }

rule-divergence-title = El entrenamiento divergió hacia iter { $iter }
rule-divergence-text = La pérdida había bajado a { $best_loss } (iter { $best_iter }), luego subió y ya no bajó: { $last_loss } al final{ $variant ->
    [rate] {""}, con una tasa de aprendizaje de { $rate } al divergir
   *[plain] {""}
  }. Volver a un checkpoint anterior, con la mitad de la tasa de aprendizaje y un calentamiento más largo.

rule-loss-spike-title = { $count ->
    [one] Un pico de la pérdida en iter { $iter }
   *[other] { $count } picos de la pérdida, el mayor en iter { $iter }
  }
rule-loss-spike-text = La pérdida saltó a { $loss } cuando lo habitual era { $around_loss } ({ $z } veces el ruido) y volvió a su nivel. Unos pocos son inofensivos; si hay muchos, conviene bajar grad_clip o learning_rate.

rule-initial-loss-title = La primera pérdida no cuadra con el vocabulario
rule-initial-loss-text = Un modelo que no sabe nada obtiene ln({ $vocab }) = { $expected_loss }; este empezó en { $seen_loss }. { $variant ->
    [low] O no partió de cero, o los objetivos se filtran en la entrada, o el vocabulario es mayor de lo que piden los datos.
   *[high] Revisar vocab_size y meta.pkl, el desplazamiento entre entrada y objetivo, y la inicialización.
  }

rule-plateau-title = La pérdida de validación se ha estancado
rule-plateau-text = En las últimas { $count } evaluaciones (steps { $first_iter } a { $last_iter }) se mantuvo en { $mean_loss }; su tendencia es de { $moved_loss } en total, nada más que ruido. { $variant ->
    [peak] La tasa de aprendizaje sigue en su máximo: bajarla o empezar el decaimiento.
    [floor] La tasa de aprendizaje está en su mínimo: este plan ya ha dado de sí lo que podía.
   *[plain] El log no dice en qué punto está la tasa de aprendizaje, así que no permite distinguir si el plan ya terminó o si la tasa es demasiado alta.
  }

rule-data-budget-title = { $variant ->
    [epochs] El entrenamiento recorre sus datos { $epochs } veces
    [few] Pocos tokens para este modelo: { $ratio } por parámetro
   *[many] Muchos tokens para este modelo: { $ratio } por parámetro
  }
rule-data-budget-text = { $max_iters } iteraciones son { $tokens } tokens para { $parameters } parámetros, { $ratio } por parámetro; el equilibrio habitual es de unos 20. { $variant ->
    [epochs] El texto en sí es mucho más pequeño, así que se lee { $epochs } veces: a partir de unas cuatro, el modelo más bien se lo aprende de memoria.
    [few] Un modelo más pequeño, o más iteraciones, aprovecharía mejor el tiempo.
   *[many] Un modelo más grande llegaría a una pérdida menor en el mismo tiempo.
  }

rule-out-of-memory-title = Memoria agotada
rule-out-of-memory-text = { $variant ->
    [sizes] La ejecución pidió { $tried_bytes } más y no los obtuvo.
   *[plain] La ejecución pidió más memoria de la que tiene el dispositivo.
  } Con la mitad de batch_size y el doble de gradient_accumulation_steps se entrena igual y hace falta más o menos la mitad de lo que crece con el batch; también ayuda un block_size más corto. Los mensajes posteriores al primero son consecuencias.

rule-contradiction-title = { $variant ->
    [tokens] Los tokens por segundo impresos tienen un error de un factor { $times }
    [clock] Los tiempos impresos no son los reales
    [rate] Los tokens por segundo del final son incorrectos
   *[hidden-nan] La pérdida parece buena porque el log oculta que no lo es
  }
rule-contradiction-text = { $variant ->
    [tokens] Un paso son { $stated_tokens } tokens, pero los tokens por segundo multiplicados por el tiempo del paso dan { $implied_tokens }. Hay que fiarse del tiempo: da { $real_rate } tokens por segundo, no { $printed_rate }.
    [clock] Una iteración normal imprime { $normal_ms }; las marcas de tiempo dicen { $stamped_ms }. Hay que fiarse de las marcas: sin sincronización, el tiempo impreso indica cuándo terminó Python, no el dispositivo.
    [rate] Los tokens totales entre el tiempo de entrenamiento dan { $real_rate } por segundo, no { $printed_rate }.
   *[hidden-nan] La norma del gradiente no es un número ({ $count ->
        [one] una vez
       *[other] { $count } veces
      }) mientras la pérdida impresa sigue como si nada: por defecto, este trainer imprime la media acumulada en lugar de un NaN. Con logging_nan_inf_filter=False se ve.
  }

rule-unexplained-stall-title = iter { $iter }: pausa de { $excess_ms } que no explica ninguna evaluación ni checkpoint
rule-unexplained-stall-text = Tardó { $time_ms } cuando lo habitual son { $normal_ms }{ $variant ->
    [grid] {""}, y las evaluaciones llegan cada { $eval_interval } iteraciones: esta no lo es
   *[plain] {""}
  }. { $count ->
    [one] {""}
   *[other] Hay { $count } líneas así, { $total_ms } en total.{" "}
  }Puede ser por suspensión del equipo, otro programa, un disco lleno o lento, o una recompilación; el log no permite distinguirlos.

rule-last-line-is-eval-title = La última línea es una evaluación: no citar su tiempo
rule-last-line-is-eval-text = La ejecución termina justo en una evaluación, así que iter { $iter } imprime { $time_ms } cuando entrenar lleva { $normal_ms } por iteración{ $variant ->
    [mfu] {""}, y un mfu de { $printed_mfu } cuando lo correcto es { $clean_mfu }
   *[plain] {""}
  }.

## Lo que un log no permite saber

cannot-data-wait = Cuánto se esperó a los datos: nanoGPT no lo mide.
cannot-unprinted = El tiempo de cada iteración: solo se imprimen algunas, las demás se dan por normales.
cannot-device = En qué dispositivo se ejecutó: el mfu se refiere a los 312 TFLOP/s de una A100. Indicar el dispositivo con --device.
cannot-split = Cuánto es evaluación y cuánto checkpoint: siempre van juntos y ninguna línea lleva la hora.
cannot-last-micro-batch = La pérdida de una iteración completa: nanoGPT imprime la del último micro-batch.
cannot-wall-clock = Qué pasó fuera del bucle (imports, datos, el final): ninguna línea dice cuándo se imprimió.
cannot-no-times = En qué se fue el tiempo: este log no imprime ni tiempos ni marcas de tiempo.
cannot-evals-unprinted = Lo que costaron las evaluaciones y, por tanto, cuánto duró la ejecución: caen en iteraciones que no se imprimen.
cannot-no-evals = Si el modelo generaliza: en este log no hay ninguna evaluación.
cannot-format-nanochat = Evaluaciones, muestras y checkpoints: el dt y el tiempo total de nanochat no los incluyen; su pérdida está suavizada.
cannot-format-modded-nanogpt = Cuánto cuestan la validación y el arranque: el cronómetro se detiene mientras duran.
cannot-format-llm-c = Cuánto cuestan la validación y los checkpoints: solo se miden los pasos.
cannot-format-litgpt = Las esperas de datos: el tiempo de una iteración empieza con su batch ya cargado.
cannot-format-torchtitan = Los pasos sueltos: sus cifras son medias desde la última línea, y un checkpoint cae en la siguiente.
cannot-format-hf-trainer = El tiempo de un paso y el de un checkpoint: no se imprimen. Por defecto, una pérdida NaN se sustituye por una media.
cannot-format-lightning = Los pasos sueltos: la velocidad de la barra está suavizada.
cannot-format-composer = Cuánto cuesta un checkpoint: se cuenta en el batch siguiente.
cannot-format-lingua = Cuánto cuesta una evaluación o un checkpoint: baja la velocidad de la línea siguiente.
cannot-format-mingpt = Cuánto cuestan el muestreo y el guardado: el tiempo impreso es el de la iteración anterior.
cannot-format-char-rnn = Cuánto cuestan las evaluaciones y los checkpoints: no se miden.
cannot-format-megatron = Cuánto cuestan la validación y los checkpoints, salvo que sus propias líneas lo digan.
left-out-settings = Los ajustes más allá de los primeros { $most } nombres: { $count } líneas con otros no se conservan.
left-out-events = Cada mensaje: { $count } del medio de una larga serie se cuentan, pero no se conservan.
left-out-evals = Cada evaluación: de { $count } se conservan { $kept }, entre ellas la mejor y la última. Los recuentos y los tiempos son de todas.
left-out-runs = Dónde empezó cada ejecución: se encontraron { $count } más de las { $most } que se distinguen.

## --lines

lines-title = Línea por línea
line-iter = Una actualización de los pesos, la número { $iter }, con un batch.
line-loss = loss { $loss }: cuánto fallaron las predicciones de este batch (entropía cruzada, cuanto menor, mejor); de media, el modelo da al siguiente token correcto una probabilidad de e^-{ $loss } = { $chance }. Un batch suelto varía mucho; lo que cuenta es la tendencia.
line-time = tiempo { $time_ms }: aquí, una iteración normal (lo normal son { $normal_ms }).
line-time-slow = tiempo { $time_ms }: { $excess_ms } más que los { $normal_ms } habituales. Causa: { $cause }.
line-mfu = mfu { $mfu }: media móvil de la parte de los 312 TFLOP/s de una A100 que usaron los cálculos del modelo.
line-mfu-none = mfu -100{"\u00A0"}%: aún sin medir; nanoGPT empieza en la iteración 5.
line-mfu-worked = Una iteración normal, sin la media: { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP de trabajo; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = En { $device } ({ $peak_tflops } TFLOP/s) eso equivale a { $corrected_mfu }.
line-mfu-formula = Según la fórmula: (6 × { $parameters } parámetros + 12 × { $n_layer } capas × { $n_embd } de ancho × { $block_size } tokens) × { $tokens } tokens por iteración = { $work_tflop } TFLOP.
line-eval = Una evaluación en step { $iter }: pérdidas medias sobre muchos batches, sin aprender.
line-eval-train = train loss { $train_loss }: en texto del que el modelo aprende.
line-eval-val = val loss { $val_loss }: en texto del que nunca aprende; esta es la cifra que cuenta.
line-eval-gap = La diferencia entre las dos es { $gap_loss }.
line-eval-best = La mejor hasta ahora.
line-eval-worse = Peor que step { $best_iter } ({ $best_loss }).
line-save = Se guardó un checkpoint; en nanoGPT va incluido en el tiempo de la iteración siguiente.
line-run = Iteraciones normales como estas: { $count }, de { $first } a { $last }; loss de { $first_loss } a { $last_loss }, entre { $low_ms } y { $high_ms } cada una.
line-unknown = { $count ->
    [one] No se entendió una línea.
   *[other] No se entendieron { $count } líneas.
  }
cause-warmup = calentamiento
cause-eval = evaluación
cause-checkpoint = checkpoint
cause-unexplained = sin explicar

## The page of `report` and `watch`

page-language = Español
page-language-choice = idioma
page-unknown = n/a
page-about = registro de { $format }, { $lines } líneas, { $understood } entendidas
page-level-good = en orden
page-level-advice = conviene mirar
page-level-problem = problema
page-health-good = Ninguna regla ha encontrado nada que cambiar.
page-health-more = { $title }, y { $count ->
    [one] un hallazgo más
   *[other] { $count } hallazgos más
  }
page-health-waiting = Todavía no hay ninguna iteración registrada.
page-health-failed = La ejecución terminó con un error: { $detail }
page-health-killed = El proceso desapareció sin decir nada: lo mataron. Se puede reanudar desde el último checkpoint.
page-state = estado
page-state-running = en marcha, { $step } de { $max } iteraciones
page-state-finished = terminada tras { $step } iteraciones
page-state-target = objetivo alcanzado tras { $step } iteraciones
page-state-signal = detenida por una señal tras { $step } iteraciones
page-state-failed = falló tras { $step } iteraciones
page-state-oom = sin memoria tras { $step } iteraciones
page-state-error = terminó con un error tras { $step } iteraciones
page-state-killed = interrumpida tras { $step } de { $max } iteraciones
page-state-waiting = esperando la primera iteración
page-state-unknown = desconocido
page-state-log = { $step } iteraciones registradas
page-left = faltan unos { $left }
page-live = en directo
page-lost = sin conexión, reintentando
page-run = ejecución
page-runs = Ejecuciones
page-no-runs = Aquí no hay ninguna ejecución todavía. Aparecerá cuando empiece una.
page-compare = Qué cambia
page-loss = Pérdida
page-iterations = Cuánto duró cada iteración
page-speed = Velocidad
page-inside = Dentro del paso
page-samples = Muestras
page-settings = Ajustes y máquina
page-config = Ajustes
page-environment = Máquina y modelo
page-chart-loss = Pérdida de entrenamiento y de validación
page-chart-shares = Parte del tiempo, a lo largo de la ejecución
page-chart-time = Tiempo por iteración
page-chart-tokens = Tokens por segundo
page-chart-mfu = MFU del paso de entrenamiento
page-chart-lr = Tasa de aprendizaje
page-chart-grad = Norma del gradiente
page-chart-memory = Memoria
page-log-scale = escala logarítmica
page-keys = Las flechas mueven el cursor, más y menos amplían o reducen, 0 lo muestra todo.
page-axis = eje x
page-axis-iter = iteraciones
page-axis-time = tiempo
page-zoom-in = ampliar
page-zoom-out = reducir
page-left-key = a la izquierda
page-right-key = a la derecha
page-reset = ver todo
page-smoothing = suavizado
page-train = entrenamiento
page-val = validación
page-dashed = a trazos: validación
page-band = La banda alrededor de la pérdida de validación es su error estándar.
page-best = mejor { $loss } en { $number }
page-iteration = iter { $number }
page-train-loss = pérdida de entrenamiento { $loss }
page-smoothed = suavizada { $loss }
page-val-loss = pérdida de validación { $loss } en { $number }
page-slow-because = lenta por: { $cause } (lo normal: { $normal })
page-normal = Una iteración normal tarda { $normal }. Apunte a un pico para ver por qué fue lenta.
page-mfu = { $value } en un paso normal; pico: { $source }
page-peak-device = { $peak } TFLOP/s, de la tabla para { $device }
page-peak-assumed = { $peak } TFLOP/s, supuestos por el entrenador; el registro no nombra ningún dispositivo
page-lines = línea { $lines }
page-copy = copiar
page-copied = copiado
page-outcome-best = mejor pérdida de validación (en)
page-outcome-val = última pérdida de validación
page-outcome-loss = última pérdida de entrenamiento
page-outcome-iters = última iteración
page-outcome-normal = iteración normal
page-outcome-wall = tiempo total
page-outcome-mfu = MFU
page-thinned = De { $total } iteraciones, { $drawn } están en este archivo: de cada tramo, las de menor y mayor valor de cada magnitud. Las sumas son de todas.
page-thinned-live = De { $total } iteraciones se dibujan { $drawn }, entre ellas las de menor y mayor valor de cada tramo. Al ampliar se ve cada una.
