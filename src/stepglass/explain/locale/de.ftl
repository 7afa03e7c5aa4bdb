# What `stepglass explain` says, in German. Values arrive formatted (durations, losses, iteration
# numbers) except $count, $lines, $understood, $more and $replayed, which are numbers: they choose
# plurals. Setting names (eval_interval) and words of the log (iter, step, loss, val loss, time, mfu)
# stay as they are printed. Nobody is addressed (no du, no Sie): advice is an infinitive.
# After a colon, a full sentence begins with a capital letter. A no-break space stands before %.
#
# Glossary
#   iteration                 Iteration; "iter 500" where the log's line is meant
#   ordinary, normal, usual   normal, üblich (not gewöhnlich)
#   step                      Trainingsschritt, Schritt; "step 500" for the log's evaluation line
#   run                       Lauf; to resume: fortsetzen; to stop: abbrechen; run log: Run-Log
#   back, with a lower rate   zurückkehren und mit niedrigerer Lernrate weitertrainieren
#   evaluation                Evaluation, evaluieren (not Evaluierung)
#   checkpoint                der Checkpoint; to save: speichern
#   start-up (of the process) Anlaufzeit (not Aufwärmphase, not Warmup)
#   learning-rate warm-up     Warmup der Lernrate; Warmup alone beside "Lernrate"
#   decay, schedule           Decay, Schedule
#   learning rate             Lernrate; learning_rate as a setting
#   floor (of the rate)       Untergrenze
#   stall                     Hänger; to stall: hängen
#   wait                      warten
#   to take a share of time   kosten (not brauchen)
#   to train the same         dasselbe Training ergeben (not gleichwertig trainieren)
#   noise, noisy              Rauschen, verrauscht
#   spike (of the loss)       Ausreißer; in a chart of times: Spitze
#   established               gesichert
#   supported                 wahrscheinlich
#   hypothesis                vermutet
#   problem, advice, note     Problem, Empfehlung, Hinweis
#   finding                   Befund
#   batch, micro-batch        der Batch, die Batches; der Micro-Batch
#   loss                      der Loss, die Losses; Trainings-Loss, Validierungs-Loss
#   gap                       Abstand
#   mean, moving average      Mittel, Mittelwert; gleitender Mittelwert
#   token                     das Token, die Tokens
#   target, label             Target, Label
#   layer                     der Layer
#   weights, weight update    Gewichte, Gewichts-Update
#   gradient norm             Gradientennorm
#   gradient clipping         Gradient Clipping; gradient accumulation: Gradient Accumulation
#   overflow                  Überlauf, überlaufen
#   vocabulary                Vokabular
#   memory, host memory       Speicher, Arbeitsspeicher
#   device                    Gerät; machine, computer: Rechner; disk: Festplatte
#   a device's name           in parentheses, because its gender is not known
#   peak (of a device)        Spitzenleistung
#   mfu                       die mfu; MFU on the page
#   wall clock                Laufzeit
#   total                     Summe; in all: insgesamt
#   trainer                   der Trainer
#   process, rank             der Prozess; der Rank, mit seiner Nummer: Rank 3
#   log, line                 das Log, die Zeile; the trainer divides, not the log
#   to print                  ausgeben
#   understood (a line)       erkannt
#   settings                  Einstellungen
#   n/a                       k. A.

## The frame

log-is = { $name }: { $format }, { $lines ->
    [one] eine Zeile
   *[other] { $lines } Zeilen
  }, { $understood } erkannt ({ $share })
log-segments = { $count ->
    [one] ein Lauf
   *[other] { $count } Läufe nacheinander (die Iterationsnummer springt zurück, oder das Log meldet einen neuen Lauf)
  }
columns-taken = Der Trainer ist unbekannt. Die Spalten wurden so gedeutet: { $columns }
segment-title = Lauf { $number }{ $unit ->
    [entry] {""}
    [epoch] { $span ->
        [one] {""}: Epoche { $first }
       *[many] {""}: Epochen { $first } bis { $last }
      }
   *[step] { $span ->
        [one] {""}: Iteration { $first }
       *[many] {""}: Iterationen { $first } bis { $last }
      }
  }
answer-problem = Problem: { $title }
answer-advice = Lässt sich verbessern: { $title }
answer-note = Kein Problem gefunden. { $title }
answer-fine = Kein Problem gefunden.
answer-error = Problem: Der Lauf endete mit einem Fehler (Zeile { $line }): { $detail }
answer-interrupted = Kein Problem gefunden; der Lauf wurde abgebrochen (Zeile { $line }).
answer-step = { $counts ->
    [epochs] Eine Epoche dauert { $normal_ms }.
    [micro-batches] Eine Iteration dauert { $normal_ms }; ein Update besteht aus mehreren.
   *[steps] Ein Trainingsschritt dauert { $normal_ms }.
  }
answer-mean = Ein Schritt dauert im Mittel { $mean_ms } (Uhr des Logs: { $clock }).
answer-run-mean = { $counts ->
    [epochs] Eine Epoche dauert im Mittel { $mean_ms }, alles eingerechnet.
   *[other] Ein Schritt dauert im Mittel { $mean_ms }, alles andere eingerechnet.
  }
answer-no-step = Wie lange ein Schritt dauert, sagt keine der erkannten Zeilen.
answer-see = Was zu tun ist, steht unten.
answer-keep = In diesem Log spricht nichts für eine Änderung.
ends-with = endete mit einem Fehler (Zeile { $line }): { $detail }
val-losses = { $figure ->
    [bpb] Validierung, Bits pro Byte
   *[loss] Validierungs-Loss
  }: { $which ->
    [only] { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }
    [best] bester Wert { $best_loss } { $best_iter ->
        [none] (zugleich der letzte)
       *[other] (step { $best_iter }, zugleich der letzte)
      }
   *[both] bester Wert { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }, letzter { $last_loss } (step { $last_iter })
  }
unit-epoch = epoch
unit-entry = Eintrag
loss-row = Loss
time-row = Zeit
where-title = Wo die Zeit geblieben ist
basis-run-log = aus dem Run-Log: Jede Millisekunde ist erfasst
basis-timestamps = nach den Zeitstempeln im Log
basis-wall-clock = nach der Gesamtdauer, die das Log nennt
basis-clock = nach der Uhr des Logs: { $clock }
basis-bar = nach der verstrichenen Zeit im Fortschrittsbalken
basis-printed = Summe der ausgegebenen Zeiten
basis-estimated = geschätzt: nicht ausgegebene Iterationen zählen wie die ausgegebenen
covers-run = ganzer Lauf
covers-loop = { $unit ->
    [epoch] { $span ->
        [one] Epoche { $first }
       *[many] Epochen { $first } bis { $last }
      }
   *[step] { $span ->
        [one] Iteration { $first }
       *[many] Iterationen { $first } bis { $last }
      }
  }
covers-loop-unnumbered = ausgegebene Iterationen
covers-timed = { $unit ->
    [epoch] { $span ->
        [one] Schritte und Evaluationen der Epoche { $first }
       *[many] Schritte und Evaluationen der Epochen { $first } bis { $last }
      }
   *[step] { $span ->
        [one] Schritt und Evaluationen der Iteration { $first }
       *[many] Schritte und Evaluationen der Iterationen { $first } bis { $last }
      }
  }
covers-timed-unnumbered = ausgegebene Schritte und Evaluationen
covers-steps = { $span ->
    [one] nur der Trainingsschritt { $first }, ohne Evaluationen und Checkpoints
   *[many] nur die Trainingsschritte { $first } bis { $last }, ohne Evaluationen und Checkpoints
  }
covers-steps-unnumbered = nur die ausgegebenen Trainingsschritte, ohne Evaluationen und Checkpoints
clock-of-bar = verstrichene Zeit im Fortschrittsbalken
clock-without = { $clock }, ohne { $phases }
phase-step = Trainingsschritte
phase-eval = Evaluationen
phase-checkpoint = Checkpoints
phase-eval-checkpoint = Evaluationen und Checkpoints
phase-warmup-eval = Anlaufzeit und erste Evaluation
phase-warmup = Anlaufzeit
phase-rest = alles Übrige
phase-all = Training insgesamt
phase-stall = ungeklärte Hänger
phase-unattributed = nicht zugeordnet
phase-data = Warten auf Daten
phase-forward_backward = Forward- und Backward-Pass
phase-optimizer = Optimizer
phase-log = Logging
phase-gc = Garbage Collector von Python
phase-other = Sonstiges
within-communication = davon Kommunikation
within-waiting = davon Warten auf den langsamsten
wall-clock = Laufzeit
total = Summe
findings-title = Befunde
no-findings = Kein Problem gefunden.
status-established = gesichert
status-supported = wahrscheinlich
status-hypothesis = vermutet
level-problem = Problem
level-advice = Empfehlung
level-note = Hinweis
lines-cited = { $count ->
    [one] Zeile { $lines }
   *[other] Zeilen { $lines }
  }
lines-more = { $lines } und { $more } weitere
grade-run = Lauf { $number }
grade-is = { $level }, { $status }
grade-cites = { $level }, { $status }; { $cited }
change-is = Ausprobieren: { $flags }
cannot-title = Was dieses Log nicht zeigen kann
cannot-more = (mit --all noch { $count } mehr)
top-findings = Was auffällt (mehr dazu: stepglass explain { $run }):

## Rules

rule-eval-inside-iteration-title = { $cost ->
    [share] { $includes ->
        [together] Evaluationen und Checkpoints kosten { $eval_share } der Zeit; iter { $iter } ist langsam, weil beides darin steckt
       *[other] Evaluationen kosten { $eval_share } der Zeit; iter { $iter } ist langsam, weil eine darin steckt
      }
    [ratio] iter { $iter } ist langsam, weil darin eine Evaluation steckt, die so lange dauert wie { $each_iters } Iterationen
   *[low] { $place ->
        [window] Die { $window } Iterationen bis iter { $iter } sind nicht langsam: Im Mittelwert ihrer Zeiten steckt eine Evaluation
       *[one] iter { $iter } ist keine langsame Iteration: In ihrer Zeit steckt eine Evaluation
      }
  }
