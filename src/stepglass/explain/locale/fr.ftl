# Ce que dit `stepglass explain`. Les valeurs arrivent mises en forme (durées, pertes, numéros d'itération)
# sauf $count, $lines, $more et $replayed, qui sont des nombres et commandent les pluriels.
# Les noms de réglages (eval_interval) et les mots du log (iter, step, mfu) ne se traduisent pas.

## The frame

log-is = { $name } : { $format }, { $lines ->
    [one] { $lines } ligne, { $understood } comprise
   *[other] { $lines } lignes, { $understood } comprises
  } ({ $share })
log-segments = { $count ->
    [one] un seul run
   *[other] { $count } runs à la suite (le numéro d'itération revient en arrière, ou le log l'indique)
  }
segment-title = Run { $number } : itérations { $first } à { $last }
normal-is = Une itération normale prend { $normal_ms }.
ends-with = Il se termine par une erreur (ligne { $line }) : { $detail }
loss-row = loss
time-row = temps
where-title = Où est passé le temps
basis-run-log = d'après le journal du run : chaque milliseconde est enregistrée
basis-timestamps = d'après les horodatages du log
basis-wall-clock = d'après la durée totale indiquée par le log
basis-printed = d'après les temps affichés : toutes les itérations sont affichées
basis-estimated = estimation : les itérations non affichées sont supposées normales
phase-step = pas d'entraînement
phase-eval = évaluations
phase-checkpoint = checkpoints
phase-eval-checkpoint = évaluations et checkpoints
phase-warmup-eval = mise en route et première évaluation
phase-warmup = mise en route
phase-stall = blocages inexpliqués
phase-unattributed = non attribué
phase-data = attente des données
phase-forward_backward = passes avant et arrière
phase-optimizer = optimiseur
phase-log = écriture du log
phase-gc = ramasse-miettes de Python
phase-other = autre
wall-clock = durée totale
findings-title = Constats
no-findings = Rien à changer.
status-established = établi
status-supported = étayé
status-hypothesis = hypothèse
level-problem = problème
level-advice = conseil
level-note = note
lines-cited = { $count ->
    [one] ligne { $lines }
   *[other] lignes { $lines }
  }
lines-more = { $lines } et { $more } de plus
change-is = pour y remédier : { $flags }
cannot-title = Ce que ce log ne peut pas montrer
top-findings = À retenir (stepglass explain { $run } en dit plus) :

## Rules

rule-eval-inside-iteration-title = iter { $iter } n'est pas une itération lente : son temps comprend une évaluation
rule-eval-inside-iteration-text = Le chronomètre de nanoGPT court de la fin d'une itération à la fin de la suivante. À { $count ->
    [one] cette échéance
   *[other] ces { $count } échéances
  }, il englobe aussi l'évaluation affichée juste avant{ $variant ->
    [eval] {""}
   *[other] {" "}et, là où une ligne l'indique, l'enregistrement d'un checkpoint
  }. Sur les { $time_ms } d'iter { $iter }, { $excess_ms } viennent de là{ $variant ->
    [split] {" "}(environ { $eval_ms } d'évaluation et { $save_ms } de checkpoint)
   *[other] {""}
  } ; le pas d'entraînement lui-même a pris { $normal_ms }, comme d'habitude. Pour avoir moins de lignes de ce genre, augmenter eval_interval (le réduire en donne davantage) ; pour qu'elles durent moins longtemps, réduire eval_iters.

rule-mfu-echo-title = Le creux du mfu est l'écho d'une seule ligne lente, pas un ralentissement
rule-mfu-echo-text = Le mfu affiché est une moyenne glissante : neuf dixièmes de l'ancienne valeur, un dixième de la nouvelle. Le temps d'iter { $iter } l'a fait passer de { $before_mfu } à { $printed_mfu }, et il lui faut une vingtaine de lignes pour remonter. Recalculer cette moyenne à partir des temps affichés redonne la colonne affichée, au dernier chiffre près, sur les { $replayed } lignes essayées. La vitesse, elle, n'a pas changé : { $clean_mfu }.

