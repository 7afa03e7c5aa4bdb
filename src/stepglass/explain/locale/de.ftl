# Was `stepglass explain` sagt. Werte kommen fertig formatiert (Dauern, Losses, Iterationsnummern), außer
# $count, $lines, $more und $replayed: Das sind Zahlen, sie wählen den Plural.
# Namen von Einstellungen (eval_interval) und Wörter aus dem Log (iter, step, mfu) werden nie übersetzt.

## The frame

log-is = { $name }: { $format }, { $lines ->
    [one] eine Zeile
   *[other] { $lines } Zeilen
  }, { $understood } erkannt ({ $share })
log-segments = { $count ->
    [one] ein Lauf
   *[other] { $count } Läufe nacheinander (die Iterationsnummer springt zurück, oder das Log meldet es)
  }
segment-title = Lauf { $number }: Iterationen { $first } bis { $last }
normal-is = Eine gewöhnliche Iteration dauert { $normal_ms }.
ends-with = Das Log endet mit einem Fehler (Zeile { $line }): { $detail }
loss-row = Loss
time-row = Zeit
where-title = Wo die Zeit geblieben ist
basis-run-log = aus dem Laufprotokoll: jede Millisekunde wurde erfasst
basis-timestamps = nach den Zeitstempeln im Log
basis-wall-clock = nach der Gesamtzeit, die das Log nennt
basis-printed = aus den ausgegebenen Zeiten: jede Iteration wird ausgegeben
basis-estimated = geschätzt: nicht ausgegebene Iterationen gelten als gewöhnliche
phase-step = Trainingsschritte
phase-eval = Evaluationen
phase-checkpoint = Checkpoints
phase-eval-checkpoint = Evaluationen und Checkpoints
phase-warmup-eval = Aufwärmphase und erste Evaluation
phase-warmup = Aufwärmphase
phase-stall = ungeklärte Hänger
phase-unattributed = nicht zugeordnet
phase-data = Warten auf Daten
phase-forward_backward = Forward- und Backward-Pass
phase-optimizer = Optimizer
phase-log = Logging
phase-gc = Garbage Collector von Python
phase-other = Sonstiges
wall-clock = Laufzeit
findings-title = Befunde
no-findings = Nichts gefunden, was zu ändern wäre.
status-established = gesichert
status-supported = gestützt
status-hypothesis = Hypothese
level-problem = Problem
level-advice = Empfehlung
level-note = Hinweis
lines-cited = { $count ->
    [one] Zeile { $lines }
   *[other] Zeilen { $lines }
  }
lines-more = { $lines } und { $more } weitere
change-is = Abhilfe: { $flags }
cannot-title = Was dieses Log nicht zeigen kann
top-findings = Was auffällt (mehr dazu: stepglass explain { $run }):

## Rules

rule-eval-inside-iteration-title = iter { $iter } ist keine langsame Iteration: In der Zeit steckt eine Evaluation
rule-eval-inside-iteration-text = Der Timer von nanoGPT läuft vom Ende einer Iteration bis zum Ende der nächsten. An { $count ->
    [one] dieser Intervallgrenze
   *[other] diesen { $count } Intervallgrenzen
  } lief darin auch die direkt davor ausgegebene Evaluation{ $variant ->
    [eval] {""}
   *[other] {""}, und wo eine Zeile es meldet, wurde ein Checkpoint gespeichert
  }. Von den { $time_ms } bei iter { $iter } entfallen { $excess_ms } darauf{ $variant ->
    [split] {" "}(etwa { $eval_ms } auf die Evaluation, { $save_ms } auf den Checkpoint)
   *[other] {""}
  }; der Trainingsschritt selbst dauerte wie üblich { $normal_ms }. Für weniger solche Zeilen eval_interval erhöhen (ein kleinerer Wert erzeugt mehr davon), für kürzere eval_iters senken.

rule-mfu-echo-title = Der Einbruch der mfu ist das Echo einer einzelnen langsamen Zeile, keine Verlangsamung
rule-mfu-echo-text = Die ausgegebene mfu ist ein gleitender Mittelwert: neun Zehntel alter Wert, ein Zehntel neuer. Die langsame Zeile von iter { $iter } hat sie von { $before_mfu } auf { $printed_mfu } gezogen; bis sie wieder oben ist, vergehen rund zwanzig Zeilen. Aus den ausgegebenen Zeiten nachgerechnet, ergibt dieser Mittelwert in allen { $replayed } geprüften Zeilen wieder die ausgegebene Spalte, exakt bis zur letzten Stelle. Das Tempo selbst blieb gleich: { $clean_mfu }.