rule-eval-inside-iteration-text = { $place ->
    [window] Die ausgegebene Zeit ist der Mittelwert über alles seit der vorigen Zeile.
   *[one] Der Timer läuft vom Ende einer Iteration bis zum Ende der nächsten.
  } In der Zeit { $count ->
    [one] dieser Zeile steckt
   *[other] dieser { $count } Zeilen steckt jeweils
  } auch { $evidence ->
    [inferred] eine nicht ausgegebene Evaluation
   *[printed] die direkt davor ausgegebene Evaluation
  }{ $includes ->
    [eval] {""}
   *[other] {" "}und, wo eine Zeile es meldet, ein Checkpoint
  }. Von den { $time_ms } { $place ->
    [window] der { $window } Iterationen bis iter { $iter }
   *[one] bei iter { $iter }
  } entfallen { $excess_ms } darauf{ $includes ->
    [split] {" "}(etwa { $eval_ms } auf die Evaluation, { $save_ms } auf den Checkpoint)
   *[other] {""}
  }; eine normale Iteration dauert { $normal_ms }. { $cost ->
    [low] Damit es weniger solche Zeilen werden, eval_interval erhöhen (ein kleinerer Wert erzeugt mehr davon); damit jede weniger Zeit kostet, eval_iters senken.
   *[other] Jede Evaluation kostet so viel Zeit wie { $each_iters } Iterationen und kommt alle { $interval } Iterationen. { $advice ->
        [interval] Mit eval_interval={ $wanted } wären es etwa 5 % der Zeit.
        [batches] Mit eval_iters={ $wanted } wären es etwa 5 % der Zeit, dafür wären die Losses stärker verrauscht.
        [rarer] Mit eval_interval={ $wanted } bleiben in diesem Lauf vier Evaluationen; ein kleineres eval_iters macht jede kürzer.
       *[none] Seltener evaluieren (eval_interval erhöhen) oder auf weniger Batches (eval_iters senken).
      }
  }{ $saves_worse ->
    [yes] {" "}Checkpoints wurden auch dann gespeichert, wenn der val loss nicht der bisher beste war: always_save_checkpoint=False speichert nur die besseren.
   *[no] {""}
  }{ $last ->
    [mfu] {" "}Das Log endet mit so einer Zeile: Als Messwert { $normal_ms } pro Iteration und eine mfu von { $clean_mfu } angeben, nicht die { $last_time_ms } und { $printed_mfu } dieser Zeile.
    [time] {" "}Das Log endet mit so einer Zeile: Als Messwert { $normal_ms } pro Iteration angeben, nicht die { $last_time_ms } dieser Zeile.
   *[no] {""}
  }

rule-mfu-echo-title = { $variant ->
    [changed] Der Einbruch der mfu bei iter { $iter } ist die Nachwirkung einer langsamen Zeile
   *[plain] Der Einbruch der mfu ist nur die Nachwirkung einer langsamen Zeile, keine Verlangsamung
  }
rule-mfu-echo-text = Die ausgegebene mfu ist ein gleitender Mittelwert: neun Zehntel alter Wert, ein Zehntel neuer. Die langsame Zeile von iter { $iter } hat sie von { $before_mfu } auf { $printed_mfu } gedrückt; es dauert rund zwanzig Zeilen, bis sie sich davon erholt. Aus den ausgegebenen Zeiten nachgerechnet, stimmt der Mittelwert mit allen { $replayed } ausgegebenen Werten überein.{ $variant ->
    [changed] {""}
   *[plain] {" "}Die Geschwindigkeit selbst blieb gleich: eine mfu von { $clean_mfu }.
  }

rule-warm-up-title = { $variant ->
    [several] Die ersten { $count } Iterationen enthalten die Anlaufzeit
    [window] Die ersten { $count } Iterationen enthalten die Anlaufzeit
   *[other] iter { $iter } enthält die Anlaufzeit
  }
rule-warm-up-text = { $variant ->
    [eval] Die { $time_ms } der ersten Iteration entfallen auf ihre Evaluation und einen normalen Schritt ({ $normal_ms }). Von der Anlaufzeit ist kaum etwas zu sehen.
    [both] Die erste Iteration dauerte { $time_ms }: etwa { $warmup_ms } Anlaufzeit, { $eval_ms } Evaluation und ein Schritt von { $normal_ms }.
    [together] Die erste Iteration dauerte { $time_ms }: Anlaufzeit und Evaluation bei Iteration 0 zusammen. Wie lange eine Evaluation allein dauert, zeigt dieses Log auch später nicht; ein normaler Schritt dauert { $normal_ms }.
    [window] Sie dauerten im Mittel je { $time_ms }, spätere { $normal_ms }: insgesamt { $warmup_ms } Anlaufzeit.
    [several] Sie dauerten bis zu { $time_ms }, spätere { $normal_ms }: insgesamt { $warmup_ms } Anlaufzeit.
    [line] Die erste Zeile zeigt { $time_ms }, spätere zeigen { $normal_ms }. Vermutlich enthält sie die Anlaufzeit.
   *[plain] Die erste Iteration dauerte { $time_ms }, spätere dauern { $normal_ms }.
  } In die Anlaufzeit fällt { $work ->
    [compile] vor allem das Kompilieren des Modells (torch.compile), danach kommen Speicher, Kernel und der erste Batch
    [any] alles, was nur einmal passiert: Modell kompilieren (falls es kompiliert wird), Speicher anfordern, Kernel laden, ersten Batch lesen
    [data] alles, was nur einmal passiert. Hier war es vor allem das Warten auf Daten: Datensatz öffnen und erste Batches lesen
   *[first-use] alles, was nur einmal passiert: Speicher anfordern, Kernel laden, ersten Batch lesen
  }.

rule-mfu-wrong-peak-title = { $variant ->
    [no-peak] Die ausgegebene mfu vergleicht diesen Lauf mit einer A100
   *[other] Die ausgegebene mfu bezieht sich auf die falsche Spitzenleistung
  }
rule-mfu-wrong-peak-text = { $variant ->
    [other] Der Trainer teilt durch { $assumed_tflops } TFLOP/s. Bezogen auf { $peak_tflops } TFLOP/s ({ $device }) entsprechen die { $clean_mfu } einer normalen Iteration { $corrected_mfu } (× { $assumed_tflops } / { $peak_tflops }).
    [over] { $printed_mfu } schafft kein Gerät: Der Trainer teilt durch { $assumed_tflops } TFLOP/s, die Spitzenleistung einer A100. Entweder lief das Training auf etwas Schnellerem (mit --device angeben, dann gibt es den echten Wert), oder die ausgegebene Zeit ist zu kurz, weil die Uhr abgelesen wurde, bevor das Gerät fertig war.
   *[no-peak] nanoGPT teilt auf jedem Gerät durch { $assumed_tflops } TFLOP/s, die Spitzenleistung einer A100. Auf diesem Gerät ({ $device }) sagt der Wert nur, wie dieser Lauf im Vergleich zu einer A100 abschneidet{ $achieved ->
        [known] ; erreicht wurden { $achieved_tflops } TFLOP/s
       *[unknown] {""}
      }.
  }

rule-small-kernels-title = Die GPU wartet womöglich auf Arbeit: Die Kernel sind klein
rule-small-kernels-text = Das Gerät ({ $device }) erreicht bei { $normal_ms } pro Iteration { $corrected_mfu } seiner Spitzenleistung. Bei einem so kleinen Modell oder Micro-Batch kann der Start der Kernel so lange dauern wie ihre Ausführung. Trifft das zu, kosten größere Batches kaum zusätzliche Zeit, und torch.compile hilft.

rule-accumulation-waste-title = Gradient Accumulation rechnet kleine Batches nacheinander
rule-accumulation-waste-text = { $accumulation } Micro-Batches mit je { $batch } Sequenzen laufen nacheinander, obwohl weniger, aber größere ausreichen würden. Mit den vorgeschlagenen Werten bleiben die Tokens pro Iteration gleich ({ $tokens_per_iter }); nötig sind etwa { $memory_bytes } Speicher.

rule-slow-path-title = { $variant ->
    [attention] Die Attention nimmt den langsamen Pfad
    [sdpa] Die Attention läuft über SDPA von PyTorch statt über FlashAttention 3
    [compile] torch.compile hat bei einem Teil des Modells aufgegeben
    [float32] Training in float32 ist langsamer als in { $dtype }
   *[mps] Auf mps trainiert nanoGPT in float32, egal, was in dtype steht
  }
rule-slow-path-text = { $variant ->
    [attention] Laut Log ist Fused Attention nicht verfügbar; jeder Layer legt deshalb seine Attention-Matrix vollständig im Speicher ab. PyTorch hat Fused Attention ab Version 2.0.
    [sdpa] Laut Log ist FlashAttention 3 hier nicht verfügbar: Nötig sind eine Hopper-GPU (H100) und das zugehörige Paket. SDPA ist ebenfalls fused und ergibt dasselbe Training, ist aber langsamer, vor allem bei Sliding Windows.
    [compile] Das Log zeigt { $count ->
        [one] eine Warnung
       *[other] { $count } Warnungen
      }, dass Code in den Eager-Modus zurückgefallen ist: Das Kompilieren kostet Zeit, macht diesen Teil aber nicht schneller.
    [float32] Matrixprodukte laufen in float32 höchstens halb so schnell wie in { $dtype }, und Aktivierungen brauchen doppelt so viel Speicher.
   *[mps] nanoGPT schaltet Mixed Precision auf jedem Gerät außer CUDA ab. Das ist kein Fehler; zu erwarten ist die Geschwindigkeit von float32.
  }

rule-data-bound-title = Das Training wartet auf Daten
rule-data-bound-text = Die Trainingsschritte verbrachten { $data_share } ihrer Zeit mit dem Warten auf Batches{ $variant ->
    [phases] {""}, insgesamt { $total_ms }
   *[plain] {""}: pro Iteration { $median_ms } im Median, höchstens { $worst_ms }
  }. Die Daten auf einer lokalen Festplatte oder im Arbeitsspeicher halten und Batches im Voraus laden.

rule-straggler-title = { $variant ->
    [pair] Rank { $rank } ist langsam: Der andere Prozess wartet auf ihn
   *[plain] Rank { $rank } ist langsam: Die anderen Prozesse warten auf ihn
  }
