"""Rules about learning: what the losses say."""

import math

import numpy as np

from stepglass.explain.finding import Change, Finding, Number, nice
from stepglass.explain.rules.rules_speed import better_dtype
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval
from stepglass.logs.table import Column, median, medians

BOTH_ENDS = 2.83  # two standard errors of a difference of two evaluations
LEAST_RISE = 0.02
WIDE_GAP = 0.5
LEAST_GAP = 0.3


def least_change(part: Part, value: float) -> float:
    """A difference between two evaluations that is more than noise."""
    return max(BOTH_ENDS * (part.val_se or 0.0), LEAST_RISE * abs(value))


def epochs_seen(part: Part) -> float | None:
    tokens, per_iter, last = part.train_tokens, part.tokens_per_iter, part.segment.last_iter
    return last * per_iter / tokens if tokens and per_iter and last else None


def eval_noise(part: Part) -> list[Finding]:
    se, evals = part.val_se, part.evals
    if se is None or len(evals) < 5 or part.log.format == "stepglass":
        return []  # ours scores the same windows every time: most of the noise cancels
    recent = evals[-6:]
    changes = np.diff([e.val or 0.0 for e in recent])
    least = BOTH_ENDS * se
    turns = int(np.sum(np.sign(changes[1:]) != np.sign(changes[:-1])))
    if float(np.max(np.abs(changes))) >= least or turns < 2:
        return []
    needed = None
    if part.loss_sigma is not None and part.log.format == "nanogpt":
        needed = nice((part.loss_sigma / 0.01) ** 2)
    now = part.number_setting("eval_iters")
    change: Change = {}
    if needed and now and needed > now:
        change = {"eval_iters": needed}
    return [
        Finding(
            "eval-noise",
            "established",
            "note",
            {
                "se_loss": se,
                "least_loss": least,
                "largest_loss": float(np.max(np.abs(changes))),
                "eval_iters": now,
                "count": len(changes),
            },
            [e.line for e in recent],
            [e.iter for e in recent],
            change,
            variant="more" if change else "plain",
        )
    ]


def overfitting(part: Part) -> list[Finding]:
    best, evals = part.best_eval, part.evals
    if best is None or best.val is None:
        return []
    last = evals[-1]
    assert last.val is not None
    rise = last.val - best.val
    dropout = part.number_setting("dropout")
    common = {
        "last_iter": last.iter,
        "last_loss": last.val,
        "train_loss": last.train_loss,
        "gap_loss": None if last.train_loss is None else last.val - last.train_loss,
        "epochs": epochs_seen(part),
    }
    is_falling = _train_fell(part, best, last)
    if last is not best and rise > least_change(part, best.val) and is_falling:
        change: Change = {}
        if best.iter > 0:
            change["max_iters"] = best.iter
        if dropout is None or dropout < 0.2:
            change["dropout"] = 0.2
        wasted = _time_since(part, best.iter)
        is_clear = rise > 0.05 * best.val  # more than evaluations scatter
        return [
            Finding(
                "overfitting",
                "established" if part.val_se is not None or is_clear else "supported",
                "problem",
                {
                    "best_iter": best.iter,
                    "best_loss": best.val,
                    "rise_loss": rise,
                    "rise_percent": 100 * rise / best.val if best.val else None,
                    **common,
                },
                [best.line, last.line],
                [best.iter, last.iter],
                change,
                variant="rising" if last.train_loss is not None else "no-train",
                cost_ms=wasted,
            )
        ]
    gap = common["gap_loss"]
    if not last.train_loss or gap is None:
        return []
    num_before = sum(e.line < best.line for e in evals)
    if len(evals) > 2 and num_before > 0.7 * (len(evals) - 1):
        return []  # it still learns something that holds for new text
    if gap < LEAST_GAP or gap < WIDE_GAP * last.train_loss:
        return []
    return [
        Finding(
            "overfitting",
            "supported",
            "problem",
            {
                **common,
                "gap_percent": 100 * gap / last.train_loss,
                "perplexity_times": math.exp(min(gap, 20.0)),
            },
            [last.line],
            [last.iter],
            {"dropout": 0.2} if dropout is None or dropout < 0.2 else {},
            variant="gap",
        )
    ]


