"""Logs of our own, Hugging Face, Lightning, Composer, minGPT and others, and what any log may say."""

# ruff: noqa: E501 (log lines are quoted whole)

import json
import math
import time

import pytest

from stepglass.logs.bars import bars
from stepglass.logs.events import records_of_any_log
from stepglass.logs.formats.charrnn import CharRNN
from stepglass.logs.formats.composer import Composer
from stepglass.logs.formats.gpt2_simple import Gpt2Fork
from stepglass.logs.formats.huggingface import HFTrainer
from stepglass.logs.formats.lightning import LightningBar, MetricsCsv
from stepglass.logs.formats.mingpt import MinGPT
from stepglass.logs.formats.mlx import MlxLM
from stepglass.logs.formats.nemo import NeMo
from stepglass.logs.formats.run_log_reader import RunLogReader
from stepglass.logs.formats.stepglass_console import StepglassConsole
from stepglass.logs.formats.trainer_history import trainer_state
from stepglass.logs.reader import Reader, Record

READERS: list[type[Reader]] = [
    StepglassConsole,
    RunLogReader,
    HFTrainer,
    LightningBar,
    MetricsCsv,
    Composer,
    MinGPT,
    CharRNN,
    MlxLM,
    Gpt2Fork,
    NeMo,
]


def read(reader: Reader, text: str) -> list[Record]:
    """All records of a log given as text, what is left at its end included."""
    records = [record for line in text.splitlines() for record in reader.read(line.strip())]
    flush = getattr(reader, "flush", None)
    return records + (flush() if flush else [])


def holds(record: Record, **expected: object) -> bool:
    """Whether the record says what is expected; numbers nearly, as they were computed."""
    found = {key: record.get(key, "absent") for key in expected}
    wanted = {
        key: pytest.approx(value) if isinstance(value, float) else value
        for key, value in expected.items()
    }
    assert found == wanted
    return True


# -- whose line is it ----------------------------------------------------------------------------

OWN = {
    HFTrainer: [
        "{'loss': 2.1048, 'grad_norm': 2.1349170207977295, 'learning_rate': 4.9939613526570054e-05, 'epoch': 0.0}",
        "{'loss': 1.2607, 'learning_rate': 6.31578947368421e-06, 'epoch': 0.03}",
        "{'loss': '1.499', 'grad_norm': '0.7413', 'learning_rate': '7.059e-05', 'epoch': '2.105'}",
        "{'eval_loss': '0.1002', 'eval_runtime': '353.4', 'eval_samples_per_second': '2.83', 'eval_steps_per_second': '1.415', 'epoch': '0.064'}",
        "{'train_runtime': 225.8005, 'train_samples_per_second': 3.543, 'train_steps_per_second': 0.886, 'train_loss': 1.211241865158081, 'epoch': 0.32}",
    ],
    LightningBar: [
        "Epoch 3:  33%|███▉        | 307/938 [00:01<00:02, 289.04it/s, loss=0.198, v_num=51, acc=0.211, metric_n=0.937]",
        "Epoch 1:   4%|▎         | 40/1095 [00:03<01:37, 10.84it/s, v_num=10]",
        "Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=193315]",
        "Epoch 4    --------------- ---- 232/291 0:00:33 • 0:00:09 7.00it/s loss: 0.398",
    ],
    CharRNN: [
        "1209/9500 (epoch 6.363), train_loss = 1.52250770, grad/param norm = 2.6208e-02, time/batch = 0.1708s"
    ],
    MinGPT: ["iter_dt 12.30ms; iter 100: train loss 2.10342"],
    MlxLM: [
        "Iter 25: Train loss 1.593, Learning Rate 7.000e-05, It/sec 0.999, Tokens/sec 387.697, Trained Tokens 9699, Peak mem 8.104 GB",
        "Iter 1: Val loss 2.086, Val took 17.177s",
    ],
    Gpt2Fork: ["[1 | 22.35] loss=3.69 avg=3.69"],
    NeMo: [
        "Training epoch 0, iteration 120/149 | lr: 3e-05 | consumed_samples: 121 | global_batch_size: 1 | global_step: 120 | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106"
    ],
    StepglassConsole: [
        "step 250: train loss 1.9639, val loss 2.0676",
        "iter 250: loss 2.0307, time 90796.41ms, mfu 0.43%",
        "2023-03-22 09:32:52 iter 3010: loss nan, time 1019.95ms, mfu 14.12%",
        "iter 1631: loss 4.0863, time 561.94ms",
        "eval 400: 549.23ms, val loss 2.4270 ± 0.0149 (240 windows)",
        "checkpoint 400: stalled 4.11ms, written in background 1.5s, 9.7 MB, the best so far",
    ],
    RunLogReader: [
        '{"kind":"iter","iter":0,"loss":4.1,"wall_ms":50.0,"phases":{"data":1.0,"forward_backward":40.0},"mfu":0.11}'
    ],
}
FOREIGN = [
    "step 00004/21400 (0.02%) | loss: 8.893647 | lrm: 1.00 | dt: 989.44ms | tok/sec: 529,882 | mfu: 74.13 | total time: 0.00m",
    "[GC rank3] gen2: 713.5ms collected 340341 objects",
    "step 09999/10000 (99.99%) | loss: 5.757840 | lrm: 0.05 | dt: 83.47ms | tok/sec: 6,134 | bf16_mfu: 0.00 | epoch: 1 pq: 0 rg: 14 | total time: 13.84m | eta: 0.0m",
    "Step 10000 | Validation bpb: 1.946162",
    "Step 00003/00700 | Training loss: 1.234567| lrm: 0.995714| num_tokens: 12,345",
    "step:0/6200 val_loss:10.9264 train_time:285ms step_avg:nanms",
    "step:60/6200 train_loss:5.7158 train_time:10665ms step_avg:213.30ms",
    "s:1 trl:10.9598 lr:0.000002 norm:15.24",
    "s:0 tel:11.0092",
    "step    1/3 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2511.08 ms | 40.0% bf16 MFU | 208790 tok/s",
    "Epoch 34 | iter 3050700 step 610140 | loss train: 2.846, val: 2.861 | iter time: 112.20 ms (step) remaining time: 0:01:54",
    "iter 4800: val loss 1.7258, val time: 3778.02 ms",
    "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24405  grad_norm:  0.8319  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%",
    "1: INFO    24-10-19 18:47:38.910772 - 0:00:50 - step: 2  acc: 0  loss: 12.1832  grad: 1.08e+01  flops: 1.97e+14  wps: 1.84e+04  iter:  0.8908  data: 0.001  lr: 6.00e-07  mem: 59%  pow: 392.956 W",
    '{"global_step": 2, "acc_step": 0, "speed/wps": 1.84e4, "speed/curr_iter_time": 0.89, "loss/out": 12.18}',
    "iteration      122/  250000 | consumed samples:       124928 | elapsed time per iteration (ms): 86545.2 | learning rate: 9.150E-06 | global batch size:  1024 | lm loss: 2.504220E+00 | loss scale: 1.0 | grad norm: 0.231 |",
    "Train time/batch: 0",
    "{'loss': loss.item(), 'epoch': epoch}",
    'print(f"Epoch {epoch}: loss={loss}")',
    "Epoch 1/10",
    "938/938 [==============================] - 3s 3ms/step - loss: 0.2982",
    "Loading checkpoint shards: 100%|██████████| 2/2 [00:01<00:00,  1.02it/s]",
    "Map: 100%|██████████| 1000/1000 [00:00<00:00, 9000.00 examples/s]",
]


