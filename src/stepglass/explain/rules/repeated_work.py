"""Iterations that were done twice, because a run was resumed from an earlier checkpoint."""

import itertools
from typing import NamedTuple

from stepglass.explain.finding import Finding
from stepglass.explain.iteration_times import log_interval
from stepglass.explain.study import Part
from stepglass.logs.segment import Segment


class Resume(NamedTuple):
    """A segment that goes back behind the end of the one before."""

    before: Segment
    after: Segment
    is_stated: bool  # the log says that it resumed

    @property
    def num_iters(self) -> int:
        return (self.before.last_iter or 0) - (self.after.first_iter or 0) + 1


def find_repeated_work(part: Part) -> list[Finding]:
    if not part.is_last:
        return []
    resumes = _resumes(part.log.segments)
    if not resumes:
        return []
    count = sum(r.num_iters for r in resumes)
    largest = max(resumes, key=lambda r: r.num_iters)
    normal_ms = part.timing.normal_ms
    time_ms = count * normal_ms if normal_ms else None
    unsaved = _unsaved_evals(largest)
    is_costly = (time_ms or 0.0) > 60_000.0
    return [
        Finding(
            "repeated-work",
            "established" if all(r.is_stated for r in resumes) else "supported",
            "advice" if is_costly else "note",
            {
                "count": count,
                "resumes": len(resumes),
                "first_iter": largest.after.first_iter,
                "end_iter": largest.before.last_iter,
                "time_ms": time_ms,
                "time": "known" if time_ms else "unknown",
                "saving": _saving(part, unsaved),
            },
            [line for r in resumes for line in (r.before.last_line, r.after.first_line) if line],
            [r.after.first_iter for r in resumes if r.after.first_iter is not None],
            {"always_save_checkpoint": True} if _saving(part, unsaved) == "best" else {},
            cost_ms=time_ms or 0.0,
        )
    ]


def _resumes(segments: list[Segment]) -> list[Resume]:
    found = []
    for before, after in itertools.pairwise(segments):
        if before.last_iter is None or not after.first_iter:
            continue
        if not before.has_iter_numbers or after.first_iter > before.last_iter:
            continue
        is_stated = _says_resume(after)
        if is_stated or _begins_at_a_checkpoint(before, after):
            found.append(Resume(before, after, is_stated))
    return found


def _says_resume(segment: Segment) -> bool:
    return "resume" in str(segment.facts.get("init_from") or segment.setting("init_from") or "")


def _begins_at_a_checkpoint(before: Segment, after: Segment) -> bool:
    """Did the process before save a checkpoint where this one begins? Otherwise it may be another
    run, which was logged to the same file."""
    first = after.first_iter or 0
    step = log_interval(after.table.column("iter")) or 1
    starts_again = first <= step
    saved = [s for s in before.save_iters if 0 <= first - s <= step]
    return bool(saved) and not starts_again


def _unsaved_evals(resume: Resume) -> bool:
    """Did the process before evaluate after the checkpoint, without saving another one?"""
    first = resume.after.first_iter or 0
    return any(e.iter > first and e.save_line is None for e in resume.before.evals)


def _saving(part: Part, has_unsaved_evals: bool) -> str:
    """How to lose less: save at `every` evaluation more often, or not just the `best` model."""
    if not part.format.has_one_checkpoint:
        return "often"
    return "best" if has_unsaved_evals else "every"
