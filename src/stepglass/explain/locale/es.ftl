# Lo que dice `stepglass explain`. Los valores llegan con formato (duraciones, pérdidas, números de
# iteración), salvo $count, $lines, $understood, $more y $replayed, que son números: eligen el plural.
# Los nombres de opciones (eval_interval) y las palabras del log (iter, step, mfu) no se traducen.
#
# Glosario. Español neutro: vale lo mismo en España y en América.
#   about (a number): aprox., alrededor de; about (an iteration): en torno a iter 500; no «hacia»
#   advice: consejo; en infinitivo o con «conviene», nunca tú ni usted
#   average, mean: media; como adverbio, en promedio (no «de media»)
#   batch, micro-batch: batch, micro-batch (el, los batches); no «lote»
#   best: mejor; lowest: más baja, mínimo
#   checkpoint: checkpoint (el); guardarlo, el guardado
#   decay: decaimiento
#   device: dispositivo; machine: máquina; the computer itself: equipo
#   diverge: divergir
#   established: hecho comprobado (un sustantivo, que no concuerda con «nota» ni con «problema»)
#   evaluation: evaluación
#   finding: hallazgo
#   gap: diferencia (de pérdida); hueco (en el tiempo)
#   garbage collector: recolector de basura
#   gradient clipping: recorte de gradientes
#   gradient norm: norma del gradiente
#   hypothesis: hipótesis
#   iteration: iteración; al citar la línea, iter (femenino: iter 500 es lenta)
#   kernel, loss scale, schedule, shape (el), shard, target, token, worker: igual que en inglés
#   killed (process): lo terminó el sistema, interrumpida; no «lo mataron»
#   label: etiqueta
#   learning rate: tasa de aprendizaje, o «la tasa» si no hay duda
#   log: log (el); no «registro» ni «bitácora»
#   loss: pérdida; al citar el log, loss, train loss, val loss (femenino: la val loss)
#   noise: ruido
#   note: nota
#   on data (a loss): con datos; no «en texto»: el modelo puede no ser de texto
#   ordinary, normal, usual: normal (una iteración); habitual (un valor)
#   overfitting: sobreajuste
#   overflow: desbordamiento, desbordarse (los gradientes se desbordan)
#   peak (of a device): pico; spike (of the loss, of the time): pico; peak of the learning rate: máximo
#   process: proceso; rank: el rank, con su número (el rank 3)
#   run: ejecución (femenino: terminada); training: entrenamiento
#   scores (a loss): obtiene una pérdida de
#   setting: opción; settings: configuración
#   single (step, batch): individual; no «suelto»
#   skipped update: actualización omitida
#   stall: pausa
#   start-up (of the process): arranque
#   step: paso; al citar la línea, step
#   supported: probable
#   takes time: tardar (un paso); takes a share: ocupar (el 5 % del tiempo)
#   timestamp: marca de tiempo
#   trainer: trainer (el, los trainers); no «entrenador»
#   understood (line): reconocida
#   wall clock: tiempo de reloj; total time: tiempo total; the sum of printed times: total
#   warm-up (of the learning rate): warmup (el); no «calentamiento»

## El marco

log-is = { $name }: { $format }, { $lines ->
    [one] una línea
   *[other] { $lines } líneas
  }; reconocidas: { $understood } ({ $share })
log-segments = { $count ->
    [one] una ejecución
   *[other] { $count } ejecuciones, una tras otra (el número de iteración retrocede o el log lo indica)
  }
columns-taken = Trainer desconocido. Columnas interpretadas así: { $columns }
segment-title = Ejecución { $number }{ $unit ->
    [entry] {""}
    [epoch] { $span ->
        [one] {""}: época { $first }
       *[many] {""}: épocas { $first } a { $last }
      }
   *[step] { $span ->
        [one] {""}: iteración { $first }
       *[many] {""}: iteraciones { $first } a { $last }
      }
  }
answer-problem = Problema: { $title }
answer-advice = Se puede mejorar: { $title }
answer-note = No se detectan problemas. { $title }
answer-fine = No se detectan problemas.
answer-error = Problema: la ejecución terminó con un error (línea { $line }): { $detail }
answer-interrupted = No se detectan problemas; la ejecución se interrumpió (línea { $line }).
answer-step = { $counts ->
    [epochs] Una época tarda { $normal_ms }.
    [micro-batches] Una iteración tarda { $normal_ms }; una actualización consta de varias.
   *[steps] Un paso de entrenamiento tarda { $normal_ms }.
  }
answer-mean = Un paso tarda { $mean_ms } en promedio según { $clock }.
answer-run-mean = { $counts ->
    [epochs] Una época tarda { $mean_ms } en promedio, todo incluido.
   *[other] Un paso tarda { $mean_ms } en promedio, todo incluido.
  }
answer-no-step = Ninguna de las líneas reconocidas dice cuánto tarda un paso.
answer-see = Más abajo se explica qué hacer.
answer-keep = Este log no muestra nada que cambiar.
ends-with = terminó con un error (línea { $line }): { $detail }
val-losses = { $figure ->
    [bpb] validación, bits por byte
   *[loss] pérdida de validación
  }: { $which ->
    [only] { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }
    [best] mejor { $best_loss } { $best_iter ->
        [none] (la última)
       *[other] (step { $best_iter }, la última)
      }
   *[both] mejor { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }, última { $last_loss } (step { $last_iter })
  }
unit-epoch = epoch
unit-entry = entrada
loss-row = pérdida
time-row = tiempo
where-title = En qué se fue el tiempo
basis-run-log = según el log de la ejecución: registra cada milisegundo
basis-timestamps = según las marcas de tiempo del log
basis-wall-clock = según el total que indica el log
basis-clock = según el reloj del propio log, { $clock }
basis-bar = según el tiempo transcurrido de la barra de progreso
basis-printed = suma de los tiempos impresos
basis-estimated = estimación: se supone que las iteraciones no impresas son como las impresas
covers-run = la ejecución completa
covers-loop = { $unit ->
    [epoch] { $span ->
        [one] época { $first }
       *[many] épocas { $first } a { $last }
      }
   *[step] { $span ->
        [one] iteración { $first }
       *[many] iteraciones { $first } a { $last }
      }
  }
covers-loop-unnumbered = las iteraciones impresas
covers-timed = { $unit ->
    [epoch] { $span ->
        [one] pasos y evaluaciones de la época { $first }
       *[many] pasos y evaluaciones de las épocas { $first } a { $last }
      }
   *[step] { $span ->
        [one] paso y evaluaciones de la iteración { $first }
       *[many] pasos y evaluaciones de las iteraciones { $first } a { $last }
      }
  }
covers-timed-unnumbered = los pasos y las evaluaciones que se imprimen
covers-steps = { $span ->
    [one] solo el paso de entrenamiento { $first }, sin evaluaciones ni checkpoints
   *[many] solo los pasos de entrenamiento { $first } a { $last }, sin evaluaciones ni checkpoints
  }
covers-steps-unnumbered = solo los pasos de entrenamiento impresos, sin evaluaciones ni checkpoints
clock-of-bar = el tiempo transcurrido de la barra de progreso
clock-without = { $clock }, que no incluye: { $phases }
phase-step = pasos de entrenamiento
phase-eval = evaluaciones
phase-checkpoint = checkpoints
phase-eval-checkpoint = evaluaciones y checkpoints
phase-warmup-eval = arranque y primera evaluación
phase-warmup = arranque
phase-rest = todo lo demás
phase-all = entrenamiento, todo incluido
phase-stall = pausas sin explicar
phase-unattributed = sin atribuir
phase-data = espera de datos
phase-forward_backward = forward y backward
phase-optimizer = optimizador
phase-log = escritura del log
phase-gc = recolector de basura de Python
phase-other = otros
within-communication = de ello, comunicación
within-waiting = de ello, espera al más lento
wall-clock = tiempo de reloj
total = total
findings-title = Hallazgos
no-findings = No se detectan problemas.
status-established = hecho comprobado
status-supported = probable
status-hypothesis = hipótesis
level-problem = problema
level-advice = consejo
level-note = nota
lines-cited = { $count ->
    [one] línea { $lines }
   *[other] líneas { $lines }
  }
lines-more = { $lines } y { $more } más
grade-run = ejecución { $number }
grade-is = { $level }, { $status }
grade-cites = { $level }, { $status }; { $cited }
change-is = Probar: { $flags }
cannot-title = Lo que este log no permite saber
cannot-more = ({ $count } más con --all)
top-findings = Lo más destacado (más detalles con stepglass explain { $run }):

## Reglas

rule-eval-inside-iteration-title = { $cost ->
    [share] { $includes ->
        [together] Las evaluaciones y los checkpoints ocupan el { $eval_share } del tiempo; iter { $iter } es lenta porque incluye ambas cosas
       *[other] Las evaluaciones ocupan el { $eval_share } del tiempo; iter { $iter } es lenta porque incluye una
      }
    [ratio] iter { $iter } es lenta porque incluye una evaluación, que cuesta tanto como { $each_iters } iteraciones
   *[low] { $place ->
        [window] Las { $window } iteraciones hasta iter { $iter } no son lentas: su tiempo medio incluye una evaluación
       *[one] iter { $iter } no es una iteración lenta: su tiempo incluye una evaluación
      }
  }
