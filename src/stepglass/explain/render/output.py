"""The output of `explain --json`, as described in docs/explain.schema.json."""

import json
import math
from typing import Any

import numpy as np

from stepglass.explain import limits
from stepglass.explain.finding import Finding
from stepglass.explain.render.languages import Words
from stepglass.explain.study import Part, Study
from stepglass.explain.timing import Ledger
from stepglass.logs.segment import Event
from stepglass.units import printable

MOST_SPIKES = 1000


def as_json(study: Study, found: list[Finding], words: Words) -> dict[str, Any]:
    """The whole result, in JSON types."""
    return {
        "format": study.log.format.name,
        "lines": {"total": study.log.num_lines, "understood": study.log.num_understood},
        "segments": [_segment(part) for part in study.parts],
        "findings": [_finding(finding, words) for finding in found],
        "cannot_show": cannot_texts(study, words),
    }


def json_text(answer: dict[str, Any]) -> str:
    """The JSON text, with one line per segment and finding. `json.dumps` with an indent is slow: it
    would take a tenth of `explain`'s time."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    parts = []
    for name, value in answer.items():
        is_list = isinstance(value, list) and value
        items = ",\n    ".join(map(encode, value)) if is_list else ""
        text = f"[\n    {items}\n  ]" if is_list else encode(value)
        parts.append(f"  {encode(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


def cannot_texts(study: Study, words: Words) -> list[str]:
    """Sentences about what a log like this one cannot show, and what was dropped."""
    cannot = [words.text(f"cannot-{limit}") for limit in limits.cannot_show(study)]
    left = [words.text(f"left-out-{key}", **n) for key, n in limits.left_out(study).items()]
    return cannot + left


def _segment(part: Part) -> dict[str, Any]:
    timing, segment = part.timing, part.segment
    _, losses, _ = part.losses
    best, last = part.best_eval, part.evals[-1] if part.evals else None
    spikes = timing.spikes
    if len(spikes) > MOST_SPIKES:
        keep = sorted(spikes, key=lambda s: -s.excess_ms)[:MOST_SPIKES]
        spikes = sorted(keep, key=lambda s: s.line)
    has_numbers = segment.has_iter_numbers  # do not show numbers that the log did not print
    error = part.error
    return {
        "first_iter": segment.first_iter if has_numbers else None,
        "last_iter": segment.last_iter if has_numbers else None,
        "normal_ms": rounded(timing.normal_ms, 3),
        "eval_ms": rounded(timing.eval_ms, 3),
        "checkpoint_ms": rounded(timing.save_ms, 3),
        "warmup_ms": rounded(timing.warmup_ms, 3),
        "spikes": [
            {
                "iter": s.iter,
                "line": s.line,
                "time_ms": rounded(s.time_ms, 3),
                "excess_ms": rounded(s.excess_ms, 3),
                "cause": s.cause,
            }
            for s in spikes
        ],
        "mfu": {
            "printed_last": rounded(part.mfu.printed_last, 4),
            "clean": rounded(part.mfu.clean, 4),
            "corrected": rounded(part.mfu.corrected, 4),
            "device": part.mfu.device,
            "peak_tflops": rounded(part.mfu.peak_tflops),
        },
        "ledger": _ledger(timing.ledger),
        "ranks": _ranks(part),
        "loss": {
            "first": rounded(float(losses[0])) if len(losses) else None,
            "last": rounded(float(losses[-1])) if len(losses) else None,
            "best_val": rounded(best.val) if best else None,
            "best_val_iter": best.iter if best and has_numbers else None,
            "last_val": rounded(last.val) if last else None,
            "nan_iter": segment.nan_iter if has_numbers else None,
        },
        "error": {"line": error.line, "text": error_text(error)} if error else None,
        "tokens_per_iter": rounded(part.tokens_per_iter),
    }


def error_text(error: Event) -> str:
    """The error message that ended the run, without unprintable characters."""
    return printable(str(error.record.get("detail") or error.name))[:200]


def _ledger(ledger: Ledger | None) -> dict[str, Any] | None:
    if ledger is None:
        return None
    return {
        "basis": ledger.basis,
        "covers": ledger.covers,
        "wall_s": None if ledger.wall_ms is None else ledger.wall_ms / 1000,
        "total_s": ledger.total_ms / 1000,
        "phases": {name: ms / 1000 for name, ms in ledger.phases.items()},
        "errors": {n: ms / 1000 for n, ms in ledger.errors.items() if n in ledger.phases},
    }


def _ranks(part: Part) -> dict[str, Any] | None:
    """The times of several processes, and those that the ledger has in `forward_backward`."""
    ranks = part.ranks
    if ranks is None:
        return None
    straggler = part.straggler
    return {
        "compute_ms": [rounded(float(ms), 3) for ms in ranks.mean(ranks.compute)],
        "wait_ms": [rounded(float(ms), 3) for ms in ranks.mean(ranks.wait)],
        "communication_ms": rounded(ranks.communication_ms, 3),
        "imbalance": rounded(ranks.imbalance, 4),
        "straggler": None if straggler is None else straggler.rank,
        "within_forward_backward": {name: ms / 1000 for name, ms in part.within_backward.items()},
    }


def _finding(finding: Finding, words: Words) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "status": finding.status,
        "level": finding.level,
        "segment": finding.part,
        "iters": finding.iters,
        "lines": finding.lines,
        "numbers": {name: plain(value) for name, value in finding.numbers.items()},
        "change": finding.change,
        "title": title(finding, words),
        "text": text(finding, words),
    }


def title(finding: Finding, words: Words) -> str:
    said = words.text(f"rule-{finding.rule}-title", variant=finding.variant, **finding.numbers)
    return words.counted(said, finding.unit)


def text(finding: Finding, words: Words) -> str:
    said = words.text(f"rule-{finding.rule}-text", variant=finding.variant, **finding.numbers)
    return words.counted(said, finding.unit)


def plain(value: object) -> object:
    """The value in types that JSON can represent: no NaN, no NumPy types."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return rounded(value, 6)
    return value


def rounded(value: float | None, digits: int = 6) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return round(float(value), digits)
