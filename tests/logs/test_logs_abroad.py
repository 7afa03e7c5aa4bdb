"""Logs as people bring them: cut out, pasted, collected, and of forks. No number is invented."""

# ruff: noqa: E501 (log lines are quoted whole)

import io
import json
import math

import pytest

from stepglass.logs.detect import read_log
from stepglass.logs.formats.composer import Composer
from stepglass.logs.formats.huggingface import HFTrainer
from stepglass.logs.formats.lightning import LightningBar, MetricsCsv
from stepglass.logs.formats.litgpt import LitGPT
from stepglass.logs.formats.megatron import Megatron
from stepglass.logs.formats.mlx import MlxLM
from stepglass.logs.formats.modded import Modded
from stepglass.logs.formats.nanochat import Nanochat
from stepglass.logs.formats.nanogpt import NanoGPT
from stepglass.logs.formats.trainer_history import trainer_state
from stepglass.logs.lines import line_pieces
from stepglass.logs.stamps import Stamps


def log_of(text):
    return read_log(io.BytesIO(text.encode()), "x.log")


def segment_of(text):
    [segment] = log_of(text).segments
    return segment


def column(segment, name):
    return [None if math.isnan(value) else value for value in segment.table.column(name).tolist()]


def records_of(reader, text):
    lines = [line.strip() for line in text.strip("\n").splitlines()]
    found = [record for line in lines for record in reader.read(line)]
    found += reader.flush() if hasattr(reader, "flush") else []
    return [record for record in found if record != {"kind": "start"}]


def seconds_after(*lines):
    stamps = Stamps()
    values = [stamps.read(line) for line in lines]
    return [None if value is None else round(value - values[0], 3) for value in values]


# -- timestamps ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        ("Mar 12 11:10:21 node7 iter 1: x", "Mar 12 11:10:31 node7 iter 2: x"),
        ("Feb 28 23:59:55 node7 x", "Mar  1 00:00:05 node7 x"),
        ("Dec 31 23:59:55 node7 x", "Jan  1 00:00:05 node7 x"),
        ("Tue Mar 12 11:10:21 UTC 2024 x", "Tue Mar 12 11:10:31 UTC 2024 x"),
        ("I0912 11:41:51.976096 77 train.py:1] x", "I0912 11:42:01.976096 77 train.py:1] x"),
        ("1700000000.125 iter 1: x", "1700000010.125 iter 2: x"),
        ("1700000000125 iter 1: x", "1700000010125 iter 2: x"),
        ("11/19/2024 08:55:03 - INFO - x", "11/19/2024 08:55:13 - INFO - x"),
        ("11/19/2024 11:59:55 AM x", "11/19/2024 12:00:05 PM x"),
        ("11/19/2024 11:59:55 PM x", "11/20/2024 12:00:05 AM x"),
        ("19.11.2024 23:59:55 x", "20.11.2024 00:00:05 x"),
        ("[11/19 08:55:03 d2.engine]: x", "[11/19 08:55:13 d2.engine]: x"),
        ("[24-11-19 08:55:03] x", "[24-11-19 08:55:13] x"),
        ("[14:38:11] x", "[14:38:21] x"),
        ("14:38:11.514 x", "14:38:21.514 x"),
        ("INFO 14:38:11,514 x", "INFO 14:38:21,514 x"),
        ("2024-11-19T08:55:03.5Z stdout F x", "2024-11-19T08:55:13.5Z stdout F x"),
    ],
)
def test_stamps_of_every_kind_give_differences(lines):
    assert seconds_after(*lines) == [0.0, 10.0]


def test_a_clock_without_a_date_passes_midnight():
    lines = ("[23:59:50] x", "[00:00:10] x", "[23:00:00] x", "[01:00:00] x")
    assert seconds_after(*lines) == [0.0, 20.0, 82_810.0, 90_010.0]


def test_a_clock_that_another_rank_wrote_a_little_late_is_of_the_same_day():
    assert seconds_after("[14:38:11] x", "[14:38:09] x", "[14:38:12] x") == [0.0, -2.0, 1.0]


def test_the_order_of_day_and_month_is_that_of_the_log():
    # 03/04 alone may be either. What follows decides, and the first stamps keep their distance.
    by_month = ("03/04/2024 23:59:59 x", "03/05/2024 00:00:09 x", "03/14/2024 00:00:09 x")
    by_day = ("03/04/2024 23:59:59 x", "04/04/2024 00:00:09 x", "13/04/2024 00:00:09 x")
    assert seconds_after(*by_month) == seconds_after(*by_day) == [0.0, 10.0, 10.0 + 9 * 86400]
    assert seconds_after("03/04/2024 10:00:00 x", "03/04/2024 10:00:07 x") == [0.0, 7.0]


def test_the_clock_of_a_bar_and_a_foreign_stamp_are_no_stamp_of_the_log():
    assert seconds_after(" 4%|x | 12/340 [11:25:03<15:08:51,  1.89it/s]") == [None]
    assert seconds_after("2024-11-19 08:55:03 x", "W1119 09:55:03.1 77 x.py:1] x") == [0.0, None]
    stamps = Stamps()
    assert stamps.read("W1119 09:55:03.1 77 x.py:1] x", decides=False) is None
    assert stamps.read("[14:38:11] x") is not None


# -- what terminals and collectors do to a line --------------------------------------------------