rule-eval-inside-iteration-text = { $place ->
    [window] El tiempo impreso es la media de todo lo ocurrido desde la línea anterior.
   *[one] El cronómetro va del final de una iteración al final de la siguiente.
  } En { $count ->
    [one] esta línea
   *[other] estas { $count } líneas
  }, el tiempo incluye también { $evidence ->
    [inferred] una evaluación que el log no imprime
   *[printed] la evaluación impresa justo antes
  }{ $includes ->
    [eval] {""}
   *[other] {" "}y, donde una línea lo indica, un checkpoint
  }. Del tiempo de { $place ->
    [window] las { $window } iteraciones hasta iter { $iter }
   *[one] iter { $iter }
  } ({ $time_ms }), { $excess_ms } corresponden a eso{ $includes ->
    [split] {" "}(aprox. { $eval_ms } de evaluación y { $save_ms } de checkpoint)
   *[other] {""}
  }; una iteración normal tarda { $normal_ms }. { $cost ->
    [low] Para que haya menos líneas así, aumentar eval_interval (reducirlo produce más); para que su tiempo sea menor, reducir eval_iters.
   *[other] Cada evaluación cuesta tanto como { $each_iters } iteraciones y hay una cada { $interval }. { $advice ->
        [interval] Con eval_interval={ $wanted } ocuparían alrededor del 5{"\u00A0"}% del tiempo.
        [batches] Con eval_iters={ $wanted } ocuparían alrededor del 5{"\u00A0"}% del tiempo, con pérdidas más ruidosas.
        [rarer] Con eval_interval={ $wanted } quedan cuatro evaluaciones en esta ejecución; con menos eval_iters, cada una es más corta.
       *[none] Conviene evaluar con menos frecuencia (eval_interval mayor) o con menos batches (eval_iters menor).
      }
  }{ $saves_worse ->
    [yes] {" "}Se guardaron checkpoints incluso cuando la val loss no era la mejor hasta el momento: con always_save_checkpoint=False solo se guardan los mejores.
   *[no] {""}
  }{ $last ->
    [mfu] {" "}El log termina con una línea así: lo correcto es citar { $normal_ms } por iteración y un mfu del { $clean_mfu }, no lo que imprime esa línea ({ $last_time_ms } y { $printed_mfu }).
    [time] {" "}El log termina con una línea así: lo correcto es citar { $normal_ms } por iteración, no lo que imprime esa línea ({ $last_time_ms }).
   *[no] {""}
  }

rule-mfu-echo-title = { $variant ->
    [changed] La caída del mfu en iter { $iter } es el eco de una sola línea lenta
   *[plain] La caída del mfu es el eco de una sola línea lenta, no una ralentización
  }
rule-mfu-echo-text = El mfu impreso es una media móvil: nueve décimas partes del valor anterior y una décima parte del nuevo. La línea lenta de iter { $iter } lo hizo bajar del { $before_mfu } al { $printed_mfu }, y hacen falta unas veinte líneas para que se recupere. Recalcular la media con los tiempos impresos reproduce los { $replayed } valores impresos.{ $variant ->
    [changed] {""}
   *[plain] {" "}La velocidad en sí no cambió: un mfu del { $clean_mfu }.
  }

rule-warm-up-title = { $variant ->
    [several] Las primeras { $count } iteraciones incluyen el arranque
    [window] Las primeras { $count } iteraciones incluyen el arranque
   *[other] iter { $iter } incluye el arranque
  }
rule-warm-up-text = { $variant ->
    [eval] El tiempo de la primera iteración ({ $time_ms }) es su evaluación más un paso normal ({ $normal_ms }). El arranque en sí apenas se nota.
    [both] La primera iteración tardó { $time_ms }: aprox. { $warmup_ms } de arranque, { $eval_ms } de evaluación y un paso de { $normal_ms }.
    [together] La primera iteración tardó { $time_ms }: el arranque y la evaluación de la iteración 0, juntos. Ninguna evaluación posterior de este log muestra lo que cuesta por separado; un paso normal tarda { $normal_ms }.
    [window] Tardaron { $time_ms } cada una en promedio; las siguientes, { $normal_ms }: { $warmup_ms } de arranque en total.
    [several] Tardaron hasta { $time_ms }; las siguientes, { $normal_ms }: { $warmup_ms } de arranque en total.
    [line] La primera línea muestra { $time_ms }; las siguientes, { $normal_ms }. La primera probablemente incluye el arranque.
   *[plain] La primera iteración tardó { $time_ms }; las siguientes tardan { $normal_ms }.
  } El arranque es { $work ->
    [compile] sobre todo compilar el modelo (torch.compile) y, después, reservar memoria, cargar kernels y leer el primer batch
    [any] lo que ocurre una sola vez: compilar el modelo (si se compila), reservar memoria, cargar kernels y leer el primer batch
    [data] lo que ocurre una sola vez. Aquí fue sobre todo espera de datos: abrir el dataset y leer los primeros batches
   *[first-use] lo que ocurre una sola vez: reservar memoria, cargar kernels y leer el primer batch
  }.

rule-mfu-wrong-peak-title = { $variant ->
    [no-peak] El mfu impreso compara esta ejecución con una A100
   *[other] El mfu impreso se calcula con un pico equivocado
  }
rule-mfu-wrong-peak-text = { $variant ->
    [other] El log divide entre { $assumed_tflops } TFLOP/s. En este dispositivo ({ $device }, { $peak_tflops } TFLOP/s), el { $clean_mfu } de una iteración normal equivale a un { $corrected_mfu } (× { $assumed_tflops } / { $peak_tflops }).
    [over] Un { $printed_mfu } es más de lo que puede dar ningún dispositivo: el log divide entre { $assumed_tflops } TFLOP/s, el pico de una A100. O bien el dispositivo era más rápido (al indicarlo con --device se obtiene la cifra real), o bien el tiempo impreso es demasiado corto, porque se leyó el reloj antes de que el dispositivo terminara.
   *[no-peak] nanoGPT divide entre { $assumed_tflops } TFLOP/s, el pico de una A100, sea cual sea el dispositivo. En este dispositivo ({ $device }), la cifra solo sirve para comparar esta ejecución con una A100{ $achieved ->
        [known] ; se alcanzaron { $achieved_tflops } TFLOP/s
       *[unknown] {""}
      }.
  }

rule-small-kernels-title = Puede que la GPU esté esperando trabajo: los kernels son pequeños
rule-small-kernels-text = La GPU ({ $device }) alcanza el { $corrected_mfu } de su pico con { $normal_ms } por iteración. Con un modelo o un micro-batch tan pequeño, lanzar los kernels puede llevar tanto tiempo como ejecutarlos. En ese caso, un batch mayor apenas cuesta más tiempo y torch.compile ayuda.

rule-accumulation-waste-title = La acumulación de gradientes ejecuta batches pequeños uno tras otro
rule-accumulation-waste-text = { $accumulation } micro-batches de tamaño { $batch } se ejecutan uno tras otro cuando bastarían menos y más grandes. Los valores propuestos mantienen los tokens por iteración ({ $tokens_per_iter }) y necesitan aprox. { $memory_bytes } de memoria.

rule-slow-path-title = { $variant ->
    [attention] La atención usa la implementación lenta
    [sdpa] La atención usa la SDPA de PyTorch en lugar de FlashAttention 3
    [compile] torch.compile dejó sin compilar una parte del modelo
    [float32] Entrenar en float32 es más lento que en { $dtype }
   *[mps] En mps, nanoGPT entrena en float32 sea cual sea el valor de dtype
  }
rule-slow-path-text = { $variant ->
    [attention] Según el log, la atención fusionada no está disponible, así que cada capa escribe en memoria su matriz de atención completa. PyTorch tiene atención fusionada desde la versión 2.0.
    [sdpa] Según el log, FlashAttention 3 no está disponible aquí: requiere una GPU Hopper (H100) y su paquete. La SDPA también es atención fusionada y con ella se entrena igual; es más lenta, sobre todo con ventanas deslizantes.
    [compile] El log muestra { $count ->
        [one] un aviso
       *[other] { $count } avisos
      } de que parte del código se quedó en modo eager: la compilación lleva su tiempo, pero esa parte no se acelera.
    [float32] Los productos de matrices en float32 van a la mitad de velocidad que en { $dtype }, o menos, y las activaciones ocupan el doble de memoria.
   *[mps] nanoGPT desactiva la precisión mixta en todo dispositivo que no sea CUDA. No es un fallo; la velocidad será la de float32.
  }

rule-data-bound-title = El entrenamiento espera a los datos
rule-data-bound-text = La espera de batches ocupó el { $data_share } del tiempo de los pasos de entrenamiento{ $variant ->
    [phases] {""}, { $total_ms } en total
   *[plain] {""}: una mediana de { $median_ms } por iteración y { $worst_ms } en el peor caso
  }. Conviene tener los datos en un disco local o en memoria y cargar los batches por adelantado.

rule-straggler-title = { $variant ->
    [pair] El rank { $rank } es lento: el otro proceso lo espera
   *[plain] El rank { $rank } es lento: los demás procesos lo esperan
  }
