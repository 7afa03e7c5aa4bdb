"""Small data gets settings that suit it, smoothly, and only where nobody has chosen."""

from dataclasses import replace
from itertools import pairwise

import pytest

from stepglass.settings.command_line import read_command_line, read_recipe
from stepglass.settings.fit_to_data import (
    Facts,
    choices,
    dropout_for,
    epochs_of,
    facts_line,
    is_small,
    iters_in,
    pressure,
)
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig

ALL = frozenset(TRAIN_SETTINGS.names())


def quick(**changes) -> TrainConfig:
    cfg: TrainConfig = TRAIN_SETTINGS.build(read_recipe("quick"))
    return replace(cfg, **changes)


def facts(tokens: int) -> Facts:
    return Facts(
        train_tokens=tokens, val_tokens=tokens // 9, parameters=507_712, in_embeddings=16_128
    )


def chosen(cfg: TrainConfig, tokens: int, free=ALL) -> dict[str, object]:
    return {choice.key: choice.value for choice in choices(cfg, facts(tokens), free)}


@pytest.mark.parametrize("tokens", [1_000_000, 4_551_515, 10**12])
def test_for_large_data_nothing_is_changed(tokens):
    assert chosen(quick(), tokens) == {}
    assert not is_small(quick(), facts(tokens))


def test_the_smaller_the_data_the_more_dropout_without_a_jump():
    sizes = [1_000_000 * 0.9**n for n in range(80)]
    dropouts = [chosen(quick(), int(size)).get("dropout", 0.0) for size in sizes]
    assert dropouts[0] == 0.0
    assert dropouts[-1] > 0.2
    steps = [after - before for before, after in pairwise(dropouts)]
    assert all(-1e-9 <= step <= 0.03 for step in steps)


def test_longer_runs_and_larger_models_need_more_dropout():
    small = facts(200_000)
    larger = replace(small, parameters=10 * small.parameters)
    assert pressure(quick(), larger) == pytest.approx(10 * pressure(quick(), small))
    assert dropout_for(pressure(quick(), larger)) > dropout_for(pressure(quick(), small))
    assert dropout_for(pressure(quick(max_iters=8000), small)) > dropout_for(
        pressure(quick(), small)
    )


def test_what_somebody_has_chosen_stays_as_it_is():
    command = read_command_line(["notes.txt", "--dropout=0", "--patience=0", "--eval_iters=20"])
    keys = set(chosen(quick(), 45_000, command.free_settings()))
    assert keys == {"weight_decay", "eval_interval", "eval_budget"}
    assert chosen(quick(), 45_000, frozenset()) == {}


@pytest.mark.parametrize(
    "argv", [["--recipe=quick"], ["--init_from=resume"], ["--recipe=none", "--dropout=0.1"]]
)
def test_nothing_is_free_in_a_recipe_that_was_named_or_a_run_that_is_resumed(argv):
    assert read_command_line(argv).free_settings() == frozenset()


def test_a_length_in_epochs_is_a_choice_of_iterations():
    assert "max_iters" not in read_command_line(["--epochs=3"]).free_settings()
    assert "max_iters" in read_command_line(["--dropout=0.1"]).free_settings()


def test_a_dropout_that_is_higher_already_is_kept_and_is_enough():
    assert not {"dropout", "weight_decay"} & set(chosen(quick(dropout=0.4), 45_000))


def test_a_recipe_is_not_changed_for_its_own_data():
    cfg: TrainConfig = TRAIN_SETTINGS.build(read_recipe("shakespeare_char"))
    own = Facts(
        train_tokens=1_003_854, val_tokens=111_540, parameters=2_657_536, in_embeddings=33_280
    )
    found = {choice.key for choice in choices(cfg, own, ALL)}
    assert found == {"eval_iters", "eval_interval", "eval_budget", "patience"}


def test_the_dropout_of_a_recipe_is_left_out_for_large_data():
    assert chosen(quick(dropout=0.15), 10**8) == {"dropout": 0.0}
    assert chosen(quick(dropout=0.15), 10**8, ALL - {"dropout"}) == {}
    assert chosen(quick(), 10**8) == {}


def test_tiny_data_is_not_seen_a_thousand_times():
    found = chosen(quick(max_iters=5000), 9_000)
    assert found["max_iters"] == iters_in(100, quick(), 9_000)
    assert epochs_of(quick(max_iters=found["max_iters"]), 9_000) == pytest.approx(100, rel=0.01)


def test_the_facts_are_on_one_line():
    assert facts_line(quick(), facts(45_000)) == (
        "data: small for this run: 45,000 training tokens, 507,712 parameters (3.2% of them in "
        "embeddings), 27.3 epochs in 800 iterations"
    )


def test_an_epoch_is_every_token_once():
    cfg = quick()
    assert iters_in(1, cfg, cfg.tokens_per_iter * 7) == 7
    assert iters_in(0.001, cfg, cfg.tokens_per_iter) == 1