def test_spelled_escapes_and_launchers_are_taken_off():
    line = b"[1,mpirank:0,algo-1]<stdout>:#015Epoch 0:  50% 1/2 [00:00<00:00,  6.54it/s, loss=2.29]#033[A"
    assert line_pieces(line) == ["", "Epoch 0:  50% 1/2 [00:00<00:00,  6.54it/s, loss=2.29]"]
    assert line_pieces(b"^M 4%|x | 1/9 [00:01<00:08]^M{'loss': 1.0}") == [
        "",
        "4%|x | 1/9 [00:01<00:08]",
        "{'loss': 1.0}",
    ]
    assert line_pieces(rb"| Epoch 0: 7%\|##3 \| 5/74 [00:00<00:10]") == [
        "| Epoch 0: 7%|##3 | 5/74 [00:00<00:10]"
    ]


def test_a_decimal_comma_is_no_thousands_separator():
    for line in (
        "iter 10: loss 1,85, time 33,50ms, mfu 1.00%",
        "iter 10: loss 1,234, time 33,500ms, mfu 1.00%",
    ):
        [record] = NanoGPT().read(line)
        assert (record["loss"], record["time_ms"]) == (None, None)
    [record] = NanoGPT().read("iter 10: loss 1,234.5, time 33.50ms, mfu 1.00%")
    assert (record["loss"], record["time_ms"]) == (1234.5, 33.5)


# -- nanoGPT's family ----------------------------------------------------------------------------


def test_llama2c_prints_fields_between_bars():
    log = log_of(
        """
190 | loss 5.1043 | lr 1.900000e-05 | 760.25ms | mfu 0.21%
step 200: train loss 5.0373, val loss 5.1544
saving checkpoint to out
wrote out/model.bin
200 | loss 5.0091 | lr 2.000000e-05 | 87006.50ms | mfu 0.19%
210 | loss 4.9391 | lr 1.999939e-05 | 775.75ms | mfu 0.20%
"""
    )
    [segment] = log.segments
    assert log.format.name == "llama2.c"
    assert not log.format.has_nanogpt_defaults
    assert column(segment, "iter") == [190, 200, 210]
    assert column(segment, "loss") == [5.1043, 5.0091, 4.9391]
    assert column(segment, "time_ms") == [760.25, 87006.5, 775.75]
    assert column(segment, "lr") == [1.9e-5, 2e-5, 1.999939e-5]
    assert column(segment, "mfu") == [0.21, 0.19, 0.2]
    [evaluation], [save] = segment.evals, segment.saves
    assert (evaluation.iter, evaluation.train_loss, evaluation.val_loss) == (200, 5.0373, 5.1544)
    assert save.iter == 200


def test_a_fork_that_prints_ms_per_iter_prints_a_mean():
    log = log_of(
        """
[eval] iter 0: train 9.7521 val 9.7498 lr 5.00e-07
[train] iter 10: loss 8.5512 7100 ms/iter
[train] iter 20: loss 8.2210 1906 ms/iter
[eval] iter 20: train 8.1927 val 8.2780 lr 3.00e-04
[train] iter 30: loss 8.0846 1.912 s/iter
[train] iter 40: loss 7.9846 1.913 sec/iter
"""
    )
    [segment] = log.segments
    assert column(segment, "time_ms") == [7100, 1906, 1912, 1913]
    assert column(segment, "window") == [None, 10, 10, 10]
    assert segment.table.num_times == 31
    assert [(e.iter, e.train_loss, e.val_loss) for e in segment.evals] == [
        (0, 9.7521, 9.7498),
        (20, 8.1927, 8.278),
    ]
    assert not log.format.prints_saves
    assert not log.format.has_nanogpt_settings


def test_fields_that_forks_add_are_no_loss():
    [record] = NanoGPT().read(
        "iter 30: loss 2.5216, ppl 12.4484, time 443.25ms, mfu 0.42%, lr 3.0e-04, tok/s 12,345"
    )
    assert (record["loss"], record["time_ms"], record["mfu"]) == (2.5216, 443.25, 0.42)
    assert (record["lr"], record["tok_s"]) == (3e-4, 12345.0)
    [record] = NanoGPT().read("iter 30: aux loss 0.25, z loss 0.01, time 443.25ms, mfu 0.42%")
    assert record["loss"] is None
    for more in ("train perplexity 3.1, ", ""):
        [record] = NanoGPT().read(f"step 500: train loss 1.13, {more}val loss 1.15, mtokens 492")
        assert (record["train_loss"], record["val_loss"]) == (1.13, 1.15)


# -- modded-nanogpt ------------------------------------------------------------------------------


def test_a_log_of_validations_alone_gives_the_time_of_a_step():
    log = log_of(
        """
step:0/2500 val_loss:10.82584 train_time:0.000s step_avg:nanms
step:125/2500 val_loss:4.62044 train_time:20.000s step_avg:160.00ms
step:250/2500 val_loss:4.07978 train_time:38.750s step_avg:155.00ms
"""
    )
    [segment] = log.segments
    assert (log.format.elapsed_name, log.format.elapsed_excludes) == (
        "train_time",
        ("eval", "warmup"),
    )
    assert column(segment, "iter") == [125, 250]
    assert column(segment, "loss") == [None, None]
    assert column(segment, "time_ms") == [160.0, 150.0]
    assert column(segment, "window") == [125, 125]
    assert segment.table.time_sum_ms == 38_750
    assert segment.last_elapsed.ms == 38_750
    assert [e.val_loss for e in segment.evals] == [10.82584, 4.62044, 4.07978]