rule-warm-up-title = iter { $iter } comprend la mise en route
rule-warm-up-text = { $variant ->
    [eval] Les { $time_ms } de la première itération sont son évaluation et un pas normal ({ $normal_ms }) ; la mise en route se voit à peine.
    [both] La première itération a pris { $time_ms } : environ { $warmup_ms } de mise en route (compilation, kernels, premiers batchs), { $eval_ms } d'évaluation et un pas de { $normal_ms }.
    [together] La première itération a pris { $time_ms } : mise en route (compilation, kernels, premiers batchs) et évaluation lancée par nanoGPT à l'itération 0, ensemble. Aucune évaluation isolée plus loin dans ce log ne permet de les séparer ; un pas normal prend { $normal_ms }.
   *[plain] La première itération a pris { $time_ms }, contre { $normal_ms } d'habitude : compilation, choix des kernels et premiers batchs. Cela n'arrive qu'une fois.
  }

rule-mfu-wrong-peak-title = Le mfu affiché est rapporté au mauvais pic
rule-mfu-wrong-peak-text = { $variant ->
    [other] Le log divise par { $assumed_tflops } TFLOP/s. Sur { $device } ({ $peak_tflops } TFLOP/s), les { $clean_mfu } d'une itération normale correspondent à { $corrected_mfu } : valeur affichée × { $assumed_tflops } / { $peak_tflops }.
    [over] Aucun matériel n'atteint { $printed_mfu } : le log divise par { $assumed_tflops } TFLOP/s, le pic d'un A100, et ce run a tourné sur plus rapide. L'indiquer avec --device pour obtenir le vrai chiffre.
   *[no-peak] nanoGPT divise par { $assumed_tflops } TFLOP/s, le pic d'un A100, quel que soit le matériel. Pour { $device }, ce chiffre ne fait que comparer ce run à un A100 ; la vitesse réellement atteinte est de { $achieved_tflops } TFLOP/s.
  }

rule-small-kernels-title = Le GPU attend du travail : les kernels sont trop petits
rule-small-kernels-text = Le GPU { $device } atteint { $corrected_mfu } de son pic, à { $normal_ms } par itération. Avec un modèle ou un micro-batch aussi petit, lancer les kernels prend autant de temps que les exécuter. Tant que c'est le cas, des batchs plus gros ne coûtent presque pas de temps en plus.

rule-accumulation-waste-title = L'accumulation de gradients enchaîne de petits batchs
rule-accumulation-waste-text = { $accumulation } micro-batchs de taille { $batch } passent l'un après l'autre là où il en suffirait de moins nombreux et plus gros. Les valeurs proposées gardent le même nombre de tokens par itération ({ $tokens_per_iter }) et demandent environ { $memory_bytes } de mémoire.

rule-slow-path-title = { $variant ->
    [attention] L'attention passe par le chemin lent
    [compile] torch.compile a renoncé à une partie du modèle
    [float32] L'entraînement en float32 laisse les tensor cores inactifs
   *[mps] Sur mps, nanoGPT calcule en float32 quel que soit dtype
  }
rule-slow-path-text = { $variant ->
    [attention] D'après le log, l'attention fusionnée n'est pas disponible : chaque couche écrit donc sa matrice d'attention en entier. Un PyTorch plus récent règle la question.
    [compile] Le log contient { $count ->
        [one] un avertissement
       *[other] { $count } avertissements
      } de retour au mode eager : on paie la compilation sans en avoir le gain.
    [float32] Sur un GPU qui sait calculer en bfloat16, les produits de matrices en float32 tournent à une fraction de la vitesse possible.
   *[mps] nanoGPT traite tout ce qui n'est pas CUDA comme un CPU et désactive la précision mixte. Rien d'anormal : s'attendre à la vitesse du float32.
  }

