"""Hugging Face's Trainer: one dict per log step, and progress bars between them.

     10%|█         | 20/200 [00:22<03:20,  1.11s/it]
    {'loss': 2.1048, 'grad_norm': 2.1349, 'learning_rate': 4.99e-05, 'epoch': 0.1}
    {'eval_loss': '0.1002', 'eval_runtime': '353.4', 'epoch': '0.064'}
    {'train_runtime': 225.8005, 'train_samples_per_second': 3.543, 'train_steps_per_second': 0.886}
    ***** train metrics *****
      train_runtime            = 0:36:58.55

By default, NaN values are left out of `loss`. Most dicts have no step and no time: both come from
the latest training bar, whose clock also runs during evaluations. If the output goes to a file, the
dicts often appear long after their bars: then nothing tells their steps. See trainer_dict.py.
"""

import re
from dataclasses import replace

from stepglass.logs.bars import Bar, bars, clock_seconds
from stepglass.logs.formats.trainer_dict import (
    CLOCKS,
    Values,
    as_real,
    clock_records,
    dict_records,
    dict_step,
    elapsed_s,
)
from stepglass.logs.formats.trainer_table import TrainerTable
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

DICT = re.compile(r"\{[^{}]{1,8000}\}")
PAIR = re.compile(
    rf"""(?P<quote>['"])(?P<key>[^'"]{{1,100}})(?P=quote):\s*
    (?:(?P<mark>['"])(?P<text>[^'"]{{0,100}})(?P=mark)|(?P<number>{NUMBER}|NaN|-?Infinity)\s*[,}}])""",
    re.VERBOSE,
)
FIRST = re.compile(r"""\{\s*['"]""")
SAVING = re.compile(r"Saving model checkpoint to \S*?checkpoint-(\d{1,12})\b")
HEADER = re.compile(
    rf"(?<!\w)(Num examples|Num Epochs|(?:Instantaneous )?batch size per device"
    rf"|Gradient Accumulation steps|Total (?:optimization )?steps"
    rf"|Number of trainable parameters)\s*=\s*({NUMBER})",
    re.IGNORECASE,
)
SETTINGS = {
    "num examples": "num_examples",
    "num epochs": "num_epochs",
    "instantaneous batch size per device": "batch_size",
    "batch size per device": "batch_size",
    "gradient accumulation steps": "gradient_accumulation_steps",
    "total optimization steps": "max_iters",
    "total steps": "max_iters",
}
SECTION = re.compile(r"\*{3,} Running (\w+)")
BLOCK = re.compile(r"\*{3,} (train|eval) metrics \*{3,}$")
METRIC = re.compile(r"^(\w{1,100})\s*=\s*(\S{1,100})$")
LEAST_SPAN_S = 20.0  # a bar shows whole seconds: too coarse for less
MOST_BARS = 2000
FEW_BARS = 5

PROGRESS_BAR = LogFormat(
    "progress-bar", limits=("format-lightning", "next-line"), times_everything=True
)


