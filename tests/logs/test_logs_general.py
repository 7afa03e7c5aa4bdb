"""Logs of trainers that nobody told us about, files that are no logs, and the words of a refusal."""

# ruff: noqa: E501 (log lines are quoted whole)

import io
import json

import pytest

from stepglass.errors import LogError
from stepglass.logs import detect
from stepglass.logs.formats.general import Guide
from stepglass.logs.log import Log


def read(*lines: str) -> Log:
    return detect.read_log(io.BytesIO("\n".join(lines).encode()), "x.log")


def column(log: Log, name: str) -> list[float]:
    return [round(v, 4) for s in log.segments for v in s.table.column(name).tolist()]


def columns(log: Log) -> dict[str, str]:
    found = log.segments[0].facts["columns"]
    assert isinstance(found, dict)
    return found


# -- what is read --------------------------------------------------------------------------------


def rows(line: str, num: int = 6, step: int = 10) -> list[str]:
    return [line.format(i=i * step, loss=round(3 - i / 8, 4)) for i in range(num)]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (rows("update {i} | loss: {loss} | gnorm=1.5"), ["update", "loss"]),
        (
            rows("2024-05-01 12:00:00 INFO trainer: it={i} train_loss={loss} lr=1e-4"),
            ["it", "train_loss"],
        ),
        (
            rows("[rank0] Iteration {i}/5000 - lm loss {loss}, learning rate 0.0001"),
            ["Iteration", "lm loss"],
        ),
        (rows('{{"global_step": {i}, "train/loss": {loss}}}'), ["global_step", "train/loss"]),
        (rows('{{"step": {i}, "train": {{"loss": {loss}}}, "note": "x"}}'), ["step", "train/loss"]),
        (rows("{{'iter': {i}, 'nll': tensor({loss}, device='cuda:0')}}"), ["iter", "nll"]),
        (["iteration,loss,lr", *rows("{i},{loss},0.001")], ["iteration", "loss"]),
        (["Step\tTrain Loss\tWer", *rows("{i}\t{loss}\t20.5")], ["Step", "Train Loss"]),
        (["| iteration | ce |", "|---|---|", *rows("| {i} | {loss} |")], ["iteration", "ce"]),
        (
            ["epoch  train_loss  accuracy  time", *rows("{i}      {loss}       0.5      00:12")],
            ["epoch", "train_loss"],
        ),
    ],
)
def test_a_step_and_a_loss_are_found_in_any_spelling(lines, names):
    log = read(*lines)
    assert (log.format.name, log.format.is_general) == ("general", True)
    assert [columns(log)["iter"], columns(log)["loss"]] == names
    assert column(log, "iter") == [0, 10, 20, 30, 40, 50]
    assert column(log, "loss") == [round(3 - i / 8, 4) for i in range(6)]
    assert len(log.segments) == 1


def test_evaluations_are_kept_apart_from_training_and_from_the_test_set():
    log = read(
        *rows("step {i} train_loss {loss}"),
        "step 50 val_loss 2.5 val_acc 0.75 test_loss 2.625",
    )
    assert column(log, "loss")[-1] == 2.375
    assert [(e.iter, e.val_loss, e.set, e.metrics) for e in log.segments[0].evals] == [
        (50, 2.5, "", {"acc": 0.75}),
        (50, 2.625, "test", None),
    ]


def test_a_line_marked_as_evaluation_is_no_training_step():
    log = read(*rows("train | step {i} | loss {loss}"), "valid | step 50 | loss 2.5")
    assert len(log.segments[0].table) == 6
    assert [(e.iter, e.val_loss) for e in log.segments[0].evals] == [(50, 2.5)]
    lines = rows('{{"step": {i}, "loss": {loss}, "split": "train"}}')
    log = read(*lines, '{"step": 50, "loss": 2.5, "split": "val"}')
    assert len(log.segments[0].table) == 6
    assert [(e.iter, e.val_loss) for e in log.segments[0].evals] == [(50, 2.5)]


