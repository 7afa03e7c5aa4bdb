# What `stepglass explain` says. Values arrive formatted (durations, losses, iteration numbers) except
# $count, $lines, $understood, $more and $replayed, which are numbers: they choose plurals.
# Setting names (eval_interval) and log words (iter, step, mfu) are never translated.

## The frame

log-is = { $name }: { $format }, { $lines ->
    [one] one line
   *[other] { $lines } lines
  }, { $understood } understood ({ $share })
log-segments = { $count ->
    [one] one run
   *[other] { $count } runs, one after the other (the iteration number goes back, or the log says so)
  }
columns-taken = The trainer is not known. Columns were taken for: { $columns }
segment-title = Run { $number }{ $unit ->
    [entry] {""}
    [epoch] { $span ->
        [one] {""}: epoch { $first }
       *[many] {""}: epochs { $first } to { $last }
      }
   *[step] { $span ->
        [one] {""}: iteration { $first }
       *[many] {""}: iterations { $first } to { $last }
      }
  }
answer-problem = Problem: { $title }
answer-advice = Worth changing: { $title }
answer-note = No problem found. { $title }
answer-fine = No problem found.
answer-error = Problem: the run ended with an error (line { $line }): { $detail }
answer-interrupted = No problem found; the run was interrupted (line { $line }).
answer-step = { $counts ->
    [epochs] An epoch takes { $normal_ms }.
    [micro-batches] An iteration takes { $normal_ms }; an update consists of several.
   *[steps] A training step takes { $normal_ms }.
  }
answer-mean = A step takes { $mean_ms } on average by { $clock }.
answer-run-mean = { $counts ->
    [epochs] An epoch takes { $mean_ms } on average, everything included.
   *[other] A step takes { $mean_ms } on average, everything else included.
  }
answer-no-step = No line that was understood says how long a step takes.
answer-see = What to do is explained below.
answer-keep = This log shows nothing to change.
ends-with = ended with an error (line { $line }): { $detail }
val-losses = { $figure ->
    [bpb] validation, bits per byte
   *[loss] validation loss
  }: { $which ->
    [only] { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }
    [best] best { $best_loss } { $best_iter ->
        [none] (the last)
       *[other] (step { $best_iter }, the last)
      }
   *[both] best { $best_loss }{ $best_iter ->
        [none] {""}
       *[other] {" "}(step { $best_iter })
      }, last { $last_loss } (step { $last_iter })
  }
unit-epoch = epoch
unit-entry = entry
loss-row = loss
time-row = time
where-title = Where the time went
basis-run-log = from the run log: every millisecond was recorded
basis-timestamps = by the log's timestamps
basis-wall-clock = by the total the log states
basis-clock = by the log's own clock, { $clock }
basis-bar = by the progress bar's elapsed time
basis-printed = the sum of the printed times
basis-estimated = estimated: iterations that are not printed are taken to be like the printed ones
covers-run = the whole run
covers-loop = { $unit ->
    [epoch] { $span ->
        [one] epoch { $first }
       *[many] epochs { $first } to { $last }
      }
   *[step] { $span ->
        [one] iteration { $first }
       *[many] iterations { $first } to { $last }
      }
  }
covers-loop-unnumbered = the printed iterations
covers-timed = { $unit ->
    [epoch] { $span ->
        [one] steps and evaluations of epoch { $first }
       *[many] steps and evaluations of epochs { $first } to { $last }
      }
   *[step] { $span ->
        [one] step and evaluations of iteration { $first }
       *[many] steps and evaluations of iterations { $first } to { $last }
      }
  }
covers-timed-unnumbered = the printed steps and evaluations
covers-steps = { $span ->
    [one] training step { $first } only; evaluations and checkpoints are not included
   *[many] training steps { $first } to { $last } only; evaluations and checkpoints are not included
  }
covers-steps-unnumbered = the printed training steps only; evaluations and checkpoints are not included
clock-of-bar = the progress bar's elapsed time
clock-without = { $clock }, which leaves out: { $phases }
phase-step = training steps
phase-eval = evaluations
phase-checkpoint = checkpoints
phase-eval-checkpoint = evaluations and checkpoints
phase-warmup-eval = start-up and first evaluation
phase-warmup = start-up
phase-rest = everything else
phase-all = training, everything included
phase-stall = unexplained stalls
phase-unattributed = unattributed
phase-data = waiting for data
phase-forward_backward = forward and backward passes
phase-optimizer = optimizer
phase-log = logging
phase-gc = Python's garbage collector
phase-other = other
within-communication = of this, communication
within-waiting = of this, waiting for the slowest
wall-clock = wall clock
total = total
findings-title = Findings
no-findings = No problem found.
status-established = established
status-supported = supported
status-hypothesis = hypothesis
level-problem = problem
level-advice = advice
level-note = note
lines-cited = { $count ->
    [one] line { $lines }
   *[other] lines { $lines }
  }
lines-more = { $lines } and { $more } more
grade-run = run { $number }
grade-is = { $level }, { $status }
grade-cites = { $level }, { $status }; { $cited }
change-is = Try: { $flags }
cannot-title = What this log cannot show
cannot-more = ({ $count } more with --all)
top-findings = What stands out (stepglass explain { $run } says more):

## Rules

rule-eval-inside-iteration-title = { $cost ->
    [share] { $includes ->
        [together] Evaluations and checkpoints take { $eval_share } of the time; iter { $iter } is slow because it includes both
       *[other] Evaluations take { $eval_share } of the time; iter { $iter } is slow because it includes one
      }
    [ratio] iter { $iter } is slow because it includes an evaluation, which costs as much as { $each_iters } iterations
   *[low] { $place ->
        [window] The { $window } iterations up to iter { $iter } are not slow: their mean time includes an evaluation
       *[one] iter { $iter } is not a slow iteration: its time includes an evaluation
      }
  }
rule-eval-inside-iteration-text = { $place ->
    [window] The printed time is the mean of everything since the previous line.
   *[one] The timer runs from the end of one iteration to the end of the next.
  } At { $count ->
    [one] this line
   *[other] these { $count } lines
  } it also includes { $evidence ->
    [inferred] an evaluation, which the log does not print
   *[printed] the evaluation printed just before
  }{ $includes ->
    [eval] {""}
   *[other] {" "}and, where a line says so, a checkpoint
  }. Of the { $time_ms } { $place ->
    [window] of the { $window } iterations up to iter { $iter }
   *[one] at iter { $iter }
  }, { $excess_ms } are that{ $includes ->
    [split] {" "}(about { $eval_ms } of evaluation and { $save_ms } of checkpoint)
   *[other] {""}
  }; a normal iteration takes { $normal_ms }. { $cost ->
    [low] For fewer such lines raise eval_interval (a lower one makes more of them); for shorter ones lower eval_iters.
   *[other] One evaluation costs as much as { $each_iters } iterations and comes every { $interval }. { $advice ->
        [interval] With eval_interval={ $wanted } it would be about 5%.
        [batches] With eval_iters={ $wanted } it would be about 5%, with noisier losses.
        [rarer] eval_interval={ $wanted } leaves four evaluations in this run; fewer eval_iters make each one shorter.
       *[none] Evaluate less often (a higher eval_interval) or on fewer batches (a lower eval_iters).
      }
  }{ $saves_worse ->
    [yes] {" "}Checkpoints were saved even where the val loss was not the best so far: always_save_checkpoint=False saves only the better ones.
   *[no] {""}
  }{ $last ->
    [mfu] {" "}The log ends with such a line: quote { $normal_ms } per iteration and an mfu of { $clean_mfu }, not its { $last_time_ms } and { $printed_mfu }.
    [time] {" "}The log ends with such a line: quote { $normal_ms } per iteration, not its { $last_time_ms }.
   *[no] {""}
  }

