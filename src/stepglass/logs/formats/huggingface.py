"""Hugging Face's Trainer: one dict per log step, progress bars between them, trainer_state.json.

     10%|█         | 20/200 [00:22<03:20,  1.11s/it]
    {'loss': 2.1048, 'grad_norm': 2.1349, 'learning_rate': 4.99e-05, 'epoch': 0.1}
    {'loss': '1.499', 'grad_norm': '0.7413', 'learning_rate': '7.059e-05', 'epoch': '2.105'}
    {'eval_loss': '0.1002', 'eval_runtime': '353.4', 'epoch': '0.064'}
    {'train_runtime': 225.8005, 'train_samples_per_second': 3.543, 'train_steps_per_second': 0.886}

Version 5 prints numbers as strings. `loss` is the mean since the previous dict; by default, NaN
values are left out of it. A dict has no step and no time: both come from the latest training bar.
"""

import json
import re
from collections.abc import Iterator, Mapping

from stepglass.logs.bars import bars
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

DICT = re.compile(r"\{[^{}]{1,8000}\}")
PAIR = re.compile(
    rf"""(?P<quote>['"])(?P<key>[^'"]{{1,100}})(?P=quote):\s*
    (?:(?P<mark>['"])(?P<text>[^'"]{{0,100}})(?P=mark)|(?P<number>{NUMBER}|NaN|-?Infinity)\s*[,}}])""",
    re.VERBOSE,
)
FIRST = re.compile(r"""\{\s*['"]""")
# A dict with `loss` but none of these keys was printed by another program.
TRAINER_KEYS = {"learning_rate", "epoch", "grad_norm", "global_step/max_steps"}
NAMES = {
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "epoch": "epoch",
    "num_tokens": "num_tokens",
    "num_input_tokens_seen": "num_tokens",
    "entropy": "entropy",
    "mean_token_accuracy": "mean_token_accuracy",
    "memory(GiB)": "memory_gib",
    "train_speed(iter/s)": "rate_per_s",
    "tokens_per_second": "tok_s",
}
END_NAMES = {
    "train_samples_per_second": "samples_per_s",
    "train_steps_per_second": "steps_per_s",
    "train_tokens_per_second": "tok_s",
    "train_loss": "train_loss",
    "epoch": "epoch",
}
EVAL_LOSS = re.compile(r"eval_(?:\w+_)?loss$")
EVAL_RUNTIME = re.compile(r"eval_(?:\w+_)?runtime$")
FRACTION = re.compile(r"(\d{1,12})/(\d{1,12})")
SPENT = re.compile(r"(?:(\d{1,9})d )?(?:(\d{1,9})h )?(?:(\d{1,9})m )?(\d{1,9})s")
SAVING = re.compile(r"Saving model checkpoint to \S*?checkpoint-(\d{1,12})\b")
HEADER = re.compile(
    rf"(?<!\w)(Num examples|Num Epochs|Instantaneous batch size per device"
    rf"|Gradient Accumulation steps|Total optimization steps|Number of trainable parameters)"
    rf"\s*=\s*({NUMBER})"
)
SETTINGS = {
    "Num examples": "num_examples",
    "Num Epochs": "num_epochs",
    "Instantaneous batch size per device": "batch_size",
    "Gradient Accumulation steps": "gradient_accumulation_steps",
    "Total optimization steps": "max_iters",
}

Values = Mapping[str, object]


class HFTrainer:
    """Reads the Trainer's console: dicts, with the step from the training bar if there is one."""

    format = LogFormat("hf-trainer", limits=("format-hf-trainer",), hides_nan_loss=True)

    def __init__(self) -> None:
        self._step: int | None = None  # from the latest training bar
        self._total: int | None = None
        self._elapsed_s: float | None = None
        self._logged: tuple[int | None, Values] = (None, {})
        self._is_late = False
        self.has_taken = False  # the last line was a training bar

    def read(self, text: str) -> list[Record]:
        result: list[Record] = []
        self.has_taken = False
        if "%|" in text:
            self._read_bars(text)
        if "{" in text and FIRST.search(text):
            for each in DICT.finditer(text):
                result += self._dict(_values(each[0]))
            return result
        if "Saving model" in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if " = " in text and (found := HEADER.search(text)):
            return _header(found[1], number(found[2]))
        return []

    def _read_bars(self, text: str) -> None:
        """Read training bars. Bars of loading have a label, those of evaluation another total."""
        for bar in bars(text):
            if bar.label in ("", "Train") and self._total in (None, bar.total):
                self._step, self._total, self._elapsed_s = bar.n, bar.total, bar.elapsed_s
                self.has_taken = True

    def _dict(self, values: Values) -> list[Record]:
        if "train_runtime" in values:
            self._total = None  # the next bar belongs to another run
        step, total = self._step, self._total
        if found := FRACTION.fullmatch(str(values.get("global_step/max_steps", ""))):
            step, total = int(found[1]), int(found[2])
        elif "loss" in values:
            step = self._step_of(values)
        record = _record(values, step)
        if record is None or record["kind"] != "iter":
            return [] if record is None else [record]
        if total is not None:
            record["max_iters"] = total
        record.setdefault("elapsed_s", self._elapsed_s)
        return [record]

    def _step_of(self, values: Values) -> int | None:
        """The step of a dict, or None if it is unknown. If output is buffered, many dicts appear at
        once, after the bar has moved on. Then the step of every later dict is unknown.
        """
        step, last = self._logged
        if values == last:
            return step  # printed twice
        self._is_late |= step is not None and step == self._step
        self._logged = (self._step, values)
        return None if self._is_late else self._step


