"""Logs of nanochat, modded-nanogpt, llm.c, litgpt, torchtitan, lingua and Megatron."""

# ruff: noqa: E501 (log lines are quoted whole)

import math

import pytest

from stepglass.logs.formats.lingua import Lingua
from stepglass.logs.formats.litgpt import LitGPT
from stepglass.logs.formats.llmc import LlmC
from stepglass.logs.formats.megatron import Megatron
from stepglass.logs.formats.modded import Modded
from stepglass.logs.formats.nanochat import Nanochat
from stepglass.logs.formats.torchtitan import Torchtitan
from stepglass.logs.reader import Reader

READERS: list[type[Reader]] = [Nanochat, Modded, LlmC, LitGPT, Torchtitan, Lingua, Megatron]

# Lines that exactly one of the readers, or none ("-"), may claim.
LINES = {
    "nanochat": [
        "step 00004/21400 (0.02%) | loss: 8.893647 | lrm: 1.00 | dt: 989.44ms | tok/sec: 529,882 | mfu: 74.13 | total time: 0.00m",
        "step 04245/21400 (19.84%) | loss: 3.012123 | lrm: 1.00 | dt: 13776.73ms | tok/sec: 594 | mfu: 13.44 | total time: 971.74m",
        "step 00020/13920 (0.14%) | loss: 6.731446 | lrm: 1.00 | dt: 1350.44ms | tok/sec: 388,235 | mfu: 24.27 | epoch: 1 | total time: 0.12m | eta: 173.1m",
        "[GC rank3] gen2: 713.5ms collected 340341 objects",
        "Step 10000 | Validation bpb: 1.946162",
        "Step 02000 | CORE metric: 0.2087",
        "Step 00003/00700 | Training loss: 1.234567| lrm: 0.995714| num_tokens: 12,345",
        "GPU: NVIDIA A100-SXM4-80GB | Peak FLOPS (BF16): 3.12e+14",
        "Total batch size 524,288 => gradient accumulation steps: 4",
        "Peak flops undefined for: NVIDIA GB10, MFU will show as 0%",
        "WARNING: Flash Attention 3 not available, using PyTorch SDPA fallback",
        "Total training time: 13.84m",
        "Peak memory usage: 75422.02MiB",
    ],
    "modded-nanogpt": [
        "step:0/6200 val_loss:10.9264 train_time:285ms step_avg:nanms",
        "step:60/6200 train_loss:5.7158 train_time:10665ms step_avg:213.30ms",
        "step:59/1480 train_time:6997ms step_avg:142.80ms",
        "step:0/1770 val_loss:10.8258 train_time:0ms step_avg:0.03ms",
        "step:1390/1390 val_loss:3.2821 train_time:80694ms step_avg:58.05ms",
        "peak memory allocated: 30908 MiB reserved: 46472 MiB",
        "step:2125/3350 val_loss:3.42888 train_time:316.910s step_avg:147.02ms",
    ],
    "llm.c": [
        "val loss 5.252026",
        "step 0: train loss 5.356189 (took 1452.121000 ms)",
        "step 7/20: train loss 3.912345 (812.500000 ms)",
        "step    7/20: train loss 3.912345 (812.500000 ms, 5041 tok/s)",
        "step    7/20: train loss 3.912345 (acc 3.900000) (812.500000 ms, 5041 tok/s)",
        "step    7/20: train loss 3.912345 norm 1.2500 (812.50 ms, 5041 tok/s)",
        "step    7/20: train loss 3.912345 norm 1.2500 lr 3.00e-04 (812.50 ms, 5041 tok/s)",
        "step    7/20 | train loss  3.9123 | norm 1.2500 | lr 3.00e-04 | 812.50 ms | 41.5% A100 fp16 MFU | 5041 tok/s",
        "step    1/3 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2511.08 ms | 40.0% bf16 MFU | 208790 tok/s",
        "step    7/20 | train loss 3.912345 | norm 1.2500 | lr 3.00e-04 | (812.50 ms | 5041 tok/s)",
        "s:0 tel:11.0092",
        "s:1 trl:10.9598 lr:0.000002 norm:15.24",
        "s:250 eval:0.2974",
        "HellaSwag: 2987/10042 = 0.297451",
        "skipping update due to loss z-score of 6.125000",
        "| peak TFlops           | 97.5                                               |",
        "total average iteration time: 2502.328263 ms",
    ],
    "litgpt": [
        "Epoch 34 | iter 3050700 step 610140 | loss train: 2.846, val: 2.861 | iter time: 112.20 ms (step) remaining time: 0:01:54",
        "iter 4800: val loss 1.7258, val time: 3778.02 ms",
        "iter 1760 | step 220: loss 1.5947, iter time: 263.85 ms (optimizer.step)",
        "iter 0: loss 3.5421, time: 174.07ms",
        "[rank: 0] iter 34 step 35: iter time: 3372.20ms (optimizer.step)",
        "Final evaluation | val loss: 2.861 | val ppl: 17.479",
        "Saving checkpoint to 'out/pretrain/step-00000220/lit_model.pth'",
        "| - Tok/sec       : 12.34 tok/s",
    ],
    "torchtitan": [
        "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24405  grad_norm:  0.8319  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%",
        "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%",
        "[rank0]:[titan] 2025-06-16 22:30:50,322 - root - INFO - step: 200  loss:  6.1384  memory: 49.66GiB(52.28%)  tps: 5,856  tflops: 339.16  mfu: 34.29%",
        "[rank0]:[titan] 2025-06-16 22:30:50,976 - root - INFO - Finished dumping profiler traces in 0.22 seconds",
        "[rank0]:[titan] 2025-06-16 22:31:04,970 - root - INFO - step: 210  loss:  6.0388  memory: 49.66GiB(52.28%)  tps: 5,593  tflops: 323.92  mfu: 32.75%",
        "[rank0]:[titan] 2025-06-16 22:30:48,735 - root - INFO - [GC] Peforming periodical GC collection. 0.06 seconds.",
        "step:  1  loss: 10.8423  wps:   1,234  peak_memory: 41.25%",
        "validate step: 20  loss:  6.5432  memory: 49.66GiB(52.28%)  tps: 9,001",
        "[titan] Finished saving the checkpoint in 0.60 seconds.",
        "[titan] - WARNING - Peak flops undefined for: NVIDIA L4, fallback to A100",
    ],
    "lingua": [
        "1: INFO    24-10-19 18:47:38.910772 - 0:00:50 - step: 2  acc: 0  loss: 12.1832  grad: 1.08e+01  flops: 1.97e+14  wps: 1.84e+04  iter:  0.8908  data: 0.001  lr: 6.00e-07  mem: 59%  pow: 392.956 W",
        "0: INFO    24-10-19 18:47:38.910772 - 0:00:50 - garbage collection",
        '{"global_step": 2, "acc_step": 0, "speed/wps": 18400.0, "speed/curr_iter_time": 0.8908, "loss/out": 12.1832}',
    ],
    "megatron": [
        "iteration      122/  250000 | consumed samples:       124928 | elapsed time per iteration (ms): 86545.2 | learning rate: 9.150E-06 | global batch size:  1024 | lm loss: 2.504220E+00 | loss scale: 1.0 | grad norm: 0.231 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        "validation loss at iteration 1000 | lm loss value: 2.724416E+00 | lm loss PPL: 1.524750E+01 |",
        "saving checkpoint at iteration    1000 to /ckpt in torch_dist format",
    ],
    "-": [
        "iter 5: loss 10.7294, time 923.15ms, mfu 36.47%",
        "iter 1631: loss 4.0863, time 561.94ms",
        "2023-03-22 09:32:32 step 3000: train loss 4.0390, val loss 4.0427",
        "step 5000: train loss 1.1379, train perplexity 3.1222, val loss 1.1532, val perplexity 3.1699",
        "step 1000: train loss 3.8544, val loss 3.8744, mtokens 492",
        "saving checkpoint to out",
        "tokens per iteration will be: 16,384",
        "number of parameters: 10.65M",
        "WARNING: using slow attention. Flash Attention requires PyTorch >= 2.0",
        "iter_dt 12.34ms; iter 100: train loss 2.12345",
        "1209/9500 (epoch 6.363), train_loss = 1.52250770, grad/param norm = 2.6208e-02, time/batch = 0.1708s",
        "Step 3/100 | Average reward: 0.25 | Average sequence length: 120.50",
        "{'loss': 2.1048, 'grad_norm': 2.13491, 'learning_rate': 4.99396e-05, 'epoch': 0.0}",
        "{'train_runtime': 225.8005, 'train_samples_per_second': 3.543, 'train_loss': 1.2112}",
        "Epoch 3:  33%|███▉        | 307/938 [00:01<00:02, 289.04it/s, loss=0.198, v_num=51]",
        "Epoch 4    --------------- ---- 232/291 0:00:33 • 0:00:09 7.00it/s loss: 0.398",
        "[batch=1/10]:",
        "Train memory/reserved_mem: 8.5794",
        "Train loss/train/total: 11.6153",
        "Iter 25: Train loss 1.593, Learning Rate 7.000e-05, It/sec 0.999, Tokens/sec 387.697, Trained Tokens 9699, Peak mem 8.104 GB",
        "Iter 1: Val loss 2.086, Val took 17.177s",
        "[1 | 22.35] loss=3.69 avg=3.69",
        "Training epoch 0, iteration 120/149 | lr: 3e-05 | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106",
        "[...][INFO] Train Step 1/10 | Train Loss: 32.8633 | Time Spent [Dataload: 64.5%, Forward: 16.2%, Backward: 19.3%, Metrics: 0.0%]",
        "4233.60 real        96.24 user        31.10 sys",
        "Total parameters: 275,742,784",
        "peak memory consumption: 31234 MiB",
        "Training time: 12.50s",
    ],
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", LINES)
def test_a_reader_claims_its_own_lines_and_no_others(reader: type[Reader], name: str) -> None:
    claimed = [line for line in LINES[name] if reader().read(line)]
    assert claimed == (LINES[name] if name == reader.format.name else [])


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_finds_its_line_behind_a_launchers_prefix(reader: type[Reader]) -> None:
    for line in LINES[reader.format.name]:
        plain = [{**record, "detail": None} for record in reader().read(line)]
        prefixed = reader().read(f"worker-3  | [rank0]: - {line}")
        assert [{**record, "detail": None} for record in prefixed] == plain


@pytest.mark.parametrize("reader", READERS)
def test_no_time_of_an_iteration_holds_an_evaluation(reader: type[Reader]) -> None:
    assert not reader().format.time_holds_eval


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_takes_any_line_without_a_fault(reader: type[Reader]) -> None:
    lines = [line for some in LINES.values() for line in some]
    read = reader()
    for line in lines:
        for cut in range(len(line)):
            assert isinstance(read.read(line[:cut]), list)
            assert isinstance(read.read(line[cut:]), list)
            assert isinstance(read.read(line[:cut] + "1" * 5000 + line[cut:]), list)


# nanochat


def test_nanochat_reads_the_first_generation() -> None:
    assert Nanochat().read(LINES["nanochat"][0]) == [
        {
            "kind": "iter",
            "iter": 4,
            "loss": 8.893647,
            "lr_scale": 1.0,
            "time_ms": 989.44,
            "tok_s": 529882.0,
            "mfu": 74.13,
            "total_min": 0.0,
            "max_iters": 21400,
        }
    ]
    assert Nanochat().read(LINES["nanochat"][1]) == [
        {
            "kind": "iter",
            "iter": 4245,
            "loss": 3.012123,
            "lr_scale": 1.0,
            "time_ms": 13776.73,
            "tok_s": 594.0,
            "mfu": 13.44,
            "total_min": 971.74,
            "elapsed_s": pytest.approx(58304.4),
            "max_iters": 21400,
        }
    ]


def test_nanochat_reads_the_grad_norm_of_the_second_generation() -> None:
    assert Nanochat().read(
        "step 00100/21400 (0.47%) | loss: 5.250000 | grad norm: 0.1250 | lrm: 1.00 | "
        "dt: 990.00ms | tok/sec: 529,000 | mfu: 48.00 | total time: 1.50m"
    ) == [
        {
            "kind": "iter",
            "iter": 100,
            "loss": 5.25,
            "grad_norm": 0.125,
            "lr_scale": 1.0,
            "time_ms": 990.0,
            "tok_s": 529000.0,
            "mfu": 48.0,
            "total_min": 1.5,
            "elapsed_s": pytest.approx(90.0),
            "max_iters": 21400,
        }
    ]


def test_nanochat_reads_a_line_with_epoch_and_eta() -> None:
    line = (
        "step 00019/13920 (0.14%) | loss: 6.817907 | lrm: 1.00 | dt: 681.35ms | "
        "tok/sec: 769,480 | mfu: 48.09 | epoch: 1 | total time: 0.10m | eta: 157.6m"
    )
    assert Nanochat().read(line) == [
        {
            "kind": "iter",
            "iter": 19,
            "loss": 6.817907,
            "lr_scale": 1.0,
            "time_ms": 681.35,
            "tok_s": 769480.0,
            "mfu": 48.09,
            "total_min": 0.1,
            "max_iters": 13920,
        }
    ]


def test_nanochat_says_unknown_mfu_as_none() -> None:
    line = (
        "step 09999/10000 (99.99%) | loss: 5.757840 | lrm: 0.05 | dt: 83.47ms | tok/sec: 6,134 | "
        "bf16_mfu: 0.00 | epoch: 1 pq: 0 rg: 14 | total time: 13.84m | eta: 0.0m"
    )
    assert Nanochat().read(line) == [
        {
            "kind": "iter",
            "iter": 9999,
            "loss": 5.75784,
            "lr_scale": 0.05,
            "time_ms": 83.47,
            "tok_s": 6134.0,
            "mfu": None,
            "total_min": 13.84,
            "elapsed_s": pytest.approx(830.4),
            "max_iters": 10000,
        }
    ]


def test_nanochat_reads_bf16_mfu_as_mfu() -> None:
    line = (
        "step 00499/182414 (0.27%) | loss: 6.397844 | lrm: 1.00 | dt: 3830.24ms | tok/sec: 8,555 | "
        "bf16_mfu: 4.03 | epoch: 1 pq: 0 rg: 33 | total time: 63.01m | eta: 23441.6m"
    )
    assert Nanochat().read(line) == [
        {
            "kind": "iter",
            "iter": 499,
            "loss": 6.397844,
            "lr_scale": 1.0,
            "time_ms": 3830.24,
            "tok_s": 8555.0,
            "mfu": 4.03,
            "total_min": 63.01,
            "elapsed_s": pytest.approx(3780.6),
            "max_iters": 182414,
        }
    ]


def test_nanochat_reads_midtraining_without_a_last_step() -> None:
    line = (
        "step 00042 (12.50%) | loss: 1.500000 | lrm: 0.80 | dt: 700.00ms | tok/sec: 749,000 | "
        "mfu: 47.50 | epoch: 1 | total time: 0.25m"
    )
    assert Nanochat().read(line) == [
        {
            "kind": "iter",
            "iter": 42,
            "loss": 1.5,
            "lr_scale": 0.8,
            "time_ms": 700.0,
            "tok_s": 749000.0,
            "mfu": 47.5,
            "total_min": 0.25,
        }
    ]


def test_nanochat_reads_the_old_finetuning_lines() -> None:
    line = "Step 00003/00700 | Training loss: 1.234567| lrm: 0.995714| num_tokens: 12,345"
    assert Nanochat().read(line) == [
        {
            "kind": "iter",
            "iter": 3,
            "loss": 1.234567,
            "lr_scale": 0.995714,
            "tokens": 12345.0,
            "max_iters": 700,
        }
    ]
    assert Nanochat().read("Step 00100 | Validation loss: 1.017500") == [
        {"kind": "eval", "iter": 100, "val_loss": 1.0175}
    ]


def test_nanochat_keeps_fields_that_a_fork_puts_between() -> None:
    line = "step 00001/00010 (10%) | Budget: 3 of 9 | loss: nan | peak_mem: 3GB | dt: 5.00ms"
    (record,) = Nanochat().read(line)
    assert math.isnan(record.pop("loss"))
    assert record == {"kind": "iter", "iter": 1, "time_ms": 5.0, "max_iters": 10}


def test_nanochat_reads_bits_per_byte_not_as_a_loss() -> None:
    assert Nanochat().read("Step 10000 | Validation bpb: 1.946162") == [
        {"kind": "eval", "iter": 10000, "val_bpb": 1.946162}
    ]


def test_nanochat_reads_the_core_metric() -> None:
    assert Nanochat().read("Step 02000 | CORE metric: 0.2087") == [
        {"kind": "event", "name": "core", "iter": 2000, "value": 0.2087}
    ]


def test_nanochat_reads_the_gpu_and_its_peak() -> None:
    assert Nanochat().read("GPU: NVIDIA A100-SXM4-80GB | Peak FLOPS (BF16): 3.12e+14") == [
        {"kind": "start", "device": "NVIDIA A100-SXM4-80GB", "peak_tflops": 312.0}
    ]
    assert Nanochat().read("GPU: NVIDIA GB10 | Peak FLOPS (BF16): inf") == [
        {"kind": "start", "device": "NVIDIA GB10"}
    ]


def test_nanochat_reads_the_batch() -> None:
    assert Nanochat().read("Total batch size 524,288 => gradient accumulation steps: 4") == [
        {
            "kind": "start",
            "tokens_per_iter": 524288.0,
            "config": {"gradient_accumulation_steps": 4},
        }
    ]


def test_nanochat_reads_the_other_sizes() -> None:
    assert Nanochat().read("Estimated FLOPs per token: 3.491758e+09") == [
        {"kind": "start", "flops_per_token": 3.491758e9}
    ]
    assert Nanochat().read("Peak memory usage: 75422.02MiB") == [
        {"kind": "start", "peak_memory_mb": 75422.02}
    ]


def test_nanochat_reads_its_warnings() -> None:
    peak = "Peak flops undefined for: NVIDIA GB10, MFU will show as 0%"
    slow = "WARNING: Flash Attention 3 not available, using PyTorch SDPA fallback"
    dtype = (
        "WARNING: Flash Attention 3 only supports bf16, but COMPUTE_DTYPE=torch.float32. "
        "Using PyTorch SDPA fallback"
    )
    assert Nanochat().read(peak) == [{"kind": "event", "name": "unknown-peak", "detail": peak}]
    # SDPA is fused attention too: this is no slow attention.
    assert Nanochat().read(slow) == [{"kind": "start", "attention": "PyTorch SDPA"}]
    assert Nanochat().read(dtype) == [{"kind": "start", "attention": "PyTorch SDPA"}]
    assert Nanochat().read("✓ Using Flash Attention 3: efficient, new and awesome.") == []


def test_nanochat_reads_checkpoint_collection_and_end() -> None:
    saved = (
        "2026-03-12 15:37:25,812 - nanochat.checkpoint_manager - INFO - "
        "Saved model parameters to: /root/.cache/nanochat/base_checkpoints/d3/model_000500.pt"
    )
    assert Nanochat().read(saved) == [{"kind": "checkpoint", "iter": 500}]
    assert Nanochat().read("[GC rank3] gen2: 713.5ms collected 340341 objects") == [
        {"kind": "event", "name": "gc", "time_ms": 713.5}
    ]
    assert Nanochat().read("Total training time: 13.84m") == [{"kind": "end", "train_ms": 830400.0}]


# modded-nanogpt


def test_modded_takes_a_steps_time_as_a_difference() -> None:
    reader = Modded()
    assert reader.read("step:0/6200 val_loss:10.9264 train_time:285ms step_avg:nanms") == [
        {
            "kind": "eval",
            "iter": 0,
            "val_loss": 10.9264,
            "train_time_ms": 285.0,
            "max_iters": 6200,
        }
    ]
    assert reader.read("step:1/6200 train_loss:10.9184 train_time:74701ms step_avg:nanms") == [
        {
            "kind": "iter",
            "iter": 1,
            "loss": 10.9184,
            "time_ms": 74416.0,
            "train_time_ms": 74701.0,
            "window": 1,
            "max_iters": 6200,
        }
    ]


def test_modded_knows_no_time_where_the_clock_was_zeroed() -> None:
    reader = Modded()
    times = [
        record["time_ms"]
        for line in (
            "step:9/6200 train_loss:6.9016 train_time:77462ms step_avg:nanms",
            "step:10/6200 train_loss:6.7231 train_time:77676ms step_avg:nanms",
            "step:11/6200 train_loss:6.6933 train_time:214ms step_avg:nanms",
            "step:12/6200 train_loss:6.6519 train_time:428ms step_avg:nanms",
            "step:13/6200 train_loss:6.5125 train_time:641ms step_avg:213.66ms",
            "step:60/6200 train_loss:5.7158 train_time:10665ms step_avg:213.30ms",
        )
        for record in reader.read(line)
    ]
    assert times == [None, 214.0, None, 214.0, 213.0, (10665 - 641) / 47]


def test_modded_sees_a_zeroing_that_hides_between_two_lines() -> None:
    reader = Modded()
    reader.read("step:2/6200 train_loss:8.6834 train_time:2965ms step_avg:nanms")
    assert reader.read("step:60/6200 train_loss:5.7158 train_time:10665ms step_avg:213.30ms") == [
        {
            "kind": "iter",
            "iter": 60,
            "loss": 5.7158,
            "time_ms": 10665 / 50,
            "train_time_ms": 10665.0,
            "elapsed_s": 10.665,
            "window": 50,
            "max_iters": 6200,
        }
    ]


def test_modded_reads_lines_without_a_loss() -> None:
    reader = Modded()
    assert reader.read("step:59/1480 train_time:6997ms step_avg:142.80ms") == [
        {
            "kind": "iter",
            "iter": 59,
            "loss": None,
            "time_ms": None,
            "train_time_ms": 6997.0,
            "elapsed_s": 6.997,
            "window": None,
            "max_iters": 1480,
        }
    ]


def test_modded_reads_the_clock_that_starts_at_step_0() -> None:
    reader = Modded()
    reader.read("step:0/1770 val_loss:10.8258 train_time:0ms step_avg:0.03ms")
    assert reader.read("step:1/1770 train_time:70ms step_avg:70.50ms") == [
        {
            "kind": "iter",
            "iter": 1,
            "loss": None,
            "time_ms": 70.0,
            "train_time_ms": 70.0,
            "elapsed_s": 0.07,
            "window": 1,
            "max_iters": 1770,
        }
    ]


def test_modded_reads_the_newest_generation_to_its_end() -> None:
    reader = Modded()
    reader.read("step:0/1390 val_loss:10.8296 train_time:0ms step_avg:0.04ms")
    assert reader.read("step:60/1390 train_time:1959ms step_avg:32.64ms") == [
        {
            "kind": "iter",
            "iter": 60,
            "loss": None,
            "time_ms": 32.65,
            "train_time_ms": 1959.0,
            "elapsed_s": 1.959,
            "window": 60,
            "max_iters": 1390,
        }
    ]
    assert reader.read("step:1390/1390 val_loss:3.2821 train_time:80694ms step_avg:58.05ms") == [
        {
            "kind": "eval",
            "iter": 1390,
            "val_loss": 3.2821,
            "train_time_ms": 80694.0,
            "elapsed_s": 80.694,
            "max_iters": 1390,
        }
    ]
    assert reader.read("peak memory allocated: 30908 MiB reserved: 46472 MiB") == [
        {"kind": "start", "peak_memory_mb": 30908.0, "reserved_memory_mb": 46472.0}
    ]
    assert reader.read("peak memory consumption: 31234 MiB") == [
        {"kind": "start", "peak_memory_mb": 31234.0}
    ]


def test_modded_reads_a_clock_in_seconds() -> None:
    reader = Modded()
    reader.read("step:0/4875 val_loss:10.82584 train_time:0.000s step_avg:nanms")
    assert reader.read("step:16/4875 train_time:7.683s step_avg:480.18ms") == [
        {
            "kind": "iter",
            "iter": 16,
            "loss": None,
            "time_ms": 480.1875,
            "train_time_ms": 7683.0,
            "elapsed_s": 7.683,
            "window": 16,
            "max_iters": 4875,
        }
    ]
    assert reader.read("step:2125/3350 val_loss:3.42888 train_time:316.910s step_avg:147.02ms") == [
        {
            "kind": "eval",
            "iter": 2125,
            "val_loss": 3.42888,
            "train_time_ms": 316910.0,
            "elapsed_s": 316.91,
            "max_iters": 3350,
        }
    ]


def test_modded_counts_the_wait_at_a_validation_to_the_next_step() -> None:
    reader = Modded()
    reader.read("step:124/1770 train_time:11900ms step_avg:95.97ms")
    reader.read("step:125/1770 train_time:12000ms step_avg:96.00ms")
    reader.read("step:125/1770 val_loss:4.5000 train_time:12040ms step_avg:96.32ms")
    (record,) = reader.read("step:126/1770 train_time:12100ms step_avg:96.03ms")
    assert record["time_ms"] == 100.0


def test_modded_starts_anew_with_a_second_run() -> None:
    reader = Modded()
    reader.read("step:1770/1770 train_time:170000ms step_avg:96.05ms")
    (record,) = reader.read("step:1/1770 train_time:180000ms step_avg:nanms")
    assert record["time_ms"] is None


def test_modded_does_not_read_its_own_source() -> None:
    for line in (
        'print0(f"step:{step}/{args.num_iterations} val_loss:{val_loss:.4f} '
        'train_time:{training_time_ms:.0f}ms step_avg:{training_time_ms/(timed_steps-1):.2f}ms")',
        'print0(f"peak memory allocated: {torch.cuda.max_memory_allocated() // 1024 // 1024} MiB")',
        "train_time: float = 0.0  # step:1/2",
    ):
        assert Modded().read(line) == []


# llm.c


def test_llmc_reads_the_trainer_for_the_cpu() -> None:
    reader = LlmC()
    assert reader.read("val loss 5.252026") == [{"kind": "eval", "iter": 0, "val_loss": 5.252026}]
    assert reader.read("step 0: train loss 5.356189 (took 1452.121000 ms)") == [
        {"kind": "iter", "iter": 0, "loss": 5.356189, "time_ms": 1452.121}
    ]
    assert reader.read("step 1: train loss 4.301069 (took 1288.673000 ms)") == [
        {"kind": "iter", "iter": 1, "loss": 4.301069, "time_ms": 1288.673}
    ]


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("step 7: train loss 3.912345 (took 812.500000 ms)", {"max_iters": None}),
        ("step 7/20: train loss 3.912345 (812.500000 ms)", {}),
        ("step    7/20: train loss 3.912345 (812.500000 ms, 5041 tok/s)", {"tok_s": 5041.0}),
        (
            "step    7/20: train loss 3.912345 (acc 3.900000) (812.500000 ms, 5041 tok/s)",
            {"tok_s": 5041.0},
        ),
        (
            "step    7/20: train loss 3.912345 norm 1.2500 (812.50 ms, 5041 tok/s)",
            {"grad_norm": 1.25, "tok_s": 5041.0},
        ),
        (
            "step    7/20: train loss 3.912345 norm 1.2500 lr 3.00e-04 (812.50 ms, 5041 tok/s)",
            {"grad_norm": 1.25, "lr": 3e-4, "tok_s": 5041.0},
        ),
        (
            "step    7/20 | train loss  3.912345 | norm 1.2500 | lr 3.00e-04 | 812.50 ms | "
            "41.5% A100 fp16 MFU | 5041 tok/s",
            {"grad_norm": 1.25, "lr": 3e-4, "tok_s": 5041.0, "mfu": 41.5},
        ),
        (
            "step    7/20 | train loss  3.912345 | norm 1.2500 | lr 3.00e-04 | 812.50 ms | "
            "41.5% bf16 MFU | 5041 tok/s",
            {"grad_norm": 1.25, "lr": 3e-4, "tok_s": 5041.0, "mfu": 41.5},
        ),
        (
            "step    7/20 | loss 3.912345 (+1.25z)| norm 1.2500 (-0.50z)| lr 3.00e-04 | 812.50 ms | "
            "41.5% bf16 MFU | 5041 tok/s",
            {"grad_norm": 1.25, "lr": 3e-4, "tok_s": 5041.0, "mfu": 41.5},
        ),
        (
            "step    7/20 | train loss 3.912345 | norm 1.2500 | lr 3.00e-04 | "
            "(812.50 ms | 5041 tok/s)",
            {"grad_norm": 1.25, "lr": 3e-4, "tok_s": 5041.0},
        ),
    ],
)
def test_llmc_reads_every_generation(line: str, more: dict[str, float | None]) -> None:
    wanted = {
        "kind": "iter",
        "iter": 7,
        "loss": 3.912345,
        "time_ms": 812.5,
        "max_iters": 20,
        **more,
    }
    assert LlmC().read(line) == [{k: v for k, v in wanted.items() if v is not None}]