rule-warm-up-title = In iter { $iter } steckt die Aufwärmphase
rule-warm-up-text = { $variant ->
    [eval] Die { $time_ms } der ersten Iteration sind ihre Evaluation und ein gewöhnlicher Schritt ({ $normal_ms }); von der Aufwärmphase ist kaum etwas zu sehen.
    [both] Die erste Iteration dauerte { $time_ms }: etwa { $warmup_ms } Aufwärmphase (Kompilierung, Kernel, erste Batches), { $eval_ms } Evaluation und ein Schritt von { $normal_ms }.
    [together] Die erste Iteration dauerte { $time_ms }: Aufwärmphase (Kompilierung, Kernel, erste Batches) und die Evaluation, die nanoGPT bei Iteration 0 ausführt, zusammen. Zum Trennen fehlt in diesem Log eine spätere Evaluation, die für sich steht; ein gewöhnlicher Schritt dauert { $normal_ms }.
   *[plain] Die erste Iteration dauerte { $time_ms } statt der üblichen { $normal_ms }: Kompilierung, Auswahl der Kernel und die ersten Batches. Das passiert nur einmal.
  }

rule-mfu-wrong-peak-title = Die ausgegebene mfu bezieht sich auf die falsche Spitzenleistung
rule-mfu-wrong-peak-text = { $variant ->
    [other] Das Log teilt durch { $assumed_tflops } TFLOP/s. Auf { $device } ({ $peak_tflops } TFLOP/s) entsprechen die { $clean_mfu } einer gewöhnlichen Iteration { $corrected_mfu }: ausgegebener Wert mal { $assumed_tflops } durch { $peak_tflops }.
    [over] { $printed_mfu } schafft kein Gerät: Das Log teilt durch { $assumed_tflops } TFLOP/s, die Spitzenleistung einer A100, und dieser Lauf war auf etwas Schnellerem. Mit --device und dem Namen des Geräts gibt es den echten Wert.
   *[no-peak] nanoGPT teilt auf jedem Gerät durch { $assumed_tflops } TFLOP/s, die Spitzenleistung einer A100. Für { $device } sagt der Wert nur, wie dieser Lauf gegen eine A100 dasteht; erreicht wurden { $achieved_tflops } TFLOP/s.
  }

rule-small-kernels-title = Die GPU wartet auf Arbeit: Die Kernel sind zu klein
rule-small-kernels-text = { $device } kommt mit { $normal_ms } pro Iteration auf { $corrected_mfu } der Spitzenleistung. Bei einem so kleinen Modell oder Micro-Batch dauert der Start der Kernel so lange wie ihre Ausführung. Solange das so ist, kosten größere Batches kaum zusätzliche Zeit.

rule-accumulation-waste-title = Gradient Accumulation rechnet kleine Batches nacheinander
rule-accumulation-waste-text = { $accumulation } Micro-Batches zu je { $batch } Sequenzen laufen nacheinander, obwohl weniger und größere genügen würden. Mit den geänderten Werten bleibt die Zahl der Tokens pro Iteration gleich ({ $tokens_per_iter }); nötig sind etwa { $memory_bytes } Speicher.

rule-slow-path-title = { $variant ->
    [attention] Die Attention nimmt den langsamen Pfad
    [compile] torch.compile hat bei einem Teil des Modells aufgegeben
    [float32] Training in float32 lässt die Tensor-Cores brachliegen
   *[mps] Auf mps trainiert nanoGPT in float32, egal was in dtype steht
  }
rule-slow-path-text = { $variant ->
    [attention] Laut Log ist keine fusionierte Attention verfügbar; jeder Layer schreibt deshalb seine ganze Attention-Matrix aus. Ein neueres PyTorch hat sie.
    [compile] Das Log zeigt { $count ->
        [one] eine Warnung
       *[other] { $count } Warnungen
      }, dass Code in den Eager-Modus zurückgefallen ist: Die Kompilierung kostet Zeit, bringt aber nichts.
    [float32] Auf einer GPU mit bfloat16-Einheiten laufen Matrixprodukte in float32 nur mit einem Bruchteil der Geschwindigkeit.
   *[mps] nanoGPT behandelt jedes Gerät außer CUDA wie eine CPU und schaltet Mixed Precision ab. Das ist kein Fehler; zu erwarten ist float32-Tempo.
  }

