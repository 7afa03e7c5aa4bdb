"""Logs of DeepSpeed, GPT-NeoX, OLMo, nanotron, MaxText, fairseq, MiniMind, ESPnet, tinygrad, the
time series loop, and Megatron's forks."""

# ruff: noqa: E501 (log lines are quoted whole)

import io
import math

import numpy as np
import pytest

from stepglass.logs.detect import read_log
from stepglass.logs.formats.all_formats import OTHERS, other_reader
from stepglass.logs.formats.deepspeed import DeepSpeed
from stepglass.logs.formats.espnet import ESPnet
from stepglass.logs.formats.fairseq import Fairseq
from stepglass.logs.formats.gpt_neox import GPTNeoX
from stepglass.logs.formats.maxtext import MaxText
from stepglass.logs.formats.megatron import Megatron
from stepglass.logs.formats.minimind import MiniMind
from stepglass.logs.formats.nanotron import Nanotron
from stepglass.logs.formats.olmo import OLMo
from stepglass.logs.formats.time_series import TimeSeries
from stepglass.logs.formats.tinygrad import Tinygrad
from stepglass.logs.log import Log
from stepglass.logs.reader import Reader, Record


def read(reader: Reader, text: str) -> list[Record]:
    """All records of a log given as text, what is left at its end included."""
    records = [record for line in text.splitlines() for record in reader.read(line.strip())]
    flush = getattr(reader, "flush", None)
    return records + (flush() if flush else [])


def iterations(records: list[Record]) -> list[Record]:
    return [record for record in records if record["kind"] == "iter"]


def log_of(text: str) -> Log:
    return read_log(io.BytesIO(text.encode()), "train.log")


