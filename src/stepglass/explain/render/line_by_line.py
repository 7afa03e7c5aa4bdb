"""`explain --lines`: shows the log line by line and explains the numbers of each line.

The first ordinary iteration is explained and later ones are summarised. Each evaluation, checkpoint
and slow iteration is explained, up to `MOST` of them.
"""

import math
from collections.abc import Iterator

import numpy as np

from stepglass.explain.render.languages import Words
from stepglass.explain.study import Part, Study
from stepglass.explain.timing import Spike
from stepglass.logs.segment import Eval, Save
from stepglass.measure.mfu import palm_flops_per_token

MOST = 200


def walk(study: Study, words: Words) -> Iterator[str]:
    """Explain every line that was understood, in order."""
    yield words.text("lines-title")
    for part in study.parts:
        yield from _part(part, words)
    missed = study.log.num_lines - study.log.num_understood
    if missed > 0:
        yield ""
        yield words.text("line-unknown", count=missed)


def _part(part: Part, words: Words) -> Iterator[str]:
    items: list[tuple[int, object]] = []
    spikes = {spike.line: spike for spike in part.timing.spikes}
    lines = part.column("line").astype(int)
    items += [(int(line), row) for row, line in enumerate(lines)]
    items += [(e.line, e) for e in part.segment.evals]
    items += [(s.line, s) for s in part.segment.saves]
    items.sort(key=lambda item: item[0])
    run: list[int] = []
    is_first, explained = True, 0
    for line, item in items:
        is_row = isinstance(item, int)
        if isinstance(item, int) and line not in spikes and not is_first:
            run.append(item)
            continue
        if run:
            yield from _run(part, words, run)
            run = []
        explained += 1
        if explained > MOST:
            break
        yield ""
        if isinstance(item, Eval):
            yield from _eval(part, words, item)
        elif isinstance(item, Save):
            yield f"{line}: " + words.text("line-save")
        elif isinstance(item, int):
            yield from _row(part, words, item, spikes.get(line), is_first)
            is_first = is_first and not is_row
    if run:
        yield from _run(part, words, run)
    yield from _mfu(part, words)


def _row(part: Part, words: Words, row: int, spike: Spike | None, is_first: bool) -> Iterator[str]:
    iteration, line = int(part.column("iter")[row]), int(part.column("line")[row])
    loss, mfu = part.column("loss")[row], part.column("mfu")[row]
    time_ms, normal = part.timing.times[row], part.timing.normal_ms
    yield f"{line}: iter {iteration}"
    if is_first:
        yield "   " + words.text("line-iter", iter=iteration)
    if np.isfinite(loss):
        chance = math.exp(-float(loss))
        yield "   " + words.text("line-loss", loss=float(loss), chance=chance)
    if spike is not None:
        causes = [words.text(f"cause-{cause}") for cause in spike.cause.split("+")]
        yield "   " + words.text(
            "line-time-slow",
            time_ms=spike.time_ms,
            excess_ms=spike.excess_ms,
            normal_ms=normal,
            cause=" + ".join(causes),
        )
    elif np.isfinite(time_ms):
        yield "   " + words.text("line-time", time_ms=float(time_ms), normal_ms=normal)
    if np.isfinite(mfu) and part.format.averages_mfu:
        yield "   " + words.text("line-mfu", mfu=words.percent(float(mfu)))
    elif part.format.averages_mfu and iteration < 10 and part.mfu.printed_last is not None:
        yield "   " + words.text("line-mfu-none")


def _eval(part: Part, words: Words, evaluation: Eval) -> Iterator[str]:
    yield f"{evaluation.line}: " + words.text("line-eval", iter=evaluation.iter)
    if evaluation.train_loss is not None:
        yield "   " + words.text("line-eval-train", train_loss=evaluation.train_loss)
    if evaluation.val is None or not math.isfinite(evaluation.val):
        return
    yield "   " + words.text("line-eval-val", val_loss=evaluation.val)
    if evaluation.train_loss is not None and evaluation.val_loss is not None:
        yield "   " + words.text(
            "line-eval-gap", gap_loss=evaluation.val_loss - evaluation.train_loss
        )
    so_far = [e for e in part.evals if e.line <= evaluation.line]
    best = min(so_far, key=lambda e: e.val or 0.0)
    if best is evaluation and len(so_far) > 1:
        yield "   " + words.text("line-eval-best")
    elif best is not evaluation:
        yield "   " + words.text("line-eval-worse", best_iter=best.iter, best_loss=best.val)


def _run(part: Part, words: Words, rows: list[int]) -> Iterator[str]:
    if len(rows) == 1:
        yield ""
        yield from _row(part, words, rows[0], None, is_first=False)
        return
    times = part.timing.times[rows]
    times = times[np.isfinite(times)]
    losses = part.column("loss")[rows]
    losses = losses[np.isfinite(losses)]
    first, last = int(part.column("line")[rows[0]]), int(part.column("line")[rows[-1]])
    yield ""
    yield f"{first}-{last}: " + words.text(
        "line-run",
        count=len(rows),
        first=int(part.column("iter")[rows[0]]),
        last=int(part.column("iter")[rows[-1]]),
        first_loss=float(losses[0]) if len(losses) else None,
        last_loss=float(losses[-1]) if len(losses) else None,
        low_ms=float(times.min()) if len(times) else None,
        high_ms=float(times.max()) if len(times) else None,
    )


def _three_digits(tflop: float, words: Words) -> str:
    """A number of TFLOP with three significant digits."""
    digits = max(0, 2 - math.floor(math.log10(tflop))) if tflop > 0 else 0
    return words.number(tflop, min(digits, 9))


def _mfu(part: Part, words: Words) -> Iterator[str]:
    """The MFU formula worked through with this log's numbers."""
    mfu, normal = part.mfu, part.timing.normal_ms
    if mfu.clean is None or mfu.achieved_tflops is None or normal is None:
        return
    yield ""
    yield words.text(
        "line-mfu-worked",
        achieved_tflops=mfu.achieved_tflops,
        normal_ms=normal,
        work_tflop=_three_digits(mfu.achieved_tflops * normal / 1000, words),
        assumed_tflops=mfu.assumed_tflops,
        clean_mfu=mfu.clean,
    )
    names = ("n_layer", "n_embd", "block_size")
    shape = {name: part.number_setting(name) for name in names}
    parameters, tokens = part.fact("parameters"), part.tokens_per_iter
    if all(shape.values()) and parameters and tokens:
        layers, width, block = (shape[name] or 0.0 for name in names)
        flops = palm_flops_per_token(
            num_params=parameters, n_layer=layers, width=width, num_tokens=block
        )
        yield words.text(
            "line-mfu-formula",
            parameters=parameters,
            tokens=tokens,
            work_tflop=_three_digits(flops * tokens / 1e12, words),
            **{name: int(value or 0) for name, value in shape.items()},
        )
    if mfu.corrected is not None and mfu.peak_tflops != mfu.assumed_tflops:
        yield words.text(
            "line-mfu-corrected",
            device=mfu.device,
            peak_tflops=mfu.peak_tflops,
            corrected_mfu=mfu.corrected,
        )