def test_llmc_takes_an_empty_z_score_for_no_nan() -> None:
    line = (
        "step    1/3 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2511.08 ms | "
        "40.0% bf16 MFU | 208790 tok/s"
    )
    assert LlmC().read(line) == [
        {
            "kind": "iter",
            "iter": 1,
            "loss": 11.032358,
            "time_ms": 2511.08,
            "tok_s": 208790.0,
            "grad_norm": 22.1414,
            "lr": 8.57e-7,
            "mfu": 40.0,
            "max_iters": 3,
        }
    ]


def test_llmc_says_unknown_mfu_as_none() -> None:
    line = (
        "step   61/74 | loss 3.208939 (+nanz)| norm 1.4800 (+nanz)| lr 3.00e-04 | 44.57 ms | "
        "-100.0% bf16 MFU | 91886 tok/s"
    )
    assert LlmC().read(line) == [
        {
            "kind": "iter",
            "iter": 61,
            "loss": 3.208939,
            "time_ms": 44.57,
            "tok_s": 91886.0,
            "grad_norm": 1.48,
            "lr": 3e-4,
            "mfu": None,
            "max_iters": 74,
        }
    ]


def test_llmc_reads_a_loss_that_is_nan() -> None:
    line = "step    7/20 | loss -nan (+nanz)| norm -nan (+nanz)| lr 3.00e-04 | 812.50 ms | 1 tok/s"
    (record,) = LlmC().read(line)
    assert math.isnan(record["loss"])
    assert math.isnan(record["grad_norm"])


