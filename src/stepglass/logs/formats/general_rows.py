"""Splits a line of any log into names and values, without knowing what they mean.

step 100 | loss: 2.31 | lr=3e-4 | time 12.5ms        names before values
{"step": 100, "train": {"loss": 2.31}}               JSON, or a Python dict
epoch  train_loss  valid_loss  time                  a table: CSV, TSV, `|` or blanks
train:  45%|███   | 450/1000 [00:10<00:12, 45.0it/s, loss=2.3]
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from stepglass.logs.bars import bars, clock_seconds
from stepglass.logs.reader import NUMBER, number, plain_number

LONGEST_TEXT = 1000  # characters of a line that is not JSON
LONGEST_JSON = 1 << 15
MOST_VALUES = 300
UNITS = (
    r"ms|msecs?|milliseconds?|us|s|secs?|seconds?|%|"
    r"(?:it|its|iters?|iterations?|steps?|batch(?:es)?|tok|toks|tokens?)/s(?:ec|econd)?|"
    r"(?:ms|s|secs?|seconds?)/(?:it|iter|iteration|step|batch)"
)
VALUE = re.compile(
    rf"(?<![\w.\-/])(?P<open>[\[(<]?)\s*(?P<value>{NUMBER})(?:\s*/\s*(?P<total>\d{{1,12}}))?"
    rf"\s*[\])>]?(?:\s*(?P<unit>{UNITS})(?!\s*[:=]))?(?![\w./-]*\w)"
)
KEY = re.compile(r"(?:^|[^\w ])\s*(?P<key>[A-Za-z_][\w/@.()% -]{0,60}?)\s*[:=]?\s*$")
GAP = re.compile(r"[,;|\t\]\[{}]|\s{2,}|\s-\s|:\s+(?=[A-Za-z])")
CLOCK = re.compile(r"\d{1,4}(?::\d\d){1,2}(?:\.\d+)?")
DICT = re.compile(r"\{[^{}]{3,8000}\}")
DICT_PAIR = re.compile(
    rf"""['"](?P<key>[^'"]{{1,100}})['"]\s*:\s*(?:tensor\(\s*)?['"]?(?P<value>{NUMBER})['"]?\s*[,)}}]"""
)
CELL = re.compile(r"[A-Za-z_#][\w/.()@% #:-]{0,60}")
SPLIT_WORD = r"(val|valid|validat(?:ion|ing|e)|eval|evaluat(?:ion|ing|e)|dev|test(?:ing)?)"
SPLIT = re.compile(rf"(?i)(?<![\w/.-]){SPLIT_WORD}(?![\w/.-])")
SPLIT_IN_DICT = re.compile(
    rf"""(?i)["'](?:split|mode|phase|stage|set|subset)["']: ?["']{SPLIT_WORD}["']"""
)
PERCENT = re.compile(r"\d{1,3}%\|")
EPOCH_LABEL = re.compile(r"(?i)(?<![A-Za-z])ep(?:och)?s?\s?[:=#]?\s?\[?(\d{1,9})(?![\d.%])")
RULE = re.compile(r"[\s|:+=-]+")


class Value(NamedTuple):
    """A number with what stands beside it."""

    number: float | None
    unit: str = ""
    total: int | None = None  # of `100/5000`
    is_whole: bool = False  # written without a decimal point


class Row(NamedTuple):
    """The values of a line by name. Lines of the same kind have the same form and names."""

    form: str
    values: dict[str, Value]
    split: str = ""  # "val" or "test", if a word beside the names says that it is an evaluation

    @property
    def kind(self) -> tuple[str, ...]:
        return (self.form, self.split, *self.values)


EPOCH_HEADING = re.compile(r"\W{0,40}epoch\W{1,4}(\d{1,9})\b(?:\s*/\s*(\d{1,9})\b)?", re.IGNORECASE)
COUNTING = ("epoch", "step", "iter", "batch", "[n/total]")
TIMED_CELL = re.compile(rf"({NUMBER})\s?(s|sec|ms)")  # of a table


class RowSplitter:
    """Splits lines. It remembers the header of a table."""

    def __init__(self) -> None:
        self._header: list[str] = []
        self._separator: str | None = None
        self._epoch: Value | None = None  # of the newest heading
        self._under: set[tuple[str, ...]] = set()  # kinds of rows since then
        self._repeated: set[tuple[str, ...]] = set()

    def read(self, text: str) -> Row | None:
        """The values of a line, or None if it has none."""
        row = self._row(text)
        if row is not None and row.form == "text":
            row = self._under_heading(text, row)
        return None if row is None else row._replace(split=_split_of(text, row))

    def _under_heading(self, text: str, row: Row) -> Row:
        """A row with the epoch of the heading above it, if it has a loss and counts nothing."""
        names = [key.lower() for key in row.values]
        has_loss = any("loss" in name for name in names)
        if not has_loss and (found := EPOCH_HEADING.match(text)):
            total = int(found[2]) if found[2] else None
            self._epoch = Value(float(found[1]), "", total, True)
            self._under = set()
            return row
        counts = any(word in name for name in names for word in COUNTING)
        if self._epoch is None or not has_loss or counts or row.kind in self._repeated:
            return row
        if row.kind in self._under:  # several lines of an epoch: none of them is the epoch's
            self._repeated.add(row.kind)
            return row
        self._under.add(row.kind)
        return row._replace(values={"epoch": self._epoch, **row.values})

    def _row(self, text: str) -> Row | None:
        if "{" in text and "}" in text:
            return _from_dict(text)
        text = text[:LONGEST_TEXT]
        for bar in bars(text) if "%" in text else []:
            values = dict(_pairs(bar.postfix.lstrip(", ")))
            # A bar without a loss may be of anything, such as a download.
            if any("loss" in key.lower() for key in values):
                values["[n/total]"] = Value(float(bar.n), "", bar.total, True)
                if found := EPOCH_LABEL.search(text):
                    values["epoch"] = Value(float(found[1]), is_whole=True)
                if bar.rate_per_s:
                    values["it/s"] = Value(bar.rate_per_s, "it/s")
                return Row("bar", values)
        if "%|" in text:
            text = PERCENT.sub(" ", text)  # how much of a bar is done is no step
        if self._header and (row := self._table_row(text)):
            return row
        values = dict(_pairs(text))
        if len(values) < 2 and self._take_header(text):
            return None
        return Row("text", values) if values else None

    def _take_header(self, text: str) -> bool:
        for separator in ("\t", ",", "|", ";", "  ", None):
            if separator is not None and separator not in text:
                continue
            cells = _cells(text, separator)
            is_header = len(cells) >= 2 and len(set(cells)) == len(cells) <= MOST_VALUES
            if is_header and all(map(CELL.fullmatch, cells)):
                self._header, self._separator = cells, separator
                return True
        return False

    def _table_row(self, text: str) -> Row | None:
        if not any(character.isdigit() for character in text[:40]) or RULE.fullmatch(text):
            return None
        cells = _cells(text, self._separator if self._separator != "  " else None)
        if len(cells) != len(self._header):
            return None
        values = {}
        for key, cell in zip(self._header, cells, strict=True):
            if CLOCK.fullmatch(cell):
                values[key] = Value(clock_seconds(cell), "s")
            elif cell and (known := plain_number(cell)) is not None:
                values[key] = Value(known, is_whole=cell.isdigit())
            elif (found := TIMED_CELL.fullmatch(cell)) and (known := plain_number(found[1])):
                values[key] = Value(known, found[2])
        # The names of a table's columns are those of its header: a cell may be empty.
        return Row("table", values) if 2 * len(values) >= len(cells) or len(values) >= 2 else None


def _split_of(text: str, row: Row) -> str:
    """Whether a line that says only `loss` means an evaluation: `[eval] step 100 loss 2.3`."""
    if row.form in ("json", "dict"):
        found = SPLIT_IN_DICT.search(text[:LONGEST_JSON])
        return _short(found[1]) if found else ""
    if row.form == "table":
        return ""
    rest = text[:LONGEST_TEXT]
    for key in row.values:
        rest = rest.replace(key, " ", 1)
    found = SPLIT.search(rest)
    return _short(found[1]) if found else ""


def _short(word: str) -> str:
    return "test" if word.lower().startswith("test") else "val"


def _cells(text: str, separator: str | None) -> list[str]:
    if separator == "|":
        text = text.strip().strip("|")
    if separator == "  ":
        return [cell.strip() for cell in re.split(r"\s{2,}", text.strip(), maxsplit=MOST_VALUES)]
    return [cell.strip().strip('"') for cell in text.split(separator, MOST_VALUES)]


def _pairs(text: str) -> Iterator[tuple[str, Value]]:
    """Names and values of a text such as `step 100: loss 2.31, lr=3e-4, 45.0it/s`."""
    end = 0
    for found in VALUE.finditer(text):
        between = text[end : found.start()]
        end = found.end()
        between = GAP.split(between)[-1]
        name = KEY.search(f",{between}")
        unit = found["unit"] or ""
        if name:
            key = name["key"].strip()
        elif "/s" in unit or "/" in unit:
            key = unit  # `45.0it/s` says itself what it is
        elif found["open"] and found["total"]:
            key = "[n/total]"
        else:
            continue
        written = found["value"]
        total = int(found["total"]) if found["total"] else None
        known = number(written) if written.isdigit() else plain_number(written)
        yield key, Value(known, unit, total, written.isdigit())


def _from_dict(text: str) -> Row | None:
    start = text.index("{")
    if text[start + 1 : start + 40].lstrip()[:1] not in ("'", '"'):
        return None
    try:
        line: Any = json.loads(text[start : start + LONGEST_JSON])
    except (ValueError, RecursionError):
        return _from_python(text)
    if not isinstance(line, dict):
        return None
    values: dict[str, Value] = {}
    for key, item in line.items():
        inside = item.items() if isinstance(item, dict) else []
        pairs = [(f"{key}/{name}", value) for name, value in inside] or [(key, item)]
        for name, value in pairs[:MOST_VALUES]:
            if (known := _json_value(value)) is not None and len(values) < MOST_VALUES:
                values[name] = known
    return Row("json", values) if values else None


def _json_value(item: object) -> Value | None:
    if isinstance(item, bool):
        return None
    if isinstance(item, str):
        if CLOCK.fullmatch(item):
            return Value(clock_seconds(item), "s")
        known = plain_number(item) if len(item) < 40 else None
        return None if known is None else Value(known, is_whole=item.isdigit())
    if isinstance(item, int | float):
        return Value(number(str(item)), is_whole=isinstance(item, int))
    return None


def _from_python(text: str) -> Row | None:
    found = DICT.search(text[:LONGEST_JSON])
    if not found:
        return None
    values = {
        pair["key"]: Value(plain_number(pair["value"]), is_whole=pair["value"].isdigit())
        for pair in DICT_PAIR.finditer(found[0])
    }
    return Row("dict", values) if values else None