LOGS = {
    "deepspeed": """
[2025-03-04 11:00:01,200] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=1, lr=[2e-05], mom=[0.0]
steps: 10 loss: 0.2107 iter time (s): 1.283 samples/sec: 12.470
[2025-03-04 11:00:14,300] [INFO] [logging.py:107:log_dist] [Rank 0] step=20, skipped=3, lr=[4e-05], mom=[0.0]
steps: 20 loss: 0.1980 iter time (s): 1.290 samples/sec: 12.403
""",
    "gpt-neox": """
[2023-05-01 10:00:00,123] [INFO] [logging.py:60:log_dist] [Rank 0] step=10, skipped=2, lr=[6e-07, 6e-07], mom=[[0.9, 0.95], [0.9, 0.95]]
steps: 10 loss: 10.1021 iter time (s): 0.912 samples/sec: 35.101
 samples/sec: 34.871 | iteration       10/  143000 | elapsed time per iteration (ms): 917.7 | learning rate: 6.000E-07 | approx flops per GPU: 40.2TFLOPS | MFU: 31.20% | HFU: 31.40% | lm_loss: 1.064170E+01 | loss scale: 65536.0 | number of skipped iterations:   2 | number of nan iterations:   0 |
steps: 20 loss: 9.8021 iter time (s): 0.902 samples/sec: 35.501
 samples/sec: 35.271 | iteration       20/  143000 | elapsed time per iteration (ms): 907.2 | learning rate: 1.200E-06 | approx flops per GPU: 40.8TFLOPS | lm_loss: NAN | loss scale: 65536.0 | number of skipped iterations:   0 | number of nan iterations:   0 |
 validation results at iteration 20 | lm_loss value: 9.524416E+00 | lm_loss_ppl value: 1.368993E+04 |
[2023-05-01 10:01:09,523] [INFO] [logging.py:60:log_dist] [Rank 0] Saving model checkpoint: checkpoints/global_step20/mp_rank_00_model_states.pt
""",
    "olmo": """
2024-03-01 10:00:00.123	node1:0	olmo.train:967	INFO	[step=1/9000,epoch=0]
    optim/total_grad_norm=12.51
    train/CrossEntropyLoss=11.42
    train/Perplexity=90,962
    throughput/total_tokens=4,194,304
2024-03-01 10:00:00.124	node1:1	olmo.train:970	INFO	[step=1/9000,epoch=0]
2024-03-01 10:00:04.123	node1:0	olmo.train:967	INFO	[step=2/9000,epoch=0]
    optim/total_grad_norm=11.90
    train/CrossEntropyLoss=11.31
    throughput/device/tokens_per_second=8,192
    throughput/device/batches_per_second=0.2500
2024-03-01 10:00:05.123	node1:0	olmo.train:1019	INFO	Running evaluation for 'small-validation'...
2024-03-01 10:00:19.123	node1:0	olmo.train:967	INFO	small-validation
    eval/small-validation/c4_en/CrossEntropyLoss=10.91
    eval/small-validation/c4_en/Perplexity=54,721
    eval/small-validation/pile/CrossEntropyLoss=10.72
2024-03-01 10:00:29.123	node1:0	olmo.train:1273	INFO	Checkpoint saved to /runs/a/step2
""",
    "nanotron": """
06/01/2025 11:05:18 [INFO|DP=0|PP=0|TP=0]: iteration: 120 / 9000 | consumed_tokens: 126M | elapsed_time_per_iteration_ms: 1.82K | tokens_per_sec: 576K | tokens_per_sec_per_gpu: 72K | global_batch_size: 512 | lm_loss: 6.71 | lr: 0.00024 | model_tflops_per_gpu: 301 | grad_norm: 1.2
06/01 11:05:20 [INFO|DP=0]: iteration: 121 / 9000 | consumed_tokens: 127M | time_per_iteration_ms: 982 | tokens_per_sec: 1.07M | tokens_per_sec_per_gpu: 134K | global_batch_size: 1.05M | grad_norm: 1.1 | lm_loss: 6.69 | lr: 0.000242 | eta: 2:25:01
06/01 11:05:21 [WARNING|DP=0]: Saving checkpoint at /runs/checkpoints/121
""",
    "maxtext": """
completed step: 0, seconds: 41.203, TFLOP/s/device: 2.105, Tokens/s/device: 99.408, total_weights: 65536, loss: 10.871
completed step: 1, seconds: 1.204, TFLOP/s/device: 72.104, Tokens/s/device: 3401.993, total_weights: 65536, loss: 10.512
saved a checkpoint at step 1
eval metrics after step: 1, loss=10.101, total_weights=131072.0
""",
    "fairseq": """
2021-02-03 10:00:00 | INFO | train_inner | epoch 001:    100 / 2000 loss=11.203, nll_loss=10.9, ppl=1912.1, wps=21034.2, ups=3.11, wpb=6763, bsz=210, num_updates=100, lr=1.2e-05, gnorm=2.1, clip=0, train_wall=32, wall=40
2021-02-03 10:00:20 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0
2021-02-03 10:00:33 | INFO | train_inner | epoch 001:    201 / 2000 loss=10.203, nll_loss=10.1, ppl=1100.1, wps=20834.2, ups=3.05, wpb=6763, bsz=210, num_updates=200, lr=2.4e-05, gnorm=1.9, clip=0, train_wall=32, wall=73
2021-02-03 10:01:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 9.204 | nll_loss 8.9 | ppl 478.1 | wps 50123.1 | wpb 5120 | bsz 200 | num_updates 200
2021-02-03 10:01:04 | INFO | fairseq.checkpoint_utils | Saved checkpoint checkpoints/checkpoint1.pt (epoch 1 @ 200 updates, score 9.204) (writing took 3.21 seconds)
""",
    "minimind": """
Epoch:[1/2](100/5000), loss: 5.4316, logits_loss: 5.4316, aux_loss: 0.0000, lr: 0.00050000, epoch_time: 21.0min
Epoch:[1/2](5000/5000), loss: 3.8316, logits_loss: 3.8316, aux_loss: 0.0000, lr: 0.00045000, epoch_time: 0.0min
Epoch:[2/2](100/5000), loss: 3.4316, logits_loss: 3.4316, aux_loss: 0.0000, lr: 0.00040000, epoch_time: 21.0min
""",
    "espnet": """
[n1] 2022-05-01 10:00:00,100 (trainer:725) INFO: 1epoch:train:1-50batch: iter_time=0.121, forward_time=0.202, loss_ctc=310.1, acc=0.01, loss=177.170, backward_time=0.301, grad_norm=90.1, clip=100.000, loss_scale=65536, optim_step_time=0.050, optim0_lr0=1.0e-06, train_time=0.690
[n1] 2022-05-01 10:00:34,100 (trainer:725) INFO: 1epoch:train:51-100batch: iter_time=0.021, forward_time=0.202, loss=150.170, backward_time=0.301, grad_norm=80.1, optim_step_time=0.050, optim0_lr0=2.0e-06, train_time=0.601
[n1] 2022-05-01 10:01:34,100 (trainer:334) INFO: 1epoch results: [train] iter_time=0.1, loss=160.1, train_time=0.6, time=1 hour, 2 minutes and 30.5 seconds, total_count=120, [valid] loss_ctc=200.1, loss=140.2, acc=0.21, cer=0.8, time=1 minute and 4.02 seconds, total_count=20
[n1] 2022-05-01 10:02:34,100 (trainer:725) INFO: 2epoch:train:1-50batch: iter_time=0.021, forward_time=0.202, loss=130.170, backward_time=0.301, grad_norm=80.1, optim_step_time=0.050, optim0_lr0=2.0e-06, train_time=0.601
""",
    "tinygrad": """
    0 4100.12 ms run, 3900.10 ms python,   0.52 ms fetch data,  199.50 ms AMD,  6.91 loss, 0.00 acc, 0.000100 LR, 12.10 GB used,   1200.10 GFLOPS
    1  305.12 ms run,    3.10 ms python,   0.52 ms fetch data,  301.50 ms AMD,  6.90 loss, 0.01 acc, 0.000100 LR, 12.10 GB used,  16200.10 GFLOPS
eval loss: 6.80, eval time: 3.10, eval top 1 acc: 0.011
    0  304.12 ms run,    3.10 ms python,   0.52 ms fetch data,  301.50 ms AMD,  6.70 loss, 0.01 acc, 0.000100 LR, 12.10 GB used,  16200.10 GFLOPS
""",
    "time-series": """
	iters: 100, epoch: 1 | loss: 0.5114228
	speed: 0.0521s/iter; left time: 130.2293s
	iters: 200, epoch: 1 | loss: 0.4114228
	speed: 0.0421s/iter; left time: 100.2293s
Epoch: 1 cost time: 11.5045502185822
Epoch: 1, Steps: 260 | Train Loss: 0.4166000 Vali Loss: 0.6160769 Test Loss: 0.4409409
Validation loss decreased (inf --> 0.616077).  Saving model ...
Updating learning rate to 5e-05
	iters: 100, epoch: 2 | loss: 0.3114228
	speed: 0.1421s/iter; left time: 300.2293s
""",
}
READERS: dict[str, type[Reader]] = {
    reader.format.name: reader
    for reader in (
        *(DeepSpeed, GPTNeoX, OLMo, Nanotron, MaxText),
        *(Fairseq, MiniMind, ESPnet, Tinygrad, TimeSeries),
    )
}