rule-data-bound-title = Das Training wartet auf Daten
rule-data-bound-text = { $data_share } der Arbeitszeit vergingen mit Warten auf Batches{ $variant ->
    [phases] {""}, insgesamt { $total_ms }
   *[plain] {""}, insgesamt { $total_ms }: jeweils { $median_ms } im Median, schlimmstenfalls { $worst_ms }
  }. Daten auf einer lokalen Platte oder im Speicher halten und vorauslesen.

rule-periodic-stall-title = Alle { $every } Iterationen ein Hänger, abseits jeder Intervallgrenze
rule-periodic-stall-text = { $count } Iterationen dauerten etwa { $excess_ms } länger als ihre Nachbarn, in regelmäßigem Abstand und nicht bei Evaluationen oder Checkpoints: insgesamt { $total_ms }. { $variant ->
    [gc] Laut Log war dort der Garbage Collector von Python am Werk.
   *[plain] Typisch für den Garbage Collector von Python, aber auch für andere zeitgesteuerte Prozesse.
  } gc.freeze() und gc.disable() nach den ersten Iterationen schließen den Collector als Ursache aus.

rule-slowdown-title = Die Iterationen sind um { $rise_percent } langsamer geworden
rule-slowdown-text = Die Dauer einer gewöhnlichen Iteration stieg{ $variant ->
    [drift] {" "}allmählich
   *[other] {" "}etwa bei iter { $iter }
  } von { $first_ms } auf { $last_ms }, und dabei blieb es. { $variant ->
    [throttle] Das Log nennt ein Temperatur- oder Leistungslimit: Ursache ist die Kühlung oder die Leistungseinstellung.
   *[other] Mögliche Ursachen sind Hitze, ein anderes Programm auf demselben Gerät oder knapper Speicher; welche es ist, sagt das Log nicht. Während des Laufs Takt und Temperatur des Geräts beobachten.
  }

rule-eval-too-expensive-title = { $variant ->
    [together] Evaluationen und Checkpoints brauchen { $eval_share } der Zeit
   *[plain] Die Evaluation braucht { $eval_share } der Zeit
  }
rule-eval-too-expensive-text = Jede { $variant ->
    [together] Evaluation samt Checkpoint
   *[plain] Evaluation
  } kostet { $each_ms }, ein Vielfaches eines Schritts ({ $normal_ms }), und kommt alle { $interval } Iterationen. Ein eval_interval von { $wanted } würde den Anteil bei 5 Prozent halten; weniger Batches pro Evaluation ebenso (eval_iters{ $fewer_iters ->
    [none] {""}
   *[other] {" "}{ $fewer_iters }
  }), allerdings mit stärker verrauschten Losses.

rule-eval-noise-title = Die letzten Evaluationen unterscheiden sich um weniger als ihr Rauschen
rule-eval-noise-text = Eine Evaluation hat eine Unsicherheit von { $se_loss }; erst ein Unterschied von { $least_loss } zwischen zweien bedeutet etwas, und die letzten { $count } Änderungen betrugen höchstens { $largest_loss }. Für die Wahl eines Checkpoints taugen sie nicht{ $variant ->
    [more] {""}: Klarheit schaffen mehr eval_iters oder jedes Mal dieselben festen Fenster
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } Arbeit und noch kein Checkpoint
   *[plain] Checkpoints brauchen { $save_share } der Zeit
  }
rule-checkpoint-interval-text = { $variant ->
    [none] Keine Zeile dieses Logs meldet einen gespeicherten Checkpoint. Bei einem Absturz wäre jetzt alles verloren.
   *[plain] { $count } Checkpoints zu je etwa { $save_ms } haben das Training { $total_ms } lang angehalten. Bei einem angenommenen Ausfall pro Tag ist ein Abstand von { $wanted_ms } am besten; in nanoGPT hängt das Speichern an eval_interval.
  }

rule-overfitting-title = { $variant ->
    [gap] Overfitting: Der Validierungs-Loss liegt weit über dem Trainings-Loss
   *[other] Overfitting seit Iteration { $best_iter }
  }