def test_llmc_gives_a_validation_the_iteration_before_it() -> None:
    reader = LlmC()
    reader.read(
        "step   10/10 | train loss 9.588631 | norm 6.3098 | lr 8.57e-06 | (9.5 ms | 3 tok/s)"
    )
    assert reader.read("val loss 9.483725") == [{"kind": "eval", "iter": 10, "val_loss": 9.483725}]
    assert reader.read("HellaSwag: 2987/10042 = 0.297451") == [
        {"kind": "event", "name": "hellaswag", "iter": 10, "value": 0.297451}
    ]
    assert reader.read("evaluating HellaSwag: 10/79") == []


def test_llmc_reads_main_log() -> None:
    reader = LlmC()
    assert reader.read("s:0 tel:11.0092") == [{"kind": "eval", "iter": 0, "val_loss": 11.0092}]
    assert reader.read("s:1 trl:10.9598 lr:0.000002 norm:15.24") == [
        {"kind": "iter", "iter": 1, "loss": 10.9598, "lr": 0.000002, "grad_norm": 15.24}
    ]
    assert reader.read("s:250 eval:0.2974") == [
        {"kind": "event", "name": "hellaswag", "iter": 250, "value": 0.2974}
    ]


def test_llmc_reads_the_log_of_the_first_modded_record() -> None:
    reader = LlmC()
    assert reader.read("s:0 tel:10.968871") == [{"kind": "eval", "iter": 0, "val_loss": 10.968871}]
    assert reader.read("s:0 trl:10.965596") == [{"kind": "iter", "iter": 0, "loss": 10.965596}]
    assert reader.read("s:128 tel:6.034447") == [
        {"kind": "eval", "iter": 128, "val_loss": 6.034447}
    ]