rule-straggler-text = { $variant ->
    [pair] Rank { $rank } berechnet die Gradienten eines Updates in { $slow_ms }, der andere in { $others_ms } (Mediane): { $slower_percent } länger. In { $slow_records } von { $records } Messungen von iter { $first_iter } bis { $end_iter } war er langsamer als der andere. Das kostete { $cost_ms }, { $cost_share } der Zeit. Beide Prozesse berechnen gleich viele Tokens, die Ursache liegt also am Rechner: ein anderes Programm auf diesem Gerät oder Kern, ein langsameres Gerät, ein wegen Hitze oder Stromaufnahme gedrosseltes Gerät oder weniger Threads als beim anderen.
   *[plain] Rank { $rank } berechnet die Gradienten eines Updates in { $slow_ms }, die anderen in { $others_ms } (Mediane): { $slower_percent } länger. In { $slow_records } von { $records } Messungen von iter { $first_iter } bis { $end_iter } war er langsamer als die anderen. Das kostete { $cost_ms }, { $cost_share } der Zeit. Alle Prozesse berechnen gleich viele Tokens, die Ursache liegt also am Rechner: ein anderes Programm auf diesem Gerät oder Kern, ein langsameres Gerät, ein wegen Hitze oder Stromaufnahme gedrosseltes Gerät oder weniger Threads als bei den anderen.
  }

rule-communication-title = Die Kommunikation zwischen den Prozessen kostet { $communication_share } der Trainingsschritte
rule-communication-text = Nachdem alle { $processes } Prozesse ihre Gradienten berechnet hatten, was im Mittel { $compute_ms } pro Update dauerte, vergingen noch { $update_ms }, bis diese summiert waren: insgesamt { $total_ms }. DDP überträgt die Gradienten einmal pro Update, egal wie viele Tokens das Update hat. Mehr Tokens pro Update machen den Anteil also kleiner: gradient_accumulation_steps (jetzt { $accumulation }) oder batch_size erhöhen. Auch eine schnellere Verbindung oder weniger Prozesse helfen.

rule-pace-setter-title = { $variant ->
    [python] Python bestimmt das Tempo, nicht die GPU
    [data] Die Daten bestimmen das Tempo, nicht die GPU
   *[gpu] Die GPU bestimmt das Tempo
  }
rule-pace-setter-text = { $variant ->
    [python] Am Ende von { $ahead_share } der Updates war die GPU schon fertig und wartete darauf, dass Python Kernel startet. Eine größere batch_size oder compile=True gibt ihr pro Start mehr zu tun.
    [data] Am Ende von { $ahead_share } der Updates war die GPU schon fertig, und mehr als 5 % ihres Schritts wartete sie auf Batches. Die Daten auf einer lokalen Festplatte oder im Arbeitsspeicher halten.
   *[gpu] Am Ende von { $behind_share } der Updates lag für die GPU noch Arbeit bereit: Weder Python noch die Daten halten sie auf.
  }

rule-periodic-stall-title = { $variant ->
    [sync] Die Zeile nach jeder Evaluation oder jedem Checkpoint ist langsam
    [included] Die Zeile nach jeder Evaluation oder jedem Checkpoint ist langsam
   *[other] Alle { $every } Iterationen ein Hänger, aber weder bei Evaluationen noch bei Checkpoints
  }
rule-periodic-stall-text = { $count }-mal dauerte eine Iteration etwa { $excess_ms } länger als ihre Nachbarn, alle { $every } Iterationen (etwa alle { $period_ms }): insgesamt { $total_ms }. { $variant ->
    [gc] Das Log zeigt den Garbage Collector von Python bei der Arbeit. gc.freeze() und gc.disable() nach den ersten Iterationen aufrufen.
    [sync] Der Hänger kommt eine Zeile nach einer Evaluation oder einem Checkpoint: Das Training wartet dann auf das Gerät und muss dessen Warteschlange und Caches neu füllen.
    [included] Der Hänger kommt direkt nach einer Evaluation oder einem Checkpoint; vermutlich steckt deren Zeit in dieser Zeile.
    [optimizer] Mögliche Ursachen: das regelmäßige Update des Preconditioners im Optimizer, den dieses Log nennt (SOAP oder Shampoo), der Wechsel zur nächsten Datendatei oder ein anderes Programm, das in festen Abständen läuft.
    [shard] Mögliche Ursachen: der Wechsel zur nächsten Datendatei (Shard), der etwa so oft vorkommt, oder ein anderes Programm, das in festen Abständen läuft.
    [short] Mögliche Ursachen: der Wechsel zur nächsten Datendatei, ein regelmäßiges Update im Optimizer (SOAP, Shampoo), der Garbage Collector von Python (gc.freeze() und gc.disable() nach den ersten Iterationen schließen ihn aus) oder ein anderes Programm, das in festen Abständen läuft.
   *[plain] Mögliche Ursachen: der Wechsel zur nächsten Datendatei, ein regelmäßiges Update im Optimizer (SOAP, Shampoo) oder ein anderes Programm, das in festen Abständen läuft.
  }

rule-slowdown-title = Die Iterationen dauern { $rise_percent } länger als am Anfang
rule-slowdown-text = Eine normale Iteration dauerte anfangs { $first_ms }, { $variant ->
    [drift] nach allmählichem Anstieg
   *[other] etwa ab iter { $iter }
  } dann { $last_ms }; dabei blieb es. { $variant ->
    [throttle] Das Log nennt ein Temperatur- oder Leistungslimit: Ursache ist die Kühlung oder die Leistungseinstellung.
   *[other] Mögliche Ursachen: Hitze, ein anderes Programm auf demselben Gerät, knapper Speicher oder längere Batches; welche es ist, steht nicht im Log. Während des Laufs Takt und Temperatur des Geräts beobachten.
  }

rule-slow-stretch-title = Von iter { $first_iter } bis iter { $end_iter } dauerten die Iterationen { $rise_percent } länger, danach wieder so lange wie zuvor
rule-slow-stretch-text = In diesem Abschnitt dauerte eine Iteration { $slow_ms } statt { $normal_ms }; das kostete insgesamt { $excess_ms }. { $variant ->
    [throttle] Das Log nennt zu dieser Zeit ein Temperatur- oder Leistungslimit.
   *[plain] Wahrscheinlich lief auf demselben Rechner ein anderes Programm; auch Hitze oder längere Batches sind möglich.
  }

rule-eval-too-expensive-title = { $covers ->
    [timed] { $variant ->
        [together] Evaluationen und Checkpoints kosten { $eval_share } der Zeit, die das Log ausgibt
       *[plain] Evaluationen kosten { $eval_share } der Zeit, die das Log ausgibt
      }
   *[other] { $variant ->
        [together] Evaluationen und Checkpoints kosten { $eval_share } der Zeit
       *[plain] Evaluationen kosten { $eval_share } der Zeit
      }
  }
rule-eval-too-expensive-text = Jede { $variant ->
    [together] Evaluation mit ihrem Checkpoint
   *[plain] Evaluation
  } dauert { $each_ms }{ $compared ->
    [yes] {""}, so lange wie { $each_iters } Iterationen, und kommt alle { $interval } Iterationen
    [entry] {""}
    [epoch] {""}
   *[no] {" "}und kommt alle { $interval } Iterationen
  }. { $advice ->
    [interval] Bei einem Abstand von { $wanted } Iterationen wären es etwa 5 % der Zeit.
    [batches] Mit { $wanted } Batches pro Evaluation wären es etwa 5 % der Zeit, dafür wären die Losses stärker verrauscht.
    [rarer] Bei einem Abstand von { $wanted } Iterationen bleiben in diesem Lauf vier Evaluationen; weniger Batches pro Evaluation machen jede kürzer.
   *[none] Seltener oder auf weniger Batches evaluieren.
  }

rule-eval-noise-title = Die letzten Evaluationen unterscheiden sich um weniger als ihr Rauschen
rule-eval-noise-text = Eine Evaluation hat eine Unsicherheit von { $se_loss }; ein Unterschied zwischen zweien sagt erst ab { $least_loss } etwas aus, und die letzten { $count } Änderungen betrugen höchstens { $largest_loss }. Den Checkpoint nicht danach auswählen{ $variant ->
    [more] {""}: Klarheit schaffen ein größeres eval_iters oder jedes Mal dieselben Batches
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] Nach { $risk_ms } Training noch kein Checkpoint
   *[plain] Checkpoints kosten { $save_share } der Zeit
  }
rule-checkpoint-interval-text = { $variant ->
    [none] Keine Zeile dieses Logs meldet einen gespeicherten Checkpoint. Bei einem Absturz ginge jetzt alles verloren.
   *[plain] { $count } Checkpoints zu je etwa { $save_ms } haben das Training insgesamt { $total_ms } lang angehalten. { $run ->
        [short] Bei einem so kurzen Lauf reicht ein Checkpoint am Ende.
       *[long] Fällt der Rechner etwa einmal am Tag aus, geht mit einem Checkpoint alle { $wanted_ms } am wenigsten Zeit verloren.
      }{ $tied ->
        [yes] {" "}nanoGPT speichert beim Evaluieren: immer, oder mit always_save_checkpoint=False nur, wenn der val loss der bisher beste ist.
       *[no] {""}
      }
  }

rule-overfitting-title = { $variant ->
    [gap] Der Validierungs-Loss liegt weit über dem Trainings-Loss: Overfitting
    [gap-few] Der Validierungs-Loss liegt weit über dem Trainings-Loss: Overfitting
    [metric] Der Validierungs-Loss steigt, aber die Metrik „{ $metric }“ wird noch besser
    [one] Die letzte Evaluation ist schlechter als die beste: Vielleicht hat Overfitting begonnen
   *[other] Overfitting etwa ab step { $best_iter }
  }