# -- whose line is it ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOGS)
def test_every_log_is_recognised(name: str) -> None:
    assert log_of(LOGS[name]).format.name == name


@pytest.mark.parametrize("name", LOGS)
def test_no_other_reader_finds_training_in_these_logs(name: str) -> None:
    shared = {"megatron", "deepspeed"} if name == "gpt-neox" else set()  # it prints their lines
    for entry in OTHERS:
        reader = other_reader(entry)()
        found = [r for r in read(reader, LOGS[name]) if r["kind"] in ("iter", "eval")]
        assert not found or reader.format.name in {name, *shared}, (entry, found[0])


SOURCE = """
say(f"[Rank {rank}] step={n}, skipped={skips}, lr=[{rate}], mom=[{momentum}]")
print(f"steps: {n} loss: {mean:.4f} iter time (s): {seconds:.3f} samples/sec: {speed:.3f}")
say("[deepspeed] OVERFLOW! Rank {} Skipping step. Attempted loss scale: {}, reducing to {}")
line = " samples/sec: {:.3f} | iteration {:8d}/{:8d} | elapsed time per iteration (ms): {:.1f} |"
heading = f"[step={n}/{last},epoch={epoch}]"
said["train/CrossEntropyLoss"] = loss
print(f"iteration: {n} / {last} | elapsed_time_per_iteration_ms: {ms} | lm_loss: {loss}")
print(f"completed step: {n}, seconds: {seconds:.3f}, TFLOP/s/device: {rate:.3f}, loss: {loss:.3f}")
print("| epoch {:03d}: {:5d} / {:d} loss={:.3f}, num_updates={}, wall={}".format(*figures))
print(f"Epoch:[{epoch}/{epochs}]({n}/{steps}), loss: {loss:.4f}, lr: {rate:.8f}, epoch_time: {left}min")
print(f"{epoch}epoch:train:{first}-{last}batch: loss={loss:.3f}, train_time={seconds:.3f}")
#  12  101.50 ms run,    1.10 ms python,  100.40 ms CL,  4.12 loss, 0.0001 LR, 1.10 GB used,   900.10 GFLOPS
print("iters: {}, epoch: {} | loss: {:.7f}".format(n, epoch, loss))
print("speed: {:.4f}s/iter; left time: {:.4f}s".format(speed, left))
"""