def test_llmc_reads_a_throttled_gpu() -> None:
    status = (
        "compute 98.5% | memory: 61.2% | fan: 45% | 1410 MHz / 1410 MHz | "
        "399 W / 400 W | 66°C / 92°C | "
    )
    for reason in ("power cap", "thermal cap", "other cap"):
        assert LlmC().read(status + reason) == [
            {"kind": "event", "name": "throttle", "iter": None, "detail": reason}
        ]
    assert LlmC().read(status + "no cap") == []


def test_llmc_reads_a_skipped_update() -> None:
    reader = LlmC()
    reader.read("step    7/20: train loss 3.912345 (812.500000 ms, 5041 tok/s)")
    assert reader.read("skipping update due to grad z-score of 6.125000") == [
        {
            "kind": "event",
            "name": "skipped-update",
            "iter": 7,
            "detail": "grad z-score of 6.125000",
        }
    ]


def test_llmc_reads_the_table_above_the_run() -> None:
    assert LlmC().read("| peak TFlops           | 97.5             |") == [
        {"kind": "start", "peak_tflops": 97.5}
    ]
    assert LlmC().read("| device                | NVIDIA GeForce RTX 4080     |") == [
        {"kind": "start", "device": "NVIDIA GeForce RTX 4080"}
    ]
    assert LlmC().read("| num_parameters        | 124475904        |") == [
        {"kind": "start", "parameters": 124475904.0}
    ]
    assert LlmC().read("| total batch size      | 524288           |") == [
        {"kind": "start", "tokens_per_iter": 524288.0}
    ]


