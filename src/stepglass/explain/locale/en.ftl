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
segment-title = Run { $number }: iterations { $first } to { $last }
normal-is = An ordinary iteration takes { $normal_ms }.
ends-with = It ends with an error (line { $line }): { $detail }
loss-row = loss
time-row = time
where-title = Where the time went
basis-run-log = from the run log: every millisecond was recorded
basis-timestamps = by the log's timestamps
basis-wall-clock = by the total the log states
basis-printed = from the printed times: every iteration is printed
basis-estimated = estimated: iterations that are not printed are taken to be ordinary ones
phase-step = training steps
phase-eval = evaluations
phase-checkpoint = checkpoints
phase-eval-checkpoint = evaluations and checkpoints
phase-warmup-eval = warm-up and first evaluation
phase-warmup = warm-up
phase-stall = unexplained stalls
phase-unattributed = unattributed
phase-data = waiting for data
phase-forward_backward = forward and backward passes
phase-optimizer = optimizer
phase-log = logging
phase-gc = Python's garbage collector
phase-other = other
wall-clock = wall clock
findings-title = Findings
no-findings = Nothing to change was found.
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
change-is = to change it: { $flags }
cannot-title = What this log cannot show
top-findings = What stands out (stepglass explain { $run } says more):

## Rules

rule-eval-inside-iteration-title = iter { $iter } is not a slow iteration: its time holds an evaluation
rule-eval-inside-iteration-text = nanoGPT's timer runs from the end of one iteration to the end of the next. At { $count ->
    [one] this boundary
   *[other] these { $count } boundaries
  } it also ran the evaluation printed just before{ $variant ->
    [eval] {""}
   *[other] {" "}and, where a line says so, saved a checkpoint
  }. Of the { $time_ms } at iter { $iter }, { $excess_ms } are that{ $variant ->
    [split] {" "}(about { $eval_ms } of evaluation and { $save_ms } of checkpoint)
   *[other] {""}
  }; the training step itself took the usual { $normal_ms }. For fewer such lines raise eval_interval (lowering it makes more of them); for shorter ones lower eval_iters.

rule-mfu-echo-title = The dip in mfu is an echo of one slow line, not a slowdown
rule-mfu-echo-text = The printed mfu is a moving average: nine tenths of the old value, one tenth of the new. The slow line of iter { $iter } pulled it from { $before_mfu } to { $printed_mfu }, and it takes some twenty lines to climb back. Replaying that average over the printed times gives the printed column again, to the last digit, on all { $replayed } lines tried. The speed itself did not change: { $clean_mfu }.

rule-warm-up-title = iter { $iter } holds the warm-up
rule-warm-up-text = { $variant ->
    [eval] The first iteration's { $time_ms } are its evaluation and an ordinary step ({ $normal_ms }); warm-up hardly shows.
    [both] The first iteration took { $time_ms }: about { $warmup_ms } of warm-up (compilation, kernels, first batches), { $eval_ms } of evaluation, and a step of { $normal_ms }.
    [together] The first iteration took { $time_ms }: warm-up (compilation, kernels, first batches) and the evaluation that nanoGPT runs at iteration 0, together. No later evaluation stands alone in this log to tell them apart; an ordinary step takes { $normal_ms }.
   *[plain] The first iteration took { $time_ms } against the usual { $normal_ms }: compilation, kernel selection and the first batches. It happens once.
  }

rule-mfu-wrong-peak-title = The printed mfu is measured against the wrong peak
rule-mfu-wrong-peak-text = { $variant ->
    [other] The log divides by { $assumed_tflops } TFLOP/s. On the { $device } ({ $peak_tflops } TFLOP/s) an ordinary iteration's { $clean_mfu } means { $corrected_mfu }: times { $assumed_tflops }, over { $peak_tflops }.
    [over] { $printed_mfu } is more than any device can do: the log divides by { $assumed_tflops } TFLOP/s, an A100's peak, and this run was on something faster. Name it with --device to get the real figure.
   *[no-peak] nanoGPT divides by { $assumed_tflops } TFLOP/s, an A100's peak, on every device. For { $device } the figure only says how this run compares with an A100; what it achieved is { $achieved_tflops } TFLOP/s.
  }