rule-overfitting-text = { $variant ->
    [gap] Bei step { $last_iter } liegt der Loss auf bekannten Daten bei { $train_loss } und auf unbekannten bei { $last_loss }: ein Abstand von { $gap_loss }, das sind { $gap_percent } des Trainings-Loss; die Perplexity ist auf neuen Daten { $perplexity_times }-mal so hoch. Das ist Auswendiglernen, kein harmloser Abstand. Am niedrigsten war der Validierungs-Loss bei step { $best_iter } ({ $best_loss }).
    [gap-few] Bei step { $last_iter } liegt der Loss auf bekannten Daten bei { $train_loss } und auf unbekannten bei { $last_loss }: ein Abstand von { $gap_loss }, das sind { $gap_percent } des Trainings-Loss; die Perplexity ist auf neuen Daten { $perplexity_times }-mal so hoch. Das ist Auswendiglernen, kein harmloser Abstand. Bei so wenigen Evaluationen zeigt das Log nicht, wann es begann: den step mit dem niedrigsten val loss suchen.
    [metric] Der Validierungs-Loss war bei step { $best_iter } am niedrigsten ({ $best_loss }) und ist seitdem um { $rise_loss } ({ $rise_percent }) auf { $last_loss } gestiegen, während der Trainings-Loss fiel. In denselben Evaluationen ging die Metrik „{ $metric }“ von { $before_points } auf { $now_points }: Das Modell ist sich bei Fehlern sicherer, löst seine Aufgabe aber nicht schlechter. Den Checkpoint nach dem Wert auswählen, auf den es ankommt.
    [one] Der Validierungs-Loss war bei step { $best_iter } am niedrigsten ({ $best_loss }) und liegt in der letzten Evaluation um { $rise_loss } ({ $rise_percent }) höher, während der Trainings-Loss fiel. Eine einzelne Evaluation kann Zufall sein: Die nächsten werden es zeigen.
    [no-train] Der Validierungs-Loss war bei step { $best_iter } am niedrigsten ({ $best_loss }) und ist seitdem um { $rise_loss } ({ $rise_percent }) auf { $last_loss } gestiegen, während der Trainings-Loss fiel. Alles nach diesem step hat das Modell auf neuen Daten schlechter gemacht.
   *[rising] Der Validierungs-Loss war bei step { $best_iter } am niedrigsten ({ $best_loss }) und ist seitdem um { $rise_loss } ({ $rise_percent }) auf { $last_loss } gestiegen, während der Trainings-Loss auf { $train_loss } fiel. Alles nach diesem step hat das Modell auf neuen Daten schlechter gemacht: dort aufhören oder mehr Dropout, mehr Daten oder ein kleineres Modell verwenden.
  }

rule-best-checkpoint-lost-title = Der beste Checkpoint wurde von einem schlechteren überschrieben
rule-best-checkpoint-lost-text = nanoGPT behält nur einen Checkpoint, und mit always_save_checkpoint überschreibt ihn jede Evaluation. Der beste war step { $best_iter } (val loss { $best_loss }); die Datei enthält jetzt step { $kept_iter } ({ $kept_loss }), der um { $worse_loss } schlechter ist.

rule-stopped-early-title = Der Lauf endete, während das Modell noch lernte
rule-stopped-early-text = Der Validierungs-Loss fiel am Ende noch (step { $last_iter }: { $last_loss }), um etwa { $gain_loss } pro tausend Iterationen, und nichts deutet auf Overfitting hin. Ein längerer Lauf mit entsprechend gestrecktem Decay dürfte noch mehr bringen.

rule-schedule-mismatch-title = { $variant ->
    [batch] Die Lernrate ist hoch für so wenige Tokens pro Iteration
    [floor] Die Untergrenze der Lernrate ist ungewöhnlich
    [warmup] Der Warmup der Lernrate nimmt einen großen Teil des Laufs ein
   *[other] Der Decay der Lernrate passt nicht zur Länge des Laufs
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr ist { $low_lr } bei einer learning_rate von { $rate }; üblich ist ein Zehntel der learning_rate.
    [batch] Eine learning_rate von { $rate } ist bei einer halben Million Tokens pro Iteration üblich; hier sind es { $batch_tokens }. Mit weniger Tokens ist der Gradient stärker verrauscht: die Lernrate mit der Quadratwurzel der Tokenzahl skalieren.
    [warmup] Die Lernrate steigt { $warmup_iters } von { $max_iters } Iterationen lang an; üblich sind ein bis zwei Prozent.
    [long] lr_decay_iters ist { $decay_iters }, aber der Lauf endet bei { $max_iters }: Die Lernrate wird nie klein. Während sie sinkt, fällt der Loss meist deutlich; das meiste davon entgeht diesem Lauf.
   *[short] lr_decay_iters ist { $decay_iters }, aber der Lauf geht bis { $max_iters }: Alle Iterationen nach dem Decay laufen mit min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] Eine Evaluation ergab NaN (step { $iter }, Zeile { $line })
    [vanished] Der Loss fehlt ab iter { $iter } (Zeile { $line }): Vermutlich ist er NaN
   *[other] Der Loss ist ab iter { $iter } NaN oder unendlich (Zeile { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] Der Trainings-Loss bleibt endlich, der Fehler liegt also vermutlich in der Evaluation selbst: keine Batches oder keine gültigen Targets darin.
   *[other] { $last_iter ->
        [none] Schon der erste ausgegebene Loss ist NaN oder unendlich.
       *[other] Der letzte endliche Loss war { $last_loss } bei iter { $last_iter }.
      } { $variant ->
        [vanished] Bis dahin hat jede Zeile einen Loss, { $count ->
            [one] die letzte Zeile hat
           *[other] die letzten { $count } Zeilen haben
          } keinen{ $has_bad_norms ->
            [yes] , und die Gradientennorm ist dort NaN
           *[no] {""}
          }: Manche Trainer lassen den Loss weg, wenn er NaN ist.{" "}
       *[other] {""}
      }Seitdem wurde nichts gelernt: den Lauf abbrechen{ $save_iter ->
        [none] {""}
       *[other] {" "}und zum Checkpoint von Iteration { $save_iter } zurückkehren{ $overwritten ->
            [yes] , falls es eine Kopie gibt: Ein späterer Checkpoint in diesem Log hat ihn überschrieben
           *[no] {""}
          }
      }. { $variant ->
        [exploded] Der Loss war weit über seinen besten Wert gestiegen, bevor er NaN wurde: Die Lernrate ist zu hoch, oder das Gradient Clipping fehlt.
        [first] Bis dahin war noch nichts gelernt, an der Lernrate liegt es also nicht. Übliche Ursachen: NaN in den Daten oder in den geladenen Gewichten, Batches ohne gültiges Target, ein Überlauf in float16 oder ein fehlerhafter Kernel.
        [fp16] In float16 laufen große Werte über, in bfloat16 oder float32 nicht.
       *[other] Übliche Ursachen: eine zu hohe Lernrate, ein Überlauf in float16 oder ein Target außerhalb des gültigen Bereichs (bei Text: eine Token-ID außerhalb des Vokabulars).
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Die Iterationen brauchen seitdem { $faster_percent } weniger Zeit: So sieht es aus, wenn der GradScaler jedes Update überspringt.
      }
  }

rule-broken-gradient-title = { $variant ->
    [zero] Die Gradientennorm ist ab iter { $iter } genau 0 (Zeile { $line })
   *[other] Die Gradientennorm ist ab iter { $iter } NaN oder unendlich (Zeile { $line })
  }
rule-broken-gradient-text = { $variant ->
    [zero] In den letzten { $count } Zeilen erreicht kein Gradient die Gewichte, also wird nichts gelernt. Übliche Ursachen: Batches, deren Labels alle maskiert sind, eingefrorene oder mit detach() abgetrennte Parameter oder Werte, die für float16 zu klein sind.
    [nan-no-loss] Das gilt für jede der letzten { $count } Zeilen, und keine Zeile hat einen Loss: Manche Trainer lassen ihn weg, wenn er NaN ist. Es wird nichts mehr gelernt: den Lauf abbrechen und zu einem Checkpoint davor zurückkehren. Übliche Ursachen: eine zu hohe Lernrate, ein Überlauf in float16 oder Batches ohne gültiges Target.
   *[nan] Das gilt für jede der letzten { $count } Zeilen, obwohl der ausgegebene Loss gut aussieht. Updates mit so einem Gradienten werden übersprungen oder zerstören die Gewichte: Es wird nichts mehr gelernt. Den Lauf abbrechen und zu einem Checkpoint davor zurückkehren. Übliche Ursachen: ein Überlauf in float16, Batches ohne gültiges Target oder ein fehlerhafter Kernel.
  }

rule-constant-loss-title = Der Loss ist in den letzten { $count } Zeilen genau { $loss }
rule-constant-loss-text = Er ändert sich von iter { $iter } bis iter { $last_iter } in keiner einzigen Stelle, obwohl sich die Batches unterscheiden sollten. { $variant ->
    [zero] Ein Loss von genau 0 heißt, dass nichts bewertet wurde: Alle Labels sind maskiert, oder der Trainer gibt 0 statt NaN aus.
    [rate] Die ausgegebene Lernrate ist 0: Es wird nichts gelernt. Immer derselbe Batch würde den Rest erklären.
    [norm] Auch die Gradientennorm ist 0: Es wird nichts gelernt. Sind die Gewichte eingefroren oder alle Labels maskiert?
   *[plain] Es wird nichts gelernt. Entweder hängt die Ausgabe nicht mehr von der Eingabe ab (Gewichte, die null, eingefroren oder zerstört sind; dann liegt e^loss = { $choices } etwa bei der Größe des Vokabulars), oder die Lernrate ist 0 und jeder Batch derselbe, oder die Zahl wird nicht aktualisiert.
  }

rule-skipped-updates-title = { $variant ->
    [stuck] Ab iter { $iter } wird jedes Update übersprungen: Die Gradienten laufen über (NaN oder unendlich)
   *[often] { $count } Gewichts-Updates wurden übersprungen ({ $skipped_share } der Iterationen)
  }
rule-skipped-updates-text = { $variant ->
    [stuck] Die Gradienten laufen bei jeder Loss-Skalierung über, die Gewichte ändern sich also nicht mehr. Zu einem Checkpoint davor zurückkehren und mit niedrigerer Lernrate weitertrainieren; bfloat16 braucht keine Loss-Skalierung.
   *[often] Diese Batches wurden berechnet und verworfen. Ein paar am Anfang sind normal, solange sich die Loss-Skalierung einpendelt; diese hier kommen später. Gegen den Überlauf hilft eine niedrigere Lernrate, ebenso bfloat16.
  }

rule-divergence-title = { $variant ->
    [exploded] Das Training ist etwa bei iter { $iter } divergiert
    [recovered] Der Loss stieg etwa bei iter { $iter } und erholte sich wieder
   *[up] Der Loss stieg etwa bei iter { $iter } und blieb oben
  }