@pytest.mark.parametrize("owner", OWN)
def test_a_line_is_claimed_by_its_own_reader_and_no_other(owner):
    for line in OWN[owner]:
        claimed = [make for make in READERS if make().read(line)]
        assert claimed == [owner], line


@pytest.mark.parametrize("line", FOREIGN)
def test_lines_of_other_trainers_are_claimed_by_none_of_these(line):
    claimed = [make.__name__ for make in READERS if make().read(line)]
    assert claimed == [], line
    assert records_of_any_log(line) == []


@pytest.mark.parametrize(
    "prefix", ["[rank0]: ", "0: ", "2024-01-05 10:11:12,345 INFO ", "- ", "| ", "train  | "]
)
def test_a_launchers_prefix_hides_no_line(prefix):
    for owner, lines in OWN.items():
        if owner in (RunLogReader,):
            continue  # JSON stands alone
        for line in lines:
            assert repr(owner().read(prefix + line)) == repr(owner().read(line)), line


# -- our own -------------------------------------------------------------------------------------


def test_a_run_log_passes_with_its_units_made_those_of_the_console():
    record = {
        "kind": "iter",
        "iter": 400,
        "loss": 2.42,
        "lr": 1e-3,
        "grad_norm": 0.5,
        "tokens": 768,
        "wall_ms": 598.1,
        "phases": {"data": 0.5, "forward_backward": 40.0, "optimizer": 3.0, "eval": 549.2},
        "mfu": 0.4922,
    }
    [found] = RunLogReader().read(json.dumps(record))
    assert holds(found, iter=400, time_ms=598.1, step_ms=43.5, mfu=49.22, lr=1e-3, grad_norm=0.5)
    assert found["phases"] == record["phases"]
    assert RunLogReader.format.time_holds_eval


def test_a_devices_own_clock_says_what_a_step_took():
    record = {
        "kind": "iter",
        "iter": 1,
        "wall_ms": 60.0,
        "phases": {"forward_backward": 2.0, "other": 58.0},
        "device_phases": {"data": 1.0, "forward_backward": 50.0, "optimizer": 4.0},
    }
    [found] = RunLogReader().read(json.dumps(record))
    assert holds(found, step_ms=55.0, time_ms=60.0, loss=None, mfu=None)


def test_the_start_of_a_run_log_gives_sizes_and_the_machine():
    record = {
        "kind": "start",
        "schema": 1,
        "config": {"batch_size": 12, "dtype": "auto", "device": "auto", "compile": "auto"},
        "model": {"parameters": 4368, "vocab_size": 62},
        "peak_flops": 85.4e9,
        "tokens_per_iter": 2560,
        "data": {"train": {"tokens": 180000}},
        "device": "2 cores, 1 threads",
        "device_type": "cpu",
        "dtype": "float32",
        "compile": False,
    }
    [found] = RunLogReader().read(json.dumps(record))
    assert holds(
        found,
        parameters=4368.0,
        vocab_size=62,
        train_tokens=180000.0,
        tokens_per_iter=2560,
        peak_tflops=0.0854,
        device="2 cores, 1 threads",
        device_type="cpu",
        dtype="float32",
    )
    assert found["config"] == {
        "batch_size": 12,
        "dtype": "float32",
        "device": "cpu",
        "compile": False,
    }


def test_evaluations_saves_events_and_the_end_of_a_run_log():
    lines = [
        {
            "kind": "eval",
            "iter": 5,
            "train_loss": 2.0,
            "val_loss": 2.1,
            "val_se": 0.01,
            "wall_ms": 630.5,
        },
        {"kind": "checkpoint", "iter": 5, "stall_ms": 4.0, "background_ms": 1500.0, "bytes": 9},
        {"kind": "event", "name": "signal", "iter": 5, "detail": {"name": "SIGINT"}},
        {
            "kind": "event",
            "name": "oom",
            "iter": 6,
            "detail": {"message": "CUDA out of memory. Tried to allocate 2.00 GiB."},
        },
        {
            "kind": "end",
            "reason": "signal",
            "iter": 5,
            "ledger": {"wall_ms": 65670.0, "phases": {"eval": 1.0}},
        },
    ]
    found = [record for line in lines for record in RunLogReader().read(json.dumps(line))]
    assert holds(found[0], kind="eval", time_ms=630.5, val_se=0.01)
    assert holds(found[1], kind="checkpoint", time_ms=4.0, background_ms=1500.0)
    assert holds(found[2], name="signal", detail={"name": "SIGINT"})
    assert holds(found[3], name="oom", iter=6, tried_bytes=2.0 * 2**30)
    assert found[3]["detail"].startswith("CUDA out of memory")
    assert holds(found[4], kind="end", wall_ms=65670.0, reason="signal")
    assert found[4]["ledger"]["phases"] == {"eval": 1.0}


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"iter"',
        '{"kind":"iter","iter":"5","wall_ms":1}',
        '{"kind":"iter","iter":true,"wall_ms":1}',
        '{"kind":"iter","iter":5}',
        '{"kind":"other","iter":5}',
        '{"kind":["iter"]}',
        '["kind"]',
        '{"kind":"start"}',
    ],
)
def test_json_that_is_no_record_of_ours_is_passed_over(line):
    assert RunLogReader().read(line) == []


