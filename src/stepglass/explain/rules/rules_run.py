"""Rules about the run as a whole: do its length, schedule, data and first loss fit the model?"""

import math

import numpy as np

from stepglass.explain.finding import Change, Finding, nice
from stepglass.explain.rules.rules_loss import slope
from stepglass.explain.study import Part

# What nanoGPT uses when a command line does not say otherwise.
NANOGPT_DEFAULTS = {
    "max_iters": 600_000.0,
    "lr_decay_iters": 600_000.0,
    "warmup_iters": 2000.0,
    "learning_rate": 6e-4,
    "min_lr": 6e-5,
}


def stopped_early(part: Part) -> list[Finding]:
    evals = part.evals
    if not part.has_ended or len(evals) < 5 or part.segment.nan_line is not None:
        return []
    if part.log.format not in ("nanogpt", "stepglass") or not part.is_last:
        return []
    falls_by_design = part.setting("lr_schedule") == "trapezoid"
    if falls_by_design or part.segment.end.get("reason") == "target":
        return []
    recent = evals[-max(4, len(evals) // 4) :]
    x = np.array([float(e.iter) for e in recent])
    y = np.array([e.val or 0.0 for e in recent])
    m, t = slope(x, y)
    last = evals[-1]
    if t > -3 or last is not part.best_eval or last.val is None:
        return []
    gain = -m * 1000
    step = -m * (x[-1] - x[-2])
    if step < max(0.004 * last.val, (part.val_se or 0.0)):
        return []
    if last.train_loss is not None and last.val - last.train_loss > 0.05 * last.val:
        return []
    length = part.max_iters or part.segment.last_iter or 0
    doubled = nice(2 * length)
    change: Change = {"max_iters": doubled, "lr_decay_iters": doubled}
    return [
        Finding(
            "stopped-early",
            "supported",
            "advice",
            {
                "last_iter": last.iter,
                "last_loss": last.val,
                "gain_loss": gain,
                "gap_loss": None if last.train_loss is None else last.val - last.train_loss,
            },
            [e.line for e in recent],
            [e.iter for e in recent],
            change,
        )
    ]


def schedule_mismatch(part: Part) -> list[Finding]:
    if part.setting("decay_lr") is False or not part.is_last:
        return []
    names = ("max_iters", "lr_decay_iters", "warmup_iters", "learning_rate", "min_lr")
    given = {name: part.number_setting(name) for name in names}
    if not any(given[name] for name in ("max_iters", "lr_decay_iters", "warmup_iters")):
        return []
    is_nanogpt = part.log.format == "nanogpt" and bool(part.segment.config_lines)
    values = {
        name: given[name] if given[name] is not None or not is_nanogpt else NANOGPT_DEFAULTS[name]
        for name in names
    }
    length, decay, warmup = values["max_iters"], values["lr_decay_iters"], values["warmup_iters"]
    found = []
    lines = [n for name in names for n in part.line_of_setting(name)]
    status = "established" if given["max_iters"] and given["lr_decay_iters"] else "supported"
    if length and decay and abs(decay - length) > 0.2 * length:
        found.append(
            Finding(
                "schedule-mismatch",
                status,  # type: ignore[arg-type]
                "advice",
                {
                    "max_iters": int(length),
                    "decay_iters": int(decay),
                },
                lines,
                change={"lr_decay_iters": int(length)},
                variant="long" if decay > length else "short",
            )
        )
    rate, low = given["learning_rate"], given["min_lr"]
    if part.setting("lr_schedule") == "trapezoid":
        low = None  # made to end near zero
    if rate and low and not rate / 40 <= low <= rate / 2.5:
        found.append(
            Finding(
                "schedule-mismatch",
                "hypothesis",
                "note",
                {"rate": rate, "low_lr": low},
                lines,
                change={"min_lr": float(f"{rate / 10:.3g}")},
                variant="floor",
            )
        )
    batch, size = part.tokens_per_iter, part.fact("parameters")
    if rate and batch and size and size > 80e6 and rate >= 5e-4 and batch < 100_000:
        found.append(
            Finding(
                "schedule-mismatch",
                "supported",
                "advice",
                {"rate": rate, "batch_tokens": batch},
                lines + part.line_of_fact("tokens_per_iter"),
                change={"learning_rate": float(f"{rate * math.sqrt(batch / 5e5):.2g}")},
                variant="batch",
            )
        )
    if length and warmup and warmup > 0.1 * length and given["max_iters"]:
        is_stated = given["warmup_iters"] is not None
        found.append(
            Finding(
                "schedule-mismatch",
                "established" if is_stated else "supported",
                "advice",
                {"max_iters": int(length), "warmup_iters": int(warmup)},
                lines,
                change={"warmup_iters": max(1, nice(0.02 * length))},
                variant="warmup",
            )
        )
    return found


def initial_loss(part: Part) -> list[Finding]:
    vocab = part.fact("vocab_size") or part.number_setting("vocab_size")
    if not vocab or vocab < 2 or not part.starts_from_scratch or part.segment.first_iter != 0:
        return []
    first_eval = next((e for e in part.segment.evals if e.iter == 0), None)
    iters, losses, lines = part.losses
    if first_eval is not None and first_eval.val_loss is not None:
        seen, line = first_eval.val_loss, first_eval.line
    elif len(iters) and iters[0] == 0:
        seen, line = float(losses[0]), int(lines[0])
    else:
        return []
    expected = math.log(vocab)
    if not math.isfinite(seen) or abs(seen / expected - 1) <= 0.05:
        return []
    return [
        Finding(
            "initial-loss",
            "established",
            "advice",
            {"seen_loss": seen, "expected_loss": expected, "vocab": int(vocab)},
            [line, *part.line_of_fact("vocab_size")],
            [0],
            variant="low" if seen < expected else "high",
        )
    ]


def data_budget(part: Part) -> list[Finding]:
    parameters, per_iter = part.fact("parameters"), part.tokens_per_iter
    length = part.max_iters or (part.segment.last_iter if part.has_ended else None)
    if not parameters or not per_iter or not length or not part.starts_from_scratch:
        return []
    tokens = length * per_iter
    ratio = tokens / parameters
    epochs = tokens / part.train_tokens if part.train_tokens else None
    is_few, is_many = ratio < 5, ratio > 100
    is_repeated = epochs is not None and epochs > 4
    if not (is_few or is_many or is_repeated):
        return []
    return [
        Finding(
            "data-budget",
            "established",
            "note",
            {
                "tokens": tokens,
                "parameters": parameters,
                "ratio": ratio,
                "epochs": epochs,
                "max_iters": length,
            },
            part.line_of_fact("parameters")
            + part.line_of_fact("tokens_per_iter")
            + part.line_of_setting("max_iters"),
            variant="epochs" if is_repeated else "few" if is_few else "many",
        )
    ]
