"""Training from end to end, on a model small enough to do it in a moment."""

import gc
import json
import math
import re
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from helpers import MODEL, prepare_tiny, records, tiny_args, train_tiny
from hooks import after_each_update, before_each_update, change_losses, change_norms
from stepglass.checkpoint import tensors
from stepglass.checkpoint.writer import CheckpointWriter
from stepglass.cli import main
from stepglass.data import dataset, sources
from stepglass.errors import DataError
from stepglass.files import FileOps
from stepglass.hardware import peak
from stepglass.hardware.choose import pick_device
from stepglass.measure.clock import STEP_PHASES, PhaseClock
from stepglass.measure.shapes import GPTConfig
from stepglass.models.gpt2 import GPT
from stepglass.run_dir import checkpoints
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.sample import text
from stepglass.settings.command_line import read_command_line, resolve
from stepglass.train import building, loop, setup
from stepglass.train.engines.single import SingleEngine
from stepglass.train.evaluate import Evaluations, choose_windows, evaluate
from stepglass.train.optimizer import make_optimizer


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def test_lines_are_nanogpts_and_ours_stand_beside_them(capsys):
    assert train_tiny() == 0
    out = capsys.readouterr().out
    assert re.search(r"^tokens per iteration will be: 32$", out, re.M)
    assert re.search(r"^number of parameters: 0\.01M$", out, re.M)
    assert re.findall(r"^step (\d+): train loss \d\.\d{4}, val loss \d\.\d{4}$", out, re.M) == [
        "0",
        "3",
        "6",
    ]
    iters = re.findall(
        r"^iter (\d+): loss \d+\.\d{4}, time \d+\.\d\dms, mfu \d+\.\d\d%$", out, re.M
    )
    assert iters == [str(i) for i in range(6)]
    assert out.count("saving checkpoint to out\n") == 2
    assert re.search(
        r"^eval 3: [\d.]+m?s, val loss \d\.\d{4} ± \d\.\d{4} \(8 windows\), "
        r"\d\.\d{4} bits per byte$",
        out,
        re.M,
    )
    assert re.search(
        r"^checkpoint 3: stalled [\d.]+m?s, written in background [\d.]+m?s, [\d.]+ kB, "
        r"the best so far$",
        out,
        re.M,
    )
    assert re.search(r"^start-up: imports and model [\d.]+m?s, first batch [\d.]+m?s$", out, re.M)
    assert re.search(r"^  wall clock +[\d.]+s  100\.0%$", out, re.M)
    assert re.search(r"^best val loss \d\.\d{4} at step 6$", out, re.M)


@pytest.mark.finished_run
def test_phases_of_every_iteration_and_of_the_run_sum_to_the_wall_clock():
    for record in records("iter"):
        assert sum(record["phases"].values()) == pytest.approx(record["wall_ms"], abs=1e-3)
    (end,) = records("end")
    ledger = end["ledger"]
    assert sum(ledger["phases"].values()) == pytest.approx(ledger["wall_ms"], abs=1e-3)
    iterations = sum(record["wall_ms"] for record in records("iter"))
    assert iterations < ledger["wall_ms"]  # the last evaluation comes after the last iteration


def test_every_iteration_is_recorded_whatever_is_printed(capsys):
    train_tiny(log_interval=4)
    assert [r["iter"] for r in records("iter")] == list(range(6))
    assert re.findall(r"^iter (\d+)", capsys.readouterr().out, re.M) == ["0", "4"]


def test_printed_time_is_the_step_alone(capsys):
    train_tiny()
    times = dict(re.findall(r"^iter (\d+):.*time ([\d.]+)ms", capsys.readouterr().out, re.M))
    for record in records("iter"):
        step_ms = sum(record["phases"].get(name, 0) for name in STEP_PHASES)
        assert float(times[str(record["iter"])]) == pytest.approx(step_ms, abs=0.006)
    boundary = records("iter")[3]
    assert boundary["phases"]["eval"] > 0
    assert boundary["phases"]["checkpoint"] > 0
    assert boundary["phases"]["gc"] > 0


