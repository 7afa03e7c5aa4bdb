"""What a log cannot show, and what was dropped from it, as message ids of the catalogues."""

from collections.abc import Callable

from stepglass.explain.study import Part, Study
from stepglass.logs.segment import MOST_NAMES


def cannot_show(study: Study) -> list[str]:
    """Message ids (without `cannot-`) of what a log like this one cannot show."""
    parts = study.parts
    ids = [limit for limit in study.log.format.limits if _applies(limit, study)]
    if all(p.timing.ledger is None for p in parts):
        has_times = any(len(p.timing.times) and p.timing.normal_ms is not None for p in parts)
        ids.append("evals-unprinted" if has_times else "no-times")
    elif all(_has_no_clock(part) for part in parts):
        ids.append("wall-clock")
    if any(part.unit == "epoch" for part in parts) and "format-one-line-per-epoch" not in ids:
        ids.append("format-one-line-per-epoch")
    if any(part.unit == "entry" for part in parts):
        ids.append("no-numbers")
    if not any(p.segment.evals for p in parts):
        ids.append("no-evals")
    if any(map(_times_no_ranks, parts)):
        ids.append("ranks")
    return ids


def _times_no_ranks(part: Part) -> bool:
    """Did several processes train in a way in which nobody can time each of them?"""
    facts = part.segment.facts
    is_several = (part.fact("processes") or 0) > 1
    return is_several and (facts.get("parallel") == "fsdp" or facts.get("device_type") != "cpu")


def _has_no_clock(part: Part) -> bool:
    """Does the log not say at what time anything happened, nor how long the whole run took?"""
    ledger = part.timing.ledger
    is_whole = ledger is not None and ledger.covers == "run"
    return not is_whole and part.segment.first_stamp is None


def _applies(limit: str, study: Study) -> bool:
    return limit not in ONLY_IF or ONLY_IF[limit](study)


def _skips_iterations(study: Study) -> bool:
    return any((p.timing.num_iters or 0) > len(p.segment.table) for p in study.parts)


def _names_no_device(study: Study) -> bool:
    unnamed = [p for p in study.parts if p.mfu.printed_last is not None and p.mfu.device is None]
    return any(p.setting("device") not in ("cpu", "mps") for p in unnamed)


def _mixes_evals_and_saves(study: Study) -> bool:
    return any(p.timing.spikes_of("checkpoint") and p.timing.save_ms is None for p in study.parts)


def _shows_start(study: Study) -> bool:
    """Does a printed time include the start-up? Some scripts stop their timer for it."""
    return any(p.phase_ms("warmup") for p in study.parts)


# These limits depend on the log. The others apply to every log of a format.
ONLY_IF: dict[str, Callable[[Study], bool]] = {
    "unprinted": _skips_iterations,
    "device": _names_no_device,
    "split": _mixes_evals_and_saves,
    "format-modded-nanogpt": lambda study: not _shows_start(study),
    "format-untimed-validation": _shows_start,
}


def left_out(study: Study) -> dict[str, dict[str, int]]:
    """What was dropped because there was too much of it, by message id, with counts. Totals still
    include everything; only names, messages or points of a curve are missing."""
    segments = [part.segment for part in study.parts]
    settings = sum(segment.num_left_out for segment in segments)
    events = sum(sum(s.num_events.values()) - len(s.events) for s in segments)
    evals, kept = sum(s.num_evals for s in segments), sum(len(s.evals) for s in segments)
    runs = study.log.num_unseparated
    found: dict[str, dict[str, int]] = {}
    if settings:
        found["settings"] = {"count": settings, "most": MOST_NAMES}
    if events > 0:
        found["events"] = {"count": events}
    if kept < evals:
        found["evals"] = {"count": evals, "kept": kept}
    if runs:
        found["runs"] = {"count": runs, "most": len(study.log.segments)}
    return found
