"""`--batch_size=auto`: the fastest micro-batch is measured, and leaves no trace."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from helpers import TINY, prepare_tiny, records
from stepglass.cli import main
from stepglass.hardware.device import Device
from stepglass.settings.train import TrainConfig
from stepglass.train import batch_probe
from stepglass.train.batch_probe import Probe, Tried, fastest, try_sizes


def probe(rows: int, available: int | None = None) -> Probe:
    class FakeDevice:
        type = "cpu"
        threads = 1

        def available_bytes(self) -> int | None:
            return available

    cfg = TrainConfig(batch_size=rows, gradient_accumulation_steps=1)
    return Probe(cfg, FakeDevice(), *[None] * 4, lambda: False)  # type: ignore[arg-type]


def tried_with(monkeypatch, times: dict[int, float | None], rows: int) -> list[Tried]:
    monkeypatch.setattr(batch_probe, "time_of", lambda probe, size: times[size])
    return list(try_sizes(probe(rows)))


def test_the_search_ends_when_smaller_batches_are_clearly_slower(monkeypatch):
    times = {24: 10.0, 12: 10.2, 8: 11.0, 6: 12.0, 4: 1.0}
    assert [each.batch_size for each in tried_with(monkeypatch, times, 24)] == [24, 12, 8, 6]


def test_a_batch_without_memory_is_passed_over(monkeypatch):
    times = {12: None, 6: None, 4: 30.0, 3: 25.0, 2: 27.0, 1: 40.0}
    tried = tried_with(monkeypatch, times, 12)
    assert fastest(tried) == Tried(3, 25.0)


def test_of_batches_that_take_the_same_time_the_largest_is_chosen():
    assert fastest([Tried(24, 10.05), Tried(12, 10.0), Tried(8, 11.0)]) == Tried(24, 10.05)
    assert fastest([Tried(24, None)]) is None


@pytest.mark.parametrize(
    ("times", "chosen"),
    [
        ({4: 5.0, 2: 6.0}, 4),  # two threads of each core: half of all is faster
        ({4: 5.0, 2: 3.0, 1: 2.0}, 1),
        ({4: 9.9, 2: 1.0}, 0),  # hardly faster than all eight
        ({4: None}, 0),
    ],
)
def test_fewer_threads_are_chosen_if_they_are_clearly_faster(times, chosen, threads, monkeypatch):
    threads(8)
    device = Device(torch.device("cpu"), "", torch.float32, 8, False, 1, ())
    said: list[str] = []
    monkeypatch.setattr(batch_probe, "time_of", lambda probe, size: times[probe.device.threads])
    trial = replace(probe(8), device=device, console=SimpleNamespace(say=said.append))
    assert batch_probe.fewer_threads(trial, 10.0) == chosen
    assert torch.get_num_threads() == 8
    assert len(said) == (chosen > 0)


def test_an_engine_that_runs_out_of_memory_is_closed(monkeypatch):
    closed = []

    class Engine:
        def close(self) -> None:
            closed.append(True)

    def run_out(engine, clip):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(batch_probe, "engine_for", lambda probe, cfg: Engine())
    monkeypatch.setattr(batch_probe, "rehearse_update", run_out)
    assert batch_probe.time_of(probe(4), 2) is None
    assert closed == [True]


def flags(**changes) -> list[str]:
    return [f"--{key}={value}" for key, value in (TINY | changes).items()]


def losses(out_dir: str) -> list[float]:
    return [record["loss"] for record in records("iter", out_dir)]


def test_a_run_trains_as_if_the_batch_had_been_given(monkeypatch, capsys):
    prepare_tiny()
    Path("a.toml").write_text("batch_size = 4\ngradient_accumulation_steps = 1\n")
    rest = flags(out_dir="auto", dropout=0.1)
    rest = [word for word in rest if not word.startswith(("--batch_size", "--gradient"))]
    real = batch_probe.time_of
    made_up = {4: 3.0, 2: 1.0, 1: 2.0}
    monkeypatch.setattr(
        batch_probe, "time_of", lambda probe, size: real(probe, size) and made_up[size]
    )
    assert main(["train", "a.toml", *rest, "--batch_size=auto"]) == 0
    shown = capsys.readouterr().out
    assert "batch_size: 2 in 2 steps: the fastest way to 4 sequences per update (4: 3.0" in shown
    settings = json.loads(Path("auto/config.json").read_text())
    assert (settings["batch_size"], settings["gradient_accumulation_steps"]) == (2, 2)
    given = flags(out_dir="given", dropout=0.1, batch_size=2, gradient_accumulation_steps=2)
    assert main(["train", *given]) == 0
    assert losses("auto") == losses("given")


def test_a_run_uses_the_threads_that_are_faster_and_a_resumed_one_too(threads, monkeypatch, capsys):
    threads(2)
    prepare_tiny()
    rest = [word for word in flags() if not word.startswith("--batch_size")]
    times = {2: 8.0, 1: 4.0}
    monkeypatch.setattr(batch_probe, "time_of", lambda probe, size: times[probe.device.threads])
    assert main(["train", *rest, "--batch_size=auto"]) == 0
    assert "threads: 1: an update takes 4.00ms, and 8.00ms with 2" in capsys.readouterr().out
    assert json.loads(Path("out/config.json").read_text())["threads"] == 1
    assert main(["resume", "out", "--max_iters=8"]) == 0
    assert [record["threads"] for record in records("start")] == [1, 1]
    assert torch.get_num_threads() == 2


def test_more_threads_than_cores_are_refused(capsys):
    prepare_tiny()
    assert main(["train", *flags(threads=4096)]) == 2
    assert "--threads=4096: expected at most" in capsys.readouterr().err


def test_a_resumed_run_keeps_what_was_chosen(capsys):
    prepare_tiny()
    rest = [word for word in flags() if not word.startswith("--batch_size")]
    assert main(["train", *rest, "--batch_size", "auto"]) == 0
    chosen = json.loads(Path("out/config.json").read_text())["batch_size"]
    capsys.readouterr()
    assert main(["resume", "out", "--max_iters=8", "--batch_size=auto"]) == 0
    assert "fastest way" not in capsys.readouterr().out
    assert json.loads(Path("out/config.json").read_text())["batch_size"] == chosen


@pytest.mark.parametrize("words", [["--batch_size=4", "--batch_size=auto"], ["--batch_size="]])
def test_a_batch_size_that_cannot_be_is_one_line(words, capsys):
    assert main(["train", *words]) == 2
    assert re.fullmatch(r"error: .*batch_size.*\n", capsys.readouterr().err)