rule-divergence-text = Der niedrigste Loss war { $best_loss } (iter { $best_iter }). { $variant ->
    [recovered] Dann stieg er auf etwa { $high_loss } und war spätestens bei iter { $back_iter } wieder unten
    [exploded] Dann stieg er über alle früheren Werte und blieb dort: { $last_loss } am Ende
   *[up] Dann stieg er und blieb oben: { $last_loss } am Ende
  }{ $knows_rate ->
    [yes] {""}; die Lernrate betrug beim Anstieg { $rate }
   *[no] {""}
  }. { $variant ->
    [recovered] Die Iterationen dazwischen waren verloren. Falls es wieder passiert, die Lernrate senken oder ihren Warmup verlängern.
    [exploded] Zu einem Checkpoint davor zurückkehren und mit niedrigerer Lernrate, Gradient Clipping und längerem Warmup weitertrainieren.
   *[up] Falls dort nichts geändert wurde (Daten, Einstellungen), ist das Training divergiert: zu einem Checkpoint davor zurückkehren und mit niedrigerer Lernrate und längerem Warmup weitertrainieren.
  }

rule-loss-spike-title = { $count ->
    [one] Ein Ausreißer im Loss bei iter { $iter }
   *[other] { $count } Ausreißer im Loss, der größte bei iter { $iter }
  }
rule-loss-spike-text = Der Loss sprang von den üblichen { $around_loss } auf { $loss } (um das { $z }-Fache des Rauschens) und fiel wieder. { $variant ->
    [data] In { $runs } Läufen dieses Logs springt der Loss bei derselben Iteration: Die Ursache liegt in den dort gelesenen Daten, nicht in den Einstellungen.
    [rate] Solche Sprünge gibt es hier viele, und sie dauern mehrere Zeilen: Vermutlich ist die Lernrate zu hoch, oder das Gradient Clipping fehlt.
    [smoothed] Der ausgegebene Loss ist ein gleitender Mittelwert: Der Loss des Batches selbst war viel höher, und seine Spur verblasst erst über mehrere Zeilen. Ein paar davon sind harmlos.
   *[plain] Ein Sprung, der in der nächsten Zeile vorbei ist, kommt meist von einem ungewöhnlichen Batch. Ein paar davon sind harmlos.
  }

rule-initial-loss-title = Der erste Loss passt nicht zum Vokabular
rule-initial-loss-text = Ein Modell, das nichts weiß, kommt auf ln({ $vocab }) = { $expected_loss }; dieses begann bei { $seen_loss }. { $variant ->
    [low] Entweder hat es nicht bei null angefangen, oder Targets gelangen in die Eingabe, oder das Vokabular ist größer, als die Daten es brauchen.
   *[high] Zu prüfen: vocab_size und meta.pkl, der Versatz zwischen Eingabe und Target und die Initialisierung.
  }

rule-plateau-title = Der Validierungs-Loss bewegt sich nicht mehr
rule-plateau-text = In den letzten { $count } Evaluationen (step { $first_iter } bis { $last_iter }) blieb er bei etwa { $mean_loss }; der Trend macht insgesamt { $moved_loss } aus, nicht mehr als das Rauschen. { $variant ->
    [peak] Die Lernrate ist nahe ihrem Höchstwert geblieben: sie senken oder mit dem Decay beginnen.
    [floor] Die Lernrate war zu Beginn des Plateaus schon an ihrer Untergrenze: Mehr gibt dieser Schedule nicht her.
    [through] Die Lernrate betrug zu Beginn des Plateaus { $rate }, und dass sie seitdem gesunken ist, hat nicht geholfen: Die Grenze setzen das Modell, die Daten oder die Regularisierung.
    [known] Die Lernrate betrug zu Beginn des Plateaus { $rate }.
   *[plain] Das Log nennt die Lernrate nicht; ob der Schedule am Ende ist oder die Lernrate zu hoch, lässt sich daher nicht sagen.
  }

rule-data-budget-title = { $variant ->
    [epochs] Der Lauf sieht seine Daten { $epochs }-mal
    [few] Wenige Tokens für dieses Modell: { $ratio } pro Parameter
   *[many] Viele Tokens für dieses Modell: { $ratio } pro Parameter
  }
rule-data-budget-text = { $is_planned ->
    [yes] Die geplanten { $max_iters } Iterationen sind
   *[no] { $max_iters } Iterationen sind
  } { $tokens } Tokens für { $parameters } Parameter, { $ratio } pro Parameter; etwa 20 gelten als ausgewogen. { $variant ->
    [epochs] Der Trainingsdatensatz ist viel kleiner und wird deshalb { $epochs }-mal gelesen: Nach etwa vier Durchgängen helfen Wiederholungen immer weniger, und Overfitting wird wahrscheinlich.
    [few] Ein kleineres Modell oder mehr Iterationen würden die Zeit besser nutzen.
   *[many] Ein größeres Modell erreicht in derselben Rechenzeit meist einen niedrigeren Loss.
  }

rule-eval-below-batch-title = Warum der train loss einer Evaluation unter dem Loss der Batches liegt
rule-eval-below-batch-text = Bei step { $last_iter } steht ein train loss von { $train_loss }, in den Iterationen ringsum ein Loss von { $batch_loss }. { $variant ->
    [dropout] Dropout ({ $dropout }) ist in einer Evaluation abgeschaltet; das Modell sagt dort deshalb besser vorher, und der Wert ist ein Mittel über viele Batches. Das ist kein Fehler.
   *[plain] Eine Evaluation mittelt über viele Batches, und Dropout ist dabei abgeschaltet: Falls dieser Lauf Dropout verwendet, sagt das Modell dort besser vorher. Das ist kein Fehler.
  }

rule-expected-loss-title = { $variant ->
    [worse] Der Validierungs-Loss liegt über dem, was nanoGPT auf diesen Daten erreicht
   *[usual] Der Validierungs-Loss entspricht dem, was nanoGPT auf diesen Daten erreicht
  }
rule-expected-loss-text = Auf shakespeare_char beginnt ein untrainiertes Modell bei ln(65) = 4,17. Die GPU-Konfiguration von nanoGPT (6 Layer, 5000 Iterationen) erreicht einen val loss von etwa 1,47, die für CPUs (4 Layer, 2000 Iterationen) etwa 1,88. Der beste hier ist { $best_loss } (step { $best_iter }).

rule-gradient-clipping-title = Gradient Clipping greift bei fast jedem Gradienten
rule-gradient-clipping-text = Die Gradientennorm liegt in { $clipped_share } der Zeilen über { $setting } = { $clip }, im Median bei { $norm }. Clipping kürzt einen solchen Gradienten auf diese Länge und behält seine Richtung; jedes Update ist damit etwa so lang, wie die Lernrate es vorgibt. Das ist harmlos, solange der Loss gut fällt; sonst zuerst die Lernrate senken.

rule-out-of-memory-title = { $variant ->
    [host] Dem Rechner ging der Arbeitsspeicher aus
   *[other] Der Speicher reichte nicht
  }
rule-out-of-memory-text = { $variant ->
    [host] Erschöpft war der Arbeitsspeicher (RAM) des Rechners, nicht der Speicher der GPU: weniger Daten-Worker verwenden, die Datendatei mit mmap einbinden, statt sie zu laden, oder andere Programme schließen.
    [sizes] Der Lauf hat weitere { $tried_bytes } angefordert und nicht bekommen.
   *[plain] Der Lauf hat mehr Speicher angefordert, als das Gerät hat.
  }{ $halved ->
    [batch] {" "}Die halbe batch_size mit doppelt so vielen gradient_accumulation_steps ergibt dasselbe Training und braucht etwa die Hälfte des Speichers, der mit dem Batch wächst; eine kleinere block_size hilft ebenfalls.
   *[no] { $variant ->
        [host] {""}
       *[other] {" "}Ein kleinerer Batch mit mehr Gradient Accumulation ergibt dasselbe Training und braucht weniger Speicher; kürzere Sequenzen helfen ebenfalls.
      }
  } Meldungen nach der ersten sind Folgefehler.

rule-contradiction-title = { $variant ->
    [tokens] Die ausgegebenen Tokens pro Sekunde liegen um den Faktor { $times } daneben
    [clock] Die ausgegebenen Zeiten sind nicht die echten
    [rate] Die am Ende ausgegebenen Tokens pro Sekunde sind falsch
   *[hidden-nan] Der Loss sieht nur gut aus, weil das Log NaN verbirgt
  }
rule-contradiction-text = { $variant ->
    [tokens] Ein Schritt umfasst { $stated_tokens } Tokens, aber Tokens pro Sekunde mal Dauer des Schritts ergeben { $implied_tokens } Tokens. Verlässlich ist die Zeit: Sie ergibt { $real_rate } Tokens pro Sekunde, nicht { $printed_rate }.
    [clock] Eine normale Iteration dauert laut ausgegebener Zeit { $normal_ms }, laut Zeitstempeln { $stamped_ms }. Verlässlich sind die Zeitstempel: Ohne Synchronisierung zeigt die ausgegebene Zeit, wann Python fertig war, nicht, wann das Gerät fertig war.
    [rate] Alle Tokens geteilt durch die Trainingszeit ergeben { $real_rate } pro Sekunde, nicht { $printed_rate }.
   *[hidden-nan] Die Gradientennorm ist NaN oder unendlich ({ $count ->
        [one] einmal
       *[other] { $count }-mal
      }), während der ausgegebene Loss weiterläuft: Dieser Trainer lässt NaN beim ausgegebenen Loss standardmäßig weg. logging_nan_inf_filter auf False setzen, um es zu sehen.
  }

rule-unexplained-stall-title = { $place ->
    [window] Die { $window } Iterationen bis iter { $iter } hingen { $excess_ms } lang{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , und das Log zeigt keinen Grund
      }
   *[other] iter { $iter } hing { $excess_ms } lang{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , und das Log zeigt keinen Grund
      }
  }
