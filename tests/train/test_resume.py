"""A resumed run is the run that was never stopped, to the last bit."""

import json
import random
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import MODEL, TEXT, prepare_tiny, story, train_tiny
from hooks import after_each_evaluation, before_each_update
from runs import digest, evaluations, losses, resume, stop_after
from stepglass.checkpoint import tensors
from stepglass.cli import main
from stepglass.data import dataset
from stepglass.hardware.processor import processor_facts
from stepglass.run_dir import checkpoints
from stepglass.train import environment, loop, setup
from stepglass.train import resume as train_resume
from stepglass.train.run import RunState

EXACT = {
    "dropout": 0.2,
    "max_iters": 10,
    "eval_interval": 4,
    "gradient_accumulation_steps": 2,
    "batch_size": 2,
}


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(name, marks=pytest.mark.finished_run(**EXACT, dtype=name, out_dir="whole"))
        for name in ("float32", "float16")
    ],
)
@pytest.mark.parametrize("step", [1, 3, 4, 5, 9])
def test_stopping_at_any_step_changes_nothing(step, dtype, monkeypatch):
    settings = EXACT | {"dtype": dtype}
    with monkeypatch.context() as patch:
        stop_after(patch, step)
        assert train_tiny(**settings, out_dir="parts") == 0
    assert tensors.load_snapshot(checkpoints.committed(Path("parts"))[0]).step == step
    assert resume("parts") == 0
    assert digest("parts") == digest("whole")
    assert losses("parts") == losses("whole")
    assert evaluations("parts") == evaluations("whole")


@pytest.mark.finished_run(**EXACT, out_dir="whole")
def test_three_stops_in_a_row_change_nothing(monkeypatch):
    for index, step in enumerate((2, 5, 7)):
        with monkeypatch.context() as patch:
            stop_after(patch, step)
            assert (resume("parts") if index else train_tiny(**EXACT, out_dir="parts")) == 0
    assert resume("parts") == 0
    assert digest("parts") == digest("whole")
    assert losses("parts") == losses("whole")


@pytest.mark.finished_run(**EXACT, out_dir="whole")
@pytest.mark.finished_run(**EXACT, out_dir="parts")
def test_going_on_from_an_older_checkpoint_after_a_crash_changes_nothing():
    for path in checkpoints.committed(Path("parts"))[:-1]:
        shutil.rmtree(path)  # as if the process had died before it could save
    assert resume("parts") == 0
    assert digest("parts") == digest("whole")
    assert losses("parts") == losses("whole")


# -- negative controls: leave one item of state out, and the comparison above must fail ---------


def draw_from_every_generator(monkeypatch) -> None:
    """Training whose every update also draws from Python's and NumPy's generators, as code of a
    user's may."""
    before_each_update(monkeypatch, lambda run: (random.gauss(0, 1), np.random.standard_normal()))


def stop_after_evaluating_at(monkeypatch, step: int) -> None:
    """A signal that arrives just when an evaluation has been logged."""

    def signal(run):
        if run.state.step == step:
            run.stop.name = "SIGINT"

    after_each_evaluation(monkeypatch, signal)


def find_the_best_at(monkeypatch, best: int) -> None:
    """Validation losses that grow with the distance from a step: which evaluation is the best
    must not hang on how a processor rounds."""
    real_boundary, real_evaluate = loop.evaluate_and_save, loop.evaluate
    now = 0

    def boundary(t):
        nonlocal now
        now = t.run.state.step
        return real_boundary(t)

    def evaluate(*args):
        found = real_evaluate(*args)
        return replace(found, val_loss=found.val_loss + 10 * abs(now - best))

    monkeypatch.setattr(loop, "evaluate_and_save", boundary)
    monkeypatch.setattr(loop, "evaluate", evaluate)


def everything(out_dir: str) -> dict[str, object]:
    """All that a resumed run must have in common with an unbroken one."""
    newest = tensors.load_snapshot(checkpoints.committed(Path(out_dir))[0])
    counters = {key: newest.state[key] for key in asdict(RunState())}
    best = json.loads((Path(out_dir) / "best.json").read_text())
    return {
        **digest(out_dir),
        "losses": losses(out_dir),
        "evaluations": evaluations(out_dir),
        "counters": counters,
        "scaler": newest.state["scaler"],
        "best": (best["dir"][:13], best["val_loss"]),
    }


def without_tensors(part: str, belongs) -> object:
    """Zeros in the place of some tensors."""

    def spoil(loaded):
        kept = {
            name: torch.zeros_like(tensor) if belongs(name) else tensor
            for name, tensor in getattr(loaded, part).items()
        }
        return replace(loaded, **{part: kept})

    return spoil