def _train_fell(part: Part, best: Eval, last: Eval) -> bool:
    if best.train_loss is not None and last.train_loss is not None:
        return last.train_loss < best.train_loss
    iters, losses, _ = part.losses
    early = losses[(iters > 0.8 * best.iter) & (iters <= max(best.iter, 1))]
    late = losses[iters > best.iter + 0.8 * (last.iter - best.iter)]
    return bool(len(early) and len(late) and median(late) < median(early))


def _time_since(part: Part, iteration: int) -> float:
    last, normal = part.segment.last_iter, part.timing.normal_ms
    return max(0, last - iteration) * normal if last is not None and normal else 0.0


def best_checkpoint_lost(part: Part) -> list[Finding]:
    """nanoGPT has one checkpoint: a later save of a worse model replaces the best."""
    best = part.best_eval
    if part.log.format != "nanogpt" or best is None or best.val is None or best.save_line is None:
        return []
    later = [e for e in part.evals if e.line > best.line and e.save_line is not None]
    if not later or later[-1].val is None:
        return []
    kept = later[-1]
    assert kept.val is not None
    worse = kept.val - best.val
    if worse <= max(BOTH_ENDS * (part.val_se or 0.0), 0.01 * abs(best.val)):
        return []
    return [
        Finding(
            "best-checkpoint-lost",
            "established" if part.val_se is not None or worse > 0.05 * best.val else "supported",
            "problem",
            {
                "best_iter": best.iter,
                "best_loss": best.val,
                "kept_iter": kept.iter,
                "kept_loss": kept.val,
                "worse_loss": worse,
            },
            [best.line, best.save_line, kept.line, kept.save_line or kept.line],
            [best.iter, kept.iter],
            {"always_save_checkpoint": False},
            cost_ms=_time_since(part, best.iter),
        )
    ]


def slope(x: Column, y: Column) -> tuple[float, float]:
    """Least squares slope and its t value."""
    x = x - x.mean()
    spread = float(x @ x)
    if spread == 0 or len(x) < 3:
        return 0.0, 0.0
    m = float(x @ (y - y.mean()) / spread)
    residual = y - y.mean() - m * x
    se = math.sqrt(float(residual @ residual) / (len(x) - 2) / spread)
    return m, (m / se if se > 0 else math.copysign(math.inf, m) if m else 0.0)


def calmer(part: Part) -> Change:
    """Half the learning rate, and clipping where there is none."""
    change: Change = {}
    clip = part.number_setting("grad_clip")
    has_muon = part.setting("model") == "modern" and part.setting("optimizer") != "adamw"
    for name in ("learning_rate", *(("muon_lr", "embedding_lr") if has_muon else ())):
        rate = part.number_setting(name)
        if rate:
            change[name] = float(f"{rate / 2:.3g}")
    if clip is not None and (clip == 0 or clip > 1):
        change["grad_clip"] = 1.0
    return change


def _bad_evaluation(part: Part) -> list[Finding]:
    """An evaluation without a number while training goes on."""
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


def nan_loss(part: Part) -> list[Finding]:
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
    if dtype == "float16":  # nanoGPT's choice where there is no bfloat16
        known = part.mfu.device is not None and better_dtype(part, "bfloat16")
        change["dtype"] = "bfloat16" if known else "float32"
    else:
        change |= calmer(part)
    wasted = _time_since(part, segment.nan_iter or 0)
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


def smoothed(losses: Column, width: int = 9) -> Column:
    """Running median, so that one outlier moves nothing."""
    if len(losses) < width:
        return losses
    windows = np.lib.stride_tricks.sliding_window_view(losses, width)
    middle = medians(windows)
    half = width // 2
    return np.concatenate([np.full(half, middle[0]), middle, np.full(half, middle[-1])])