rule-straggler-text = { $variant ->
    [pair] El rank { $rank } calcula los gradientes de una actualización en { $slow_ms }; el otro, en { $others_ms } (medianas): un { $slower_percent } más. Fue más lento que el otro en { $slow_records } de { $records } mediciones, de iter { $first_iter } a { $end_iter }. Eso costó { $cost_ms }, el { $cost_share } del tiempo. Ambos procesos calculan el mismo número de tokens, así que la causa está en la máquina: otro programa en ese dispositivo o núcleo, un dispositivo más lento, uno que reduce su frecuencia por temperatura o consumo, o menos hilos que el otro.
   *[plain] El rank { $rank } calcula los gradientes de una actualización en { $slow_ms }; los demás, en { $others_ms } (medianas): un { $slower_percent } más. Fue más lento que los demás en { $slow_records } de { $records } mediciones, de iter { $first_iter } a { $end_iter }. Eso costó { $cost_ms }, el { $cost_share } del tiempo. Todos los procesos calculan el mismo número de tokens, así que la causa está en la máquina: otro programa en ese dispositivo o núcleo, un dispositivo más lento, uno que reduce su frecuencia por temperatura o consumo, o menos hilos que los demás.
  }

rule-communication-title = La comunicación entre procesos ocupa el { $communication_share } del tiempo de los pasos de entrenamiento
rule-communication-text = Después de que los { $processes } procesos calcularan sus gradientes, lo que llevó { $compute_ms } por actualización en promedio, pasaron otros { $update_ms } hasta tener la suma: { $total_ms } en total. DDP envía los gradientes una vez por actualización, tenga los tokens que tenga. Por eso, más tokens por actualización reducen esa parte: conviene aumentar gradient_accumulation_steps (ahora { $accumulation }) o batch_size. También ayudan una conexión más rápida o menos procesos.

rule-pace-setter-title = { $variant ->
    [python] El ritmo lo marca Python, no la GPU
    [data] El ritmo lo marcan los datos, no la GPU
   *[gpu] El ritmo lo marca la GPU
  }
rule-pace-setter-text = { $variant ->
    [python] Al final del { $ahead_share } de las actualizaciones, la GPU ya había terminado y esperaba a que Python lanzara kernels. Un batch_size mayor o compile=True le dan más trabajo por lanzamiento.
    [data] Al final del { $ahead_share } de las actualizaciones, la GPU ya había terminado, y pasó más del 5 % de su paso esperando batches. Conviene tener los datos en un disco local o en memoria.
   *[gpu] Al final del { $behind_share } de las actualizaciones aún quedaba trabajo en cola para la GPU: ni Python ni los datos la frenan.
  }

rule-periodic-stall-title = { $variant ->
    [sync] La línea que sigue a cada evaluación o checkpoint es lenta
    [included] La línea que sigue a cada evaluación o checkpoint es lenta
   *[other] Una pausa cada { $every } iteraciones, que no coincide con evaluaciones ni checkpoints
  }
rule-periodic-stall-text = Cada { $every } iteraciones (aprox. cada { $period_ms }), una tardó aprox. { $excess_ms } más que sus vecinas: { $count } veces, { $total_ms } en total. { $variant ->
    [gc] El log muestra la actividad del recolector de basura de Python. Conviene llamar a gc.freeze() y gc.disable() tras las primeras iteraciones.
    [sync] Ocurre una línea después de una evaluación o un checkpoint: el entrenamiento espera entonces al dispositivo y tiene que volver a llenar su cola y sus cachés.
    [included] Ocurre justo después de una evaluación o un checkpoint, cuyo tiempo probablemente se cuenta en esta línea.
    [optimizer] Causas posibles: la actualización periódica del precondicionador del optimizador, que este log menciona (SOAP o Shampoo), el cambio de archivo de datos u otro programa que se ejecuta cada cierto tiempo.
    [shard] Causas posibles: el cambio de archivo de datos (shard), que ocurre más o menos con esa frecuencia, u otro programa que se ejecuta cada cierto tiempo.
    [short] Causas posibles: el cambio de archivo de datos, una actualización periódica dentro del optimizador (SOAP, Shampoo), el recolector de basura de Python (para descartarlo, llamar a gc.freeze() y gc.disable() tras las primeras iteraciones) u otro programa que se ejecuta cada cierto tiempo.
   *[plain] Causas posibles: el cambio de archivo de datos, una actualización periódica dentro del optimizador (SOAP, Shampoo) u otro programa que se ejecuta cada cierto tiempo.
  }

rule-slowdown-title = Las iteraciones tardan un { $rise_percent } más que al principio
rule-slowdown-text = Una iteración normal pasó de { $first_ms } a { $last_ms }{ $variant ->
    [drift] , poco a poco
   *[other] , en torno a iter { $iter }
  }, y se mantuvo así. { $variant ->
    [throttle] El log menciona un límite térmico o de potencia: la causa es la refrigeración o el límite de potencia configurado.
   *[other] Causas posibles: la temperatura, otro programa en el mismo dispositivo, falta de memoria o batches más largos; el log no dice cuál. Conviene vigilar la frecuencia de reloj y la temperatura del dispositivo durante el entrenamiento.
  }

rule-slow-stretch-title = De iter { $first_iter } a iter { $end_iter }, las iteraciones tardaron un { $rise_percent } más; luego volvieron a la normalidad
rule-slow-stretch-text = En ese tramo, una iteración tardaba { $slow_ms } en lugar de { $normal_ms }, lo que costó { $excess_ms } en total. { $variant ->
    [throttle] El log menciona ahí un límite térmico o de potencia.
   *[plain] Lo más probable es que otro programa usara la misma máquina; también pueden ser la temperatura o batches más largos.
  }

rule-eval-too-expensive-title = { $covers ->
    [timed] { $variant ->
        [together] Las evaluaciones y los checkpoints ocupan el { $eval_share } del tiempo que imprime el log
       *[plain] Las evaluaciones ocupan el { $eval_share } del tiempo que imprime el log
      }
   *[other] { $variant ->
        [together] Las evaluaciones y los checkpoints ocupan el { $eval_share } del tiempo
       *[plain] Las evaluaciones ocupan el { $eval_share } del tiempo
      }
  }
rule-eval-too-expensive-text = Cada { $variant ->
    [together] evaluación con su checkpoint
   *[plain] evaluación
  } tarda { $each_ms }{ $compared ->
    [yes] {""}, tanto como { $each_iters } iteraciones, y hay una cada { $interval }
    [entry] {""}
    [epoch] {""}
   *[no] {" "}y hay una cada { $interval } iteraciones
  }. { $advice ->
    [interval] Con una cada { $wanted } iteraciones ocuparían alrededor del 5{"\u00A0"}% del tiempo.
    [batches] Con { $wanted } batches por evaluación ocuparían alrededor del 5{"\u00A0"}% del tiempo, con pérdidas más ruidosas.
    [rarer] Con una cada { $wanted } iteraciones quedan cuatro en esta ejecución; con menos batches por evaluación, cada una es más corta.
   *[none] Conviene evaluar con menos frecuencia o con menos batches.
  }

rule-eval-noise-title = Las diferencias entre las últimas evaluaciones son menores que su ruido
rule-eval-noise-text = La incertidumbre de una evaluación es de { $se_loss }; dos evaluaciones tienen que diferir al menos en { $least_loss } para que la diferencia signifique algo, y los últimos { $count } cambios fueron de { $largest_loss } como mucho. No conviene elegir un checkpoint según estas evaluaciones{ $variant ->
    [more] {""}: para decidir hacen falta más eval_iters, o evaluar siempre con los mismos batches
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } de trabajo y ningún checkpoint todavía
   *[plain] Los checkpoints ocupan el { $save_share } del tiempo
  }
rule-checkpoint-interval-text = { $variant ->
    [none] Ninguna línea de este log indica que se guardara un checkpoint. Si ahora fallara algo, se perdería todo.
   *[plain] { $count } checkpoints de aprox. { $save_ms } cada uno detuvieron el entrenamiento durante { $total_ms }. { $run ->
        [short] Para una ejecución tan corta basta un checkpoint al final.
       *[long] Si la máquina falla más o menos una vez al día, con uno cada { $wanted_ms } se pierde el mínimo de tiempo.
      }{ $tied ->
        [yes] {" "}nanoGPT guarda al evaluar: siempre o, con always_save_checkpoint=False, solo si la val loss es la mejor hasta el momento.
       *[no] {""}
      }
  }

rule-overfitting-title = { $variant ->
    [gap] La pérdida de validación está muy por encima de la de entrenamiento: sobreajuste
    [gap-few] La pérdida de validación está muy por encima de la de entrenamiento: sobreajuste
    [metric] La pérdida de validación sube, pero { $metric } sigue mejorando
    [one] La última evaluación es peor que la mejor: puede que haya empezado el sobreajuste
   *[other] Sobreajuste desde step { $best_iter }, aproximadamente
  }