def with_fresh_generator(name: str):
    """A generator as it is at the start of a process."""

    def spoil(loaded):
        torch.manual_seed(99)
        random.seed(99)
        np.random.seed(99)
        fresh = {k: v for k, v in tensors.rng_tensors().items() if k.partition(".")[0] == name}
        return replace(loaded, rng={**loaded.rng, **fresh})

    return spoil


def with_state(**changes):
    def spoil(loaded):
        return replace(loaded, state={**loaded.state, **changes})

    return spoil


CONTROLS = {
    "nothing": lambda loaded: loaded,
    "weights": without_tensors("model", lambda name: "ln_1" in name or "input_layernorm" in name),
    "first moments": without_tensors("optim", lambda name: name.endswith(".exp_avg")),
    "second moments": without_tensors("optim", lambda name: name.endswith(".exp_avg_sq")),
    "the optimizer's step": without_tensors("optim", lambda name: name.endswith(".step")),
    "torch's generator": with_fresh_generator("torch"),
    "python's generator": with_fresh_generator("python"),
    "numpy's generator": with_fresh_generator("numpy"),
    "the gradient scaler": with_state(scaler={}),
    "the step": with_state(step=0),
    "tokens": with_state(tokens=0),
    "evaluated_at": with_state(evaluated_at=-1),
    "best_val_loss": with_state(best_val_loss=None),
    "best_step": with_state(best_step=None),
}
if MODEL == "modern":
    CONTROLS["Muon's momentum"] = without_tensors("optim", lambda name: name.endswith(".momentum"))


@pytest.mark.slow
@pytest.mark.parametrize("left_out", CONTROLS)
def test_leaving_out_any_item_of_the_state_is_noticed(left_out, monkeypatch, kept_runs):
    """The comparison can fail, in every one of its parts."""
    draw_from_every_generator(monkeypatch)
    find_the_best_at(monkeypatch, 4)  # before the end, or its memory would not matter

    def train_whole_and_in_parts():
        settings = EXACT | {"dtype": "float16"}
        train_tiny(**settings, out_dir="whole")
        with monkeypatch.context() as patch:
            stop_after_evaluating_at(patch, 8)
            train_tiny(**settings, out_dir="parts")

    kept_runs.copy_of("a run with controls, and one that was stopped", train_whole_and_in_parts)
    assert everything("whole")["best"][0] == "step-00000004"
    real = setup.restore

    def restore_without(s, path, loaded):
        real(s, path, CONTROLS[left_out](loaded))

    monkeypatch.setattr(setup, "restore", restore_without)
    resume("parts")
    assert (everything("parts") == everything("whole")) == (left_out == "nothing")


@pytest.mark.finished_run
@pytest.mark.parametrize("knows_position", [True, False])
def test_a_log_that_was_cut_is_noticed_by_its_position(knows_position, monkeypatch, capsys):
    log = Path("out/run.jsonl")
    log.write_bytes(log.read_bytes()[:500])
    capsys.readouterr()
    real = tensors.newest

    def newest(*args):
        path, loaded = real(*args)
        return path, loaded if knows_position else with_state(log_bytes=None)(loaded)

    monkeypatch.setattr(tensors, "newest", newest)
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=7"]) == 0
    warned = re.search(
        r"warning: out/run.jsonl: expected at least \d+ bytes, found 500: iterations before step 6",
        capsys.readouterr().out,
    )
    assert bool(warned) == knows_position


@pytest.mark.finished_run(max_iters=3)
def test_what_makes_exactness_impossible_is_named(monkeypatch, capsys):
    capsys.readouterr()
    real = train_resume.environment
    monkeypatch.setattr(train_resume, "environment", lambda d: {**real(d), "threads": 99})
    flags = ["--max_iters=6", "--batch_size=8", "--log_interval=2"]
    assert main(["train", "--out_dir=out", "--init_from=resume", *flags]) == 0
    (line,) = re.findall(r"note: not the same bits.*", capsys.readouterr().out)
    assert re.fullmatch(
        r"note: not the same bits as an unbroken run: threads was \d+, is 99, "
        r"batch_size was 4, is 8",
        line,
    )


def test_settings_of_the_run_are_remembered_and_flags_still_win():
    train_tiny(max_iters=3, learning_rate=5e-3, beta2=0.9)
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=8"]) == 0
    config = json.loads(Path("out/config.json").read_text())
    assert (config["learning_rate"], config["beta2"], config["max_iters"]) == (5e-3, 0.9, 8)
    assert [r["iter"] for r in story("iter")] == list(range(8))