@pytest.mark.parametrize("name", READERS)
def test_source_code_is_not_a_log(name: str) -> None:
    assert read(READERS[name](), SOURCE) == []


# -- what each line says -------------------------------------------------------------------------


def test_deepspeed_joins_the_progress_line_with_the_pipeline_engines() -> None:
    first, second = read(DeepSpeed(), LOGS["deepspeed"])
    assert (first["iter"], first["loss"], first["lr"]) == (10, 0.2107, 2e-05)
    assert first["time_ms"] == pytest.approx(1283.0)
    assert first["num_skipped"] is None  # the count may begin before this log
    assert (second["iter"], second["num_skipped"]) == (20, 2)


def test_a_mean_of_deepspeed_counts_for_every_step_since_the_previous_line() -> None:
    table = log_of(LOGS["deepspeed"]).segments[0].table
    assert table.column("window")[1] == 10


def test_deepspeed_reads_forks_with_a_planned_length_and_with_more_losses() -> None:
    lines = """step:   100 /  5000 loss: 0.1201 iter time (s): 2.500 samples/sec: 6.400 eta: 3h24m
steps: 200 loss: 5.5508 lm loss: 5.5103 moe loss: 0.0405 iter time (s): 0.936 samples/sec: 136.706"""
    one, two = read(DeepSpeed(), lines)
    assert (one["iter"], one["max_iters"], one["loss"], one["time_ms"]) == (100, 5000, 0.1201, 2500)
    assert (two["iter"], two["loss"], two["time_ms"]) == (200, 5.5508, 936)


def progress(step: int, skipped: int) -> str:
    stamp = f"[2024-01-01 10:{step // 60:02}:{step % 60:02},000]"
    return f"{stamp} [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={skipped}, lr=[1e-05], mom=[(0.9, 0.999)]\n"


def test_progress_lines_alone_are_iterations_with_their_skipped_updates() -> None:
    found = read(DeepSpeed(), "".join(progress(10 * n, 2 * n) for n in range(1, 6)))
    assert [(r["iter"], r["num_skipped"], r["loss"]) for r in found] == [
        (20, 2, None),
        (30, 2, None),
        (40, 2, None),
        (50, 2, None),
    ]


def test_progress_lines_beside_another_trainers_loss_are_left_to_its_reader() -> None:
    lines = "".join(progress(n, 0) + f"{{'loss': 2.{n}, 'epoch': 0.{n}}}\n" for n in range(1, 9))
    assert read(DeepSpeed(), lines) == []


def test_a_loss_without_a_step_belongs_to_the_progress_line_before_it() -> None:
    said = "2024-01-01 10:00:00.000 | INFO     | __main__:log_dist:54 - [Rank 0] Loss: 9.{}\n"
    lines = "".join(progress(10 * n, 3) + said.format(9 - n) for n in range(1, 4))
    found = read(DeepSpeed(), lines)
    assert [(r["iter"], r["loss"], r["lr"]) for r in found] == [
        (10, 9.8, 1e-05),
        (20, 9.7, 1e-05),
        (30, 9.6, 1e-05),
    ]


def test_the_progress_line_of_a_new_engine_is_no_step() -> None:
    assert read(DeepSpeed(), progress(0, 0) * 5) == []


def test_a_skipped_update_is_an_event_and_counts_for_the_next_iteration() -> None:
    notice = "[2024-01-01 10:00:00,000] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
    step = "steps: 10 loss: 0.2107 iter time (s): 1.283 samples/sec: 12.470"
    *events, record = read(DeepSpeed(), notice * 3 + step)
    assert [event["name"] for event in events] == ["skipped-update"] * 3
    assert record["num_skipped"] == 3