def test_an_evaluation_repeated_in_every_line_is_one_evaluation():
    log = read(*rows("step {i} loss {loss} val_loss 2.5"))
    assert [(e.iter, e.val_loss) for e in log.segments[0].evals] == [(0, 2.5)]


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("step {i}: loss {loss} step_time 250ms", [250] * 6),
        ("step {i}: loss {loss} iter time (s): 0.25", [250] * 6),
        ("step {i}: loss {loss}, 4.0 it/s", [250] * 6),
        ("step {i}: loss {loss} sec/step=0.25", [250] * 6),
        ('{{"step": {i}, "loss": {loss}, "dt_ms": 250}}', None),  # may be of all ten steps
        ("step {i}: loss {loss} time 250ms", None),
        ("step {i}: loss {loss} step_time 0.25", None),  # in which unit?
    ],
)
def test_a_time_is_taken_only_if_its_unit_and_its_span_are_plain(line, times):
    log = read(*rows(line))
    found = column(log, "time_ms")
    assert found == times if times else all(time != time for time in found)


def test_a_time_is_of_one_step_if_every_step_is_printed():
    lines = [f"step {i} loss {3 - i / 8} time {250 + i % 2} ms" for i in range(6)]
    assert column(read(*lines), "time_ms") == [250, 251] * 3


def test_a_time_that_only_grows_is_the_trainers_clock():
    lines = [f"iter {50 * i} loss {3 - i / 8} time {20 * i + 5}s" for i in range(12)]
    log = read(*lines)
    assert (columns(log)["elapsed"], log.format.elapsed_name) == ("time", "time")
    assert log.segments[0].last_elapsed is not None
    assert log.segments[0].last_elapsed.ms == 225_000


def test_an_epoch_is_no_restarted_run_if_its_length_is_printed():
    lines = [
        f"Epoch [{epoch}/3], Step [{step}/300], Loss: {3 - epoch / 2 - step / 900:.3f}"
        for epoch in (1, 2, 3)
        for step in (100, 200, 300)
    ]
    log = read(*lines)
    assert len(log.segments) == 1
    assert column(log, "iter") == [100 * i for i in range(1, 10)]


def test_without_the_length_of_an_epoch_its_steps_have_no_numbers():
    lines = [
        f"epoch {epoch} batch {step} loss {3 - epoch / 2 - step / 900:.3f}"
        for epoch in (1, 2, 3)
        for step in (100, 200, 300)
    ]
    log = read(*lines)
    assert (len(log.segments), log.segments[0].has_iter_numbers) == (1, False)


def test_a_step_that_goes_back_without_an_epoch_is_another_run():
    again = [f"step {i} loss {2 - i / 80}" for i in range(0, 60, 10)]
    assert len(read(*rows("step {i} loss {loss}"), *again).segments) == 2


def test_bars_of_tqdm_give_the_step_the_rate_and_the_loss():
    bar = "Epoch {}/2 [train]:  50%|█████     | {}/100 [00:10<00:10,  4.00it/s, loss={}]"
    log = read(*[bar.format(e, n, 3 - e - n / 100) for e in (1, 2) for n in (25, 50, 75, 100)])
    assert column(log, "iter") == [25, 50, 75, 100, 125, 150, 175, 200]
    assert set(column(log, "time_ms")) == {250}


def test_a_log_that_a_reader_knows_is_not_read_by_guessing():
    log = read(*[f"iter {i}: loss {3 - i / 8:.4f}, time {250.0 + i}ms" for i in range(4)])
    assert log.format.name == "nanogpt"


def test_a_long_preamble_does_not_hide_a_log():
    log = read(*["loading shard"] * 3000, *rows("update {i} loss: {loss}", num=40))
    assert (log.format.name, len(log.segments[0].table)) == ("general", 40)


# -- what is not read ----------------------------------------------------------------------------

