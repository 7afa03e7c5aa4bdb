# Ce que dit `stepglass explain`. Les valeurs arrivent mises en forme (durées, pertes, numéros d'itération)
# sauf $count, $lines, $understood, $more et $replayed, qui sont des nombres et commandent les accords.
# Les noms de réglages (eval_interval) et les mots du log (iter, step, time, mfu) ne se traduisent pas.
# Espace insécable (U+00A0) devant : ; ? ! % et devant une unité ; conseils à l'infinitif.
#
# Glossaire
# iteration : itération ; « iter 500 », comme dans le log, est féminin (« iter 500 est lente »)
# step : step (masculin), seul comme avec son numéro (« au step 500 »), jamais « pas » : « pas d'entraînement » se lit comme
# une négation
# run : un run, jamais « un entraînement » ni « une exécution »
# training : l'entraînement (l'activité ; step, perte et jeu d'entraînement)
# loss : la perte ; « loss », « train loss », « val loss » pour la colonne du log, au féminin
# validation loss : perte de validation
# evaluation : évaluation
# checkpoint : checkpoint (masculin), qu'on sauvegarde, qu'on écrase et auquel on revient
# batch, micro-batch : batch, pluriel batchs
# start-up (compilation, mémoire, premier batch) : démarrage, jamais « warmup »
# warm-up (learning rate) : warmup du taux d'apprentissage
# learning rate : taux d'apprentissage ; « learning_rate » pour le réglage
# schedule : schedule (masculin) ; decay : décroissance ; floor : plancher
# stall : blocage ; l'itération « est restée bloquée »
# slowdown : ralentissement ; ordinary, usual : normal, d'habitude
# spike : pic (de perte ou de temps)
# peak (TFLOP/s) : performance crête ou crête (« pic » est pris par spike)
# device : matériel ; « GPU » seulement quand c'en est un
# noise, noisy : bruit, bruité
# gradient norm : norme du gradient ; clipping, clipped : clipping, clippé
# overflow : débordement
# weight update : mise à jour des poids ; skipped : sautée
# overfitting : surapprentissage
# text (seen, new) : données, car le log peut venir d'un modèle d'images
# trainer : trainer ; log : log (jamais « journal ») ; line : ligne ; column : colonne
# printed : affiché ; understood : reconnu ; timestamp : horodatage
# wall clock : durée totale ; elapsed : temps écoulé ; total (somme de temps affichés) : total
# settings : réglages (« paramètres » : ceux du modèle)
# finding : constat ; problem, advice, note : problème, conseil, info
# established, supported, hypothesis : fait établi, probable, hypothèse (sans accord avec le niveau)
# epoch : epoch (féminin) ; label, worker, shape, loss scale : idem
# process : processus ; rank : le rank, avec son numéro (le rank 3)
# garbage collector : garbage collector ; kernel, token, dropout, forward, backward, shard : idem
# tokens au-delà du million : M, Md

## The frame

log-is = { $name } : { $format }, { $lines ->
    [one] { $lines } ligne
   *[other] { $lines } lignes
  }, { $understood ->
    [one] { $understood } reconnue
   *[other] { $understood } reconnues
  } ({ $share })
log-segments = { $count ->
    [one] un seul run
   *[other] { $count } runs successifs (le numéro d'itération revient en arrière, ou le log le dit)
  }
columns-taken = Trainer inconnu. Sens attribué aux colonnes : { $columns }
segment-title = Run { $number }{ $unit ->
    [entry] {""}
    [epoch] { $span ->
        [one] {""} : epoch { $first }
       *[many] {""} : epochs { $first } à { $last }
      }
   *[step] { $span ->
        [one] {""} : itération { $first }
       *[many] {""} : itérations { $first } à { $last }
      }
  }
answer-problem = Problème : { $title }
answer-advice = À améliorer : { $title }
answer-note = Aucun problème détecté. { $title }
answer-fine = Aucun problème détecté.
answer-error = Problème : le run s'est terminé par une erreur (ligne { $line }) : { $detail }
answer-interrupted = Aucun problème détecté ; le run a été interrompu (ligne { $line }).
answer-step = { $counts ->
    [epochs] Une epoch prend { $normal_ms }.
    [micro-batches] Une itération prend { $normal_ms } ; une mise à jour en compte plusieurs.
   *[steps] Un step d'entraînement prend { $normal_ms }.
  }
answer-mean = Un step prend { $mean_ms } en moyenne d'après { $clock }.
answer-run-mean = { $counts ->
    [epochs] Une epoch prend { $mean_ms } en moyenne, tout compris.
   *[other] Un step prend { $mean_ms } en moyenne, tout compris.
  }
answer-no-step = Aucune des lignes reconnues ne dit combien de temps prend un step.
answer-see = Que faire : voir ci-dessous.
answer-keep = Ce log ne montre rien à changer.
ends-with = terminé par une erreur (ligne { $line }) : { $detail }
val-losses = { $figure ->
    [bpb] validation, en bits par octet
   *[loss] perte de validation
  } : { $which ->
    [only] { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }
    [best] meilleure valeur { $best_loss } { $best_iter ->
        [none] (la dernière)
       *[other] (step { $best_iter }, la dernière)
      }
   *[both] meilleure valeur { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }, dernière { $last_loss } (step { $last_iter })
  }
unit-epoch = epoch
unit-entry = relevé
loss-row = perte
time-row = temps
where-title = Où est passé le temps
basis-run-log = d'après le log du run, qui compte chaque milliseconde
basis-timestamps = d'après les horodatages du log
basis-wall-clock = d'après la durée totale indiquée par le log
basis-clock = d'après l'horloge du log, { $clock }
basis-bar = d'après le temps écoulé qu'affiche la barre de progression
basis-printed = somme des temps affichés
basis-estimated = estimation : les itérations non affichées sont supposées semblables aux autres
covers-run = run complet
covers-loop = { $unit ->
    [epoch] { $span ->
        [one] epoch { $first }
       *[many] epochs { $first } à { $last }
      }
   *[step] { $span ->
        [one] itération { $first }
       *[many] itérations { $first } à { $last }
      }
  }
covers-loop-unnumbered = itérations affichées
covers-timed = { $unit ->
    [epoch] { $span ->
        [one] steps et évaluations de l'epoch { $first }
       *[many] steps et évaluations des epochs { $first } à { $last }
      }
   *[step] { $span ->
        [one] step et évaluations de l'itération { $first }
       *[many] steps et évaluations des itérations { $first } à { $last }
      }
  }
covers-timed-unnumbered = steps et évaluations affichés
covers-steps = { $span ->
    [one] step d'entraînement { $first } seulement, sans les évaluations ni les checkpoints
   *[many] steps d'entraînement { $first } à { $last } seulement, sans les évaluations ni les checkpoints
  }
covers-steps-unnumbered = steps d'entraînement affichés seulement, sans les évaluations ni les checkpoints
clock-of-bar = le temps écoulé qu'affiche la barre de progression
clock-without = { $clock }, qui ne compte pas : { $phases }
phase-step = steps d'entraînement
phase-eval = évaluations
phase-checkpoint = checkpoints
phase-eval-checkpoint = évaluations et checkpoints
phase-warmup-eval = démarrage et première évaluation
phase-warmup = démarrage
phase-rest = tout le reste
phase-all = entraînement, tout compris
phase-stall = blocages inexpliqués
phase-unattributed = non attribué
phase-data = attente des données
phase-forward_backward = passes forward et backward
phase-optimizer = optimiseur
phase-log = écriture du log
phase-gc = garbage collector de Python
phase-other = autre
within-communication = dont communication
within-waiting = dont attente du plus lent
wall-clock = durée totale
total = total
findings-title = Constats
no-findings = Aucun problème détecté.
status-established = fait établi
status-supported = probable
status-hypothesis = hypothèse
level-problem = problème
level-advice = conseil
level-note = info
lines-cited = { $count ->
    [one] ligne { $lines }
   *[other] lignes { $lines }
  }
lines-more = { $lines } et { $more } de plus
grade-run = run { $number }
grade-is = { $level }, { $status }
grade-cites = { $level }, { $status } ; { $cited }
change-is = À essayer : { $flags }
cannot-title = Ce que ce log ne peut pas montrer
cannot-more = ({ $count } de plus avec --all)
top-findings = À retenir (détails : stepglass explain { $run }) :

## Rules

rule-eval-inside-iteration-title = { $cost ->
    [share] { $includes ->
        [together] Les évaluations et les checkpoints prennent { $eval_share } du temps ; iter { $iter } est lente parce qu'elle comprend les deux
       *[other] Les évaluations prennent { $eval_share } du temps ; iter { $iter } est lente parce qu'elle en comprend une
      }
    [ratio] iter { $iter } est lente parce qu'elle comprend une évaluation, soit { $each_iters } fois le temps d'une itération
   *[low] { $place ->
        [window] Les { $window } itérations jusqu'à iter { $iter } ne sont pas lentes : leur temps moyen comprend une évaluation
       *[one] iter { $iter } n'est pas une itération lente : son temps comprend une évaluation
      }
  }
rule-eval-inside-iteration-text = { $place ->
    [window] Le temps affiché est la moyenne de tout ce qui s'est passé depuis la ligne précédente.
   *[one] Le chronomètre tourne de la fin d'une itération à la fin de la suivante.
  } Pour { $count ->
    [one] cette ligne
   *[other] ces { $count } lignes
  }, il compte aussi { $evidence ->
    [inferred] une évaluation que le log n'affiche pas
   *[printed] l'évaluation affichée juste avant
  }{ $includes ->
    [eval] {""}
   *[other] {" "}et, quand une ligne le dit, un checkpoint
  }. Sur les { $time_ms } { $place ->
    [window] des { $window } itérations jusqu'à iter { $iter }
   *[one] d'iter { $iter }
  }, { $excess_ms } viennent de là{ $includes ->
    [split] {" "}(environ { $eval_ms } d'évaluation et { $save_ms } de checkpoint)
   *[other] {""}
  } ; une itération normale prend { $normal_ms }. { $cost ->
    [low] Pour avoir moins de lignes de ce genre, augmenter eval_interval (le réduire en donne davantage) ; pour les raccourcir, réduire eval_iters.
   *[other] Une évaluation prend { $each_iters } fois le temps d'une itération et revient toutes les { $interval } itérations. { $advice ->
        [interval] Avec eval_interval={ $wanted }, ce serait environ 5 % du temps.
        [batches] Avec eval_iters={ $wanted }, ce serait environ 5 % du temps, mais avec des pertes plus bruitées.
        [rarer] eval_interval={ $wanted } laisse quatre évaluations dans ce run ; réduire eval_iters raccourcit chacune d'elles.
       *[none] Évaluer moins souvent (eval_interval plus grand) ou sur moins de batchs (eval_iters plus petit).
      }
  }{ $saves_worse ->
    [yes] {" "}Des checkpoints ont été sauvegardés alors que la val loss n'était pas la meilleure jusque-là : always_save_checkpoint=False ne sauvegarde que les meilleurs.
   *[no] {""}
  }{ $last ->
    [mfu] {" "}Le log se termine par une ligne de ce genre : retenir { $normal_ms } par itération et un mfu de { $clean_mfu }, et non ses { $last_time_ms } et ses { $printed_mfu }.
    [time] {" "}Le log se termine par une ligne de ce genre : retenir { $normal_ms } par itération, et non ses { $last_time_ms }.
   *[no] {""}
  }

rule-mfu-echo-title = { $variant ->
    [changed] Le creux du mfu à iter { $iter } est l'écho d'une seule ligne lente
   *[plain] Le creux du mfu est l'écho d'une seule ligne lente, pas un ralentissement
  }
rule-mfu-echo-text = Le mfu affiché est une moyenne glissante : neuf dixièmes de l'ancienne valeur, un dixième de la nouvelle. La ligne lente d'iter { $iter } l'a fait passer de { $before_mfu } à { $printed_mfu }, et il lui faut une vingtaine de lignes pour remonter. Recalculer la moyenne à partir des temps affichés redonne les { $replayed } valeurs affichées.{ $variant ->
    [changed] {""}
   *[plain] {" "}La vitesse, elle, n'a pas changé : { $clean_mfu }.
  }