CONSOLE = """
recipe: quick: no config file was given, and the device is cpu
data/shakespeare: train 4,551,515 tokens, val 505,724 tokens, vocabulary 84 (char)
device: cpu (2 cores, 2 threads): no CUDA or Apple GPU was found
dtype: float32: the fastest exact format on a CPU
compile: False: compiling takes longer than it saves in a run of this kind
found vocab_size = 84 (inside data/shakespeare/meta.json)
tokens per iteration will be: 768
number of parameters: 0.80M
peak for MFU: 180 GFLOP/s, the best matrix product measured here
checkpoints: auto: every 2m 00s and at each best evaluation, at most 2m 00s of work at risk
warm-up: start-up 4.5s, compile 21.1s, first batch 166.07ms
step 0: train loss 4.4486, val loss 4.4330
eval 0: 631.86ms, val loss 4.4330 ± 0.0050 (240 windows)
iter 0: loss 4.4318, time 42.91ms, mfu 51.43%
step 400: train loss 2.3873, val loss 2.4270
eval 400: 1m 15s, val loss 2.4270 ± 0.0149 (240 windows)
saving checkpoint to out
iter 400: loss 2.4199, time 44.84ms, mfu n/a
checkpoint 400: stalled 4.11ms, written in background 1.5s, 9.7 MB, the best so far
waited 25.10ms for checkpoint 400 to be written
stopped by SIGINT after 401 updates
where the time went:
  warmup                  4.68s    7.1%   imports, model, compile, first batch
  forward_backward    1,054.95s   83.7%   the model, forwards and backwards
  other                   0.06s    0.1%   claimed by no phase
  -------------------------------------
  wall clock          1,065.67s  100.0%
  beside it, in the background: 3.0s of writing checkpoints (3 saved)
best val loss 2.4270 at step 400
"""


def test_our_console_is_read_whole():
    reader = StepglassConsole()
    records = read(reader, CONSOLE)
    assert (reader.format.name, reader.format.time_holds_eval) == ("stepglass", False)
    facts = {k: v for r in records if r["kind"] == "start" for k, v in r.items() if k != "kind"}
    assert holds(
        facts,
        train_tokens=4_551_515.0,
        vocab_size=84.0,
        device="2 cores, 2 threads",
        device_type="cpu",
        dtype="float32",
        compile=False,
        tokens_per_iter=768.0,
        parameters=0.8e6,
        peak_tflops=0.18,
    )
    first, second = [r for r in records if r["kind"] == "eval"]
    assert holds(first, iter=0, train_loss=4.4486, val_loss=4.433, val_se=0.005, time_ms=631.86)
    assert holds(second, iter=400, train_loss=2.3873, time_ms=75000.0, windows=240)
    assert [r["time_ms"] for r in records if r["kind"] == "iter"] == [42.91, 44.84]
    assert [r["mfu"] for r in records if r["kind"] == "iter"] == [51.43, None]
    [save] = [r for r in records if r["kind"] == "checkpoint"]
    assert holds(save, iter=400, time_ms=4.11, background_ms=1500.0, bytes=9.7e6, is_best=True)
    events = {r["name"]: r for r in records if r["kind"] == "event"}
    assert events["warmup"]["detail"] == {
        "startup_ms": 4500.0,
        "compile_ms": 21100.0,
        "first_batch_ms": 166.07,
    }
    assert events["checkpoint_wait"]["detail"] == {"step": 400, "wait_ms": 25.1}
    assert holds(events["signal"], iter=401, detail={"name": "SIGINT"})
    [end] = [r for r in records if r["kind"] == "end"]
    assert holds(end, wall_ms=1_065_670.0)
    assert end["ledger"]["phases"] == pytest.approx(
        {"warmup": 4680.0, "forward_backward": 1_054_950.0, "other": 60.0}
    )


def test_nanogpts_console_stays_nanogpts():
    reader = StepglassConsole()
    records = read(
        reader,
        """
        device: cuda
        step 250: train loss 1.9639, val loss 2.0676
        saving checkpoint to out-shakespeare-char
        iter 250: loss 2.0307, time 90796.41ms, mfu 0.43%
        """,
    )
    assert (reader.format.name, reader.format.time_holds_eval) == ("nanogpt", True)
    assert [r["kind"] for r in records] == ["eval", "checkpoint", "iter"]


def test_an_evaluation_cut_off_from_its_second_line_is_not_lost():
    reader = StepglassConsole()
    records = read(
        reader,
        """
        warm-up: start-up 4.5s, first batch 166.07ms
        step 400: train loss 2.3873, val loss 2.4270
        """,
    )
    assert holds(records[-1], kind="eval", iter=400, val_loss=2.427)
    assert reader.flush() == []


def test_our_own_word_for_memory_that_ran_out():
    [record] = StepglassConsole().read(
        "error: NVIDIA A100 ran out of memory at step 7 with batch_size=64; try --batch_size=32"
    )
    assert holds(record, name="oom", iter=7)


# -- Hugging Face --------------------------------------------------------------------------------


def test_a_v4_dict_gives_an_iteration():
    [record] = HFTrainer().read(OWN[HFTrainer][0])
    assert holds(
        record,
        kind="iter",
        iter=None,
        loss=2.1048,
        grad_norm=2.1349170207977295,
        lr=4.9939613526570054e-05,
        epoch=0.0,
    )


def test_an_older_dict_has_no_gradient_norm():
    [record] = HFTrainer().read(OWN[HFTrainer][1])
    assert holds(record, loss=1.2607, lr=6.31578947368421e-06, epoch=0.03)
    assert "grad_norm" not in record


def test_a_v5_dict_of_strings_gives_numbers():
    [record] = HFTrainer().read(OWN[HFTrainer][2])
    assert holds(record, kind="iter", loss=1.499, grad_norm=0.7413, lr=7.059e-05, epoch=2.105)
    [record] = HFTrainer().read(OWN[HFTrainer][3])
    assert holds(record, kind="eval", val_loss=0.1002, time_ms=353400.0, epoch=0.064)


def test_the_last_dict_ends_the_run():
    [record] = HFTrainer().read(OWN[HFTrainer][4])
    assert holds(
        record,
        kind="end",
        wall_ms=225800.5,
        samples_per_s=3.543,
        steps_per_s=0.886,
        train_loss=1.211241865158081,
    )
    [record] = HFTrainer().read(
        "{'train_runtime': '28.31', 'train_samples_per_second': '9.044', 'train_steps_per_second': '1.13', 'train_loss': '1.985'}"
    )
    assert holds(record, wall_ms=28310.0, steps_per_s=1.13)