rule-unexplained-stall-text = { $place ->
    [window] Sie dauerten je { $time_ms } statt der üblichen { $normal_ms }.
    [several] Die Iteration und ihre Nachbarn ({ $num_lines } Zeilen in Folge) dauerten bis zu { $time_ms } statt der üblichen { $normal_ms }.
    [between] Die Iteration dauerte { $time_ms } statt der üblichen { $normal_ms }; Evaluationen kommen alle { $eval_interval } Iterationen, und auf diese fällt keine.
   *[one] Die Iteration dauerte { $time_ms } statt der üblichen { $normal_ms }.
  }{ $count ->
    [one] {""}
   *[other] {" "}Es gibt { $count } solche Hänger, zusammen { $total_ms }.
  } { $variant ->
    [recompile] Eine Zeile direkt davor meldet, dass Code neu kompiliert wurde.
    [boundary] Direkt davor steht ein Checkpoint oder eine Evaluation im Log; das kann die Ursache sein. Dann lohnt ein Blick auf das Laufwerk, auf das geschrieben wird.
    [memory] Die Speicherbelegung ist dort höher als zuvor: Ist der Speicher des Geräts fast voll, dauert das Ein- und Auslagern von Daten so lange. Ein kleinerer Batch oder kürzere Sequenzen schaffen Klarheit.
    [pause] Mögliche Ursachen: ein Rechner im Ruhezustand, ein angehaltener Prozess, ein anderes Programm, eine volle oder langsame Festplatte. Welche es war, lässt das Log offen.
   *[plain] Mögliche Ursachen: ein anderes Programm, eine langsame Festplatte, knapper Speicher, erneutes Kompilieren für eine neue Tensorform. Welche es war, lässt das Log offen.
  }{ $printed ->
    [some] {" "}Nur ein Teil der Iterationen wird ausgegeben, weitere Hänger können also unbemerkt geblieben sein: log_interval=1 gibt alle aus.
   *[all] {""}
  }

rule-hidden-stall-title = Zwischen iter { $first_iter } und iter { $end_iter } vergingen { $passed_ms }, und keine ausgegebene Zeit zeigt das
rule-hidden-stall-text = Nach den ausgegebenen Zeiten hätten es { $expected_ms } sein müssen. Die verlorene Zeit liegt in Iterationen, die nicht ausgegeben werden{ $count ->
    [one] {""}
   *[other] {" "}({ $count } solche Lücken, insgesamt { $total_ms })
  }. Um sie zu sehen, jede Iteration ausgeben lassen.

rule-repeated-work-title = { $count ->
    [one] Eine Iteration wurde doppelt gerechnet
   *[other] { $count } Iterationen wurden doppelt gerechnet
  }{ $time ->
    [known] , etwa { $time_ms }
   *[unknown] {""}
  }
rule-repeated-work-text = Der Lauf hatte iter { $end_iter } erreicht und wurde ab seinem letzten Checkpoint bei iter { $first_iter } fortgesetzt. { $saving ->
    [best] nanoGPT hatte danach noch evaluiert, aber nicht gespeichert, weil der val loss nicht der bisher beste war. always_save_checkpoint=True behält den letzten Stand, überschreibt aber den besten.
    [every] nanoGPT speichert beim Evaluieren: Mit kleinerem eval_interval geht bei einem Abbruch weniger verloren, dafür gibt es mehr Evaluationen.
   *[often] Mit Checkpoints in kürzeren Abständen geht bei einem Abbruch weniger verloren.
  }

## What a log cannot show

cannot-data-wait = Wie lange das Training auf Daten wartete: nanoGPT misst das nicht.
cannot-unprinted = Die Zeit jeder Iteration: Nur einige werden ausgegeben; für die übrigen wird dieselbe Dauer angenommen.
cannot-device = Auf welchem Gerät das Training lief: Die mfu bezieht sich auf die 312 TFLOP/s einer A100. Das Gerät mit --device angeben.
cannot-split = Wie sich die zusätzliche Zeit auf Evaluation und Checkpoint verteilt: Beide kommen immer zusammen, und keine Zeile trägt eine Uhrzeit.
cannot-last-micro-batch = Wie hoch der Loss einer ganzen Iteration ist: nanoGPT gibt den des letzten Micro-Batches aus.
cannot-wall-clock = Was außerhalb der Schleife geschah (Importe, Laden der Daten, das Ende): Keine der erkannten Zeilen trägt eine Uhrzeit.
cannot-no-times = Wo die Zeit geblieben ist: Die erkannten Zeilen enthalten weder Zeiten noch Zeitstempel.
cannot-evals-unprinted = Was die Evaluationen kosteten und damit auch, wie lange der Lauf dauerte: Sie fallen auf Iterationen, die nicht ausgegeben werden.
cannot-no-numbers = Zu welchem Schritt eine Zeile gehört: Das Log gibt es nicht an. Gezählt sind stattdessen die Einträge mit einem Loss, ab 0.
cannot-no-evals = Ob das Modell generalisiert: Keine der erkannten Zeilen ist eine Evaluation.
cannot-ranks = Welcher Prozess langsam ist und wie viel der Zeit Kommunikation ist: Das wird nur mit DDP auf CPUs gemessen.
cannot-format-nanochat = Evaluationen, Samples und Checkpoints: dt und total time von nanochat lassen sie aus; der Loss ist geglättet.
cannot-format-modded-nanogpt = Was Validierung und Anlaufzeit kosten: Der Timer wird dafür angehalten.
cannot-format-untimed-validation = Was die Validierung kostet: Der Timer wird dafür angehalten.
cannot-format-llm-c = Was Validierung und Checkpoints kosten: Gemessen werden nur Schritte.
cannot-format-litgpt = Wartezeiten auf Daten: Die Zeit einer Iteration beginnt erst, wenn ihr Batch geladen ist.
cannot-format-torchtitan = Einzelne Schritte: Die Werte sind Mittelwerte seit der vorigen Zeile, und ein Checkpoint fällt in die nächste.
cannot-format-hf-trainer = Wie lange ein Schritt und ein Checkpoint dauern: Das wird nicht ausgegeben. Ein Loss von NaN wird standardmäßig durch einen Mittelwert ersetzt.
cannot-format-lightning = Einzelne Schritte: Der Balken zeigt ganze Sekunden und eine mittlere Rate.
cannot-format-composer = Was ein Checkpoint kostet: Er zählt zum nächsten Batch.
cannot-format-lingua = Was eine Evaluation oder ein Checkpoint kostet: Beides drückt die Rate der nächsten Zeile.
cannot-format-mingpt = Was Sampling und Speichern kosten: Die ausgegebene Zeit ist die der vorigen Iteration.
cannot-format-char-rnn = Was Evaluationen und Checkpoints kosten: Sie werden nicht gemessen.
cannot-format-megatron = Was Validierung und Checkpoints kosten, sofern es nicht in eigenen Zeilen steht.
cannot-format-keras = Einzelne Schritte und was eine Evaluation kostet: Es gibt eine Zeile pro Epoche, und deren Zeit enthält die Evaluation.
cannot-format-one-line-per-epoch = Einzelne Schritte: Es gibt eine Zeile pro Epoche, die hier als eine Iteration zählt.
cannot-format-timm = Was Checkpoints kosten: Gemessen werden nur Schritte und Evaluationen. Die Zeit eines Schritts enthält das Warten auf Daten.
cannot-format-metric-logger = Einzelne Schritte: Der Loss ist der Median und die Zeit das Mittel der letzten 20. Die Zeit enthält das Warten auf Daten.
cannot-format-detectron2 = Was Evaluationen und Checkpoints kosten: Gemessen werden nur Schritte. Die Losses sind Mediane der letzten 20 Schritte.
cannot-format-mmengine = Einzelne Schritte: Zeiten und Losses sind Mittelwerte über mehrere. Die Zeit enthält das Warten auf Daten.
cannot-format-ultralytics = Einzelne Schritte: Es gibt eine Zeile pro Epoche.
cannot-format-summed-loss = Der Loss, der minimiert wird, als eine Zahl: Er ist hier die Summe der ausgegebenen Teile.
cannot-format-tensorflow = Einzelne Schritte: Die Zeiten sind Mittelwerte über die Schritte seit der vorigen Zeile.
cannot-format-pytorch-examples = Was Evaluationen kosten: Gemessen werden allenfalls Schritte. Das MNIST-Beispiel zählt Samples statt Schritte.
cannot-format-general = Was die übrigen Spalten bedeuten: Gelesen wurden nur die mit eindeutiger Bedeutung.
cannot-format-deepspeed = Was Evaluationen und Checkpoints kosten: DeepSpeed misst nur seine Schritte.
cannot-format-olmo = Einzelne Schritte von OLMo (nicht OLMo-core): Die Raten sind Mittelwerte über die letzten Batches.
cannot-format-nanotron = Was ein Checkpoint kostet: Gemessen werden nur Schritte. Die Werte werden mit drei Stellen ausgegeben.
cannot-format-fairseq = Einzelne Updates: Die Werte sind Mittelwerte. Die meisten Loss-Funktionen (criterions) geben den Loss zur Basis 2 aus.
cannot-format-minimind = Wie lange ein Schritt dauert: epoch_time ist die Restzeit der Epoche in ganzen Minuten.
cannot-format-espnet = Einzelne Batches: Die Werte sind Mittelwerte über die Batches einer Zeile.
cannot-format-time-series = Was eine Evaluation kostet: Die erste Geschwindigkeit einer Epoche enthält sie und zählt deshalb nicht mit.
cannot-next-line = Was eine Evaluation oder ein Checkpoint kostet: Das steckt in der Zeit der nächsten Zeile.
left-out-settings = Einstellungen nach den ersten { $most } Namen: Zeilen mit weiteren wurden verworfen ({ $count }).
left-out-events = Jede einzelne Meldung: Die aus der Mitte einer langen Reihe wurden gezählt, aber verworfen ({ $count }).
left-out-evals = Jede einzelne Evaluation: Von { $count } sind { $kept } erhalten, darunter die beste und die letzte. Anzahlen und Zeiten gelten für alle.
left-out-runs = Wo jeder Lauf begann: Gefunden wurden { $count } mehr als die { $most }, die unterschieden werden.

## --lines