rule-warm-up-title = { $variant ->
    [several] Les { $count } premières itérations comprennent le démarrage
    [window] Les { $count } premières itérations comprennent le démarrage
   *[other] iter { $iter } comprend le démarrage
  }
rule-warm-up-text = { $variant ->
    [eval] Les { $time_ms } de la première itération correspondent à son évaluation et à un step normal ({ $normal_ms }). Le démarrage lui-même se voit à peine.
    [both] La première itération a pris { $time_ms } : environ { $warmup_ms } de démarrage, { $eval_ms } d'évaluation et un step de { $normal_ms }.
    [together] La première itération a pris { $time_ms } : le démarrage et l'évaluation de l'itération 0, ensemble. Aucune évaluation ultérieure de ce log ne montre ce que coûte une évaluation seule ; un step normal prend { $normal_ms }.
    [window] Elles ont pris { $time_ms } chacune en moyenne, les suivantes { $normal_ms } : { $warmup_ms } de démarrage en tout.
    [several] Elles ont pris jusqu'à { $time_ms }, les suivantes { $normal_ms } : { $warmup_ms } de démarrage en tout.
    [line] La première ligne affiche { $time_ms }, les suivantes { $normal_ms }. Elle comprend sans doute le démarrage.
   *[plain] La première itération a pris { $time_ms }, les suivantes prennent { $normal_ms }.
  } Le démarrage, c'est { $work ->
    [compile] surtout la compilation du modèle (torch.compile), puis la mémoire, les kernels et le premier batch
    [any] ce qui n'a lieu qu'une fois : compiler le modèle (s'il est compilé), allouer la mémoire, charger les kernels, lire le premier batch
    [data] ce qui n'a lieu qu'une fois. Ici, c'était surtout l'attente des données : ouvrir le jeu de données et lire les premiers batches
   *[first-use] ce qui n'a lieu qu'une fois : allouer la mémoire, charger les kernels, lire le premier batch
  }.

rule-mfu-wrong-peak-title = { $variant ->
    [no-peak] Le mfu affiché compare ce run à un A100
   *[other] Le mfu affiché n'est pas calculé avec la bonne performance crête
  }
rule-mfu-wrong-peak-text = { $variant ->
    [other] Le log divise par { $assumed_tflops } TFLOP/s. Sur { $device } ({ $peak_tflops } TFLOP/s), les { $clean_mfu } d'une itération normale correspondent à { $corrected_mfu } (× { $assumed_tflops } / { $peak_tflops }).
    [over] Aucun matériel n'atteint { $printed_mfu } : le log divise par { $assumed_tflops } TFLOP/s, la performance crête d'un A100. Soit ce run a tourné sur un matériel plus rapide (l'indiquer avec --device pour obtenir le vrai chiffre), soit le temps affiché est trop court, parce que l'horloge a été lue avant la fin des calculs.
   *[no-peak] nanoGPT divise par { $assumed_tflops } TFLOP/s, la performance crête d'un A100, quel que soit le matériel. Sur { $device }, ce chiffre ne fait que comparer ce run à un A100{ $achieved ->
        [known] {""} ; le run a atteint { $achieved_tflops } TFLOP/s
       *[unknown] {""}
      }.
  }

rule-small-kernels-title = Le GPU attend peut-être du travail : les kernels sont petits
rule-small-kernels-text = Le GPU ({ $device }) atteint { $corrected_mfu } de sa performance crête, à { $normal_ms } par itération. Avec un modèle ou un micro-batch aussi petit, lancer les kernels peut prendre autant de temps que les exécuter. Dans ce cas, des batchs plus gros ne coûtent presque pas de temps en plus, et torch.compile aide.

rule-accumulation-waste-title = L'accumulation de gradients enchaîne de petits batchs
rule-accumulation-waste-text = { $accumulation } micro-batchs de taille { $batch } passent les uns après les autres, alors que moins de micro-batchs, plus gros, suffiraient. Les valeurs proposées gardent le même nombre de tokens par itération ({ $tokens_per_iter }) et demandent environ { $memory_bytes } de mémoire.

rule-slow-path-title = { $variant ->
    [attention] L'attention utilise l'implémentation lente
    [sdpa] L'attention passe par le SDPA de PyTorch au lieu de FlashAttention 3
    [compile] torch.compile a renoncé à compiler une partie du modèle
    [float32] L'entraînement en float32 est plus lent qu'en { $dtype }
   *[mps] Sur mps, nanoGPT calcule en float32, quelle que soit la valeur de dtype
  }
rule-slow-path-text = { $variant ->
    [attention] D'après le log, l'attention fusionnée n'est pas disponible : chaque couche écrit donc toute sa matrice d'attention en mémoire. L'attention fusionnée existe depuis PyTorch 2.0.
    [sdpa] D'après le log, FlashAttention 3 n'est pas disponible ici : il faut un GPU Hopper (H100) et le paquet correspondant. Le SDPA est fusionné lui aussi et donne le même entraînement ; il est plus lent, surtout avec des fenêtres glissantes.
    [compile] Le log contient { $count ->
        [one] un avertissement
       *[other] { $count } avertissements
      } signalant un retour au mode eager : la compilation prend du temps, mais cette partie ne tourne pas plus vite.
    [float32] Les produits de matrices en float32 sont au moins deux fois plus lents qu'en { $dtype }, et les activations prennent deux fois plus de mémoire.
   *[mps] nanoGPT désactive la précision mixte partout sauf sur CUDA. Rien d'anormal : s'attendre à la vitesse du float32.
  }

rule-data-bound-title = L'entraînement attend les données
rule-data-bound-text = L'attente des batchs a pris { $data_share } du temps des steps d'entraînement{ $variant ->
    [phases] {""}, { $total_ms } en tout
   *[plain] {""} : { $median_ms } par itération en médiane, { $worst_ms } au pire
  }. Garder les données sur un disque local ou en mémoire, et charger les batchs à l'avance.

rule-straggler-title = { $variant ->
    [pair] Le rank { $rank } est lent : l'autre processus l'attend
   *[plain] Le rank { $rank } est lent : les autres processus l'attendent
  }
