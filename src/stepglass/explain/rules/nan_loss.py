"""The loss became NaN or infinite."""

import math

import numpy as np

from stepglass.explain.finding import Change, Finding, Number
from stepglass.explain.rules.calmer_settings import calmer
from stepglass.explain.rules.gpu_limits import (
    better_dtype,
)
from stepglass.explain.study import Part
from stepglass.logs.table import median


def _bad_evaluation(part: Part) -> list[Finding]:
    """An evaluation returned NaN or infinity, but training continues."""
    bad = [e for e in part.segment.evals if e.val is not None and not math.isfinite(e.val)]
    if not bad:
        return []
    numbers: dict[str, Number] = {"iter": bad[0].iter, "line": bad[0].line}
    numbers |= dict.fromkeys(("last_iter", "last_loss", "save_iter", "faster_percent"))
    return [
        Finding(
            "nan-loss",
            "established",
            "advice",
            numbers,
            [e.line for e in bad],
            [e.iter for e in bad],
            variant="eval",
        )
    ]


def find_nan_loss(part: Part) -> list[Finding]:
    segment = part.segment
    if segment.nan_line is None:
        return _bad_evaluation(part)
    times, iters = part.timing.times, part.column("iter")
    spikes = {spike.iter for spike in part.timing.spikes}
    is_plain = np.isfinite(times) & ~np.isin(iters, list(spikes))
    before = times[is_plain & (iters < (segment.nan_iter or 0))]
    after = times[is_plain & (iters >= (segment.nan_iter or 0))]
    faster = None
    if len(before) >= 3 and len(after) >= 2:
        faster = 100 * (1 - median(after) / median(before))
    last = segment.last_finite
    good = [s for s in segment.saves if s.line < segment.nan_line]
    dtype = str(part.setting("dtype") or "")
    change: Change = {}
    if dtype == "float16":  # nanoGPT uses it if the device has no bfloat16
        known = part.mfu.device is not None and better_dtype(part, "bfloat16")
        change["dtype"] = "bfloat16" if known else "float32"
    else:
        change |= calmer(part)
    wasted = part.time_since_ms(segment.nan_iter or 0)
    return [
        Finding(
            "nan-loss",
            "established",
            "problem",
            {
                "iter": segment.nan_iter,
                "line": segment.nan_line,
                "last_iter": last[1] if last else None,
                "last_loss": last[2] if last else None,
                "count": segment.num_nan,
                "faster_percent": faster if faster is not None and faster > 2 else None,
                "save_iter": good[-1].iter if good else None,
                "wasted_ms": wasted or None,
            },
            [segment.nan_line]
            + ([last[0]] if last else [])
            + ([good[-1].line] if good else [])
            + part.line_of_setting("dtype"),
            [segment.nan_iter] if segment.nan_iter is not None else [],
            change,
            variant="fp16" if dtype == "float16" else "saved" if good else "plain",
            cost_ms=wasted,
        )
    ]