rule-overfitting-text = { $variant ->
    [gap] En step { $last_iter } el modelo obtiene una pérdida de { $train_loss } con datos que ha visto y de { $last_loss } con datos que no ha visto: una diferencia de { $gap_loss }, el { $gap_percent } de la pérdida de entrenamiento; con datos nuevos, su perplejidad se multiplica por { $perplexity_times }. Eso es memorización, no una diferencia leve. La pérdida de validación tuvo su mínimo en step { $best_iter } ({ $best_loss }).
    [gap-few] En step { $last_iter } el modelo obtiene una pérdida de { $train_loss } con datos que ha visto y de { $last_loss } con datos que no ha visto: una diferencia de { $gap_loss }, el { $gap_percent } de la pérdida de entrenamiento; con datos nuevos, su perplejidad se multiplica por { $perplexity_times }. Eso es memorización, no una diferencia leve. Con tan pocas evaluaciones, el log no muestra cuándo empezó: conviene buscar el step con la val loss más baja.
    [metric] La pérdida de validación tuvo su mínimo en step { $best_iter } ({ $best_loss }) y ha subido { $rise_loss } (un { $rise_percent }) hasta { $last_loss } mientras bajaba la de entrenamiento. En las mismas evaluaciones, { $metric } pasó de { $before_points } a { $now_points }: el modelo está más seguro donde se equivoca, pero no hace peor su tarea. Conviene elegir el checkpoint según la métrica que de verdad importe.
    [one] La pérdida de validación tuvo su mínimo en step { $best_iter } ({ $best_loss }) y en la última evaluación está { $rise_loss } por encima (un { $rise_percent }), mientras que la de entrenamiento ha bajado. Una sola evaluación puede ser casualidad: las siguientes lo dirán.
    [no-train] La pérdida de validación tuvo su mínimo en step { $best_iter } ({ $best_loss }) y ha subido { $rise_loss } (un { $rise_percent }) hasta { $last_loss } mientras bajaba la de entrenamiento. Todo el entrenamiento posterior a ese step empeoró el modelo con datos nuevos.
   *[rising] La pérdida de validación tuvo su mínimo en step { $best_iter } ({ $best_loss }) y ha subido { $rise_loss } (un { $rise_percent }) hasta { $last_loss } mientras la de entrenamiento bajaba a { $train_loss }. Todo el entrenamiento posterior a ese step empeoró el modelo con datos nuevos: conviene parar ahí, usar más dropout o más datos, o un modelo más pequeño.
  }

rule-best-checkpoint-lost-title = El mejor checkpoint se sobrescribió con uno peor
rule-best-checkpoint-lost-text = nanoGPT conserva un solo checkpoint y, con always_save_checkpoint, cada evaluación lo sobrescribe. El mejor era el de step { $best_iter } (val loss { $best_loss }); ahora el archivo contiene el de step { $kept_iter } ({ $kept_loss }), con una val loss { $worse_loss } mayor.

rule-stopped-early-title = La ejecución terminó cuando el modelo aún aprendía
rule-stopped-early-text = La pérdida de validación seguía bajando al final (step { $last_iter }: { $last_loss }), alrededor de { $gain_loss } por cada mil iteraciones, y no hay señales de sobreajuste. Una ejecución más larga, con el decaimiento alargado en la misma medida, debería mejorar más.

rule-schedule-mismatch-title = { $variant ->
    [batch] La tasa de aprendizaje es alta para tan pocos tokens por iteración
    [floor] El mínimo de la tasa de aprendizaje es poco habitual
    [warmup] El warmup de la tasa de aprendizaje ocupa gran parte de la ejecución
   *[other] El decaimiento de la tasa de aprendizaje no encaja con la duración de la ejecución
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr es { $low_lr } con una learning_rate de { $rate }; lo habitual es la décima parte.
    [batch] Una learning_rate de { $rate } es habitual con medio millón de tokens por iteración; aquí son { $batch_tokens }. Con menos tokens, el gradiente es más ruidoso: conviene escalar la tasa con la raíz cuadrada del número de tokens.
    [warmup] La tasa de aprendizaje sube durante { $warmup_iters } de { $max_iters } iteraciones; lo habitual es el uno o el dos por ciento.
    [long] lr_decay_iters es { $decay_iters }, pero la ejecución termina en { $max_iters }: la tasa de aprendizaje nunca llega a ser baja. La pérdida suele bajar de forma visible mientras la tasa decae, y esta ejecución se pierde la mayor parte de esa bajada.
   *[short] lr_decay_iters es { $decay_iters } y la ejecución sigue hasta { $max_iters }: todas las iteraciones posteriores al decaimiento usan min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] Una evaluación dio NaN (step { $iter }, línea { $line })
    [vanished] La pérdida falta desde iter { $iter } (línea { $line }): probablemente es NaN
   *[other] La pérdida es NaN o infinita desde iter { $iter } (línea { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] La pérdida de entrenamiento sigue siendo finita, así que el fallo está probablemente en la propia evaluación: no hay batches que evaluar o no contienen ningún target válido.
   *[other] { $last_iter ->
        [none] La primera pérdida impresa ya es NaN o infinita.
       *[other] La última pérdida finita fue { $last_loss } en iter { $last_iter }.
      } { $variant ->
        [vanished] Todas las líneas anteriores tienen pérdida; { $count ->
            [one] la última línea
           *[other] las últimas { $count } líneas
          } no{ $has_bad_norms ->
            [yes] , y ahí la norma del gradiente es NaN
           *[no] {""}
          }: algunos trainers omiten la pérdida cuando es NaN.{" "}
       *[other] {""}
      }A partir de ahí no se aprendió nada: conviene detener la ejecución{ $save_iter ->
        [none] {""}
       *[other] {" "}y volver al checkpoint de la iteración { $save_iter }{ $overwritten ->
            [yes] , si hay una copia: según este log, un guardado posterior lo sobrescribió
           *[no] {""}
          }
      }. { $variant ->
        [exploded] La pérdida había subido muy por encima de su mínimo antes de llegar a NaN: la tasa de aprendizaje es demasiado alta o los gradientes no se recortan.
        [first] Aún no se había aprendido nada, así que la causa no es la tasa de aprendizaje. Causas habituales: NaN en los datos o en los pesos cargados, batches sin ningún target válido, desbordamiento en float16 o un kernel defectuoso.
        [fp16] En float16 los valores grandes se desbordan; en bfloat16 o float32, no.
       *[other] Causas habituales: una tasa de aprendizaje demasiado alta, desbordamiento en float16 o un target fuera del rango válido (en texto, un id de token fuera del vocabulario).
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Desde entonces las iteraciones tardan un { $faster_percent } menos: es lo que se ve cuando GradScaler omite todas las actualizaciones.
      }
  }

rule-broken-gradient-title = { $variant ->
    [zero] La norma del gradiente es exactamente 0 desde iter { $iter } (línea { $line })
   *[other] La norma del gradiente es NaN o infinita desde iter { $iter } (línea { $line })
  }
rule-broken-gradient-text = { $variant ->
    [zero] En las últimas { $count } líneas no llega ningún gradiente a los pesos, así que no se aprende nada. Causas habituales: batches con todas las etiquetas enmascaradas, parámetros congelados o fuera del grafo (detach), o valores demasiado pequeños para float16.
    [nan-no-loss] Lo es en cada una de las últimas { $count } líneas, y ninguna línea tiene pérdida: algunos trainers la omiten cuando es NaN. Ya no se aprende nada: conviene detener la ejecución y volver a un checkpoint anterior. Causas habituales: una tasa de aprendizaje demasiado alta, desbordamiento en float16 o batches sin ningún target válido.
   *[nan] Lo es en cada una de las últimas { $count } líneas, aunque la pérdida impresa parece normal. Las actualizaciones con un gradiente así o bien se omiten o bien destruyen los pesos: ya no se aprende nada. Conviene detener la ejecución y volver a un checkpoint anterior. Causas habituales: desbordamiento en float16, batches sin ningún target válido o un kernel defectuoso.
  }

rule-constant-loss-title = La pérdida es exactamente { $loss } en las últimas { $count } líneas
rule-constant-loss-text = No cambia ni un solo dígito de iter { $iter } a iter { $last_iter }, aunque los batches deberían ser distintos. { $variant ->
    [zero] Una pérdida de exactamente 0 significa que no se calculó con ningún target: todas las etiquetas están enmascaradas o el trainer imprime 0 en lugar de NaN.
    [rate] La tasa de aprendizaje impresa es 0: no se aprende nada. Un batch siempre igual explicaría el resto.
    [norm] La norma del gradiente también es 0: no se aprende nada. Conviene comprobar si los pesos están congelados o todas las etiquetas enmascaradas.
   *[plain] No se aprende nada. O bien la salida ya no depende de la entrada (pesos nulos, congelados o destruidos; entonces e^loss = { $choices } es más o menos el tamaño del vocabulario), o bien la tasa de aprendizaje es 0 y todos los batches son iguales, o bien la cifra no se actualiza.
  }

rule-skipped-updates-title = { $variant ->
    [stuck] Desde iter { $iter } se omiten todas las actualizaciones: los gradientes se desbordan (NaN o infinito)
   *[often] Se omitieron { $count } actualizaciones de los pesos (el { $skipped_share } de las iteraciones)
  }
rule-skipped-updates-text = { $variant ->
    [stuck] Los gradientes se desbordan con cualquier loss scale, así que los pesos ya no cambian. Conviene volver a un checkpoint anterior, con una tasa de aprendizaje menor; bfloat16 no necesita loss scale.
   *[often] Esos batches se calcularon y se descartaron. Unas pocas omisiones al principio son normales, mientras se busca la loss scale adecuada; estas llegan más tarde. Contra el desbordamiento ayuda una tasa de aprendizaje menor, y también bfloat16.
  }

rule-divergence-title = { $variant ->
    [exploded] El entrenamiento divergió en torno a iter { $iter }
    [recovered] La pérdida subió en torno a iter { $iter } y volvió a bajar
   *[up] La pérdida subió en torno a iter { $iter } y ya no bajó
  }