@pytest.mark.finished_run
def test_start_up_is_in_the_first_iterations_window_and_not_in_its_time():
    first = records("iter")[0]
    assert first["phases"]["warmup"] > 0
    assert "warmup" not in records("iter")[1]["phases"]


@pytest.mark.finished_run
def test_start_record_says_what_ran():
    (start,) = records("start")
    assert start["schema"] == 1
    assert start["config"]["n_layer"] == 2
    newest = tensors.load_snapshot(checkpoints.committed(Path("out"))[0])
    assert start["model"]["parameters"] == sum(t.numel() for t in newest.model.values())
    assert start["peak_flops"] > 0
    assert "measured here" in start["peak_source"]
    assert start["versions"]["torch"] == torch.__version__
    assert "--n_layer=2" in start["argv"]


def test_exactly_max_iters_updates_are_made():
    train_tiny(max_iters=5)
    snapshot = tensors.load_snapshot(checkpoints.committed(Path("out"))[0])
    assert snapshot.step == 5
    steps = {float(v) for k, v in snapshot.optim.items() if k.endswith(".step")}
    assert steps == {5.0}


def test_the_model_learns():
    train_tiny(max_iters=60, lr_decay_iters=60, eval_interval=60)
    first, last = records("eval")
    assert last["val_loss"] < first["val_loss"] - 0.5


def test_loss_is_the_mean_over_micro_batches_and_accumulation_equals_a_large_batch():
    train_tiny(batch_size=4, gradient_accumulation_steps=2)
    split = [r["loss"] for r in records("iter")]
    train_tiny(batch_size=8, gradient_accumulation_steps=1, out_dir="whole")
    whole = [r["loss"] for r in records("iter", "whole")]
    assert split == pytest.approx(whole, rel=1e-4)


def test_evaluation_does_not_disturb_training():
    train_tiny(dropout=0.2)
    train_tiny(dropout=0.2, eval_interval=1, eval_iters=1, out_dir="often")
    assert [r["loss"] for r in records("iter")] == [r["loss"] for r in records("iter", "often")]


def test_evaluations_score_the_same_windows():
    train_tiny(learning_rate=1e-9, min_lr=0, eval_interval=2)
    losses = {round(r["val_loss"], 5) for r in records("eval")}
    assert len(losses) == 1