rule-data-bound-title = L'entraînement attend les données
rule-data-bound-text = L'attente des batchs a pris { $data_share } du temps de travail{ $variant ->
    [phases] {""} ({ $total_ms } en tout)
   *[plain] {""} ({ $total_ms } en tout) : { $median_ms } par batch en médiane, { $worst_ms } au pire
  }. Garder les données sur un disque local ou en mémoire, et les lire à l'avance.

rule-periodic-stall-title = Un blocage toutes les { $every } itérations, hors de toute échéance
rule-periodic-stall-text = { $count } itérations ont pris environ { $excess_ms } de plus que leurs voisines, à intervalle régulier et en dehors des évaluations et des checkpoints : { $total_ms } en tout. { $variant ->
    [gc] Le log y montre le ramasse-miettes de Python à l'œuvre.
   *[plain] Le ramasse-miettes de Python peut en être la cause, tout comme un autre processus périodique.
  } gc.freeze() et gc.disable() après les premières itérations permettent d'écarter le ramasse-miettes.

rule-slowdown-title = Les itérations durent { $rise_percent } de plus qu'au début
rule-slowdown-text = Une itération normale est passée de { $first_ms } à { $last_ms }{ $variant ->
    [drift] , peu à peu
   *[other] , vers iter { $iter }
  }, sans redescendre ensuite. { $variant ->
    [throttle] Le log signale une limite thermique ou électrique : la cause est le refroidissement ou le réglage de puissance.
   *[other] La chaleur, un autre programme sur le même matériel ou le manque de mémoire peuvent en être la cause ; le log ne dit pas laquelle. Surveiller la fréquence et la température pendant le run.
  }

rule-eval-too-expensive-title = { $variant ->
    [together] Évaluations et checkpoints prennent { $eval_share } du temps
   *[plain] L'évaluation prend { $eval_share } du temps
  }
rule-eval-too-expensive-text = Chaque { $variant ->
    [together] évaluation, checkpoint compris,
   *[plain] évaluation
  } coûte { $each_ms }, autant que bien des pas de { $normal_ms }, et revient toutes les { $interval } itérations. Un eval_interval de { $wanted } ramènerait ce coût à 5 % ; moins de batchs par évaluation aussi (eval_iters{ $fewer_iters ->
    [none] {""}
   *[other] {" "}{ $fewer_iters }
  }), au prix de pertes plus bruitées.

rule-eval-noise-title = Les dernières évaluations diffèrent de moins que leur bruit
rule-eval-noise-text = L'incertitude d'une évaluation est de { $se_loss } ; il faut un écart de { $least_loss } entre deux d'entre elles pour qu'il ait un sens, et les { $count } derniers écarts n'ont pas dépassé { $largest_loss }. Ne pas choisir de checkpoint sur cette base{ $variant ->
    [more] {""} : augmenter eval_iters, ou évaluer toujours sur les mêmes fenêtres, permet de trancher
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } de travail et toujours aucun checkpoint
   *[plain] Les checkpoints prennent { $save_share } du temps
  }
rule-checkpoint-interval-text = { $variant ->
    [none] Aucune ligne de ce log n'indique qu'un checkpoint a été enregistré. Un plantage maintenant ferait tout perdre.
   *[plain] { $count } checkpoints d'environ { $save_ms } chacun ont arrêté l'entraînement pendant { $total_ms }. En comptant une panne par jour, l'idéal est un checkpoint toutes les { $wanted_ms } ; dans nanoGPT, l'enregistrement est lié à eval_interval.
  }

rule-overfitting-title = { $variant ->
    [gap] Surapprentissage : la perte de validation est bien au-dessus de la perte d'entraînement
   *[other] Surapprentissage depuis l'itération { $best_iter }
  }