rule-divergence-text = La pérdida más baja fue { $best_loss } (iter { $best_iter }). { $variant ->
    [recovered] Después subió hasta alrededor de { $high_loss }, y en iter { $back_iter } ya había vuelto a su nivel anterior
    [exploded] Después subió por encima de todo lo anterior y ahí se mantuvo: { $last_loss } al final
   *[up] Después subió y ya no bajó: { $last_loss } al final
  }{ $knows_rate ->
    [yes] {""}; en el momento de la subida, la tasa de aprendizaje era { $rate }
   *[no] {""}
  }. { $variant ->
    [recovered] El trabajo intermedio se perdió. Si vuelve a ocurrir, conviene reducir la tasa de aprendizaje o alargar su warmup.
    [exploded] Conviene volver a un checkpoint anterior, con una tasa de aprendizaje menor, recorte de gradientes y un warmup más largo.
   *[up] Si ahí no se cambió nada (datos, configuración), el entrenamiento divergió: conviene volver a un checkpoint anterior, con una tasa de aprendizaje menor y un warmup más largo.
  }

rule-loss-spike-title = { $count ->
    [one] Un pico de la pérdida en iter { $iter }
   *[other] { $count } picos de la pérdida, el mayor en iter { $iter }
  }
rule-loss-spike-text = La pérdida saltó a { $loss } cuando lo habitual era { $around_loss } (un salto de { $z } veces el ruido) y volvió a su nivel anterior. { $variant ->
    [data] { $runs } ejecuciones de este log tienen el salto en la misma iteración: la causa está en los datos que se leen ahí, no en la configuración.
    [rate] Hay muchos saltos así y duran varias líneas: probablemente la tasa de aprendizaje es demasiado alta o los gradientes no se recortan.
    [smoothed] La pérdida impresa es una media móvil: la del propio batch fue mucho mayor, y su rastro se desvanece a lo largo de varias líneas. Unos pocos son inofensivos.
   *[plain] Un salto que desaparece en la línea siguiente suele deberse a un batch atípico. Unos pocos son inofensivos.
  }

rule-initial-loss-title = La primera pérdida no cuadra con el vocabulario
rule-initial-loss-text = Un modelo que no sabe nada obtiene una pérdida de ln({ $vocab }) = { $expected_loss }; este empezó en { $seen_loss }. { $variant ->
    [low] O no partió de cero, o los targets se filtran en la entrada, o el vocabulario es mayor de lo que requieren los datos.
   *[high] Conviene revisar vocab_size y meta.pkl, el desplazamiento entre entrada y target, y la inicialización.
  }

rule-plateau-title = La pérdida de validación se ha estancado
rule-plateau-text = En las últimas { $count } evaluaciones (steps { $first_iter } a { $last_iter }) se mantuvo en torno a { $mean_loss }; su tendencia es de { $moved_loss } en total, que no supera el ruido. { $variant ->
    [peak] La tasa de aprendizaje sigue cerca de su máximo: conviene reducirla o empezar el decaimiento.
    [floor] La tasa de aprendizaje ya estaba en su mínimo cuando empezó el estancamiento: este schedule ya no da más de sí.
    [through] La tasa de aprendizaje era { $rate } cuando empezó el estancamiento, y reducirla desde entonces no ha servido: el límite está en el modelo, los datos o la regularización.
    [known] La tasa de aprendizaje era { $rate } cuando empezó el estancamiento.
   *[plain] El log no dice cuál era la tasa de aprendizaje, así que no permite distinguir un schedule ya terminado de una tasa demasiado alta.
  }

rule-data-budget-title = { $variant ->
    [epochs] La ejecución recorre sus datos { $epochs } veces
    [few] Pocos tokens para este modelo: { $ratio } por parámetro
   *[many] Muchos tokens para este modelo: { $ratio } por parámetro
  }
rule-data-budget-text = { $is_planned ->
    [yes] Tokens en las { $max_iters } iteraciones previstas
   *[no] Tokens en { $max_iters } iteraciones
  }: { $tokens }; parámetros: { $parameters }. Son { $ratio } tokens por parámetro; el equilibrio habitual es de unos 20. { $variant ->
    [epochs] El conjunto de entrenamiento es mucho menor, así que se lee { $epochs } veces: a partir de unas cuatro pasadas, repetir ayuda cada vez menos y el sobreajuste se vuelve probable.
    [few] Un modelo más pequeño, o más iteraciones, aprovecharía mejor el tiempo.
   *[many] Con el mismo tiempo de cálculo, un modelo más grande suele alcanzar una pérdida menor.
  }

rule-eval-below-batch-title = Por qué la train loss de una evaluación está por debajo de la loss de los batches
rule-eval-below-batch-text = En step { $last_iter } se imprime una train loss de { $train_loss }; en las iteraciones cercanas, { $batch_loss }. { $variant ->
    [dropout] El dropout ({ $dropout }) se desactiva en una evaluación, así que ahí el modelo predice mejor, y la cifra es una media de muchos batches. No es ningún fallo.
   *[plain] Una evaluación es una media de muchos batches, y en ella se desactiva el dropout: si esta ejecución lo usa, ahí el modelo predice mejor. No es ningún fallo.
  }

rule-expected-loss-title = { $variant ->
    [worse] La pérdida de validación es mayor que la que alcanza nanoGPT con estos datos
   *[usual] La pérdida de validación es la que alcanza nanoGPT con estos datos
  }
rule-expected-loss-text = En shakespeare_char, un modelo sin entrenar empieza en ln(65) = 4,17. La configuración de nanoGPT para GPU (6 capas, 5000 iteraciones) alcanza una val loss de alrededor de 1,47; la de CPU (4 capas, 2000 iteraciones), de alrededor de 1,88. La mejor aquí es { $best_loss } (step { $best_iter }).

rule-gradient-clipping-title = Casi todos los gradientes se recortan
rule-gradient-clipping-text = La norma del gradiente supera { $setting } = { $clip } en el { $clipped_share } de las líneas, con una mediana de { $norm }. El recorte acorta un gradiente así hasta esa longitud y conserva su dirección, de modo que la longitud de cada actualización depende prácticamente solo de la tasa de aprendizaje. Es inofensivo mientras la pérdida baje bien; si no, lo primero es reducir la tasa de aprendizaje.

rule-out-of-memory-title = { $variant ->
    [host] El equipo se quedó sin memoria
   *[other] Memoria agotada
  }
rule-out-of-memory-text = { $variant ->
    [host] Se agotó la memoria del propio equipo (RAM), no la de la GPU: conviene usar menos workers de datos, mapear el archivo de datos (mmap) en lugar de cargarlo, o cerrar otros programas.
    [sizes] La ejecución pidió { $tried_bytes } más y no los obtuvo.
   *[plain] La ejecución pidió más memoria de la que tiene el dispositivo.
  }{ $halved ->
    [batch] {" "}Con la mitad de batch_size y el doble de gradient_accumulation_steps se entrena igual y hace falta alrededor de la mitad de la memoria que crece con el batch; también ayuda un block_size menor.
   *[no] { $variant ->
        [host] {""}
       *[other] {" "}Con un batch más pequeño y más acumulación de gradientes se entrena igual y hace falta menos memoria; también ayudan las secuencias más cortas.
      }
  } Los mensajes posteriores al primero son consecuencia suya.

rule-contradiction-title = { $variant ->
    [tokens] Los tokens por segundo impresos difieren de los reales en un factor de { $times }
    [clock] Los tiempos impresos no son los reales
    [rate] Los tokens por segundo del final son incorrectos
   *[hidden-nan] La pérdida parece normal porque el log oculta los NaN
  }
rule-contradiction-text = { $variant ->
    [tokens] Tokens por paso: el log indica { $stated_tokens }, pero los tokens por segundo multiplicados por el tiempo del paso dan { $implied_tokens }. Lo fiable es el tiempo: da { $real_rate } tokens por segundo, no { $printed_rate }.
    [clock] Para una iteración normal, el log imprime { $normal_ms }; según las marcas de tiempo, son { $stamped_ms }. Lo fiable son las marcas de tiempo: sin sincronización, el tiempo impreso indica cuándo terminó Python, no cuándo terminó el dispositivo.
    [rate] El total de tokens dividido entre el tiempo de entrenamiento da { $real_rate } por segundo, no { $printed_rate }.
   *[hidden-nan] La norma del gradiente es NaN o infinita ({ $count ->
        [one] una vez
       *[other] { $count } veces
      }) mientras la pérdida impresa sigue como si nada: por defecto, este trainer excluye los NaN de la pérdida que imprime. Con logging_nan_inf_filter=False se ven.
  }

rule-unexplained-stall-title = { $place ->
    [window] Las { $window } iteraciones hasta iter { $iter } tuvieron una pausa de { $excess_ms }{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , y el log no muestra la causa
      }
   *[other] iter { $iter } tuvo una pausa de { $excess_ms }{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , y el log no muestra la causa
      }
  }