def test_a_validation_beside_printed_steps_is_no_step():
    segment = segment_of(
        """
step:50/2500 train_loss:5.1 train_time:5000ms step_avg:100.00ms
step:100/2500 train_loss:4.9 train_time:10100ms step_avg:101.00ms
step:120/2500 val_loss:4.8 train_time:12100ms step_avg:100.83ms
step:150/2500 train_loss:4.7 train_time:15100ms step_avg:100.67ms
"""
    )
    assert column(segment, "iter") == [50, 100, 150]
    assert column(segment, "window") == [None, 50, 30]
    assert column(segment, "time_ms") == [None, 102.0, 100.0]


def test_a_reset_clock_is_counted_from_its_reset():
    segment = segment_of(
        """
step:0/3000 val_loss:10.82 train_time:250ms step_avg:nanms
step:125/3000 val_loss:4.61 train_time:17250ms step_avg:150.00ms
step:250/3000 val_loss:4.07 train_time:36000ms step_avg:150.00ms
"""
    )
    assert column(segment, "time_ms") == [150.0, 150.0]
    assert column(segment, "window") == [115, 125]
    first, last = segment.first_elapsed, segment.last_elapsed
    assert (last.ms - first.ms) / (last.iter - first.iter) == 150.0


def test_validations_that_go_back_start_a_new_run():
    runs = "".join(
        f"step:{step}/250 val_loss:{5 - step / 100 + run / 50} train_time:{step * 0.1}s step_avg:100.00ms\n"
        for run in range(3)
        for step in (0, 125, 250)
    )
    log = log_of(runs)
    assert [len(segment.evals) for segment in log.segments] == [3, 3, 3]
    assert [segment.table.num_times for segment in log.segments] == [250, 250, 250]


def test_parameter_golf_evaluates_after_training():
    log = log_of(
        """
model_params:17059912
train_batch_tokens:524288 train_seq_len:1024 iterations:200 warmup_steps:20
warmup_step:1/20
step:0/200 val_loss:6.9370 val_bpb:4.0978 train_time:0ms step_avg:0.01ms
step:50/200 train_loss:3.9508 train_time:2100ms step_avg:42.00ms
step:60/200 val_loss:3.8397 val_bpb:2.2774 train_time:2520ms step_avg:42.00ms
stopping_early: wallclock_cap train_time:2520ms step:60/200
final_int8_zlib_roundtrip val_loss:3.8412 val_bpb:2.2783 eval_time:1401ms
final_int8_zlib_roundtrip_exact val_loss:3.84123456 val_bpb:2.27831234
"""
    )
    [segment] = log.segments
    assert segment.facts["parameters"] == 17_059_912
    assert segment.facts["tokens_per_iter"] == 524_288
    assert [(e.iter, e.val_loss, e.val_bpb, e.set) for e in segment.evals] == [
        (0, 6.937, 4.0978, ""),
        (60, 3.8397, 2.2774, ""),
        (60, 3.84123456, 2.27831234, "final_int8_zlib_roundtrip"),
    ]
    assert segment.evals[-1].time_ms == 1401.0
    assert [event.name for event in segment.events] == ["stopped-early"]


def test_a_single_validation_tells_the_mean_time_of_a_step():
    [evaluation, step] = Modded().read(
        "step:2850/2850 val_loss:3.27 train_time:811.352s step_avg:284.68ms"
    )
    assert evaluation["elapsed_s"] == 811.352
    assert (step["time_ms"], step["window"]) == (284.68, None)


# -- Hugging Face --------------------------------------------------------------------------------


def test_a_running_dict_with_its_runtime_does_not_end_the_run():
    segment = segment_of(
        """
 10%|█         | 20/200 [01:40<15:00,  5.00s/it]
{'loss': '4.88', 'grad_norm': '2.5', 'learning_rate': '0.00015', 'epoch': '0.1', 'train_runtime': '100.7', 'train_tokens_per_second': '2583'}
 20%|██        | 40/200 [03:20<13:20,  5.00s/it]
{'loss': '4.64', 'grad_norm': '2.9', 'learning_rate': '0.00014', 'epoch': '0.2', 'train_runtime': '200.7', 'train_tokens_per_second': '2695'}
"""
    )
    assert segment.end == {}
    assert column(segment, "iter") == [20, 40]
    assert column(segment, "loss") == [4.88, 4.64]
    assert column(segment, "time_ms")[1] == pytest.approx(5000.0)
    assert column(segment, "window")[1] == 20
    assert (segment.first_elapsed.ms, segment.last_elapsed.ms) == (100_700, 200_700)


def test_without_a_step_a_clock_gives_no_time():
    segment = segment_of(
        """
{'loss': '4.88', 'learning_rate': '0.00015', 'epoch': '0.1', 'train_runtime': '100.7'}
 20%|██        | 40/200 [03:20<13:20,  5.00s/it]
{'loss': '4.64', 'learning_rate': '0.00014', 'epoch': '0.2', 'train_runtime': '200.7'}
"""
    )
    assert column(segment, "loss") == [4.88, 4.64]
    assert column(segment, "time_ms") == [None, None]
    assert not segment.has_iter_numbers
    assert segment.first_elapsed is None


