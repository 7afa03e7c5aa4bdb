"""`--minutes`: a run that is given a time instead of a number of iterations."""

import json
import re
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from helpers import TINY, prepare_tiny, records
from stepglass import units
from stepglass.cli import main
from stepglass.errors import ConfigError
from stepglass.hardware.choose import pick_device
from stepglass.hardware.peak import Peak
from stepglass.measure.shapes import shape_of
from stepglass.measure.time_model import cpu_chip
from stepglass.settings import fit_to_data
from stepglass.settings.command_line import read_command_line, read_recipe, resolve
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig
from stepglass.train import by_the_clock, fit_to_time, setup
from stepglass.train.fit_to_time import RUNGS, TimeAndData, chip_here, model_for_time, rung_for
from stepglass.train.iterations import Iterations
from stepglass.train.time_budget import TimeBudget

ALL = frozenset(TRAIN_SETTINGS.names())


# -- the budget ---------------------------------------------------------------------------------


class Clock:
    now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


def test_the_schedule_begins_with_the_first_update_and_ends_before_the_last_evaluation():
    clock = Clock()
    budget = TimeBudget(60_000, clock)
    clock.now_ms = 10_000  # start-up
    budget.begin()
    assert budget.share(reserve_ms=2000) == 0
    clock.now_ms = 34_000
    assert budget.share(reserve_ms=2000) == pytest.approx(0.5)
    clock.now_ms = 58_000
    assert budget.share(reserve_ms=2000) == 1
    clock.now_ms = 99_000  # the machine was suspended
    assert budget.share(reserve_ms=2000) == 1
    assert budget.left_ms() < 0


def test_a_resumed_run_spends_the_rest_of_the_time_on_the_rest_of_the_schedule():
    clock = Clock()
    budget = TimeBudget(60_000, clock, spent_ms=30_000, done_before=0.5)
    clock.now_ms = 10_000
    budget.begin()
    assert budget.left_ms() == 20_000
    assert budget.share(reserve_ms=0) == pytest.approx(0.5)
    clock.now_ms = 20_000
    assert budget.share(reserve_ms=0) == pytest.approx(0.75)


def test_a_budget_that_is_used_up_by_the_start_is_over():
    clock = Clock()
    clock.now_ms = 61_000
    budget = TimeBudget(60_000, clock)
    budget.begin()
    assert budget.share(reserve_ms=0) == 1


# -- the model ----------------------------------------------------------------------------------


def a_minute(peak_flops=1e11, **other) -> TimeAndData:
    """Of a small CPU, on a megabyte of text as characters."""
    known = {"seconds": 60, "chip": cpu_chip(peak_flops), "processes": 1}
    known |= {"vocab_size": 65, "train_tokens": 10**6, "val_tokens": 10**5}
    return TimeAndData(**(known | other))


QUICK = TRAIN_SETTINGS.build(read_recipe("quick"))


def test_more_time_and_a_faster_machine_get_a_larger_model():
    sizes = [
        RUNGS.index(rung_for(QUICK, a_minute(seconds=10.0**power, train_tokens=10**9)))
        for power in range(9)
    ]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (0, len(RUNGS) - 1)
    assert a_minute(seconds=120).updates(QUICK) == pytest.approx(
        2 * a_minute().updates(QUICK), 0.01
    )
    fast = a_minute(peak_flops=1e12, seconds=300)
    assert rung_for(QUICK, fast).n_embd > rung_for(QUICK, a_minute(seconds=300)).n_embd


def test_a_cpu_that_is_slower_than_its_peak_promises_gets_a_smaller_model():
    promised = a_minute(seconds=300)
    expected_ms = promised.update_time(QUICK, promised.chip).total_ms
    measured = promised.measured(QUICK, 4 * expected_ms)
    assert measured.updates(QUICK) == pytest.approx(promised.updates(QUICK) / 4, 0.01)
    assert rung_for(QUICK, measured).n_embd < rung_for(QUICK, promised).n_embd


def test_the_chip_of_a_run_is_that_of_the_device_table_with_the_peak_of_the_run():
    card = chip_here("cuda", "NVIDIA GeForce RTX 4070", "bfloat16", 2 * 58.3e12)
    assert (card.bytes_per_s, card.peak_flops) == (504e9, 2 * 58.3e12)
    assert chip_here("cpu", "cpu", "float32", 3e11) == cpu_chip(3e11)