rule-small-kernels-title = The GPU waits for work: the kernels are too small
rule-small-kernels-text = The { $device } reaches { $corrected_mfu } of its peak at { $normal_ms } an iteration. With a model or micro-batch this small, starting kernels takes as long as running them. Larger batches cost little extra time until that changes.

rule-accumulation-waste-title = Gradient accumulation runs small batches one after another
rule-accumulation-waste-text = { $accumulation } micro-batches of { $batch } sequences run in turn where fewer, larger ones would do. The changed values keep the tokens of an iteration ({ $tokens_per_iter }) and need about { $memory_bytes } of memory.

rule-slow-path-title = { $variant ->
    [attention] Attention takes the slow path
    [compile] torch.compile gave up on part of the model
    [float32] Training in float32 leaves the tensor cores idle
   *[mps] On mps nanoGPT trains in float32 whatever dtype says
  }
rule-slow-path-text = { $variant ->
    [attention] The log says that fused attention is not available, so every layer writes out its whole attention matrix. A newer PyTorch has it.
    [compile] The log shows { $count ->
        [one] a warning
       *[other] { $count } warnings
      } that code fell back to eager mode: compilation time is paid, its gain is not.
    [float32] On a GPU with bfloat16 units the matrix products run at a fraction of their speed in float32.
   *[mps] nanoGPT treats every device but CUDA as a CPU and switches mixed precision off. Nothing is wrong; expect float32 speed.
  }

rule-data-bound-title = Training waits for data
rule-data-bound-text = Waiting for batches took { $data_share } of the working time{ $variant ->
    [phases] {""}, { $total_ms } in all
   *[plain] {""}, { $total_ms } in all: { $median_ms } each at the median, { $worst_ms } at worst
  }. Keep the data on a local disk or in memory, and read ahead.

rule-periodic-stall-title = A stall every { $every } iterations, off every boundary
rule-periodic-stall-text = { $count } iterations took about { $excess_ms } longer than their neighbours, at regular distance and not at evaluations or checkpoints: { $total_ms } in all. { $variant ->
    [gc] The log shows Python's garbage collector at work there.
   *[plain] Python's garbage collector does that, and so do other processes on a timer.
  } gc.freeze() and gc.disable() after the first iterations rule the collector out.

rule-slowdown-title = Iterations became { $rise_percent } slower
rule-slowdown-text = An ordinary iteration went from { $first_ms } to { $last_ms }{ $variant ->
    [drift] , gradually
   *[other] , at about iter { $iter }
  }, and stayed there. { $variant ->
    [throttle] The log names a thermal or power limit: cooling or the power setting is the cause.
   *[other] Heat, another program on the same device, or memory pressure do that; the log does not say which. Look at the device's clock and temperature while it runs.
  }

rule-eval-too-expensive-title = { $variant ->
    [together] Evaluations and checkpoints take { $eval_share } of the time
   *[plain] Evaluation takes { $eval_share } of the time
  }
rule-eval-too-expensive-text = Each { $variant ->
    [together] evaluation with its checkpoint
   *[plain] evaluation
  } costs { $each_ms }, as much as many steps of { $normal_ms }, and comes every { $interval } iterations. An eval_interval of { $wanted } would hold it at 5%; so would fewer batches an evaluation (eval_iters{ $fewer_iters ->
    [none] {""}
   *[other] {" "}{ $fewer_iters }
  }), at the price of noisier losses.

rule-eval-noise-title = The last evaluations differ by less than their noise
rule-eval-noise-text = One evaluation is uncertain by { $se_loss }; two of them must differ by { $least_loss } to mean anything, and the last { $count } changes were at most { $largest_loss }. Do not pick a checkpoint by them{ $variant ->
    [more] {""}: more eval_iters, or the same fixed windows every time, decide it
   *[plain] {""}
  }.