@pytest.mark.finished_run(max_iters=3)
def test_a_config_file_that_says_another_model_than_the_runs_is_read_for_the_rest(capsys):
    """As in nanoGPT: the shape is the checkpoint's."""
    Path("c.py").write_text("n_layer = 3\nbeta2 = 0.9\n")
    capsys.readouterr()
    assert main(["train", "c.py", "--out_dir=out", "--init_from=resume", "--max_iters=5"]) == 0
    assert "note: c.py line 1: n_layer=3 is not used: the run has 2\n" in capsys.readouterr().out
    config = json.loads(Path("out/config.json").read_text())
    assert (config["n_layer"], config["beta2"], config["max_iters"]) == (2, 0.9, 5)


@pytest.mark.finished_run(max_iters=3)
def test_a_setting_that_means_what_the_run_has_is_taken(capsys):
    same, other = ("muon", "adamw") if MODEL == "modern" else ("adamw", "muon")
    flags = ["--out_dir=out", "--init_from=resume", "--max_iters=5"]
    assert main(["train", *flags, f"--optimizer={other}"]) == 2
    assert "has 'auto'" in capsys.readouterr().err
    assert main(["train", *flags, f"--optimizer={same}"]) == 0


@pytest.mark.finished_run(max_iters=3, out_dir="first")
@pytest.mark.parametrize("way", [shutil.move, shutil.copytree])
def test_a_run_that_was_moved_or_copied_goes_on_where_it_is_now(way):
    way("first", "out")
    assert main(["train", "--init_from=resume", "--max_iters=5"]) == 0
    assert tensors.load_snapshot(checkpoints.committed(Path("out"))[0]).step == 5
    assert json.loads(Path("out/config.json").read_text())["out_dir"] == "out"
    assert Path("first").exists() == (way is shutil.copytree)
    if Path("first").exists():
        assert tensors.load_snapshot(checkpoints.committed(Path("first"))[0]).step == 3


@pytest.mark.finished_run
def test_a_damaged_checkpoint_is_passed_over_with_its_reason(capsys):
    newest, older = checkpoints.committed(Path("out"))
    (newest / "model.safetensors").write_bytes(b"junk")
    capsys.readouterr()
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=7"]) == 0
    out = capsys.readouterr().out
    assert f"skipped {newest.name}: {newest}/model.safetensors: expected" in out
    assert f"{older.name}, 3 updates done" in out