def diverged_at(part: Part) -> int | None:
    """The row from which the smoothed loss stays far above its best."""
    iters, losses, _ = part.losses
    sigma = part.loss_sigma
    if len(losses) < 30 or sigma is None:
        return None
    smooth = smoothed(losses)
    best = np.minimum.accumulate(smooth)
    is_high = smooth > best + max(0.3, 6 * sigma / 3)
    if not is_high[-1]:
        return None
    low = np.flatnonzero(~is_high)
    start = int(low[-1]) + 1 if len(low) else 0
    is_long = iters[-1] - iters[start] >= 100 and len(iters) - start >= 5
    return start if is_long else None


def divergence(part: Part) -> list[Finding]:
    start = diverged_at(part)
    if start is None:
        return []
    iters, losses, lines = part.losses
    smooth = smoothed(losses)
    best = int(np.argmin(smooth[: start + 1]))
    change = calmer(part)
    return [
        Finding(
            "divergence",
            "established",
            "problem",
            {
                "iter": int(iters[start]),
                "best_iter": int(iters[best]),
                "best_loss": float(smooth[best]),
                "last_loss": float(smooth[-1]),
                "rate": part.learning_rate_at(int(iters[start])),
            },
            [int(lines[best]), int(lines[start]), int(lines[-1])],
            [int(iters[best]), int(iters[start]), int(iters[-1])],
            change,
            variant="rate" if part.learning_rate_at(int(iters[start])) else "plain",
            cost_ms=_time_since(part, int(iters[start])),
        )
    ]


def loss_spike(part: Part) -> list[Finding]:
    iters, losses, lines = part.losses
    if len(losses) < 64 or diverged_at(part) is not None:
        return []
    if len(part.segment.table) > len(part.column("n")):
        return []  # thinned: an isolated point may be gone
    width = 33
    smooth = smoothed(losses, width)
    away = losses - smooth
    sigma = 1.4826 * smoothed(np.abs(away), 129 if len(losses) >= 129 else 33)
    is_high = away > np.maximum(6 * sigma, 0.1)
    is_high[: max(8, width // 2)] = False  # the loss still falls steeply
    rows = np.flatnonzero(is_high)
    if not len(rows) or len(rows) > 0.02 * len(losses) + 3:
        return []
    worst = int(rows[np.argmax(away[rows])])
    return [
        Finding(
            "loss-spike",
            "supported",
            "note",
            {
                "count": len(rows),
                "iter": int(iters[worst]),
                "loss": float(losses[worst]),
                "around_loss": float(smooth[worst]),
                "z": float(away[worst] / max(sigma[worst], 1e-9)),
            },
            [int(lines[row]) for row in rows],
            [int(iters[row]) for row in rows],
        )
    ]


def plateau(part: Part) -> list[Finding]:
    evals = part.evals
    if len(evals) < 12 or part.segment.nan_line is not None:
        return []
    recent = evals[-max(8, len(evals) // 5) :]
    x = np.array([float(e.iter) for e in recent])
    y = np.array([e.val or 0.0 for e in recent])
    m, t = slope(x, y)
    moved = abs(m) * float(x[-1] - x[0])
    best = part.best_eval
    assert best is not None
    assert best.val is not None
    is_rising = y[-1] - best.val > least_change(part, best.val)
    if abs(t) >= 2 or moved > 0.01 * abs(best.val) or is_rising or diverged_at(part) is not None:
        return []
    rate, peak = part.learning_rate_at(recent[-1].iter), part.number_setting("learning_rate")
    low = part.number_setting("min_lr")
    is_floor = rate is not None and low is not None and rate <= 1.2 * low
    is_peak = rate is not None and peak is not None and rate >= 0.8 * peak and not is_floor
    return [
        Finding(
            "plateau",
            "supported",
            "advice" if is_peak else "note",
            {
                "count": len(recent),
                "first_iter": recent[0].iter,
                "last_iter": recent[-1].iter,
                "mean_loss": float(y.mean()),
                "moved_loss": moved,
                "rate": rate,
            },
            [recent[0].line, recent[-1].line],
            [recent[0].iter, recent[-1].iter],
            {"learning_rate": float(f"{peak / 2:.3g}")} if is_peak and peak else {},
            variant="peak" if is_peak else "floor" if is_floor else "plain",
        )
    ]