def test_steps_and_time_come_from_the_training_bar():
    reader = HFTrainer()
    assert (
        reader.read("Loading checkpoint shards: 100%|██████████| 2/2 [00:01<00:00,  1.02it/s]")
        == []
    )
    assert reader.read("  5%|▌         | 10/200 [00:11<03:30,  1.11s/it]") == [{"kind": "start"}]
    [record] = reader.read("{'loss': 2.0, 'learning_rate': 1e-4, 'epoch': 0.05}")
    assert holds(record, iter=10, max_iters=200, time_ms=1110.0)
    assert reader.read(" 50%|█████     | 5/10 [00:01<00:01,  4.10it/s]") == []  # an evaluation's
    [record] = reader.read("{'eval_loss': 1.9, 'eval_runtime': 2.5, 'epoch': 0.05}")
    assert holds(record, kind="eval", iter=10, time_ms=2500.0)
    [record] = reader.read(
        " 10%|█         | 30/200 [00:35<03:20,  1.11s/it]{'loss': 1.8, 'learning_rate': 1e-4, 'epoch': 0.1}"
    )
    # 24 seconds since the dict before, 2.5 of them for the evaluation.
    assert holds(record, iter=30, loss=1.8, elapsed_s=35.0, time_ms=21500 / 20, window=20)


def test_dicts_held_back_behind_a_bar_have_no_step():
    reader = HFTrainer()
    reader.read(" 30%|███       | 60/200 [01:00<02:20,  1.00s/it]")
    lines = [f"{{'loss': {loss}, 'learning_rate': 1e-4, 'epoch': 0.1}}" for loss in (3.0, 2.0, 1.0)]
    steps = [reader.read(line)[0]["iter"] for line in lines]
    assert steps == [60, None, None]


def test_a_dict_printed_twice_is_at_the_same_step():
    reader = HFTrainer()
    reader.read(" 30%|███       | 60/200 [01:00<02:20,  1.00s/it]")
    line = "{'loss': 3.0, 'learning_rate': 1e-4, 'epoch': 0.1}"
    assert reader.read(line)[0]["iter"] == reader.read(line)[0]["iter"] == 60


def test_trl_and_swift_add_keys():
    [record] = HFTrainer().read(
        "{'loss': 0.21932983, 'grad_norm': 0.57172734, 'learning_rate': 6.8e-07, 'memory(GiB)': 63.16, 'train_speed(iter/s)': 0.011239, "
        "'entropy': '1.2', 'num_tokens': '1.5e+05', 'mean_token_accuracy': 0.7, 'epoch': 0.89, 'global_step/max_steps': '78/176', "
        "'percentage': '44.32%', 'elapsed_time': '1h 54m 53s', 'remaining_time': '2h 24m 21s'}"
    )
    assert holds(
        record,
        iter=78,
        max_iters=176,
        memory_gib=63.16,
        time_ms=1000 / 0.011239,
        entropy=1.2,
        num_tokens=150000.0,
        mean_token_accuracy=0.7,
        elapsed_s=6893.0,
    )


def test_bare_words_for_nan_and_infinity_are_numbers():
    [record] = HFTrainer().read(
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-4, 'epoch': 0.1}"
    )
    assert math.isnan(record["grad_norm"])
    [record] = HFTrainer().read(
        "{'loss': inf, 'grad_norm': -inf, 'learning_rate': 0.0, 'epoch': 0.1}"
    )
    assert (record["loss"], record["grad_norm"]) == (math.inf, -math.inf)


def test_a_named_validation_set_is_an_evaluation():
    [record] = HFTrainer().read("{'eval_code_loss': 1.5, 'eval_code_runtime': 3.0, 'epoch': 1.0}")
    assert holds(record, kind="eval", val_loss=1.5, time_ms=3000.0)


def test_the_trainers_header_and_saves():
    records = read(
        HFTrainer(),
        """
        ***** Running training *****
          Num examples = 1,000
          Instantaneous batch size per device = 8
          Gradient Accumulation steps = 4
          Total optimization steps = 200
          Number of trainable parameters = 124,439,808
        Saving model checkpoint to ./out/checkpoint-100
        """,
    )
    config = {k: v for r in records for k, v in r.get("config", {}).items()}
    assert config == {
        "num_examples": 1000,
        "batch_size": 8,
        "gradient_accumulation_steps": 4,
        "max_iters": 200,
    }
    assert holds(records[-2], parameters=124_439_808.0)
    assert records[-1] == {"kind": "checkpoint", "iter": 100}


STATE = """{
  "best_metric": null,
  "global_step": 20,
  "log_history": [
    {
      "epoch": 0.5,
      "grad_norm": 2.5,
      "learning_rate": 5e-05,
      "loss": 2.1048,
      "step": 10
    },
    {"epoch": 1.0, "eval_loss": 1.9, "eval_runtime": 3.5, "step": 10},
    {"epoch": 1.0, "loss": NaN, "learning_rate": 4e-05, "step": 20},
    {
      "epoch": 1.0,
      "step": 20,
      "total_flos": 1e15,
      "train_loss": 2.0,
      "train_runtime": 225.8005,
      "train_samples_per_second": 3.543,
      "train_steps_per_second": 0.886
    }
  ],
  "max_steps": 20
}
"""


def test_a_trainer_state_gives_records_with_their_lines():
    records = trainer_state(STATE)
    assert records is not None
    assert [(r["kind"], r["line"]) for r in records] == [
        ("iter", 5),
        ("eval", 12),
        ("iter", 13),
        ("end", 14),
    ]
    assert holds(records[0], iter=10, max_iters=20, loss=2.1048, lr=5e-5, grad_norm=2.5)
    assert holds(records[1], iter=10, val_loss=1.9, time_ms=3500.0)
    assert math.isnan(records[2]["loss"])
    assert holds(records[3], wall_ms=225800.5, samples_per_s=3.543)


def test_a_trainer_state_cut_short_gives_what_is_whole_in_it():
    records = trainer_state(STATE[: STATE.index('"total_flos"')])
    assert records is not None
    assert [r["kind"] for r in records] == ["iter", "eval", "iter"]


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '"log_history": [', '{"log_history": 5}', "iter 5: loss 2.0, time 3.0ms"],
)
def test_other_documents_are_no_trainer_state(text):
    assert trainer_state(text) is None