def test_bars_before_the_first_dict_tell_its_time():
    segment = segment_of(
        """
  2%|██▋           | 11/433 [00:52<35:44,  5.08s/it]
  3%|██▊           | 12/433 [00:57<35:17,  5.03s/it]
  4%|██▉           | 21/433 [01:42<34:35,  5.01s/it]
{'loss': 1.7218, 'learning_rate': 0.00019, 'epoch': 0.1}
"""
    )
    assert column(segment, "iter") == [21]
    assert column(segment, "time_ms") == [5000.0]
    assert column(segment, "window") == [10]


def test_bars_alone_tell_steps_and_times():
    text = "".join(
        f" {n}%|█    | {n}/100 [{n // 12:02d}:{5 * n % 60:02d}<09:59,  5.00s/it]\n"
        for n in range(1, 41)
    )
    log = log_of(text)
    [segment] = log.segments
    assert log.format.name == "progress-bar"  # nothing says which trainer it is
    assert (segment.first_iter, segment.last_iter) == (1, 40)
    assert {value for value in column(segment, "time_ms") if value} == {5000.0}
    assert segment.table.num_times == 36
    assert segment.last_elapsed.ms == 200_000


def test_llama_factory_states_steps_and_a_clock():
    segment = segment_of(
        """
{"current_steps": 200, "total_steps": 3235, "loss": 4.4671, "eval_loss": null, "learning_rate": 1.4e-05, "epoch": 0.06, "elapsed_time": "0:20:00", "remaining_time": "5:03:25"}
{"current_steps": 210, "total_steps": 3235, "loss": 4.4577, "lr": 1.3e-05, "epoch": 0.06, "elapsed_time": "0:21:00", "remaining_time": "5:02:26"}
{"current_steps": 210, "total_steps": 3235, "eval_loss": 4.5, "epoch": 0.06, "elapsed_time": "0:21:30"}
{"current_steps": 220, "total_steps": 3235, "loss": 4.4458, "lr": 1.2e-05, "epoch": 0.07, "elapsed_time": "1 day, 0:22:10"}
"""
    )
    assert column(segment, "iter") == [200, 210, 220]
    assert column(segment, "lr") == [1.4e-5, 1.3e-5, 1.2e-5]
    assert column(segment, "time_ms")[:2] == [None, 6000.0]
    assert segment.last_elapsed.ms == 1000 * (86400 + 22 * 60 + 10)
    assert [(e.iter, e.val_loss) for e in segment.evals] == [(210, 4.5)]


def test_evaluation_sets_and_metrics_stay_apart():
    [code] = HFTrainer().read(
        "{'eval_code_loss': 1.5, 'eval_code_accuracy': 0.61, 'eval_code_runtime': 3.0, 'eval_code_samples_per_second': 9.1, 'epoch': 1.0}"
    )
    assert (code["set"], code["val_loss"], code["metrics"]) == ("code", 1.5, {"accuracy": 0.61})
    [main] = HFTrainer().read(
        "{'eval_loss': 0.5, 'eval_runtime': 3.0, 'eval_rewards/chosen': 0.25, 'eval_nll_loss': 1.25, 'eval_steps_per_second': 3.1, 'epoch': 1.0}"
    )
    assert "set" not in main
    assert main["val_loss"] == 0.5
    assert main["metrics"] == {"rewards/chosen": 0.25, "nll_loss": 1.25}
    [by_metric] = HFTrainer().read("{'eval_wer': 0.74, 'eval_runtime': 3.0, 'epoch': 1.0}")
    assert (by_metric["val_loss"], by_metric["metrics"]) == (None, {"wer": 0.74})


def test_a_block_of_metrics_ends_the_run():
    [end] = records_of(
        HFTrainer(),
        """
        ***** train metrics *****
          epoch                    =        3.0
          train_loss               =     0.7228
          train_runtime            = 0:36:58.50
          train_samples_per_second =      1.474
        """,
    )
    assert (end["kind"], end["wall_ms"], end["train_loss"]) == ("end", 2_218_500, 0.7228)
    [evaluation] = records_of(
        HFTrainer(),
        """
        ***** eval metrics *****
          eval_loss               =     1.25
          eval_accuracy           =     0.5
          eval_runtime            = 0:00:12.50
        """,
    )
    assert (evaluation["val_loss"], evaluation["time_ms"]) == (1.25, 12_500)
    assert evaluation["metrics"] == {"accuracy": 0.5}


def test_a_summary_alone_gives_the_mean_time_of_a_step():
    segment = segment_of(
        "{'train_runtime': '2000', 'train_samples_per_second': '1.6', 'train_steps_per_second': '0.2', 'train_loss': '0.72', 'epoch': '3'}"
    )
    assert segment.end["steps_per_s"] == 0.2
    assert not len(segment.table)  # the mean of a run is no step, and no step's loss
    assert segment.end["wall_ms"] == 2_000_000


def test_preference_training_prints_a_loss_among_rewards():
    [record] = HFTrainer().read(
        "{'loss': 0.0, 'grad_norm': 0.25, 'learning_rate': 1e-06, 'num_tokens': 11111.0, 'rewards/f/mean': 0.5, 'reward': 0.5, 'kl': 0.01, 'epoch': 0.01}"
    )
    assert (record["loss"], record["grad_norm"], record["lr"]) == (0.0, 0.25, 1e-6)


def test_unsloth_prints_several_settings_in_a_line():
    records = HFTrainer().read(
        r"   \\   /|    Num examples = 1,200 | Num Epochs = 1 | Total steps = 60"
    )
    assert [record["config"] for record in records] == [
        {"num_examples": 1200},
        {"num_epochs": 1},
        {"max_iters": 60},
    ]


