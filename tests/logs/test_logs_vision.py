"""Logs of trainers for images, and of Keras and TensorFlow: lines, and what they become."""

# ruff: noqa: E501 (log lines are quoted whole)

import io

import pytest

from stepglass.explain.iteration_times import windows_of
from stepglass.logs import detect
from stepglass.logs.log import Log


def read(*lines: str) -> Log:
    return detect.read_log(io.BytesIO("\n".join(lines).encode()), "x.log")


def column(log: Log, name: str, digits: int = 4) -> list[float]:
    return [round(v, digits) for s in log.segments for v in s.table.column(name).tolist()]


def evals(log: Log) -> list[tuple[int, float | None, dict[str, float] | None]]:
    return [(e.iter, e.val_loss, e.metrics) for s in log.segments for e in s.evals]


# -- Keras ---------------------------------------------------------------------------------------

BAR = "[==============================]"
RULE = "━━━━━━━━━━━━━━━━━━━━"


def test_an_epoch_of_keras_counts_its_mean_for_all_of_its_steps():
    log = read(
        "Epoch 1/3",
        f"200/200 {BAR} - 50s 250ms/step - loss: 1.5 - acc: 0.5 - val_loss: 1.4 - val_acc: 0.55",
        "Epoch 2/3",
        f"200/200 {BAR} - 46s 230ms/step - loss: 1.2 - acc: 0.6 - val_loss: 1.3 - val_acc: 0.58",
    )
    assert log.format.name == "keras"
    assert len(log.segments) == 1
    assert column(log, "iter") == [200, 400]
    assert column(log, "time_ms") == [250, 230]
    assert log.segments[0].table.time_sum_ms == 96_000
    assert log.segments[0].setting("max_iters") == 600
    assert evals(log) == [(200, 1.4, {"acc": 0.55}), (400, 1.3, {"acc": 0.58})]
    assert log.format.time_holds_eval


def test_without_steps_an_iteration_of_keras_is_an_epoch():
    log = read(
        f"6000/6000 {BAR} - 61s - loss: 0.9 - val_loss: 0.8",
        "Epoch 8/20",
        f"6000/6000 {BAR} - 62s - loss: 0.7 - val_loss: 0.6",
        "Epoch 9/20",
        " - 63s - loss: 0.6 - val_loss: 0.5",
    )
    assert column(log, "iter") == [7, 8, 9]
    assert column(log, "time_ms") == [61_000, 62_000, 63_000]


def test_keras_3_redraws_its_bar_and_the_last_one_counts():
    states = [
        f"  1/400 {RULE} 3:20 500ms/step - accuracy: 0.1 - loss: 2.4",
        f"399/400 {RULE} 0s 20ms/step - accuracy: 0.6 - loss: 1.1",
        f"400/400 {RULE} 0s 20ms/step - accuracy: 0.6 - loss: 1.0",
        f"400/400 {RULE} 9s 22ms/step - accuracy: 0.7 - loss: 0.9 - val_accuracy: 0.8 - val_loss: 0.5",
    ]
    log = read(
        "Epoch 1/2",
        "\r".join(states),
        "Epoch 2/2",
        states[2],
        "Epoch 2: val_loss improved from 0.50 to 0.40, saving model to best.keras",
        f"400/400 {RULE} 8s 21ms/step - accuracy: 0.8 - loss: 0.6 - val_accuracy: 0.9 - val_loss: 0.4",
        f"100/100 {RULE} 1s 8ms/step - accuracy: 0.85 - loss: 0.45",
    )
    assert column(log, "iter") == [400, 800]
    assert column(log, "loss") == [0.9, 0.6]
    assert column(log, "time_ms") == [22, 21]
    assert [(e.iter, e.val_loss, e.set) for e in log.segments[0].evals] == [
        (400, 0.5, ""),
        (800, 0.4, ""),
        (800, 0.45, "evaluate"),
    ]
    assert [save.iter for save in log.segments[0].saves] == [800]


def test_whole_seconds_per_step_are_too_coarse_so_the_sum_is_used():
    log = read("Epoch 1/2", f"30/30 {BAR} - 43s 1s/step - loss: 1.5", "Epoch 2/2")
    assert column(log, "time_ms", 1) == [1433.3]


def test_a_keras_run_that_stopped_in_its_first_epoch_is_read():
    log = read("Epoch 1/5", f" 12/400 {RULE} 1:10 180ms/step - loss: 2.1", "Killed")
    assert column(log, "iter") == [12]
    assert column(log, "loss") == [2.1]