rule-mfu-echo-title = { $variant ->
    [changed] The dip in mfu at iter { $iter } is an echo of one slow line
   *[plain] The dip in mfu is an echo of one slow line, not a slowdown
  }
rule-mfu-echo-text = The printed mfu is a moving average: nine tenths of the old value, one tenth of the new. The slow line of iter { $iter } pulled it from { $before_mfu } to { $printed_mfu }, and it takes about twenty lines to climb back. Recomputing the average from the printed times reproduces all { $replayed } printed values.{ $variant ->
    [changed] {""}
   *[plain] {" "}The speed itself did not change: { $clean_mfu }.
  }

rule-warm-up-title = { $variant ->
    [several] The first { $count } iterations include the start-up
    [window] The first { $count } iterations include the start-up
   *[other] iter { $iter } includes the start-up
  }
rule-warm-up-text = { $variant ->
    [eval] The { $time_ms } of the first iteration are its evaluation and a normal step ({ $normal_ms }). The start-up itself hardly shows.
    [both] The first iteration took { $time_ms }: about { $warmup_ms } of start-up, { $eval_ms } of evaluation, and a step of { $normal_ms }.
    [together] The first iteration took { $time_ms }: the start-up and the evaluation at iteration 0, together. No later evaluation in this log shows what it costs alone; a normal step takes { $normal_ms }.
    [window] They took { $time_ms } each on average, later ones { $normal_ms }: { $warmup_ms } of start-up in all.
    [several] They took up to { $time_ms }, later ones { $normal_ms }: { $warmup_ms } of start-up in all.
    [line] The first line shows { $time_ms }, later ones { $normal_ms }. It probably includes the start-up.
   *[plain] The first iteration took { $time_ms }, later ones take { $normal_ms }.
  } Start-up is { $work ->
    [compile] mostly the compilation of the model (torch.compile), then memory, kernels and the first batch
    [any] what happens once: compiling the model (if it is compiled), allocating memory, loading kernels, reading the first batch
    [data] what happens once. Here it was mostly waiting for data: opening the dataset and reading the first batches
   *[first-use] what happens once: allocating memory, loading kernels, reading the first batch
  }.

rule-mfu-wrong-peak-title = { $variant ->
    [no-peak] The printed mfu compares this run with an A100
   *[other] The printed mfu is measured against the wrong peak
  }
rule-mfu-wrong-peak-text = { $variant ->
    [other] The log divides by { $assumed_tflops } TFLOP/s. For the { $device } ({ $peak_tflops } TFLOP/s) the { $clean_mfu } of a normal iteration corresponds to { $corrected_mfu } (× { $assumed_tflops } / { $peak_tflops }).
    [over] { $printed_mfu } is more than any device can do: the log divides by { $assumed_tflops } TFLOP/s, an A100's peak. Either this run was on something faster (name it with --device to get the real figure), or the printed time is too short, because the clock was read before the device had finished.
   *[no-peak] nanoGPT divides by { $assumed_tflops } TFLOP/s, an A100's peak, on every device. For { $device } the figure only says how this run compares with an A100{ $achieved ->
        [known] ; it achieved { $achieved_tflops } TFLOP/s
       *[unknown] {""}
      }.
  }

rule-small-kernels-title = The GPU may be waiting for work: the kernels are small
rule-small-kernels-text = The { $device } reaches { $corrected_mfu } of its peak at { $normal_ms } per iteration. With a model or micro-batch this small, starting kernels can take as long as running them. If so, larger batches cost little extra time, and torch.compile helps.

rule-accumulation-waste-title = Gradient accumulation runs small batches one after another
rule-accumulation-waste-text = { $accumulation } micro-batches of { $batch } sequences run in turn where fewer, larger ones would do. The changed values keep the tokens per iteration ({ $tokens_per_iter }) and need about { $memory_bytes } of memory.

rule-slow-path-title = { $variant ->
    [attention] Attention takes the slow path
    [sdpa] Attention runs on PyTorch's SDPA instead of FlashAttention 3
    [compile] torch.compile gave up on part of the model
    [float32] Training in float32 is slower than in { $dtype }
   *[mps] On mps nanoGPT trains in float32 whatever dtype says
  }
rule-slow-path-text = { $variant ->
    [attention] The log says that fused attention is not available, so every layer writes its whole attention matrix to memory. PyTorch 2.0 and later have it.
    [sdpa] The log says that FlashAttention 3 is not available here: it needs a Hopper GPU (H100) and its package. SDPA is fused as well and trains the same; it is slower, most of all with sliding windows.
    [compile] The log shows { $count ->
        [one] a warning
       *[other] { $count } warnings
      } that code fell back to eager mode: compilation takes its time, but that part runs no faster.
    [float32] Matrix products in float32 run at half the speed of { $dtype } or less, and activations need twice the memory.
   *[mps] nanoGPT turns mixed precision off on every device but CUDA. Nothing is wrong; expect float32 speed.
  }

rule-data-bound-title = Training waits for data
rule-data-bound-text = Waiting for batches took { $data_share } of the time of the training steps{ $variant ->
    [phases] {""}, { $total_ms } in all
   *[plain] {""}: { $median_ms } per iteration at the median, { $worst_ms } at worst
  }. Keep the data on a local disk or in memory, and load batches ahead.

rule-straggler-title = { $variant ->
    [pair] Rank { $rank } is slow: the other process waits for it
   *[plain] Rank { $rank } is slow: the other processes wait for it
  }
rule-straggler-text = { $variant ->
    [pair] Rank { $rank } computes the gradients of an update in { $slow_ms }, the other in { $others_ms } (medians): { $slower_percent } longer. It was slower than the other in { $slow_records } of { $records } measurements from iter { $first_iter } to { $end_iter }. That took { $cost_ms }, { $cost_share } of the time. Every process computes the same number of tokens, so the cause is on the machine: another program on that device or core, a slower device, one that is throttled because of heat or power, or fewer threads than the other has.
   *[plain] Rank { $rank } computes the gradients of an update in { $slow_ms }, the others in { $others_ms } (medians): { $slower_percent } longer. It was slower than the others in { $slow_records } of { $records } measurements from iter { $first_iter } to { $end_iter }. That took { $cost_ms }, { $cost_share } of the time. Every process computes the same number of tokens, so the cause is on the machine: another program on that device or core, a slower device, one that is throttled because of heat or power, or fewer threads than the others have.
  }

rule-communication-title = Communication between the processes takes { $communication_share } of the training steps
rule-communication-text = After all { $processes } processes had computed their gradients, which took { $compute_ms } per update on average, it took another { $update_ms } until they had been summed up: { $total_ms } in all. DDP sends the gradients once per update, however many tokens the update has. So more tokens in an update make the share smaller: raise gradient_accumulation_steps (now { $accumulation }) or batch_size. A faster connection or fewer processes help too.