@pytest.mark.finished_run
@pytest.mark.parametrize(
    ("spoil", "flags", "message"),
    [
        (
            lambda: shutil.rmtree("out/ckpt"),
            [],
            "out: expected a checkpoint, found none",
        ),
        (lambda: shutil.rmtree("out"), [], "out: nothing to resume: expected a run directory"),
        (
            lambda: None,
            [],
            "--max_iters=6: the run in out has done 6 updates already; for more: stepglass resume ",
        ),
        (
            lambda: None,
            ["--max_iters=2"],
            "--max_iters=2: the run in out has done 6 updates already",
        ),
        (
            lambda: None,
            ["--max_iters=9", "--recipe=speedrun"],
            "recipe='speedrun': the run in 'out' has 'none'; leave it out",
        ),
        (lambda: None, ["--n_layer=3"], "n_layer=3: the run in 'out' has 2; leave it out"),
        (
            lambda: prepare_tiny("another text with the same kind of letters " * 99),
            ["--max_iters=9"],
            "found",
        ),
        (
            lambda: (shutil.rmtree("out/ckpt"), Path("out/config.json").write_text("[]")),
            [],
            "expected a JSON object of settings, found list",
        ),
        (
            lambda: (shutil.rmtree("out/ckpt"), Path("out/config.json").write_text("{")),
            [],
            "out/config.json: cannot be read",
        ),
    ],
)
def test_what_cannot_be_resumed_is_refused_and_nothing_starts_over(spoil, flags, message, capsys):
    spoil()
    capsys.readouterr()
    assert main(["train", "--out_dir=out", "--init_from=resume", *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.finished_run
def test_a_checkpoint_is_usable_by_itself(capsys):
    """A folder that was deleted and made again by the writer once lacked settings and tokenizer."""
    for path in Path("out").iterdir():
        if path.name != "ckpt":
            path.unlink()
    capsys.readouterr()
    assert main(["sample", "out", "--prompt=To be", "--max_new_tokens=5"]) == 0
    assert capsys.readouterr().out.startswith("To be")
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 0
    assert tensors.load_snapshot(checkpoints.committed(Path("out"))[0]).step == 9


@pytest.mark.finished_run
@pytest.mark.parametrize("damage", ["{", "[]", '{"n_layer": 2,'])
def test_damaged_settings_are_taken_from_the_newest_checkpoint(damage):
    Path("out/config.json").write_text(damage)
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 0
    assert json.loads(Path("out/config.json").read_text())["n_embd"] == 16


@pytest.mark.finished_run
def test_the_alphabet_is_the_checkpoints_own(capsys):
    """A flipped bit in the run's tokenizer.json once made it write another text."""
    assert main(["sample", "out", "--prompt=To", "--max_new_tokens=50"]) == 0
    before = capsys.readouterr().out
    tokenizer = json.loads(Path("out/tokenizer.json").read_text())
    swapped = tokenizer["chars"] | {"a": tokenizer["chars"]["b"], "b": tokenizer["chars"]["a"]}
    Path("out/tokenizer.json").write_text(json.dumps({"kind": "char", "chars": swapped}))
    assert main(["sample", "out", "--prompt=To", "--max_new_tokens=50"]) == 0
    assert capsys.readouterr().out == before


def test_a_damaged_best_json_is_said_and_mended_from_the_checkpoint(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        find_losses(patch, 5.0, 1.0, 2.0)
        train_tiny(max_iters=6, always_save_checkpoint=True)
    Path("out/best.json").write_text('{"dir": "step-0000')
    find_losses(monkeypatch, 9.0)
    capsys.readouterr()
    assert main(["sample", "out", "--prompt=To"]) == 0
    assert "note: taking the newest checkpoint: out/best.json: damaged" in capsys.readouterr().err
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=7"]) == 0
    assert "warning: out/best.json: damaged" in capsys.readouterr().out
    best = checkpoints.best(Path("out"))
    assert best is not None
    assert (best.name[:13], best.val_loss) == ("step-00000003", 1.0)


@pytest.mark.finished_run(max_iters=3)
@pytest.mark.parametrize("key", ["cpu", "cpu_capability", "math"])
def test_another_processor_is_named(key, monkeypatch, capsys):
    capsys.readouterr()
    real = processor_facts()
    monkeypatch.setattr(environment, "processor_facts", lambda: {**real, key: "another"})
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=6"]) == 0
    note = f"note: not the same bits as an unbroken run: {key} was {real[key]}, is another"
    assert note in capsys.readouterr().out


@pytest.mark.finished_run
def test_other_data_with_the_same_vocabulary_is_refused(capsys):
    prepare_tiny(TEXT[::-1])
    capsys.readouterr()
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 2
    assert "was trained on other data than data/tiny holds now" in capsys.readouterr().err


def find_losses(monkeypatch, *losses: float) -> None:
    """Evaluations that find the given validation losses, one after the other."""
    real, script = loop.evaluate, iter(losses)
    monkeypatch.setattr(loop, "evaluate", lambda *a: replace(real(*a), val_loss=next(script)))


def test_a_best_that_was_saved_but_not_yet_named_is_named_on_resume(monkeypatch):
    """As after a kill between the checkpoint's commit and best.json."""
    with monkeypatch.context() as patch:
        find_losses(patch, 5.0, 1.0)
        train_tiny(max_iters=3)
    Path("out/best.json").unlink()
    find_losses(monkeypatch, 9.0)
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=4"]) == 0
    best = json.loads(Path("out/best.json").read_text())
    assert (best["dir"][:13], best["val_loss"]) == ("step-00000003", 1.0)


@pytest.mark.finished_run(**EXACT, out_dir="whole")
def test_a_run_stopped_in_its_last_evaluation_can_be_finished(monkeypatch):
    real = loop.evaluate

    def interrupted(*args):
        return None if args[-1]() else real(*args)

    with monkeypatch.context() as patch:
        stop_after(patch, EXACT["max_iters"])
        patch.setattr(loop, "evaluate", interrupted)
        train_tiny(**EXACT, out_dir="parts")
    assert [r["iter"] for r in story("eval", "parts")] == [0, 4, 8]
    assert resume("parts") == 0
    assert evaluations("parts") == evaluations("whole")
    assert digest("parts") == digest("whole")
    assert main(["train", "--out_dir=parts", "--init_from=resume"]) == 2  # now it is complete


@pytest.mark.finished_run(**EXACT, out_dir="whole")
def test_data_that_fails_inside_an_update_leaves_a_checkpoint_that_resumes_exactly(monkeypatch):
    real = dataset.TokenFile.windows
    calls = []

    def fail_once(self, offsets, length):
        calls.append(self.path.name)
        if len([name for name in calls if name == "train.bin"]) == 12:
            raise dataset.DataError("the disk had a moment")
        return real(self, offsets, length)

    with monkeypatch.context() as patch:
        patch.setattr(dataset.TokenFile, "windows", fail_once)
        assert train_tiny(**EXACT, out_dir="parts") == 2
    assert resume("parts") == 0
    assert digest("parts") == digest("whole")
    assert losses("parts") == losses("whole")


@pytest.mark.finished_run(max_iters=3)
def test_a_machine_that_differs_is_named(threads, capsys):
    threads(7)
    assert (
        main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=6", "--dtype=bfloat16"])
        == 0
    )
    out = capsys.readouterr().out
    assert "note: not the same bits as an unbroken run: " in out
    assert "dtype was float32, is bfloat16" in out
    assert "is 7" in out