def test_gpt_neox_reads_each_iteration_once_with_a_nan_in_capitals() -> None:
    records = read(GPTNeoX(), LOGS["gpt-neox"])
    first, second = iterations(records)
    assert (first["iter"], first["max_iters"], first["loss"]) == (10, 143000, 10.6417)
    assert (first["time_ms"], first["is_mean"], first["mfu"]) == (917.7, True, 31.2)
    assert (first["num_skipped"], first["loss_scale"]) == (2, 65536)
    assert math.isnan(second["loss"])
    assert [r for r in records if r["kind"] != "iter"] == [
        {"kind": "eval", "iter": 20, "val_loss": 9.524416},
        {"kind": "checkpoint", "iter": 20},
    ]


MEGATRON = " iteration       20/    1000 | consumed samples:           80 | elapsed time per iteration (ms): 1354.9 | learning rate: 3.750E-05 | global batch size:     4 | lm loss: 9.203115E+00 | loss scale: 32768.0 | grad norm: 2.114 | number of skipped iterations:   0 | number of nan iterations:   0 |"


@pytest.mark.parametrize("name", ["lm loss", "lm_loss", "lm-loss", "loss"])
def test_forks_of_megatron_have_their_own_names_for_the_loss(name: str) -> None:
    [record] = Megatron().read(MEGATRON.replace("lm loss", name))
    assert (record["loss"], record["loss_scale"]) == (9.203115, 32768)


def test_megatron_prints_a_nan_in_capitals() -> None:
    [record] = Megatron().read(MEGATRON.replace("9.203115E+00", "NAN"))
    assert math.isnan(record["loss"])


def test_a_line_of_megatron_that_is_cut_off_has_not_lost_its_loss() -> None:
    assert Megatron().read(MEGATRON[: MEGATRON.index("lm loss")]) == []
    lost = MEGATRON.replace("lm loss: 9.203115E+00 | ", "")
    for line in (lost, lost[: lost.index("grad")]):
        [record] = Megatron().read(line)
        assert record["loss"] is None


def test_a_norm_that_megatron_rounds_to_zero_is_not_known_to_be_zero() -> None:
    [record] = Megatron().read(MEGATRON.replace("2.114", "0.000"))
    assert "grad_norm" not in record


def test_a_mean_beside_a_value_of_megatron_is_left_out() -> None:
    [record] = Megatron().read(MEGATRON.replace("1354.9", "1354.9/1361.0"))
    assert record["time_ms"] == 1354.9


def test_a_megatron_that_prints_no_date_counts_validation_into_the_next_line() -> None:
    lines = "".join(f"{{date}}{MEGATRON.replace('20/', f'{n}/')}\n" for n in range(5))
    assert log_of(lines.replace("{date}", "")).format.times_everything
    assert not log_of(lines.replace("{date}", " [2024-04-06 03:02:12]")).format.times_everything


def test_olmos_blocks_are_steps_and_its_evaluation_sets_stay_apart() -> None:
    records = read(OLMo(), LOGS["olmo"])
    first, second = iterations(records)
    assert (first["iter"], first["loss"], first["grad_norm"]) == (1, 11.42, 12.51)
    assert first.get("rate_per_s") is None  # the first batch is not timed
    assert (second["max_iters"], second["rate_per_s"], second["tok_s"]) == (9000, 0.25, 8192)
    assert second["is_mean"]
    evals = [r for r in records if r["kind"] == "eval"]
    assert [(e["iter"], e["set"], e["val_loss"]) for e in evals] == [
        (2, "small-validation/c4_en", 10.91),
        (2, "small-validation/pile", 10.72),
    ]
    assert records[-1] == {"kind": "checkpoint", "iter": 2}


def test_olmo_has_printed_no_epoch() -> None:
    [record] = read(OLMo(), LOGS["olmo"].replace(",epoch=0", ""))[:1]
    assert (record["iter"], record["max_iters"], record["loss"]) == (1, 9000, 11.42)


def test_the_last_step_before_a_restart_of_olmo_does_not_get_the_restarts_timestamp() -> None:
    block = "[2024-03-0{} 10:00:0{}] INFO [olmo.train:816, rank=0] [step={}/90]\n train/CrossEntropyLoss=9.{}\n train/Perplexity=9,000\n"
    lines = "".join(block.format(1, n, n, n) for n in range(1, 6))
    lines += "".join(block.format(2, n, n, n + 1) for n in range(1, 6))
    first, second = log_of(lines).segments
    assert (first.last_iter, second.first_iter) == (5, 1)
    assert np.isnan(first.table.column("stamp")[-1])
    assert np.nanmax(first.table.column("stamp")) < np.nanmin(second.table.column("stamp"))