rule-checkpoint-interval-title = { $variant ->
    [none] { $risk_ms } of work and no checkpoint yet
   *[plain] Checkpoints take { $save_share } of the time
  }
rule-checkpoint-interval-text = { $variant ->
    [none] No line of this log says that a checkpoint was saved. A crash now would cost all of it.
   *[plain] { $count } checkpoints at about { $save_ms } each stopped training for { $total_ms }. With one failure a day in mind, one every { $wanted_ms } is best; in nanoGPT saving is tied to eval_interval.
  }

rule-overfitting-title = { $variant ->
    [gap] Overfitting: the validation loss is far above the training loss
   *[other] Overfitting since iteration { $best_iter }
  }
rule-overfitting-text = { $variant ->
    [gap] At step { $last_iter } the model scores { $train_loss } on text it has seen and { $last_loss } on text it has not: a gap of { $gap_loss }, { $gap_percent } of the training loss; it is { $perplexity_times } times as unsure about new text. That is memorising, not a mild gap. With so few evaluations the log cannot show when it began: look for the step with the lowest val loss.
    [no-train] The validation loss was best at step { $best_iter } ({ $best_loss }) and has risen by { $rise_loss } ({ $rise_percent }) to { $last_loss } while the training loss fell. Everything after that step made the model worse on new text.
   *[rising] The validation loss was best at step { $best_iter } ({ $best_loss }) and has risen by { $rise_loss } ({ $rise_percent }) to { $last_loss }, while the training loss fell to { $train_loss }. Everything after that step made the model worse on new text: stop there, use more dropout or more data, or a smaller model.
  }

rule-best-checkpoint-lost-title = The best checkpoint was overwritten by a worse one
rule-best-checkpoint-lost-text = nanoGPT keeps one checkpoint. The best was step { $best_iter } (val loss { $best_loss }); the file now holds step { $kept_iter } ({ $kept_loss }), worse by { $worse_loss }.

rule-stopped-early-title = The run ended while it was still learning
rule-stopped-early-text = The validation loss was still falling at the end (step { $last_iter }: { $last_loss }), by about { $gain_loss } a thousand iterations, without the gap that memorising would leave. A longer run, with the decay stretched to it, should gain more.

rule-schedule-mismatch-title = { $variant ->
    [batch] The learning rate is high for so few tokens an iteration
    [floor] The learning rate's floor is unusual
    [warmup] Warm-up takes a large part of the run
   *[other] The learning rate's decay does not fit the length of the run
  }
rule-schedule-mismatch-text = { $variant ->
    [floor] min_lr is { $low_lr } at a learning_rate of { $rate }; a tenth of it is usual.
    [batch] learning_rate { $rate } was tuned for half a million tokens an iteration; here there are { $batch_tokens }. With fewer tokens the gradient is noisier: scale the rate with the square root.
    [warmup] The learning rate climbs for { $warmup_iters } of { $max_iters } iterations; one or two percent are usual.
    [long] lr_decay_iters is { $decay_iters } but the run ends at { $max_iters }: the learning rate never gets low, and the last part of the decay is where the loss drops most.
   *[short] lr_decay_iters is { $decay_iters } and the run goes on to { $max_iters }: all iterations after the decay run at min_lr.
  }

rule-nan-loss-title = { $variant ->
    [eval] An evaluation gave no number (step { $iter }, line { $line })
   *[other] The loss is no number from iter { $iter } on (line { $line })
  }
rule-nan-loss-text = { $variant ->
    [eval] The training loss stays finite, so the model still learns. The evaluation itself is at fault: no batches to score, or no valid targets in them.
   *[other] { $last_iter ->
        [none] The first loss printed is already no number.
       *[other] The last finite loss was { $last_loss } at iter { $last_iter }.
      } Nothing after it was learned: stop the run{ $save_iter ->
        [none] {""}
       *[other] {" "}and go back to the checkpoint of iteration { $save_iter }, if it has not been overwritten
      }. { $variant ->
        [fp16] In float16 large values overflow; bfloat16 or float32 do not.
       *[other] Usual causes: a learning rate too high, float16 overflow, or a token id outside the vocabulary.
      }{ $faster_percent ->
        [none] {""}
       *[other] {" "}Iterations have been { $faster_percent } faster since: that is how it looks when the gradient scaler skips every update.
      }
  }