rule-straggler-text = { $variant ->
    [pair] Le rank { $rank } calcule les gradients d'une mise à jour en { $slow_ms }, l'autre en { $others_ms } (médianes) : { $slower_percent } de plus. Il a été plus lent que l'autre dans { $slow_records } mesures sur { $records }, d'iter { $first_iter } à { $end_iter }. Cela a coûté { $cost_ms }, soit { $cost_share } du temps. Les deux processus calculent le même nombre de tokens, la cause est donc sur la machine : un autre programme sur ce matériel ou ce cœur, un matériel plus lent, un matériel bridé par la chaleur ou la puissance, ou moins de threads que l'autre.
   *[plain] Le rank { $rank } calcule les gradients d'une mise à jour en { $slow_ms }, les autres en { $others_ms } (médianes) : { $slower_percent } de plus. Il a été plus lent que les autres dans { $slow_records } mesures sur { $records }, d'iter { $first_iter } à { $end_iter }. Cela a coûté { $cost_ms }, soit { $cost_share } du temps. Tous les processus calculent le même nombre de tokens, la cause est donc sur la machine : un autre programme sur ce matériel ou ce cœur, un matériel plus lent, un matériel bridé par la chaleur ou la puissance, ou moins de threads que les autres.
  }

rule-communication-title = La communication entre processus prend { $communication_share } du temps des steps d'entraînement
rule-communication-text = Une fois que les { $processes } processus avaient calculé leurs gradients, en { $compute_ms } par mise à jour en moyenne, il a fallu encore { $update_ms } pour en faire la somme : { $total_ms } en tout. DDP envoie les gradients une fois par mise à jour, quel que soit son nombre de tokens. Plus de tokens par mise à jour réduisent donc cette part : augmenter gradient_accumulation_steps (actuellement { $accumulation }) ou batch_size. Une connexion plus rapide ou moins de processus aident aussi.

rule-pace-setter-title = { $variant ->
    [python] C’est Python qui impose le rythme, pas le GPU
    [data] Ce sont les données qui imposent le rythme, pas le GPU
   *[gpu] C’est le GPU qui impose le rythme
  }
rule-pace-setter-text = { $variant ->
    [python] À la fin de { $ahead_share } des mises à jour, le GPU avait déjà terminé et attendait que Python lance des kernels. Un batch_size plus grand ou compile=True lui donne plus de travail par lancement.
    [data] À la fin de { $ahead_share } des mises à jour, le GPU avait déjà terminé, et il a passé plus de 5 % de son step à attendre des batchs. Gardez les données sur un disque local ou en mémoire.
   *[gpu] À la fin de { $behind_share } des mises à jour, du travail attendait encore le GPU : ni Python ni les données ne le freinent.
  }

rule-periodic-stall-title = { $variant ->
    [sync] La ligne qui suit chaque évaluation ou checkpoint est lente
    [included] La ligne qui suit chaque évaluation ou checkpoint est lente
   *[other] Un blocage toutes les { $every } itérations, en dehors des évaluations et des checkpoints
  }
rule-periodic-stall-text = { $count } fois, une itération a pris environ { $excess_ms } de plus que ses voisines, toutes les { $every } itérations (environ toutes les { $period_ms }) : { $total_ms } en tout. { $variant ->
    [gc] Le log montre le garbage collector de Python à l'œuvre. Appeler gc.freeze() et gc.disable() après les premières itérations.
    [sync] Cela arrive à la ligne qui suit une évaluation ou un checkpoint : l'entraînement attend alors la fin des calculs, puis doit remplir à nouveau la file et les caches du matériel.
    [included] Cela arrive juste après une évaluation ou un checkpoint, dont le temps est sans doute compté dans cette ligne.
    [optimizer] Causes possibles : la mise à jour périodique du préconditionneur de l'optimiseur, que ce log mentionne (SOAP ou Shampoo), le passage au fichier de données suivant, ou un autre programme lancé périodiquement.
    [shard] Causes possibles : le passage au fichier de données suivant (shard), qui revient à peu près à ce rythme, ou un autre programme lancé périodiquement.
    [short] Causes possibles : le passage au fichier de données suivant, une mise à jour périodique dans l'optimiseur (SOAP, Shampoo), le garbage collector de Python (gc.freeze() et gc.disable() après les premières itérations permettent de l'écarter), ou un autre programme lancé périodiquement.
   *[plain] Causes possibles : le passage au fichier de données suivant, une mise à jour périodique dans l'optimiseur (SOAP, Shampoo), ou un autre programme lancé périodiquement.
  }

rule-slowdown-title = Les itérations durent { $rise_percent } de plus qu'au début
rule-slowdown-text = Le temps d'une itération normale est passé de { $first_ms } à { $last_ms }{ $variant ->
    [drift] , peu à peu
   *[other] , vers iter { $iter }
  }, sans redescendre ensuite. { $variant ->
    [throttle] Le log signale une limite thermique ou de puissance : la cause est le refroidissement ou le réglage de puissance.
   *[other] Causes possibles : la chaleur, un autre programme sur le même matériel, la mémoire qui manque ou des batchs plus longs ; le log ne dit pas laquelle. Surveiller la fréquence et la température du matériel pendant le run.
  }

rule-slow-stretch-title = D'iter { $first_iter } à iter { $end_iter }, les itérations ont duré { $rise_percent } de plus, puis tout est revenu à la normale
rule-slow-stretch-text = Dans cet intervalle, une itération prenait { $slow_ms } au lieu de { $normal_ms }, ce qui a coûté { $excess_ms } en tout. { $variant ->
    [throttle] Le log signale une limite thermique ou de puissance à ce moment-là.
   *[plain] Le plus probable : un autre programme utilisait la même machine ; la chaleur ou des batchs plus longs sont possibles aussi.
  }

rule-eval-too-expensive-title = { $covers ->
    [timed] { $variant ->
        [together] Les évaluations et les checkpoints prennent { $eval_share } du temps affiché par le log
       *[plain] Les évaluations prennent { $eval_share } du temps affiché par le log
      }
   *[other] { $variant ->
        [together] Les évaluations et les checkpoints prennent { $eval_share } du temps
       *[plain] Les évaluations prennent { $eval_share } du temps
      }
  }
rule-eval-too-expensive-text = Chaque évaluation{ $variant ->
    [together] , checkpoint compris,
   *[plain] {""}
  } prend { $each_ms }{ $compared ->
    [yes] {""}, soit { $each_iters } fois le temps d'une itération, et revient toutes les { $interval } itérations
    [entry] {""}
    [epoch] {""}
   *[no] {" "}et revient toutes les { $interval } itérations
  }. { $advice ->
    [interval] Une évaluation toutes les { $wanted } itérations prendrait environ 5 % du temps.
    [batches] Avec { $wanted } batchs par évaluation, ce serait environ 5 % du temps, mais avec des pertes plus bruitées.
    [rarer] Une évaluation toutes les { $wanted } itérations en laisse quatre dans ce run ; réduire le nombre de batchs raccourcit chacune d'elles.
   *[none] Évaluer moins souvent ou sur moins de batchs.
  }

rule-eval-noise-title = Les écarts entre les dernières évaluations sont inférieurs à leur bruit
rule-eval-noise-text = L'incertitude d'une évaluation est de { $se_loss } ; entre deux évaluations, un écart n'a de sens qu'à partir de { $least_loss }, et les { $count } derniers n'ont pas dépassé { $largest_loss }. Ne pas choisir un checkpoint sur cette base{ $variant ->
    [more] {""} : augmenter eval_iters, ou évaluer toujours sur les mêmes batchs, permettrait de trancher
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } de travail et toujours aucun checkpoint
   *[plain] Les checkpoints prennent { $save_share } du temps
  }
rule-checkpoint-interval-text = { $variant ->
    [none] Aucune ligne de ce log ne dit qu'un checkpoint a été sauvegardé. Un plantage maintenant ferait tout perdre.
   *[plain] { $count } checkpoints d'environ { $save_ms } chacun ont arrêté l'entraînement pendant { $total_ms }. { $run ->
        [short] Pour un run aussi court, un checkpoint à la fin suffit.
       *[long] Si la machine tombe en panne environ une fois par jour, un checkpoint toutes les { $wanted_ms } fait perdre le moins de temps.
      }{ $tied ->
        [yes] {" "}nanoGPT sauvegarde quand il évalue : toujours ou, avec always_save_checkpoint=False, seulement si la val loss est la meilleure jusque-là.
       *[no] {""}
      }
  }

rule-overfitting-title = { $variant ->
    [gap] La perte de validation est bien au-dessus de la perte d'entraînement : surapprentissage
    [gap-few] La perte de validation est bien au-dessus de la perte d'entraînement : surapprentissage
    [metric] La perte de validation remonte, mais { $metric } s'améliore encore
    [one] La dernière évaluation est moins bonne que la meilleure : le surapprentissage a peut-être commencé
   *[other] Surapprentissage depuis le step { $best_iter } environ
  }