@pytest.mark.parametrize(
    "history",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"loss": 1e999, "step": 1, "epoch": 1}',
        '{"loss": 1.0, "step": ' + "9" * 4000 + ', "epoch": 1}',
        '{"loss": ' + "9" * 4000 + ', "step": 1, "epoch": 1}',
        '{"loss": 1.0, "step": ' + "9" * 5000 + "}",
        '5, "x", null, {"loss": [], "step": {}}, {"step": null}',
    ],
)
def test_a_hostile_trainer_state_does_not_raise(history):
    assert isinstance(trainer_state('{"log_history": [' + history), list)


# -- Lightning -----------------------------------------------------------------------------------


def last_step(line):
    """What a log with only this bar tells. A first bar tells no more than that there is one."""
    reader = LightningBar()
    assert reader.read(line) == [{"kind": "start"}]
    return reader.flush()


def test_a_tqdm_bar_gives_iteration_loss_and_the_mean_time_since_the_epoch_began():
    first, second, third = (last_step(line)[0] for line in OWN[LightningBar][:3])
    assert holds(
        first,
        kind="iter",
        iter=307,
        epoch=3,
        epoch_iters=938,
        global_iter=3 * 938 + 307,
        loss=0.198,
        time_ms=1000 / 289.04,
        window=307,
        elapsed_s=None,  # the epochs before took an unknown time
    )
    assert holds(second, iter=40, epoch=1, loss=None, time_ms=1000 / 10.84, window=40)
    assert holds(third, iter=4, epoch=0, loss=10.072, time_ms=4470.0, window=4, elapsed_s=17.0)


def test_a_rich_bar_is_read_too():
    [record] = last_step(OWN[LightningBar][3])
    assert holds(record, iter=232, epoch=4, epoch_iters=291, loss=0.398)
    assert holds(record, time_ms=1000 * 33.5 / 232, window=232)  # its rate is of the last steps


def times_of(bars):
    """The time and the window of each step; a bar is `steps, clock, what follows`."""
    lines = [f"Epoch 0:  1%|▏   | {n}/900 [{clock}<09:00, {rest}]" for n, clock, rest in bars]
    reader = LightningBar()
    records = [r for line in lines for r in reader.read(line)] + reader.flush()
    return [(r["time_ms"], r["window"]) for r in records if r["kind"] == "iter"]


def test_a_mean_since_the_epoch_began_is_no_time_of_a_single_step():
    rest = "{}it/s, v_num=1, loss=2.5"
    bars = [(1, "00:02", rest.format("0.40")), (2, "00:03", rest.format("0.66"))]
    bars += [(4, "00:04", rest.format("1.00")), (30, "00:17", rest.format("1.76"))]
    (first, one), unknown, (third, three), (last, many) = times_of(bars)
    assert (first, one) == (2500.0, 1)
    assert unknown == (None, None)  # with two decimals, too coarse for one step
    assert (third, three) == (pytest.approx(500, rel=0.05), 3)
    assert (last, many) == (pytest.approx(500, rel=0.05), 26)


def test_a_rate_over_the_last_steps_is_used_where_the_clock_is_too_coarse():
    rest = "10.00it/s, loss=2.5"  # not of Lightning: it shows no v_num
    bars = [(20, "00:02", rest), (40, "00:04", rest), (640, "01:04", rest)]
    first, second, third = times_of(bars)
    assert first == second == (pytest.approx(100), None)
    assert third == (pytest.approx(100, rel=0.01), 600)


def test_a_bar_that_is_cut_off_has_not_lost_its_loss():
    lines = ["Epoch 0:  28%|██▊  | 5/18 [00:20<00:53,  4.14s/it, loss=9.947, v_num=7]"] * 2
    reader = LightningBar()
    found = [
        r
        for line in [*lines, "Epoch 0:  33%|███▎ | 6/18 [00:23<00:47,  3"]
        for r in reader.read(line)
    ]
    assert [r["iter"] for r in found + reader.flush() if r["kind"] == "iter"] == [5]


def test_a_bar_drawn_again_is_the_same_iteration():
    reader = LightningBar()
    line = OWN[LightningBar][0]
    assert reader.read(line) == [{"kind": "start"}]
    [record] = reader.read(line.replace("loss=0.198", "loss=0.177"))
    assert holds(record, kind="iter", loss=0.177)  # first it is drawn with the loss before
    assert reader.read(line) == []
    assert reader.read("Epoch 4:   0%|          | 0/938 [00:00<?, ?it/s]") == []
    assert reader.flush() == []


def test_a_validation_loss_on_the_bar_is_an_evaluation_once():
    reader = LightningBar()
    bar = "Epoch 1:  {n}%|█    | {n}/100 [00:0{n}<00:09, 10.0it/s, v_num=0, train_loss_step=2.{n}, val_loss=2.5, train_loss_epoch=9.0]"
    start, first = reader.read(bar.format(n=1)), reader.read(bar.format(n=2))
    assert [r["kind"] for r in start + first + reader.flush()] == ["start", "iter", "eval", "iter"]
    assert holds(first[0], loss=2.1)
    assert holds(first[1], val_loss=2.5, epoch=1, iter=101)


def test_validation_bars_are_no_iterations():
    reader = LightningBar()
    assert (
        reader.read(
            "Validation DataLoader 0:  46%|██████████████              | 73/157 [00:02<00:02, 37.48it/s]"
        )
        == []
    )
    [record] = reader.read(
        "Validation DataLoader 0: 100%|██████████████| 157/157 [00:04<00:00, 37.48it/s]"
    )
    assert holds(record, kind="event", name="validation")
    assert record["detail"]["elapsed_s"] == 4.0
    assert reader.read("Sanity Checking DataLoader 0: 100%|███| 2/2 [00:00<00:00, 37.48it/s]") == []


@pytest.mark.parametrize("edge", ["|  ", ""])
def test_the_profilers_table_gives_actions(edge):
    reader = LightningBar()
    text = "\n".join(
        edge + row
        for row in (
            "Action                \t|  Mean duration (s)\t|Num calls      \t|  Total time (s) \t|  Percentage %   \t|",
            "------------------------------------------------------------------------",
            "Total                 \t|  -              \t|_              \t|  3722.5         \t|  100 %          \t|",
            "------------------------------------------------------------------------",
            "run_training_epoch    \t|  36.785         \t|100            \t|  3678.5         \t|  98.818         \t|",
            "[Strategy]X.backward  \t|  1.0585         \t|1600           \t|  1.6937e+03     \t|  45.498         \t|",
        )
    )
    total, epoch, backward = read(reader, text)
    assert holds(
        total, name="profiler-action", action="Total", total_s=3722.5, percent=100.0, mean_s=None
    )
    assert holds(epoch, action="run_training_epoch", total_s=3678.5, percent=98.818, calls=100.0)
    assert holds(backward, action="[Strategy]X.backward", total_s=1693.7)
    assert len(reader.read(OWN[LightningBar][0])) == 1  # the table is over