lines-title = Zeile für Zeile (Zahlen so, wie das Log sie ausgibt)
line-iter = Gewichts-Update Nr. { $iter }, auf einem Batch.
line-loss = loss { $loss }: wie falsch die Vorhersagen für diesen Batch waren (Kreuzentropie; niedriger ist besser). Im Mittel bekam das richtige nächste Token eine Wahrscheinlichkeit von etwa e^-{ $loss } = { $chance }. Einzelne Batches schwanken; auf den Trend kommt es an.
line-loss-short = loss { $loss }
line-time = time { $time }: eine normale Iteration (üblich sind { $normal_ms }).
line-time-slow = time { $time }: { $excess_ms } mehr als die üblichen { $normal_ms }. Ursache: { $cause }.
line-mfu = mfu { $mfu }: gleitender Mittelwert des Anteils an den 312 TFLOP/s einer A100, den die Rechenarbeit des Modells genutzt hat.
line-mfu-short = mfu { $mfu }
line-mfu-none = mfu -100.00%: noch nicht gemessen; nanoGPT lässt die ersten fünf Iterationen aus.
line-mfu-worked = Eine normale Iteration, ohne Mittelung: { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP Rechenarbeit; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = Bezogen auf { $peak_tflops } TFLOP/s ({ $device }) sind das { $corrected_mfu }.
line-mfu-formula = Nach der Formel: (6 × { $parameters } Parameter + 12 × { $n_layer } Layer × Breite { $n_embd } × { $block_size } Tokens) × { $tokens } Tokens pro Iteration = { $work_tflop } TFLOP.
line-eval = Evaluation bei step { $iter }: mittlere Losses über viele Batches, ohne darauf zu trainieren und ohne Dropout.
line-eval-short = Evaluation bei step { $iter }.
line-eval-train = train loss { $train }: auf Daten, mit denen das Modell trainiert wird.
line-eval-train-short = train loss { $train }
line-eval-val = val loss { $val }: auf Daten, mit denen es nie trainiert wird. Auf diesen Wert kommt es an.
line-eval-val-short = val loss { $val }
line-eval-gap = Der Abstand zwischen beiden beträgt { $gap_loss }.
line-eval-best = Der bisher beste Wert.
line-eval-worse = Schlechter als step { $best_iter } ({ $best }).
line-save = Ein Checkpoint wurde gespeichert. Bei nanoGPT steckt das in der Zeit der nächsten Iteration.
line-save-short = Ein Checkpoint wurde gespeichert.
line-run = { $count } normale Iterationen wie diese, { $first } bis { $last }: loss { $first_value } bis { $last_value }, je { $low_ms } bis { $high_ms }.
line-unknown = { $count ->
    [one] Eine Zeile wurde nicht erkannt.
   *[other] { $count } Zeilen wurden nicht erkannt.
  }
cause-warmup = Anlaufzeit
cause-eval = Evaluation
cause-checkpoint = Checkpoint
cause-unexplained = ungeklärt

## The page of `report` and `watch`

page-language = Deutsch
page-language-choice = Sprache
page-labelled = { $label }: { $text }
page-unknown = k. A.
page-about = Log von { $format }, { $lines ->
    [one] eine Zeile
   *[other] { $lines } Zeilen
  }, { $understood } erkannt
page-level-good = in Ordnung
page-level-advice = einen Blick wert
page-level-problem = Problem
page-health-good = Kein Problem gefunden.
page-health-more = { $title }; dazu { $count ->
    [one] ein weiterer Befund
   *[other] { $count } weitere Befunde
  }
page-health-waiting = Noch steht keine Iteration im Log.
page-health-failed = Der Lauf endete mit einem Fehler: { $detail }
page-health-killed = Der Prozess endete ohne Meldung, vermutlich per kill. Falls er einen Checkpoint gespeichert hat, lässt sich der Lauf von dort fortsetzen.
page-state = Status
# A state and how far the run came: "fertig, 600 Iterationen", "fehlgeschlagen, bis iter 5000".
page-state-running = läuft
page-state-finished = fertig
page-state-target = Ziel erreicht
page-state-patience = beendet, keine Verbesserung mehr
page-state-signal = durch ein Signal beendet
page-state-failed = fehlgeschlagen
page-state-oom = Speicher erschöpft
page-state-error = mit einem Fehler beendet
page-state-killed = ohne Meldung beendet
page-state-waiting = wartet auf die erste Iteration
page-state-imported = importiertes Modell, hier noch nicht trainiert
page-state-unknown = unbekannt
page-done = { $count ->
    [one] eine Iteration
   *[other] { $count } Iterationen
  }
page-done-of = { $count } von { $max ->
    [one] einer Iteration
   *[other] { $max } Iterationen
  }
page-up-to = bis iter { $number }
page-live = live
page-lost = keine Verbindung, neuer Versuch läuft
page-run = Lauf
page-runs = Läufe
page-no-runs = Hier gibt es noch keinen Lauf. Sobald einer beginnt, erscheint er.
page-loss = Loss
page-iterations = Dauer jeder Iteration
page-speed = Geschwindigkeit
page-inside = Innerhalb des Schritts
page-samples = Samples
page-ranks = Prozesse
page-rank = Rank { $rank }
page-ranks-run = Ganzer Lauf
page-ranks-newest = Neueste Messung, iter { $number }
page-ranks-compute = Rechnen
page-ranks-communication = Kommunikation
page-ranks-waiting = Warten auf den langsamsten
page-ranks-eval = Evaluation
page-ranks-about = Zeit eines Updates. Der langsamste Prozess rechnet { $imbalance }-mal so lange wie der Durchschnitt. Kommunikation ist die Wartezeit des Prozesses, der als letzter fertig ist.
page-ranks-some = Von { $count } Prozessen sind die { $shown } langsamsten gezeigt.
page-settings = Einstellungen und Rechner
page-config = Einstellungen
page-environment = Rechner und Modell
page-chart-loss = Trainings- und Validierungs-Loss
page-chart-shares = Zeitanteile im Verlauf des Laufs
page-chart-time = Zeit pro Iteration
page-chart-tokens = Tokens pro Sekunde
page-chart-mfu = MFU des Trainingsschritts
page-chart-lr = Lernrate
page-chart-grad = Gradientennorm
page-chart-memory = Speicher
page-log-scale = logarithmisch
page-keys = Pfeiltasten bewegen den Cursor, Plus und Minus zoomen, 0 zeigt alles.
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
page-band = Das Band um den Validierungs-Loss zeigt seinen Standardfehler.
page-best = bester Wert { $loss } (iter { $number })
page-iteration = iter { $number }
page-train-loss = Trainings-Loss { $loss }
page-smoothed = geglättet { $loss }
page-val-loss = Validierungs-Loss { $loss } (iter { $number })
page-slow-because = langsam wegen: { $cause } (normal: { $normal })
page-normal = Eine normale Iteration dauert { $normal }. Mit der Maus auf eine Spitze zeigen, um die Ursache zu sehen.
page-mfu = { $value } in einem normalen Schritt; Spitzenleistung: { $source }
page-peak-device = { $peak } TFLOP/s, laut Tabelle für { $device }
page-peak-assumed = { $peak } TFLOP/s, vom Trainer angenommen; das Log nennt kein Gerät
page-copy = kopieren
page-copied = kopiert
page-outcome-loss = letzter Trainings-Loss
page-outcome-iters = letzte Iteration
page-outcome-normal = normale Iteration
page-outcome-wall = Laufzeit
page-outcome-mfu = MFU
page-ended = beendet, es kommt nichts mehr
page-figure-loss = Loss jetzt
page-figure-best = bester Validierungs-Loss
page-figure-bits = Bits pro Byte
page-figure-tokens = Tokens pro Sekunde
page-figure-step = Zeit pro Schritt
page-figure-parameters = Parameter
page-figure-left = verbleibende Zeit
page-differences = { $count ->
    [one] eine Einstellung ist verschieden
   *[other] { $count } Einstellungen sind verschieden
  }
page-verdict = Urteil
page-sort = nach dieser Spalte sortieren
page-winner-best = ist der beste Lauf: Validierungs-Loss { $loss }.
page-winner-bits = ist der beste Lauf: { $loss } Bits pro Byte.
page-winner-loss = ist der beste Lauf: Trainings-Loss { $loss }.
page-lead = Der nächste ist { $name }, um { $loss } schlechter.
page-no-winner = Es ist nicht sicher, dass die Läufe dieselben Daten und Tokens haben, daher gibt es keine Rangfolge ihrer Losses.
page-outcome-best = bester Validierungs-Loss
page-outcome-at = bei Iteration
page-outcome-bits = Bits pro Byte
page-outcome-tokens = Tokens pro Sekunde
page-outcome-parameters = Parameter
page-all-runs = { $count ->
    [one] in diesem Lauf
   *[other] in allen { $count } Läufen
  }
page-quoted = (die Zahlen stammen von { $name })
page-all-samples = { $count ->
    [one] ein Sample
   *[other] alle { $count } Samples
  }
page-val-only = Validierungs-Loss { $loss }
page-csv = die sichtbaren Zeilen als CSV herunterladen
page-whole-range = ganzer Bereich
page-cut = Losses bis { $highest } liegen oberhalb der Achse: hineinzoomen oder „ganzer Bereich“ ankreuzen.
page-axis-tokens = Tokens
page-axis-flops = FLOPs
page-tick = Zum Vergleichen zwei bis acht Läufe ankreuzen.
page-compare-ticked = { $count ->
    [one] einen Lauf vergleichen
   *[other] { $count } Läufe vergleichen
  }
page-iterations-done = Fortschritt
page-changed = letzte Änderung
page-thinned = Von { $total } Iterationen enthält diese Datei { $drawn }: zu jeder Größe die mit dem niedrigsten und dem höchsten Wert jedes Abschnitts. Die Summen enthalten alle Iterationen.
page-thinned-live = Von { $total } Iterationen sind { $drawn } gezeichnet, darunter die mit dem niedrigsten und dem höchsten Wert jedes Abschnitts. Beim Hineinzoomen erscheint jede einzelne.

## `stepglass advise`

advise-type = Eingeben:
advise-change = An die Kommandozeile von { $name } anhängen:
advise-keep = Die Einstellungen von { $name } beibehalten: Bessere sind nicht bekannt.
advise-about = { $is_known ->
    [no] Unbekanntes Gerät (mit --device angeben)
   *[yes] { $device } ({ $has_memory ->
        [no] Speicher unbekannt
       *[yes] { $device_bytes }
      }{ $has_peak ->
        [no] {""}
       *[yes] , { $tflops } TFLOP/s in { $dtype }
      })
  }: Modell { $model } mit { $parameters } Parametern, { $tokens } Tokens pro Update
advise-expect-title = Was zu erwarten ist
advise-expect-ms-per-iter = ein Update
advise-expect-tokens-per-s = Tokens pro Sekunde
advise-expect-mfu = MFU
advise-expect-memory-gb = Speicher
advise-expect-hours = ganzer Lauf
advise-expect-updates = Updates
advise-expect-device = Gerät
advise-days = { $count ->
    [one] ein Tag
   *[other] { $count } Tage
  }
advise-basis-measured = gemessen
advise-basis-calculated = berechnet
advise-basis-estimated = geschätzt
advise-why-title = Warum
advise-note = Die Schätzungen stammen aus Formeln, die an öffentliche Logs angepasst sind und dort um bis zu { $error_percent } danebenliegen. Für genauere Werte 20 Updates lang trainieren (--max_iters=20) und mit dem Lauf noch einmal fragen: stepglass advise LAUF
advise-unknown-time = Wie schnell dieses Gerät ist, ist noch nicht bekannt. Mit --measure wird hier ein paar Updates lang trainiert und dabei gemessen.
advise-written = { $path } ist geschrieben. Damit trainieren: stepglass train { $path }
advise-why-max-iters = { $tokens } Tokens in { $number ->
    [one] einem Update
   *[other] { $max_iters } Updates
  }: { $ratio } pro Parameter{ $has_epochs ->
    [yes] , { $epochs } Durchgänge durch { $dataset }
   *[no] {""}
  }. { $variant ->
    [few] Das ist wenig: Am besten genutzt ist die Rechenleistung bei etwa 20 pro Parameter, hier max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }.
    [many] Am besten genutzt ist die Rechenleistung bei etwa 20 pro Parameter, hier max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }; danach sinkt der Loss noch, aber immer langsamer.
    [epochs] Am besten genutzt ist die Rechenleistung bei etwa 20 pro Parameter, hier max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }; nach etwa 4 Durchgängen (max_iters={ $four }) hilft es immer weniger, die Daten zu wiederholen.
    [little-data] Das sind wenig Daten für dieses Modell: Nach etwa 4 Durchgängen (max_iters={ $four }) hilft es immer weniger, sie zu wiederholen.
   *[fine] Am besten genutzt ist die Rechenleistung bei etwa 20 pro Parameter.
  }{ $is_sure ->
    [no] {" "}Das Vokabular von { $dataset } ist nicht bekannt; angenommen: { $vocab }.
   *[yes] {""}
  }