rule-overfitting-text = { $variant ->
    [gap] Au step { $last_iter }, le modèle obtient une perte de { $train_loss } sur des données déjà vues et de { $last_loss } sur des données jamais vues : un écart de { $gap_loss }, soit { $gap_percent } de la perte d'entraînement ; sa perplexité sur des données nouvelles est { $perplexity_times } fois plus élevée. C'est du par cœur, pas un petit écart. La perte de validation était au plus bas au step { $best_iter } ({ $best_loss }).
    [gap-few] Au step { $last_iter }, le modèle obtient une perte de { $train_loss } sur des données déjà vues et de { $last_loss } sur des données jamais vues : un écart de { $gap_loss }, soit { $gap_percent } de la perte d'entraînement ; sa perplexité sur des données nouvelles est { $perplexity_times } fois plus élevée. C'est du par cœur, pas un petit écart. Avec si peu d'évaluations, le log ne peut pas montrer quand cela a commencé : chercher le step où la val loss est au plus bas.
    [metric] La perte de validation était au plus bas au step { $best_iter } ({ $best_loss }) ; elle a augmenté de { $rise_loss } ({ $rise_percent }), jusqu'à { $last_loss }, pendant que la perte d'entraînement baissait. Dans les mêmes évaluations, la valeur de { $metric } est passée de { $before_points } à { $now_points } : le modèle est plus sûr de lui quand il se trompe, mais pas moins bon dans sa tâche. Choisir le checkpoint d'après le chiffre qui compte vraiment.
    [one] La perte de validation était au plus bas au step { $best_iter } ({ $best_loss }) ; à la dernière évaluation, elle est plus haute de { $rise_loss } ({ $rise_percent }), alors que la perte d'entraînement a baissé. Une évaluation isolée peut relever du hasard : les prochaines le diront.
    [no-train] La perte de validation était au plus bas au step { $best_iter } ({ $best_loss }) ; elle a augmenté de { $rise_loss } ({ $rise_percent }), jusqu'à { $last_loss }, pendant que la perte d'entraînement baissait. Tout ce qui suit ce step a dégradé le modèle sur des données nouvelles.
   *[rising] La perte de validation était au plus bas au step { $best_iter } ({ $best_loss }) ; elle a augmenté de { $rise_loss } ({ $rise_percent }), jusqu'à { $last_loss }, pendant que la perte d'entraînement descendait à { $train_loss }. Tout ce qui suit ce step a dégradé le modèle sur des données nouvelles : s'arrêter là, augmenter le dropout, ajouter des données ou prendre un modèle plus petit.
  }

rule-best-checkpoint-lost-title = Le meilleur checkpoint a été écrasé par un moins bon
rule-best-checkpoint-lost-text = nanoGPT ne garde qu'un checkpoint, et avec always_save_checkpoint chaque évaluation l'écrase. Le meilleur était celui du step { $best_iter } (val loss { $best_loss }) ; le fichier contient maintenant celui du step { $kept_iter } ({ $kept_loss }), moins bon de { $worse_loss }.

rule-stopped-early-title = Le run s'est terminé alors que le modèle apprenait encore
rule-stopped-early-text = La perte de validation baissait encore à la fin (step { $last_iter } : { $last_loss }), d'environ { $gain_loss } par millier d'itérations, sans signe de surapprentissage. Un run plus long, avec une décroissance du taux d'apprentissage étirée d'autant, devrait faire mieux.

rule-schedule-mismatch-title = { $variant ->
    [batch] Le taux d'apprentissage est élevé pour si peu de tokens par itération
    [floor] Le plancher du taux d'apprentissage est inhabituel
    [warmup] Le warmup du taux d'apprentissage occupe une grande partie du run
   *[other] La décroissance du taux d'apprentissage ne correspond pas à la longueur du run
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr vaut { $low_lr } pour un learning_rate de { $rate } ; d'habitude, c'est un dixième.
    [batch] Un learning_rate de { $rate } est habituel pour un demi-million de tokens par itération ; ici, il y en a { $batch_tokens }. Avec moins de tokens, le gradient est plus bruité : réduire le taux selon la racine carrée du rapport.
    [warmup] Le taux d'apprentissage monte pendant { $warmup_iters } itérations sur { $max_iters } ; d'habitude, c'est un ou deux pour cent.
    [long] lr_decay_iters vaut { $decay_iters }, mais le run s'arrête à { $max_iters } : le taux d'apprentissage ne devient jamais faible. D'habitude, la perte baisse nettement pendant la décroissance, et ce run se prive de l'essentiel de cette baisse.
   *[short] lr_decay_iters vaut { $decay_iters }, et le run continue jusqu'à { $max_iters } : après la décroissance, toutes les itérations tournent à min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] Une évaluation a donné NaN (step { $iter }, ligne { $line })
    [vanished] La perte n'est plus affichée à partir d'iter { $iter } (ligne { $line }) : elle vaut sans doute NaN
   *[other] La perte vaut NaN ou l'infini à partir d'iter { $iter } (ligne { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] La perte d'entraînement reste finie : c'est sans doute l'évaluation elle-même qui est en cause : aucun batch à évaluer, ou aucune cible valide.
   *[other] { $last_iter ->
        [none] La première perte affichée vaut déjà NaN ou l'infini.
       *[other] La dernière perte finie était { $last_loss }, à iter { $last_iter }.
      } { $variant ->
        [vanished] Toutes les lignes précédentes ont une perte, { $count ->
            [one] la dernière n'en a pas
           *[other] les { $count } dernières n'en ont pas
          }{ $has_bad_norms ->
            [yes] , et la norme du gradient y vaut NaN
           *[no] {""}
          } : certains trainers n'affichent pas la perte quand elle vaut NaN.{" "}
       *[other] {""}
      }Rien n'a été appris depuis : arrêter le run{ $save_iter ->
        [none] {""}
       *[other] {" "}et revenir au checkpoint de l'itération { $save_iter }{ $overwritten ->
            [yes] , s'il en existe une copie (d'après ce log, une sauvegarde ultérieure l'a écrasé)
           *[no] {""}
          }
      }. { $variant ->
        [exploded] La perte était remontée bien au-dessus de son minimum avant de devenir NaN : le taux d'apprentissage est trop élevé, ou les gradients ne sont pas clippés.
        [first] Rien n'avait encore été appris : le taux d'apprentissage n'est pas en cause. Causes habituelles : des NaN dans les données ou dans les poids chargés, des batchs sans cible valide, un débordement en float16 ou un kernel défectueux.
        [fp16] En float16, les grandes valeurs débordent ; en bfloat16 ou en float32, non.
       *[other] Causes habituelles : un taux d'apprentissage trop élevé, un débordement en float16 ou une cible hors des valeurs valides (pour du texte, un identifiant de token hors du vocabulaire).
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Depuis, les itérations durent { $faster_percent } de moins : c'est ce qu'on voit quand le GradScaler saute toutes les mises à jour.
      }
  }

rule-broken-gradient-title = { $variant ->
    [zero] La norme du gradient vaut exactement 0 à partir d'iter { $iter } (ligne { $line })
   *[other] La norme du gradient vaut NaN ou l'infini à partir d'iter { $iter } (ligne { $line })
  }
rule-broken-gradient-text = { $variant ->
    [zero] Sur les { $count } dernières lignes, aucun gradient n'atteint les poids : rien n'est appris. Causes habituelles : des batchs dont tous les labels sont masqués, des paramètres gelés ou détachés, ou des valeurs trop petites pour float16.
    [nan-no-loss] C'est le cas sur les { $count } dernières lignes, et aucune ligne n'a de perte : certains trainers ne l'affichent pas quand elle vaut NaN. Plus rien n'est appris : arrêter le run et revenir à un checkpoint antérieur. Causes habituelles : un taux d'apprentissage trop élevé, un débordement en float16 ou des batchs sans cible valide.
   *[nan] C'est le cas sur les { $count } dernières lignes, alors que la perte affichée a l'air normale. Les mises à jour avec un tel gradient sont sautées, ou bien elles détruisent les poids : plus rien n'est appris. Arrêter le run et revenir à un checkpoint antérieur. Causes habituelles : un débordement en float16, des batchs sans cible valide ou un kernel défectueux.
  }

rule-constant-loss-title = La perte vaut exactement { $loss } sur les { $count } dernières lignes
rule-constant-loss-text = Aucun de ses chiffres ne change d'iter { $iter } à iter { $last_iter }, alors que les batchs devraient différer. { $variant ->
    [zero] Une perte d'exactement 0 signifie qu'aucune cible n'a été prise en compte : tous les labels sont masqués, ou le trainer affiche 0 au lieu de NaN.
    [rate] Le taux d'apprentissage affiché vaut 0 : rien n'est appris. Le même batch à chaque fois expliquerait le reste.
    [norm] La norme du gradient vaut 0 elle aussi : rien n'est appris. Les poids sont-ils gelés, ou tous les labels masqués ?
   *[plain] Rien n'est appris. Soit la sortie ne dépend plus de l'entrée (poids nuls, gelés ou détruits ; e^loss = { $choices } est alors à peu près la taille du vocabulaire), soit le taux d'apprentissage vaut 0 et tous les batchs sont identiques, soit le chiffre affiché n'est pas mis à jour.
  }

rule-skipped-updates-title = { $variant ->
    [stuck] Toutes les mises à jour sont sautées à partir d'iter { $iter } : les gradients débordent (NaN ou infini)
   *[often] { $count } mises à jour des poids ont été sautées ({ $skipped_share } des itérations)
  }
rule-skipped-updates-text = { $variant ->
    [stuck] Les gradients débordent quel que soit le loss scale : les poids ne changent plus. Revenir à un checkpoint antérieur, avec un taux d'apprentissage plus bas ; bfloat16 n'a pas besoin de loss scale.
   *[often] Ces batchs ont été calculés pour rien. Quelques mises à jour sautées au début sont normales, le temps de trouver le loss scale ; celles-ci viennent plus tard. Contre les débordements, un taux d'apprentissage plus bas aide, bfloat16 aussi.
  }

rule-divergence-title = { $variant ->
    [exploded] L'entraînement a divergé vers iter { $iter }
    [recovered] La perte a augmenté vers iter { $iter }, puis elle est redescendue
   *[up] La perte a augmenté vers iter { $iter } et n'est pas redescendue
  }
