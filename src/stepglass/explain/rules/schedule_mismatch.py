"""The learning-rate schedule does not fit the run's length, batch size or peak rate."""

import math
from dataclasses import dataclass

from stepglass.explain.finding import Finding, Status, nice
from stepglass.explain.study import Part

NAMES = ("max_iters", "lr_decay_iters", "warmup_iters", "learning_rate", "min_lr")
LARGE_MODEL = 80e6  # parameters
HIGH_RATE = 5e-4
SMALL_BATCH = 100_000  # tokens
USUAL_BATCH = 5e5  # tokens; the usual batch of a large model at a high learning rate


@dataclass(frozen=True)
class Schedule:
    """The settings of a schedule: from the log, or else the trainer's defaults."""

    given: dict[str, float | None]
    values: dict[str, float | None]
    lines: list[int]  # lines of the log that state them


def find_schedule_mismatch(part: Part) -> list[Finding]:
    if part.setting("decay_lr") is False or not part.is_last:
        return []
    schedule = _schedule(part)
    if not any(schedule.given[name] for name in ("max_iters", "lr_decay_iters", "warmup_iters")):
        return []
    return [
        *_decay_length(schedule),
        *_floor(part, schedule),
        *_small_batch(part, schedule),
        *_long_warmup(schedule),
    ]


def _schedule(part: Part) -> Schedule:
    given = {name: part.number_setting(name) for name in NAMES}
    values = dict(given)
    if part.format.has_nanogpt_defaults and part.segment.config_lines:
        # Imported here because it loads all settings of `train`, and few logs need it.
        from stepglass.settings.nanogpt_defaults import NANOGPT  # noqa: PLC0415

        values = {
            name: float(NANOGPT[name]) if value is None else value for name, value in given.items()
        }
    lines = [line for name in NAMES for line in part.line_of_setting(name)]
    return Schedule(given, values, lines)


def _decay_length(schedule: Schedule) -> list[Finding]:
    given = schedule.given
    length, decay = schedule.values["max_iters"], schedule.values["lr_decay_iters"]
    if not length or not decay or abs(decay - length) <= 0.2 * length:
        return []
    is_stated = given["max_iters"] and given["lr_decay_iters"]
    status: Status = "established" if is_stated else "supported"
    return [
        Finding(
            "schedule-mismatch",
            status,
            "advice",
            {"max_iters": int(length), "decay_iters": int(decay)},
            schedule.lines,
            change={"lr_decay_iters": int(length)},
            variant="long" if decay > length else "short",
        )
    ]


def _floor(part: Part, schedule: Schedule) -> list[Finding]:
    rate, low = schedule.given["learning_rate"], schedule.given["min_lr"]
    ends_near_zero = part.setting("lr_schedule") == "trapezoid"
    if not rate or not low or ends_near_zero or rate / 40 <= low <= rate / 2.5:
        return []
    return [
        Finding(
            "schedule-mismatch",
            "hypothesis",
            "note",
            {"rate": rate, "low_lr": low},
            schedule.lines,
            change={"min_lr": float(f"{rate / 10:.3g}")},
            variant="floor",
        )
    ]


def _small_batch(part: Part, schedule: Schedule) -> list[Finding]:
    """A learning rate for large batches is used with a small batch."""
    rate, batch = schedule.given["learning_rate"], part.tokens_per_iter
    size = part.fact("parameters")
    if not (rate and batch and size):
        return []
    if size <= LARGE_MODEL or rate < HIGH_RATE or batch >= SMALL_BATCH:
        return []
    return [
        Finding(
            "schedule-mismatch",
            "supported",
            "advice",
            {"rate": rate, "batch_tokens": batch},
            schedule.lines + part.line_of_fact("tokens_per_iter"),
            change={"learning_rate": float(f"{rate * math.sqrt(batch / USUAL_BATCH):.2g}")},
            variant="batch",
        )
    ]


def _long_warmup(schedule: Schedule) -> list[Finding]:
    length, warmup = schedule.values["max_iters"], schedule.values["warmup_iters"]
    if not length or not warmup or warmup <= 0.1 * length or not schedule.given["max_iters"]:
        return []
    is_stated = schedule.given["warmup_iters"] is not None
    return [
        Finding(
            "schedule-mismatch",
            "established" if is_stated else "supported",
            "advice",
            {"max_iters": int(length), "warmup_iters": int(warmup)},
            schedule.lines,
            change={"warmup_iters": max(1, nice(0.02 * length))},
            variant="warmup",
        )
    ]