def test_olmo_core_prints_other_names_and_times_its_evaluation() -> None:
    text = """[step=7/???,epoch=1,eta=1hour2m]
    optim/LR (group 0)=8.00E-07
    optim/step skipped=1.000
    optim/total grad norm=8.121
    throughput/device/BPS=0.5000
    throughput/device/BPS (actual avg)=0.4912
    throughput/device/TPS=16,423
    throughput/device/data loading (s)=0.0123
    throughput/total tokens=1.234B
    train/CE loss=10.71
2025-03-01 10:00:53.124 INFO Finished lm evals in 12.3 seconds. Metrics:
    c4_en-validation/CE loss=10.50
    c4_en-validation/PPL=36,315
    pile-validation/CE loss=10.40"""
    step, *evals = read(OLMo(), text)
    assert (step["iter"], step["loss"], step["lr"], step["num_skipped"]) == (7, 10.71, 8e-07, 1)
    assert (step["rate_per_s"], step["tok_s"], step["data_ms"]) == (0.5, 16423, pytest.approx(12.3))
    assert "max_iters" not in step
    assert "is_mean" not in step  # the rate is of one step
    assert [(e["set"], e["val_loss"], e["time_ms"]) for e in evals] == [
        ("c4_en-validation", 10.5, 12300),
        ("pile-validation", 10.4, None),
    ]


def test_nanotrons_suffixes_are_factors() -> None:
    old, new, saved = read(Nanotron(), LOGS["nanotron"])
    assert (old["iter"], old["max_iters"], old["time_ms"]) == (120, 9000, 1820)
    assert (old["tok_s"], old["tokens"], old["loss"]) == (576_000, 126e6, 6.71)
    assert (old["lr"], old["grad_norm"]) == (0.00024, 1.2)
    assert (new["time_ms"], new["tok_s"], new["loss"]) == (982, 1_070_000, 6.69)
    assert saved == {"kind": "checkpoint", "iter": 121}


def test_a_line_of_nanotron_that_is_cut_off_is_no_iteration_without_a_loss() -> None:
    first = LOGS["nanotron"].strip().splitlines()[0]
    assert read(Nanotron(), first[: first.index("lm_loss")]) == []
    [record] = read(Nanotron(), first.replace("lm_loss: 6.71", "lm_loss: nan"))
    assert math.isnan(record["loss"])


def test_maxtext_prints_seconds_and_rates_of_a_device() -> None:
    first, _, saved, evaluated = read(MaxText(), LOGS["maxtext"])
    assert (first["iter"], first["loss"], first["time_ms"]) == (0, 10.871, 41203)
    assert (first["tok_s"], first["tflops"]) == (99.408, 2.105)
    assert saved == {"kind": "checkpoint", "iter": 1}
    assert evaluated == {"kind": "eval", "iter": 1, "val_loss": 10.101}


def test_maxtexts_evaluations_have_had_three_spellings() -> None:
    lines = """average loss after step=9: eval_step_count=10, eval_loss=4.25, total_weights=131072.0
Completed eval after train step 9, loss=4.250, perplexity=70.105, total_weights=5000.0
Completed eval step 3"""
    assert [r["val_loss"] for r in read(MaxText(), lines)] == [4.25, 4.25]


def test_fairseq_counts_updates_and_not_batches() -> None:
    records = read(Fairseq(), LOGS["fairseq"])
    first, second = iterations(records)
    assert (second["iter"], second["loss"], second["grad_norm"]) == (200, 10.203, 1.9)
    assert (first["elapsed_s"], second["elapsed_s"]) == (40, 73)
    assert (second["rate_per_s"], second["is_mean"], second["num_skipped"]) == (3.05, True, 1)
    assert records[-2] == {"kind": "eval", "iter": 200, "val_loss": 9.204}
    assert records[-1] == {"kind": "checkpoint", "iter": 200, "time_ms": 3210}