CSV = """
epoch,lr-Adam,step,train/device/batches_per_sec,train/device/mfu,train_loss_epoch,train_loss_step,val_loss
,0.001,49,,,,,
0,,49,,,,2.302,
0,,49,12.5,0.31,,,
0,,99,,,,nan,
0,,99,,,,,2.25
0,,99,,,2.5,,
"""


def test_metrics_csv_gives_iterations_and_evaluations():
    first, rates, bad, evaluation = read(MetricsCsv(), CSV)
    assert holds(first, kind="iter", iter=49, epoch=0.0, loss=2.302, lr=0.001)
    assert holds(rates, kind="iter", iter=49, rate_per_s=12.5, mfu=31.0, loss=None)
    assert math.isnan(bad["loss"])
    assert holds(evaluation, kind="eval", iter=99, val_loss=2.25)


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3",
        "for epoch, step in enumerate(x):\n1,2",
        "epoch,step,train_loss\n1,2",
        "epoch,step,train_loss\n1,x,2.0",
        "epoch,epoch\n1,2",
        "step\n5",
        "a,b,c\n1,2,3",
    ],
)
def test_what_only_looks_like_csv_gives_nothing(text):
    assert read(MetricsCsv(), text) == []


# -- Composer ------------------------------------------------------------------------------------

BLOCKS = """
[batch=1/10]:
         Train time/batch: 0
         Train time/token: 0
         Train memory/reserved_mem: 8.5794
         Train trainer/device_train_microbatch_size: 8
         Train loss/train/total: 11.6153
         Train metrics/train/LanguageCrossEntropy: 11.6153
         Train time/train: 0.0073
         Train time/val: 0.0000
         Train time/total: 0.0073
         Train lr-DecoupledAdamW/group0: 0.0000
[batch=2/10]:
         Train metrics/train/LanguageCrossEntropy: 10.5
/usr/lib/python3/dist-packages/torch/utils/checkpoint.py:31: UserWarning: None of the inputs
         Train throughput/tokens_per_sec: 6598.0451
         Train throughput/device/mfu: 0.2489
         Train wall_clock/train: 19.8653
[Eval batch=1/32] Eval on eval data
[Eval batch=32/32] Eval on eval data:
         Eval metrics/eval/LanguageCrossEntropy: 3.25
         Eval metrics/eval/LanguagePerplexity: 25.79
"""


def test_a_composer_block_is_an_iteration_with_hours_made_milliseconds():
    records = [record for record in read(Composer(), BLOCKS) if record != {"kind": "start"}]
    first, books, second, more_books, evaluation = records
    assert holds(
        first,
        kind="iter",
        iter=1,
        max_iters=10,
        loss=11.6153,
        lr=0.0,
        train_ms=26280.0,
        val_ms=0.0,
        wall_ms=26280.0,
        micro_batch_size=8.0,
    )
    assert books == {
        "kind": "start",
        "train_ms": pytest.approx(26280),
        "val_ms": 0,
        "wall_ms": pytest.approx(26280),
    }
    assert holds(second, iter=2, loss=10.5, tok_s=6598.0451, mfu=24.89, train_ms=19865.3)
    assert holds(more_books, kind="start", train_ms=19865.3)
    assert holds(evaluation, kind="eval", iter=2, val_loss=3.25)


def test_a_composer_block_may_be_one_line():
    reader = Composer()
    reader.read("[batch=10/40]:   Train loss/train/total: 2.0366    Train time/train: 0.0100")
    [record, _] = reader.flush()
    assert holds(record, iter=10, max_iters=40, loss=2.0366, train_ms=36000.0)


def test_the_last_block_waits_for_flush():
    reader = Composer()
    assert reader.read("[epoch=1][batch=3/10]:") == [{"kind": "start"}]
    assert reader.read("Train loss/train/total: nan") == []
    [record] = reader.flush()
    assert math.isnan(record["loss"])
    assert holds(record, iter=3, epoch=1, epoch_iters=10)
    assert reader.flush() == []


def test_metrics_without_a_heading_belong_to_nobody():
    assert read(Composer(), "Train loss/train/total: 11.6153") == []


# -- small ones ----------------------------------------------------------------------------------


def test_mingpts_time_is_the_iteration_befores():
    reader = MinGPT()
    [first] = reader.read("iter_dt 0.00ms; iter 0: train loss 4.17000")
    assert holds(first, iter=0, loss=4.17, time_ms=None, time_of_iter=None)
    [record] = reader.read(OWN[MinGPT][0])
    assert holds(record, iter=100, loss=2.10342, time_ms=12.3, time_of_iter=99)
    assert reader.read("saving model") == [{"kind": "checkpoint", "iter": 100}]
    assert MinGPT().read("saving model") == []


def test_char_rnn_gives_seconds_a_batch_and_a_loss_in_a_files_name():
    reader = CharRNN()
    [record] = reader.read(OWN[CharRNN][0])
    assert holds(
        record,
        iter=1209,
        max_iters=9500,
        epoch=6.363,
        loss=1.5225077,
        time_ms=170.8,
        grad_param_norm=0.026208,
    )
    evaluation, save = reader.read("saving checkpoint to cv/lm_lstm_epoch6.36_1.4012.t7")
    assert holds(evaluation, kind="eval", iter=1209, val_loss=1.4012)
    assert save == {"kind": "checkpoint", "iter": 1209}
    assert reader.read("saving checkpoint to out") == []


def test_mlx_gives_rates_and_what_an_evaluation_took():
    [record] = MlxLM().read(OWN[MlxLM][0])
    assert holds(
        record,
        iter=25,
        loss=1.593,
        lr=7e-5,
        rate_per_s=0.999,
        tok_s=387.697,
        trained_tokens=9699.0,
        peak_gb=8.104,
    )
    [record] = MlxLM().read(OWN[MlxLM][1])
    assert holds(record, kind="eval", iter=1, val_loss=2.086, time_ms=17177.0)
    assert MlxLM().read("Iter 100: Saved adapter weights to adapters/adapters.safetensors.") == [
        {"kind": "checkpoint", "iter": 100}
    ]


