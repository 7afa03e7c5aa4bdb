"""Sentences about logs of many trainers that must be true of logs nobody has seen yet."""

# ruff: noqa: E501 (log lines are quoted whole)

import io

from stepglass.explain.render import show
from stepglass.explain.render.languages import Words
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect


def shown(*lines: str) -> str:
    result = study(detect.read_log(io.BytesIO("\n".join(lines).encode()), "test.log"))
    words = Words("en")
    said = show.lines(result, all_rules.findings(result), words, "test.log", 400)
    return "\n".join(said).replace("\xa0", " ")


def metric_logger(epochs: range, first_s: float) -> list[str]:
    line = "Epoch: [{}]  [{:2d}/31]  eta: 0:01:26  lr: 0.0001  loss: 4.6 (4.6)  time: {:.4f}  data: {:.4f}  max mem: 5990"
    steps = [(0, first_s, first_s - 0.1), (10, (first_s + 1.5) / 11, (first_s - 0.1 + 0.5) / 11)]
    steps += [(20, 0.15, 0.05), (30, 0.15, 0.05)]
    return [line.format(epoch, n, time, data) for epoch in epochs for n, time, data in steps]


def test_a_slow_line_whose_wait_for_data_is_printed_has_a_reason():
    said = shown(*metric_logger(range(1, 4), 3.0))
    assert "Training waits for data" in said
    assert "no reason" not in said
    assert "A training step takes 150.0 ms." in said


def test_steps_are_weighed_by_the_number_that_a_line_is_about():
    line = "Epoch: [{}][{}/25]\tTime {:.3f} ({:.3f})\tData 0.001 (0.001)\tLoss 0.5 (0.5)"
    pairs = ((1, 0, 270.0, 270.0), (1, 24, 0.3, 20.0), (2, 0, 260.0, 260.0), (2, 24, 0.3, 20.0))
    said = shown(*(line.format(*pair) for pair in pairs))
    assert "A training step takes 10.0 s." in said  # (500 - 260) / 24, not one of the first steps


def test_the_wait_after_an_evaluation_is_not_for_data():
    line = '{{"mode": "train", "epoch": 5, "iter": {}, "lr": 0.004, "memory": 69, "data_time": {}, "loss": 1.1, "time": {}}}'
    value = '{"mode": "val", "epoch": 5, "iter": 200, "lr": 0.004, "mIoU": 0.18}'
    rows = [(50, 0.01, 1.4), (100, 0.01, 1.4), (150, 0.01, 1.4), (250, 5.3, 6.7), (300, 0.01, 1.4)]
    lines = [line.format(*row) for row in rows]
    said = shown(*lines[:3], value, *lines[3:])
    assert "waits for data" not in said
    assert "stalled" not in said
    assert "evaluations" in said.partition("Where the time went")[2]


def test_a_log_of_epochs_says_epoch():
    rows = ("0,0.88,0.40,0.25,6.8", "1,0.99,0.03,0.24,8.6", "2,0.99,0.02,0.35,5.1")
    said = shown("epoch,acc,loss,val_acc,val_loss", *rows)
    assert "best 5.1000 (epoch 2, the last)" in said
    assert "step 2" not in said


def test_a_validation_loss_of_before_the_first_line_has_no_step():
    line = "Training epoch 0, iteration {}/149 | lr: 3e-05 | global_step: {} | reduced_train_loss: 1.2 | train_step_timing in s: 0.03 | val_loss: 4.106"
    said = shown(*(line.format(n, n) for n in range(120, 124)))
    assert "validation loss: 4.1060\n" in said


def test_two_slow_first_iterations_are_both_named():
    line = "{:5d} {:.2f} s run, 11.8750 loss, 0.000000000001 LR, 642.43 GB used,  19644.30 GFLOPS"
    times = (93.0, 101.0, 7.0, 7.0, 7.0, 7.0)
    said = shown(*(line.format(n, time) for n, time in enumerate(times, 1)))
    assert "The first 2 iterations include the start-up" in said
    assert "They took up to 1 min 41 s, later ones 7.00 s" in said