@pytest.mark.parametrize("device_type", ["cpu", "cuda", "mps"])
def test_an_unknown_device_is_taken_for_a_small_one(device_type):
    chip = chip_here(device_type, "NVIDIA Nonesuch 9", "float32", None)
    assert chip.kind == device_type
    assert 1 < a_minute(chip=chip).updates(QUICK) < 1e6


def test_the_learning_rates_suit_the_size_whatever_the_recipe_of_the_device():
    """The recipe of a GPU has the rates of its own larger model."""
    for_gpu = TRAIN_SETTINGS.build(read_recipe("shakespeare_char"))
    facts = a_minute(seconds=1200)
    assert rung_for(for_gpu, facts).settings(for_gpu) == rung_for(QUICK, facts).settings(QUICK)
    gpt2 = TrainConfig(model="gpt2", learning_rate=1e-3)
    assert RUNGS[-1].settings(gpt2)["learning_rate"] == pytest.approx(1e-3 * RUNGS[-1].rate)


def test_the_first_rates_of_the_ladder_are_those_of_quick():
    settings = RUNGS[0].settings(QUICK)
    assert all(settings[name] == getattr(QUICK, name) for name in fit_to_time.RATES)


def test_a_large_vocabulary_gets_a_smaller_model_for_its_head_takes_time():
    few, many = (rung_for(QUICK, a_minute(seconds=1200, vocab_size=size)) for size in (65, 50_257))
    assert many.n_embd < few.n_embd


def test_small_data_gets_a_smaller_model_and_a_context_that_it_has_room_for():
    all_day = {"seconds": 86_400}
    assert rung_for(QUICK, a_minute(**all_day, train_tokens=45_000)).n_embd == 128
    small = rung_for(QUICK, a_minute(**all_day, train_tokens=1800, val_tokens=200))
    assert small == RUNGS[0]


@pytest.mark.parametrize("rung", RUNGS)
def test_every_size_is_a_model_that_can_be_built(rung):
    cfg = TrainConfig(**rung.settings(TrainConfig()))
    cfg.check()
    assert set(rung.settings(cfg)) == set(fit_to_time.MAY_CHANGE)


def test_compiling_takes_a_minute_of_a_gpu_and_a_short_run_does_not_compile():
    card = chip_here("cuda", "NVIDIA GeForce RTX 4090", "bfloat16", None)
    short, long = (a_minute(chip=card, seconds=seconds) for seconds in (60, 3660))
    assert (short.does_compile(QUICK), long.does_compile(QUICK)) == (False, True)
    update_ms = long.update_time(QUICK, card).total_ms
    assert long.updates(QUICK) == int(3600 * 1000 / update_ms)
    assert not long.does_compile(replace(QUICK, compile=False))


def test_several_processes_share_an_update():
    """So each computes a part of it, and what they choose can be divided among them."""
    alone, three = a_minute(seconds=1200), a_minute(seconds=1200, processes=3)
    assert 2 < three.updates(QUICK) / alone.updates(QUICK) <= 3
    for processes in range(1, 9):
        changed = model_for_time(QUICK, a_minute(seconds=300, processes=processes), ALL)
        assert changed["batch_size"] % processes == 0


def test_a_shape_that_was_given_gets_the_rates_of_the_nearest_width():
    changed = model_for_time(TrainConfig(n_embd=700), a_minute(), ALL - {"n_embd"})
    for_768 = RUNGS[-1].settings(TrainConfig())
    assert all(changed[name] == for_768[name] for name in fit_to_time.RATES)


def test_a_part_of_the_shape_that_was_given_keeps_the_rest_of_it():
    facts = a_minute(seconds=600)
    changed = model_for_time(TrainConfig(n_layer=5), facts, ALL - {"n_layer"})
    assert not {"n_layer", "n_embd", "n_head", "n_inner"} & set(changed)
    assert "batch_size" in changed


@pytest.mark.parametrize("given", [{"n_kv_head": 4}, {"n_kv_head": 3}, {"n_head_dim": 48}])
def test_heads_that_were_given_keep_the_shape_they_belong_to(given):
    """An imported model has them as well."""
    cfg = TrainConfig(**given)
    changed = model_for_time(cfg, a_minute(), ALL - set(given))
    assert not {"n_layer", "n_embd", "n_head", "n_inner"} & set(changed)
    assert "batch_size" in changed
    nothing = model_for_time(cfg, a_minute(), ALL - set(given) - set(fit_to_time.MAY_CHANGE))
    assert nothing == {}


