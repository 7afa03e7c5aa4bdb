"""Moments of training at which a test steps in, whichever engine computes the updates."""

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from stepglass.train import loop
from stepglass.train.engines.replicas import Replicas
from stepglass.train.engines.single import SingleEngine
from stepglass.train.run import Run
from stepglass.train.saves import Saves
from stepglass.train.training import Training

ENGINES = (SingleEngine, Replicas)


def before_each_update(monkeypatch: pytest.MonkeyPatch, act: Callable[[Run], Any]) -> None:
    """`act` is called with gradients computed and weights not changed yet."""
    real = Saves.protect

    def protect(self: Saves) -> None:
        act(self.run)
        real(self)

    monkeypatch.setattr(Saves, "protect", protect)


def after_each_update(monkeypatch: pytest.MonkeyPatch, act: Callable[[Run], Any]) -> None:
    """`act` is called with weights changed and the step not counted yet."""
    change_norms(monkeypatch, lambda run, norm: (act(run), norm)[1])


def change_norms(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Run, Tensor | None], Tensor | None]
) -> None:
    """What an update says of its gradients goes through `change`."""
    runs: list[Run] = []
    before_each_update(monkeypatch, lambda run: runs.append(run))
    for engine in ENGINES:

        def update(self: Any, grad_clip: float, real: Any = engine.update) -> Tensor | None:
            norm = real(self, grad_clip)
            return change(runs[-1], norm) if runs else norm  # the warm-up has an update as well

        monkeypatch.setattr(engine, "update", update)


def change_losses(monkeypatch: pytest.MonkeyPatch, change: Callable[[int, Tensor], Tensor]) -> None:
    """The loss of each step goes through `change`, which is given the step."""
    for engine in ENGINES:

        def backward(
            self: Any, batches: Any, step: int, counted: float = 1.0, real: Any = engine.backward
        ) -> Tensor:
            return change(step, real(self, batches, step, counted))

        monkeypatch.setattr(engine, "backward", backward)


def after_each_evaluation(monkeypatch: pytest.MonkeyPatch, act: Callable[[Run], Any]) -> None:
    """`act` is called when an evaluation has been logged, and saved if it was to be."""
    real = loop.evaluate_and_save

    def evaluate_and_save(t: Training) -> str | None:
        reason = real(t)
        act(t.run)
        return reason

    monkeypatch.setattr(loop, "evaluate_and_save", evaluate_and_save)
