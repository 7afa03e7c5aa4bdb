"""Means that reach back further than the line before, and other lines that were taken for more or
less than they say."""

# ruff: noqa: E501 (log lines are quoted whole)

import io

import pytest

from stepglass.errors import LogError
from stepglass.logs import detect
from stepglass.logs.formats.running_mean import MeanOfEpoch, MeanOfLast
from stepglass.logs.log import Log


def read(*lines: str) -> Log:
    return detect.read_log(io.BytesIO("\n".join(lines).encode()), "x.log")


def column(log: Log, name: str) -> list[float]:
    return [round(v, 4) for s in log.segments for v in s.table.column(name).tolist()]


def test_the_mean_of_an_epoch_tells_the_time_since_the_line_before():
    means = MeanOfEpoch()
    assert means.since_line_before(1, 100, {"time": 2.0, "data": 1.0}, 3) == (
        {"time": 2.0, "data": 1.0},
        100,
    )
    since = means.since_line_before(1, 150, {"time": 3.0, "data": 1.0}, 3)
    assert since == ({"time": pytest.approx(5.0), "data": pytest.approx(1.0)}, 50)


def test_too_few_digits_tell_nothing_about_a_few_steps():
    means = MeanOfEpoch()
    means.since_line_before(1, 9000, {"time": 0.21}, 2)
    assert means.since_line_before(1, 9010, {"time": 0.21}, 2) is None


def test_overlapping_means_are_taken_apart_if_the_earlier_steps_are_known():
    means = MeanOfLast(20)
    assert means.since_line_before(0, 0, {"time": 3.0}) == ({"time": 3.0}, 1)
    assert means.since_line_before(0, 10, {"time": 4.0 / 11}) == ({"time": pytest.approx(0.1)}, 10)
    assert means.since_line_before(0, 20, {"time": 0.15}) == ({"time": pytest.approx(0.2)}, 10)


def test_overlapping_means_of_an_excerpt_are_not_added_up():
    means = MeanOfLast(20)
    assert means.since_line_before(0, 103, {"time": 2.5}) == ({"time": 2.5}, 20)
    assert means.since_line_before(0, 104, {"time": 2.8}) is None


def test_an_excerpt_of_mmcv_does_not_begin_at_the_first_iteration():
    line = "2022-05-08 18:56:16,649 - mmdet - INFO - Epoch [1][{}/7000]\tlr: 0.001, eta: 4:33:09, time: 0.600, data_time: 0.010, memory: 6836, loss: 0.5"
    log = read(*(line.format(n) for n in (2400, 2450, 2500)))
    table = log.segments[0].table
    assert table.time_sum_ms == pytest.approx(600 + 2 * 50 * 600)  # the first line's is not known


def test_json_lines_of_mmcv_keep_their_numbers_as_long_as_these_grow():
    line = '{{"mode": "train", "epoch": {}, "iter": {}, "lr": 0.004, "memory": 6912, "data_time": 0.009, "loss": 1.1, "time": 1.4}}'
    value = '{"mode": "val", "epoch": 5, "iter": 12000, "lr": 0.004, "mIoU": 0.18}'
    log = read(line.format(5, 11950), value, line.format(5, 12050), line.format(6, 12100))
    assert column(log, "iter") == [11950, 12050, 12100]
    assert column(log, "window")[1:] == [50, 50]  # means begin anew after the evaluation
    assert [e.metrics for e in log.segments[0].evals] == [{"mIoU": 0.18}]
    log = read(line.format(1, 50), line.format(1, 100), line.format(2, 50), line.format(2, 100))
    assert not log.segments[0].has_iter_numbers


def test_old_detectron2_prints_the_mean_since_its_start():
    line = "[04/05 01:30:24 d2.utils.events]:  eta: 0:03:35  iter: {}  total_loss: 1.36  loss_cls: 0.65  time: {}  data_time: 0.01  lr: 3.8e-06  max_mem: 433M"
    log = read(line.format(22, "0.4000"), line.format(42, "0.3000"))
    assert column(log, "time_ms") == [400, pytest.approx(200)]  # 20 and 40 iterations: 8 s, 12 s


def test_a_mean_that_jumps_began_anew_and_is_not_taken_apart():
    line = "[04/05 01:30:24 d2.utils.events]:  eta: 0:03:35  iter: {}  total_loss: 1.36  loss_cls: 0.65  time: {}  data_time: 0.01  lr: 3.8e-06  max_mem: 433M"
    log = read(line.format(959, "0.6830"), line.format(979, "0.6830"), line.format(1019, "0.7300"))
    assert column(log, "time_ms")[-1] == 730


def test_a_bar_of_lightning_1_counts_the_batches_of_its_evaluation_which_are_no_steps():
    bar = "Epoch {}: {:3d}% {}/{} [00:00<00:00, {}it/s, loss=2.29, v_num=0{}]"
    log = read(
        bar.format(0, 75, 3, 4, "6.00", ""),
        "Validation DataLoader 0: 100% 1/1 [00:00<00:00, 900.00it/s]",
        bar.format(0, 100, 4, 4, "7.80", ""),
        bar.format(0, 100, 4, 4, "7.70", ", val_acc=0.2"),
        bar.format(1, 75, 3, 4, "30.00", ", val_acc=0.2"),
    )
    assert column(log, "iter") == [3, 6]
    assert column(log, "time_ms") == pytest.approx([1000 / 6, 1000 / 30], abs=0.01)