def test_an_old_fairseq_averages_its_rate_over_the_epoch_so_its_clock_is_used() -> None:
    line = "| epoch 002:    {n} / 2400 loss=9.1, nll_loss=8.4, ppl=337.8, wps=52000, ups=1.9, wpb=9000, bsz=300, num_updates={n}, lr=0.0001, gnorm=1.5, clip=0%, oom=0, loss_scale=2.000, wall={wall}, train_wall=700\n"
    log = log_of("".join(line.format(n=n, wall=800 + n // 2) for n in (100, 200, 300)))
    assert log.segments[0].table.column("time_ms")[1:].tolist() == [500, 500]


def test_after_an_evaluation_fairseqs_training_time_is_used() -> None:
    after = "2021-02-03 10:01:50 | INFO | train_inner | epoch 001:    301 / 2000 loss=9.9, nll_loss=9.1, ppl=548.7, wps=9000, ups=1.3, wpb=6763, bsz=210, num_updates=300, lr=3e-05, gnorm=1.9, clip=0, train_wall=33, wall=150\n"
    last = log_of(LOGS["fairseq"] + after).segments[0].table.column("time_ms")[-1]
    assert last == 330


def test_fairseqs_json_says_the_same_as_its_text() -> None:
    lines = """2021-02-03 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.05, "loss": "11.203", "ppl": "1912.1", "wps": "21034.2", "ups": "3.11", "wpb": "6763", "num_updates": "100", "lr": "1.2e-05", "gnorm": "2.1", "train_wall": "32", "wall": "40"}
2021-02-03 10:10:34 | INFO | valid | {"epoch": 1, "valid_loss": "9.204", "valid_ppl": "402.1", "valid_bleu": "3.2", "valid_num_updates": "2000"}
2021-02-03 10:10:35 | INFO | train | {"epoch": 1, "train_loss": "10.9", "train_wps": "20000", "train_num_updates": "2000", "train_wall": "640"}"""
    step, evaluated = read(Fairseq(), lines)
    assert (step["iter"], step["loss"], step["elapsed_s"]) == (100, 11.203, 40)
    expected = {"kind": "eval", "iter": 2000, "val_loss": 9.204, "metrics": {"bleu": 3.2}}
    assert evaluated == expected


def test_the_json_of_an_old_fairseq_has_one_line_for_an_epoch_and_one_for_its_evaluation() -> None:
    epoch = '{{"epoch": {}, "loss": "{}", "nll_loss": "1.9", "wps": 16443, "ups": "2.7", "wpb": 6156, "num_updates": {}, "gnorm": "0.2", "oom": 0.02, "wall": {}}}\n'
    valid = '{"epoch": 3, "valid_loss": 3.25, "valid_nll_loss": 1.5, "valid_ppl": "2.83"}\n'
    lines = valid + epoch.format(3, 3.5, 2000, 800) + valid + epoch.format(4, 3.4, 4000, 1600)
    first, evaluation, second = read(Fairseq(), lines)
    assert (first["iter"], first["loss"], first["elapsed_s"]) == (2000, 3.5, 800)
    assert evaluation == {"kind": "eval", "iter": 2000, "val_loss": 3.25}
    assert (second["iter"], second["loss"], second["elapsed_s"]) == (4000, 3.4, 1600)


def test_fairseqs_summary_of_an_epoch_counts_only_without_lines_in_between() -> None:
    summary = "2021-02-03 10:11:44 | INFO | train | epoch 002 | loss 8.814 | nll_loss 7.5 | ppl 181.2 | wps 20123.1 | ups 3.01 | wpb 5120 | bsz 200 | num_updates 4000 | lr 0.0001 | gnorm 1.1 | train_wall 610 | wall 1300"
    (alone,) = read(Fairseq(), summary)
    assert (alone["iter"], alone["loss"], alone["elapsed_s"]) == (4000, 8.814, 1300)
    assert len(iterations(read(Fairseq(), LOGS["fairseq"] + summary))) == 2


def test_minimind_goes_on_counting_in_the_next_epoch() -> None:
    log = log_of(LOGS["minimind"])
    assert len(log.segments) == 1
    assert log.segments[0].table.column("iter").tolist() == [100, 5000, 5100]
    assert log.segments[0].config["max_iters"] == 10_000


def test_minimind_has_counted_epochs_from_zero() -> None:
    lines = """Epoch:[0/3](200/8800) loss:4.902 lr:0.000300000000 epoch_Time:41.0min:
Epoch:[1/3](0/8800) loss:3.902 lr:0.000300000000 epoch_Time:44.0min:"""
    first, second = read(MiniMind(), lines)
    assert (first["global_iter"], second["global_iter"]) == (200, 8800)
    assert second["max_iters"] == 4 * 8800


def test_what_is_left_of_an_epoch_is_not_the_time_of_a_step() -> None:
    log = log_of(LOGS["minimind"])
    assert np.isnan(log.segments[0].table.column("time_ms")).all()
    assert log.segments[0].last_elapsed is None


def test_minimind_takes_no_other_loss_for_the_loss() -> None:
    line = "Epoch:[1/1](10/900), Actor Loss: -0.0123, Aux Loss: 0.0000, Reward: 0.8123, Learning Rate: 0.00000100"
    assert read(MiniMind(), line) == []


def test_espnets_batches_are_counted_over_all_epochs() -> None:
    first, second, evaluated, third = read(ESPnet(), LOGS["espnet"])
    assert [r["global_iter"] for r in (first, second, third)] == [50, 100, 170]
    assert (first["window"], first["time_ms"], first["data_ms"]) == (50, 690, 121)
    assert (first["loss"], first["lr"], first["grad_norm"]) == (177.17, 1e-06, 90.1)
    assert (evaluated["iter"], evaluated["train_loss"], evaluated["val_loss"]) == (
        120,
        160.1,
        140.2,
    )
    assert evaluated["metrics"] == {"accuracy": 0.21, "cer": 0.8}
    assert evaluated["time_ms"] == 64_020


def test_funasr_adds_the_updates_to_espnets_batches() -> None:
    [record] = read(ESPnet(), LOGS["espnet"].replace("-50batch:", "-50batch:50num_updates:"))[:1]
    assert (record["iter"], record["window"], record["loss"]) == (50, 50, 177.17)


def test_espnets_time_of_an_update_with_several_batches_is_not_that_of_a_batch() -> None:
    line = LOGS["espnet"].splitlines()[1].replace("train_time=0.690", "train_time=2.701")
    assert read(ESPnet(), line)[0]["time_ms"] is None


def test_a_wait_of_a_millisecond_with_three_decimals_is_not_believed() -> None:
    line = LOGS["espnet"].splitlines()[2].replace("iter_time=0.021", "iter_time=0.001")
    assert read(ESPnet(), line)[0]["data_ms"] is None


def test_tinygrad_prints_seconds_or_milliseconds() -> None:
    lines = """    8 2.51 s run, 9.1250 loss, 0.000000000400 LR, 610.20 GB used, 310400.10 GFLOPS
    9 2.498 s step, 2.3 s gbs, 0.2 s optim, 0.001 s data, 9.0625 loss, 0.000000000500 LR, 0.512300 grad_norm, 610.20 GB used, 310400.10 GFLOPS, 21.40% MFU
eval log perplexity: 8.4321"""
    eight, nine, evaluated = read(Tinygrad(), lines)
    assert (eight["iter"], eight["time_ms"], eight["loss"], eight["lr"]) == (8, 2510, 9.125, 4e-10)
    assert (nine["time_ms"], nine["grad_norm"]) == (2498, 0.5123)
    assert evaluated["val_loss"] == 8.4321


def test_tinygrad_starts_again_after_an_evaluation_without_being_restarted() -> None:
    log = log_of(LOGS["tinygrad"])
    assert len(log.segments) == 1
    assert log.segments[0].table.column("iter").tolist() == [0, 1, 2]
    assert log.segments[0].table.column("time_ms").tolist() == [4100.12, 305.12, 304.12]


def test_the_first_speed_of_an_epoch_is_no_time_of_an_iteration() -> None:
    log = log_of(LOGS["time-series"])
    table = log.segments[0].table
    assert len(log.segments) == 1
    assert table.column("iter").tolist() == [100, 200, 360]
    assert table.column("time_ms")[:2] == pytest.approx([52.1, 42.1])
    assert np.isnan(table.column("time_ms")[2])
    assert table.column("lr")[2] == 5e-05
    assert [(e.set, e.iter, e.train_loss, e.val_loss) for e in log.segments[0].evals] == [
        ("", 260, 0.4166, 0.6160769),
        ("test", 260, None, 0.4409409),
    ]


def test_a_second_training_in_a_time_series_log_is_a_new_segment() -> None:
    end = "iters: 200, epoch: 2 | loss: 0.2114228\nspeed: 0.0422s/iter; left time: 30.2293s\n"
    log = log_of(LOGS["time-series"] + end + LOGS["time-series"].replace("14228", "24311"))
    assert [segment.first_iter for segment in log.segments] == [100, 100]