rule-pace-setter-title = { $variant ->
    [python] Python sets the pace, not the GPU
    [data] The data sets the pace, not the GPU
   *[gpu] The GPU sets the pace
  }
rule-pace-setter-text = { $variant ->
    [python] At the end of { $ahead_share } of the updates, the GPU had already caught up and was waiting for Python to start kernels. A larger batch_size, or compile=True, gives it more to do for each start.
    [data] At the end of { $ahead_share } of the updates, the GPU had already caught up, and it spent more than 5 % of its step waiting for batches. Keep the data on a local disk or in memory.
   *[gpu] At the end of { $behind_share } of the updates, work was still queued for the GPU: neither Python nor the data holds it up.
  }

rule-periodic-stall-title = { $variant ->
    [sync] The line after each evaluation or checkpoint is slow
    [included] The line after each evaluation or checkpoint is slow
   *[other] A stall every { $every } iterations, not at evaluations or checkpoints
  }
rule-periodic-stall-text = { $count } times an iteration took about { $excess_ms } longer than its neighbours, every { $every } iterations (about every { $period_ms }): { $total_ms } in all. { $variant ->
    [gc] The log shows Python's garbage collector at work. Call gc.freeze() and gc.disable() after the first iterations.
    [sync] It comes one line after an evaluation or a checkpoint: training then waits for the device and has to fill its queue and its caches again.
    [included] It comes right after an evaluation or a checkpoint, whose time is probably counted into this line.
    [optimizer] Possible causes: the periodic update of the optimizer's preconditioner, which this log mentions (SOAP or Shampoo), the switch to the next data file, or another program on a timer.
    [shard] Possible causes: the switch to the next data file (shard), which comes about that often, or another program on a timer.
    [short] Possible causes: the switch to the next data file, a periodic update inside the optimizer (SOAP, Shampoo), Python's garbage collector (gc.freeze() and gc.disable() after the first iterations rule it out), or another program on a timer.
   *[plain] Possible causes: the switch to the next data file, a periodic update inside the optimizer (SOAP, Shampoo), or another program on a timer.
  }

rule-slowdown-title = Iterations take { $rise_percent } longer than at first
rule-slowdown-text = A normal iteration went from { $first_ms } to { $last_ms }{ $variant ->
    [drift] , gradually
   *[other] , at about iter { $iter }
  }, and stayed there. { $variant ->
    [throttle] The log names a thermal or power limit: cooling or the power setting is the cause.
   *[other] Possible causes: heat, another program on the same device, memory running short, or longer batches; the log does not say which. Watch the device's clock and temperature while it runs.
  }

rule-slow-stretch-title = Iterations took { $rise_percent } longer from iter { $first_iter } to iter { $end_iter }, then normal again
rule-slow-stretch-text = In between an iteration took { $slow_ms } instead of { $normal_ms }, which cost { $excess_ms } in all. { $variant ->
    [throttle] The log names a thermal or power limit at that time.
   *[plain] Most likely another program used the same machine; heat or longer batches are possible too.
  }

rule-eval-too-expensive-title = { $covers ->
    [timed] { $variant ->
        [together] Evaluations and checkpoints take { $eval_share } of the time that the log prints
       *[plain] Evaluations take { $eval_share } of the time that the log prints
      }
   *[other] { $variant ->
        [together] Evaluations and checkpoints take { $eval_share } of the time
       *[plain] Evaluations take { $eval_share } of the time
      }
  }
rule-eval-too-expensive-text = Each { $variant ->
    [together] evaluation with its checkpoint
   *[plain] evaluation
  } takes { $each_ms }{ $compared ->
    [yes] {""}, as long as { $each_iters } iterations, and comes every { $interval }
    [entry] {""}
    [epoch] {""}
   *[no] {" "}and comes every { $interval } iterations
  }. { $advice ->
    [interval] One every { $wanted } iterations would take about 5%.
    [batches] With { $wanted } batches per evaluation it would be about 5%, with noisier losses.
    [rarer] One every { $wanted } iterations leaves four evaluations in this run; fewer batches per evaluation make each one shorter.
   *[none] Evaluate less often or on fewer batches.
  }

rule-eval-noise-title = The last evaluations differ by less than their noise
rule-eval-noise-text = One evaluation is uncertain by { $se_loss }; two of them must differ by { $least_loss } to mean anything, and the last { $count } changes were at most { $largest_loss }. Do not choose a checkpoint by them{ $variant ->
    [more] {""}: more eval_iters, or the same fixed batches every time, would decide it
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } of work and no checkpoint yet
   *[plain] Checkpoints take { $save_share } of the time
  }
rule-checkpoint-interval-text = { $variant ->
    [none] No line of this log says that a checkpoint was saved. A crash now would lose all of it.
   *[plain] { $count } checkpoints of about { $save_ms } each stopped training for { $total_ms }. { $run ->
        [short] For a run as short as this one, a checkpoint at the end is enough.
       *[long] If the machine fails about once a day, one every { $wanted_ms } loses the least time.
      }{ $tied ->
        [yes] {" "}nanoGPT saves when it evaluates: always, or with always_save_checkpoint=False only if the val loss is the best so far.
       *[no] {""}
      }
  }

rule-overfitting-title = { $variant ->
    [gap] The validation loss is far above the training loss: overfitting
    [gap-few] The validation loss is far above the training loss: overfitting
    [metric] The validation loss rises, but { $metric } still improves
    [one] The last evaluation is worse than the best: overfitting may have begun
   *[other] Overfitting since about step { $best_iter }
  }
rule-overfitting-text = { $variant ->
    [gap] At step { $last_iter } the model scores { $train_loss } on data it has seen and { $last_loss } on data it has not: a gap of { $gap_loss }, { $gap_percent } of the training loss; its perplexity is { $perplexity_times } times as high on new data. That is memorising, not a mild gap. The validation loss was lowest at step { $best_iter } ({ $best_loss }).
    [gap-few] At step { $last_iter } the model scores { $train_loss } on data it has seen and { $last_loss } on data it has not: a gap of { $gap_loss }, { $gap_percent } of the training loss; its perplexity is { $perplexity_times } times as high on new data. That is memorising, not a mild gap. With so few evaluations the log cannot show when it began: look for the step with the lowest val loss.
    [metric] The validation loss was lowest at step { $best_iter } ({ $best_loss }) and has risen by { $rise_loss } ({ $rise_percent }) to { $last_loss } while the training loss fell. In the same evaluations { $metric } went from { $before_points } to { $now_points }: the model is more certain where it is wrong, but not worse at its task. Choose the checkpoint by the figure that counts for you.
    [one] The validation loss was lowest at step { $best_iter } ({ $best_loss }) and is { $rise_loss } higher ({ $rise_percent }) in the last evaluation, while the training loss fell. One evaluation may be chance: the next ones will tell.
    [no-train] The validation loss was lowest at step { $best_iter } ({ $best_loss }) and has risen by { $rise_loss } ({ $rise_percent }) to { $last_loss } while the training loss fell. Everything after that step made the model worse on new data.
   *[rising] The validation loss was lowest at step { $best_iter } ({ $best_loss }) and has risen by { $rise_loss } ({ $rise_percent }) to { $last_loss }, while the training loss fell to { $train_loss }. Everything after that step made the model worse on new data: stop there, use more dropout or more data, or a smaller model.
  }