def test_csvlogger_has_one_row_for_each_epoch():
    log = read(
        "epoch,accuracy,loss,lr,val_accuracy,val_loss",
        "0,0.5,1.5,0.001,0.6,1.2",
        "1,0.7,0.9,0.001,0.65,1.1",
    )
    assert (log.format.name, column(log, "iter"), column(log, "loss")) == (
        "keras",
        [0, 1],
        [1.5, 0.9],
    )
    assert evals(log) == [(0, 1.2, {"accuracy": 0.6}), (1, 1.1, {"accuracy": 0.65})]


# -- timm, OpenPCDet -----------------------------------------------------------------------------


def test_an_epoch_of_timm_is_no_restarted_run():
    line = "Train: {} [{:>4d}/99 ({:>3d}%)]  Loss: {} (6.5)  Time: 0.{}s,  640.0/s  (0.4s,  500.0/s)  LR: 1.0e-03  Data: 0.010 (0.05)"
    log = read(
        line.format(0, 0, 0, 6.9, 400),
        line.format(0, 50, 51, 6.8, 210),
        line.format(0, 98, 100, 6.7, 220),
        "Test: [   0/9]  Time: 1.000 (1.000)  Loss:  6.0 (6.00)  Acc@1:  5.0 ( 5.000)",
        "Test: [   9/9]  Time: 0.100 (0.200)  Loss:  5.8 (5.90)  Acc@1:  8.0 ( 6.500)",
        "Test (EMA): [   9/9]  Time: 0.100 (0.200)  Loss:  6.1 (6.20)  Acc@1:  2.0 ( 1.500)",
        line.format(1, 0, 0, 6.6, 230),
    )
    assert log.format.name == "timm"
    assert len(log.segments) == 1
    assert column(log, "iter") == [0, 50, 98, 99]
    assert column(log, "time_ms") == [400, 210, 220, 230]
    assert [(e.iter, e.val_loss, e.time_ms, e.set, e.metrics) for e in log.segments[0].evals] == [
        (98, 5.9, 2000.0, "", {"Acc@1": 6.5}),
        (98, 6.2, 2000.0, "EMA", {"Acc@1": 1.5}),
    ]
    assert log.num_understood == 7


def test_openpcdet_has_its_own_count_and_clock():
    log = read(
        "INFO  Train:    2/8 ( 25%) [   0/300 (  0%)]  Loss: 3.5 (3.5)  LR: 1.0e-04  Time cost: 00:02/10:00 "
        "[02:02/1:05:18]  Acc_iter 301         Data time: 0.80(0.80)  Forward time: 1.20(1.20)  Batch time: 2.00(2.00)",
        "INFO  Train:    2/8 ( 25%) [  49/300 ( 16%)]  Loss: 3.1 (3.3)  LR: 1.1e-04  Time cost: 00:22/01:30 "
        "[02:22/1:01:18]  Acc_iter 350         Data time: 0.01(0.03)  Forward time: 0.38(0.41)  Batch time: 0.39(0.44)",
    )
    assert column(log, "iter") == [301, 350]
    # The mean in brackets, of 50 steps with the first: 49 steps took 20 s.
    assert column(log, "time_ms") == [2000, pytest.approx(20_000 / 49, abs=0.01)]
    assert column(log, "window") == [1, 49]
    last = log.segments[0].last_elapsed
    assert last is not None
    assert last.ms == 142_000


# -- MetricLogger --------------------------------------------------------------------------------


def test_the_time_of_a_metric_logger_is_the_mean_of_its_last_twenty():
    line = "Epoch: [{}]  [{:>3d}/200]  eta: 0:01:00  lr: 0.05  loss: {} (6.5)  time: {}  data: 0.01  max mem: 900"
    log = read(
        line.format(0, 0, 7.0, "3.0000"),
        line.format(0, 10, 6.5, "0.5000"),
        line.format(0, 100, 6.0, "0.2500"),
        "Epoch: [0] Total time: 0:01:00 (0.3000 s / it)",
        "Test:  [ 0/40]  eta: 0:00:50  loss: 5.0 (5.0)  acc1: 10.0 (10.0)  time: 1.2  data: 1.0  max mem: 900",
        "Test: Total time: 0:00:20 (0.5000 s / it)",
        "* Acc@1 12.500 Acc@5 30.250 loss 5.125",
        line.format(1, 0, 5.9, "0.7000"),
    )
    assert log.format.name == "metric-logger"
    assert len(log.segments) == 1
    assert column(log, "iter") == [0, 10, 100, 200]
    assert column(log, "window") == [1, 10, 20, 1]
    [tested] = log.segments[0].evals
    assert (tested.iter, tested.val_loss, tested.time_ms) == (100, 5.125, 20_000)
    assert tested.metrics == {"acc1": 12.5, "acc5": 30.25}