def test_standard_error_is_that_of_the_windows():
    cfg = resolve(read_command_line(tiny_args(eval_iters=10**6)), "none", saved_settings)
    data = dataset.load_dataset("tiny", 8)
    net = GPT(GPTConfig(vocab_size=data.vocab_size, block_size=8, n_layer=1, n_head=1, n_embd=8))
    cpu = pick_device(cfg)
    windows = replace(choose_windows(data, cfg, cpu), rows=4)
    engine = SingleEngine(net, make_optimizer(net, cfg, cpu.torch_device), cpu, PhaseClock())
    result = evaluate(engine, windows, lambda: False)
    assert result is not None
    rows = data.val.windows(data.eval_windows(data.val, cfg.seed, 10**9, 8), 9).astype("int64")
    with torch.no_grad():
        each = torch.stack(
            [net(torch.tensor(r[None, :-1]), torch.tensor(r[None, 1:])) for r in rows]
        ).double()
    assert result.windows == len(rows)
    assert result.val_loss == pytest.approx(each.mean().item(), rel=1e-5)
    assert result.val_se == pytest.approx(each.std().item() / math.sqrt(len(rows)), rel=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_formats_train_too(dtype, capsys):
    assert train_tiny(dtype=dtype) == 0
    assert all(math.isfinite(r["loss"]) for r in records("iter"))
    state = tensors.load_snapshot(checkpoints.committed(Path("out"))[0]).state
    assert bool(state["scaler"]) == (dtype == "float16")
    assert f"dtype: {dtype}: asked for" in capsys.readouterr().out


def test_choices_are_printed_with_reasons_when_nobody_made_them(capsys):
    assert main(["train", *[a for a in tiny_args() if not a.startswith("--device")]]) == 0
    out = capsys.readouterr().out
    assert "dtype: float32: the fastest exact format on a CPU\n" in out
    assert "compile: False: compiling takes about 1m 00s and saves about " in out


@pytest.mark.slow
def test_compile_that_fails_is_said_and_survived(monkeypatch, capsys):
    def broken(model, **options):
        def fail(*args, **kwargs):
            raise RuntimeError("no C compiler\nlong trace")

        fail.train = fail.eval = lambda: None
        return fail

    monkeypatch.setattr(torch, "compile", broken)
    assert train_tiny(compile=True) == 0
    assert "compile failed: no C compiler; going on without it\n" in capsys.readouterr().out
    (event,) = [r for r in records("event") if r["name"] == "compile_failed"]
    assert event["detail"]["reason"] == "no C compiler"
    train_tiny(compile=False, out_dir="plain")
    assert [r["loss"] for r in records("iter")] == [r["loss"] for r in records("iter", "plain")]


@pytest.mark.slow
@pytest.mark.slow
def test_what_a_failed_compile_has_left_is_not_kept_for_the_run(monkeypatch):
    left = []

    def broken(model, **options):
        held = torch.zeros(3)
        left.append(weakref.ref(held))
        circle = [held]
        circle.append(circle)
        raise RuntimeError("no C compiler")

    frozen = []
    monkeypatch.setattr(torch, "compile", broken)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.extend(ref() for ref in left))
    assert train_tiny(compile=True) == 0
    assert frozen == [None]


def test_compile_is_a_part_of_the_warm_up(monkeypatch, capsys):
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    train_tiny(compile=True)
    assert re.search(
        r"^start-up: imports .*, compile [\d.]+m?s, first batch", capsys.readouterr().out, re.M
    )


def spoil_weights_after(monkeypatch, step: int) -> None:
    def spoil(run):
        if run.state.step + 1 == step:
            next(run.engine.model.parameters()).data.fill_(math.nan)

    after_each_update(monkeypatch, spoil)


def test_weights_that_went_bad_just_before_an_evaluation_are_not_saved(monkeypatch, capsys):
    spoil_weights_after(monkeypatch, step=6)
    assert train_tiny(max_iters=9) == 1
    assert "error: step 6: the validation loss is nan" in capsys.readouterr().err
    assert [path.name for path in checkpoints.committed(Path("out"))] == ["step-00000003-000001"]


def test_a_gradient_that_is_not_finite_ends_the_run_before_its_weights_are_saved(capsys):
    assert train_tiny(learning_rate=1e18, min_lr=0, max_iters=50, eval_interval=50) == 1
    error = capsys.readouterr().err
    assert re.match(r"error: iter \d+: (the gradient's norm|the loss) is (nan|inf); ", error)
    assert checkpoints.committed(Path("out")) == []


def test_a_loss_that_is_not_a_number_ends_the_run_at_once(monkeypatch, capsys):
    spoil_weights_after(monkeypatch, step=5)
    assert train_tiny(grad_clip=0, max_iters=50) == 1
    captured = capsys.readouterr()
    muon = " --muon_lr=0.01" if MODEL == "modern" else ""
    assert captured.err == (
        "error: iter 5: the loss is nan; the last good checkpoint is "
        "out/ckpt/step-00000003-000001. "
        f"Try stepglass resume out --learning_rate=0.005{muon} --grad_clip=1.0\n"
    )
    assert "wall clock" in captured.out
    assert records("iter")[-1]["loss"] is None
    assert "nan" in [record["name"] for record in records("event")]
    assert records("end")[0]["reason"] == "failed"
    newest = tensors.load_snapshot(checkpoints.committed(Path("out"))[0])
    assert all(t.isfinite().all() for t in newest.model.values())