rule-divergence-title = Training diverged at about iter { $iter }
rule-divergence-text = The loss had come down to { $best_loss } (iter { $best_iter }), then rose and stayed up: { $last_loss } at the end{ $variant ->
    [rate] {""}, with a learning rate of { $rate } where it began
   *[plain] {""}
  }. Go back to a checkpoint before it, with half the learning rate and a longer warm-up.

rule-loss-spike-title = { $count ->
    [one] A loss spike at iter { $iter }
   *[other] { $count } loss spikes, the largest at iter { $iter }
  }
rule-loss-spike-text = The loss jumped to { $loss } where { $around_loss } was usual ({ $z } times the noise) and came back. A few of these are harmless; many call for a lower grad_clip or learning_rate.

rule-initial-loss-title = The first loss does not fit the vocabulary
rule-initial-loss-text = A model that knows nothing scores ln({ $vocab }) = { $expected_loss }; this one began at { $seen_loss }. { $variant ->
    [low] Either it did not start from scratch, or targets leak into its input, or the vocabulary is larger than the data needs.
   *[high] Check vocab_size and meta.pkl, the shift between input and target, and the initialisation.
  }

rule-plateau-title = The validation loss has stopped moving
rule-plateau-text = Over the last { $count } evaluations (steps { $first_iter } to { $last_iter }) it stayed at { $mean_loss }; its trend is { $moved_loss } in all, no more than noise. { $variant ->
    [peak] The learning rate is still at its peak: lower it or begin the decay.
    [floor] The learning rate is at its floor: this schedule has given what it has.
   *[plain] The log does not say where the learning rate stands, so it cannot tell a schedule that is over from a rate that is too high.
  }

rule-data-budget-title = { $variant ->
    [epochs] The run sees its data { $epochs } times
    [few] Few tokens for this model: { $ratio } a parameter
   *[many] Many tokens for this model: { $ratio } a parameter
  }
rule-data-budget-text = { $max_iters } iterations are { $tokens } tokens for { $parameters } parameters, { $ratio } each; about 20 is the usual balance. { $variant ->
    [epochs] The text itself is much smaller than that, so it is read { $epochs } times: past four or so, a model mostly learns it by heart.
    [few] A smaller model, or more iterations, would use the time better.
   *[many] A larger model would reach a lower loss in the same time.
  }

rule-out-of-memory-title = Out of memory
rule-out-of-memory-text = { $variant ->
    [sizes] The run asked for { $tried_bytes } more and did not get it.
   *[plain] The run asked for more memory than the device has.
  } Half the batch_size with twice the gradient_accumulation_steps trains the same and needs about half of what grows with the batch; a shorter block_size helps as well. Messages after the first are consequences.

rule-contradiction-title = { $variant ->
    [tokens] The printed tokens per second are off by a factor of { $times }
    [clock] The printed times are not the real ones
    [rate] The final tokens per second are wrong
   *[hidden-nan] The loss looks fine because the log hides that it is not
  }
rule-contradiction-text = { $variant ->
    [tokens] A step is { $stated_tokens } tokens, but tokens per second times the step's time make { $implied_tokens }. Trust the time: it gives { $real_rate } tokens a second, not { $printed_rate }.
    [clock] An ordinary iteration prints { $normal_ms }; the timestamps say { $stamped_ms }. Trust the timestamps: without a synchronisation the printed time is when Python was done, not when the device was.
    [rate] Total tokens over training time make { $real_rate } a second, not { $printed_rate }.
   *[hidden-nan] The gradient norm is no number ({ $count ->
        [one] once
       *[other] { $count } times
      }) while the printed loss goes on: by default this trainer prints the running average in place of a NaN. Set logging_nan_inf_filter to False to see it.
  }