def test_log_txt_has_one_line_for_each_epoch_and_may_lack_the_test():
    log = read(
        '{"train_lr": 0.001, "train_loss": 4.5, "epoch": 10, "n_parameters": 5000}',
        '{"train_lr": 0.001, "train_loss": 4.4, "test_loss": 2.5, "test_acc1": 50.5, "epoch": 11}',
    )
    assert (log.format.name, column(log, "iter")) == ("metric-logger", [10, 11])
    assert evals(log) == [(11, 2.5, {"acc1": 50.5})]


# -- detectron2 ----------------------------------------------------------------------------------


def test_detectron2_prints_the_last_time_and_its_metrics_belong_to_the_saved_iteration():
    line = "[05/02 10:00:00 d2.utils.events]:  eta: 1:02:03  iter: {}  total_loss: {}  loss_cls: 0.5  time: 0.30  last_time: {}  data_time: 0.01  lr: 0.001  max_mem: 3456M"
    log = read(
        line.format(19, 2.5, 0.5),
        line.format(39, 2.25, 0.25),
        "[05/02 10:01:00 fvcore.common.checkpoint]: Saving checkpoint to ./out/model_0000049.pth",
        "[05/02 10:02:00 d2.evaluation.testing]: copypaste: Task: bbox",
        "[05/02 10:02:00 d2.evaluation.testing]: copypaste: AP,AP50",
        "[05/02 10:02:00 d2.evaluation.testing]: copypaste: 12.5000,25.5000",
        line.format(59, 2.0, 0.75),
    )
    assert log.format.name == "detectron2"
    assert column(log, "time_ms") == [500, 250, 750]
    assert column(log, "loss") == [2.5, 2.25, 2.0]
    assert evals(log) == [(49, None, {"AP": 12.5, "AP50": 25.5})]


def test_detectron2_metrics_json_is_read():
    log = read(
        '{"data_time": 0.01, "iteration": 19, "lr": 0.001, "time": 0.5, "total_loss": 2.5}',
        '{"bbox/AP": 12.5, "data_time": 0.01, "iteration": 39, "lr": 0.001, "time": 0.25, "total_loss": 2.0}',
    )
    assert (log.format.name, column(log, "time_ms")) == ("detectron2", [500, 250])
    assert evals(log) == [(39, None, {"bbox/AP": 12.5})]


# -- OpenMMLab -----------------------------------------------------------------------------------


def test_mmengine_counts_over_epochs_and_its_time_is_a_mean_of_ten_unless_the_config_says_more():
    line = "07/03 13:04:17 - mmengine - INFO - Epoch(train)  [{}][{:>3d}/100]  lr: 1.0e-03  eta: 0:13:14  time: 0.{}  data_time: 0.03  memory: 970  grad_norm: 4.5  loss: {}  loss_cls: 0.5"
    lines = [line.format(1, 50, 40, 2.5), line.format(1, 100, 20, 2.0), line.format(2, 50, 25, 1.5)]
    tested = "07/03 13:05:17 - mmengine - INFO - Epoch(val) [1][10/10]    coco/bbox_mAP: 0.1250  data_time: 0.01  time: 0.05"
    log = read(lines[0], lines[1], tested, lines[2])
    assert log.format.name == "mmengine"
    assert len(log.segments) == 1
    assert column(log, "iter") == [50, 100, 150]
    assert column(log, "time_ms") == [400, 200, 250]
    assert column(log, "window") == [10, 10, 10]
    assert evals(log) == [(100, None, {"coco/bbox_mAP": 0.125})]
    config = "log_processor = dict(by_epoch=True, type='LogProcessor', window_size=50)"
    assert column(read(config, *lines), "window") == [50, 50, 50]