@pytest.mark.parametrize("place", ["the loss", "the gradient's norm"])
def test_a_checkpoint_that_was_saved_before_its_weights_were_known_to_be_bad_is_set_aside(
    place, monkeypatch, capsys
):
    def lose(step, loss):
        return loss * math.nan if step == 5 else loss

    def lose_direction(run, norm):
        return norm * math.nan if run.state.step == 5 else norm

    with monkeypatch.context() as patch:
        if place == "the loss":
            change_losses(patch, lose)
        else:
            change_norms(patch, lose_direction)
        assert train_tiny(checkpoint_interval=1, max_iters=50, eval_interval=50) == 1
    captured = capsys.readouterr()
    assert f"error: iter 5: {place} is nan; " in captured.err
    assert re.search(r"note: step-00000005-\w+ is spoilt; it is in out/ckpt/nan-step", captured.out)
    assert "the last good checkpoint is out/ckpt/step-00000004-000004." in captured.err
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=7"]) == 0
    names = sorted(path.name for path in Path("out/ckpt").iterdir())
    assert names[0] == "nan-step-00000005-000005"
    assert names[-1] == "step-00000007-000008"


@pytest.mark.parametrize("grad_clip", [0.0, 1.0])
def test_weights_that_are_infinite_are_not_saved_before_their_loss_is_known(
    grad_clip, monkeypatch, capsys
):
    def overshoot(run):
        if run.state.step == 1:
            next(run.engine.model.parameters()).data[0] = math.inf

    after_each_update(monkeypatch, overshoot)
    assert train_tiny(checkpoint_interval=1, eval_interval=50, grad_clip=grad_clip) == 1
    error = capsys.readouterr().err
    assert "step 2: weights are no longer finite; the last good checkpoint is out/ckpt/step-" in (
        error
    )
    assert [path.name for path in checkpoints.committed(Path("out"))] == ["step-00000001-000001"]


@pytest.mark.finished_run(max_iters=3)
def test_a_checkpoint_that_was_only_read_is_not_to_blame(monkeypatch):
    change_losses(monkeypatch, lambda step, loss: loss * math.nan)
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=7"]) == 1
    assert [path.name for path in checkpoints.committed(Path("out"))] == ["step-00000003-000001"]


def test_a_folder_made_for_a_run_that_cannot_begin_is_taken_away(monkeypatch, capsys):
    def full(folder, check):
        raise OSError(28, "No space left on device", str(folder.path))

    monkeypatch.setattr(setup, "RunLogWriter", full)
    assert train_tiny(out_dir="new/run") == 2
    assert "no space left on device" in capsys.readouterr().err
    assert not Path("new/run").exists()
    Path("mine").mkdir()
    assert train_tiny(out_dir="mine") == 2
    assert Path("mine").exists()


@pytest.mark.finished_run
def test_eval_only_evaluates_once_and_changes_nothing(capsys):
    before = sorted(str(p) for p in Path("out/ckpt").rglob("*"))
    config = Path("out/config.json").read_text()
    assert (
        main(["train", "--out_dir=out", "--init_from=resume", "--eval_only", "--eval_iters=1000"])
        == 0
    )
    assert len([r for r in records("eval") if r["windows"] > 8]) == 1
    assert sorted(str(p) for p in Path("out/ckpt").rglob("*")) == before
    assert Path("out/config.json").read_text() == config
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=7"]) == 0


def test_eval_only_from_scratch_saves_nothing():
    assert train_tiny(eval_only=True) == 0
    assert len(records("eval")) == 1
    assert records("iter") == []
    assert checkpoints.committed(Path("out")) == []


@pytest.mark.finished_run
def test_eval_only_leaves_a_trained_run_where_it_is(capsys):
    before = sorted(map(str, Path("out").rglob("*")))
    capsys.readouterr()
    assert train_tiny(eval_only=True) == 2
    assert "--out_dir=out: holds a run, and --eval_only would evaluate a new model" in (
        capsys.readouterr().err
    )
    assert sorted(map(str, Path("out").rglob("*"))) == before
    assert train_tiny(eval_only=True, out_dir="fresh") == 0
    assert train_tiny(eval_only=True, out_dir="fresh") == 0