rule-unexplained-stall-title = iter { $iter } stalled for { $excess_ms }, and no boundary explains it
rule-unexplained-stall-text = It took { $time_ms } where { $normal_ms } is usual{ $variant ->
    [grid] {""}, and evaluations come every { $eval_interval } iterations: this is not one
   *[plain] {""}
  }. { $count ->
    [one] {""}
   *[other] There are { $count } such lines, { $total_ms } together.{" "}
  }The computer asleep, another program, a full or slow disk, and recompilation do that; the log cannot tell them apart.

rule-last-line-is-eval-title = The last line is an evaluation: do not quote its time
rule-last-line-is-eval-text = The run ends on a boundary, so iter { $iter } prints { $time_ms } where training takes { $normal_ms } an iteration{ $variant ->
    [mfu] {""}, and an mfu of { $printed_mfu } where { $clean_mfu } is right
   *[plain] {""}
  }.

## What a log cannot show

cannot-data-wait = How long training waited for data: nanoGPT does not time it.
cannot-unprinted = The time of each iteration: only some are printed, the others are taken to be ordinary.
cannot-device = On which device it ran: the mfu is against an A100's 312 TFLOP/s. Name the device with --device.
cannot-split = How a boundary divides into evaluation and checkpoint: every one has both, and no line carries a time of day.
cannot-last-micro-batch = The loss of a whole iteration: nanoGPT prints the last micro-batch's.
cannot-wall-clock = What happened outside the loop (imports, data, the end): no line says when it was printed.
cannot-no-times = Where the time went: this log prints neither times nor timestamps.
cannot-evals-unprinted = What the evaluations cost, and so how long the run took: they fall on iterations that are not printed.
cannot-no-evals = Whether the model generalises: there is no evaluation in this log.
cannot-format-nanochat = Evaluations, samples and checkpoints: nanochat's dt and total time leave them out; its loss is smoothed.
cannot-format-modded-nanogpt = What validation and start-up cost: the timer is stopped for them.
cannot-format-llm-c = What validation and checkpoints cost: only steps are timed.
cannot-format-litgpt = Data waits: the time of an iteration starts after its batch was fetched.
cannot-format-torchtitan = Single steps: its figures are averages since the last line, and a checkpoint falls into the next one.
cannot-format-hf-trainer = The time of a step and of a checkpoint: they are not printed. A NaN loss is replaced by an average by default.
cannot-format-lightning = Single steps: the bar's rate is smoothed.
cannot-format-composer = What a checkpoint costs: it is counted into the next batch.
cannot-format-lingua = What an evaluation or a checkpoint costs: it dents the next line's rate.
cannot-format-mingpt = What sampling and saving cost: the time printed is the previous iteration's.
cannot-format-char-rnn = What evaluations and checkpoints cost: they are not timed.
cannot-format-megatron = What validation and checkpoints cost, unless their own lines say so.
left-out-settings = Settings beyond the first { $most } names: { $count } lines with more are not kept.
left-out-events = Every message: { $count } from the middle of a long series are counted, but not kept.
left-out-evals = Every evaluation: of { $count }, { $kept } are kept, the best and the last among them. Counts and times are of all.
left-out-runs = Where each run began: { $count } more were found than the { $most } that are told apart.

## --lines