class HFTrainer:
    """Reads the Trainer's console: dicts, with the step from the training bar if there is one."""

    format = LogFormat(
        "hf-trainer",
        limits=("format-hf-trainer",),
        hides_nan_loss=True,
        elapsed_name="train_runtime",
    )

    def __init__(self) -> None:
        self._bar: Bar | None = None  # the latest training bar
        self._total: int | None = None  # steps of the training bar
        self._bars: dict[int, dict[int, float]] = {}  # elapsed by step, by total, before a dict
        self._timed: tuple[int, float] | None = None  # step and clock that times are counted from
        self._evals_s = 0.0  # evaluations since then
        self._num_rated = 0  # dicts since then with the bar's rate as their time
        self._clock: tuple[int | None, float] = (None, 0.0)  # step and clock of the latest dict
        self._logged: tuple[int | None, Values] = (None, {})
        self._is_late = False  # dicts appear after the bar has moved on
        self._has_loss = False
        self._is_over = False  # the dict of the end was read
        self._length: int | None = None  # steps of the training that is over
        self._is_of_training = True  # a header speaks of training, not of an evaluation
        self._is_trainer = False  # a line that only the Trainer prints was read
        self._has_logged = False  # a dict with a loss was read
        self._block: dict[str, object] | None = None  # while a block of metrics is read
        self._block_kind = ""
        self._end: Record | None = None
        self._table = TrainerTable()
        self.has_taken = False  # the last line was a training bar

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        result = self._table.read(text)
        if result:
            self.format = replace(self.format, counts=self._table.counts)
            self._has_logged |= any(record["kind"] == "iter" for record in result)
            return result
        if "%" in text:
            result += self._read_bars(text)
        if "{" in text and FIRST.search(text):
            for each in DICT.finditer(text):
                result += self._dict(_values(each[0]))
            return result
        if "Saving model" in text and (found := SAVING.search(text)):
            self._is_trainer = True
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if "* Running " in text and (found := SECTION.search(text)):
            self._is_of_training, self._is_trainer = found[1].lower() == "training", True
            return [{"kind": "start"}]
        if " metrics *" in text and (found := BLOCK.search(text)):
            self._block, self._block_kind = {}, found[1]
            return [{"kind": "start"}]
        if "= " in text:
            return result + self._assigned(text)
        return result + self._end_of_block()

    def flush(self) -> list[Record]:
        """What is only known at the end: steps of a log without dicts."""
        result = self._end_of_block()
        if self._has_logged:
            return result
        steps = max(self._bars.values(), key=len, default={})
        self.format = replace(self.format, elapsed_name="")
        if steps and not self._is_trainer and self._end is None:
            self.format = PROGRESS_BAR  # any script may draw one
        for step, elapsed in steps.items():
            record = {"kind": "iter", "iter": step, "loss": None, "elapsed_s": elapsed}
            if self.format is PROGRESS_BAR:
                # A few bars do not show which of their spans are ordinary.
                record["is_clock_only"] = len(steps) <= FEW_BARS
                if len(steps) == 1 and elapsed >= LEAST_SPAN_S:
                    record |= {"time_ms": 1000 * elapsed / step, "window": step}
            result.append(record)
        return result

    def _read_bars(self, text: str) -> list[Record]:
        """Read training bars. Bars of loading have a label, those of evaluation another total, and
        the bar before a dict with a loss is that of training."""
        result: list[Record] = []
        for bar in bars(text):
            if bar.label not in ("", "Train") or self._total not in (None, bar.total):
                continue
            self._bar = bar
            self.has_taken = True
            if self._has_logged or bar.n == 0:
                continue
            if bar.total not in self._bars:
                result.append({"kind": "start"})
            known = self._bars.setdefault(bar.total, {})
            if len(known) < MOST_BARS:
                known[bar.n] = bar.elapsed_s
        return result

    def _dict(self, values: Values) -> list[Record]:
        step, total = dict_step(values)
        if step is None:
            step, total = self._bar_step(values)
        if "train_runtime" in values and "loss" not in values:
            step = self._length = total or self._longest_bar() or self._length or step
        records = dict_records(values, step)
        if not records and step is not None and not self._has_loss:
            records = clock_records(values, step)
        for record in records:
            if record["kind"] == "end":
                self._forget(record)
            elif record["kind"] == "eval":
                self._time_evaluation(record, values)
            else:
                self._has_loss |= record["loss"] is not None
                self._complete(record, values, step, total)
        return records

    def _time_evaluation(self, record: Record, values: Values) -> None:
        """If the evaluation's time is not printed, the clock has gone on since the dict of the same
        step by as much."""
        if self._is_over:
            record["time_ms"] = None  # not within the time of the training
        clock, (step, before) = elapsed_s(values), self._clock
        if clock is not None and record["iter"] is not None:
            record["elapsed_s"] = clock
            if record["time_ms"] is None and step == record["iter"]:
                span = clock - before
                record["time_ms"] = 1000 * span if span >= LEAST_SPAN_S else None
        self._evals_s += (record["time_ms"] or 0.0) / 1000

    def _bar_step(self, values: Values) -> tuple[int | None, int | None]:
        """The step of a dict by the bar. If output is buffered, many dicts appear at once, after
        the bar has moved on. Then the step of no dict is known."""
        if "loss" not in values:
            return self._eval_step(values), self._total
        step, last = self._logged
        if values == last:
            return step, self._total  # printed twice
        now = self._training_step()
        self._is_late |= now is None or now == step
        self._logged = (now, values)
        if self._bar is not None and not self._is_late:
            self._total = self._bar.total
        return (None if self._is_late else now), self._total

    def _training_step(self) -> int | None:
        """The latest step of the training bar, if that is the latest bar. No dict is of step 0. A
        full bar beside one that has taken longer is that of an evaluation."""
        bar = self._bar
        if bar is None or bar.n == 0:
            return None
        is_full = bar.n == bar.total and self._total is None
        return None if is_full and bar.total != self._longest_bar() else bar.n

    def _longest_bar(self) -> int | None:
        """The total of the bar that has taken longest: that of training."""
        return max(self._bars, key=lambda total: max(self._bars[total].values()), default=None)

    def _eval_step(self, values: Values) -> int | None:
        """The latest step of the training bar. Before its total is known, an evaluation's own bar
        is the one that has just ended."""
        bar = self._bar
        if self._is_late:
            return None
        if bar is not None and bar.total == self._total:
            return bar.n
        totals = [t for t in self._bars if bar is None or bar.n < bar.total or t != bar.total]
        if self._total is None and len(totals) == 1:
            return max(self._bars[totals[0]])
        is_first = not self._has_logged and as_real(values.get("epoch")) == 0
        return 0 if is_first else None

    def _complete(
        self, record: Record, values: Values, step: int | None, total: int | None
    ) -> None:
        """Add the number of steps and the clock."""
        self._has_logged, self._is_over = True, False
        if total is not None:
            record["max_iters"] = total
        rate = record.pop("rate_per_s", None)
        if step is None:
            record.pop("elapsed_s", None)  # without a step, a clock gives no time per step
            return
        name, bar = next((name for name in CLOCKS if name in values), "progress bar"), self._bar
        if bar is not None and bar.n == step:
            record.setdefault("elapsed_s", bar.elapsed_s)
            rate = rate or bar.rate_per_s
        clock = record.pop("elapsed_s", None)
        if clock is None:
            return
        self.format = replace(self.format, elapsed_name=name)
        self._clock, before = (step, clock), self._timed
        if before is not None and step <= before[0] and clock > before[1] / 2:
            return  # another process has written this step or a later one already
        if before is None and name == "progress bar" and (known := self._bars.get(total or -1)):
            before, self._evals_s = (min(known), known[min(known)]), 0.0
        if before is None or clock < before[1] or step <= before[0]:
            self._timed, self._evals_s = (step, clock), 0.0
            record |= {"elapsed_s": clock, "time_ms": 1000 / rate if rate else None}
        elif clock - before[1] >= LEAST_SPAN_S:
            record |= {"elapsed_s": clock, **self._time(step, clock, before)}
        elif rate and self._timed is None:
            self._num_rated += 1
            record["time_ms"] = 1000 / rate

    def _time(self, step: int, clock: float, before: tuple[int, float]) -> Record:
        """The time per step since the dict before, without evaluations."""
        span = clock - before[1] - self._evals_s
        steps, num_rated = step - before[0], self._num_rated
        self._timed, self._evals_s, self._num_rated = (step, clock), 0.0, 0
        if span <= 0:
            return {}
        return {"time_ms": 1000 * span / steps, "window": max(1, steps - num_rated)}

    def _forget(self, end: Record) -> None:
        """After the end, the next bar belongs to another run."""
        self._end, self._is_over = end, True
        self._total, self._bar, self._timed = None, None, None

    def _assigned(self, text: str) -> list[Record]:
        if self._block is not None and (found := METRIC.match(text)):
            value: object = found[2]
            if ":" in found[2]:
                value = clock_seconds(found[2])
            self._block[found[1]] = value
            self.has_taken = True
            return []
        result = self._end_of_block()
        for found in HEADER.finditer(text) if self._is_of_training else ():
            value = number(found[2])
            result += _header(found[1].lower(), value)
            if found[1].lower().startswith("total ") and value and value < 1e15:
                self._total = int(value)
        return result

    def _end_of_block(self) -> list[Record]:
        """The records of a block of metrics, when it is over."""
        block, self._block = self._block, None
        if not block:
            return []
        if self._block_kind == "train":
            block = {key: value for key, value in block.items() if key != "loss"}
        return self._dict(block)


def _values(text: str) -> Values:
    return {
        found["key"]: found["number"] if found["text"] is None else found["text"]
        for found in PAIR.finditer(text)
    }


def _header(name: str, value: float | None) -> list[Record]:
    if value is None or not abs(value) < 1e15:
        return []
    if name in SETTINGS:
        return [{"kind": "start", "config": {SETTINGS[name]: int(value)}}]
    return [{"kind": "start", "parameters": value}]