rule-unexplained-stall-text = { $place ->
    [window] Tardaron { $time_ms } cada una cuando lo habitual es { $normal_ms }.
    [several] Esa iteración y sus vecinas ({ $num_lines } líneas seguidas) tardaron hasta { $time_ms } cuando lo habitual es { $normal_ms }.
    [between] Tardó { $time_ms } cuando lo habitual es { $normal_ms }; hay una evaluación cada { $eval_interval } iteraciones, pero no en esta.
   *[one] Tardó { $time_ms } cuando lo habitual es { $normal_ms }.
  }{ $count ->
    [one] {""}
   *[other] {" "}Hay { $count } pausas así, { $total_ms } en total.
  } { $variant ->
    [recompile] Justo antes, una línea indica que se recompiló código.
    [boundary] Justo antes el log registra un checkpoint o una evaluación, que puede ser la causa: conviene revisar el disco en el que se escribe.
    [memory] El uso de memoria es mayor que antes: si la memoria del dispositivo está casi llena, sacar datos y volver a cargarlos lleva ese tiempo. Se comprueba con un batch más pequeño o secuencias más cortas.
    [pause] Causas posibles: la suspensión del equipo o del proceso, otro programa o un disco lleno o lento. El log no permite distinguirlas.
   *[plain] Causas posibles: otro programa, un disco lento, falta de memoria o una recompilación del código para un shape nuevo. El log no permite distinguirlas.
  }{ $printed ->
    [some] {" "}Solo se imprimen algunas iteraciones, así que puede haber otras pausas que no se ven: log_interval=1 las imprime todas.
   *[all] {""}
  }

rule-hidden-stall-title = Entre iter { $first_iter } e iter { $end_iter } pasaron { $passed_ms } que ningún tiempo impreso refleja
rule-hidden-stall-text = Según los tiempos impresos, deberían haber sido { $expected_ms }. El tiempo perdido está en iteraciones que no se imprimen{ $count ->
    [one] {""}
   *[other] {" "}({ $count } huecos así, { $total_ms } en total)
  }. Para verlo hay que imprimir todas las iteraciones.

rule-repeated-work-title = { $count ->
    [one] Una iteración se hizo dos veces
   *[other] { $count } iteraciones se hicieron dos veces
  }{ $time ->
    [known] , aprox. { $time_ms }
   *[unknown] {""}
  }
rule-repeated-work-text = La ejecución había llegado a iter { $end_iter } y se reanudó en iter { $first_iter }, desde su último checkpoint. { $saving ->
    [best] Desde ese checkpoint, nanoGPT había evaluado sin guardar, porque la val loss no era la mejor hasta el momento. always_save_checkpoint=True conserva el último estado, pero sobrescribe el mejor.
    [every] nanoGPT guarda al evaluar: con un eval_interval menor se pierde menos si la ejecución se detiene, a cambio de más evaluaciones.
   *[often] Con checkpoints más frecuentes se pierde menos si la ejecución se detiene.
  }

## Lo que un log no permite saber

cannot-data-wait = Cuánto esperó el entrenamiento a los datos: nanoGPT no lo mide.
cannot-unprinted = El tiempo de cada iteración: solo se imprimen algunas; se supone que las demás son iguales.
cannot-device = En qué dispositivo se ejecutó: el mfu se refiere a los 312 TFLOP/s de una A100. El dispositivo se indica con --device.
cannot-split = Cómo se reparte el tiempo adicional entre evaluación y checkpoint: siempre van juntos, y ninguna línea lleva la hora.
cannot-last-micro-batch = La pérdida de una iteración completa: nanoGPT imprime la del último micro-batch.
cannot-wall-clock = Qué pasó fuera del bucle (imports, carga de datos, el final): ninguna línea reconocida indica la hora.
cannot-no-times = En qué se fue el tiempo: las líneas reconocidas no tienen ni tiempos ni marcas de tiempo.
cannot-evals-unprinted = Cuánto costaron las evaluaciones y, por tanto, cuánto duró la ejecución: caen en iteraciones que no se imprimen.
cannot-no-numbers = A qué paso corresponde cada línea: el log no lo imprime. En su lugar se cuentan, desde 0, las entradas con pérdida.
cannot-no-evals = Si el modelo generaliza: ninguna de las líneas reconocidas es una evaluación.
cannot-ranks = Qué proceso es lento y cuánto del tiempo es comunicación: solo se mide con DDP en CPU.
cannot-format-nanochat = Evaluaciones, muestras y checkpoints: dt y total time de nanochat no los incluyen; su pérdida está suavizada.
cannot-format-modded-nanogpt = Cuánto cuestan la validación y el arranque: el cronómetro se detiene mientras duran.
cannot-format-untimed-validation = Cuánto cuesta la validación: el cronómetro se detiene mientras dura.
cannot-format-llm-c = Cuánto cuestan la validación y los checkpoints: solo se miden los pasos.
cannot-format-litgpt = Las esperas de datos: el tiempo de una iteración empieza con el batch ya cargado.
cannot-format-torchtitan = Los pasos individuales: sus cifras son medias desde la línea anterior, y el tiempo de un checkpoint se cuenta en la siguiente.
cannot-format-hf-trainer = El tiempo de un paso y el de un checkpoint: no se imprimen. Por defecto, una pérdida NaN se sustituye por una media.
cannot-format-lightning = Los pasos individuales: la barra muestra segundos enteros y una velocidad media.
cannot-format-composer = Cuánto cuesta un checkpoint: se cuenta en el batch siguiente.
cannot-format-lingua = Cuánto cuesta una evaluación o un checkpoint: reduce la velocidad de la línea siguiente.
cannot-format-mingpt = Cuánto cuestan el muestreo y el guardado: el tiempo impreso es el de la iteración anterior.
cannot-format-char-rnn = Cuánto cuestan las evaluaciones y los checkpoints: no se miden.
cannot-format-megatron = Cuánto cuestan la validación y los checkpoints, salvo que sus propias líneas lo digan.
cannot-format-keras = Los pasos individuales y lo que cuesta una evaluación: hay una línea por época, y su tiempo incluye la evaluación.
cannot-format-one-line-per-epoch = Los pasos individuales: hay una línea por época, que aquí cuenta como una iteración.
cannot-format-timm = Cuánto cuestan los checkpoints: solo se miden pasos y evaluaciones. El tiempo de un paso incluye la espera de datos.
cannot-format-metric-logger = Los pasos individuales: la pérdida es la mediana y el tiempo la media de los últimos 20. El tiempo incluye la espera de datos.
cannot-format-detectron2 = Cuánto cuestan las evaluaciones y los checkpoints: solo se miden los pasos. Las pérdidas son medianas de los últimos 20 pasos.
cannot-format-mmengine = Los pasos individuales: los tiempos y las pérdidas son medias de varios. El tiempo incluye la espera de datos.
cannot-format-ultralytics = Los pasos individuales: hay una línea por época.
cannot-format-summed-loss = La pérdida que se minimiza, como una sola cifra: aquí es la suma de las partes impresas.
cannot-format-tensorflow = Los pasos individuales: los tiempos son medias de los pasos desde la línea anterior.
cannot-format-pytorch-examples = Cuánto cuestan las evaluaciones: solo se miden los pasos, y no siempre. El ejemplo de MNIST cuenta muestras en lugar de pasos.
cannot-format-general = Qué significan las demás columnas: solo se leyeron las que no dejan lugar a dudas.
cannot-format-deepspeed = Cuánto cuestan las evaluaciones y los checkpoints: DeepSpeed solo mide sus pasos.
cannot-format-olmo = Los pasos individuales de OLMo (no de OLMo-core): sus velocidades son medias de los últimos batches.
cannot-format-nanotron = Cuánto cuesta un checkpoint: solo se miden los pasos. Las cifras se imprimen con tres dígitos.
cannot-format-fairseq = Las actualizaciones individuales: sus cifras son medias. La mayoría de sus criterios imprimen la pérdida en base 2.
cannot-format-minimind = El tiempo de un paso: epoch_time es lo que queda de la época, en minutos enteros.
cannot-format-espnet = Los batches individuales: sus cifras son medias de los batches de una línea.
cannot-format-time-series = Cuánto cuesta una evaluación: la primera velocidad de una época la incluye, así que esa velocidad se descarta.
cannot-next-line = Cuánto cuesta una evaluación o un checkpoint: se cuenta en el tiempo de la línea siguiente.
left-out-settings = Las opciones que exceden los primeros { $most } nombres: las líneas que las contienen no se conservan ({ $count }).
left-out-events = Todos los mensajes: los del medio de una serie larga se cuentan, pero no se conservan ({ $count }).
left-out-evals = Todas las evaluaciones: de { $count } se conservan { $kept }, entre ellas la mejor y la última. Los recuentos y los tiempos son de todas.
left-out-runs = Dónde empezó cada ejecución: hay { $count } más de las { $most } que se distinguen.

## --lines