rule-divergence-text = La perte la plus basse était { $best_loss } (iter { $best_iter }). { $variant ->
    [recovered] Elle est ensuite montée à { $high_loss } environ, mais elle était redescendue dès iter { $back_iter }
    [exploded] Elle est ensuite montée au-dessus de tout ce qui précède et y est restée : { $last_loss } à la fin
   *[up] Elle est ensuite montée et n'est pas redescendue : { $last_loss } à la fin
  }{ $knows_rate ->
    [yes] {""} ; le taux d'apprentissage valait { $rate } quand elle est montée
   *[no] {""}
  }. { $variant ->
    [recovered] Le travail fait entre-temps est perdu. Si cela se reproduit, baisser le taux d'apprentissage ou allonger son warmup.
    [exploded] Revenir à un checkpoint antérieur, avec un taux d'apprentissage plus bas, du clipping et un warmup du taux d'apprentissage plus long.
   *[up] Si rien n'a été changé à ce moment-là (données, réglages), l'entraînement a divergé : revenir à un checkpoint antérieur, avec un taux d'apprentissage plus bas et un warmup plus long.
  }

rule-loss-spike-title = { $count ->
    [one] Un pic de perte à iter { $iter }
   *[other] { $count } pics de perte, le plus haut à iter { $iter }
  }
rule-loss-spike-text = La perte a bondi à { $loss } au lieu de { $around_loss } d'habitude ({ $z } fois le bruit), puis elle est redescendue. { $variant ->
    [data] { $runs } runs de ce log ont un pic à la même itération : la cause est dans les données lues là, pas dans les réglages.
    [rate] Ces pics sont nombreux et durent plusieurs lignes : le taux d'apprentissage est sans doute trop élevé, ou les gradients ne sont pas clippés.
    [smoothed] La perte affichée est une moyenne glissante : celle du batch lui-même était bien plus élevée, et sa trace s'efface en plusieurs lignes. Quelques-uns sont sans gravité.
   *[plain] Un pic qui a disparu à la ligne suivante vient en général d'un batch atypique. Quelques pics de ce genre sont sans gravité.
  }

rule-initial-loss-title = La première perte ne correspond pas à la taille du vocabulaire
rule-initial-loss-text = Un modèle qui ne sait rien obtient une perte de ln({ $vocab }) = { $expected_loss } ; celle de ce modèle a commencé à { $seen_loss }. { $variant ->
    [low] Soit il n'est pas parti de zéro, soit les cibles fuitent dans son entrée, soit le vocabulaire est plus grand que nécessaire pour ces données.
   *[high] Vérifier vocab_size et meta.pkl, le décalage entre entrée et cible, et l'initialisation.
  }

rule-plateau-title = La perte de validation ne bouge plus
rule-plateau-text = Sur les { $count } dernières évaluations (steps { $first_iter } à { $last_iter }), elle est restée autour de { $mean_loss } ; sa tendance est de { $moved_loss } en tout, pas plus que le bruit. { $variant ->
    [peak] Le taux d'apprentissage est resté près de son maximum : le baisser ou commencer la décroissance.
    [floor] Le taux d'apprentissage était déjà à son plancher quand cela a commencé : ce schedule n'a plus rien à donner.
    [through] Le taux d'apprentissage était de { $rate } quand cela a commencé, et sa baisse depuis n'a rien changé : la limite vient du modèle, des données ou de la régularisation.
    [known] Le taux d'apprentissage était de { $rate } quand cela a commencé.
   *[plain] Le log ne donne pas le taux d'apprentissage : impossible de distinguer un schedule terminé d'un taux trop élevé.
  }

rule-data-budget-title = { $variant ->
    [epochs] Le run parcourt ses données { $epochs } fois
    [few] Peu de tokens pour ce modèle : { $ratio } par paramètre
   *[many] Beaucoup de tokens pour ce modèle : { $ratio } par paramètre
  }
rule-data-budget-text = { $is_planned ->
    [yes] Sur les { $max_iters } itérations prévues
   *[no] Sur { $max_iters } itérations
  }, le nombre de tokens est de { $tokens } et celui des paramètres de { $parameters }, soit { $ratio } par paramètre ; l'équilibre habituel est d'environ 20. { $variant ->
    [epochs] Le jeu d'entraînement est bien plus petit, il est donc lu { $epochs } fois : au-delà de quatre passages environ, les répétitions aident de moins en moins et le surapprentissage devient probable.
    [few] Un modèle plus petit, ou plus d'itérations, ferait meilleur usage du temps.
   *[many] À temps de calcul égal, un modèle plus grand atteint en général une perte plus basse.
  }

rule-eval-below-batch-title = Pourquoi la train loss d'une évaluation est plus basse que la loss des batchs
rule-eval-below-batch-text = Le step { $last_iter } affiche une train loss de { $train_loss }, les itérations voisines { $batch_loss }. { $variant ->
    [dropout] Le dropout ({ $dropout }) est désactivé pendant une évaluation : le modèle y prédit donc mieux, et le chiffre est une moyenne sur de nombreux batchs. Rien d'anormal.
   *[plain] Une évaluation est une moyenne sur de nombreux batchs, et le dropout y est désactivé : si ce run en utilise, le modèle y prédit mieux. Rien d'anormal.
  }

rule-expected-loss-title = { $variant ->
    [worse] La perte de validation est au-dessus de ce que nanoGPT atteint sur ces données
   *[usual] La perte de validation est celle que nanoGPT atteint sur ces données
  }
rule-expected-loss-text = Sur shakespeare_char, un modèle non entraîné part de ln(65) = 4,17. La configuration de nanoGPT pour GPU (6 couches, 5000 itérations) atteint une val loss d'environ 1,47, celle pour CPU (4 couches, 2000 itérations) environ 1,88. La meilleure ici est { $best_loss } (step { $best_iter }).

rule-gradient-clipping-title = Presque tous les gradients sont clippés
rule-gradient-clipping-text = La norme du gradient dépasse { $setting } = { $clip } sur { $clipped_share } des lignes, avec une médiane de { $norm }. Le clipping ramène un tel gradient à cette longueur sans changer sa direction : chaque mise à jour a donc à peu près la longueur que lui donne le taux d'apprentissage. C'est sans gravité tant que la perte baisse bien ; sinon, baisser d'abord le taux d'apprentissage.

rule-out-of-memory-title = { $variant ->
    [host] L'ordinateur a manqué de mémoire
   *[other] Mémoire insuffisante
  }
rule-out-of-memory-text = { $variant ->
    [host] C'est la mémoire de l'ordinateur (RAM) qui a manqué, pas celle du GPU : utiliser moins de workers pour les données, mapper le fichier de données (mmap) au lieu de le charger, ou fermer d'autres programmes.
    [sizes] Le run a demandé { $tried_bytes } de plus, sans les obtenir.
   *[plain] Le run a demandé plus de mémoire que le matériel n'en a.
  }{ $halved ->
    [batch] {" "}Diviser batch_size par deux et doubler gradient_accumulation_steps donne le même entraînement et réduit de moitié environ la mémoire qui croît avec le batch ; un block_size plus petit aide aussi.
   *[no] { $variant ->
        [host] {""}
       *[other] {" "}Un batch plus petit avec plus d'accumulation de gradients donne le même entraînement et demande moins de mémoire ; des séquences plus courtes aident aussi.
      }
  } Les messages qui suivent le premier n'en sont que des conséquences.

rule-contradiction-title = { $variant ->
    [tokens] Les tokens par seconde affichés sont faux d'un facteur { $times }
    [clock] Les temps affichés ne sont pas les vrais
    [rate] Les tokens par seconde affichés à la fin sont faux
   *[hidden-nan] La perte a l'air normale parce que le log cache les NaN
  }
rule-contradiction-text = { $variant ->
    [tokens] Tokens par step : { $stated_tokens } d'après le log, mais { $implied_tokens } en multipliant les tokens par seconde par le temps du step. Se fier au temps : il donne { $real_rate } tokens par seconde, et non { $printed_rate }.
    [clock] Une itération normale affiche { $normal_ms } ; d'après les horodatages, c'est { $stamped_ms }. Se fier aux horodatages : sans synchronisation, le temps affiché s'arrête quand Python a fini, pas quand le matériel a fini.
    [rate] Le total des tokens divisé par le temps d'entraînement donne { $real_rate } par seconde, et non { $printed_rate }.
   *[hidden-nan] La norme du gradient vaut NaN ou l'infini ({ $count ->
        [one] une fois
       *[other] { $count } fois
      }) alors que la perte continue de s'afficher : par défaut, ce trainer écarte les NaN de la perte qu'il affiche. Mettre logging_nan_inf_filter à False pour les voir.
  }

rule-unexplained-stall-title = { $place ->
    [window] Les { $window } itérations jusqu'à iter { $iter } sont restées bloquées { $excess_ms }{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , sans raison visible dans le log
      }
   *[other] iter { $iter } est restée bloquée { $excess_ms }{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , sans raison visible dans le log
      }
  }