def test_a_start_up_that_waited_for_data_says_so():
    line = "2021-08-17 17:{:02d}:17,073 - mmcls - INFO - Epoch [1][{}/5005]\tlr: 0.1, eta: 8 days, 5:46:17, time: {}, data_time: {}, memory: 30, loss: 6.8"
    rows = [(0, 100, 6.4, 5.7), *((n, 100 + 100 * n, 0.17, 0.005) for n in range(1, 6))]
    said = shown(*(line.format(*row) for row in rows))
    assert "Here it was mostly waiting for data" in said


def test_one_bar_alone_tells_the_mean_step():
    said = shown(
        "Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, "
        "reduced_train_loss=3.090, global_step=794.0]"
    )
    assert "A step takes 41.4 s on average, everything else included." in said
    assert "32,878.00 s" in said  # what the bar's clock shows


def test_a_stall_after_a_checkpoint_is_not_without_a_reason():
    step = "INFO:tensorflow:global step {}: loss = 1.4 ({:.3f} sec/step)"
    save = "INFO:tensorflow:Saving checkpoint to path training/model.ckpt"
    lines = [step.format(n, 2.0) for n in range(1, 12)]
    said = shown(
        *lines[:2], save, *lines[2:4], save, *lines[4:6], save, step.format(7, 250.0), *lines[7:]
    )
    assert "iter 7 stalled" in said
    assert "no reason" not in said
    assert "supported" in said


def test_a_micro_batch_is_not_called_a_step():
    line = "Epoch 1 | iter {} step {} | loss train: 3.7, val: n/a | iter time: 45.00 ms"
    said = shown(*(line.format(n, n // 4) for n in range(46, 52)))
    assert "An iteration takes 45.00 ms; an update consists of several." in said


def test_a_single_line_is_one_iteration_and_no_span_of_time():
    said = shown(
        "11/01/2024 11:05:18 [INFO|DP=0|PP=0|TP=0]: iteration: 12001 / 17500 | "
        "elapsed_time_per_iteration_ms: 28.2K | lm_loss: 2.3 | lr: 0.000289 | grad_norm: 0.15"
    )
    assert "training step 12001 only" in said
    assert "timestamps" not in said


def test_an_evaluation_that_every_mean_includes_is_said_to_be_included():
    bar = "1490/1490 - {}s - loss: 1.9e-05 - val_loss: 2.0e-05 - {}s/epoch - 71ms/step"
    lines = [line for n in (12, 13, 14) for line in (f"Epoch {n}/200", bar.format(106, 106))]
    assert "A step takes 71.14 ms on average, everything else included." in shown(*lines)


def test_a_stall_with_more_memory_has_that_as_its_likely_reason():
    line = "Iter {}: Train loss 2.5, Learning Rate 1.0e-05, It/sec {}, Tokens/sec {}, Trained Tokens 8557, Peak {} GB"
    rows = [(n, 0.16, 280, 58.9) for n in range(10, 60, 10)] + [(60, 0.016, 28, 65.0)]
    said = shown(
        *(line.format(*row) for row in [*rows, (70, 0.16, 280, 65.0), (80, 0.16, 280, 65.0)])
    )
    assert "stalled" in said
    assert "Its memory is higher than before" in said
    assert "no reason" not in said


def test_an_excerpt_does_not_say_where_its_process_began():
    line = "[04/14 09:05:{:02d}] d2.utils.events INFO:  eta: 0:11:54  iter: {}  total_loss: 9.2  time: 0.8120  data_time: 0.0001  lr: 0.001  max_mem: 28515M"
    said = shown(*(line.format(10 + 16 * n, 119 + 20 * n) for n in range(3)))
    assert "100 to 159" in said


def test_a_few_bars_tell_a_mean_and_not_a_step():
    bars = (
        "16%|█▋   | 1024/6400 [1:14:23<1:13:02,  1.23it/s]",
        "16%|█▋   | 1044/6400 [1:16:09<1:07:04,  1.33it/s]",
    )
    said = shown(*bars)
    assert "test.log: progress-bar" in said
    assert "A step takes 5.30 s on average by the progress bar's elapsed time." in said