rule-overfitting-text = { $variant ->
    [gap] Au step { $last_iter }, le modèle obtient { $train_loss } sur du texte déjà vu et { $last_loss } sur du texte jamais vu : un écart de { $gap_loss }, soit { $gap_percent } de la perte d'entraînement ; il hésite { $perplexity_times } fois plus sur un texte nouveau. C'est du par cœur, pas un petit écart. Avec si peu d'évaluations, le log ne peut pas montrer quand cela a commencé : chercher le step où val loss est au plus bas.
    [no-train] La perte de validation a atteint son minimum au step { $best_iter } ({ $best_loss }), puis a augmenté de { $rise_loss } ({ $rise_percent }) jusqu'à { $last_loss } pendant que la perte d'entraînement baissait. Tout ce qui suit ce step a dégradé le modèle sur du texte nouveau.
   *[rising] La perte de validation a atteint son minimum au step { $best_iter } ({ $best_loss }), puis a augmenté de { $rise_loss } ({ $rise_percent }) jusqu'à { $last_loss }, pendant que la perte d'entraînement descendait à { $train_loss }. Tout ce qui suit ce step a dégradé le modèle sur du texte nouveau : s'arrêter là, augmenter dropout, ajouter des données ou prendre un modèle plus petit.
  }

rule-best-checkpoint-lost-title = Le meilleur checkpoint a été écrasé par un moins bon
rule-best-checkpoint-lost-text = nanoGPT ne garde qu'un checkpoint. Le meilleur était celui du step { $best_iter } (val loss { $best_loss }) ; le fichier contient maintenant celui du step { $kept_iter } ({ $kept_loss }), moins bon de { $worse_loss }.

rule-stopped-early-title = Le run s'est terminé alors qu'il apprenait encore
rule-stopped-early-text = La perte de validation baissait encore à la fin (step { $last_iter } : { $last_loss }), d'environ { $gain_loss } par millier d'itérations, sans que la perte d'entraînement s'en détache. Un run plus long, avec une décroissance étirée d'autant, devrait encore y gagner.

rule-schedule-mismatch-title = { $variant ->
    [batch] Le taux d'apprentissage est élevé pour si peu de tokens par itération
    [floor] Le plancher du taux d'apprentissage est inhabituel
    [warmup] Le warmup occupe une grande partie du run
   *[other] La décroissance du taux d'apprentissage ne correspond pas à la longueur du run
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr vaut { $low_lr } pour un learning_rate de { $rate } ; un dixième est l'usage.
    [batch] learning_rate { $rate } a été réglé pour un demi-million de tokens par itération ; il y en a ici { $batch_tokens }. Moins de tokens, c'est un gradient plus bruité : réduire le taux selon la racine carrée.
    [warmup] Le taux d'apprentissage monte pendant { $warmup_iters } itérations sur { $max_iters } ; un ou deux pour cent suffisent d'ordinaire.
    [long] lr_decay_iters vaut { $decay_iters } mais le run s'arrête à { $max_iters } : le taux d'apprentissage ne devient jamais faible, or c'est à bas taux que la perte baisse beaucoup.
   *[short] lr_decay_iters vaut { $decay_iters } et le run continue jusqu'à { $max_iters } : après la décroissance, toutes les itérations tournent à min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] Une évaluation n'a pas donné de nombre (step { $iter }, ligne { $line })
   *[other] La perte n'est plus un nombre à partir d'iter { $iter } (ligne { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] La perte d'entraînement reste finie : le modèle apprend toujours. C'est l'évaluation elle-même qui est en cause : aucun batch, ou aucune cible valable.
   *[other] { $last_iter ->
        [none] La toute première perte affichée n'est déjà pas un nombre.
       *[other] La dernière perte finie était { $last_loss }, à iter { $last_iter }.
      } Rien n'a été appris depuis : arrêter le run{ $save_iter ->
        [none] {""}
       *[other] {" "}et revenir au checkpoint de l'itération { $save_iter }, s'il n'a pas été écrasé
      }. { $variant ->
        [fp16] En float16, les grandes valeurs débordent ; pas en bfloat16 ni en float32.
       *[other] Causes habituelles : taux d'apprentissage trop élevé, débordement en float16, ou identifiant de token hors du vocabulaire.
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Depuis, les itérations durent { $faster_percent } de moins : c'est ce qu'on voit quand le gradient scaler saute toutes les mises à jour.
      }
  }