PYTHON = """
def train(step=0, loss=0.5):
    for step in range(100):
        loss = 0.25
        lr = 1e-3
        print(f"step {step}: loss {loss:.4f}, time {dt * 1000:.2f}ms")
    step = 10; loss = 2.5
    step = 20; loss = 2.25
    assert step == 30
"""
SMI = """
+-----------------------------------------------------------------------------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                    0 |
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:0F:00.0 Off |                    0 |
|   2  NVIDIA A100-SXM4-40GB          On  |   00000000:47:00.0 Off |                    0 |
"""
PYTEST = """
collected 120 items
tests/test_step.py .......... [ 10%]
tests/test_loss.py .......... [ 20%]
3.21s call     tests/test_loss.py::test_step
2.21s call     tests/test_loss.py::test_time
1.21s call     tests/test_loss.py::test_epoch
======= 120 passed in 12.3s =======
"""
NOT_LOGS = {
    "prose": "Step 1: heat the oven, time 10 minutes.\nStep 2: wait for 5 s.\nStep 3: take it out, no loss 1.\nStep 4: eat.",
    "readme": "The loss fell to 2.1 after 3 epochs.\nWith 8 GPUs a step takes 250 ms.\nSet step=1000 for less.",
    "docker": "\n".join(f"Step {i}/9 : RUN make -j4" for i in range(1, 10)),
    "python": PYTHON,
    "smi": SMI,
    "pytest": PYTEST,
    "pip": "\n".join(
        f"Downloading torch-2.{i}.whl (670.2 MB) 45% 12.3 MB/s eta 0:00:0{i}" for i in range(6)
    ),
    "config": json.dumps({"step": 1000, "loss": 0.5, "lr": 0.1}, indent=1),
    "configs": "\n".join(
        json.dumps({"learning_rate": 1e-3, "batch_size": 2**i, "epochs": 3}) for i in range(6)
    ),
    "weather": "date,temp,wind,time\n"
    + "\n".join(f"2024-01-0{i},{i},{i},12:0{i}" for i in range(1, 9)),
    "prices": "Date,Open,High,Low,Close\n"
    + "\n".join(f"2024-01-0{i},{i},{i},{i},{i}" for i in range(1, 9)),
    "yields": "batch,yield,loss\n" + "\n".join(f"{i},9{i},{i % 3}" for i in range(1, 9)),
    "claims": "month,claims,loss\n" + "\n".join(f"{i},{9 * i},{i % 3}" for i in range(1, 9)),
    "benchmark": "| batch | time (ms) | tok/s |\n|---|---|---|\n"
    + "\n".join(f"| {2**i} | {9 * i} | {100 * i} |" for i in range(6)),
    "classes": "| category | AP | category | AP |\n"
    + "\n".join(f"| cat{i} | {i}.5 | dog{i} | {i}.25 |" for i in range(8)),
    "versions": "\n".join(f"package-{i}==1.{i}.0" for i in range(9)),
    "constant": "\n".join("step 5 loss 2.5 lr 0.1" for _ in range(9)),
    "fractions": "\n".join(f"step {i / 10} loss 2.5" for i in range(1, 9)),
    "two": "step 1 loss 2.5\nstep 2 loss 2.25",
    "gan": "\n".join(f"[{i}/25] Loss_D: 0.{i} Loss_G: 2.{i}" for i in range(9)),
    "random": "\n".join(f"step {(7 * i) % 9} loss 2.5" for i in range(9)),
}


@pytest.mark.parametrize("name", NOT_LOGS)
def test_a_file_that_is_no_log_is_not_taken_for_one(name):
    guide = Guide()
    for line in NOT_LOGS[name].splitlines():
        guide.watch(line.strip())
    assert guide.plan() is None


@pytest.mark.parametrize(
    "key", ["loss_scale", "best loss", "aux_loss", "loss_D", "weight loss", "no loss"]
)
def test_a_column_that_is_only_like_a_loss_is_left_out(key):
    log = read(*[f"step {i} | loss: {3 - i / 8} | {key}: 64.0" for i in range(4)])
    assert columns(log) == {"iter": "step", "loss": "loss"}


def test_a_hostile_line_takes_no_time():
    guide = Guide()
    for line in (
        "step " * 9000,
        "a" * 60_000,
        "1 " * 20_000,
        "{" * 9000,
        "loss: " * 9000,
        "x=1," * 9000,
    ):
        guide.watch(line)
    assert guide.plan() is None


# -- refusals ------------------------------------------------------------------------------------


def refusal(*lines: str) -> str:
    with pytest.raises(LogError) as caught:
        read(*lines)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_refusal_says_what_was_expected_and_what_to_do_next():
    message = refusal("hello", "world")
    assert message.startswith(
        "x.log: no line of a format I know in its 2 lines; expected steps with"
    )
    assert "stepglass explain FILE" in message


def test_a_refusal_names_the_trainer_that_the_log_looks_like():
    lines = [
        "[05/02 10:00:00 d2.engine.defaults]: Model:",
        "[05/02 10:00:01 d2.data.build]: Using sampler",
    ]
    assert "it looks like a log of detectron2, but has no line of a training step" in refusal(
        *lines
    )
    assert "looks like" not in refusal("a path with detectron2 in it", "world")


def test_a_refusal_quotes_the_error_that_ended_the_run():
    message = refusal(
        "loading data",
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    main()",
        "FileNotFoundError: [Errno 2] No such file or directory: 'train.bin'",
    )
    assert "it ends with an error (line 5): FileNotFoundError: [Errno 2] No such file" in message
    assert "expected steps" not in message