rule-overfitting-text = { $variant ->
    [gap] Bei step { $last_iter } erreicht das Modell auf bekanntem Text { $train_loss } und auf unbekanntem { $last_loss }: ein Abstand von { $gap_loss }, das sind { $gap_percent } des Trainings-Loss; bei neuem Text ist es um den Faktor { $perplexity_times } unsicherer. Das ist Auswendiglernen, kein kleiner Abstand. Bei so wenigen Evaluationen zeigt das Log nicht, wann es anfing: den step mit dem niedrigsten val loss suchen.
    [no-train] Der Validierungs-Loss war bei step { $best_iter } am besten ({ $best_loss }) und ist seitdem um { $rise_loss } ({ $rise_percent }) auf { $last_loss } gestiegen, während der Trainings-Loss fiel. Alles nach diesem step hat das Modell auf neuem Text schlechter gemacht.
   *[rising] Der Validierungs-Loss war bei step { $best_iter } am besten ({ $best_loss }) und ist seitdem um { $rise_loss } ({ $rise_percent }) auf { $last_loss } gestiegen, während der Trainings-Loss auf { $train_loss } fiel. Alles nach diesem step hat das Modell auf neuem Text schlechter gemacht: dort aufhören, mehr dropout, mehr Daten oder ein kleineres Modell verwenden.
  }

rule-best-checkpoint-lost-title = Der beste Checkpoint wurde von einem schlechteren überschrieben
rule-best-checkpoint-lost-text = nanoGPT behält nur einen Checkpoint. Der beste war step { $best_iter } (val loss { $best_loss }); in der Datei steht jetzt step { $kept_iter } ({ $kept_loss }), um { $worse_loss } schlechter.

rule-stopped-early-title = Der Lauf endete, während das Modell noch lernte
rule-stopped-early-text = Der Validierungs-Loss fiel am Ende noch (step { $last_iter }: { $last_loss }), um etwa { $gain_loss } pro tausend Iterationen, und der Trainings-Loss liegt nicht auffällig tiefer. Ein längerer Lauf mit entsprechend gestrecktem Decay dürfte noch mehr bringen.

rule-schedule-mismatch-title = { $variant ->
    [batch] Die Lernrate ist hoch für so wenige Tokens pro Iteration
    [floor] Die Untergrenze der Lernrate ist ungewöhnlich
    [warmup] Der Warmup nimmt einen großen Teil des Laufs ein
   *[other] Der Decay der Lernrate passt nicht zur Länge des Laufs
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr ist { $low_lr } bei einer learning_rate von { $rate }; üblich ist ein Zehntel davon.
    [batch] learning_rate { $rate } ist auf eine halbe Million Tokens pro Iteration abgestimmt; hier sind es { $batch_tokens }. Weniger Tokens heißt mehr Rauschen im Gradienten: die Lernrate mit der Wurzel skalieren.
    [warmup] Die Lernrate steigt { $warmup_iters } von { $max_iters } Iterationen lang an; üblich sind ein bis zwei Prozent.
    [long] lr_decay_iters ist { $decay_iters }, der Lauf endet aber bei { $max_iters }: Die kleinen Lernraten, bei denen der Loss noch einmal deutlich sinkt, werden nie erreicht.
   *[short] lr_decay_iters ist { $decay_iters }, der Lauf geht aber bis { $max_iters }: Alle Iterationen nach dem Decay laufen mit min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] Eine Evaluation ergab keine Zahl (step { $iter }, Zeile { $line })
   *[other] Ab iter { $iter } ist der Loss keine endliche Zahl (Zeile { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] Der Trainings-Loss bleibt endlich, das Modell lernt also weiter. Schuld ist die Evaluation selbst: keine Batches oder keine gültigen Targets darin.
   *[other] { $last_iter ->
        [none] Schon der erste ausgegebene Loss ist keine endliche Zahl.
       *[other] Der letzte endliche Loss war { $last_loss } bei iter { $last_iter }.
      } Danach wurde nichts mehr gelernt: den Lauf abbrechen{ $save_iter ->
        [none] {""}
       *[other] {" "}und zum Checkpoint von Iteration { $save_iter } zurückgehen, falls er nicht überschrieben wurde
      }. { $variant ->
        [fp16] In float16 laufen große Werte über, in bfloat16 oder float32 nicht.
       *[other] Übliche Ursachen: eine zu hohe Lernrate, ein Überlauf in float16 oder eine Token-ID außerhalb des Vokabulars.
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Seitdem sind die Iterationen um { $faster_percent } schneller: So sieht es aus, wenn der Gradient Scaler jedes Update überspringt.
      }
  }