rule-best-checkpoint-lost-title = The best checkpoint was overwritten by a worse one
rule-best-checkpoint-lost-text = nanoGPT keeps one checkpoint, and with always_save_checkpoint every evaluation overwrites it. The best was step { $best_iter } (val loss { $best_loss }); the file now contains step { $kept_iter } ({ $kept_loss }), worse by { $worse_loss }.

rule-stopped-early-title = The run ended while it was still learning
rule-stopped-early-text = The validation loss was still falling at the end (step { $last_iter }: { $last_loss }), by about { $gain_loss } per thousand iterations, and there is no sign of overfitting. A longer run, with the decay stretched to it, should gain more.

rule-schedule-mismatch-title = { $variant ->
    [batch] The learning rate is high for so few tokens per iteration
    [floor] The learning rate's floor is unusual
    [warmup] The learning-rate warm-up takes a large part of the run
   *[other] The learning rate's decay does not fit the length of the run
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr is { $low_lr } at a learning_rate of { $rate }; a tenth of it is usual.
    [batch] learning_rate { $rate } is usual for half a million tokens per iteration; here there are { $batch_tokens }. With fewer tokens the gradient is noisier: scale the rate with the square root.
    [warmup] The learning rate climbs for { $warmup_iters } of { $max_iters } iterations; one or two percent are usual.
    [long] lr_decay_iters is { $decay_iters } but the run ends at { $max_iters }: the learning rate never gets low. The loss usually falls visibly while the rate decays, and this run misses most of that.
   *[short] lr_decay_iters is { $decay_iters } and the run goes on to { $max_iters }: all iterations after the decay run at min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] An evaluation gave NaN (step { $iter }, line { $line })
    [vanished] The loss is missing from iter { $iter } on (line { $line }): it is probably NaN
   *[other] The loss is NaN or infinite from iter { $iter } on (line { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] The training loss stays finite, so the fault is probably in the evaluation itself: no batches to score, or no valid targets in them.
   *[other] { $last_iter ->
        [none] The first loss printed is already NaN or infinite.
       *[other] The last finite loss was { $last_loss } at iter { $last_iter }.
      } { $variant ->
        [vanished] Every line before has a loss, { $count ->
            [one] the last line has
           *[other] the last { $count } lines have
          } none{ $has_bad_norms ->
            [yes] , and the gradient norm is NaN there
           *[no] {""}
          }: some trainers leave the loss out where it is NaN.{" "}
       *[other] {""}
      }Nothing after it was learned: stop the run{ $save_iter ->
        [none] {""}
       *[other] {" "}and go back to the checkpoint of iteration { $save_iter }{ $overwritten ->
            [yes] , if you have a copy: a later save in this log has overwritten it
           *[no] {""}
          }
      }. { $variant ->
        [exploded] The loss had risen far above its best before it became NaN: the learning rate is too high, or gradients are not clipped.
        [first] Nothing had been learned yet, so it is not the learning rate. Usual causes: NaN in the data or in the loaded weights, batches without a valid target, float16 overflow, or a faulty kernel.
        [fp16] In float16 large values overflow; bfloat16 or float32 do not.
       *[other] Usual causes: a learning rate too high, float16 overflow, or a target outside the valid range (of text: a token id outside the vocabulary).
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Iterations have taken { $faster_percent } less time since: that is how it looks when GradScaler skips every update.
      }
  }

rule-broken-gradient-title = { $variant ->
    [zero] The gradient norm is exactly 0 from iter { $iter } on (line { $line })
   *[other] The gradient norm is NaN or infinite from iter { $iter } on (line { $line })
  }
rule-broken-gradient-text = { $variant ->
    [zero] No gradient reaches the weights on the last { $count } lines, so nothing is learned. Usual causes: batches whose labels are all masked, frozen or detached parameters, or float16 values too small to represent.
    [nan-no-loss] It is on all of the last { $count } lines, and no line has a loss: some trainers leave it out where it is NaN. Nothing is learned any more: stop the run and go back to a checkpoint before it. Usual causes: a learning rate too high, float16 overflow, or batches without a valid target.
   *[nan] It is on all of the last { $count } lines, although the printed loss looks fine. Updates with such a gradient are skipped, or they destroy the weights: nothing is learned any more. Stop the run and go back to a checkpoint before it. Usual causes: float16 overflow, batches without a valid target, or a faulty kernel.
  }

rule-constant-loss-title = The loss is exactly { $loss } on the last { $count } lines
rule-constant-loss-text = It does not change in a single digit from iter { $iter } to iter { $last_iter }, although batches should differ. { $variant ->
    [zero] A loss of exactly 0 means that nothing was scored: all labels are masked, or the trainer prints 0 in place of NaN.
    [rate] The printed learning rate is 0: nothing is learned. The same batch every time would explain the rest.
    [norm] The gradient norm is 0 as well: nothing is learned. Are the weights frozen, or all labels masked?
   *[plain] Nothing is learned. Either the output no longer depends on the input (weights that are zero, frozen or destroyed; then e^loss = { $choices } is about the size of the vocabulary), or the learning rate is 0 and every batch is the same, or the number is not updated.
  }

rule-skipped-updates-title = { $variant ->
    [stuck] Every update from iter { $iter } on is skipped: the gradients overflow to NaN or infinity
   *[often] { $count } weight updates were skipped ({ $skipped_share } of the iterations)
  }
rule-skipped-updates-text = { $variant ->
    [stuck] The gradients overflow at every loss scale, so the weights no longer change. Go back to a checkpoint before it, with a lower learning rate; bfloat16 needs no loss scale.
   *[often] Those batches were computed and thrown away. A few at the start are normal, while the loss scale is being found; these come later. A lower learning rate helps against overflow, and so does bfloat16.
  }

rule-divergence-title = { $variant ->
    [exploded] Training diverged at about iter { $iter }
    [recovered] The loss rose at about iter { $iter } and came back
   *[up] The loss rose at about iter { $iter } and stayed up
  }
rule-divergence-text = The lowest loss was { $best_loss } (iter { $best_iter }). { $variant ->
    [recovered] Then it rose to about { $high_loss } and was back by iter { $back_iter }
    [exploded] Then it rose above everything before and stayed there: { $last_loss } at the end
   *[up] Then it rose and stayed up: { $last_loss } at the end
  }{ $knows_rate ->
    [yes] {""}; the learning rate was { $rate } where it rose
   *[no] {""}
  }. { $variant ->
    [recovered] The work in between was lost. If it happens again, lower the learning rate or lengthen its warm-up.
    [exploded] Go back to a checkpoint before it, with a lower learning rate, gradient clipping and a longer learning-rate warm-up.
   *[up] If nothing was changed there (data, settings), training diverged: go back to a checkpoint before it, with a lower learning rate and a longer learning-rate warm-up.
  }

rule-loss-spike-title = { $count ->
    [one] A loss spike at iter { $iter }
   *[other] { $count } loss spikes, the largest at iter { $iter }
  }