def test_llmc_takes_no_negative_peak() -> None:
    assert LlmC().read("| peak TFlops           | -1.0             |") == []


def test_llmc_reads_checkpoint_and_end() -> None:
    reader = LlmC()
    assert reader.read("Writing checkpoint at step 5000") == [{"kind": "checkpoint", "iter": 5000}]
    assert reader.read("total average iteration time: 2502.328263 ms") == [
        {"kind": "end", "mean_time_ms": 2502.328263}
    ]
    assert reader.read("final 20 iters avg: 812.500ms") == [{"kind": "end", "mean_time_ms": 812.5}]
    reader.read("step    7/20: train loss 3.912345 (812.500000 ms, 5041 tok/s)")
    assert reader.read("peak memory consumption: 31234 MiB") == [
        {"kind": "start", "peak_memory_mb": 31234.0}
    ]


# litgpt


def test_litgpt_reads_the_present_generation() -> None:
    assert LitGPT().read(LINES["litgpt"][0]) == [
        {"kind": "eval", "iter": None, "val_loss": 2.861},  # of an earlier iteration
        {
            "kind": "iter",
            "iter": 3050700,
            "loss": 2.846,
            "time_ms": 112.2,
            "step": 610140,
            "is_update": True,
        },
    ]


def test_litgpt_makes_no_evaluation_of_a_loss_not_there() -> None:
    line = (
        "Epoch 1 | iter 2 step 0 | loss train: 10.979, val: n/a | "
        "iter time: 3194.35 ms remaining time: 0:10:00"
    )
    assert LitGPT().read(line) == [
        {"kind": "iter", "iter": 2, "loss": 10.979, "time_ms": 3194.35, "step": 0}
    ]


