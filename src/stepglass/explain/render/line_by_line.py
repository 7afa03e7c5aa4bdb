"""`explain --lines`: shows the log line by line and explains the numbers of each line.

Each thing is explained once, where it first appears; after that, only its number is shown. Normal
iterations are summarised. Figures are quoted as the log prints them, so that a search finds them.
"""

import math
from collections.abc import Iterator

import numpy as np

from stepglass.explain.render.languages import Words
from stepglass.explain.render.wrap import wrapped
from stepglass.explain.study import Part, Study
from stepglass.explain.timing import Spike
from stepglass.logs.segment import Eval, Save
from stepglass.measure.mfu import palm_flops_per_token

MOST = 200


def walk(study: Study, words: Words, width: int) -> Iterator[str]:
    """Explain every line that was understood, in order."""
    yield words.text("lines-title")
    for part in study.parts:
        for text in PartWalk(part, words).texts():
            indent = text[: len(text) - len(text.lstrip())]
            yield from wrapped(text.lstrip(), indent, indent or "   ", width) or [""]
    missed = study.log.num_lines - study.log.num_understood
    if missed > 0:
        yield ""
        yield words.text("line-unknown", count=missed)


def quoted(value: float) -> str:
    """A figure as the log prints it, but for zeros at its end.

    >>> quoted(4.2627), quoted(33785.52), quoted(12.0)
    ('4.2627', '33785.52', '12')
    """
    return repr(float(value)).removesuffix(".0")


class PartWalk:
    """Explains the lines of one segment and remembers what has been explained."""

    def __init__(self, part: Part, words: Words) -> None:
        self._part = part
        self._words = words
        # The long text about a checkpoint is true of nanoGPT's timer only.
        self._explained = set() if part.format.time_holds_eval else {"line-save"}
        self._spikes = {spike.line: spike for spike in part.timing.spikes}

    def texts(self) -> Iterator[str]:
        part = self._part
        items: list[tuple[int, int | Eval | Save]] = [
            (int(line), row) for row, line in enumerate(part.column("line"))
        ]
        items += [(e.line, e) for e in part.segment.evals]
        items += [(s.line, s) for s in part.segment.saves]
        items.sort(key=lambda item: item[0])
        run: list[int] = []
        num_shown, is_first = 0, True
        for line, item in items:
            if isinstance(item, int) and line not in self._spikes and not is_first:
                run.append(item)
                continue
            yield from self._run(run)
            run = []
            num_shown += 1
            if num_shown > MOST:
                break
            yield ""
            if isinstance(item, Eval):
                yield from self._eval(item)
            elif isinstance(item, Save):
                yield f"{line}: " + self._once("line-save")
            else:
                yield from self._row(item, self._spikes.get(line))
                is_first = False
        yield from self._run(run)
        yield from _mfu(part, self._words)

    def _once(self, key: str, **values: object) -> str:
        """The explanation, or its short form if it was given before."""
        is_known = key in self._explained
        self._explained.add(key)
        return self._words.text(f"{key}-short" if is_known else key, **values)

    def _row(self, row: int, spike: Spike | None) -> Iterator[str]:
        part, words = self._part, self._words
        iteration, line = int(part.column("iter")[row]), int(part.column("line")[row])
        loss, mfu = part.column("loss")[row], part.column("mfu")[row]
        time_ms, normal = part.timing.times[row], part.timing.normal_ms
        yield f"{line}: iter {iteration}"
        if "line-loss" not in self._explained:
            yield "   " + words.text("line-iter", iter=iteration)
        if np.isfinite(loss) and not part.format.loss_is_nats:
            yield "   " + words.text("line-loss-short", loss=quoted(loss))
        elif np.isfinite(loss):
            chance = math.exp(-max(float(loss), 0.0))
            yield "   " + self._once("line-loss", loss=quoted(loss), chance=chance)
        if spike is not None:
            causes = [words.text(f"cause-{cause}") for cause in spike.cause.split("+")]
            yield "   " + words.text(
                "line-time-slow",
                time=quoted(spike.time_ms) + " ms",
                excess_ms=spike.excess_ms,
                normal_ms=normal,
                cause=" + ".join(causes),
            )
        elif np.isfinite(time_ms):
            shown = quoted(round(float(time_ms), 4)) + " ms"
            yield "   " + words.text("line-time", time=shown, normal_ms=normal)
        if np.isfinite(mfu) and part.format.averages_mfu:
            yield "   " + self._once("line-mfu", mfu=quoted(mfu) + "%")
        elif part.format.averages_mfu and iteration < 10 and part.mfu.printed_last is not None:
            yield "   " + words.text("line-mfu-none")

    def _eval(self, evaluation: Eval) -> Iterator[str]:
        words, val = self._words, evaluation.val
        yield f"{evaluation.line}: " + self._once("line-eval", iter=evaluation.iter)
        if evaluation.train_loss is not None:
            yield "   " + self._once("line-eval-train", train=quoted(evaluation.train_loss))
        if val is None or not math.isfinite(val):
            return
        yield "   " + self._once("line-eval-val", val=quoted(val))
        if evaluation.train_loss is not None and evaluation.val_loss is not None:
            gap = evaluation.val_loss - evaluation.train_loss
            yield "   " + words.text("line-eval-gap", gap_loss=gap)
        so_far = [e for e in self._part.evals if e.line <= evaluation.line]
        best = min(so_far, key=lambda e: e.val or 0.0, default=evaluation)
        if best is evaluation and len(so_far) > 1:
            yield "   " + words.text("line-eval-best")
        elif best is not evaluation:
            best_value = quoted(best.val or 0.0)
            yield "   " + words.text("line-eval-worse", best_iter=best.iter, best=best_value)

    def _run(self, rows: list[int]) -> Iterator[str]:
        """A summary of normal iterations."""
        if not rows:
            return
        yield ""
        if len(rows) == 1:
            yield from self._row(rows[0], None)
            return
        part = self._part
        times, losses = part.timing.times[rows], part.column("loss")[rows]
        times, losses = times[np.isfinite(times)], losses[np.isfinite(losses)]
        first, last = int(part.column("line")[rows[0]]), int(part.column("line")[rows[-1]])
        yield f"{first}-{last}: " + self._words.text(
            "line-run",
            count=len(rows),
            first=int(part.column("iter")[rows[0]]),
            last=int(part.column("iter")[rows[-1]]),
            first_value=quoted(losses[0]) if len(losses) else None,
            last_value=quoted(losses[-1]) if len(losses) else None,
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