rule-divergence-title = Das Training ist etwa bei iter { $iter } divergiert
rule-divergence-text = Der Loss war bis auf { $best_loss } gefallen (iter { $best_iter }), stieg dann und blieb oben: { $last_loss } am Ende{ $variant ->
    [rate] {""}, bei einer Lernrate von { $rate } zu Beginn des Anstiegs
   *[plain] {""}
  }. Zurück zu einem Checkpoint davor, mit halber Lernrate und längerem Warmup.

rule-loss-spike-title = { $count ->
    [one] Ein Loss-Ausreißer bei iter { $iter }
   *[other] { $count } Loss-Ausreißer, der größte bei iter { $iter }
  }
rule-loss-spike-text = Der Loss sprang auf { $loss }, wo { $around_loss } üblich war (das { $z }-Fache des Rauschens), und kam wieder zurück. Ein paar davon sind harmlos; viele sprechen für einen kleineren Wert von grad_clip oder learning_rate.

rule-initial-loss-title = Der erste Loss passt nicht zum Vokabular
rule-initial-loss-text = Ein Modell, das nichts weiß, kommt auf ln({ $vocab }) = { $expected_loss }; dieses begann bei { $seen_loss }. { $variant ->
    [low] Entweder hat es nicht bei null angefangen, oder die Targets sickern in den Input durch, oder das Vokabular ist größer, als die Daten es brauchen.
   *[high] Zu prüfen: vocab_size und meta.pkl, der Versatz zwischen Input und Target und die Initialisierung.
  }

rule-plateau-title = Der Validierungs-Loss bewegt sich nicht mehr
rule-plateau-text = Über die letzten { $count } Evaluationen (step { $first_iter } bis { $last_iter }) blieb er bei { $mean_loss }; der Trend macht insgesamt { $moved_loss } aus, nicht mehr als das Rauschen. { $variant ->
    [peak] Die Lernrate steht noch auf ihrem Höchstwert: senken oder mit dem Decay beginnen.
    [floor] Die Lernrate ist am unteren Ende angekommen: Mehr gibt dieser Schedule nicht her.
   *[plain] Das Log verrät nicht, wo die Lernrate steht; ob der Schedule durch ist oder die Lernrate noch zu hoch, lässt sich daher nicht sagen.
  }

rule-data-budget-title = { $variant ->
    [epochs] Der Lauf sieht seine Daten { $epochs }-mal
    [few] Wenige Tokens für dieses Modell: { $ratio } pro Parameter
   *[many] Viele Tokens für dieses Modell: { $ratio } pro Parameter
  }
rule-data-budget-text = { $max_iters } Iterationen sind { $tokens } Tokens für { $parameters } Parameter, also { $ratio } pro Parameter; etwa 20 gelten als ausgewogen. { $variant ->
    [epochs] Der Text selbst ist viel kleiner und wird deshalb { $epochs }-mal gelesen: Ab etwa vier Durchgängen lernt ein Modell ihn vor allem auswendig.
    [few] Ein kleineres Modell oder mehr Iterationen würden die Zeit besser nutzen.
   *[many] Ein größeres Modell käme in derselben Zeit auf einen niedrigeren Loss.
  }

rule-out-of-memory-title = Der Speicher reicht nicht
rule-out-of-memory-text = { $variant ->
    [sizes] Der Lauf hat weitere { $tried_bytes } angefordert und nicht bekommen.
   *[plain] Der Lauf hat mehr Speicher angefordert, als das Gerät hat.
  } Die halbe batch_size mit doppelten gradient_accumulation_steps trainiert dasselbe und braucht etwa die Hälfte dessen, was mit dem Batch wächst; eine kleinere block_size hilft ebenfalls. Meldungen nach der ersten sind Folgefehler.

rule-contradiction-title = { $variant ->
    [tokens] Die ausgegebenen Tokens pro Sekunde liegen um den Faktor { $times } daneben
    [clock] Die ausgegebenen Zeiten sind nicht die echten
    [rate] Die Tokens pro Sekunde am Ende stimmen nicht
   *[hidden-nan] Der Loss sieht nur gut aus, weil das Log das Problem versteckt
  }