lines-title = Line by line
line-iter = One update of the weights, the one with number { $iter }, on one batch.
line-loss = loss { $loss }: how wrong the predictions of this batch were (cross-entropy, lower is better); the right next token gets a probability of about e^-{ $loss } = { $chance }. Single batches scatter; read the trend.
line-time = time { $time_ms }: an ordinary iteration here ({ $normal_ms } is normal).
line-time-slow = time { $time_ms }: { $excess_ms } more than the usual { $normal_ms }. Cause: { $cause }.
line-mfu = mfu { $mfu }: a moving average of the share of an A100's 312 TFLOP/s that the model's arithmetic used.
line-mfu-none = mfu -100%: not measured yet; nanoGPT leaves out the first five iterations.
line-mfu-worked = An ordinary iteration, without the average: { $achieved_tflops } TFLOP/s × { $normal_ms } = { $work_tflop } TFLOP of work; { $achieved_tflops } / { $assumed_tflops } = { $clean_mfu }.
line-mfu-corrected = On the { $device } ({ $peak_tflops } TFLOP/s) that is { $corrected_mfu }.
line-mfu-formula = By the formula: (6 × { $parameters } parameters + 12 × { $n_layer } layers × { $n_embd } wide × { $block_size } tokens) × { $tokens } tokens an iteration = { $work_tflop } TFLOP.
line-eval = An evaluation at step { $iter }: mean losses over many batches, without learning.
line-eval-train = train loss { $train_loss }: on text the model learns from.
line-eval-val = val loss { $val_loss }: on text it never learns from; this is the figure that counts.
line-eval-gap = The gap between the two is { $gap_loss }.
line-eval-best = The best so far.
line-eval-worse = Worse than step { $best_iter } ({ $best_loss }).
line-save = A checkpoint was saved; in nanoGPT the next iteration's time holds it.
line-run = Ordinary iterations like this one, { $count } of them, { $first } to { $last }: loss { $first_loss } to { $last_loss }, { $low_ms } to { $high_ms } each.
line-unknown = { $count ->
    [one] One line was not understood.
   *[other] { $count } lines were not understood.
  }
cause-warmup = warm-up
cause-eval = evaluation
cause-checkpoint = checkpoint
cause-unexplained = unexplained

## The page of `report` and `watch`

page-language = English
page-language-choice = language
page-unknown = n/a
page-about = { $format } log, { $lines } lines, { $understood } understood
page-level-good = healthy
page-level-advice = worth a look
page-level-problem = problem
page-health-good = No rule found anything to act on.
page-health-more = { $title }, and { $count ->
    [one] one more finding
   *[other] { $count } more findings
  }
page-health-waiting = No iteration has been logged yet.
page-health-failed = The run ended with an error: { $detail }
page-health-killed = The process is gone and said nothing: it was killed. It can be resumed from its last checkpoint.
page-state = state
page-state-running = running, { $step } of { $max } iterations
page-state-finished = finished after { $step } iterations
page-state-target = reached its target after { $step } iterations
page-state-signal = stopped by a signal after { $step } iterations
page-state-failed = failed after { $step } iterations
page-state-oom = out of memory after { $step } iterations
page-state-error = ended with an error after { $step } iterations
page-state-killed = killed after { $step } of { $max } iterations
page-state-waiting = waiting for the first iteration
page-state-unknown = unknown
page-state-log = { $step } iterations logged
page-left = about { $left } left
page-live = live
page-lost = no connection, trying again
page-run = run
page-runs = Runs
page-no-runs = There is no run here yet. It will appear when one begins.
page-compare = What differs
page-loss = Loss
page-iterations = How long each iteration took
page-speed = Speed
page-inside = Inside the step
page-samples = Samples
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
page-best = best { $loss } at { $number }
page-iteration = iter { $number }
page-train-loss = training loss { $loss }
page-smoothed = smoothed { $loss }
page-val-loss = validation loss { $loss } at { $number }
page-slow-because = slow because of: { $cause } (ordinary: { $normal })
page-normal = An ordinary iteration takes { $normal }. Point at a spike to see why it was slow.
page-mfu = { $value } in an ordinary step; peak: { $source }
page-peak-device = { $peak } TFLOP/s, from the table for { $device }
page-peak-assumed = { $peak } TFLOP/s, which the trainer assumed; the log names no device
page-lines = line { $lines }
page-copy = copy
page-copied = copied
page-outcome-best = best validation loss (at)
page-outcome-val = last validation loss
page-outcome-loss = last training loss
page-outcome-iters = last iteration
page-outcome-normal = ordinary iteration
page-outcome-wall = wall clock
page-outcome-mfu = MFU
page-thinned = Of { $total } iterations { $drawn } are in this file: of every stretch the lowest and the highest of each figure. Sums are of all.
page-thinned-live = Of { $total } iterations { $drawn } are drawn, the lowest and the highest of every stretch among them. Zoom in to see each.