lines-title = Línea por línea (cifras tal como las imprime el log)
line-iter = Actualización de los pesos n.º { $iter }, con un batch.
line-loss = loss { $loss }: cuánto fallaron las predicciones de este batch (entropía cruzada; cuanto menor, mejor). En promedio, el token siguiente correcto recibió una probabilidad de aprox. e^-{ $loss } = { $chance }. La pérdida varía de un batch a otro; lo que cuenta es la tendencia.
line-loss-short = loss { $loss }
line-time = time { $time }: una iteración normal (lo habitual es { $normal_ms }).
line-time-slow = time { $time }: { $excess_ms } más de lo habitual ({ $normal_ms }). Causa: { $cause }.
line-mfu = mfu { $mfu }: media móvil de la parte de los 312 TFLOP/s de una A100 que usaron los cálculos del modelo.
line-mfu-short = mfu { $mfu }
line-mfu-none = mfu -100.00%: aún sin medir; nanoGPT se salta las cinco primeras iteraciones.
line-mfu-worked = Una iteración normal, sin la media móvil: { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP de trabajo; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = En este dispositivo ({ $device }, { $peak_tflops } TFLOP/s), eso equivale a un { $corrected_mfu }.
line-mfu-formula = Según la fórmula: (6 × { $parameters } parámetros + 12 × { $n_layer } capas × { $n_embd } de ancho × { $block_size } tokens) × { $tokens } tokens por iteración = { $work_tflop } TFLOP.
line-eval = Evaluación en step { $iter }: pérdidas medias de muchos batches, sin entrenar con ellos y con el dropout desactivado.
line-eval-short = Evaluación en step { $iter }.
line-eval-train = train loss { $train }: con datos con los que se entrena el modelo.
line-eval-train-short = train loss { $train }
line-eval-val = val loss { $val }: con datos con los que nunca se entrena. Esta es la cifra que cuenta.
line-eval-val-short = val loss { $val }
line-eval-gap = La diferencia entre las dos es { $gap_loss }.
line-eval-best = La mejor hasta el momento.
line-eval-worse = Peor que la de step { $best_iter } ({ $best }).
line-save = Se guardó un checkpoint. En nanoGPT, el tiempo de la iteración siguiente lo incluye.
line-save-short = Se guardó un checkpoint.
line-run = { $count } iteraciones normales como esta, { $first } a { $last }: loss de { $first_value } a { $last_value }, de { $low_ms } a { $high_ms } cada una.
line-unknown = { $count ->
    [one] Una línea no se reconoció.
   *[other] { $count } líneas no se reconocieron.
  }
cause-warmup = arranque
cause-eval = evaluación
cause-checkpoint = checkpoint
cause-unexplained = sin explicar

## La página de `report` y `watch`

page-language = Español
page-language-choice = idioma
page-labelled = { $label }: { $text }
page-unknown = n.{"\u00A0"}d.
page-about = log de { $format }, { $lines ->
    [one] una línea
   *[other] { $lines } líneas
  }; reconocidas: { $understood }
page-level-good = en orden
page-level-advice = conviene revisar
page-level-problem = problema
page-health-good = No se detectan problemas.
page-health-more = { $title }, y { $count ->
    [one] un hallazgo más
   *[other] { $count } hallazgos más
  }
page-health-waiting = El log no tiene todavía ninguna iteración.
page-health-failed = La ejecución terminó con un error: { $detail }
page-health-killed = El proceso desapareció sin dejar ningún mensaje: probablemente lo terminó el sistema. Si guardó un checkpoint, la ejecución se puede reanudar desde ahí.
page-state = estado
# Un estado y hasta dónde llegó la ejecución: «terminada, 600 iteraciones», «fallida, hasta iter 5000».
page-state-running = en marcha
page-state-finished = terminada
page-state-target = objetivo alcanzado
page-state-patience = terminada, ya no mejoraba
page-state-signal = detenida por una señal
page-state-failed = fallida
page-state-oom = memoria agotada
page-state-error = terminada con un error
page-state-killed = interrumpida sin aviso
page-state-waiting = a la espera de la primera iteración
page-state-imported = modelo importado, aún sin entrenar aquí
page-state-unknown = estado desconocido
page-done = { $count ->
    [one] una iteración
   *[other] { $count } iteraciones
  }
page-done-of = { $count } de { $max ->
    [one] una iteración
   *[other] { $max } iteraciones
  }
page-up-to = hasta iter { $number }
page-live = en vivo
page-lost = sin conexión, reintentando
page-run = ejecución
page-runs = Ejecuciones
page-no-runs = Aquí no hay ninguna ejecución todavía. Aparecerá cuando empiece una.
page-loss = Pérdida
page-iterations = Cuánto tardó cada iteración
page-speed = Velocidad
page-inside = Dentro del paso
page-samples = Muestras
page-ranks = Procesos
page-rank = rank { $rank }
page-ranks-run = Toda la ejecución
page-ranks-newest = Última medición, iter { $number }
page-ranks-compute = cálculo
page-ranks-communication = comunicación
page-ranks-waiting = espera al más lento
page-ranks-eval = evaluación
page-ranks-about = Tiempo de una actualización. El proceso más lento calcula durante { $imbalance } veces el tiempo medio. Comunicación es la espera del proceso que termina el último.
page-ranks-some = De { $count } procesos se muestran los { $shown } más lentos.
page-settings = Configuración y máquina
page-config = Configuración
page-environment = Máquina y modelo
page-chart-loss = Pérdida de entrenamiento y de validación
page-chart-shares = Reparto del tiempo a lo largo de la ejecución
page-chart-time = Tiempo por iteración
page-chart-tokens = Tokens por segundo
page-chart-mfu = MFU del paso de entrenamiento
page-chart-lr = Tasa de aprendizaje
page-chart-grad = Norma del gradiente
page-chart-memory = Memoria
page-log-scale = escala logarítmica
page-keys = Las flechas mueven el cursor, más y menos amplían y reducen, 0 muestra todo.
page-axis = eje x
page-axis-iter = iteraciones
page-axis-time = tiempo
page-zoom-in = ampliar
page-zoom-out = reducir
page-left-key = mover a la izquierda
page-right-key = mover a la derecha
page-reset = ver todo
page-smoothing = suavizado
page-train = entrenamiento
page-val = validación
page-dashed = línea discontinua: validación
page-band = La banda en torno a la pérdida de validación es su error estándar.
page-best = mejor { $loss } (iter { $number })
page-iteration = iter { $number }
page-train-loss = pérdida de entrenamiento { $loss }
page-smoothed = suavizada { $loss }
page-val-loss = pérdida de validación { $loss } (iter { $number })
page-slow-because = lenta por: { $cause } (lo normal: { $normal })
page-normal = Una iteración normal tarda { $normal }. Pasar el cursor sobre un pico para ver la causa.
page-mfu = { $value } en un paso normal; pico: { $source }
page-peak-device = { $peak } TFLOP/s, según la tabla para { $device }
page-peak-assumed = { $peak } TFLOP/s, según supone el trainer; el log no nombra ningún dispositivo
page-copy = copiar
page-copied = copiado
page-outcome-loss = última pérdida de entrenamiento
page-outcome-iters = última iteración
page-outcome-normal = iteración normal
page-outcome-wall = tiempo total
page-outcome-mfu = MFU
page-ended = terminada, no llegarán más datos
page-figure-loss = pérdida actual
page-figure-best = mejor pérdida de validación
page-figure-bits = bits por byte
page-figure-tokens = tokens por segundo
page-figure-step = tiempo por paso
page-figure-parameters = parámetros
page-figure-left = tiempo restante
page-differences = { $count ->
    [one] una opción es distinta
   *[other] { $count } opciones son distintas
  }
page-verdict = veredicto
page-sort = ordenar por esta columna
page-winner-best = es la mejor ejecución: pérdida de validación { $loss }.
page-winner-bits = es la mejor ejecución: { $loss } bits por byte.
page-winner-loss = es la mejor ejecución: pérdida de entrenamiento { $loss }.
page-lead = La siguiente es { $name }, peor por { $loss }.
page-no-winner = No es seguro que las ejecuciones usen los mismos datos y tokens, así que sus pérdidas no se clasifican.
page-outcome-best = mejor pérdida de validación
page-outcome-at = en la iteración
page-outcome-bits = bits por byte
page-outcome-tokens = tokens por segundo
page-outcome-parameters = parámetros
page-all-runs = { $count ->
    [one] en esta ejecución
   *[other] en las { $count } ejecuciones
  }
page-quoted = (las cifras son de { $name })
page-all-samples = { $count ->
    [one] una muestra
   *[other] las { $count } muestras
  }
page-val-only = pérdida de validación { $loss }
page-csv = descargar las filas visibles como CSV
page-whole-range = rango completo
page-cut = Hay pérdidas de hasta { $highest } por encima del eje: ampliar o marcar «rango completo».
page-axis-tokens = tokens
page-axis-flops = FLOPs
page-tick = Marcar de dos a ocho ejecuciones para compararlas.
page-compare-ticked = { $count ->
    [one] comparar una ejecución
   *[other] comparar { $count } ejecuciones
  }
page-iterations-done = progreso
page-changed = último cambio
page-thinned = De { $total } iteraciones, { $drawn } están en este archivo: de cada tramo, la de menor y la de mayor valor de cada cifra. Las sumas incluyen todas las iteraciones.
page-thinned-live = De { $total } iteraciones se dibujan { $drawn }, entre ellas la de menor y la de mayor valor de cada tramo. Al ampliar se ven todas.

## `stepglass advise`

advise-type = Escribir:
advise-change = Añadir a la línea de comandos de { $name }:
advise-keep = Mantener la configuración de { $name }: no se conoce otra mejor.
advise-about = { $is_known ->
    [no] Dispositivo desconocido (indicarlo con --device)
   *[yes] { $device } ({ $has_memory ->
        [no] memoria desconocida
       *[yes] { $device_bytes }
      }{ $has_peak ->
        [no] {""}
       *[yes] , { $tflops } TFLOP/s en { $dtype }
      })
  }: modelo { $model } con { $parameters } parámetros, { $tokens } tokens por actualización
advise-expect-title = Qué cabe esperar
advise-expect-ms-per-iter = una actualización
advise-expect-tokens-per-s = tokens por segundo
advise-expect-mfu = MFU
advise-expect-memory-gb = memoria
advise-expect-hours = toda la ejecución
advise-expect-updates = actualizaciones
advise-expect-device = dispositivo
advise-days = { $count ->
    [one] un día
   *[other] { $count } días
  }
advise-basis-measured = medido
advise-basis-calculated = calculado
advise-basis-estimated = estimado
advise-why-title = Por qué
advise-note = Las estimaciones salen de fórmulas ajustadas a logs públicos, en los que se desvían hasta un { $error_percent }. Para obtener otras mejores, entrenar durante 20 actualizaciones (--max_iters=20) y volver a preguntar con la ejecución: stepglass advise EJECUCIÓN
advise-unknown-time = Aún no se sabe qué velocidad alcanza este dispositivo. Con --measure se entrena aquí durante unas pocas actualizaciones y se mide.
advise-written = { $path } está escrito. Para entrenar con él: stepglass train { $path }
advise-why-max-iters = Tokens leídos: { $tokens } en { $number ->
    [one] una actualización
   *[other] { $max_iters } actualizaciones
  }, es decir, { $ratio } por parámetro{ $has_epochs ->
    [yes] {""} y { $epochs } pasadas por { $dataset }
   *[no] {""}
  }. { $variant ->
    [few] Es poco: el cómputo se aprovecha mejor con unos 20 por parámetro, aquí max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }.
    [many] El cómputo se aprovecha mejor con unos 20 por parámetro, aquí max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }; más allá la pérdida sigue bajando, pero cada vez más despacio.
    [epochs] El cómputo se aprovecha mejor con unos 20 por parámetro, aquí max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }; a partir de unas 4 pasadas (max_iters={ $four }) repetir los datos ayuda cada vez menos.
    [little-data] Son pocos datos para este modelo: a partir de unas 4 pasadas (max_iters={ $four }) repetirlos ayuda cada vez menos.
   *[fine] El cómputo se aprovecha mejor con unos 20 por parámetro.
  }{ $is_sure ->
    [no] {" "}No se conoce el vocabulario de { $dataset }; se ha supuesto { $vocab }.
   *[yes] {""}
  }