def test_mmcv_prints_means_since_the_line_before():
    log = read(
        "2022-03-04 11:00:00,123 - mmseg - INFO - Iter [50/4000]\tlr: 9.9e-03, eta: 1:05:06, time: 0.600, data_time: 0.05, memory: 3764, decode.loss_ce: 1.5, loss: 1.9",
        "2022-03-04 11:00:30,123 - mmseg - INFO - Iter [100/4000]\tlr: 9.8e-03, eta: 1:05:06, time: 0.500, data_time: 0.05, memory: 3764, decode.loss_ce: 1.2, loss: 1.5",
        "2022-03-04 11:01:30,123 - mmseg - INFO - Iter(val) [100]\tmIoU: 0.2500, mAcc: 0.5",
    )
    assert (log.format.name, column(log, "loss")) == ("mmengine", [1.9, 1.5])
    assert windows_of(log.segments[0]).tolist() == [50, 50]
    assert evals(log) == [(100, None, {"mIoU": 0.25, "mAcc": 0.5})]


def test_the_json_lines_of_mmengine_are_not_taken_for_another_trainers():
    line = '{{"lr": 0.001, "data_time": 0.01, "loss": {}, "time": 0.5, "epoch": 1, "iter": {}, "memory": 900, "step": {}}}'
    log = read(line.format(2.5, 50, 50), line.format(2.0, 100, 100))
    assert (log.format.name, column(log, "iter"), column(log, "time_ms")) == (
        "mmengine",
        [50, 100],
        [500, 500],
    )


# -- Ultralytics ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "progress",
    ["100%|██████████| 50/50 [00:25<00:00,  1.95it/s]", "100% ━━━━━━━━━━━━ 50/50 1.9it/s 25.0s"],
)
def test_yolo_has_a_bar_for_each_epoch_and_the_loss_is_the_sum_of_its_parts(progress):
    log = read(
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
        f"       1/20      2.61G       1.25        1.5       1.25         81        640: {progress}",
        "                 Class     Images  Instances      Box(P          R      mAP50   mAP50-95): 100%",
        "                   all        128        929      0.625      0.525       0.55       0.35",
        "       2/20      2.61G        1.0       1.25       1.25         60        640:  50%|█████     | 25/50",
        f"       2/20      2.61G        1.0       1.25       1.25         60        640: {progress}",
    )
    assert log.format.name == "ultralytics"
    assert column(log, "loss") == [4.0, 3.5]
    assert column(log, "iter") == [50, 100]
    assert column(log, "time_ms") == [500, 500]
    assert log.segments[0].setting("max_iters") == 1000
    metrics = {"precision": 0.625, "recall": 0.525, "mAP50": 0.55, "mAP50-95": 0.35}
    assert evals(log) == [(50, None, metrics)]


def test_results_csv_keeps_the_clock_and_results_txt_the_total():
    log = read(
        "      epoch,       time,  train/box_loss,  train/cls_loss, metrics/mAP50(B),  val/box_loss,  val/cls_loss,  lr/pg0",
        "          1,       60.5,             1.5,             2.0,              0.1,           1.0,           1.5,    0.01",
        "          2,      120.5,             1.0,             1.5,              0.2,          0.75,           1.0,   0.009",
    )
    assert (log.format.name, column(log, "loss")) == ("ultralytics", [3.5, 2.5])
    assert evals(log) == [(1, 2.5, {"mAP50(B)": 0.1}), (2, 1.75, {"mAP50(B)": 0.2})]
    assert log.segments[0].last_elapsed is not None
    assert log.segments[0].last_elapsed.ms == 120_500
    old = "     {}/99     1.81G   0.05   0.03    0.01    0.09     37     640   0.5   0.6   0.7   0.4   0.04   0.02   0.01"
    log = read(old.format(0), old.format(1))
    assert column(log, "loss") == [0.09, 0.09]
    [first, _] = log.segments[0].evals
    assert first.val_loss == pytest.approx(0.07)
    assert first.metrics == {"precision": 0.5, "recall": 0.6, "mAP50": 0.7, "mAP50-95": 0.4}


# -- TensorFlow, PyTorch's examples, tinygrad ----------------------------------------------------


def test_tensorflow_prints_every_line_twice_and_the_dict_of_a_step_follows_it():
    log = read(
        "INFO:tensorflow:Step 100 per-step time 0.500s loss=2.500",
        "I0912 11:41:51.976096 139735407601536 model_lib_v2.py:652] Step 100 per-step time 0.500s loss=2.500",
        "INFO:tensorflow:Step 200 per-step time 0.250s",
        "INFO:tensorflow:{'Loss/classification_loss': 0.5,",
        " 'Loss/total_loss': 2.25,",
        " 'learning_rate': 0.04}",
    )
    assert log.format.name == "tensorflow"
    assert column(log, "iter") == [100, 200]
    assert column(log, "loss") == [2.5, 2.25]
    assert log.segments[0].table.time_sum_ms == 75_000


