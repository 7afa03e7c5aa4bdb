"""The benchmarks: ratios, measured by turns, written to JSON."""

import json
import re
from pathlib import Path

import pytest

from stepglass.bench import command, gpu, loops, throughput, time_to_loss
from stepglass.cli import main
from stepglass.errors import ConfigError, TrainingFailed
from stepglass.measure.records import IterRecord
from stepglass.settings.nanogpt_defaults import CPU_FLAGS

TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 8, "batch_size": 2}


class FakeMachine:
    """Time passes when a loop runs, at a speed that drifts: the machine is shared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slowness = 1.0
        monkeypatch.setattr(loops.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(loops.time, "sleep", lambda seconds: None)

    def loop(self, seconds_per_step: float) -> "FakeLoop":
        return FakeLoop(self, seconds_per_step)


class FakeLoop:
    def __init__(self, machine: FakeMachine, seconds_per_step: float) -> None:
        self.machine, self.seconds_per_step = machine, seconds_per_step

    def run(self, steps: int) -> None:
        self.machine.now += steps * self.seconds_per_step * self.machine.slowness
        self.machine.slowness *= 1.01


def test_a_ratio_survives_a_machine_that_gets_slower(monkeypatch):
    machine = FakeMachine(monkeypatch)
    ratio = loops.paired_ratio(machine.loop(0.2), machine.loop(0.1), rounds=50, steps=3)
    assert ratio == pytest.approx(2.0, rel=0.001)


@pytest.mark.parametrize("kind", ["ours", "plain"])
def test_a_loop_runs_in_a_process_of_its_own_and_ends_with_it(kind):
    with loops.Worker(kind, TINY) as worker:
        mfu = worker.run(2)
        if kind == "ours":
            assert mfu is not None
            assert loops.BareUpdates(worker).run(2) is None
        process = worker._process
        assert process.is_alive()
    assert not process.is_alive()


def test_a_loop_that_cannot_be_built_says_why_and_leaves_no_process():
    worker = loops.Worker("ours", TINY | {"n_head": 3})
    with pytest.raises(ConfigError, match="n_head=3 must divide n_embd=16"):
        worker.__enter__()
    worker._process.join(20)
    assert not worker._process.is_alive()


def test_the_plain_model_has_as_many_weights_as_ours():
    shape = throughput.gpt_shape(loops.NANOGPT_CPU)
    plain = loops.PlainGPT(shape)
    assert sum(p.numel() for p in plain.parameters()) == shape.num_params()


def test_sizes_are_what_they_are_called():
    sizes = {n: throughput.gpt_shape(s | throughput.TOKENS) for n, s in throughput.SCALES.items()}
    for name, shape in sizes.items():
        assert shape.num_params() / 1e6 == pytest.approx(float(name.removesuffix("M")), rel=0.15)
    assert throughput.gpt_shape(loops.BABY).num_params() / 1e6 == pytest.approx(10.7, abs=0.1)


def test_time_to_loss_is_summed_up_as_medians():
    said: list[str] = []
    result = time_to_loss.summarize_race(
        said.append,
        {"speedrun": [9.0, 10.0, 30.0], "long": [90.0] * 3, "gpt2": [100.0, 110.0, 90.0]},
        {"speedrun": [1.87, 1.88, 1.86], "long": [1.57] * 3, "gpt2": [1.91, 1.90, 1.89]},
    )
    assert result["gpt2_over_speedrun"] == 10.0
    assert result["all_reached_target"]
    assert result["lower_at_equal_time"] == 0.33
    assert said[0] == "val <= 1.88: 10.0 times as fast as gpt2, from start to end"


def test_both_sides_are_given_the_same_data_and_nanogpts_own_settings(tmp_path):
    checkout = tmp_path / "nano"
    checkout.mkdir()
    (checkout / "train.py").write_text("")
    (checkout / "configurator.py").write_text("")
    folder = tmp_path / "work"
    folder.mkdir()
    commands = time_to_loss.sides(folder, checkout)
    assert list(commands) == ["speedrun", "long", "gpt2", "nanogpt"]
    assert set(time_to_loss.as_flags(CPU_FLAGS)) <= set(commands["gpt2"])
    assert set(time_to_loss.as_flags(CPU_FLAGS)) <= set(commands["nanogpt"])
    assert all("--dataset=shakespeare_char" in commands[s] for s in ("speedrun", "long", "gpt2"))
    with pytest.raises(ConfigError, match="expected a checkout of nanoGPT, found none"):
        time_to_loss.sides(folder, tmp_path / "nowhere")


def test_a_side_that_fails_is_named(tmp_path):
    with pytest.raises(TrainingFailed, match="failed: "):
        time_to_loss.seconds_of_command(["python3", "-c", "raise SystemExit('no')"], tmp_path)


def test_results_are_written_after_each_benchmark(monkeypatch):
    monkeypatch.setattr(throughput, "peak_now", lambda: 1e11)
    monkeypatch.setattr(throughput, "against_plain", lambda say, rounds: {"ours_over_plain": 1.2})
    monkeypatch.setattr(throughput, "of_peak", lambda say, rounds: 1 / 0)
    cfg = command.BenchConfig(out="b.json")
    with pytest.raises(ZeroDivisionError):
        command.bench(["speed", "peak"], cfg, lambda line: None)
    written = json.loads(Path("b.json").read_text())
    assert written["speed"] == {"ours_over_plain": 1.2}
    assert written["matmul_peak_flops"] == 1e11


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["fast"], "unknown benchmark 'fast'; expected speed, peak, scaling, loss, gpu"),
        (["--text=none.txt"], "--text=none.txt: expected a text file, found none"),
        (["--out=no/where.json"], "--out=no/where.json: its folder does not exist"),
        (["--rounds=-1"], "--rounds: rounds must be at least 0, found -1"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(argv, message, capsys):
    assert main(["bench", *argv]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_help_lists_the_benchmarks(capsys):
    assert main(["bench", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in command.HELP)


# -- a GPU ----------------------------------------------------------------------------------------


def test_without_a_gpu_it_says_so(capsys, tmp_path):
    assert main(["bench", "gpu", f"--out={tmp_path}/bench.json"]) == 2
    assert "error: bench gpu: expected a GPU that torch" in capsys.readouterr().err


def test_the_lines_to_send_have_everything_even_if_some_is_unknown(threads):
    threads(1)
    said = []
    found = gpu.measure(said.append, TINY | {"device": "cpu"}, steps=3)
    assert said[1].startswith("device: ")
    assert said[3].startswith("nanoGPT's model in a plain loop: ")
    assert list(found["models"]) == ["gpt2", "modern"]
    for model, lines in zip(found["models"], (said[4:8], said[8:12]), strict=True):
        assert re.fullmatch(
            rf"{model}: \d+\.\d\d ms per update, MFU \S+, peak memory n/a", lines[0]
        ), lines[0]
        assert lines[1] == f"{model} on the device's clock: n/a"
        assert lines[2].startswith(f"{model} stalls: ")
        assert lines[3] == f"{model} pace: n/a"
    assert said[12:] == ["--- end ---"]


def test_the_parts_of_an_update_are_means_on_the_devices_clock():
    def update(ms: float | None) -> IterRecord:
        phases = None if ms is None else {"forward_backward": ms, "eval": 9.0}
        return IterRecord(
            iter=0, loss=1.0, lr=0.1, grad_norm=None, tokens=8, wall_ms=1.0, phases={}, mfu=None,
            device_phases=phases,
        )  # fmt: skip

    assert gpu.device_ms([update(None)]) is None
    parts = gpu.device_ms([update(2.0), update(4.0)])
    assert parts == {"data": 0.0, "forward_backward": 3.0, "optimizer": 0.0}