def test_litgpt_reads_the_validation() -> None:
    assert LitGPT().read("iter 4800: val loss 1.7258, val time: 3778.02 ms") == [
        {"kind": "eval", "iter": 4800, "val_loss": 1.7258, "time_ms": 3778.02}
    ]


def test_litgpt_reads_the_winter_of_2023() -> None:
    line = "iter 1760 | step 220: loss 1.5947, iter time: 263.85 ms (optimizer.step)"
    assert LitGPT().read(line) == [
        {
            "kind": "iter",
            "iter": 1760,
            "loss": 1.5947,
            "time_ms": 263.85,
            "step": 220,
            "is_update": True,
        }
    ]


def test_litgpt_reads_the_summer_of_2023() -> None:
    assert LitGPT().read("iter 0: loss 3.5421, time: 174.07ms") == [
        {"kind": "iter", "iter": 0, "loss": 3.5421, "time_ms": 174.07}
    ]


def test_litgpt_reads_a_tpu_that_prints_no_loss() -> None:
    line = "[rank: 0] iter 34 step 35: iter time: 3372.20ms (optimizer.step)"
    assert LitGPT().read(line) == [
        {
            "kind": "iter",
            "iter": 34,
            "loss": None,
            "time_ms": 3372.2,
            "step": 35,
            "is_update": True,
        }
    ]


def test_litgpt_reads_a_fork_that_tells_the_last_iteration() -> None:
    line = (
        "iter 8/4000 step 1/500: loss 10.5, iter time: 812.50ms (optimizer.step) "
        "remaining time: 0.90 hours."
    )
    assert LitGPT().read(line) == [
        {
            "kind": "iter",
            "iter": 8,
            "loss": 10.5,
            "time_ms": 812.5,
            "step": 1,
            "is_update": True,
            "max_iters": 4000,
        }
    ]


def test_litgpt_reads_checkpoints() -> None:
    line = "Saving checkpoint to 'out/pretrain/step-00000220/lit_model.pth'"
    assert LitGPT().read(line) == [{"kind": "checkpoint", "step": 220}]
    assert LitGPT().read("Saving checkpoint to '/out/final'") == [{"kind": "checkpoint"}]