rule-divergence-title = L'entraînement a divergé vers iter { $iter }
rule-divergence-text = La perte était descendue à { $best_loss } (iter { $best_iter }), puis elle est remontée pour de bon : { $last_loss } à la fin{ $variant ->
    [rate] {""}, le taux d'apprentissage valant { $rate } au moment où elle décroche
   *[plain] {""}
  }. Revenir à un checkpoint antérieur, avec un taux d'apprentissage deux fois plus petit et un warmup plus long.

rule-loss-spike-title = { $count ->
    [one] Un pic de perte à iter { $iter }
   *[other] { $count } pics de perte, le plus haut à iter { $iter }
  }
rule-loss-spike-text = La perte a bondi à { $loss } au lieu de { $around_loss } d'habitude ({ $z } fois le bruit), puis elle est revenue. Quelques pics de ce genre sont sans gravité ; s'ils sont nombreux, réduire grad_clip ou learning_rate.

rule-initial-loss-title = La première perte ne correspond pas au vocabulaire
rule-initial-loss-text = Un modèle qui ne sait rien obtient ln({ $vocab }) = { $expected_loss } ; celui-ci a commencé à { $seen_loss }. { $variant ->
    [low] Soit il n'est pas parti de zéro, soit les cibles fuitent dans son entrée, soit le vocabulaire est plus grand que nécessaire pour ces données.
   *[high] Vérifier vocab_size et meta.pkl, le décalage entre entrée et cible, et l'initialisation.
  }

rule-plateau-title = La perte de validation ne bouge plus
rule-plateau-text = Sur les { $count } dernières évaluations (steps { $first_iter } à { $last_iter }), elle est restée à { $mean_loss } ; sa tendance est de { $moved_loss } en tout, pas plus que le bruit. { $variant ->
    [peak] Le taux d'apprentissage est encore à son maximum : le réduire ou entamer la décroissance.
    [floor] Le taux d'apprentissage est à son plancher : ce schedule a donné tout ce qu'il pouvait.
   *[plain] Le log ne dit pas où en est le taux d'apprentissage : impossible de distinguer un schedule terminé d'un taux encore trop élevé.
  }

rule-data-budget-title = { $variant ->
    [epochs] Le run parcourt ses données { $epochs } fois
    [few] Peu de tokens pour ce modèle : { $ratio } par paramètre
   *[many] Beaucoup de tokens pour ce modèle : { $ratio } par paramètre
  }
rule-data-budget-text = { $max_iters } itérations représentent { $tokens } tokens pour { $parameters } paramètres, soit { $ratio } par paramètre ; l'équilibre habituel est d'environ 20. { $variant ->
    [epochs] Le texte lui-même est bien plus petit, il est donc lu { $epochs } fois : au-delà de quatre environ, un modèle l'apprend surtout par cœur.
    [few] Un modèle plus petit, ou plus d'itérations, ferait meilleur usage du temps.
   *[many] Un modèle plus grand atteindrait une perte plus basse dans le même temps.
  }

rule-out-of-memory-title = Mémoire insuffisante
rule-out-of-memory-text = { $variant ->
    [sizes] Le run a demandé { $tried_bytes } de plus, en vain.
   *[plain] Le run a demandé plus de mémoire que le matériel n'en a.
  } Diviser batch_size par deux et doubler gradient_accumulation_steps donne le même entraînement et réduit d'environ moitié la mémoire qui croît avec le batch ; un block_size plus court aide aussi. Les messages qui suivent le premier n'en sont que les conséquences.

rule-contradiction-title = { $variant ->
    [tokens] Les tokens par seconde affichés sont faux d'un facteur { $times }
    [clock] Les temps affichés ne sont pas les vrais
    [rate] Les tokens par seconde affichés à la fin sont faux
   *[hidden-nan] La perte a l'air bonne parce que le log cache qu'elle ne l'est pas
  }