def test_one_of_several_processes_that_nobody_has_started_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert train_tiny() == 2
    assert "WORLD_SIZE=2: expected RANK and MASTER_ADDR beside it" in capsys.readouterr().err
    assert not Path("out").exists()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert train_tiny(max_iters=1) == 0


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"warmup_iters": 100},
            "warning: warmup_iters=100 is above lr_decay_iters=6: the rate climbs",
        ),
        (
            {"learning_rate": 1e-5},
            "warning: min_lr=0.001 is above learning_rate=1e-05: the rate rises",
        ),
    ],
)
def test_a_schedule_that_nanogpt_runs_is_run_with_a_note(changes, note, capsys):
    assert train_tiny(**changes) == 0
    assert note in capsys.readouterr().out
    settings = {"warmup_iters": 2, "learning_rate": 1e-2, "decay_lr": True} | changes
    assert [r["lr"] for r in records("iter")] == pytest.approx(
        [nanogpts_rate(step, 6, 1e-3, **settings) for step in range(6)]
    )


def nanogpts_rate(step, lr_decay_iters, min_lr, *, warmup_iters, learning_rate, decay_lr):
    """As its `get_lr` says it."""
    if step < warmup_iters:
        return learning_rate * (step + 1) / (warmup_iters + 1)
    if step > lr_decay_iters:
        return min_lr
    share = (step - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * share)) * (learning_rate - min_lr)


@pytest.mark.finished_run
def test_an_earlier_run_is_moved_aside_never_overwritten(capsys):
    first = Path("out/run.jsonl").read_bytes()
    capsys.readouterr()
    train_tiny(seed=2)
    assert "note: out held a run already; it is in out/earlier-1 now\n" in capsys.readouterr().out
    assert Path("out/earlier-1/run.jsonl").read_bytes() == first
    assert len(checkpoints.committed(Path("out/earlier-1"))) == 2
    assert len(records("start")) == 1


def script_losses(monkeypatch, *losses: float) -> None:
    """Evaluations that find the given validation losses, one after the other."""
    real, script = loop.evaluate, iter(losses)

    def scripted(*args):
        result = real(*args)
        return type(result)(result.train_loss, next(script), result.val_se, result.windows)

    monkeypatch.setattr(loop, "evaluate", scripted)


def test_only_improvements_are_saved_when_asked_and_the_last_state(monkeypatch):
    script_losses(monkeypatch, 5.0, 3.0, 4.0, 2.0, 6.0)
    train_tiny(max_iters=8, eval_interval=2, always_save_checkpoint=False)
    saved = [(r["iter"], r["is_best"]) for r in records("checkpoint")]
    assert saved == [(2, True), (6, True), (8, False)]
    best = json.loads(Path("out/best.json").read_text())
    assert (best["dir"], best["val_loss"]) == ("step-00000006-000002", 2.0)


def test_the_newest_two_and_the_best_remain(monkeypatch):
    script_losses(monkeypatch, 5.0, 1.0, 3.0, 2.0, 4.0, 4.0, 4.0)
    train_tiny(max_iters=6, eval_interval=1, always_save_checkpoint=True)
    kept = [path.name[:13] for path in checkpoints.committed(Path("out"))]
    assert kept == ["step-00000006", "step-00000005", "step-00000001"]
    assert json.loads(Path("out/best.json").read_text())["val_loss"] == 1.0


def fail_to_create(monkeypatch, *steps: int) -> None:
    """A disk that is full whenever one of these steps is saved."""
    real = FileOps.create

    def create(self, folder, name):
        if any(f"step-{step:08d}" in str(folder.path) for step in steps):
            raise OSError(28, "No space left on device")
        return real(self, folder, name)

    monkeypatch.setattr(FileOps, "create", create)