def test_litgpt_reads_the_end() -> None:
    reader = LitGPT()
    assert reader.read("Final evaluation | val loss: 2.861 | val ppl: 17.479") == [
        {"kind": "eval", "val_loss": 2.861, "final": True}
    ]
    assert reader.read("| - Total tokens  : 1,638,400") == [{"kind": "end", "tokens": 1638400.0}]
    assert reader.read("| - Training Time : 225.50 s") == [{"kind": "end", "train_ms": 225500.0}]
    assert reader.read("| - Tok/sec       : 12.34 tok/s") == [
        {"kind": "end", "stated_tok_s": 12.34}
    ]
    assert reader.read("| - Training Time             :  12.50 s") == [
        {"kind": "end", "train_ms": 12500.0}
    ]


def test_litgpt_takes_common_lines_only_behind_its_own() -> None:
    reader = LitGPT()
    reader.read("Time to instantiate model: 0.12 seconds.")
    assert reader.read("Total parameters: 1,100,048,384") == [
        {"kind": "start", "parameters": 1100048384.0}
    ]
    assert reader.read("Training time: 12.50s") == [{"kind": "end", "train_ms": 12500.0}]


# torchtitan


def test_torchtitan_reads_the_present_generation() -> None:
    assert Torchtitan().read(LINES["torchtitan"][0]) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 14,
            "loss": 3.24405,
            "grad_norm": 0.8319,
            "memory_gib": 9.46,
            "memory_percent": 64.99,
            "tok_s": 7282.0,
            "tflops": 0.52,
            "mfu": 0.17,
        }
    ]
    assert Torchtitan().read(LINES["torchtitan"][1]) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 4,
            "loss": 7.62585,
            "grad_norm": 26.625,
            "memory_gib": 66.91,
            "memory_percent": 37.51,
            "tok_s": 10050.0,
            "tflops": 314.71,
            "mfu": 13.99,
        }
    ]


def test_torchtitan_reads_lines_without_a_grad_norm() -> None:
    assert Torchtitan().read(LINES["torchtitan"][2]) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 200,
            "loss": 6.1384,
            "memory_gib": 49.66,
            "memory_percent": 52.28,
            "tok_s": 5856.0,
            "tflops": 339.16,
            "mfu": 34.29,
        }
    ]
    assert Torchtitan().read(LINES["torchtitan"][4]) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 210,
            "loss": 6.0388,
            "memory_gib": 49.66,
            "memory_percent": 52.28,
            "tok_s": 5593.0,
            "tflops": 323.92,
            "mfu": 32.75,
        }
    ]


def test_torchtitan_reads_words_per_second() -> None:
    assert Torchtitan().read("step:  1  loss: 10.8423  wps:   1,234  peak_memory: 41.25%") == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 1,
            "loss": 10.8423,
            "tok_s": 1234.0,
            "memory_percent": 41.25,
            "mfu": None,
        }
    ]
    line = "step: 10  loss:  8.5000  memory: 12.50GiB(15.75%)  wps: 9,001  mfu: 40.25%"
    assert Torchtitan().read(line) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 10,
            "loss": 8.5,
            "memory_gib": 12.5,
            "memory_percent": 15.75,
            "tok_s": 9001.0,
            "mfu": 40.25,
        }
    ]


def test_torchtitan_says_mfu_not_available_as_none() -> None:
    line = (
        "step: 10  loss:  8.50000  memory: 12.50GiB(15.75%)  tps: 9,001  tflops: 1,203.50  mfu: N/A"
    )
    assert Torchtitan().read(line) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 10,
            "loss": 8.5,
            "memory_gib": 12.5,
            "memory_percent": 15.75,
            "tok_s": 9001.0,
            "tflops": 1203.5,
            "mfu": None,
        }
    ]


def test_torchtitan_reads_a_fork_that_tells_the_last_step() -> None:
    line = (
        "step: 640/644 = 99.3789%  loss:  6.2116  memory: 87.04GiB(93.48%)  tps: 5,000  mfu: 30.5%"
    )
    assert Torchtitan().read(line) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 640,
            "loss": 6.2116,
            "memory_gib": 87.04,
            "memory_percent": 93.48,
            "tok_s": 5000.0,
            "mfu": 30.5,
            "max_iters": 644,
        }
    ]


def test_torchtitan_reads_a_validation() -> None:
    line = "validate step: 20  loss:  6.5432  memory: 49.66GiB(52.28%)  tps: 9,001"
    assert Torchtitan().read(line) == [
        {"kind": "eval", "iter": 20, "val_loss": 6.5432, "tok_s": 9001.0}
    ]


def test_torchtitan_makes_one_checkpoint_of_a_save() -> None:
    reader = Torchtitan()
    assert reader.read("[titan] Saving the checkpoint (or staging if async is enabled).") == []
    assert reader.read(
        "[rank0]:2025-04-01 00:25:59,616 - root - INFO - "
        "Finished saving the checkpoint (or staging if async is enabled)in 5.53 seconds."
    ) == [{"kind": "checkpoint", "time_ms": 5530.0}]
    assert reader.read("[titan] Finished loading the checkpoint in 3.00 seconds.") == []


def test_torchtitan_knows_the_step_of_the_last_checkpoint() -> None:
    reader = Torchtitan()
    line = "[titan] Saving a model only checkpoint in torch.bfloat16 at last step, step 10."
    assert reader.read(line) == []
    assert reader.read("[titan] Last step checkpoint completed in 0.12s") == [
        {"kind": "checkpoint", "time_ms": 120.0, "iter": 10}
    ]


def test_torchtitan_reads_what_dents_a_window() -> None:
    assert Torchtitan().read(LINES["torchtitan"][3]) == [
        {"kind": "event", "name": "profiler", "time_ms": 220.0}
    ]
    assert Torchtitan().read(LINES["torchtitan"][5]) == [
        {"kind": "event", "name": "gc", "time_ms": 60.0}
    ]
    assert Torchtitan().read("[GC] Performing periodic GC collection took 0.06 seconds") == [
        {"kind": "event", "name": "gc", "time_ms": 60.0}
    ]


def test_torchtitan_reads_an_unknown_peak() -> None:
    line = "[titan] - WARNING - Peak flops undefined for: NVIDIA L4, fallback to A100"
    assert Torchtitan().read(line) == [{"kind": "event", "name": "unknown-peak", "detail": line}]


# lingua


def test_lingua_reads_seconds_as_milliseconds() -> None:
    assert Lingua().read(LINES["lingua"][0]) == [
        {
            "kind": "iter",
            "iter": 2,
            "acc_step": 0.0,
            "loss": 12.1832,
            "grad_norm": 10.8,
            "tflops": 197.0,
            "tok_s": 18400.0,
            "time_ms": 890.8,
            "data_ms": 1.0,
            "lr": 6e-7,
            "memory_percent": 59.0,
            "power_w": 392.956,
        }
    ]