# -- litgpt, mlx, Megatron, nanochat, Composer ---------------------------------------------------


def test_litgpts_first_finetuning_lines():
    lines = """
    Ep 1 | iter 3 | stEp 1: loss train (curr): 1.610, val (prev val iter): None | iter time: 106.92 ms
    Ep 1 | iter 4 | step 1: loss train (curr): 1.585, val (prev val iter): None | iter time: 181.34 ms (opt.step)
    Ep 1 | iter 5 | step 1: loss train (curr): 1.577, val (prev val iter): 1.901 | iter time: 154.41 ms
    Ep 1 | iter 6 | step 1: loss train (curr): 1.571, val (prev val iter): 1.901 | iter time: 155.41 ms
    """
    records = records_of(LitGPT(), lines)
    assert [r["kind"] for r in records] == ["iter", "iter", "eval", "iter", "iter"]
    assert [r["loss"] for r in records if r["kind"] == "iter"] == [1.61, 1.585, 1.577, 1.571]
    assert records[1]["is_update"]
    assert (records[2]["iter"], records[2]["val_loss"]) == (5, 1.901)


def test_a_loss_that_litgpt_repeats_is_no_second_evaluation():
    lines = """
    Epoch 1 | iter 100 step 25 | loss train: 2.101, val: n/a | iter time: 110.20 ms (step)
    iter 100: val loss 2.3457, val time: 3778.02 ms
    Epoch 1 | iter 110 step 27 | loss train: 2.096, val: 2.346 | iter time: 112.20 ms
    Epoch 1 | iter 210 step 52 | loss train: 2.046, val: 2.246 | iter time: 112.20 ms
    """
    records = records_of(LitGPT(), lines)
    evals = [(r["iter"], r["val_loss"]) for r in records if r["kind"] == "eval"]
    assert evals == [(100, 2.3457), (210, 2.246)]


def test_mlx_reports_means():
    lines = """
    Starting training..., iters: 400
    Iter 1: Val loss 3.770, Val took 57.861s
    Iter 10: Train loss 3.361, Learning Rate 1.000e-05, It/sec 0.250, Tokens/sec 282.648, Trained Tokens 8557, Peak 56.494 GB
    Iter 20: Train loss 3.061, Learning Rate 1.000e-05, It/sec 0.500, Tokens/sec 565.648, Trained Tokens 17557, Peak58.494 GB
    """
    records = records_of(MlxLM(), lines)
    assert records[0]["config"] == {"max_iters": 400}
    assert [record.get("window") for record in records[2:]] == [10, 10]
    segment = segment_of(lines)
    assert segment.table.time_sum_ms == 60_000
    [cut_out] = MlxLM().read("Iter 50: Train loss 3.0, It/sec 0.250, Tokens/sec 282.648")
    assert "window" not in cut_out


def test_megatron_counts_a_mean_for_its_window_and_may_lose_its_loss():
    line = " iteration {n}/  250000 | consumed samples: 43408 | elapsed time per iteration (ms): 4000.0 | learning rate: 2.999E-04 |{loss} loss scale: 1.0 | grad norm: {norm} | number of skipped iterations: {skipped} | number of nan iterations: {nan} |"
    segment = segment_of(
        "\n".join(
            [
                line.format(n=100, loss=" lm loss: 2.5E+00 |", norm=0.5, skipped=0, nan=0),
                line.format(n=200, loss=" lm loss: 2.4E+00 |", norm=0.5, skipped=3, nan=0),
                line.format(n=300, loss="", norm="nan", skipped=0, nan=100),
            ]
        )
    )
    assert column(segment, "loss") == [2.5, 2.4, None]
    assert column(segment, "window") == [None, 100, 100]
    assert column(segment, "num_skipped") == [0, 3, 100]
    assert segment.num_bad_norms == 1
    assert segment.table.num_times == 201
    assert Megatron().read("time (ms) | forward-backward: 3800.00 | optimizer: 20.00") == []


def test_nanochat_tells_a_clock_that_leaves_out_evaluations():
    line = "step 00127 (1.25%) | loss: 2.500000 | lrm: 1.00 | dt: 250.50ms | tok/sec: 25,060 | mfu: 0.00 | epoch: 1 | total time: 1.25m"
    [record] = Nanochat().read(line)
    assert (record["iter"], record["time_ms"], record["elapsed_s"]) == (127, 250.5, 75.0)
    [record] = Nanochat().read(line.replace("1.25m", "0.01m"))
    assert "elapsed_s" not in record  # too coarse
    other = "step    19 | loss: 6.817907 | dt: 681.35ms | tok/sec: 769480.00"
    assert Nanochat().read(other) == []


def test_a_composer_log_of_one_block_is_read():
    log = log_of(
        """
[batch=266/4800]:
         Train time/batch: 265
         Train metrics/train/cc_weight: 0.2192
         Train loss/train/total: 10.2750
         Train metrics/train/Perplexity: 28996.3164
"""
    )
    [segment] = log.segments
    assert log.format.name == "composer"
    assert (column(segment, "iter"), column(segment, "loss")) == ([266], [10.275])