rule-contradiction-text = { $variant ->
    [tokens] Ein Schritt sind { $stated_tokens } Tokens, aber Tokens pro Sekunde mal Dauer des Schritts ergeben { $implied_tokens }. Verlässlich ist die Zeit: Daraus folgen { $real_rate } Tokens pro Sekunde, nicht { $printed_rate }.
    [clock] Für eine gewöhnliche Iteration werden { $normal_ms } ausgegeben; laut Zeitstempeln sind es { $stamped_ms }. Verlässlich sind die Zeitstempel: Ohne Synchronisierung zeigt die ausgegebene Zeit, wann Python fertig war, nicht das Gerät.
    [rate] Alle Tokens geteilt durch die Trainingszeit ergeben { $real_rate } pro Sekunde, nicht { $printed_rate }.
   *[hidden-nan] Die Gradientennorm ist keine Zahl ({ $count ->
        [one] einmal
       *[other] { $count }-mal
      }), während der ausgegebene Loss weiterläuft: Dieser Trainer gibt statt NaN standardmäßig den laufenden Mittelwert aus. Mit logging_nan_inf_filter=False wird es sichtbar.
  }

rule-unexplained-stall-title = iter { $iter } hing { $excess_ms } lang, und keine Intervallgrenze erklärt das
rule-unexplained-stall-text = Die Iteration dauerte { $time_ms } statt der üblichen { $normal_ms }{ $variant ->
    [grid] {" "}und fällt nicht auf eine Evaluation (die kommen alle { $eval_interval } Iterationen)
   *[plain] {""}
  }. { $count ->
    [one] {""}
   *[other] Es gibt { $count } solche Zeilen, zusammen { $total_ms }.{" "}
  }Mögliche Ursachen sind ein Rechner im Ruhezustand, ein anderes Programm, eine volle oder langsame Platte oder eine Rekompilierung; im Log sehen sie alle gleich aus.

rule-last-line-is-eval-title = Die letzte Zeile ist eine Evaluation: ihre Zeit nicht als Messwert angeben
rule-last-line-is-eval-text = Der Lauf endet an einer Intervallgrenze; deshalb meldet iter { $iter } eine Zeit von { $time_ms }, obwohl das Training { $normal_ms } pro Iteration braucht{ $variant ->
    [mfu] {""}, und eine mfu von { $printed_mfu }, obwohl { $clean_mfu } richtig ist
   *[plain] {""}
  }.

## What a log cannot show

cannot-data-wait = Wie lange das Training auf Daten gewartet hat: nanoGPT misst das nicht.
cannot-unprinted = Wie lange jede einzelne Iteration gedauert hat: Nur manche werden ausgegeben, die übrigen gelten als gewöhnlich.
cannot-device = Auf welchem Gerät es lief: Die mfu bezieht sich auf die 312 TFLOP/s einer A100. Das Gerät mit --device angeben.
cannot-split = Wie sich eine Intervallgrenze auf Evaluation und Checkpoint aufteilt: Jede enthält beides, und keine Zeile trägt eine Uhrzeit.
cannot-last-micro-batch = Den Loss einer ganzen Iteration: nanoGPT gibt den des letzten Micro-Batches aus.
cannot-wall-clock = Was außerhalb der Schleife passiert ist (Importe, Daten, das Ende): Keine Zeile sagt, wann sie ausgegeben wurde.
cannot-no-times = Wo die Zeit geblieben ist: Dieses Log enthält weder Zeiten noch Zeitstempel.
cannot-evals-unprinted = Was die Evaluationen gekostet haben, und damit die Laufzeit: Sie liegen auf Iterationen, die nicht ausgegeben werden.
cannot-no-evals = Ob das Modell generalisiert: In diesem Log gibt es keine Evaluation.
cannot-format-nanochat = Evaluationen, Samples und Checkpoints: dt und Gesamtzeit von nanochat lassen sie aus; der Loss ist geglättet.
cannot-format-modded-nanogpt = Was Validierung und Start kosten: Der Timer steht währenddessen.
cannot-format-llm-c = Was Validierung und Checkpoints kosten: Gemessen werden nur die Schritte.
cannot-format-litgpt = Wartezeiten auf Daten: Die Zeit einer Iteration beginnt erst, wenn ihr Batch geladen ist.
cannot-format-torchtitan = Einzelne Schritte: Die Werte sind Mittelwerte seit der letzten Zeile, und ein Checkpoint fällt in die nächste.
cannot-format-hf-trainer = Wie lange ein Schritt und ein Checkpoint dauern: Das wird nicht ausgegeben. Ein NaN-Loss wird standardmäßig durch einen Mittelwert ersetzt.
cannot-format-lightning = Einzelne Schritte: Die Rate im Fortschrittsbalken ist geglättet.
cannot-format-composer = Was ein Checkpoint kostet: Er wird dem nächsten Batch zugerechnet.
cannot-format-lingua = Was eine Evaluation oder ein Checkpoint kostet: Beides drückt die Rate in der nächsten Zeile.
cannot-format-mingpt = Was Sampling und Speichern kosten: Die ausgegebene Zeit ist die der vorigen Iteration.
cannot-format-char-rnn = Was Evaluationen und Checkpoints kosten: Das wird nicht gemessen.
cannot-format-megatron = Was Validierung und Checkpoints kosten, sofern es nicht in eigenen Zeilen steht.
left-out-settings = Einstellungen über die ersten { $most } Namen hinaus: { $count } Zeilen mit weiteren sind nicht behalten.
left-out-events = Jede Meldung: { $count } aus der Mitte einer langen Reihe sind gezählt, aber nicht behalten.
left-out-evals = Jede Evaluation: von { $count } sind { $kept } behalten, darunter die beste und die letzte. Anzahlen und Zeiten gelten für alle.
left-out-runs = Wo jeder Lauf begann: gefunden wurden { $count } mehr als die { $most }, die unterschieden werden.