rule-loss-spike-text = The loss jumped to { $loss } where { $around_loss } was usual ({ $z } times the noise) and came back. { $variant ->
    [data] { $runs } runs of this log jump at the same iteration: the cause is in the data read there, not in the settings.
    [rate] Such jumps are many and last for several lines: the learning rate is probably too high, or gradients are not clipped.
    [smoothed] The printed loss is a moving average: the batch's own loss was much higher, and its trace fades over several lines. A few of these are harmless.
   *[plain] A jump that is gone by the next line is usually an odd batch. A few of these are harmless.
  }

rule-initial-loss-title = The first loss does not fit the vocabulary
rule-initial-loss-text = A model that knows nothing scores ln({ $vocab }) = { $expected_loss }; this one began at { $seen_loss }. { $variant ->
    [low] Either it did not start from scratch, or targets leak into its input, or the vocabulary is larger than the data needs.
   *[high] Check vocab_size and meta.pkl, the shift between input and target, and the initialisation.
  }

rule-plateau-title = The validation loss has stopped moving
rule-plateau-text = Over the last { $count } evaluations (steps { $first_iter } to { $last_iter }) it stayed at about { $mean_loss }; its trend is { $moved_loss } in all, no more than noise. { $variant ->
    [peak] The learning rate has stayed near its peak: lower it or begin the decay.
    [floor] The learning rate was already at its floor when that began: this schedule has nothing more to give.
    [through] The learning rate was { $rate } when that began, and lowering it since has not helped: the limit is the model, the data or the regularisation.
    [known] The learning rate was { $rate } when that began.
   *[plain] The log does not say what the learning rate was, so it cannot tell a schedule that is over from a rate that is too high.
  }

rule-data-budget-title = { $variant ->
    [epochs] The run sees its data { $epochs } times
    [few] Few tokens for this model: { $ratio } per parameter
   *[many] Many tokens for this model: { $ratio } per parameter
  }
rule-data-budget-text = { $is_planned ->
    [yes] The planned { $max_iters } iterations are
   *[no] { $max_iters } iterations are
  } { $tokens } tokens for { $parameters } parameters, { $ratio } per parameter; about 20 is the usual balance. { $variant ->
    [epochs] The training set is much smaller than that, so it is read { $epochs } times: beyond about four passes, repeats help less and less, and overfitting becomes likely.
    [few] A smaller model, or more iterations, would use the time better.
   *[many] For the same computing time, a larger model usually reaches a lower loss.
  }

rule-eval-below-batch-title = Why the train loss of an evaluation lies below the loss of the batches
rule-eval-below-batch-text = Step { $last_iter } prints a train loss of { $train_loss }, the iterations around it { $batch_loss }. { $variant ->
    [dropout] Dropout ({ $dropout }) is switched off in an evaluation, so the model predicts better there, and the figure is a mean over many batches. Nothing is wrong.
   *[plain] An evaluation is a mean over many batches, and dropout is switched off in it: if this run uses dropout, the model predicts better there. Nothing is wrong.
  }

rule-expected-loss-title = { $variant ->
    [worse] The validation loss is above what nanoGPT reaches on this data
   *[usual] The validation loss is what nanoGPT reaches on this data
  }
rule-expected-loss-text = On shakespeare_char an untrained model starts at ln(65) = 4.17. nanoGPT's configuration for a GPU (6 layers, 5000 iterations) reaches a val loss of about 1.47, the one for a CPU (4 layers, 2000 iterations) about 1.88. The best here is { $best_loss } (step { $best_iter }).

rule-gradient-clipping-title = Nearly every gradient is clipped
rule-gradient-clipping-text = The gradient norm is above { $setting } = { $clip } on { $clipped_share } of the lines, { $norm } at the median. Clipping shortens such a gradient to that length and keeps its direction, so every update is about as long as the learning rate makes it. That is harmless while the loss falls well; if it does not, lower the learning rate first.

rule-out-of-memory-title = { $variant ->
    [host] The computer ran out of memory
   *[other] Out of memory
  }
rule-out-of-memory-text = { $variant ->
    [host] It is the computer's own memory (RAM) that ran out, not the GPU's: use fewer data workers, map the data file instead of loading it, or close other programs.
    [sizes] The run asked for { $tried_bytes } more and did not get it.
   *[plain] The run asked for more memory than the device has.
  }{ $halved ->
    [batch] {" "}Half the batch_size with twice the gradient_accumulation_steps trains the same and needs about half of what grows with the batch; a shorter block_size helps as well.
   *[no] { $variant ->
        [host] {""}
       *[other] {" "}A smaller batch with more gradient accumulation trains the same and needs less; shorter sequences help as well.
      }
  } Messages after the first are consequences.

rule-contradiction-title = { $variant ->
    [tokens] The printed tokens per second are off by a factor of { $times }
    [clock] The printed times are not the real ones
    [rate] The final tokens per second are wrong
   *[hidden-nan] The loss looks fine because the log hides NaN
  }
rule-contradiction-text = { $variant ->
    [tokens] A step is { $stated_tokens } tokens, but tokens per second times the step's time make { $implied_tokens }. Trust the time: it gives { $real_rate } tokens per second, not { $printed_rate }.
    [clock] A normal iteration prints { $normal_ms }; the timestamps say { $stamped_ms }. Trust the timestamps: without a synchronisation the printed time is when Python was done, not when the device was.
    [rate] Total tokens over training time make { $real_rate } per second, not { $printed_rate }.
   *[hidden-nan] The gradient norm is NaN or infinite ({ $count ->
        [one] once
       *[other] { $count } times
      }) while the printed loss goes on: by default this trainer leaves NaN out of the loss it prints. Set logging_nan_inf_filter to False to see it.
  }

rule-unexplained-stall-title = { $place ->
    [window] The { $window } iterations up to iter { $iter } stalled for { $excess_ms }{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , and the log shows no reason
      }
   *[other] iter { $iter } stalled for { $excess_ms }{ $variant ->
        [boundary] {""}
        [memory] {""}
        [recompile] {""}
       *[other] , and the log shows no reason
      }
  }
rule-unexplained-stall-text = { $place ->
    [window] They took { $time_ms } each where { $normal_ms } is usual.
    [several] It and its neighbours ({ $num_lines } lines in a row) took up to { $time_ms } where { $normal_ms } is usual.
    [between] It took { $time_ms } where { $normal_ms } is usual; evaluations come every { $eval_interval } iterations, and this is not one.
   *[one] It took { $time_ms } where { $normal_ms } is usual.
  }{ $count ->
    [one] {""}
   *[other] {" "}There are { $count } such stalls, { $total_ms } together.
  } { $variant ->
    [recompile] A line just before it says that code was compiled again.
    [boundary] A checkpoint or an evaluation was logged just before, which may be the cause: look at the disk that it is written to.
    [memory] Its memory is higher than before: if the device's memory is nearly full, moving data in and out takes that long. A smaller batch or shorter sequences tell.
    [pause] Possible causes: the computer slept or the process was paused, another program, a full or slow disk. The log cannot tell them apart.
   *[plain] Possible causes: another program, a slow disk, memory running short, code compiled again for a new shape. The log cannot tell them apart.
  }{ $printed ->
    [some] {" "}Only some iterations are printed, so others may have stalled unseen: log_interval=1 prints all.
   *[all] {""}
  }