def test_composers_clock_gives_the_time_of_a_batch():
    block = "[batch={n}/4800]:\n Train loss/train/total: 3.0\n Train time/train: {train:.4f}\n Train time/total: {total:.4f}\n"
    segment = segment_of(
        block.format(n=100, train=0.5, total=0.6)
        + block.format(n=200, train=0.6, total=0.8)
        + "[Eval batch=2/2] Eval on c4 data:\n Eval metrics/eval/c4/LanguageCrossEntropy: 3.25\n Eval metrics/eval/c4/Accuracy: 0.5\n"
    )
    assert [round(ms) if ms else ms for ms in column(segment, "time_ms")] == [None, 3600]
    assert column(segment, "window") == [None, 100]
    assert round(segment.last_elapsed.ms) == 2_880_000
    [evaluation] = segment.evals
    assert (evaluation.set, evaluation.val_loss, evaluation.metrics) == (
        "c4",
        3.25,
        {"Accuracy": 0.5},
    )


def test_composers_epochs_count_on():
    block = "[epoch={e}][batch={n}/10]:\n Train loss/train/total: 3.0\n"
    records = records_of(
        Composer(), "".join(block.format(e=e, n=n) for e in (1, 2) for n in (5, 10))
    )
    assert [record["global_iter"] for record in records] == [5, 10, 15, 20]


# -- Lightning and NeMo --------------------------------------------------------------------------


def test_nemos_bar_gives_the_loss_of_the_step():
    log = log_of(
        "Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, reduced_train_loss=3.090, global_step=794.0, consumed_samples=1.63e+6]"
    )
    [segment] = log.segments
    assert (column(segment, "iter"), column(segment, "loss")) == ([795], [3.09])
    assert column(segment, "time_ms") == [pytest.approx(41_360)]
    reader = LightningBar()
    reader.read(
        "Epoch 0: :   3%|▎  | 300/10000 [05:34<3:00:05, v_num=0, reduced_train_loss=7.125, global_step=299.0, train_step_timing in s=1.050]"
    )
    [record] = reader.flush()
    assert (record["iter"], record["loss"], record["time_ms"]) == (300, 7.125, 1050.0)


def test_a_metric_on_the_bar_is_no_loss():
    reader = LightningBar()
    bar = "Epoch 0: 100% 2/2 [00:00<00:00, 12.10it/s, {said}]"
    reader.read(bar.format(said="v_num=0, loss_scale=65536.0"))
    [record, evaluation] = reader.read(bar.format(said="v_num=0, loss_scale=65536.0, val_acc=0.25"))
    assert record["loss"] is None
    assert (evaluation["val_loss"], evaluation["metrics"]) == (None, {"acc": 0.25})
    assert evaluation["iter"] == 2


def test_the_clock_of_epochs_goes_on():
    segment = segment_of(
        "".join(
            f"Epoch {epoch}: {n}%|█  | {n}/100 [{minutes:02d}:00<09:59, 1.67it/s, loss=2.5]\n"
            for epoch in (0, 1)
            for n, minutes in ((50, 5), (100, 10))
        )
    )
    assert column(segment, "iter") == [50, 100, 150, 200]
    assert segment.last_elapsed.ms == 1_200_000


def test_the_columns_of_a_csv_may_have_other_names():
    for header in ("epoch,step,train/loss,val/loss", "step,epoch,train_loss_step,valid_loss"):
        first, second = records_of(
            MetricsCsv(), f"{header}\n0,49,2.5,\n0,99,,2.25\n".replace("step,epoch,", "epoch,step,")
        )
        assert (first["kind"], first["iter"], first["loss"]) == ("iter", 49, 2.5)
        assert (second["kind"], second["iter"], second["val_loss"]) == ("eval", 99, 2.25)
    assert records_of(MetricsCsv(), "epoch,accuracy,loss,val_loss\n0,0.5,1.25,1.5\n") == []  # Keras
    [row] = records_of(MetricsCsv(), "epoch,step,train_loss,val_loss,val_acc\n0,9,,1.5,0.25\n")
    assert (row["val_loss"], row["metrics"]) == (1.5, {"acc": 0.25})


# -- Hugging Face's Trainer in files -------------------------------------------------------------


BUFFERED = """
  1%|▏         | 10/1500 [00:20<50:00,  2.01s/it]
  4%|▍         | 60/1500 [02:00<48:00,  2.00s/it]
 32%|███▏      | 480/1500 [16:00<34:00,  2.00s/it]
{'loss': '3.3', 'grad_norm': '0.9', 'learning_rate': '1e-05', 'epoch': '0.02'}
{'loss': '2.8', 'grad_norm': '0.7', 'learning_rate': '2e-05', 'epoch': '0.04'}
{'loss': '2.1', 'grad_norm': '0.4', 'learning_rate': '3e-05', 'epoch': '0.06'}
{'eval_loss': '1.9', 'eval_runtime': '30.5', 'epoch': '1'}
{'loss': '1.7', 'grad_norm': '0.4', 'learning_rate': '3e-05', 'epoch': '1.02'}
{'eval_loss': '1.8', 'eval_runtime': '30.1', 'epoch': '2'}
{'eval_loss': '1.7', 'eval_runtime': '30.2', 'epoch': '3'}
{'train_runtime': '3050', 'train_steps_per_second': '0.492', 'train_loss': '2.2', 'epoch': '3'}
"""


def test_dicts_that_appear_after_their_bars_have_no_step_and_no_time():
    segment = segment_of(BUFFERED)
    assert not segment.has_iter_numbers
    assert column(segment, "loss") == [3.3, 2.8, 2.1, 1.7]
    assert column(segment, "time_ms") == [None] * 4
    assert segment.first_elapsed is None
    assert [(e.val_loss, e.has_number) for e in segment.evals] == [
        (1.9, False),
        (1.8, False),
        (1.7, False),
    ]
    assert segment.end["steps_per_s"] == pytest.approx(1500 / 3050)