def write_at_once(monkeypatch) -> None:
    """A writer that is always done before training goes on: outcomes come in a known order."""
    real = CheckpointWriter.save

    def save(self, *args):
        real(self, *args)
        self.wait()

    monkeypatch.setattr(CheckpointWriter, "save", save)


def test_a_full_disk_costs_a_warning_and_a_counter(monkeypatch, capsys):
    fail_to_create(monkeypatch, 3)
    assert train_tiny() == 0
    warning = "warning: checkpoint 3 failed (1 so far): no space left on device; training"
    out = capsys.readouterr().out
    assert warning in out
    assert "(1 saved, 1 failed)" in out
    assert records("end")[0]["background"]["failed_saves"] == 1
    assert [path.name for path in Path("out/ckpt").iterdir()] == ["step-00000006-000001"]


def test_a_last_save_that_fails_is_tried_three_times_and_then_named(monkeypatch, capsys):
    fail_to_create(monkeypatch, 6)
    assert train_tiny(max_iters=6) == 1
    captured = capsys.readouterr()
    assert captured.out.count("warning: checkpoint 6 failed") == 1 + 3  # the evaluation's first
    assert "newest: out/ckpt/step-00000003-000001" in captured.err
    assert [path.name for path in Path("out/ckpt").iterdir()] == ["step-00000003-000001"]


def test_a_peak_that_was_measured_too_low_is_measured_again(monkeypatch, capsys):
    rates = iter([1.0, 1e12])
    monkeypatch.setattr(peak, "measure_cpu_peak", lambda threads, dtype: next(rates))
    train_tiny(compile=False)
    assert (
        "peak for MFU: 1.0 TFLOP/s, the best matrix products measured here; the machine was busy"
        in (capsys.readouterr().out)
    )
    shares = [record["mfu"] for record in records("iter")]
    assert shares[:3] == [None] * 3  # until the evaluation at step 3
    assert all(0 < share < 1 for share in shares[3:])


def test_a_peak_that_could_not_be_measured_is_measured_at_the_next_evaluation(monkeypatch, capsys):
    rates = iter([None, None, 1e12])
    monkeypatch.setattr(peak, "measure_cpu_peak", lambda threads, dtype: next(rates))
    train_tiny(compile=False)
    said = capsys.readouterr().out
    assert "peak for MFU: unknown: the machine is too busy to measure it\n" in said
    assert re.search(r"^iter 2: .* mfu n/a \(\S+ GFLOP/s\)$", said, re.M)
    shares = [record["mfu"] for record in records("iter")]
    assert shares[:3] == [None] * 3
    assert all(0 < share < 1 for share in shares[3:])


@pytest.mark.slow
def test_a_data_set_with_a_known_name_is_prepared_first(monkeypatch, capsys):
    Path("plays.txt").write_text("Enter HAMLET, reading. " * 100)
    monkeypatch.setitem(
        sources.NAMED,
        "shakespeare",
        lambda data_dir: sources.Source(
            "shakespeare", [sources.file_document(Path("plays.txt"))], []
        ),
    )
    assert main(["train", "shakespeare", "--max_iters=2", "--eval_iters=1", "--device=cpu"]) == 0
    out = capsys.readouterr().out
    assert "recipe: quick: no other was named, and the device is cpu\n" in out
    assert Path("data/shakespeare/meta.json").exists()
    assert json.loads(Path("out/config.json").read_text())["recipe"] == "quick"