advise-why-device = { $variant ->
    [sizes] Angenommen: { $device_bytes }. Das Gerät gibt es auch mit { $sizes } GB: { $other }
    [named] Das Log stammt von einem anderen Gerät: { $name }. Seine Zeiten wurden nicht verwendet.
    [speed] Das Log zeigt { $tflops } TFLOP/s, aber dieses Gerät schafft höchstens { $most }: Das Log stammt von einem anderen. Seine Zeiten wurden nicht verwendet.
    [cuda] Das Log stammt von einer CUDA-GPU. Seine Zeiten wurden nicht verwendet.
    [mps] Das Log stammt von einer Apple-GPU. Seine Zeiten wurden nicht verwendet.
   *[cpu] Das Log stammt von einer CPU. Seine Zeiten wurden nicht verwendet.
  }
advise-why-minutes = { $variant ->
    [unknown] Wie schnell dieses Gerät ist, ist nicht bekannt; darum ist die Zahl der Updates offen. stepglass train misst die Geschwindigkeit und hält die Zeit ein.
    [small] Für so viel Zeit sind es zu wenig Daten: stepglass train endet nach { $number ->
        [one] einem Update
       *[other] { $max_iters } Updates
      } ({ $epochs } Durchgänge durch { $dataset }).
   *[fit] { $number ->
        [one] Etwa ein Update passt
       *[other] Etwa { $max_iters } Updates passen
      } in die Zeit, Evaluationen eingerechnet. stepglass train misst die Geschwindigkeit selbst und hält die Zeit ein.
  }
advise-why-epochs = Durchgänge durch { $dataset }: { $number ->
    [one] Das ergibt ein Update
   *[other] Das ergibt { $max_iters } Updates
  }.
advise-why-nproc = { $variant ->
    [found] Das Log nennt die MFU einer einzelnen GPU, aber insgesamt ist der Lauf so schnell wie { $processes } GPUs. Auch hier gelten MFU und Speicher pro GPU.
    [measured] { $processes } GPUs teilen sich jedes Update. MFU und Speicher gelten pro GPU.
   *[asked] { $processes } GPUs teilen sich jedes Update. MFU und Speicher gelten pro GPU. Die Zeit für den Austausch der Gradienten ist nicht bekannt und nicht mitgezählt.
  }
advise-why-batch-size = { $variant ->
    [whole] Alle Sequenzen eines Updates passen auf einmal in den Speicher: { $need_bytes } von { $device_bytes }.
    [asked] Wie verlangt. Nötig sind { $need_bytes } von { $device_bytes }; { $fits } würden passen.
    [asked-unknown] Wie verlangt. Nötig sind { $need_bytes }.
    [busy] Wie im Lauf. { $fits } würden auch passen, aber das Gerät ist schon ausgelastet: Ein Token würde etwa gleich lange dauern.
    [oom] Mit { $ran } ging dem Lauf der Speicher aus. Nötig sind hiermit { $need_bytes }.
    [tried] Der schnellste von denen, die hier für { $wanted } Sequenzen pro Update ausprobiert wurden.
    [kept] Unverändert: Es passt in den Speicher, und auf einer CPU sind größere Batches kaum schneller.
    [unknown] Unverändert: Wie viel Speicher das Gerät hat, ist nicht bekannt.
   *[largest] Der größte Batch, der das Update gleichmäßig teilt und passt: { $need_bytes } von { $device_bytes }. { $margin_percent } bleiben frei: Der Allocator behält freigegebene Blöcke, und ein Desktop braucht auch etwas.
  }
advise-why-gradient-accumulation-steps = { $accumulation } × { $batch } Sequenzen × { $block_size } = { $tokens } Tokens pro Update, { $variant ->
    [same] wie gewünscht.
   *[other] statt { $wanted_tokens }.
  }
advise-why-dtype = { $variant ->
    [asked] Wie verlangt.
    [cpu] Das schnellste genaue Format auf einer CPU.
    [mps] Das sichere Format auf einer Apple-GPU.
    [float16] Die GPU ({ $device }) hat keine bfloat16-Einheiten. float16 braucht Loss Scaling, das der Trainer übernimmt.
   *[bfloat16] Damit sind die Tensor-Kerne am schnellsten, und der Loss muss nicht skaliert werden.
  }
advise-why-compile = { $variant ->
    [asked] Wie verlangt.
    [mps] Auf einer Apple-GPU nicht erprobt.
    [unknown] { $device ->
        [cuda] Auf einer GPU lohnt es sich bei Läufen von mehr als ein paar Minuten.
       *[cpu] Auf einer CPU spart es wenig, und wie lange der Lauf dauert, ist nicht bekannt.
      }
    [short] Das Kompilieren dauert etwa { $compile_ms } und würde etwa { $saved_ms } sparen (Lauf ohne Kompilieren: { $run_ms }).
   *[pays] Das Kompilieren dauert etwa { $compile_ms } und spart etwa { $saved_ms } (Lauf ohne Kompilieren: { $run_ms }).
  }
advise-why-eval-interval = Eine Evaluation dauert so lange wie { $cost } Updates{ $has_time ->
    [yes] {" "}({ $each_ms })
   *[no] {""}
  }. { $number ->
    [one] Nach jedem Update
   *[other] Alle { $interval } Updates
  } kostet das { $eval_share } der Zeit{ $variant ->
    [asked] , wie verlangt; { $budget_share } sind ein gutes Budget.
    [short] ; der Lauf ist kurz, und erst vier Evaluationen zeigen eine Kurve.
   *[budget] ; das Budget ist { $budget_share }.
  }
advise-why-eval-iters = { $number ->
    [one] Eine Sequenz
   *[other] { $windows } Sequenzen
  } aus jedem Split in Batches zu { $batch }{ $variant ->
    [same] , so viele wie vorher.
   *[other] .
  }
advise-why-checkpoint-interval = { $variant ->
    [asked] Wie verlangt.
    [nanogpt] nanoGPT speichert nach Evaluationen (ohne eigene Einstellung), und das Training wartet etwa { $wait_ms } auf { $state_bytes }.
    [unknown] Höchstens zwei Minuten Arbeit stehen auf dem Spiel; { $state_bytes } werden im Hintergrund geschrieben.
   *[time] Bei einem Absturz gehen höchstens { $every_ms } Arbeit verloren. Das Training wartet beim Speichern etwa { $wait_ms }; die { $state_bytes } werden im Hintergrund geschrieben.
  }
advise-why-ms-per-iter = { $variant ->
    [same] Mit diesen Einstellungen gemessen, { $speed }.
    [sequences] Gemessen: { $measured_ms } mit batch_size={ $batch }; umgerechnet auf die Zahl der Sequenzen.
    [faster] Gemessen: { $measured_ms } mit batch_size={ $batch } ({ $speed }). Mit { $changes } dürfte es { $gain_percent } schneller sein.
    [scaled] Gemessen: { $measured_ms } mit batch_size={ $batch } ({ $speed }). Diese Einstellungen dürften etwa gleich schnell sein.
    [launch] Die Kernel zu starten dauert länger, als sie zu rechnen: { $launch_ms }; Optimizer { $optimizer_ms }.
    [unknown] Wie schnell dieses Gerät ist, ist nicht bekannt.
   *[model] Matrixprodukte { $matrix_ms }, Aktivierungen durch den Speicher bewegen { $memory_ms }, Optimizer { $optimizer_ms }.
  }
advise-why-memory-gb = Gewichte { $weights_bytes }, Gradienten { $gradients_bytes }, Optimizer { $optimizer_bytes }, Aktivierungen { $activations_bytes }, Logits { $logits_bytes }, Kontext { $context_bytes }.
advise-why-hours = { $number ->
    [one] Ein Update
   *[other] { $max_iters } Updates
  } mit Evaluationen ({ $eval_share } der Zeit) und Checkpoints.