def test_gpt2_forks_count_seconds_from_the_start():
    [record] = Gpt2Fork().read(OWN[Gpt2Fork][0])
    assert holds(record, kind="iter", iter=1, elapsed_s=22.35, loss=3.69, avg_loss=3.69)
    [record] = Gpt2Fork().read("[100 | 512.80] validation loss = 3.41")
    assert holds(record, kind="eval", iter=100, val_loss=3.41, elapsed_s=512.8)
    assert Gpt2Fork().read("Saving checkpoint/run1/model-100") == [
        {"kind": "checkpoint", "iter": 100}
    ]


def test_nemo_repeats_a_validation_loss_that_counts_once():
    reader = NeMo()
    line = OWN[NeMo][0]
    evaluation, record = reader.read(line)
    assert holds(evaluation, kind="eval", iter=None, val_loss=4.106)  # of an earlier step
    assert holds(
        record,
        kind="iter",
        iter=120,
        max_iters=150,
        epoch=0,
        lr=3e-5,
        loss=1.233,
        time_ms=31.46,
        consumed_samples=121.0,
    )
    [record] = reader.read(line.replace("global_step: 120", "global_step: 121"))
    assert holds(record, kind="iter", iter=121)


def test_a_nemo_line_cut_in_its_middle_is_read_as_far_as_it_goes():
    [record] = NeMo().read(
        "Training epoch 0, iteration 120/149 | lr: 3e-05 | ... | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146"
    )
    assert holds(record, iter=120, loss=1.233, time_ms=31.46)


# -- any log -------------------------------------------------------------------------------------

GIB, MIB = 2**30, 2**20
OOM = [
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.50 GiB is free. Process 12 has 77.60 GiB memory in use. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        (2.0 * GIB, 1.5 * GIB, 79.15 * GIB),
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.70 GiB total capacity; 21.60 GiB already allocated; 4.56 MiB free; 22.04 GiB reserved in total by PyTorch)",
        (20.0 * MIB, 4.56 * MIB, 23.7 * GIB),
    ),
    (
        "RuntimeError: MPS backend out of memory (MPS allocated: 5.56 GB, other allocations: 1.10 GB, max allowed: 6.80 GB). Tried to allocate 768.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
        (768.0 * MIB, None, 6.8 * GIB),
    ),
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4194304000 bytes. Error code 12 (Cannot allocate memory)",
        (4194304000.0, None, None),
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7406166528 bytes.",
        (7406166528.0, None, None),
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.",
        (20029400304.0, None, None),
    ),
    ("RuntimeError: CUDA error: out of memory", (None, None, None)),
    ("[1234.5] Out of memory: Killed process 4242 (python) total-vm:1kB", (None, None, None)),
]


@pytest.mark.parametrize(("line", "sizes"), OOM)
@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_memory_that_ran_out_is_seen_with_its_sizes(prefix, line, sizes):
    [record] = records_of_any_log(prefix + line)
    found = tuple(record.get(key) for key in ("tried_bytes", "free_bytes", "total_bytes"))
    assert (record["kind"], record["name"]) == ("event", "oom")
    assert found == tuple(None if size is None else pytest.approx(size) for size in sizes)
    assert "PYTORCH_" not in record["detail"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Traceback (most recent call last):", "traceback"),
        ("[rank0]: Traceback (most recent call last):", "traceback"),
        ("ValueError: expected 5, found 6", "error"),
        ("[rank0]:RuntimeError: mat1 and mat2 shapes cannot be multiplied", "error"),
        ("torch._dynamo.exc.Unsupported: call_function BuiltinVariable", "error"),
        ("AssertionError", "error"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "error"),
        ("KeyboardInterrupt", "interrupted"),
        ("^CKeyboardInterrupt", "interrupted"),
        ("Sending process 1234 closing signal SIGTERM", "interrupted"),
        (
            "slurmstepd: error: *** JOB 55 ON node1 CANCELLED AT 2024-01-05T10:00:00 DUE TO TIME LIMIT ***",
            "interrupted",
        ),
        (
            "W0110 12:27:06.332000 158 torch/_dynamo/convert_frame.py:1551] [2/8] torch._dynamo hit config.recompile_limit (8)",
            "recompile",
        ),
        (
            "[2024-04-16 22:28:39,856] torch._dynamo.convert_frame: [WARNING] torch._dynamo hit config.cache_size_limit (8)",
            "recompile",
        ),
        (
            r"W0711 17:08:34.348000 76404 Lib\site-packages\torch\_dynamo\convert_frame.py:1280] WON'T CONVERT forward e:\model.py line 209",
            "compile-fallback",
        ),
        (
            "V0711 17:08:34.348000 7 torch/_dynamo/symbolic_convert.py:435] [0/0] [__graph_breaks] Graph break in user code at model.py:5",
            "compile-fallback",
        ),
        (
            "compute 95.1% | memory: 40.2% | fan: 30% | 1755 MHz / 1980 MHz | 700 W / 700 W | 60°C / 90°C | thermal cap",
            "throttle",
        ),
        ("HW Thermal Slowdown           : Active", "throttle"),
        (
            "CPU0: Core temperature above threshold, cpu clock throttled (total events = 1)",
            "throttle",
        ),
    ],
)
def test_events_of_any_log(line, name):
    [record] = records_of_any_log(line)
    assert (record["kind"], record["name"]) == ("event", name)


@pytest.mark.parametrize(
    ("line", "wall_ms"),
    [
        ("4233.60 real        96.24 user        31.10 sys", 4_233_600.0),
        ("Elapsed (wall clock) time (h:mm:ss or m:ss): 1:10.55", 70_550.0),
        ("Elapsed (wall clock) time (h:mm:ss or m:ss): 2:01:10", 7_270_000.0),
        ("real\t0m28.3s", 28_300.0),
        ("real    70m33,600s", 4_233_600.0),
        ("real 28.31", 28_310.0),
        ("python train.py  96.24s user 31.10s system 3% cpu 1:10:33.60 total", 4_233_600.0),
        (
            "96.24user 31.10system 1:10:33.60elapsed 3%CPU (0avgtext+0avgdata 5maxresident)k",
            4_233_600.0,
        ),
    ],
)
def test_a_wall_clock_ends_a_run(line, wall_ms):
    [record] = records_of_any_log(line)
    assert record["kind"] == "end"
    assert record["wall_ms"] == pytest.approx(wall_ms)


def test_nvidia_smi_names_the_device():
    [record] = records_of_any_log(
        "|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |"
    )
    assert record == {"kind": "start", "device": "NVIDIA A100-SXM4-40GB"}
    [record] = records_of_any_log("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1234-5678)")
    assert record == {"kind": "start", "device": "NVIDIA H100 80GB HBM3"}