def test_lines_without_a_step_have_no_time_between_them():
    segment = segment_of(
        """
[INFO|2024-05-01 10:00:00] >> {'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.1}
[INFO|2024-05-01 10:01:40] >> {'loss': 2.4, 'learning_rate': 5e-05, 'epoch': 0.2}
"""
    )
    assert column(segment, "stamp") == [None, None]
    assert segment.last_stamp - segment.first_stamp == 100.0


def test_a_dict_at_an_empty_bar_or_at_the_bar_of_an_evaluation_has_no_step():
    line = "{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.1}"
    reader = HFTrainer()
    reader.read("  0%|          | 0/900 [00:00<?, ?it/s]")
    assert reader.read(line)[0]["iter"] is None
    reader = HFTrainer()
    reader.read(" 10%|█         | 90/900 [03:00<27:00,  2.00s/it]")
    reader.read("100%|██████████| 12/12 [00:09<00:00,  1.30it/s]")
    assert reader.read(line)[0]["iter"] is None


def test_the_header_of_an_evaluation_begins_no_run():
    segment = segment_of(
        """
***** Running training *****
  Num examples = 3,000
  Total optimization steps = 900
 11%|█         | 100/900 [03:20<26:40,  2.00s/it]
{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.33}
***** Running Evaluation *****
  Num examples = 120
  Batch size = 4
{'eval_loss': 2.2, 'eval_runtime': 12.0, 'epoch': 0.33}
 22%|██        | 200/900 [06:50<23:20,  2.00s/it]
{'loss': 2.1, 'learning_rate': 4e-05, 'epoch': 0.67}
"""
    )
    assert segment.config["num_examples"] == 3000
    assert (column(segment, "iter"), segment.evals[0].iter) == ([100, 200], 100)


def test_an_evaluation_after_the_end_is_not_within_the_time_of_training():
    end = "{'train_runtime': 500.0, 'train_steps_per_second': 2.0, 'epoch': 1.0}"
    line = "{'eval_loss': 2.2, 'eval_runtime': 60.0, 'epoch': 1.0}"
    reader = HFTrainer()
    assert reader.read(line)[0]["time_ms"] == 60_000
    reader.read(end)
    assert reader.read(line)[0]["time_ms"] is None
    history = [
        {"train_runtime": 9.0, "step": 5},
        {"eval_loss": 1.0, "eval_runtime": 3.0, "step": 5},
    ]
    records = trainer_state(json.dumps({"log_history": history}))
    assert [r["time_ms"] for r in records if r["kind"] == "eval"] == [None]


def test_a_rate_with_three_decimals_is_completed_by_the_number_of_steps():
    entry = {"train_runtime": 800_000.0, "train_steps_per_second": 0.003, "step": 2000}
    [end] = trainer_state(json.dumps({"log_history": [entry]}))
    assert end["steps_per_s"] == 0.0025
    [end] = HFTrainer().read("{'train_runtime': 800000.0, 'train_steps_per_second': 0.003}")
    assert end["steps_per_s"] is None


def test_the_clock_of_llama_factory_times_evaluations_and_lines_without_a_loss():
    segment = segment_of(
        """
{"current_steps": 490, "total_steps": 900, "loss": 1.71, "lr": 9e-05, "epoch": 0.5, "elapsed_time": "0:27:00", "remaining_time": "0:20:00"}
{"current_steps": 500, "total_steps": 900, "loss": 1.70, "lr": 9e-05, "epoch": 0.5, "elapsed_time": "0:27:30", "remaining_time": "0:20:00"}
{"current_steps": 500, "total_steps": 900, "eval_loss": 1.59, "epoch": 0.5, "elapsed_time": "0:31:00", "remaining_time": "0:22:00"}
{"current_steps": 510, "total_steps": 900, "loss": 1.69, "lr": 9e-05, "epoch": 0.6, "elapsed_time": "0:31:30", "remaining_time": "0:22:00"}
"""
    )
    assert segment.evals[0].time_ms == 210_000
    assert column(segment, "time_ms")[1:] == [3000.0, 3000.0]
    segment = segment_of(
        """
{"current_steps": 5, "total_steps": 250, "percentage": 2.0, "elapsed_time": "0:00:20", "remaining_time": "0:16:00"}
{"current_steps": 15, "total_steps": 250, "percentage": 6.0, "elapsed_time": "0:00:50", "remaining_time": "0:13:00"}
"""
    )
    assert column(segment, "time_ms") == [None, 3000.0]


def test_two_processes_that_log_the_same_steps_do_not_halve_the_time():
    line = '{{"current_steps": {}, "total_steps": 900, "loss": 1.7, "lr": 9e-05, "epoch": 0.5, "elapsed_time": "{}"}}'
    clocks = [(10, "0:02:30"), (10, "0:02:40"), (20, "0:05:00"), (20, "0:05:11"), (30, "0:07:30")]
    segment = segment_of("\n".join(line.format(step, clock) for step, clock in clocks))
    assert column(segment, "time_ms")[1:] == [15_000.0, 15_000.0]


def test_nan_in_capitals_is_nan():
    [record] = NanoGPT().read("iter 5: loss NAN, time 12.50ms, mfu 3.10%")
    assert math.isnan(record["loss"])


# -- build-nanogpt -------------------------------------------------------------------------------


