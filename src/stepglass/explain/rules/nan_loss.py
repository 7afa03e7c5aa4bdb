"""The loss became NaN or infinite, or vanished from the lines."""

import math

import numpy as np

from stepglass.explain.finding import Change, Finding, Number, Status
from stepglass.explain.rules.calmer_settings import calmer
from stepglass.explain.rules.gpu_limits import better_dtype
from stepglass.explain.rules.gradient_norms import at_the_end, bad_norms
from stepglass.explain.rules.loss_curve import noise_of
from stepglass.explain.study import Part
from stepglass.logs.table import median


def find_nan_loss(part: Part) -> list[Finding]:
    if part.segment.nan_line is not None:
        return [_nan(part)]
    return _vanished(part) or _bad_evaluation(part)


def _nan(part: Part) -> Finding:
    segment = part.segment
    last, dtype = segment.last_finite, str(part.setting("dtype") or "")
    is_first = last is None and (segment.first_iter or 0) <= 1
    has_exploded = _explodes(part)
    change: Change = {}
    if dtype == "float16" and not has_exploded:  # nanoGPT uses it if the device has no bfloat16
        known = part.mfu.device is not None and better_dtype(part, "bfloat16")
        change["dtype"] = "bfloat16" if known else "float32"
    elif not is_first:
        change |= calmer(part)
    wasted = part.time_since_ms(segment.nan_iter or 0)
    back, back_lines = _way_back(part, segment.nan_line or 0)
    cause = "fp16" if dtype == "float16" else "first" if is_first else "plain"
    return Finding(
        "nan-loss",
        "established",
        "problem",
        {
            "iter": segment.nan_iter,
            "line": segment.nan_line,
            "last_iter": last[1] if last else None,
            "last_loss": last[2] if last else None,
            "count": segment.num_nan,
            "faster_percent": _faster_percent(part),
            "wasted_ms": wasted or None,
            **back,
        },
        [segment.nan_line or 1]
        + ([last[0]] if last else [])
        + back_lines
        + part.line_of_setting("dtype"),
        [segment.nan_iter] if segment.nan_iter is not None else [],
        change,
        variant="exploded" if has_exploded else cause,
        cost_ms=wasted,
    )


def _way_back(part: Part, line: int) -> tuple[dict[str, Number], list[int]]:
    """The last checkpoint before this line, and whether a later one has overwritten it."""
    good = [s for s in part.segment.saves if s.line < line]
    if not good:
        return {"save_iter": None, "overwritten": "no"}, []
    later = [s for s in part.segment.saves if s.line > line]
    is_lost = bool(later) and part.format.has_one_checkpoint
    lines = [good[-1].line] + ([later[0].line] if is_lost else [])
    return {"save_iter": good[-1].iter, "overwritten": "yes" if is_lost else "no"}, lines


def _explodes(part: Part) -> bool:
    """Did the loss rise far above its best in the last lines before it became NaN?"""
    _, losses, lines = part.losses
    before = losses[lines < (part.segment.nan_line or 0)]
    if len(before) < 4:
        return False
    best, noise = float(np.min(before[:-1])), noise_of(before)
    least = max(0.3 * abs(best), 0.3)
    is_up = median(before[-3:]) > best + max(5 * noise, least)
    return is_up or float(before[-1]) > best + max(8 * noise, least)


def _faster_percent(part: Part) -> float | None:
    """How much faster iterations are since the loss is NaN. None if they are not."""
    segment = part.segment
    times, iters = part.timing.times, part.column("iter")
    spikes = {spike.iter for spike in part.timing.spikes}
    is_plain = np.isfinite(times) & ~np.isin(iters, list(spikes))
    before = times[is_plain & (iters < (segment.nan_iter or 0))]
    after = times[is_plain & (iters >= (segment.nan_iter or 0))]
    if len(before) < 8 or len(after) < 3:
        return None
    usual = median(before)
    faster = 100 * (1 - median(after) / usual)
    noise = 100 * median(np.abs(before - usual)) / usual
    return faster if faster > max(2.0, 3 * noise) else None


def _vanished(part: Part) -> list[Finding]:
    """Some trainers print no loss where it is NaN: all lines had one, and the last have none."""
    has_loss = np.isfinite(part.column("loss"))
    num = at_the_end(~has_loss)
    num_before = len(has_loss) - num
    if not num or num_before < 2 or not has_loss[:num_before].all():
        return []
    row = num_before
    iters, lines = part.column("iter"), part.column("line")
    has_bad_norms = at_the_end(bad_norms(part)) > 0
    may_be_cut = num == 1 and not has_bad_norms  # the last line of an excerpt is often cut off
    status: Status = "established" if has_bad_norms and num >= 2 else "supported"
    wasted = part.time_since_ms(int(iters[row]))
    back, back_lines = _way_back(part, int(lines[row]))
    return [
        Finding(
            "nan-loss",
            "hypothesis" if may_be_cut else status,
            "problem",
            {
                "iter": int(iters[row]),
                "line": int(lines[row]),
                "last_iter": int(iters[row - 1]),
                "last_loss": float(part.column("loss")[row - 1]),
                "count": num,
                "faster_percent": None,
                "has_bad_norms": "yes" if has_bad_norms else "no",
                "wasted_ms": wasted or None,
                **back,
            },
            [int(lines[row - 1]), int(lines[row]), *back_lines],
            [int(iters[row])],
            calmer(part),
            variant="vanished",
            cost_ms=wasted,
        )
    ]


def _bad_evaluation(part: Part) -> list[Finding]:
    """An evaluation returned NaN or infinity, but training continues."""
    bad = [e for e in part.segment.evals if e.val is not None and not math.isfinite(e.val)]
    if not bad or not len(part.losses[0]):
        return []
    numbers: dict[str, Number] = {"iter": bad[0].iter, "line": bad[0].line}
    numbers |= dict.fromkeys(("last_iter", "last_loss", "save_iter", "faster_percent"))
    return [
        Finding(
            "nan-loss",
            "established",
            "advice",
            numbers | {"count": len(bad)},
            [e.line for e in bad],
            [e.iter for e in bad],
            variant="eval",
        )
    ]