def test_a_long_context_that_was_given_gets_a_smaller_model():
    facts = a_minute(seconds=1800)
    free = model_for_time(QUICK, facts, ALL)
    long = model_for_time(TrainConfig(block_size=8192), facts, ALL - {"block_size"})
    assert long["n_embd"] < free["n_embd"]
    assert "block_size" not in long


# -- the machine --------------------------------------------------------------------------------


class Machine:
    """A CPU on which one GFLOP takes `ms_per_gflop`; None: there is too little memory."""

    def __init__(self, monkeypatch, ms_per_gflop: float | None) -> None:
        self.ms_per_gflop = ms_per_gflop
        self.timed: list[TrainConfig] = []
        self.said: list[str] = []
        monkeypatch.setattr(by_the_clock, "time_of", self.time_of)

    def time_of(self, probe, batch_size: int) -> float | None:
        self.timed.append(probe.cfg)
        if self.ms_per_gflop is None:
            return None
        gflop = probe.cfg.tokens_per_iter * probe.shape.flops_per_token() / 1e9
        return gflop * self.ms_per_gflop

    def choose(
        self, minutes: float = 30, free=ALL, group=None, started_ms=0.0, cfg=QUICK
    ) -> TrainConfig:
        around = SimpleNamespace(
            clock=SimpleNamespace(elapsed_ms=lambda: started_ms),
            console=SimpleNamespace(say=self.said.append),
            stop=Event(),
            free=free,
            group=group,
        )
        data = SimpleNamespace(vocab_size=65, train=range(10**7), val=range(10**6))
        speed = (pick_device(TrainConfig(device="cpu")), Peak(1e11, "measured"))
        return by_the_clock.sized_for_time(replace(cfg, minutes=minutes), data, speed, around)


def test_the_size_depends_on_the_speed_of_small_models_here_and_not_on_the_peak_alone(monkeypatch):
    slow, fast = (Machine(monkeypatch, ms).choose() for ms in (500.0, 3.0))
    without_memory = Machine(monkeypatch, None)
    by_peak = without_memory.choose()
    assert slow.n_embd < by_peak.n_embd < fast.n_embd
    flops = by_peak.max_iters * by_peak.tokens_per_iter * shape_of(by_peak, 65).flops_per_token()
    said = without_memory.said[0]
    assert f"minutes: 30: about {units.flops(flops)} fit into the time: " in said


def test_a_machine_that_is_not_what_its_peak_promises_is_looked_at_twice(monkeypatch):
    slow = Machine(monkeypatch, 100.0)
    slow.choose()
    first, second = slow.timed
    assert second.n_embd < first.n_embd


def test_nothing_is_timed_if_that_takes_long_or_decides_nothing_or_others_wait(monkeypatch):
    machine = Machine(monkeypatch, 100.0)
    machine.choose(group="g")  # the other processes wait
    machine.choose(free=ALL - set(fit_to_time.MAY_CHANGE))
    # The model that was given takes seconds for an update.
    shape = {"n_layer": 24, "n_embd": 2048, "n_head": 16, "n_inner": 8192}
    machine.choose(minutes=1, free=ALL - set(shape), cfg=replace(QUICK, **shape))
    assert not machine.timed


def test_a_time_that_the_start_uses_up_is_refused_and_the_least_is_named(monkeypatch):
    machine = Machine(monkeypatch, 100.0)
    machine.choose(minutes=0.25, started_ms=9000)
    with pytest.raises(
        ConfigError, match=r"=0\.2: the start and the end .* 11\.0s here.* least 0\.3"
    ):
        machine.choose(minutes=0.2, started_ms=9000)