## --lines

lines-title = Zeile für Zeile
line-iter = Ein Update der Gewichte, das mit der Nummer { $iter }, auf einem Batch.
line-loss = loss { $loss }: wie falsch die Vorhersagen für diesen Batch waren (Kreuzentropie, kleiner ist besser); dem richtigen nächsten Token gibt das Modell im Mittel die Wahrscheinlichkeit e^-{ $loss } = { $chance }. Einzelne Batches streuen; auf den Trend kommt es an.
line-time = time { $time_ms }: hier eine gewöhnliche Iteration ({ $normal_ms } ist normal).
line-time-slow = time { $time_ms }: { $excess_ms } mehr als die üblichen { $normal_ms }. Ursache: { $cause }.
line-mfu = mfu { $mfu }: gleitender Mittelwert des Anteils an den 312 TFLOP/s einer A100, den die Rechenarbeit des Modells genutzt hat.
line-mfu-none = mfu -100%: noch nicht gemessen; nanoGPT lässt die ersten fünf Iterationen aus.
line-mfu-worked = Eine gewöhnliche Iteration, ohne Mittelung: { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP Rechenarbeit; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = Auf { $device } ({ $peak_tflops } TFLOP/s) sind das { $corrected_mfu }.
line-mfu-formula = Nach der Formel: (6 × { $parameters } Parameter + 12 × { $n_layer } Layer × Breite { $n_embd } × { $block_size } Tokens) × { $tokens } Tokens pro Iteration = { $work_tflop } TFLOP.
line-eval = Eine Evaluation bei step { $iter }: mittlere Losses über viele Batches, ohne zu lernen.
line-eval-train = train loss { $train_loss }: auf Text, aus dem das Modell lernt.
line-eval-val = val loss { $val_loss }: auf Text, aus dem es nie lernt; diese Zahl zählt.
line-eval-gap = Der Abstand zwischen beiden beträgt { $gap_loss }.
line-eval-best = Der bisher beste Wert.
line-eval-worse = Schlechter als step { $best_iter } ({ $best_loss }).
line-save = Ein Checkpoint wurde gespeichert; in nanoGPT steckt das in der Zeit der nächsten Iteration.
line-run = Gewöhnliche Iterationen wie diese ({ $count }), { $first } bis { $last }: loss { $first_loss } bis { $last_loss }, je { $low_ms } bis { $high_ms }.
line-unknown = { $count ->
    [one] Eine Zeile wurde nicht erkannt.
   *[other] { $count } Zeilen wurden nicht erkannt.
  }
cause-warmup = Aufwärmphase
cause-eval = Evaluation
cause-checkpoint = Checkpoint
cause-unexplained = ungeklärt

## The page of `report` and `watch`

page-language = Deutsch
page-language-choice = Sprache
page-unknown = n/a
page-about = Log von { $format }, { $lines } Zeilen, { $understood } verstanden
page-level-good = in Ordnung
page-level-advice = einen Blick wert
page-level-problem = Problem
page-health-good = Keine Regel hat etwas gefunden, das zu ändern wäre.
page-health-more = { $title }, und { $count ->
    [one] ein weiterer Befund
   *[other] { $count } weitere Befunde
  }
page-health-waiting = Noch ist keine Iteration protokolliert.
page-health-failed = Der Lauf endete mit einem Fehler: { $detail }
page-health-killed = Der Prozess ist weg, ohne etwas zu sagen: Er wurde beendet. Ab dem letzten Checkpoint lässt er sich fortsetzen.
page-state = Zustand
page-state-running = läuft, { $step } von { $max } Iterationen
page-state-finished = fertig nach { $step } Iterationen
page-state-target = Ziel erreicht nach { $step } Iterationen
page-state-signal = nach { $step } Iterationen durch ein Signal angehalten
page-state-failed = nach { $step } Iterationen gescheitert
page-state-oom = nach { $step } Iterationen ohne Speicher
page-state-error = nach { $step } Iterationen mit einem Fehler beendet
page-state-killed = nach { $step } von { $max } Iterationen abgebrochen
page-state-waiting = wartet auf die erste Iteration
page-state-unknown = unbekannt
page-state-log = { $step } Iterationen protokolliert
page-left = noch etwa { $left }
page-live = live
page-lost = keine Verbindung, neuer Versuch läuft
page-run = Lauf
page-runs = Läufe
page-no-runs = Hier ist noch kein Lauf. Er erscheint, sobald einer beginnt.
page-compare = Was sich unterscheidet
page-loss = Loss
page-iterations = Wie lange jede Iteration dauerte
page-speed = Geschwindigkeit
page-inside = Im Inneren des Schritts
page-samples = Textproben
page-settings = Einstellungen und Maschine
page-config = Einstellungen
page-environment = Maschine und Modell
page-chart-loss = Trainings- und Validierungs-Loss
page-chart-shares = Anteil an der Zeit, im Verlauf
page-chart-time = Zeit pro Iteration
page-chart-tokens = Token pro Sekunde
page-chart-mfu = MFU des Trainingsschritts
page-chart-lr = Lernrate
page-chart-grad = Gradientennorm
page-chart-memory = Speicher
page-log-scale = logarithmisch
page-keys = Pfeiltasten bewegen den Zeiger, Plus und Minus zoomen, 0 zeigt alles.
page-axis = x-Achse
page-axis-iter = Iterationen
page-axis-time = Zeit
page-zoom-in = hineinzoomen
page-zoom-out = herauszoomen
page-left-key = nach links
page-right-key = nach rechts
page-reset = alles zeigen
page-smoothing = Glättung
page-train = Training
page-val = Validierung
page-dashed = gestrichelt: Validierung
page-band = Das Band um den Validierungs-Loss ist sein Standardfehler.
page-best = beste { $loss } bei { $number }
page-iteration = iter { $number }
page-train-loss = Trainings-Loss { $loss }
page-smoothed = geglättet { $loss }
page-val-loss = Validierungs-Loss { $loss } bei { $number }
page-slow-because = langsam wegen: { $cause } (gewöhnlich: { $normal })
page-normal = Eine gewöhnliche Iteration dauert { $normal }. Der Zeiger auf einer Spitze zeigt, warum sie langsam war.
page-mfu = { $value } in einem gewöhnlichen Schritt; Spitze: { $source }
page-peak-device = { $peak } TFLOP/s, laut Tabelle für { $device }
page-peak-assumed = { $peak } TFLOP/s, vom Trainer angenommen; das Log nennt kein Gerät
page-lines = Zeile { $lines }
page-copy = kopieren
page-copied = kopiert
page-outcome-best = bester Validierungs-Loss (bei)
page-outcome-val = letzter Validierungs-Loss
page-outcome-loss = letzter Trainings-Loss
page-outcome-iters = letzte Iteration
page-outcome-normal = gewöhnliche Iteration
page-outcome-wall = Gesamtzeit
page-outcome-mfu = MFU
page-thinned = Von { $total } Iterationen sind { $drawn } in dieser Datei: aus jedem Abschnitt die mit dem niedrigsten und dem höchsten Wert jeder Größe. Summen gelten für alle.
page-thinned-live = Von { $total } Iterationen sind { $drawn } gezeichnet, darunter die niedrigsten und höchsten jedes Abschnitts. Hineinzoomen zeigt jede einzelne.