rule-hidden-stall-title = { $passed_ms } passed between iter { $first_iter } and iter { $end_iter }, and no printed time shows it
rule-hidden-stall-text = By the printed times it should have been { $expected_ms }. The lost time lies in iterations that are not printed{ $count ->
    [one] {""}
   *[other] {" "}({ $count } such gaps, { $total_ms } in all)
  }. To see it, print every iteration.

rule-repeated-work-title = { $count ->
    [one] One iteration was done twice
   *[other] { $count } iterations were done twice
  }{ $time ->
    [known] , about { $time_ms }
   *[unknown] {""}
  }
rule-repeated-work-text = The run had reached iter { $end_iter } and was resumed at iter { $first_iter }, from its last checkpoint. { $saving ->
    [best] nanoGPT had evaluated since then without saving, because the val loss was not the best so far. always_save_checkpoint=True keeps the last state, but overwrites the best one.
    [every] nanoGPT saves when it evaluates: a lower eval_interval loses less when a run stops, and costs more evaluations.
   *[often] Checkpoints at shorter intervals lose less when a run stops.
  }

## What a log cannot show

cannot-data-wait = How long training waited for data: nanoGPT does not time it.
cannot-unprinted = The time of each iteration: only some are printed, the others are taken to be like them.
cannot-device = On which device it ran: the mfu is against an A100's 312 TFLOP/s. Name the device with --device.
cannot-split = How the extra time divides into evaluation and checkpoint: every such iteration has both, and no line carries a time of day.
cannot-last-micro-batch = The loss of a whole iteration: nanoGPT prints the last micro-batch's.
cannot-wall-clock = What happened outside the loop (imports, loading data, the end): no line that was understood tells its time.
cannot-no-times = Where the time went: the lines that were understood have neither times nor timestamps.
cannot-evals-unprinted = What the evaluations cost, and so how long the run took: they fall on iterations that are not printed.
cannot-no-numbers = Which step a line is of: the log does not print it. Entries with a loss are counted from 0 instead.
cannot-no-evals = Whether the model generalises: none of the lines that were understood is an evaluation.
cannot-ranks = Which process is slow, and how much of the time is communication: that is measured with DDP on CPUs only.
cannot-format-nanochat = Evaluations, samples and checkpoints: nanochat's dt and total time leave them out; its loss is smoothed.
cannot-format-modded-nanogpt = What validation and start-up cost: the timer is stopped for them.
cannot-format-untimed-validation = What validation costs: the timer is stopped for it.
cannot-format-llm-c = What validation and checkpoints cost: only steps are timed.
cannot-format-litgpt = Data waits: the time of an iteration starts after its batch was fetched.
cannot-format-torchtitan = Single steps: its figures are averages since the last line, and a checkpoint falls into the next one.
cannot-format-hf-trainer = The time of a step and of a checkpoint: they are not printed. A NaN loss is replaced by an average by default.
cannot-format-lightning = Single steps: the bar shows whole seconds and a mean rate.
cannot-format-composer = What a checkpoint costs: it is counted into the next batch.
cannot-format-lingua = What an evaluation or a checkpoint costs: it dents the next line's rate.
cannot-format-mingpt = What sampling and saving cost: the time printed is the previous iteration's.
cannot-format-char-rnn = What evaluations and checkpoints cost: they are not timed.
cannot-format-megatron = What validation and checkpoints cost, unless their own lines say so.
cannot-format-keras = Single steps, and what an evaluation costs: there is one line for each epoch, and its time includes the evaluation.
cannot-format-one-line-per-epoch = Single steps: there is one line for each epoch, which counts as one iteration here.
cannot-format-timm = What checkpoints cost: only steps and evaluations are timed. The time of a step includes waiting for data.
cannot-format-metric-logger = Single steps: the loss is the median and the time the mean of the last 20. The time includes waiting for data.
cannot-format-detectron2 = What evaluations and checkpoints cost: only steps are timed. Losses are medians of the last 20 steps.
cannot-format-mmengine = Single steps: times and losses are means over several. The time includes waiting for data.
cannot-format-ultralytics = Single steps: there is one line for each epoch.
cannot-format-summed-loss = The loss that is minimised, as one figure: it is the sum of the printed parts here.
cannot-format-tensorflow = Single steps: times are means over the steps since the line before.
cannot-format-pytorch-examples = What evaluations cost: only steps are timed, if at all. The example with MNIST counts samples instead of steps.
cannot-format-general = What the other columns mean: only those whose meaning is plain were read.
cannot-format-deepspeed = What evaluations and checkpoints cost: DeepSpeed times its steps only.
cannot-format-olmo = Single steps of OLMo (not OLMo-core): its rates are means over the last batches.
cannot-format-nanotron = What a checkpoint costs: only steps are timed. Figures are printed with three digits.
cannot-format-fairseq = Single updates: its figures are averages. Most of its criteria print the loss in base 2.
cannot-format-minimind = The time of a step: epoch_time is what is left of the epoch, in whole minutes.
cannot-format-espnet = Single batches: its figures are averages over the batches of a line.
cannot-format-time-series = What an evaluation costs: the first speed of an epoch includes it, so that speed is left out.
cannot-next-line = What an evaluation or a checkpoint costs: it is counted into the next line's time.
left-out-settings = Settings beyond the first { $most } names: { $count } lines with more are not kept.
left-out-events = Every message: { $count } from the middle of a long series are counted, but not kept.
left-out-evals = Every evaluation: of { $count }, { $kept } are kept, the best and the last among them. Counts and times are of all.
left-out-runs = Where each run began: { $count } more were found than the { $most } that are told apart.

## --lines