# -- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--minutes=0"], "minutes expects a number above 0, found 0; leave it out for max_iters"),
        (["--minutes=5", "--max_iters=9"], "minutes=5 and max_iters=9 both set the length"),
        (["--minutes=5", "--epochs=2"], "minutes=5 and epochs=2.0 both set the length of the run"),
        (["--minutes=-1"], "minutes expects a number above 0, found -1; leave it out"),
        (["--minutes=soon"], "minutes"),
    ],
)
def test_a_length_that_cannot_be_is_one_line(flags, message, capsys):
    prepare_tiny()
    capsys.readouterr()
    assert main(["train", "tiny", *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("out").exists()


def test_a_flag_with_a_length_replaces_the_length_in_a_config_file():
    Path("a.toml").write_text("max_iters = 300\n")
    cfg = resolve(read_command_line(["a.toml", "--minutes=5"]), "quick", lambda folder: {})
    assert cfg.minutes == 5
    cfg = resolve(read_command_line(["a.toml"]), "quick", lambda folder: {})
    assert (cfg.minutes, cfg.max_iters) == (0, 300)


# -- whole runs ---------------------------------------------------------------------------------


def flags(**changes) -> list[str]:
    settings = {key: value for key, value in TINY.items() if key != "max_iters"}
    return [f"--{key}={value}" for key, value in (settings | changes).items()]


@pytest.fixture
def quick_clock(monkeypatch):
    """Two minutes pass in six seconds, from the moment when an update has been timed."""
    monkeypatch.setattr(by_the_clock, "TimeBudget", fast_budget)
    monkeypatch.setattr(by_the_clock, "LEAST_MS", -1e9)


def fast_budget(total_ms, elapsed_ms, **rest):
    began_ms = elapsed_ms()
    return TimeBudget(total_ms, lambda: 50 * (elapsed_ms() - began_ms), **rest)


def test_nothing_is_timed_before_the_memory_is_set_up_as_in_the_run(monkeypatch):
    """Updates took half as long again without that, so a smaller model was chosen."""
    order: list[str] = []
    real = setup.find_peak
    monkeypatch.setattr(setup, "keep_freed_memory", lambda: order.append("memory"))
    monkeypatch.setattr(setup, "find_peak", lambda device: order.append("peak") or real(device))
    prepare_tiny()
    assert main(["train", *flags(max_iters=1)]) == 0
    assert order == ["memory", "peak"]


def test_a_run_ends_when_its_time_is_up_with_the_rate_at_its_end(quick_clock, capsys):
    prepare_tiny("so many words that nobody has seen them all. " * 3000)
    schedule = {"lr_decay_iters": "100%", "warmup_iters": "2%", "min_lr": 0.0001}
    assert main(["train", *flags(minutes=2, eval_interval=10**6, compile=False, **schedule)]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"^minutes: 2: about \d+ iterations, until \d\d:\d\d:\d\d; the learning", shown, re.M
    )
    iterations, end = records("iter"), records("end")[0]
    assert end["reason"] == "finished"
    assert end["iter"] == len(iterations)
    assert json.loads(Path("out/config.json").read_text())["max_iters"] == len(iterations)
    rates = [record["lr"] for record in iterations]
    assert rates[-1] < 0.05 * max(rates)
    assert "go on with" not in shown
    assert main(["train", "--out_dir=out", "--init_from=resume"]) == 2
    error = capsys.readouterr().err
    assert f"--minutes=2: the time of the run in out is over, after {end['iter']} updates" in error
    assert "for more: stepglass resume out --minutes=4" in error
    assert main(["resume", "out", "--minutes=4"]) == 0
    shown = capsys.readouterr().out
    assert "schedule: now for" in shown  # the learning rate rises again
    assert len(records("iter")) > len(iterations)
    assert records("end")[-1]["reason"] == "finished"


def test_no_time_is_spent_on_measuring_the_peak_again_when_the_time_is_up(quick_clock, monkeypatch):
    corrected = []
    monkeypatch.setattr(
        Iterations, "correct_peak", lambda self: corrected.append(self.run.state.step)
    )
    prepare_tiny("so many words that nobody has seen them all. " * 3000)
    assert main(["train", *flags(minutes=2, eval_interval=20, compile=False)]) == 0
    evaluated = [record["iter"] for record in records("eval")]
    assert len(evaluated) > 1
    assert corrected == evaluated[:-1]


def test_data_that_is_too_small_for_the_time_ends_the_run_early_and_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(fit_to_data, "LEAST_ITERS", 3)
    monkeypatch.setattr(fit_to_data, "MOST_EPOCHS", 0.1)
    prepare_tiny()
    assert main(["train", *flags(minutes=500, eval_interval=10**6, compile=False)]) == 0
    shown = capsys.readouterr().out
    assert "the data is too small for so much time: the run ends after 15 iterations" in shown
    assert records("end")[0]["iter"] == 15