def test_a_record_that_was_held_back_cites_its_own_line():
    log = read(
        "2024-08-06 09:59:26.181 host:0  olmo.train:908  INFO    [step=1/700,epoch=0]",
        "    train/CrossEntropyLoss=12.18",
        "    throughput/device/batches_per_second=0.0254",
        "2024-08-06 10:00:05.520 host:0  olmo.train:908  INFO    [step=2/700,epoch=0]",
        "    train/CrossEntropyLoss=11.00",
    )
    assert column(log, "line") == [1, 4]


def test_evaluations_of_old_fairseq_have_no_number_of_their_own():
    line = "| epoch {:03d} | loss 4.1 | ppl 5.4 | wps 1.2e+06 | ups 2.9 | wpb 417527 | num_updates {} | lr 0.0009 | gnorm 0.6 | wall {}"
    value = "| epoch {:03d} | valid on 'valid' subset | valid_loss 4.0 | valid_ppl 4.6"
    log = read(line.format(12, 4400, 1700), value.format(12), line.format(13, 4800, 1900))
    assert [(e.iter, e.val_loss) for e in log.segments[0].evals] == [(4400, 4.0)]


def test_an_epoch_of_old_fairseq_takes_what_its_train_wall_says():
    line = "| epoch {:03d} | loss 9.1 | ppl 500 | wps 16000 | ups 0 | num_updates {} | lr 1e-05 | gnorm 1.1 | wall {} | train_wall {}"
    log = read(line.format(1, 50, 900, 800), line.format(2, 100, 1900, 1600))
    assert column(log, "time_ms") == [16_000, 16_000]


def test_the_results_of_an_epoch_of_espnet_have_the_number_of_all_batches():
    line = "{}epoch results: [train] iter_time=0.002, loss=15.3, train_time=0.6, time=1 hour, 0 minutes and 0 seconds, total_count={}, [valid] loss=9.4, time=3 minutes, total_count=56"
    log = read(line.format(3, 30_000), line.format(4, 40_000))
    assert column(log, "iter") == [30_000, 40_000]
    assert column(log, "time_ms") == [360, 360]
    assert [e.iter for e in log.segments[0].evals] == [30_000, 40_000]


def test_a_clock_with_hundredths_of_a_second_times_every_step():
    log = read(*(f"[{n} | {10.5 * n:.2f}] loss=3.{9 - n}0 avg=3.50" for n in range(1, 6)))
    assert column(log, "time_ms")[1:] == [10_500] * 4


def test_losses_under_the_heading_of_an_epoch_belong_to_it():
    log = read(
        *(
            line
            for n in range(1, 5)
            for line in (
                f"Epoch [{n}/50] - Time: 0.65s",
                f"  Train Loss: {7 - n}.5, Train Acc: 2.38%",
                f"  Val Loss: {7 - n}.2, Val Acc: 29.62%",
            )
        )
    )
    assert (log.format.name, log.format.counts) == ("general", "epochs")
    assert column(log, "loss") == [6.5, 5.5, 4.5, 3.5]
    assert [(e.iter, e.val_loss) for e in log.segments[0].evals][-1] == (4, 3.2)


def test_many_losses_under_one_heading_are_not_that_of_the_epoch():
    lines = [line for n in range(1, 5) for line in (f"Epoch {n}/9", *["Loss: 2.5 acc: 0.5"] * 3)]
    with pytest.raises(LogError):
        read(*lines)


def test_the_time_of_an_evaluation_is_read_from_an_unknown_log():
    lines = [f"iter {n} | train loss: 2.{9 - n} | iter time: 30.5 s" for n in range(1, 6)]
    log = read(*lines, "iter 5 | val_loss: 2.1 | val_time: 79.5 s")
    assert [e.time_ms for e in log.segments[0].evals] == [79_500]


def test_a_refusal_quotes_the_error_of_the_run_and_not_of_its_launcher():
    with pytest.raises(LogError, match="ValueError: num_samples should be positive"):
        read(
            "Traceback (most recent call last):",
            "ValueError: num_samples should be positive",
            "Traceback (most recent call last):",
            "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.",
        )


@pytest.mark.parametrize(
    ("line", "trainer"),
    [
        ("| epoch 005 | valid on 'valid' subset  1000 / 1311", "fairseq"),
        ("LOG (nnet3-train:Print():nnet-training.cc:121) objective is -35.0", "Kaldi"),
        ("- Train memory/alloc_retries: 0", "Composer"),
        ("2024/06/16 20:02:03 - mmengine - INFO - Epoch(val) [10][40/48]  time: 0.5", "OpenMMLab"),
    ],
)
def test_a_refusal_names_the_trainer(line: str, trainer: str):
    with pytest.raises(LogError, match=f"looks like a log of {trainer}"):
        read(line, line, line)


def test_a_bare_exception_ends_a_run():
    steps = [
        f"completed step: {n}, seconds: 2.1, TFLOP/s/device: 36.7, loss: 2.1" for n in range(5)
    ]
    log = read(*steps, "Exception: the loss scale is at its minimum")
    assert [event.name for event in log.segments[0].events] == ["error"]
