"""How much evaluations differ by chance, measured from the log itself."""

import math
from dataclasses import dataclass

import numpy as np

from stepglass.explain.rules.loss_curve import noise_of
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval
from stepglass.logs.table import Column

TWO_ERRORS = 2.83  # 2 * sqrt(2): two standard errors of the difference of two evaluations
LEAST_RISE = 0.02
KNOWN = 50.0  # degrees of freedom of a noise that is not measured from a few evaluations
LEAST_LOSSES = 30
MOST_BEFORE = 7  # evaluations before the best that show how losses wander
# Third differences of pure noise resemble their neighbours: this many are worth one independent.
OVERLAP = 2.31
# One-sided 99.5 % quantiles of Student's t: the fewer evaluations, the less their scatter is known.
FREEDOM = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0)
QUANTILE = (63.7, 9.92, 5.84, 4.60, 4.03, 3.50, 3.17, 2.85, 2.68)


@dataclass(frozen=True)
class Scatter:
    """The standard deviation of an evaluation, and how well it is known."""

    sigma: float
    freedom: float

    def least_rise(self, num_evals: int, num_last: int = 1) -> float:
        """How far the mean of the last few evaluations must lie above the lowest of all to be more
        than chance. The lowest is low by chance too, the more so the more there are."""
        quantile = float(np.interp(self.freedom, FREEDOM, QUANTILE))
        return self.sigma * (_luck(num_evals) + quantile / math.sqrt(num_last))

    def likely_rise(self, num_evals: int) -> float:
        """A rise above the lowest that chance seldom makes, but may."""
        doubt = math.sqrt(1 + 2 / self.freedom)
        return self.sigma * doubt * (_luck(num_evals) + 2)


def _luck(num_evals: int) -> float:
    """How far the lowest of so many lies below their mean, in standard deviations."""
    return math.sqrt(2 * math.log(max(num_evals, 2)))


def least_change(part: Part, value: float) -> float:
    """The smallest difference between two evaluations that is more than noise."""
    return max(TWO_ERRORS * (part.val_se or 0.0), LEAST_RISE * abs(value))


def scatter_since(part: Part, best: Eval) -> Scatter | None:
    """The noise of the evaluations about a smooth curve, from the best one on."""
    num = len(part.evals)
    return min(_scatters(part, best), key=lambda s: s.least_rise(num), default=None)


def likely_rise_since(part: Part, best: Eval) -> float:
    """A rise since the best evaluation that chance seldom makes; 0 if nothing is known of noise."""
    return min((s.likely_rise(len(part.evals)) for s in _scatters(part, best)), default=0.0)


def _scatters(part: Part, best: Eval) -> list[Scatter]:
    """The noise, as measured from these evaluations and as known otherwise. Each is a bound."""
    since = [e for e in part.evals if e.line >= best.line]
    settled = part.evals[len(part.evals) // 5 :]  # at the start the loss falls too quickly
    before = [e for e in settled if e.line < best.line][-MOST_BEFORE:]
    wandering = max(_about_curve(since[1:], degree=1), _about_curve(before, degree=2))
    measured, known = _measured(part, since), _known(part)
    result = []
    if measured is not None:
        result.append(Scatter(max(measured.sigma, wandering), measured.freedom))
    if known is not None and (measured is None or measured.sigma <= 1.5 * known):
        result.append(Scatter(max(known, wandering), KNOWN))
    return result


def _measured(part: Part, evals: list[Eval]) -> Scatter | None:
    around = _third_differences(_values(evals))
    if not len(around):
        return None
    if part.format.evaluates_random_batches:  # the training loss is a mean of as many batches
        trains = [e.train_loss for e in evals if e.train_loss is not None]
        more = _third_differences(np.array(trains))
        if len(more) and _spread(more) > _spread(around) / 1.5:
            around = np.concatenate([around, more])
    return Scatter(_spread(around), len(around) / OVERLAP)


def _known(part: Part) -> float | None:
    """The noise of an evaluation if it is printed, or else at most that of the printed losses: an
    evaluation has more batches than a step."""
    if part.val_se is not None and not part.format.evaluates_same_windows:
        return part.val_se
    losses = part.losses[1]
    return noise_of(losses) if len(losses) >= LEAST_LOSSES else None


def _about_curve(evals: list[Eval], degree: int) -> float:
    """The scatter about a straight line or a parabola: it also shows losses that wander slowly."""
    if len(evals) < 6:
        return 0.0
    powers = np.linspace(-1, 1, len(evals))[:, None] ** np.arange(degree + 1)
    values = _values(evals)
    residual = values - powers @ np.linalg.lstsq(powers, values, rcond=None)[0]
    return math.sqrt(float(residual @ residual) / (len(evals) - degree - 1))


def _values(evals: list[Eval]) -> Column:
    return np.array([e.val or 0.0 for e in evals])


def _spread(differences: Column) -> float:
    return math.sqrt(float(np.mean(differences**2)))


def _third_differences(values: Column) -> Column:
    """They remove everything smooth, and leave noise with the same standard deviation."""
    return np.diff(values, 3) / math.sqrt(20) if len(values) > 3 else np.zeros(0)