rule-contradiction-text = { $variant ->
    [tokens] Un pas traite { $stated_tokens } tokens, mais les tokens par seconde multipliés par la durée du pas en donnent { $implied_tokens }. Se fier à la durée : elle donne { $real_rate } tokens par seconde, et non { $printed_rate }.
    [clock] Une itération normale affiche { $normal_ms } ; d'après les horodatages, c'est { $stamped_ms }. Se fier aux horodatages : sans synchronisation, le temps affiché s'arrête quand Python a fini, pas quand le GPU a fini.
    [rate] Le total des tokens divisé par le temps d'entraînement donne { $real_rate } par seconde, et non { $printed_rate }.
   *[hidden-nan] La norme du gradient n'est pas un nombre ({ $count ->
        [one] une fois
       *[other] { $count } fois
      }) alors que la perte affichée suit son cours : par défaut, ce trainer affiche la moyenne courante à la place d'un NaN. Mettre logging_nan_inf_filter à False pour le voir.
  }

rule-unexplained-stall-title = iter { $iter } : { $excess_ms } de blocage, qu'aucune échéance n'explique
rule-unexplained-stall-text = Cette itération a pris { $time_ms }, contre { $normal_ms } d'habitude{ $variant ->
    [grid] {""}, et les évaluations reviennent toutes les { $eval_interval } itérations : ce n'en est pas une
   *[plain] {""}
  }. { $count ->
    [one] {""}
   *[other] Il y a { $count } lignes de ce genre, { $total_ms } en tout.{" "}
  }Mise en veille, autre programme, disque plein ou lent, recompilation : tout cela est possible, et le log ne permet pas de trancher.

rule-last-line-is-eval-title = La dernière ligne est une évaluation : ne pas citer son temps
rule-last-line-is-eval-text = Le run se termine sur une échéance : iter { $iter } affiche donc { $time_ms } alors que l'entraînement prend { $normal_ms } par itération{ $variant ->
    [mfu] {""}, et un mfu de { $printed_mfu } alors que le bon est { $clean_mfu }
   *[plain] {""}
  }.

## What a log cannot show

cannot-data-wait = Combien de temps l'entraînement a attendu les données : nanoGPT ne le mesure pas.
cannot-unprinted = Le temps de chaque itération : seules certaines sont affichées, les autres sont supposées normales.
cannot-device = Sur quel matériel le run a tourné : le mfu se rapporte aux 312 TFLOP/s d'un A100. Indiquer le matériel avec --device.
cannot-split = Comment une échéance se partage entre évaluation et checkpoint : toutes ont les deux, et aucune ligne n'est horodatée.
cannot-last-micro-batch = La perte d'une itération entière : nanoGPT affiche celle du dernier micro-batch.
cannot-wall-clock = Ce qui s'est passé hors de la boucle (imports, données, fin) : aucune ligne ne dit quand elle a été affichée.
cannot-no-times = Où est passé le temps : ce log n'affiche ni temps ni horodatages.
cannot-evals-unprinted = Ce que les évaluations ont coûté, et donc la durée du run : elles tombent sur des itérations non affichées.
cannot-no-evals = Si le modèle généralise : il n'y a aucune évaluation dans ce log.
cannot-format-nanochat = Évaluations, échantillons et checkpoints : le dt et le temps total de nanochat ne les comptent pas ; sa perte est lissée.
cannot-format-modded-nanogpt = Ce que coûtent la validation et le démarrage : le chronomètre est arrêté pendant ce temps.
cannot-format-llm-c = Ce que coûtent la validation et les checkpoints : seuls les pas sont chronométrés.
cannot-format-litgpt = L'attente des données : le temps d'une itération démarre une fois son batch chargé.
cannot-format-torchtitan = Les pas un par un : ses chiffres sont des moyennes depuis la ligne précédente, et un checkpoint compte dans la suivante.
cannot-format-hf-trainer = Le temps d'un pas et d'un checkpoint : ils ne sont pas affichés. Par défaut, une perte NaN est remplacée par une moyenne.
cannot-format-lightning = Les pas un par un : la vitesse de la barre est lissée.
cannot-format-composer = Ce que coûte un checkpoint : il est compté dans le batch suivant.
cannot-format-lingua = Ce que coûte une évaluation ou un checkpoint : cela fait baisser le débit de la ligne suivante.
cannot-format-mingpt = Ce que coûtent la génération et l'enregistrement : le temps affiché est celui de l'itération précédente.
cannot-format-char-rnn = Ce que coûtent les évaluations et les checkpoints : ils ne sont pas chronométrés.
cannot-format-megatron = Ce que coûtent la validation et les checkpoints, sauf si leurs propres lignes le disent.
left-out-settings = Les réglages au-delà des { $most } premiers noms : { $count } lignes qui en ont d'autres ne sont pas gardées.
left-out-events = Chaque message : { $count } du milieu d'une longue série sont comptés, mais pas gardés.
left-out-evals = Chaque évaluation : sur { $count }, { $kept } sont gardées, dont la meilleure et la dernière. Les nombres et les durées portent sur toutes.
left-out-runs = Où chaque exécution a commencé : { $count } de plus ont été trouvées que les { $most } que l'on distingue.