lines-title = Line by line (figures as the log prints them)
line-iter = Weight update number { $iter }, on one batch.
line-loss = loss { $loss }: how wrong the predictions for this batch were (cross-entropy; lower is better). On average, the correct next token got a probability of about e^-{ $loss } = { $chance }. Single batches vary; look at the trend.
line-loss-short = loss { $loss }
line-time = time { $time }: a normal iteration (the usual time is { $normal_ms }).
line-time-slow = time { $time }: { $excess_ms } more than the usual { $normal_ms }. Cause: { $cause }.
line-mfu = mfu { $mfu }: a moving average of the share of an A100's 312 TFLOP/s that the model's arithmetic used.
line-mfu-short = mfu { $mfu }
line-mfu-none = mfu -100.00%: not measured yet; nanoGPT skips the first five iterations.
line-mfu-worked = A normal iteration, without the average: { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP of work; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = On the { $device } ({ $peak_tflops } TFLOP/s) that is { $corrected_mfu }.
line-mfu-formula = By the formula: (6 × { $parameters } parameters + 12 × { $n_layer } layers × { $n_embd } wide × { $block_size } tokens) × { $tokens } tokens per iteration = { $work_tflop } TFLOP.
line-eval = Evaluation at step { $iter }: mean losses over many batches, without training on them and with dropout off.
line-eval-short = Evaluation at step { $iter }.
line-eval-train = train loss { $train }: on data that the model is trained on.
line-eval-train-short = train loss { $train }
line-eval-val = val loss { $val }: on data that it is never trained on. This is the figure that counts.
line-eval-val-short = val loss { $val }
line-eval-gap = The gap between the two is { $gap_loss }.
line-eval-best = The best so far.
line-eval-worse = Worse than step { $best_iter } ({ $best }).
line-save = A checkpoint was saved. In nanoGPT, the time of the next iteration includes it.
line-save-short = A checkpoint was saved.
line-run = { $count } normal iterations like this one, { $first } to { $last }: loss { $first_value } to { $last_value }, { $low_ms } to { $high_ms } each.
line-unknown = { $count ->
    [one] One line was not understood.
   *[other] { $count } lines were not understood.
  }
cause-warmup = start-up
cause-eval = evaluation
cause-checkpoint = checkpoint
cause-unexplained = unexplained

## The page of `report` and `watch`

page-language = English
page-language-choice = language
page-labelled = { $label }: { $text }
page-unknown = n/a
page-about = { $format } log, { $lines ->
    [one] one line
   *[other] { $lines } lines
  }, { $understood } understood
page-level-good = healthy
page-level-advice = worth a look
page-level-problem = problem
page-health-good = No problem found.
page-health-more = { $title }, and { $count ->
    [one] one more finding
   *[other] { $count } more findings
  }
page-health-waiting = No iteration has been logged yet.
page-health-failed = The run ended with an error: { $detail }
page-health-killed = The process died without a message, probably killed. If it saved a checkpoint, the run can be resumed from there.
page-state = state
# A state and how far the run came: "finished, 600 iterations", "failed, up to iter 5000".
page-state-running = running
page-state-finished = finished
page-state-target = target reached
page-state-patience = ended, no more improvement
page-state-signal = stopped by a signal
page-state-failed = failed
page-state-oom = out of memory
page-state-error = ended with an error
page-state-killed = killed
page-state-waiting = waiting for the first iteration
page-state-imported = imported model, not trained here yet
page-state-unknown = unknown
page-done = { $count ->
    [one] one iteration
   *[other] { $count } iterations
  }
page-done-of = { $count } of { $max ->
    [one] one iteration
   *[other] { $max } iterations
  }
page-up-to = up to iter { $number }
page-live = live
page-lost = no connection, trying again
page-run = run
page-runs = Runs
page-no-runs = There is no run here yet. It will appear when one begins.
page-loss = Loss
page-iterations = How long each iteration took
page-speed = Speed
page-inside = Inside the step
page-samples = Samples
page-ranks = Processes
page-rank = rank { $rank }
page-ranks-run = Whole run
page-ranks-newest = Newest measurement, iter { $number }
page-ranks-compute = computing
page-ranks-communication = communication
page-ranks-waiting = waiting for the slowest
page-ranks-eval = evaluation
page-ranks-about = Time of an update. The slowest process computes { $imbalance } times as long as the average process. Communication is the wait of the process that finishes last.
page-ranks-some = Of { $count } processes, the { $shown } slowest are shown.
page-settings = Settings and machine
page-config = Settings
page-environment = Machine and model
page-chart-loss = Training and validation loss
page-chart-shares = Share of the time, along the run
page-chart-time = Time per iteration
page-chart-tokens = Tokens per second
page-chart-mfu = MFU of the training step
page-chart-lr = Learning rate
page-chart-grad = Gradient norm
page-chart-memory = Memory
page-log-scale = log scale
page-keys = Arrow keys move the cursor, plus and minus zoom, 0 shows everything.
page-axis = x axis
page-axis-iter = iterations
page-axis-time = time
page-zoom-in = zoom in
page-zoom-out = zoom out
page-left-key = move left
page-right-key = move right
page-reset = show all
page-smoothing = smoothing
page-train = training
page-val = validation
page-dashed = dashed: validation
page-band = The band around the validation loss is its standard error.
page-best = best { $loss } (iter { $number })
page-iteration = iter { $number }
page-train-loss = training loss { $loss }
page-smoothed = smoothed { $loss }
page-val-loss = validation loss { $loss } (iter { $number })
page-slow-because = slow because of: { $cause } (normal: { $normal })
page-normal = A normal iteration takes { $normal }. Point at a spike to see why it was slow.
page-mfu = { $value } in a normal step; peak: { $source }
page-peak-device = { $peak } TFLOP/s, from the table for { $device }
page-peak-assumed = { $peak } TFLOP/s, which the trainer assumed; the log names no device
page-copy = copy
page-copied = copied
page-outcome-loss = last training loss
page-outcome-iters = last iteration
page-outcome-normal = normal iteration
page-outcome-wall = total time
page-outcome-mfu = MFU
page-ended = ended, nothing more will come
page-figure-loss = loss now
page-figure-best = best validation loss
page-figure-bits = bits per byte
page-figure-tokens = tokens per second
page-figure-step = time per step
page-figure-parameters = parameters
page-figure-left = time left
page-differences = { $count ->
    [one] one setting differs
   *[other] { $count } settings differ
  }
page-verdict = verdict
page-sort = sort by this column
page-winner-best = is the best run: validation loss { $loss }.
page-winner-bits = is the best run: { $loss } bits per byte.
page-winner-loss = is the best run: training loss { $loss }.
page-lead = The next is { $name }, worse by { $loss }.
page-no-winner = It is not certain that the runs have the same data and tokens, so their losses are not ranked.
page-outcome-best = best validation loss
page-outcome-at = at iteration
page-outcome-bits = bits per byte
page-outcome-tokens = tokens per second
page-outcome-parameters = parameters
page-all-runs = { $count ->
    [one] in this run
   *[other] in all { $count } runs
  }
page-quoted = (the numbers are those of { $name })
page-all-samples = { $count ->
    [one] one sample
   *[other] all { $count } samples
  }
page-val-only = validation loss { $loss }
page-csv = download the visible rows as CSV
page-whole-range = whole range
page-cut = Losses of up to { $highest } are above the axis: zoom in, or tick “whole range”.
page-axis-tokens = tokens
page-axis-flops = FLOPs
page-tick = Tick two to eight runs to compare them.
page-compare-ticked = { $count ->
    [one] compare one run
   *[other] compare { $count } runs
  }
page-iterations-done = progress
page-changed = last change
page-thinned = Of { $total } iterations, { $drawn } are in this file: for each figure, the lowest and the highest of every stretch. Sums include all iterations.
page-thinned-live = Of { $total } iterations, { $drawn } are drawn, among them the lowest and the highest of every stretch. Zoom in to see each.

## `stepglass advise`

advise-type = Type:
advise-change = Add to the command line of { $name }:
advise-keep = Keep the settings of { $name }: nothing better is known.
advise-about = { $is_known ->
    [no] Unknown device (name it with --device)
   *[yes] { $device } ({ $has_memory ->
        [no] memory unknown
       *[yes] { $device_bytes }
      }{ $has_peak ->
        [no] {""}
       *[yes] , { $tflops } TFLOP/s in { $dtype }
      })
  }: { $model } model with { $parameters } parameters, { $tokens } tokens per update
advise-expect-title = What to expect
advise-expect-ms-per-iter = one update
advise-expect-tokens-per-s = tokens per second
advise-expect-mfu = MFU
advise-expect-memory-gb = memory
advise-expect-hours = whole run
advise-expect-updates = updates
advise-expect-device = device
advise-days = { $count ->
    [one] one day
   *[other] { $count } days
  }
advise-basis-measured = measured
advise-basis-calculated = calculated
advise-basis-estimated = estimated
advise-why-title = Why
advise-note = Estimates come from formulas fitted to public logs, where they are off by up to { $error_percent }. For better ones train for 20 updates (--max_iters=20), then ask again with the run: stepglass advise RUN
advise-unknown-time = The speed of this device is not known yet. Add --measure to train for a few updates here and measure it.
advise-written = { $path } is written. Train with it: stepglass train { $path }
advise-why-max-iters = { $tokens } tokens in { $number ->
    [one] one update
   *[other] { $max_iters } updates
  }: { $ratio } per parameter{ $has_epochs ->
    [yes] , { $epochs } passes over { $dataset }
   *[no] {""}
  }. { $variant ->
    [few] That is little: compute is used best at about 20 per parameter, here max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }.
    [many] Compute is used best at about 20 per parameter, here max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }; beyond that the loss still falls, but ever more slowly.
    [epochs] Compute is used best at about 20 per parameter, here max_iters={ $enough }{ $has_time ->
        [yes] {" "}({ $enough_ms })
       *[no] {""}
      }; beyond about 4 passes (max_iters={ $four }) repeating the data helps less and less.
    [little-data] That is little data for this model: beyond about 4 passes (max_iters={ $four }) repeating it helps less and less.
   *[fine] Compute is used best at about 20 per parameter.
  }{ $is_sure ->
    [no] {" "}The vocabulary of { $dataset } is not known; { $vocab } was assumed.
   *[yes] {""}
  }