rule-unexplained-stall-text = { $place ->
    [window] Elles ont pris { $time_ms } chacune au lieu de { $normal_ms } d'habitude.
    [several] Elle et ses voisines ({ $num_lines } lignes de suite) ont pris jusqu'à { $time_ms } au lieu de { $normal_ms } d'habitude.
    [between] Elle a pris { $time_ms } au lieu de { $normal_ms } d'habitude ; les évaluations reviennent toutes les { $eval_interval } itérations, et ce n'en est pas une.
   *[one] Elle a pris { $time_ms } au lieu de { $normal_ms } d'habitude.
  }{ $count ->
    [one] {""}
   *[other] {" "}Il y a { $count } blocages de ce genre, { $total_ms } en tout.
  } { $variant ->
    [recompile] Une ligne juste avant indique que du code a été recompilé.
    [boundary] Juste avant, le log signale un checkpoint ou une évaluation, qui peut en être la cause : vérifiez le disque sur lequel il est écrit.
    [memory] La mémoire utilisée y est plus élevée qu'avant : si celle du matériel est presque pleine, ce sont les transferts qui prennent ce temps. Un batch plus petit ou des séquences plus courtes permettent de le vérifier.
    [pause] Causes possibles : ordinateur en veille ou processus en pause, autre programme, disque plein ou lent. Le log ne permet pas de trancher.
   *[plain] Causes possibles : autre programme, disque lent, mémoire qui manque, code recompilé pour une nouvelle shape. Le log ne permet pas de trancher.
  }{ $printed ->
    [some] {" "}Seules certaines itérations sont affichées, d'autres ont pu rester bloquées sans que cela se voie : log_interval=1 les affiche toutes.
   *[all] {""}
  }

rule-hidden-stall-title = Il s'est écoulé { $passed_ms } entre iter { $first_iter } et iter { $end_iter }, et aucun temps affiché ne le montre
rule-hidden-stall-text = D'après les temps affichés, cela aurait dû prendre { $expected_ms }. Le temps perdu se trouve dans des itérations non affichées{ $count ->
    [one] {""}
   *[other] {" "}({ $count } intervalles de ce genre, { $total_ms } en tout)
  }. Pour le voir, afficher toutes les itérations.

rule-repeated-work-title = { $count ->
    [one] Une itération a été faite deux fois
   *[other] { $count } itérations ont été faites deux fois
  }{ $time ->
    [known] , soit environ { $time_ms }
   *[unknown] {""}
  }
rule-repeated-work-text = Le run avait atteint iter { $end_iter } et a repris à iter { $first_iter }, depuis son dernier checkpoint. { $saving ->
    [best] Depuis ce checkpoint, nanoGPT avait évalué sans sauvegarder, parce que la val loss n'était pas la meilleure jusque-là. always_save_checkpoint=True garde le dernier état, mais écrase le meilleur.
    [every] nanoGPT sauvegarde quand il évalue : un eval_interval plus petit fait perdre moins de travail quand un run s'arrête, mais coûte plus d'évaluations.
   *[often] Des checkpoints plus rapprochés font perdre moins de travail quand un run s'arrête.
  }

## What a log cannot show

cannot-data-wait = Combien de temps l'entraînement a attendu les données : nanoGPT ne le mesure pas.
cannot-unprinted = Le temps de chaque itération : seules certaines sont affichées, les autres sont supposées semblables.
cannot-device = Sur quel matériel le run a tourné : le mfu est calculé par rapport aux 312 TFLOP/s d'un A100. Indiquer le matériel avec --device.
cannot-split = La part de l'évaluation et celle du checkpoint : ils vont toujours ensemble, et aucune ligne n'est horodatée.
cannot-last-micro-batch = La perte d'une itération entière : nanoGPT affiche celle du dernier micro-batch.
cannot-wall-clock = Ce qui s'est passé hors de la boucle (imports, chargement des données, fin) : aucune ligne reconnue n'est horodatée.
cannot-no-times = Où est passé le temps : les lignes reconnues n'ont ni temps ni horodatage.
cannot-evals-unprinted = Ce que les évaluations ont coûté, et donc la durée du run : elles tombent sur des itérations non affichées.
cannot-no-numbers = À quel step correspond une ligne : le log ne l'affiche pas. À la place, les relevés qui ont une perte sont comptés à partir de 0.
cannot-no-evals = Si le modèle généralise : aucune des lignes reconnues n'est une évaluation.
cannot-ranks = Quel processus est lent et quelle part du temps est de la communication : cela n'est mesuré qu'avec DDP sur CPU.
cannot-format-nanochat = Évaluations, échantillons et checkpoints : le dt et le total time de nanochat ne les comptent pas ; sa perte est lissée.
cannot-format-modded-nanogpt = Ce que coûtent la validation et le démarrage : le chronomètre est arrêté pendant ce temps.
cannot-format-untimed-validation = Ce que coûte la validation : le chronomètre est arrêté pendant ce temps.
cannot-format-llm-c = Ce que coûtent la validation et les checkpoints : seuls les steps sont chronométrés.
cannot-format-litgpt = L'attente des données : le temps d'une itération commence une fois son batch chargé.
cannot-format-torchtitan = Les steps un par un : ses chiffres sont des moyennes depuis la ligne précédente, et un checkpoint compte dans la suivante.
cannot-format-hf-trainer = Le temps d'un step et d'un checkpoint : ils ne sont pas affichés. Par défaut, une perte NaN est remplacée par une moyenne.
cannot-format-lightning = Les steps un par un : la barre affiche des secondes entières et une vitesse moyenne.
cannot-format-composer = Ce que coûte un checkpoint : il est compté dans le batch suivant.
cannot-format-lingua = Ce que coûte une évaluation ou un checkpoint : cela fait baisser le débit de la ligne suivante.
cannot-format-mingpt = Ce que coûtent la génération et la sauvegarde : le temps affiché est celui de l'itération précédente.
cannot-format-char-rnn = Ce que coûtent les évaluations et les checkpoints : ils ne sont pas chronométrés.
cannot-format-megatron = Ce que coûtent la validation et les checkpoints, sauf si leurs propres lignes le disent.
cannot-format-keras = Les steps un par un, et ce que coûte une évaluation : il y a une ligne par epoch, et son temps comprend l'évaluation.
cannot-format-one-line-per-epoch = Les steps un par un : il y a une ligne par epoch, qui compte ici pour une itération.
cannot-format-timm = Ce que coûtent les checkpoints : seuls les steps et les évaluations sont chronométrés. Le temps d'un step comprend l'attente des données.
cannot-format-metric-logger = Les steps un par un : la perte est la médiane et le temps la moyenne des 20 derniers. Le temps comprend l'attente des données.
cannot-format-detectron2 = Ce que coûtent les évaluations et les checkpoints : seuls les steps sont chronométrés. Les pertes sont des médianes sur les 20 derniers steps.
cannot-format-mmengine = Les steps un par un : temps et pertes sont des moyennes sur plusieurs steps. Le temps comprend l'attente des données.
cannot-format-ultralytics = Les steps un par un : il y a une ligne par epoch.
cannot-format-summed-loss = La perte que l'entraînement minimise, en un seul chiffre : c'est ici la somme des composantes affichées.
cannot-format-tensorflow = Les steps un par un : les temps sont des moyennes sur les steps depuis la ligne précédente.
cannot-format-pytorch-examples = Ce que coûtent les évaluations : seuls les steps sont chronométrés, et encore, pas toujours. L'exemple MNIST compte des échantillons au lieu de steps.
cannot-format-general = Ce que signifient les autres colonnes : seules celles dont le sens est clair ont été lues.
cannot-format-deepspeed = Ce que coûtent les évaluations et les checkpoints : DeepSpeed ne chronomètre que ses steps.
cannot-format-olmo = Les steps un par un d'OLMo (OLMo-core n'est pas concerné) : ses débits sont des moyennes sur les derniers batchs.
cannot-format-nanotron = Ce que coûte un checkpoint : seuls les steps sont chronométrés. Les valeurs sont affichées avec trois chiffres significatifs.
cannot-format-fairseq = Les mises à jour une par une : ses chiffres sont des moyennes. La plupart de ses critères affichent la perte en base 2.
cannot-format-minimind = Le temps d'un step : epoch_time est le temps qui reste pour finir l'epoch, en minutes entières.
cannot-format-espnet = Les batchs un par un : ses chiffres sont des moyennes sur les batchs d'une ligne.
cannot-format-time-series = Ce que coûte une évaluation : la première vitesse d'une epoch la comprend, cette vitesse est donc écartée.
cannot-next-line = Ce que coûte une évaluation ou un checkpoint : leur temps est compté dans celui de la ligne suivante.
left-out-settings = Les réglages au-delà des { $most } premiers noms : ils ne sont pas gardés (nombre de lignes : { $count }).
left-out-events = Tous les messages : ceux du milieu d'une longue série sont comptés, mais pas gardés ({ $count }).
left-out-evals = Toutes les évaluations : sur { $count }, { $kept } sont gardées, dont la meilleure et la dernière. Les nombres et les temps portent sur toutes.
left-out-runs = Où chaque run a commencé : il y en a { $count } de plus que les { $most } distingués ici.

## --lines

