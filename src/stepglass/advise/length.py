"""How long the run is: `max_iters`, or the updates that `minutes` or `epochs` stand for.

`train` takes one of the three. Minutes become updates only when the time of an update is known.
"""

from dataclasses import replace

from stepglass.advise.asked_length import epochs_in_updates
from stepglass.advise.case import Basis, Case, Reason
from stepglass.errors import ConfigError
from stepglass.measure.compile_gain import COMPILE_S
from stepglass.settings import fit_to_data


def with_length(case: Case, ms: float | None, does_compile: bool) -> tuple[Case, list[Reason]]:
    """The case with the number of updates, and the reason for it. `ms` is the time of one."""
    cfg = case.subject.cfg
    if cfg.epochs:
        cfg = epochs_in_updates(cfg, case.subject.data.train_tokens)
        reason = Reason("epochs", "calculated", max_iters=cfg.max_iters, dataset=cfg.dataset)
        return case.lasting(cfg.max_iters), [reason]
    if not cfg.minutes:
        return case, []
    if ms is None:
        _check_nanogpt_has_length(case)
        return replace(case, has_length=False), [Reason("minutes", "estimated", variant="unknown")]
    start_ms = 1000 * COMPILE_S.get(case.target.kind, 0.0) if does_compile else 0.0
    left_ms = (cfg.minutes * 60_000 - start_ms) * (1 - cfg.eval_budget)
    fitting = max(1, int(left_ms / ms))
    most = _most(case)
    values = {"max_iters": min(fitting, most or fitting), "dataset": cfg.dataset}
    variant = "small" if most is not None and most < fitting else "fit"
    ran = case.subject.measured
    basis: Basis = "measured" if ran is not None and ran.step_ms is not None else "estimated"
    reason = Reason("minutes", basis, variant=variant, epochs=fit_to_data.MOST_EPOCHS, **values)
    case = case.lasting(min(fitting, most or fitting))
    return replace(case, ends_early=variant == "small"), [reason]


def _most(case: Case) -> int | None:
    """Where `train` ends a run whose data is too small for its minutes."""
    tokens = case.subject.data.train_tokens
    if tokens is None or case.trainer == "nanogpt":
        return None
    enough = fit_to_data.iters_in(fit_to_data.MOST_EPOCHS, case.subject.cfg, tokens)
    return max(fit_to_data.LEAST_ITERS, enough)


def _check_nanogpt_has_length(case: Case) -> None:
    if case.trainer == "nanogpt":
        raise ConfigError(
            f"--minutes={case.subject.cfg.minutes:g} with --for=nanogpt: nanoGPT counts updates, "
            "and the speed of this device is not known; give --max_iters instead"
        )


def run_ms(case: Case, update_ms: float | None) -> float | None:
    """The time of the run's updates, as far as it is known."""
    cfg = case.subject.cfg
    if fills_minutes(case):
        return cfg.minutes * 60_000
    return None if update_ms is None else update_ms * cfg.max_iters


def fills_minutes(case: Case) -> bool:
    """Does the run take all of the minutes that it was given?"""
    return bool(case.subject.cfg.minutes) and not case.ends_early
