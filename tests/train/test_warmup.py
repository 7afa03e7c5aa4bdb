"""What happens before iteration 0 makes it a step like any other, and leaves no trace."""

import os
import signal
from datetime import datetime

import pytest
import torch

from helpers import prepare_tiny, records, train_tiny
from stepglass.process import Interrupted, StopRequest
from stepglass.train import pace, setup, warmup
from stepglass.train.engines.helper_process import Helper
from stepglass.train.engines.replicas import Replicas
from stepglass.train.engines.single import SingleEngine
from stepglass.train.muon import MuonAdamW
from stepglass.train.saves import Saves


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def state_of(run):
    """All that a checkpoint would keep, byte for byte: 0.0 is not -0.0 here."""
    files = run.engine.tensors()
    stored = {
        (file, name): tensor.detach().contiguous().numpy().tobytes()
        for file, tensors in files.items()
        for name, tensor in tensors.items()
    }
    return stored, run.engine.state()


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("grad_clip", [0.0, 1.0])
def test_an_update_is_rehearsed_and_changes_not_a_bit(
    replicas, optimizer, grad_clip, threads, monkeypatch
):
    threads(replicas)
    rehearsed, states = [], []
    real_step, real_rehearse = MuonAdamW.step, setup.rehearse

    def step(self):
        rehearsed.append([p.grad is not None for p in self.parameters()])
        return real_step(self)

    def rehearse(run, windows, compiled_before):
        assert isinstance(run.engine, Replicas) == (replicas > 1)
        states.append(state_of(run))
        with monkeypatch.context() as patch, setup.undisturbed(run):
            patch.setattr(MuonAdamW, "step", step)
            result = real_rehearse(run, windows, compiled_before)
        states.append(state_of(run))
        weights = run.engine.model.parameters()
        states.append([p.grad for p in weights] if replicas == 1 else None)
        return result

    monkeypatch.setattr(setup, "rehearse", rehearse)
    assert train_tiny(optimizer=optimizer, grad_clip=grad_clip, dropout=0.1, max_iters=1) == 0
    before, after, gradients = states
    assert after == before
    assert len(before[0]) > 20
    assert len(rehearsed) == 2  # once to allocate, once to be timed
    assert all(map(all, rehearsed))  # no weight was passed over
    assert gradients is None or all(gradient is None for gradient in gradients)


def test_room_for_a_snapshot_is_asked_for_before_the_first_iteration(monkeypatch):
    reserved = []
    real = Saves.protect

    def protect(self):
        reserved.append(self.writer.is_reserved)
        real(self)

    monkeypatch.setattr(Saves, "protect", protect)
    assert train_tiny(max_iters=3) == 0
    assert reserved == [True] * 3


def test_a_run_that_only_evaluates_makes_no_room_for_snapshots(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "stepglass.checkpoint.writer.CheckpointWriter.reserve",
        lambda self, files: asked.append(files),
    )
    assert train_tiny(eval_only=True) == 0
    assert asked == []


# -- whether to compile, and when the run ends ----------------------------------------------------


def paced(monkeypatch: pytest.MonkeyPatch, step_ms: float) -> None:
    """Let every update seem to take this long."""
    monkeypatch.setattr("stepglass.train.warmup.update_ms_of", lambda run: step_ms)


@pytest.mark.parametrize(("step_ms", "compiles"), [(10.0, False), (200_000.0, True)])
def test_compiling_is_decided_by_updates_that_were_timed(step_ms, compiles, monkeypatch, capsys):
    paced(monkeypatch, step_ms)
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    monkeypatch.setattr("shutil.which", lambda name: name)
    assert train_tiny() == 0
    said = capsys.readouterr().out
    assert f"compile: {compiles}: compiling takes about 1m 00s and saves about" in said
    assert ("compiling the model, about a minute; Ctrl-C stops" in said) == compiles
    assert records("start")[0]["compile"] is compiles


def test_a_busy_moment_does_not_make_updates_seem_long(monkeypatch):
    """Of several, the shortest counts."""
    monkeypatch.setattr(pace, "LEAST_TRIES", 3)
    monkeypatch.setattr(pace, "SHORT_MS", 0.0)
    took = iter([0.9, 0.8, 0.02, 0.01, 0.5, 0.4])
    monkeypatch.setattr(pace, "_seconds", lambda run, work: next(took))
    seen = []
    real = warmup.update_ms_of
    monkeypatch.setattr(
        "stepglass.train.warmup.update_ms_of", lambda run: seen.append(real(run)) or 1
    )
    assert train_tiny(gradient_accumulation_steps=2) == 0
    assert seen == [pytest.approx(1000 * (2 * 0.02 + 0.01))]