def _values(text: str) -> Values:
    return {
        found["key"]: found["number"] if found["text"] is None else found["text"]
        for found in PAIR.finditer(text)
    }


def _record(values: Values, step: int | None) -> Record | None:
    """The record of a dict of the Trainer, printed or from trainer_state.json."""
    runtime = _real(values.get("train_runtime"))
    if runtime is not None:
        rest = {name: _real(values.get(key)) for key, name in END_NAMES.items() if key in values}
        return {"kind": "end", "wall_ms": 1000 * runtime, **rest}
    loss = _real(values.get("loss"))
    if loss is not None and not TRAINER_KEYS.isdisjoint(values) and "kind" not in values:
        record: Record = {"kind": "iter", "iter": step, "loss": loss}
        for key, name in NAMES.items():
            if key in values:
                record[name] = _real(values[key])
        if found := SPENT.fullmatch(str(values.get("elapsed_time", ""))):
            days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
            record["elapsed_s"] = float(((24 * days + hours) * 60 + minutes) * 60 + seconds)
        return record
    val_loss, time_s = _first(values, EVAL_LOSS), _first(values, EVAL_RUNTIME)
    if val_loss is None and time_s is None:
        return None
    return {
        "kind": "eval",
        "iter": step,
        "val_loss": val_loss,
        "time_ms": None if time_s is None else 1000 * time_s,
        "epoch": _real(values.get("epoch")),
    }


def _first(values: Values, pattern: re.Pattern[str]) -> float | None:
    for key, value in values.items():
        if pattern.match(key) and (result := _real(value)) is not None:
            return result
    return None


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _header(name: str, value: float | None) -> list[Record]:
    if value is None or not abs(value) < 1e15:
        return []
    if name in SETTINGS:
        return [{"kind": "start", "config": {SETTINGS[name]: int(value)}}]
    return [{"kind": "start", "parameters": value}]


# -- trainer_state.json --------------------------------------------------------------------------

HISTORY = re.compile(r'"log_history"\s*:\s*\[')
MAX_STEPS = re.compile(r'"max_steps"\s*:\s*(\d{1,12})\b')
BETWEEN = re.compile(r"[\s,]*")
LONGEST_ENTRY = 1 << 20
LONGEST_NAME = 100  # a searched name may be split between two parts


class TrainerState:
    """The log history of a trainer_state.json, read in parts, so that a long file fits in memory.

    Each record has the `line` on which its entry begins. A truncated file gives its whole entries.
    """

    def __init__(self) -> None:
        self.max_steps: int | None = None
        self.has_records = False
        self._decode = json.JSONDecoder().raw_decode
        self._rest = ""
        self._line = 1  # line on which the rest begins
        self._is_inside = False  # inside the list `log_history`
        self._is_over = False

    def feed(self, text: str) -> Iterator[Record]:
        """The records of all entries that are complete with this text."""
        self._rest += text
        if not self._is_inside and not self._is_over:
            self._look_for_steps()
            found = HISTORY.search(self._rest)
            self._pass(found.end() if found else max(0, len(self._rest) - LONGEST_NAME))
            self._is_inside = found is not None
        if self._is_inside:
            yield from self._entries()
        if self._is_over:
            self._look_for_steps()
            self._pass(max(0, len(self._rest) - LONGEST_NAME))

    def _look_for_steps(self) -> None:
        if self.max_steps is None and (found := MAX_STEPS.search(self._rest)):
            self.max_steps = int(found[1])

    def _pass(self, end: int) -> None:
        self._line += self._rest.count("\n", 0, end)
        self._rest = self._rest[end:]

    def _entries(self) -> Iterator[Record]:
        position, counted = 0, 0
        while True:
            between = BETWEEN.match(self._rest, position)
            position = between.end() if between else position
            try:
                entry, end = self._decode(self._rest, position)
            except (ValueError, RecursionError):
                break
            self._line += self._rest.count("\n", counted, position)
            counted, position = position, end
            record = _entry(entry)
            if record is not None:
                self.has_records = True
                yield {**record, "line": self._line}
        self._line += self._rest.count("\n", counted, position)
        self._rest = self._rest[position:]
        # An incomplete entry may continue in the next part, up to LONGEST_ENTRY.
        self._is_over = self._rest[:1] not in ("{", "") or len(self._rest) > LONGEST_ENTRY
        self._is_inside = not self._is_over


def _entry(entry: object) -> Record | None:
    step = entry.get("step") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or type(step) is not int or abs(step) > 1e15:
        return None
    return _record(entry, step)


def trainer_state(text: str) -> list[Record] | None:
    """The records of a whole trainer_state.json, or None if the text is something else."""
    if not HISTORY.search(text) or not text.lstrip().startswith("{"):
        return None
    state = TrainerState()
    records = list(state.feed(text))
    for record in records:
        if record["kind"] == "iter" and state.max_steps is not None:
            record["max_iters"] = state.max_steps
    return records