advise-why-device = { $variant ->
    [sizes] Se han supuesto { $device_bytes }. Este dispositivo también se vende con { $sizes } GB: { $other }
    [named] El log es de otro dispositivo: { $name }. No se han usado sus tiempos.
    [speed] El log muestra { $tflops } TFLOP/s, pero este dispositivo no puede pasar de { $most }: el log es de otro. No se han usado sus tiempos.
    [cuda] El log es de una GPU CUDA. No se han usado sus tiempos.
    [mps] El log es de una GPU de Apple. No se han usado sus tiempos.
   *[cpu] El log es de una CPU. No se han usado sus tiempos.
  }
advise-why-minutes = { $variant ->
    [unknown] No se sabe cuántas actualizaciones caben, porque no se sabe qué velocidad alcanza este dispositivo. stepglass train la mide y se ajusta al tiempo.
    [small] Son pocos datos para tanto tiempo: stepglass train termina tras { $number ->
        [one] una actualización
       *[other] { $max_iters } actualizaciones
      } ({ $epochs } pasadas por { $dataset }).
   *[fit] En ese tiempo { $number ->
        [one] cabe más o menos una actualización
       *[other] caben unas { $max_iters } actualizaciones
      }, evaluaciones incluidas. stepglass train mide él mismo la velocidad y se ajusta al tiempo.
  }
advise-why-epochs = Pasadas por { $dataset }: { $number ->
    [one] equivalen a una actualización
   *[other] equivalen a { $max_iters } actualizaciones
  }.
advise-why-nproc = { $variant ->
    [found] El log indica el MFU de una sola GPU, pero en total la ejecución es tan rápida como { $processes } GPU. También aquí el MFU y la memoria son los de una sola.
    [measured] { $processes } GPU se reparten cada actualización. El MFU y la memoria son los de una sola.
   *[asked] { $processes } GPU se reparten cada actualización. El MFU y la memoria son los de una sola. No se sabe cuánto tardan en intercambiar gradientes, y ese tiempo no se cuenta.
  }
advise-why-batch-size = { $variant ->
    [whole] Todas las secuencias de una actualización caben a la vez: { $need_bytes } de { $device_bytes }.
    [asked] Como se ha pedido. Necesita { $need_bytes } de { $device_bytes }; cabrían { $fits }.
    [asked-unknown] Como se ha pedido. Necesita { $need_bytes }.
    [busy] Como en la ejecución. También cabrían { $fits }, pero el dispositivo ya está ocupado: un token tardaría más o menos lo mismo.
    [oom] Con { $ran } la ejecución se quedó sin memoria. Esto necesita { $need_bytes }.
    [tried] El más rápido de los que se han probado aquí para { $wanted } secuencias por actualización.
    [kept] Sin cambios: cabe, y en una CPU los batches más grandes apenas son más rápidos.
    [unknown] Sin cambios: no se sabe cuánta memoria tiene el dispositivo.
   *[largest] El mayor que divide la actualización en partes iguales y cabe: { $need_bytes } de { $device_bytes }. Queda libre un { $margin_percent }: el asignador de memoria retiene bloques liberados, y el escritorio necesita algo.
  }
advise-why-gradient-accumulation-steps = { $accumulation } × { $batch } secuencias × { $block_size } = { $tokens } tokens por actualización, { $variant ->
    [same] los deseados.
   *[other] en vez de { $wanted_tokens }.
  }
advise-why-dtype = { $variant ->
    [asked] Como se ha pedido.
    [cpu] El formato exacto más rápido en una CPU.
    [mps] El formato seguro en una GPU de Apple.
    [float16] La GPU ({ $device }) no tiene unidades bfloat16. float16 necesita escalar la pérdida, de lo que se encarga el trainer.
   *[bfloat16] Con él los tensor cores alcanzan su máxima velocidad, y no hace falta escalar la pérdida.
  }
advise-why-compile = { $variant ->
    [asked] Como se ha pedido.
    [mps] Sin probar en una GPU de Apple.
    [unknown] { $device ->
        [cuda] En una GPU compensa en ejecuciones de más de unos minutos.
       *[cpu] En una CPU ahorra poco, y no se sabe cuánto dura la ejecución.
      }
    [short] Compilar tarda aprox. { $compile_ms } y ahorraría aprox. { $saved_ms } (ejecución sin compilar: { $run_ms }).
   *[pays] Compilar tarda aprox. { $compile_ms } y ahorra aprox. { $saved_ms } (ejecución sin compilar: { $run_ms }).
  }
advise-why-eval-interval = Una evaluación tarda lo mismo que { $cost } actualizaciones{ $has_time ->
    [yes] {" "}({ $each_ms })
   *[no] {""}
  }. { $number ->
    [one] Tras cada actualización
   *[other] Cada { $interval } actualizaciones
  }, eso ocupa el { $eval_share } del tiempo{ $variant ->
    [asked] , como se ha pedido; un buen presupuesto es el { $budget_share }.
    [short] ; la ejecución es corta, y hacen falta al menos cuatro evaluaciones para ver una curva.
   *[budget] ; el presupuesto es el { $budget_share }.
  }
advise-why-eval-iters = { $number ->
    [one] Una secuencia
   *[other] { $windows } secuencias
  } de cada split en batches de { $batch }{ $variant ->
    [same] , tantas como antes.
   *[other] .
  }
advise-why-checkpoint-interval = { $variant ->
    [asked] Como se ha pedido.
    [nanogpt] nanoGPT guarda después de las evaluaciones (no tiene una opción propia), y el entrenamiento espera aprox. { $wait_ms } por { $state_bytes }.
    [unknown] Como máximo se arriesgan dos minutos de trabajo; { $state_bytes } se escriben en segundo plano.
   *[time] Un fallo pierde como máximo { $every_ms } de trabajo. El entrenamiento espera aprox. { $wait_ms } en cada guardado; sus { $state_bytes } se escriben en segundo plano.
  }
advise-why-ms-per-iter = { $variant ->
    [same] Medido con esta configuración, { $speed }.
    [sequences] Medido: { $measured_ms } con batch_size={ $batch }; convertido según el número de secuencias.
    [faster] Medido: { $measured_ms } con batch_size={ $batch } ({ $speed }). Con { $changes } debería ser un { $gain_percent } más rápido.
    [scaled] Medido: { $measured_ms } con batch_size={ $batch } ({ $speed }). Esta configuración debería ser más o menos igual de rápida.
    [launch] Lanzar los kernels tarda más que calcularlos: { $launch_ms }; optimizador { $optimizer_ms }.
    [unknown] No se sabe qué velocidad alcanza este dispositivo.
   *[model] Productos de matrices { $matrix_ms }, mover activaciones por la memoria { $memory_ms }, optimizador { $optimizer_ms }.
  }
advise-why-memory-gb = Pesos { $weights_bytes }, gradientes { $gradients_bytes }, optimizador { $optimizer_bytes }, activaciones { $activations_bytes }, logits { $logits_bytes }, contexto { $context_bytes }.
advise-why-hours = { $number ->
    [one] Una actualización
   *[other] { $max_iters } actualizaciones
  } con evaluaciones ({ $eval_share } del tiempo) y checkpoints.