@pytest.mark.slow
@pytest.mark.slow
def test_nanogpts_command_line_runs_word_for_word(capsys):
    Path("config").mkdir()
    Path("config/train_shakespeare_char.py").write_text(
        "out_dir = 'out-shakespeare-char'\neval_interval = 250\neval_iters = 200\nlog_interval = "
        "10\n"
        "always_save_checkpoint = False\nwandb_log = False\nwandb_project = 'shakespeare-char'\n"
        "dataset = 'shakespeare_char'\ngradient_accumulation_steps = 1\nbatch_size = "
        "64\nblock_size = 256\n"
        "n_layer = 6\nn_head = 6\nn_embd = 384\ndropout = 0.2\nlearning_rate = 1e-3\nmax_iters = "
        "5000\n"
        "lr_decay_iters = 5000\nmin_lr = 1e-4\nbeta2 = 0.99\nwarmup_iters = 100\n"
    )
    prepare_tiny(name="shakespeare_char")
    words = (
        "config/train_shakespeare_char.py --device=cpu --compile=False --eval_iters=20 "
        "--log_interval=1 "
        "--block_size=64 --batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 "
        "--lr_decay_iters=2000 --dropout=0.0"
    ).replace("--max_iters=2000", "--max_iters=3")
    assert main(["train", *words.split()]) == 0
    config = json.loads(Path("out-shakespeare-char/config.json").read_text())
    assert (config["n_layer"], config["batch_size"], config["learning_rate"]) == (4, 12, 1e-3)
    assert config["recipe"] == "none"


def test_a_best_model_that_could_not_be_saved_is_not_the_best(monkeypatch, capsys):
    fail_to_create(monkeypatch, 6)
    write_at_once(monkeypatch)
    script_losses(monkeypatch, 5.0, 3.0, 1.0, 2.0)
    assert train_tiny(max_iters=7, always_save_checkpoint=False) == 0
    best = json.loads(Path("out/best.json").read_text())
    assert (best["dir"][:13], best["val_loss"]) == ("step-00000007", 2.0)
    assert "best val loss 2.0000 at step 7" in capsys.readouterr().out


def test_the_last_best_is_tried_again_as_the_best(monkeypatch, capsys):
    """A first try that failed once left best.json at an older step."""
    real, failures = FileOps.create, []

    def create(self, folder, name):
        if "step-00000006" in str(folder.path) and not failures:
            failures.append(name)
            raise OSError(5, "Input/output error")
        return real(self, folder, name)

    monkeypatch.setattr(FileOps, "create", create)
    script_losses(monkeypatch, 5.0, 3.0, 1.0)
    assert train_tiny() == 0
    best = json.loads(Path("out/best.json").read_text())
    assert (best["dir"][:13], best["val_loss"]) == ("step-00000006", 1.0)
    assert "best val loss 1.0000 at step 6" in capsys.readouterr().out


def test_weights_that_are_not_finite_are_not_saved_without_clipping_either(monkeypatch, capsys):
    spoil_weights_after(monkeypatch, step=2)
    assert train_tiny(grad_clip=0, max_iters=2, eval_interval=100, eval_iters=1) == 1
    assert "is nan" in capsys.readouterr().err
    assert checkpoints.committed(Path("out")) == []


def test_memory_that_runs_out_in_the_warm_up_is_one_line(monkeypatch, capsys):
    def no_memory(*args):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("stepglass.train.warmup.first_pass", no_memory)
    assert train_tiny() == 2
    error = capsys.readouterr().err
    assert "ran out of memory at step 0 with batch_size=4 and block_size=8; try --batch_size=2" in (
        error
    )
    assert error.count("\n") == 1


def test_memory_that_runs_out_with_one_sequence_asks_for_a_shorter_one(monkeypatch, capsys):
    def no_memory(*args):
        raise MemoryError

    change_losses(monkeypatch, no_memory)
    assert train_tiny(batch_size=1) == 2
    assert "with batch_size=1 and block_size=8; try --block_size=4, or lower" in (
        capsys.readouterr().err
    )


def test_the_smaller_batch_to_try_keeps_the_sequences_of_an_update(monkeypatch, capsys):
    def no_memory(*args):
        raise MemoryError

    change_losses(monkeypatch, no_memory)
    assert train_tiny(batch_size=9, gradient_accumulation_steps=2) == 2
    assert "try --batch_size=3 --gradient_accumulation_steps=6" in capsys.readouterr().err