lines-title = Ligne par ligne (chiffres tels que le log les affiche)
line-iter = Mise à jour des poids n° { $iter }, sur un batch.
line-loss = loss { $loss } : à quel point les prédictions sur ce batch étaient fausses (entropie croisée ; plus bas, c'est mieux). En moyenne, le bon token suivant a reçu une probabilité d'environ e^-{ $loss } = { $chance }. D'un batch à l'autre, la perte varie : regarder la tendance.
line-loss-short = loss { $loss }
line-time = time { $time } : une itération normale ({ $normal_ms } d'habitude).
line-time-slow = time { $time } : { $excess_ms } de plus que d'habitude ({ $normal_ms }). Cause : { $cause }.
line-mfu = mfu { $mfu } : moyenne glissante de la part des 312 TFLOP/s d'un A100 qu'utilisent les calculs du modèle.
line-mfu-short = mfu { $mfu }
line-mfu-none = mfu -100.00% : pas encore mesuré ; nanoGPT ne compte pas les cinq premières itérations.
line-mfu-worked = Une itération normale, sans la moyenne glissante : { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP de calcul ; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = Sur { $device } ({ $peak_tflops } TFLOP/s), cela fait { $corrected_mfu }.
line-mfu-formula = Par la formule : (6 × { $parameters } paramètres + 12 × { $n_layer } couches × largeur { $n_embd } × { $block_size } tokens) × { $tokens } tokens par itération = { $work_tflop } TFLOP.
line-eval = Évaluation au step { $iter } : pertes moyennes sur de nombreux batchs, sans entraînement et sans dropout.
line-eval-short = Évaluation au step { $iter }.
line-eval-train = train loss { $train } : sur des données qui servent à l'entraînement.
line-eval-train-short = train loss { $train }
line-eval-val = val loss { $val } : sur des données qui ne servent jamais à l'entraînement. C'est le chiffre qui compte.
line-eval-val-short = val loss { $val }
line-eval-gap = L'écart entre les deux est de { $gap_loss }.
line-eval-best = La meilleure jusqu'ici.
line-eval-worse = Moins bonne qu'au step { $best_iter } ({ $best }).
line-save = Un checkpoint a été sauvegardé. Dans nanoGPT, il compte dans le temps de l'itération suivante.
line-save-short = Un checkpoint a été sauvegardé.
line-run = { $count } itérations normales comme celle-ci, de { $first } à { $last } : loss de { $first_value } à { $last_value }, de { $low_ms } à { $high_ms } chacune.
line-unknown = { $count ->
    [one] Une ligne n'a pas été reconnue.
   *[other] { $count } lignes n'ont pas été reconnues.
  }
cause-warmup = démarrage
cause-eval = évaluation
cause-checkpoint = checkpoint
cause-unexplained = inconnue

## The page of `report` and `watch`

page-language = Français
page-language-choice = langue
page-labelled = { $label } : { $text }
page-unknown = n. d.
page-about = log { $format }, { $lines ->
    [one] { $lines } ligne
   *[other] { $lines } lignes
  }, { $understood ->
    [one] { $understood } reconnue
   *[other] { $understood } reconnues
  }
page-level-good = tout va bien
page-level-advice = à regarder
page-level-problem = problème
page-health-good = Aucun problème détecté.
page-health-more = { $title }, et { $count ->
    [one] un autre constat
   *[other] { $count } autres constats
  }
page-health-waiting = Aucune itération dans le log pour l'instant.
page-health-failed = Le run s'est terminé par une erreur : { $detail }
page-health-killed = Le processus s'est arrêté sans message, sans doute tué. S'il a sauvegardé un checkpoint, le run peut reprendre de là.
page-state = état
# Un état, puis où en est le run : « terminé, 600 itérations », « échec, jusqu'à iter 5000 ».
page-state-running = en cours
page-state-finished = terminé
page-state-target = objectif atteint
page-state-patience = terminé, plus d'amélioration
page-state-signal = arrêté par un signal
page-state-failed = échec
page-state-oom = mémoire insuffisante
page-state-error = terminé par une erreur
page-state-killed = tué
page-state-waiting = en attente de la première itération
page-state-imported = modèle importé, pas encore entraîné ici
page-state-unknown = inconnu
page-done = { $count ->
    [one] { $count } itération
   *[other] { $count } itérations
  }
page-done-of = { $count ->
    [one] { $count } itération
   *[other] { $count } itérations
  } sur { $max }
page-up-to = jusqu'à iter { $number }
page-live = en direct
page-lost = connexion perdue, nouvel essai
page-run = run
page-runs = Runs
page-no-runs = Pas encore de run ici. Il apparaîtra dès qu'il commencera.
page-loss = Perte
page-iterations = Durée de chaque itération
page-speed = Vitesse
page-inside = Détail d'un step
page-samples = Échantillons
page-ranks = Processus
page-rank = rank { $rank }
page-ranks-run = Tout le run
page-ranks-newest = Dernière mesure, iter { $number }
page-ranks-compute = calcul
page-ranks-communication = communication
page-ranks-waiting = attente du plus lent
page-ranks-eval = évaluation
page-ranks-about = Temps d'une mise à jour. Le temps de calcul du processus le plus lent est { $imbalance } fois la moyenne. La communication est l'attente du processus qui finit en dernier.
page-ranks-some = Sur { $count } processus, les { $shown } plus lents sont affichés.
page-settings = Réglages et machine
page-config = Réglages
page-environment = Machine et modèle
page-chart-loss = Perte d'entraînement et de validation
page-chart-shares = Répartition du temps au fil du run
page-chart-time = Temps par itération
page-chart-tokens = Tokens par seconde
page-chart-mfu = MFU du step d'entraînement
page-chart-lr = Taux d'apprentissage
page-chart-grad = Norme du gradient
page-chart-memory = Mémoire
page-log-scale = échelle log
page-keys = Les flèches déplacent le curseur, plus et moins zooment, 0 affiche tout.
page-axis = axe x
page-axis-iter = itérations
page-axis-time = temps
page-zoom-in = zoomer
page-zoom-out = dézoomer
page-left-key = aller à gauche
page-right-key = aller à droite
page-reset = tout afficher
page-smoothing = lissage
page-train = entraînement
page-val = validation
page-dashed = en tirets : validation
page-band = La bande autour de la perte de validation est son erreur type.
page-best = meilleure valeur { $loss } (iter { $number })
page-iteration = iter { $number }
page-train-loss = perte d'entraînement { $loss }
page-smoothed = lissée { $loss }
page-val-loss = perte de validation à iter { $number } : { $loss }
page-slow-because = lente ; cause : { $cause } (d'habitude : { $normal })
page-normal = Une itération normale prend { $normal }. Survoler un pic pour voir la cause.
page-mfu = { $value } pour un step normal ; crête : { $source }
page-peak-device = { $peak } TFLOP/s, d'après la table pour { $device }
page-peak-assumed = { $peak } TFLOP/s, valeur supposée par le trainer ; le log ne nomme pas le matériel
page-copy = copier
page-copied = copié
page-outcome-loss = dernière perte d'entraînement
page-outcome-iters = dernière itération
page-outcome-normal = itération normale
page-outcome-wall = durée totale
page-outcome-mfu = MFU
page-ended = terminé, plus rien à venir
page-figure-loss = perte actuelle
page-figure-best = meilleure perte de validation
page-figure-bits = bits par octet
page-figure-tokens = tokens par seconde
page-figure-step = temps par step
page-figure-parameters = paramètres
page-figure-left = temps restant
page-differences = { $count ->
    [one] un réglage diffère
   *[other] { $count } réglages diffèrent
  }
page-verdict = verdict
page-sort = trier selon cette colonne
page-winner-best = est le meilleur run : perte de validation { $loss }.
page-winner-bits = est le meilleur run : { $loss } bits par octet.
page-winner-loss = est le meilleur run : perte d'entraînement { $loss }.
page-lead = Le suivant est { $name }, moins bon de { $loss }.
page-no-winner = Il n'est pas sûr que les runs aient les mêmes données et les mêmes tokens, leurs pertes ne sont donc pas classées.
page-outcome-best = meilleure perte de validation
page-outcome-at = à l'itération
page-outcome-bits = bits par octet
page-outcome-tokens = tokens par seconde
page-outcome-parameters = paramètres
page-all-runs = { $count ->
    [one] dans ce run
   *[other] dans les { $count } runs
  }
page-quoted = (les chiffres sont ceux de { $name })
page-all-samples = { $count ->
    [one] un échantillon
   *[other] les { $count } échantillons
  }
page-val-only = perte de validation { $loss }
page-csv = télécharger les lignes visibles en CSV
page-whole-range = plage entière
page-cut = Des pertes allant jusqu'à { $highest } dépassent l'axe : zoomer ou cocher « plage entière ».
page-axis-tokens = tokens
page-axis-flops = FLOPs
page-tick = Cocher de deux à huit runs pour les comparer.
page-compare-ticked = { $count ->
    [one] comparer un run
   *[other] comparer { $count } runs
  }
page-iterations-done = avancement
page-changed = dernier changement
page-thinned = Ce fichier contient { $drawn } itérations sur { $total } : pour chaque grandeur, la valeur la plus basse et la plus haute de chaque tronçon. Les sommes portent sur toutes les itérations.
page-thinned-live = { $drawn } itérations sur { $total } sont tracées, dont celles des valeurs extrêmes de chaque tronçon. Zoomer pour voir toutes les itérations.

## `stepglass advise`

advise-type = Taper :
advise-change = Ajouter à la ligne de commande de { $name } :
advise-keep = Garder les réglages de { $name } : on n'en connaît pas de meilleurs.
advise-about = { $is_known ->
    [no] Matériel inconnu (le nommer avec --device)
   *[yes] { $device } ({ $has_memory ->
        [no] mémoire inconnue
       *[yes] { $device_bytes }
      }{ $has_peak ->
        [no] {""}
       *[yes] , { $tflops } TFLOP/s en { $dtype }
      })
  } : modèle { $model } de { $parameters } paramètres, { $tokens } tokens par mise à jour
advise-expect-title = À quoi s'attendre
advise-expect-ms-per-iter = une mise à jour
advise-expect-tokens-per-s = tokens par seconde
advise-expect-mfu = MFU
advise-expect-memory-gb = mémoire
advise-expect-hours = tout le run
advise-expect-updates = mises à jour
advise-expect-device = matériel
advise-days = { $count ->
    [one] { $count } jour
   *[other] { $count } jours
  }
advise-basis-measured = mesuré
advise-basis-calculated = calculé
advise-basis-estimated = estimé
advise-why-title = Pourquoi
advise-note = Les estimations viennent de formules ajustées à des logs publics, où elles s'écartent de { $error_percent } au plus. Pour en avoir de meilleures, entraîner pendant 20 mises à jour (--max_iters=20), puis redemander avec le run : stepglass advise RUN
advise-unknown-time = La vitesse de ce matériel n'est pas encore connue. Avec --measure, on entraîne ici pendant quelques mises à jour et on mesure.
advise-written = { $path } est écrit. Pour entraîner avec : stepglass train { $path }
advise-why-max-iters = Tokens lus : { $tokens } en { $number ->
    [one] une mise à jour
   *[other] { $max_iters } mises à jour
  }, soit { $ratio } par paramètre{ $has_epochs ->
    [yes] {""} et { $epochs } passages sur { $dataset }
   *[no] {""}
  }. { $variant ->
    [few] C'est peu : le calcul est le mieux employé vers 20 par paramètre, ici max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }.
    [many] Le calcul est le mieux employé vers 20 par paramètre, ici max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      } ; au-delà, la perte baisse encore, mais de plus en plus lentement.
    [epochs] Le calcul est le mieux employé vers 20 par paramètre, ici max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      } ; au-delà de 4 passages environ (max_iters={ $four }), répéter les données aide de moins en moins.
    [little-data] C'est peu de données pour ce modèle : au-delà de 4 passages environ (max_iters={ $four }), les répéter aide de moins en moins.
   *[fine] Le calcul est le mieux employé vers 20 par paramètre.
  }{ $is_sure ->
    [no] {" "}Le vocabulaire de { $dataset } n'est pas connu ; supposé : { $vocab }.
   *[yes] {""}
  }
advise-why-device = { $variant ->
    [sizes] Supposé : { $device_bytes }. Ce matériel existe aussi avec { $sizes } Go : { $other }
    [named] Le log vient d'un autre matériel : { $name }. Ses temps n'ont pas été utilisés.
    [speed] Le log montre { $tflops } TFLOP/s, mais ce matériel ne peut pas dépasser { $most } : le log vient d'un autre. Ses temps n'ont pas été utilisés.
    [cuda] Le log vient d'un GPU CUDA. Ses temps n'ont pas été utilisés.
    [mps] Le log vient d'un GPU Apple. Ses temps n'ont pas été utilisés.
   *[cpu] Le log vient d'un CPU. Ses temps n'ont pas été utilisés.
  }
advise-why-minutes = { $variant ->
    [unknown] On ne sait pas combien de mises à jour tiennent dans ce temps, car la vitesse de ce matériel n'est pas connue. stepglass train la mesure et s'en tient à ce temps.
    [small] Il y a trop peu de données pour autant de temps : stepglass train s'arrête après { $number ->
        [one] une mise à jour
       *[other] { $max_iters } mises à jour
      } ({ $epochs } passages sur { $dataset }).
   *[fit] { $number ->
        [one] Environ une mise à jour tient
       *[other] Environ { $max_iters } mises à jour tiennent
      } dans ce temps, évaluations comprises. stepglass train mesure lui-même la vitesse et s'en tient à ce temps.
  }
advise-why-epochs = Passages sur { $dataset } : cela fait { $number ->
    [one] une mise à jour
   *[other] { $max_iters } mises à jour
  }.
advise-why-nproc = { $variant ->
    [found] Le log affiche le MFU d'un seul GPU, mais au total le run est aussi rapide que { $processes } GPU. Ici aussi, le MFU et la mémoire sont ceux d'un seul.
    [measured] { $processes } GPU se partagent chaque mise à jour. Le MFU et la mémoire sont ceux d'un seul.
   *[asked] { $processes } GPU se partagent chaque mise à jour. Le MFU et la mémoire sont ceux d'un seul. Le temps d'échange des gradients n'est ni connu ni compté.
  }
advise-why-batch-size = { $variant ->
    [whole] Toutes les séquences d'une mise à jour tiennent d'un coup : { $need_bytes } sur { $device_bytes }.
    [asked] Comme demandé. Il faut { $need_bytes } sur { $device_bytes } ; { $fits } tiendraient.
    [asked-unknown] Comme demandé. Il faut { $need_bytes }.
    [busy] Comme dans le run. { $fits } tiendraient aussi, mais le matériel est déjà occupé : un token prendrait à peu près le même temps.
    [oom] Avec { $ran }, le run a manqué de mémoire. Il faut ici { $need_bytes }.
    [tried] Le plus rapide de ceux essayés ici pour { $wanted } séquences par mise à jour.
    [kept] Inchangé : cela tient, et sur un CPU des batchs plus grands ne sont guère plus rapides.
    [unknown] Inchangé : la mémoire du matériel n'est pas connue.
   *[largest] Le plus grand qui divise la mise à jour en parts égales et qui tient : { $need_bytes } sur { $device_bytes }. { $margin_percent } restent libres : l'allocateur garde des blocs libérés, et le bureau en occupe un peu.
  }
advise-why-gradient-accumulation-steps = { $accumulation } × { $batch } séquences × { $block_size } = { $tokens } tokens par mise à jour, { $variant ->
    [same] comme voulu.
   *[other] au lieu de { $wanted_tokens }.
  }
advise-why-dtype = { $variant ->
    [asked] Comme demandé.
    [cpu] Le format exact le plus rapide sur un CPU.
    [mps] Le format sûr sur un GPU Apple.
    [float16] Le GPU ({ $device }) n'a pas d'unités bfloat16. float16 demande une mise à l'échelle de la perte, dont le trainer se charge.
   *[bfloat16] C'est avec lui que les tensor cores sont les plus rapides, et la perte n'a pas besoin de mise à l'échelle.
  }
advise-why-compile = { $variant ->
    [asked] Comme demandé.
    [mps] Pas essayé sur un GPU Apple.
    [unknown] { $device ->
        [cuda] Sur un GPU, cela vaut la peine pour un run de plus de quelques minutes.
       *[cpu] Sur un CPU, le gain est faible, et la durée du run n'est pas connue.
      }
    [short] Compiler prend environ { $compile_ms } et ne ferait gagner qu'environ { $saved_ms } (run sans compiler : { $run_ms }).
   *[pays] Compiler prend environ { $compile_ms } et fait gagner environ { $saved_ms } (run sans compiler : { $run_ms }).
  }
advise-why-eval-interval = Une évaluation prend autant de temps que { $cost } mises à jour{ $has_time ->
    [yes] {" "}({ $each_ms })
   *[no] {""}
  }. { $number ->
    [one] À chaque mise à jour
   *[other] Toutes les { $interval } mises à jour
  }, cela fait { $eval_share } du temps{ $variant ->
    [asked] , comme demandé ; { $budget_share } est un bon budget.
    [short] {""} ; le run est court, et il faut au moins quatre évaluations pour voir une courbe.
   *[budget] {""} ; le budget est de { $budget_share }.
  }
advise-why-eval-iters = { $number ->
    [one] Une séquence
   *[other] { $windows } séquences
  } de chaque split, par batchs de { $batch }{ $variant ->
    [same] , autant qu'avant.
   *[other] .
  }
advise-why-checkpoint-interval = { $variant ->
    [asked] Comme demandé.
    [nanogpt] nanoGPT sauvegarde après les évaluations (sans réglage à part), et l'entraînement attend environ { $wait_ms } pour { $state_bytes }.
    [unknown] Au plus deux minutes de travail sont en jeu ; { $state_bytes } sont écrits en arrière-plan.
   *[time] Un plantage perd au plus { $every_ms } de travail. L'entraînement attend environ { $wait_ms } à chaque sauvegarde ; ses { $state_bytes } sont écrits en arrière-plan.
  }
advise-why-ms-per-iter = { $variant ->
    [same] Mesuré avec ces réglages, { $speed }.
    [sequences] Mesuré : { $measured_ms } avec batch_size={ $batch } ; converti selon le nombre de séquences.
    [faster] Mesuré : { $measured_ms } avec batch_size={ $batch } ({ $speed }). Avec { $changes }, cela devrait être { $gain_percent } plus rapide.
    [scaled] Mesuré : { $measured_ms } avec batch_size={ $batch } ({ $speed }). Ces réglages devraient être à peu près aussi rapides.
    [launch] Lancer les kernels prend plus de temps que les calculer : { $launch_ms } ; optimiseur { $optimizer_ms }.
    [unknown] La vitesse de ce matériel n'est pas connue.
   *[model] Produits de matrices { $matrix_ms }, activations déplacées en mémoire { $memory_ms }, optimiseur { $optimizer_ms }.
  }
advise-why-memory-gb = Poids { $weights_bytes }, gradients { $gradients_bytes }, optimiseur { $optimizer_bytes }, activations { $activations_bytes }, logits { $logits_bytes }, contexte { $context_bytes }.
advise-why-hours = { $number ->
    [one] Une mise à jour
   *[other] { $max_iters } mises à jour
  }, avec évaluations ({ $eval_share } du temps) et checkpoints.