@pytest.mark.parametrize(
    "line",
    [
        'raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")',
        "except torch.cuda.OutOfMemoryError:",
        'if "out of memory" in str(e):',
        "# CUDA out of memory. Tried to allocate 2.00 GiB was seen here",
        "ValueError: If the batch is empty.",
        "except KeyboardInterrupt:",
        "signal.signal(signal.SIGTERM, handler)",
        'print("Traceback (most recent call last):")',
        "torch._dynamo.config.suppress_errors = True",
        "torch._dynamo.config.cache_size_limit = 64",
        "You can suppress this exception and fall back to eager by setting:",
        "consider setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"',
        "class TrainingError(Exception):",
        "SW Power Cap                  : Not Active",
        "no cap on the learning rate, real numbers only",
        "wall clock             65.67s  100.0%",
        r"W0711 17:08:34.348000 7 torch\_dynamo\convert_frame.py:1280] Traceback (most recent call last):",
        "step 10: train loss 3.1, memory 5.2 GiB",
        "Peak memory usage: 75422.02MiB",
        "peak memory allocated: 30908 MiB reserved: 46472 MiB",
        "UserWarning: real error rates may differ",
        'f"CUDA out of memory. Tried to allocate 2.00 GiB"',
    ],
)
def test_source_advice_and_ordinary_words_are_no_evidence(line):
    assert records_of_any_log(line) == []


def test_a_missing_kernel_is_an_error_and_not_memory():
    [record] = records_of_any_log("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED")
    assert record["name"] == "error"


def test_several_bars_on_a_line_are_read_apart():
    one = "Epoch 1:  10%|█         | 10/100 [00:10<01:30,  1.00it/s]"
    assert [bar.n for bar in bars(one + one.replace("10/100", "11/100"))] == [10, 11]
    assert [bar.label for bar in bars("[rank0]: " + one)] == ["Epoch 1"]


# -- whatever comes ------------------------------------------------------------------------------

BIG = 1 << 16  # what the driver lets through
HOSTILE = [
    "",
    "{",
    "{'" * (BIG // 2),
    "{'loss': " * (BIG // 9),
    "{'loss': {'loss': [[[(((((, 'epoch': 1}",
    "{'loss': " + "(" * 5000 + ", 'epoch': 1}",
    "{'loss': " + "-" * 5000 + "1, 'epoch': 1}",
    "{'loss': 1e999, 'epoch': " + "9" * 6000 + "}",
    "{'loss': '1e999', 'epoch': '" + "9" * 90 + "'}",
    "{'loss': 1.0, 'epoch': 1, 'global_step/max_steps': '" + "9" * 50 + "/1'}",
    '{"kind":' * (BIG // 8),
    '{"kind":"iter","iter":1,"wall_ms":' + "9" * 400 + "}",
    '{"kind":"iter","iter":1,"wall_ms":1e999,"mfu":"x","phases":[1],"loss":{}}',
    '{"kind":"iter","iter":' + "9" * 5000 + ',"wall_ms":1}',
    '{"kind":"iter","iter":1,"wall_ms":1,"lr":'
    + "9" * 400
    + ',"phases":{"data":'
    + "9" * 400
    + "}}",
    '{"kind":"event","name":5,"detail":[]}',
    "iter " + "9" * 5000 + ": loss 2.0, time 3.0ms",
    "iter " + "9" * 300 + ": loss 2.0, time 3.0ms",
    '{"kind":"end","reason":null,"ledger":5}',
    "Epoch " * (BIG // 6) + "it/s",
    "Epoch 1 " + "-" * BIG + " it/s •",
    "100%|" * (BIG // 5),
    "100%|" + "█" * BIG,
    "Epoch 1: 100%|█| " + "9" * 50 + "/" + "9" * 50 + " [00:00<00:00, 1e999it/s]",
    "Epoch 1: 100%|█| 5/5 [99:99:99:99<?, 0.00s/it, loss=1e999, val_loss=nan]",
    "," * BIG,
    "epoch,step," + "a," * (BIG // 2),
    "1e999," * 100,
    "[batch=1/1]" * (BIG // 11),
    "[batch=" + "9" * 5000 + "/1]:",
    "Train a/b: " * (BIG // 11),
    "iter_dt " * (BIG // 8),
    "iter_dt 1ms; iter 5: " * (BIG // 21),
    "9/9 (epoch 1), train_loss = " * (BIG // 28),
    "Iter 5: Train loss " * (BIG // 19),
    "Iter 5: Train loss 1e999, It/sec " + "9" * 5000,
    "[1 | " * (BIG // 5) + "loss",
    "Training epoch 1, iteration 1/1 | " * (BIG // 34),
    "Training epoch 0, iteration 1/2 | global_step: 1e999 | reduced_train_loss: nan",
    "Train Step 1/1 | " * (BIG // 17),
    "eval 5: 1" * (BIG // 9),
    "device: cpu (" * (BIG // 13),
    "warm-up: start-up 1e999s, first batch nans",
    "peak for MFU: " * (BIG // 14),
    "Traceback " * (BIG // 10),
    "CUDA out of memory. Tried to allocate " * (BIG // 38),
    "A." * (BIG // 2) + "Error",
    "] " * (BIG // 2) + "rror",
    "real " * (BIG // 5),
    "|   0  " * (BIG // 7) + "0000:",
    "\udcff\ufeff\u2028 iter",
    "'" * BIG,
    " " * BIG + "real",
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_line_makes_a_reader_raise_or_stall(number):
    line = HOSTILE[number]
    for make in READERS:
        reader = make()
        if isinstance(reader, MetricsCsv):
            reader.read("epoch,step,train_loss")
        if isinstance(reader, Composer):
            reader.read("[batch=1/2]:")
        start = time.perf_counter()
        for record in [*reader.read(line), *read(reader, "")]:
            assert record["kind"] in ("iter", "eval", "checkpoint", "start", "event", "end")
            for value in record.values():
                assert not isinstance(value, int) or abs(value) < 1e16
        assert time.perf_counter() - start < 2, make.__name__
    start = time.perf_counter()
    records_of_any_log(line)
    assert time.perf_counter() - start < 2


def test_what_any_log_may_say_is_looked_for_cheaply():
    line = "iter 250: loss 2.0307, time 796.41ms, mfu 0.43%"
    start = time.perf_counter()
    for _ in range(10_000):
        records_of_any_log(line)
    assert time.perf_counter() - start < 1  # a hundred microseconds a line would be far too much