## --lines

lines-title = Ligne par ligne
line-iter = Une mise à jour des poids, la n° { $iter }, sur un batch.
line-loss = loss { $loss } : à quel point les prédictions sur ce batch étaient fausses (entropie croisée, plus bas = mieux) ; le modèle donne au bon token suivant une probabilité de e^-{ $loss } = { $chance } en moyenne. Les batchs isolés sont dispersés : regarder la tendance.
line-time = time { $time_ms } : une itération normale ici ({ $normal_ms } d'habitude).
line-time-slow = time { $time_ms } : { $excess_ms } de plus que d'habitude ({ $normal_ms }). Cause : { $cause }.
line-mfu = mfu { $mfu } : moyenne glissante de la part des 312 TFLOP/s d'un A100 qu'utilisent les calculs du modèle.
line-mfu-none = mfu -100 % : pas encore mesuré ; nanoGPT commence à l'itération 5.
line-mfu-worked = Une itération normale, hors moyenne : { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP de calcul ; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = Sur { $device } ({ $peak_tflops } TFLOP/s), cela fait { $corrected_mfu }.
line-mfu-formula = Par la formule : (6 × { $parameters } paramètres + 12 × { $n_layer } couches × largeur { $n_embd } × { $block_size } tokens) × { $tokens } tokens par itération = { $work_tflop } TFLOP.
line-eval = Une évaluation au step { $iter } : pertes moyennes sur de nombreux batchs, sans apprentissage.
line-eval-train = train loss { $train_loss } : sur le texte dont le modèle apprend.
line-eval-val = val loss { $val_loss } : sur du texte dont il n'apprend jamais ; c'est le chiffre qui compte.
line-eval-gap = L'écart entre les deux est de { $gap_loss }.
line-eval-best = La meilleure jusqu'ici.
line-eval-worse = Moins bonne que celle du step { $best_iter } ({ $best_loss }).
line-save = Un checkpoint a été enregistré ; dans nanoGPT, il compte dans le temps de l'itération suivante.
line-run = Itérations normales du même genre, de { $first } à { $last } : { $count } en tout, loss de { $first_loss } à { $last_loss }, de { $low_ms } à { $high_ms } chacune.
line-unknown = { $count ->
    [one] Une ligne n'a pas été comprise.
   *[other] { $count } lignes n'ont pas été comprises.
  }
cause-warmup = mise en route
cause-eval = évaluation
cause-checkpoint = checkpoint
cause-unexplained = inexpliquée

## The page of `report` and `watch`

page-language = Français
page-language-choice = langue
page-unknown = n/a
page-about = journal { $format }, { $lines } lignes, { $understood } comprises
page-level-good = tout va bien
page-level-advice = à regarder
page-level-problem = problème
page-health-good = Aucune règle n'a trouvé quoi que ce soit à changer.
page-health-more = { $title }, et { $count ->
    [one] un autre constat
   *[other] { $count } autres constats
  }
page-health-waiting = Aucune itération n'est encore enregistrée.
page-health-failed = L'entraînement s'est terminé par une erreur : { $detail }
page-health-killed = Le processus a disparu sans un mot : il a été tué. On peut reprendre au dernier checkpoint.
page-state = état
page-state-running = en cours, { $step } itérations sur { $max }
page-state-finished = terminé après { $step } itérations
page-state-target = objectif atteint après { $step } itérations
page-state-signal = arrêté par un signal après { $step } itérations
page-state-failed = échec après { $step } itérations
page-state-oom = à court de mémoire après { $step } itérations
page-state-error = terminé par une erreur après { $step } itérations
page-state-killed = tué après { $step } itérations sur { $max }
page-state-waiting = en attente de la première itération
page-state-unknown = inconnu
page-state-log = { $step } itérations enregistrées
page-left = encore { $left } environ
page-live = en direct
page-lost = pas de connexion, nouvel essai en cours
page-run = entraînement
page-runs = Entraînements
page-no-runs = Il n'y a pas encore d'entraînement ici. Il apparaîtra dès qu'il commencera.
page-compare = Ce qui diffère
page-loss = Perte
page-iterations = La durée de chaque itération
page-speed = Vitesse
page-inside = À l'intérieur du pas
page-samples = Échantillons
page-settings = Réglages et machine
page-config = Réglages
page-environment = Machine et modèle
page-chart-loss = Perte d'entraînement et de validation
page-chart-shares = Part du temps, au fil de l'entraînement
page-chart-time = Temps par itération
page-chart-tokens = Tokens par seconde
page-chart-mfu = MFU du pas d'entraînement
page-chart-lr = Taux d'apprentissage
page-chart-grad = Norme du gradient
page-chart-memory = Mémoire
page-log-scale = échelle log
page-keys = Les flèches déplacent le curseur, plus et moins zooment, 0 montre tout.
page-axis = axe x
page-axis-iter = itérations
page-axis-time = temps
page-zoom-in = agrandir
page-zoom-out = réduire
page-left-key = vers la gauche
page-right-key = vers la droite
page-reset = tout voir
page-smoothing = lissage
page-train = entraînement
page-val = validation
page-dashed = en tirets : validation
page-band = La bande autour de la perte de validation est son erreur type.
page-best = meilleure { $loss } à { $number }
page-iteration = iter { $number }
page-train-loss = perte d'entraînement { $loss }
page-smoothed = lissée { $loss }
page-val-loss = perte de validation { $loss } à { $number }
page-slow-because = lente à cause de : { $cause } (d'ordinaire : { $normal })
page-normal = Une itération ordinaire prend { $normal }. Pointez un pic pour voir pourquoi il est lent.
page-mfu = { $value } dans un pas ordinaire ; crête : { $source }
page-peak-device = { $peak } TFLOP/s, d'après la table pour { $device }
page-peak-assumed = { $peak } TFLOP/s, supposés par l'entraîneur ; le journal ne nomme aucun appareil
page-lines = ligne { $lines }
page-copy = copier
page-copied = copié
page-outcome-best = meilleure perte de validation (à)
page-outcome-val = dernière perte de validation
page-outcome-loss = dernière perte d'entraînement
page-outcome-iters = dernière itération
page-outcome-normal = itération ordinaire
page-outcome-wall = temps total
page-outcome-mfu = MFU
page-thinned = Sur { $total } itérations, { $drawn } sont dans ce fichier : de chaque tronçon, celles où chaque grandeur est la plus basse et la plus haute. Les sommes portent sur toutes.
page-thinned-live = Sur { $total } itérations, { $drawn } sont tracées, dont les plus basses et les plus hautes de chaque tronçon. Zoomer les montre une à une.
