"""The story of a run: everything on its page except the curves, in all languages. Is the run
healthy, where did the time go, and what should be changed?

The page contains all languages, so switching the language needs no server.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.render import answer, ledger_table, output, show
from stepglass.explain.render.languages import LANGUAGES, Words
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Part, Study
from stepglass.explain.who_waits import HOLDER, Ranks
from stepglass.logs.table import median
from stepglass.measure.bits_per_byte import bits_per_byte
from stepglass.measure.records import GOOD_ENDINGS
from stepglass.run_dir import lock
from stepglass.units import finite, printable

Story = dict[str, Any]
Texts = dict[str, str]  # by language

# Facts of the log about the machine and the model, the most interesting first.
ENVIRONMENT = (
    "device",
    "device_type",
    "dtype",
    "compile",
    "threads",
    "replicas",
    "processes",
    "parallel",
    "parameters",
    "flops_per_token",
    "tokens_per_iter",
    "vocab_size",
    "train_tokens",
    "peak_tflops",
    "peak_source",
    "mfu_formula",
    "peak_memory_mb",
    "versions",
    "argv",
    "time",
)
FAILED = ("failed", "oom", "error")
MOST_STALLS = 2000  # in all parts together
MOST_SETTINGS = 300
LONGEST_VALUE = 300


def story_of(study: Study, name: str, run_dir: Path | None, words: dict[str, Words]) -> Story:
    """Everything about a run except its rows. `run_dir` is None for a log of another trainer."""
    found = all_rules.findings(study)
    state = run_state(study, run_dir)
    last = study.parts[-1] if study.parts else None
    return {
        "name": printable(name),
        "format": study.log.format.name,
        "lines": {"total": study.log.num_lines, "understood": study.log.num_understood},
        "state": state,
        "health": health(found, state, last, words),
        "parts": [part_story(part, MOST_STALLS // len(study.parts), words) for part in study.parts],
        "findings": [finding_story(finding, words) for finding in found],
        "cannot": cannot_story(study, words),
        "config": settings_of(last) if last else {},
        "environment": environment_of(last) if last else [],
    }


def cannot_story(study: Study, words: dict[str, Words]) -> list[Texts]:
    said = {code: output.cannot_texts(study, w) for code, w in words.items()}
    return [dict(zip(said, texts, strict=True)) for texts in zip(*said.values(), strict=True)]


def all_words() -> dict[str, Words]:
    return {language: Words(language) for language in LANGUAGES}


def run_state(study: Study, run_dir: Path | None) -> dict[str, Any]:
    """Whether the run is running or how it ended, and its progress."""
    last = study.parts[-1] if study.parts else None
    state: dict[str, Any] = dict.fromkeys(("step", "iter", "max_iters", "left_ms"))
    state["name"] = "log"
    if last is None:
        return {**state, "name": "waiting" if run_dir is not None else "log"}
    # A process that has just resumed the run has no iteration yet.
    steps = [part.segment.last_iter for part in study.parts if part.segment.last_iter is not None]
    step = steps[-1] if steps else None
    if step is not None and study.log.format.is_run_log:
        state |= {"step": step + 1, "max_iters": last.max_iters}
    elif last.segment.has_iter_numbers:
        # Others count from 0 or 1 and print only some iterations: the number done is not known.
        state["iter"] = step
    reason = last.segment.end.get("reason")
    if run_dir is None:
        state["name"] = str(reason) if reason in (*FAILED, *GOOD_ENDINGS) else "log"
    elif isinstance(reason, str):
        state["name"] = reason  # even if its process has not gone yet
    else:
        state["name"] = "running" if lock.owner_of(run_dir) is not None else "killed"
    if state["name"] == "running" and last.max_iters and last.segment.last_iter is not None:
        done = last.segment.last_iter + 1 - (last.segment.first_iter or 0)
        if last.wall_ms and done > 0:
            spent_ms = max(0.0, last.wall_ms - last.phase_ms("warmup"))
            left = max(0, last.max_iters - last.segment.last_iter - 1)
            state["left_ms"] = output.rounded(spent_ms / done * left, 0)
    return state


def health(
    found: list[Finding], state: dict[str, Any], last: Part | None, words: dict[str, Words]
) -> dict[str, Any]:
    """The health of a run: green, amber or red, and one line that says why."""
    acting = [finding for finding in found if finding.level != "note"]
    first = acting[0] if acting else None
    texts: Texts
    if last is not None and (state["name"] in FAILED or last.error is not None):
        level, key = "problem", "page-health-failed"
        detail = output.error_text(last.error) if last.error is not None else state["name"]
        texts = {code: w.text(key, detail=detail) for code, w in words.items()}
    elif state["name"] == "killed" and first is None:
        level = "advice"
        texts = {code: w.text("page-health-killed") for code, w in words.items()}
    elif first is not None:
        level = first.level
        texts = {code: first_of(acting, w) for code, w in words.items()}
    else:
        level = "good"
        key = "page-health-waiting" if last is None else "page-health-good"
        texts = {code: w.text(key) for code, w in words.items()}
    return {"level": level, "text": texts}


def first_of(acting: list[Finding], words: Words) -> str:
    title = printable(output.title(acting[0], words))
    if len(acting) == 1:
        return title
    return words.text("page-health-more", title=title, count=len(acting) - 1)


def ledger_story(part: Part, words: dict[str, Words]) -> dict[str, Any] | None:
    ledger = part.timing.ledger
    if ledger is None:
        return None
    return {
        "covers": ledger.covers,
        "wall_ms": output.rounded(ledger.wall_ms, 3),
        "total_ms": output.rounded(ledger.total_ms, 3),
        "phases": {name: output.rounded(ms, 3) for name, ms in ledger.phases.items()},
        "within": {HOLDER: {k: output.rounded(ms, 3) for k, ms in part.within_backward.items()}},
        "name": {code: ledger_table.total_name(ledger, w) for code, w in words.items()},
        "about": {code: ledger_table.about_text(part, ledger, w) for code, w in words.items()},
    }


def ranks_story(part: Part) -> dict[str, Any] | None:
    """The times of several processes in an update: over the run, and of the newest record."""
    ranks, straggler = part.ranks, part.straggler
    if ranks is None:
        return None
    newest = ranks.since(len(ranks.lines) - 1)
    return {
        "run": lanes_of(ranks),
        "newest": {**lanes_of(newest), "iter": newest.iters[-1]},
        "imbalance": output.rounded(ranks.imbalance),
        "straggler": None if straggler is None else straggler.rank,
    }


def lanes_of(ranks: Ranks) -> dict[str, Any]:
    tables = {"compute": ranks.compute, "wait": ranks.wait, "evaluation": ranks.scored}
    lanes = {
        name: [output.rounded(float(ms), 3) for ms in ranks.mean(table)]
        for name, table in tables.items()
    }
    return {**lanes, "communication": output.rounded(ranks.communication_ms, 3)}


def part_story(part: Part, most_stalls: int, words: dict[str, Words]) -> dict[str, Any]:
    """Numbers about one segment."""
    best = part.best_eval
    stalls = [spike.iter for spike in part.timing.spikes if "unexplained" in spike.cause]
    iters, losses, _ = part.losses
    nan_iter = part.segment.nan_iter
    has_last_loss = len(losses) > 0 and (nan_iter is None or iters[-1] > nan_iter)
    return {
        "first_iter": part.segment.first_iter,
        "last_iter": part.segment.last_iter if part.segment.has_iter_numbers else None,
        "normal_ms": output.rounded(part.timing.normal_ms, 3),
        "stalls": stalls[:most_stalls],
        "ledger": ledger_story(part, words),
        "ranks": ranks_story(part),
        "best": {"iter": best.iter, "val": output.rounded(best.val)} if best else None,
        "last_val": output.rounded(part.evals[-1].val) if part.evals else None,
        "last_loss": output.rounded(float(losses[-1])) if has_last_loss else None,
        "mfu": {
            "clean": output.rounded(part.mfu.clean, 4),
            "corrected": output.rounded(part.mfu.corrected, 4),
            "device": None if part.mfu.device is None else printable(part.mfu.device),
            "peak_tflops": output.rounded(part.mfu.peak_tflops),
            "assumed_tflops": output.rounded(part.mfu.assumed_tflops),
            "work": output.rounded(part.mfu.work),
        },
        "tokens_per_iter": output.rounded(part.tokens_per_iter),
        **figures_of(part),
    }


def figures_of(part: Part) -> dict[str, Any]:
    """What the page needs for its headline: size, speed, and bits per byte."""
    best = part.best_eval
    printed, normal = part.column("tok_s"), part.timing.normal_ms
    known = printed[np.isfinite(printed)]
    if len(known):
        tok_s: float | None = median(known)
    else:
        tokens = part.tokens_per_iter
        tok_s = 1000 * tokens / normal if tokens and normal else None
    return {
        "tok_s": output.rounded(tok_s),
        "parameters": output.rounded(part.fact("parameters")),
        "flops_per_token": output.rounded(part.fact("flops_per_token")),
        "vocab_size": output.rounded(part.fact("vocab_size")),
        "bits_per_nat": bits_per_byte(1.0, part.fact("val_bytes_per_token")),
        "bits_per_byte": output.rounded(best.val_bpb) if best else None,  # printed by the log
        "is_bits_per_byte": best is not None and best.val_loss is None,
    }


def finding_story(finding: Finding, words: dict[str, Words]) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": finding.level,
        "status": finding.status,
        "grade": {code: show.graded(finding, w) for code, w in words.items()},
        "lines": finding.lines,
        "iters": finding.iters,
        "change": answer.change_flags(finding),
        "title": {code: printable(output.title(finding, w)) for code, w in words.items()},
        "text": {code: printable(output.text(finding, w)) for code, w in words.items()},
    }


def settings_of(part: Part) -> dict[str, str]:
    chosen = list(part.segment.config.items())[:MOST_SETTINGS]
    return {printable(str(key))[:100]: setting_text(value) for key, value in chosen}


def environment_of(part: Part) -> list[list[Any]]:
    """Names and values. Numbers stay numbers, because the page formats them in its language."""
    facts = part.segment.facts
    values = {key: facts[key] for key in ENVIRONMENT if facts.get(key) is not None}
    if isinstance(values.get("versions"), dict):
        values["versions"] = ", ".join(f"{name} {n}" for name, n in values["versions"].items())
    if isinstance(values.get("argv"), list):
        values["argv"] = shlex.join(["stepglass", "train", *map(str, values["argv"])])
    return [
        [key, value if finite(value) is not None else setting_text(value)]
        for key, value in values.items()
    ]


def setting_text(value: object) -> str:
    """A setting's value as text that can be shown."""
    if isinstance(value, float):
        text = f"{value:.6g}"
    elif isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
    return printable(text)[:LONGEST_VALUE]