def test_a_short_run_is_timed_once(monkeypatch):
    monkeypatch.setattr(pace, "LEAST_TRIES", 3)
    timed = []
    monkeypatch.setattr(pace, "_seconds", lambda run, work: timed.append(work) or 0.1)
    assert train_tiny() == 0
    assert len(timed) == 2  # a batch and an update


def test_a_run_of_more_than_an_hour_says_when_it_will_end(monkeypatch, capsys):
    class Noon(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 3, 2, 12)

    monkeypatch.setattr(pace, "datetime", Noon)
    paced(monkeypatch, 3_600_000.0)
    assert train_tiny(compile=False, max_iters=6, eval_budget=0.05) == 0
    assert (
        "this run will take about 6h 18m, until Monday, 02 March, 18:18; Ctrl-C stops it with a "
        "checkpoint, and --max_iters makes it shorter\n"
    ) in capsys.readouterr().out
    paced(monkeypatch, 1.0)
    assert train_tiny(compile=False) == 0
    assert "this run will take" not in capsys.readouterr().out


def test_a_signal_ends_a_compilation_at_once(threads, monkeypatch, capsys):
    """In a process of its own the compiler would go on for a minute."""
    threads(2)

    def compiler_that_never_ends(model, **options):
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the signal came too late")

    monkeypatch.setattr(torch, "compile", compiler_that_never_ends)
    assert train_tiny(compile=True) == 0
    said = capsys.readouterr().out
    assert "stopped by SIGINT after 0 updates" in said
    assert records("end")[-1]["reason"] == "signal"


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_signal_is_answered_although_the_compiler_takes_it_for_an_error_of_its_own(
    replicas, threads, monkeypatch, capsys
):
    """torch's compiler turns what it does not know into an error. The other replicas are not
    waited for then: they would compile for another minute."""
    threads(replicas)

    def compiler_that_wraps_errors(model, **options):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except BaseException as error:
            raise RuntimeError("internal error of the compiler") from error
        raise AssertionError("the signal came too late")

    waited_for = []
    real = Helper.receive

    def receive(self, patience, is_updating=False):
        waited_for.append(patience._is_stopping())
        return real(self, patience, is_updating)

    monkeypatch.setattr(torch, "compile", compiler_that_wraps_errors)
    monkeypatch.setattr(Helper, "receive", receive)
    assert train_tiny(compile=True) == 0
    said = capsys.readouterr().out
    assert "stopped by SIGINT after 0 updates" in said
    assert "compile failed" not in said
    assert not any(waited_for)


def test_a_signal_during_a_compilation_searches_no_objects_for_cycles(monkeypatch):
    """The compiler, and we, collect garbage on the way out: a million objects, for seconds."""
    frozen = []
    monkeypatch.setattr("stepglass.process.gc.freeze", lambda: frozen.append(True))
    with StopRequest() as stop, pytest.raises(Interrupted), stop.interrupting():
        os.kill(os.getpid(), signal.SIGINT)
    assert frozen == [True]


def test_if_a_batch_fits_only_compiled_the_warm_up_before_takes_some_of_its_rows(
    monkeypatch, capsys
):
    seen = []
    real = SingleEngine.backward

    def backward(self, batches, step, counted=1.0):
        seen.append((self.device.compile, len(batches), len(batches[0][0])))
        return real(self, batches, step, counted)

    monkeypatch.setattr(SingleEngine, "backward", backward)
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    monkeypatch.setattr(setup, "rows_before_compiling", lambda cfg, shape, device: 3)
    assert train_tiny(batch_size=4, gradient_accumulation_steps=2, max_iters=1) == 0
    said = capsys.readouterr().out
    assert "compile: True: the batch fits into memory only if the model is compiled" in said, said
    before = [(batches, rows) for is_compiled, batches, rows in seen if not is_compiled]
    after = [(batches, rows) for is_compiled, batches, rows in seen if is_compiled]
    assert set(before) == {(1, 3)}
    assert set(after) == {(1, 4), (2, 4)}