def test_lingua_reads_a_long_wait_for_data() -> None:
    line = (
        "... step: 1  acc: 0  loss: 12.2087  grad: 1.06e+01  flops: 4.25e+12  wps: 3.95e+02  "
        "iter:  8.2273  data: 33.1016  lr: 0.00e+00  mem: 51%  pow: 96.192 W"
    )
    assert Lingua().read(line) == [
        {
            "kind": "iter",
            "iter": 1,
            "acc_step": 0.0,
            "loss": 12.2087,
            "grad_norm": 10.6,
            "tflops": 4.25,
            "tok_s": 395.0,
            "time_ms": 8227.3,
            "data_ms": 33101.6,
            "lr": 0.0,
            "memory_percent": 51.0,
            "power_w": 96.192,
        }
    ]


def test_lingua_reads_its_metrics_file() -> None:
    line = (
        '{"global_step": 2, "acc_step": 0, "speed/wps": 18400.0, "speed/FLOPS": 1.97e14, '
        '"speed/curr_iter_time": 0.8908, "speed/data_load_time": 0.001, "optim/grad_norm": 10.8, '
        '"optim/lr": 6e-07, "optim/total_tokens": 65536, "memory/max_active_pct": 59.5, '
        '"loss/out": 12.1832, "created_at": "2024-10-19T18:47:38+00:00"}'
    )
    assert Lingua().read(line) == [
        {
            "kind": "iter",
            "iter": 2,
            "acc_step": 0.0,
            "loss": 12.1832,
            "grad_norm": 10.8,
            "tflops": 197.0,
            "tok_s": 18400.0,
            "time_ms": 890.8,
            "data_ms": 1.0,
            "lr": 6e-7,
            "tokens": 65536.0,
            "memory_percent": 59.5,
        }
    ]


def test_lingua_leaves_others_json_alone() -> None:
    for line in (
        '{"global_step": 2, "loss": 3.5}',
        '{"global_step": "two", "loss/out": 3.5, "speed/curr_iter_time": 1}',
        '{"global_step": 2, "loss/out": null, "speed/curr_iter_time": 1}',
        '{"global_step": 2, "loss/out": true, "speed/curr_iter_time": true}',
        '{"global_step": true, "loss/out": 3.5, "speed/curr_iter_time": 1}',
        '{"global_step": 2, "loss/out": 3.5, "speed/curr',
        '[{"global_step": 2}]',
        "{" * 100_000 + '"global_step"',
        '{"global_step":' * 60_000,
    ):
        assert Lingua().read(line) == []


def test_lingua_takes_an_integer_of_any_size() -> None:
    line = '{"global_step": 2, "loss/out": ' + "1" * 400 + ', "speed/curr_iter_time": 1}'
    assert Lingua().read(line) == [{"kind": "iter", "iter": 2, "loss": math.inf, "time_ms": 1000.0}]


def test_lingua_reads_collection_and_checkpoint() -> None:
    prefix = "0: INFO    24-10-19 18:47:38.910772 - 0:00:50 - "
    assert Lingua().read(prefix + "garbage collection") == [{"kind": "event", "name": "gc"}]
    assert Lingua().read(prefix + "Saving to: /dump/checkpoints/0000001000") == [
        {"kind": "checkpoint", "iter": 1000}
    ]
    assert Lingua().read("disabled garbage collection") == []


# Megatron


def test_megatron_reads_an_iteration() -> None:
    assert Megatron().read(LINES["megatron"][0]) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 122,
            "loss": 2.50422,
            "time_ms": 86545.2,
            "samples": 124928.0,
            "lr": 9.15e-6,
            "global_batch_size": 1024.0,
            "loss_scale": 1.0,
            "grad_norm": 0.231,
            "num_skipped": 0.0,
            "num_nan": 0.0,
            "max_iters": 250000,
        }
    ]


def test_megatron_reads_a_fork_in_seconds_with_throughput() -> None:
    line = (
        "[default3]: iteration       10/  292968 | consumed samples:        10240 | "
        "elapsed time per iteration (s): 35.5 | throughput per GPU (TFLOP/s/GPU): 134.0 | "
        "my own number: 3 | number of skipped iterations:   2 | number of nan iterations:   1 |"
    )
    assert Megatron().read(line) == [
        {
            "kind": "iter",
            "is_mean": True,
            "iter": 10,
            "loss": None,
            "time_ms": 35500.0,
            "samples": 10240.0,
            "tflops": 134.0,
            "num_skipped": 2.0,
            "num_nan": 1.0,
            "max_iters": 292968,
        }
    ]


def test_megatron_reads_a_validation_but_no_test() -> None:
    line = (
        "validation loss at iteration 1000 | lm loss value: 2.724416E+00 | lm loss PPL: 1.5E+01 |"
    )
    assert Megatron().read(line) == [{"kind": "eval", "iter": 1000, "val_loss": 2.724416}]
    line = "validation loss at iteration 1000 on validation set | lm loss value: 2.5E+00 |"
    assert Megatron().read(line) == [{"kind": "eval", "iter": 1000, "val_loss": 2.5}]
    line = "validation loss at iteration 1000 on test set | lm loss value: 2.5E+00 |"
    assert Megatron().read(line) == []


def test_megatron_makes_one_checkpoint_of_start_and_end_of_a_save() -> None:
    reader = Megatron()
    assert reader.read("saving checkpoint at iteration    1000 to /ckpt in torch format") == [
        {"kind": "checkpoint", "iter": 1000}
    ]
    reader.read("iteration 1001/ 2000 | elapsed time per iteration (ms): 86.5 | lm loss: 2.5 |")
    assert reader.read("successfully saved checkpoint from iteration    1000 to /ckpt") == []
    assert reader.read("successfully saved checkpoint from iteration    1500 to /ckpt") == [
        {"kind": "checkpoint", "iter": 1500}
    ]


def test_megatron_reads_a_checkpoint_again_after_a_restart() -> None:
    reader = Megatron()
    reader.read("saving checkpoint at iteration    1000 to /ckpt")
    reader.read("iteration  901/ 2000 | elapsed time per iteration (ms): 86.5 | lm loss: 2.5 |")
    assert reader.read("saving checkpoint at iteration    1000 to /ckpt") == [
        {"kind": "checkpoint", "iter": 1000}
    ]