advise-why-device = { $variant ->
    [sizes] Assumed: { $device_bytes }. This device is also sold with { $sizes } GB: { $other }
    [named] The log is from another device: { $name }. Its times were not used.
    [speed] The log shows { $tflops } TFLOP/s, but this device has at most { $most }, so the log is from another device. Its times were not used.
    [cuda] The log is from a CUDA GPU. Its times were not used.
    [mps] The log is from an Apple GPU. Its times were not used.
   *[cpu] The log is from a CPU. Its times were not used.
  }
advise-why-minutes = { $variant ->
    [unknown] The speed of this device is not known, so the number of updates is open. stepglass train measures the speed and keeps to the time.
    [small] The data is too small for so much time: stepglass train ends after { $number ->
        [one] one update
       *[other] { $max_iters } updates
      } ({ $epochs } passes over { $dataset }).
   *[fit] { $number ->
        [one] About one update fits
       *[other] About { $max_iters } updates fit
      } into the time, evaluations included. stepglass train measures the speed itself and keeps to the time.
  }
advise-why-epochs = Passes over { $dataset }: { $number ->
    [one] that makes one update
   *[other] that makes { $max_iters } updates
  }.
advise-why-nproc = { $variant ->
    [found] The log prints the MFU of one GPU, but its total speed is that of { $processes } GPUs. Here too, MFU and memory are per GPU.
    [measured] { $processes } GPUs share each update. MFU and memory are per GPU.
   *[asked] { $processes } GPUs share each update. MFU and memory are per GPU. The time to exchange gradients is not known and not counted.
  }
advise-why-batch-size = { $variant ->
    [whole] All sequences of an update fit at once: { $need_bytes } of { $device_bytes }.
    [asked] As asked. It needs { $need_bytes } of { $device_bytes }; { $fits } would fit.
    [asked-unknown] As asked. It needs { $need_bytes }.
    [busy] As in the run. { $fits } would fit too, but the device is already busy: a token would take about as long.
    [oom] The run ran out of memory with { $ran }. This needs { $need_bytes }.
    [tried] The fastest of those that were tried here for { $wanted } sequences per update.
    [kept] Left as it is: it fits, and on a CPU larger batches are hardly faster.
    [unknown] Left as it is: the memory of the device is not known.
   *[largest] The largest that divides the update evenly and fits: { $need_bytes } of { $device_bytes }. { $margin_percent } stay free: the allocator keeps freed blocks, and a desktop needs some.
  }
advise-why-gradient-accumulation-steps = { $accumulation } × { $batch } sequences × { $block_size } = { $tokens } tokens per update, { $variant ->
    [same] as wanted.
   *[other] instead of { $wanted_tokens }.
  }
advise-why-dtype = { $variant ->
    [asked] As asked.
    [cpu] The fastest exact format on a CPU.
    [mps] The safe format on an Apple GPU.
    [float16] The GPU ({ $device }) has no bfloat16 units. float16 needs loss scaling, which the trainer does.
   *[bfloat16] The tensor cores are fastest with it, and the loss needs no scaling.
  }
advise-why-compile = { $variant ->
    [asked] As asked.
    [mps] Not tried on an Apple GPU.
    [unknown] { $device ->
        [cuda] On a GPU it pays in runs of more than a few minutes.
       *[cpu] It saves little on a CPU, and how long the run takes is not known.
      }
    [short] It takes about { $compile_ms } and would save about { $saved_ms } (run without it: { $run_ms }).
   *[pays] It takes about { $compile_ms } and saves about { $saved_ms } (run without it: { $run_ms }).
  }
advise-why-eval-interval = An evaluation takes as long as { $cost } updates{ $has_time ->
    [yes] {" "}({ $each_ms })
   *[no] {""}
  }. { $number ->
    [one] Every update
   *[other] Every { $interval } updates
  }, that is { $eval_share } of the time{ $variant ->
    [asked] , as asked; { $budget_share } is a good budget.
    [short] ; the run is short, and four evaluations are the least that show a curve.
   *[budget] ; the budget is { $budget_share }.
  }
advise-why-eval-iters = { $number ->
    [one] One sequence
   *[other] { $windows } sequences
  } of each split in batches of { $batch }{ $variant ->
    [same] , as many as before.
   *[other] .
  }
advise-why-checkpoint-interval = { $variant ->
    [asked] As asked.
    [nanogpt] nanoGPT saves after evaluations (no setting of its own), and training waits about { $wait_ms } for { $state_bytes }.
    [unknown] At most two minutes of work are at risk; { $state_bytes } are written in the background.
   *[time] A crash loses at most { $every_ms } of work. Training waits about { $wait_ms } for a save; its { $state_bytes } are written in the background.
  }
advise-why-ms-per-iter = { $variant ->
    [same] Measured with these settings, { $speed }.
    [sequences] Measured: { $measured_ms } with batch_size={ $batch }; scaled by the number of sequences.
    [faster] Measured: { $measured_ms } with batch_size={ $batch } ({ $speed }). With { $changes } it should be { $gain_percent } faster.
    [scaled] Measured: { $measured_ms } with batch_size={ $batch } ({ $speed }). These settings should be about as fast.
    [launch] Starting the kernels takes longer than computing them: { $launch_ms }; optimizer { $optimizer_ms }.
    [unknown] The speed of this device is not known.
   *[model] Matrix products { $matrix_ms }, activations moved through memory { $memory_ms }, optimizer { $optimizer_ms }.
  }
advise-why-memory-gb = Weights { $weights_bytes }, gradients { $gradients_bytes }, optimizer { $optimizer_bytes }, activations { $activations_bytes }, logits { $logits_bytes }, context { $context_bytes }.
advise-why-hours = { $number ->
    [one] One update
   *[other] { $max_iters } updates
  } with evaluations ({ $eval_share } of the time) and checkpoints.