def test_an_estimator_prints_the_seconds_since_its_last_line():
    log = read(
        "INFO:tensorflow:loss = 4.5, step = 0",
        "INFO:tensorflow:loss = 3.5, step = 100 (25.000 sec)",
        "INFO:tensorflow:Saving checkpoints for 150 into ./out/model.ckpt.",
        "INFO:tensorflow:Saving dict for global step 150: accuracy = 0.75, global_step = 150, loss = 3.25",
    )
    assert column(log, "time_ms")[1] == 250
    assert evals(log) == [(150, 3.25, {"accuracy": 0.75})]
    assert [save.iter for save in log.segments[0].saves] == [150]


def test_keras_prints_milliseconds_of_a_short_epoch():
    bar = "128/128 - 0s - loss: 2.{} - accuracy: 0.15 - 358ms/epoch - 3ms/step"
    log = read("Epoch 2/9", bar.format(9), "Epoch 3/9", bar.format(8))
    assert column(log, "time_ms") == [pytest.approx(358 / 128, abs=0.001)] * 2


def test_the_imagenet_example_tells_all_its_time_in_the_means_in_brackets():
    line = "Epoch: [{}][{:>3d}/500]\tTime  {} ( {})\tData  0.010 ( {})\tLoss {} (7.0e+00)\tAcc@1   0.5 (  0.1)"
    log = read(
        line.format(0, 0, "4.500", "4.500", "4.000", "7.0e+00"),
        line.format(0, 100, "0.250", "0.900", "0.600", "6.5e+00"),
        "Test: [ 0/98]\tTime  2.1 ( 2.1)\tLoss 5.0e+00 (5.0e+00)\tAcc@1  10.0 ( 10.0)",
        " * Acc@1 10.250 Acc@5 25.500",
        line.format(1, 0, "2.500", "2.500", "2.000", "6.0e+00"),
    )
    assert (log.format.name, len(log.segments)) == ("pytorch-examples", 1)
    assert column(log, "iter") == [0, 100, 500]
    assert column(log, "time_ms") == pytest.approx([4500, (90.9 - 4.5) * 10, 2500])
    assert column(log, "data_ms") == pytest.approx([4000, (60.6 - 4.0) * 10, 2000])
    assert column(log, "window") == [1, 100, 1]
    assert evals(log) == [(100, None, {"acc1": 10.25, "acc5": 25.5})]


def test_the_examples_for_mnist_and_a_language_model_are_read():
    log = read(
        "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300000",
        "Train Epoch: 1 [640/60000 (1%)]\tLoss: 1.750000",
        "Test set: Average loss: 0.0500, Accuracy: 9800/10000 (98%)",
        "Train Epoch: 2 [0/60000 (0%)]\tLoss: 0.500000",
    )
    assert column(log, "iter") == [0, 640, 60_000]
    assert evals(log) == [(640, 0.05, {"accuracy": 0.98})]
    log = read(
        "| epoch   1 |   200/  900 batches | lr 20.00 | ms/batch 12.50 | loss  7.50 | ppl  1808.04",
        "| epoch   1 |   400/  900 batches | lr 20.00 | ms/batch 10.00 | loss  6.50 | ppl   665.14",
        "| end of epoch   1 | time: 10.21s | valid loss  6.25 | valid ppl   518.01",
        "| epoch   2 |   200/  900 batches | lr 20.00 | ms/batch 11.00 | loss  6.00 | ppl   403.43",
    )
    assert column(log, "iter") == [200, 400, 1100]
    assert column(log, "window") == [200, 200, 200]
    assert evals(log) == [(900, 6.25, None)]


def test_tinygrad_prints_values_before_their_names():
    log = read(
        "    1 90.50 s run, 11.5000 loss, 0.000100 LR, 642.43 GB used,  19644.30 GFLOPS",
        "    2 750.50 ms run,  9.80 ms python,  1.50 ms fetch data,  700.10 ms CUDA, 11.2500 loss, 0.000200 LR, 1.86 GB used, 9.2 GFLOPS",
    )
    assert log.format.name == "tinygrad"
    assert column(log, "time_ms") == [90_500, 750.5]
    assert column(log, "loss") == [11.5, 11.25]