def test_build_nanogpt_prints_an_evaluation_before_its_step():
    log = log_of(
        """
validation loss: 10.9500
HellaSwag accuracy: 2463/10042=0.2453
step     0 | loss: 10.955310 | lr 8.3916e-07 | norm: 15.3421 | dt: 21000.00ms | tok/sec: 24966.10
step     1 | loss: 10.902707 | lr 1.6783e-06 | norm: 14.8630 | dt: 410.00ms | tok/sec: 1278751.22
validation loss: 10.5000
step     2 | loss: 10.803959 | lr 2.5175e-06 | norm: nan | dt: 19000.00ms | tok/sec: 27594.11
"""
    )
    [segment] = log.segments
    assert (log.format.name, log.format.evaluates_inside_iteration) == ("build-nanogpt", True)
    assert [(e.iter, e.val_loss) for e in segment.evals] == [(0, 10.95), (2, 10.5)]
    assert column(segment, "time_ms") == [21000.0, 410.0, 19000.0]
    assert segment.num_bad_norms == 1


def test_build_nanogpt_keeps_a_file_of_values():
    segment = segment_of("0 val 10.9500\n0 hella 0.2453\n0 train 10.955310\n1 train 10.902707\n")
    assert (segment.evals[0].val_loss, column(segment, "loss")) == (10.95, [10.95531, 10.902707])


# -- several runs in one log ---------------------------------------------------------------------


def test_a_second_run_keeps_an_evaluation_that_equals_that_of_the_first():
    run = """
step 0: train loss 4.3000, val loss 4.2900
iter 0: loss 4.3068, time {0}.50ms, mfu -100.00%
iter 10: loss 3.2000, time 4{0}.00ms, mfu 1.80%
step 20: train loss 2.9000, val loss 2.9500
iter 20: loss 2.9900, time 52{0}.00ms, mfu 1.70%
"""
    segments = log_of("".join(run.format(n) for n in range(1, 4))).segments
    assert [[e.iter for e in s.evals] for s in segments] == [[0, 20]] * 3


def test_a_quotation_of_earlier_lines_is_no_second_run():
    lines = """
step 0: train loss 4.3000, val loss 4.2900
iter 0: loss 4.3068, time 5000.50ms, mfu -100.00%
iter 10: loss 3.2000, time 41.00ms, mfu 1.80%
"""
    quoted = "".join(f"> {line}\n" for line in lines.strip().splitlines())
    segment = segment_of(lines + quoted + "iter 20: loss 2.9900, time 42.00ms, mfu 1.80%\n")
    assert (column(segment, "iter"), len(segment.evals)) == ([0, 10, 20], 1)


def test_runs_that_write_at_the_same_time_are_told_apart_by_their_length():
    line = (
        "step {0:05d}/{1:05d} (1.00%) | loss: {2:.6f} | lrm: 1.00 | dt: {3}.00ms | tok/sec: 1,000"
    )
    first = [line.format(n, 502, 9 - n / 100, 900) for n in range(20)]
    second = [line.format(n, 620, 10 - n / 100, 300) for n in range(15)]
    both = first[:5] + [x for pair in zip(first[5:], second, strict=True) for x in pair]
    both.append("Step 00015 | Validation bpb: 1.125000")
    segments = log_of("\n".join(both)).segments
    assert [(s.first_iter, s.last_iter, s.setting("max_iters")) for s in segments] == [
        (0, 19, 502),
        (0, 14, 620),
    ]
    assert [set(column(s, "time_ms")) for s in segments] == [{900.0}, {300.0}]
    assert [len(s.evals) for s in segments] == [0, 1]


def test_a_run_has_its_own_length():
    line = "step {0:05d}/{1:05d} (1.00%) | loss: {1}.5 | lrm: 1.00 | dt: 300.00ms | tok/sec: 1,000"
    lines = [line.format(n, 400) for n in range(5)] + [line.format(n, 70) for n in range(5)]
    assert [s.setting("max_iters") for s in log_of("\n".join(lines)).segments] == [400, 70]


def test_an_evaluation_before_the_first_step_has_no_number():
    segment = segment_of(
        """
{'eval_loss': 1.7153, 'eval_runtime': 3.6, 'epoch': 0.07}
  3%|██▉           | 28/873 [02:01<1:00:51,  4.32s/it]
{'loss': 1.8218, 'learning_rate': 0.0002, 'epoch': 0.1}
"""
    )
    assert [(e.iter, e.has_number) for e in segment.evals] == [(28, False)]
    segment = segment_of("{'eval_loss': 1.7, 'epoch': 1.0}\n{'eval_loss': 1.6, 'epoch': 2.0}\n")
    assert [(e.val_loss, e.has_number) for e in segment.evals] == [(1.7, False), (1.6, False)]
    segment = segment_of("{'eval_loss': 1.7, 'epoch': 0}\n")
    assert [(e.iter, e.has_number) for e in segment.evals] == [(0, True)]


def test_the_clock_of_a_script_that_does_not_warm_up_includes_the_start_up():
    line = "step:{}/900 train_time:{}ms step_avg:{:.2f}ms"
    for first_ms, excluded in ((5500, ("eval",)), (150, ("eval", "warmup"))):
        clocks = [first_ms + 150 * n for n in range(5)]
        text = "\n".join(line.format(n + 1, c, c / (n + 1)) for n, c in enumerate(clocks))
        start = "step:0/900 val_loss:10.8258 train_time:0ms step_avg:nanms\n"
        assert log_of(start + text).format.elapsed_excludes == excluded