def test_memory_that_runs_out_while_the_model_is_built_is_one_line(monkeypatch, capsys):
    def no_memory(*args):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(building.registry, "model_of", no_memory)
    assert train_tiny() == 2
    error = capsys.readouterr().err
    assert "ran out of memory at the start with batch_size=4" in error
    assert error.count("\n") == 1


def test_a_run_that_cannot_be_built_leaves_no_thread_behind(monkeypatch):
    def no_thread(*args):
        raise RuntimeError("can't start new thread")

    before = set(threading.enumerate())
    monkeypatch.setattr(setup, "choose_windows", no_thread)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        train_tiny()
    assert set(threading.enumerate()) <= before


def test_a_second_trainer_is_refused_while_the_first_runs(monkeypatch, capsys):
    answers = []

    def start_another(run):
        if run.state.step == 2:
            answers.append(main(["train", *tiny_args()]))

    before_each_update(monkeypatch, start_another)
    assert train_tiny() == 0
    assert answers == [2]
    assert re.search(
        r"error: out: another run is using it \(process \d+ on .+\)", capsys.readouterr().err
    )
    assert len(records("iter")) == 6
    assert not Path("out/earlier-1").exists()


def test_what_a_killed_run_left_behind_is_swept_away():
    for name in (".tmp-step-00000003-1", ".trash-step-00000001-000001"):
        Path("out/ckpt", name).mkdir(parents=True)
    train_tiny()
    assert all(path.name.startswith("step-") for path in Path("out/ckpt").iterdir())


def test_a_file_that_only_looks_like_a_runs_is_left_alone():
    Path("out").mkdir()
    Path("out/best.json").write_text("mine")
    assert train_tiny(max_iters=0) == 0
    assert Path("out/best.json").read_text() == "mine"


def test_samples_are_kept_when_asked_for_and_change_nothing_else():
    train_tiny(sample_tokens=20, dropout=0.2, out_dir="with")
    train_tiny(dropout=0.2, out_dir="without")
    samples = [r for r in records("event", "with") if r["name"] == "sample"]
    assert [sample["iter"] for sample in samples] == [0, 3, 6]
    assert all(len(sample["detail"]["text"]) == 20 for sample in samples)
    losses = [[r["loss"] for r in records("iter", name)] for name in ("with", "without")]
    assert losses[0] == losses[1]
    assert not any(r["name"] == "sample" for r in records("event", "without"))


def test_a_tokenizer_that_samples_need_and_that_is_not_there_is_missed_at_the_start(
    monkeypatch, capsys
):
    def absent(*args):
        raise DataError("cannot fetch it")

    monkeypatch.setattr(setup.tokenizer, "from_json", absent)
    assert train_tiny(sample_tokens=5) == 2
    assert capsys.readouterr().err == "error: cannot fetch it\n"
    assert not Path("out").exists()


def test_weights_that_are_no_numbers_are_not_sampled_from(monkeypatch, capsys):
    spoil_weights_after(monkeypatch, step=3)
    assert train_tiny(grad_clip=0, sample_tokens=5, max_iters=3) == 1
    assert "step 3: the validation loss is nan" in capsys.readouterr().err
    assert "nan" in [r["name"] for r in records("event")]


def test_a_signal_ends_a_sample_of_any_length(monkeypatch):
    real = Evaluations.sample

    def stop_while_sampling(self):
        def interrupted(*args, **options):
            for count, token in enumerate(generate(*args, **options)):
                if count == 5:
                    self.run.stop.name = "SIGTERM"
                yield token

        if self.run.state.step == 3:
            monkeypatch.setattr(text, "generate", interrupted)
        return real(self)

    generate = text.generate
    monkeypatch.setattr(Evaluations, "sample", stop_while_sampling)
    assert train_tiny(sample_tokens=300) == 0
    lengths = [len(r["detail"]["text"]) for r in records("event") if r["name"] == "sample"]
    assert lengths == [300, 5]
    assert records("end")[0]["reason"] == "signal"
    assert checkpoints.committed(Path("out"))[0].name.startswith("step-00000003")
