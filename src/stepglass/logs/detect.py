"""Detects the format of a log. All readers try the first lines; the best one reads the rest.

    log = read_log(file, name)  # a file opened in binary mode
    intake = Intake()           # or, for a log that grows:
    intake.feed(block)          #   whole lines
    log = intake.log()          #   everything read so far

To add a format, write a reader in `formats` and add its name to formats/all_formats.py.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from stepglass.errors import LogError
from stepglass.logs.bulk import nanogpt_lines, run_log_lines
from stepglass.logs.formats.all_formats import OTHERS, other_reader
from stepglass.logs.formats.run_log_reader import RunLogReader
from stepglass.logs.formats.stepglass_console import StepglassConsole
from stepglass.logs.lines import Readable, line_blocks, line_pieces
from stepglass.logs.log import Log
from stepglass.logs.notable import is_notable
from stepglass.logs.reader import Reader, Record
from stepglass.logs.refusal import likely_trainer
from stepglass.logs.refusal import nothing_found as nothing_found
from stepglass.logs.stamps import Stamps
from stepglass.logs.table import Table

if TYPE_CHECKING:
    from stepglass.logs.formats.general import Guide

ENOUGH = 12  # training lines that the best reader must understand before it is chosen
FEW = 3  # the same for a log that is followed: its findings should appear early
MOST_WAITING = 50_000  # lines to keep while no reader is chosen
MOST_WAITING_BYTES = 1 << 24
CHECK_EVERY = 4096  # lines after which the general reader may be sure, if all others are silent
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd")
WEIGHT = {"iter": 4.0, "eval": 4.0, "checkpoint": 1.0, "start": 1.0}


def worth(record: Record) -> float:
    """How strongly a record indicates the format of the log."""
    return WEIGHT.get(record["kind"], 0.25)


class Intake:
    """Reads blocks of whole lines and collects the result in a `Log`."""

    def __init__(
        self,
        new_table: Callable[[], Table] = Table,
        reader: Reader | None = None,
        num_lines: int = 0,
    ) -> None:
        self._log = Log(new_table)
        self._log.num_lines = num_lines  # lines of the file before the first block
        self._candidates: list[Reader] = [StepglassConsole(), RunLogReader()]
        self._scores = [0.0, 0.0]
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._reader = reader  # None until the format is detected
        self._holder: Any = None  # the reader, if it holds records back until a later line
        self._stamps = Stamps()
        self._has_training = False  # one of the candidates has read a step or an evaluation
        self._guide: Guide | None = None  # watches as long as none has

    def feed(self, block: bytes) -> None:
        """Read whole lines."""
        if self._reader is None:
            block = self._try_readers(block)
            if not block:
                return
        next_line = self._log.num_lines + 1
        quick = (
            nanogpt_lines.read_block(block, next_line)
            if isinstance(self._reader, StepglassConsole)
            else None
        )
        if quick is not None:
            self._read_block(quick)
            return
        lines = block.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        if isinstance(self._reader, RunLogReader):
            self._read_stretches(lines)
        else:
            for line in lines:
                self._read_line(self._next_number(), line)

    def _read_stretches(self, lines: list[bytes]) -> None:
        log = self._log
        for start, end, quick in run_log_lines.split(lines):
            last = log.current.last_iter
            if quick is None or (last is not None and quick.iters[0] <= last):
                for line in lines[start:end]:
                    self._read_line(self._next_number(), line)
            else:
                log.add_stretch(quick, log.num_lines + 1)
                log.num_lines += end - start
                log.num_understood += end - start

    def peek(self) -> Log | None:
        """The log so far, while it is still growing. None while the format is not clear."""
        if self._reader is None:
            is_clear = self._has_training and max(self._scores) >= 4 * FEW
            if is_clear or (self._guide and self._guide.num_rows() >= ENOUGH):
                self._choose()
        if self._reader is None:
            return None
        self._set_format()
        return self._log

    def log(self) -> Log:
        """The log, after its last line has been fed."""
        if self._reader is None:
            self._choose()
        assert self._reader is not None
        flush = getattr(self._reader, "flush", None)
        for record in flush() if flush else []:
            self._log.add(record, record.get("line", self._log.num_lines), None)
        self._set_format()
        return self._log

    def _set_format(self) -> None:
        assert self._reader is not None
        self._log.format = self._reader.format

    def _next_number(self) -> int:
        self._log.num_lines += 1
        return self._log.num_lines

    def _try_readers(self, block: bytes) -> bytes:
        """Give lines to all readers until one is chosen. Return the lines not yet read."""
        position = 0
        while position < len(block):
            end = block.find(b"\n", position) + 1 or len(block)
            line = block[position:end].rstrip(b"\n")
            position = end
            self._waiting.append((self._next_number(), line))
            self._waiting_bytes += len(line)
            self._try_line(line)
            self._limit_waiting()
            if self._reader is not None:
                return block[position:]
            first, second = sorted([0.0, *self._scores], reverse=True)[:2]
            if first >= 4 * ENOUGH and second * 3 <= first:
                self._choose()
                return block[position:]
        return b""

    def _limit_waiting(self) -> None:
        """Limit the waiting lines: choose a reader if one found training, else drop old lines."""
        is_full = len(self._waiting) > MOST_WAITING or self._waiting_bytes > MOST_WAITING_BYTES
        if not is_full and len(self._waiting) % CHECK_EVERY == 0 and self._guide:
            is_full = self._guide.num_rows() >= len(self._waiting) // 2
        if is_full:
            if self._has_training or (self._guide and self._guide.plan()):
                self._choose()
            else:
                is_long = len(self._waiting) > 1000
                self._waiting = self._waiting[-1000 if is_long else len(self._waiting) // 2 :]
                self._waiting_bytes = sum(len(line) for _, line in self._waiting)

    def _try_line(self, line: bytes) -> None:
        texts = [text for text in line_pieces(line) if text]
        before = sum(self._scores)
        for text in texts:
            for number, reader in enumerate(self._candidates):
                if records := reader.read(text):
                    self._scores[number] += self._score(records)
            if self._guide and not self._has_training:
                self._guide.watch(text)
        if len(self._candidates) == 2 and texts and sum(self._scores) == before:
            self._add_other_readers()

    def _score(self, records: list[Record]) -> float:
        self._has_training |= any(record["kind"] in ("iter", "eval") for record in records)
        return sum(worth(record) for record in records)

    def _add_other_readers(self) -> None:
        """Create the other readers and score them on the waiting lines."""
        from stepglass.logs.formats.general import Guide  # noqa: PLC0415  as late as the others

        texts = [text for _, line in self._waiting for text in line_pieces(line) if text]
        for name in OTHERS:
            made = other_reader(name)()
            self._candidates.append(made)
            self._scores.append(sum(self._score(made.read(text)) for text in texts))
        self._guide = Guide()
        for text in texts:
            self._guide.watch(text)

    def _choose(self) -> None:
        """Choose the reader with the best score. If none has read a step, the general one may."""
        best = max(range(len(self._scores)), key=lambda number: (self._scores[number], -number))
        plan = None if self._has_training or self._guide is None else self._guide.plan()
        if plan is None:
            self._reader = type(self._candidates[best])()
        else:
            from stepglass.logs.formats.general import General  # noqa: PLC0415

            self._reader = General(plan)
        self._holder = self._reader if hasattr(self._reader, "line") else None
        waiting, self._waiting, self._guide = self._waiting, [], None
        for line_number, line in waiting:
            self._read_line(line_number, line)
        if not self._has_training:  # keep what the refusal will say
            trainer = likely_trainer(text for _, line in waiting for text in line_pieces(line))
            self._log.add({"kind": "start", "looks_like": trainer}, self._log.num_lines, None)

    def _read_line(self, number: int, line: bytes) -> None:
        assert self._reader is not None
        is_understood = False
        for text in line_pieces(line):
            if not text:
                continue
            if self._holder is not None:
                self._holder.line = number
            records = self._reader.read(text) or _records_of_any_log(text)
            is_understood |= bool(records) or getattr(self._reader, "has_taken", False)
            if records:
                when = self._stamp(text, records)
                for record in records:
                    self._log.add(record, record.get("line", number), when)
        self._log.num_understood += is_understood

    def _read_block(self, quick: nanogpt_lines.LineBlock) -> None:
        log = self._log
        log.num_lines += quick.num_lines
        num_evals = len(quick.evals["line"]) if quick.evals else 0
        log.num_understood += len(quick) + num_evals + len(quick.saves)
        notes: list[tuple[int, Record, float | None]] = []
        for offset, line in quick.slow:
            found = self._records(line)
            log.num_understood += bool(found)
            notes += [(quick.first_line + offset, record, when) for record, when in found]
        if not notes and log.can_add_block(quick):
            log.add_block(quick)
        else:
            for number, record, when in sorted(notes + list(_records_of(quick)), key=first):
                log.add(record, number, when)

    def _records(self, line: bytes) -> list[tuple[Record, float | None]]:
        assert self._reader is not None
        result: list[tuple[Record, float | None]] = []
        for text in line_pieces(line):
            records = (self._reader.read(text) or _records_of_any_log(text)) if text else []
            when = self._stamp(text, records) if records else None
            result += [(record, when) for record in records]
        return result

    def _stamp(self, text: str, records: list[Record]) -> float | None:
        # A library may write stamps of its own kind: only a step's line decides how to read them.
        return self._stamps.read(text, any(r["kind"] in ("iter", "eval") for r in records))


def _records_of_any_log(text: str) -> list[Record]:
    """Records of a line that can occur in the log of any trainer."""
    if not is_notable(text):
        return []
    # Imported here because compiling its many patterns takes time and most logs need none of them.
    from stepglass.logs import events  # noqa: PLC0415

    return events.records_of_any_log(text)


def first(item: tuple[int, Record, float | None]) -> int:
    return item[0]


def _records_of(quick: nanogpt_lines.LineBlock) -> Iterator[tuple[int, Record, float | None]]:
    """The single records of a block."""
    for kind, columns in (("iter", quick.take(nanogpt_lines.ALL)), ("eval", quick.evals)):
        names = [name for name in columns if name != "line"]
        figures = zip(*(columns[name].tolist() for name in names), strict=True)
        for line, values in zip(columns["line"].tolist() if columns else [], figures, strict=True):
            record: Record = {"kind": kind, **dict(zip(names, values, strict=True))}
            record["iter"] = int(record["iter"])
            yield int(line), record, None
    for number in quick.saves:
        yield number, {"kind": "checkpoint"}, None


def read_log(file: Readable, name: str, new_table: Callable[[], Table] = Table) -> Log:
    """Read a whole log. Raises LogError if the file contains no training."""
    intake = Intake(new_table)
    parts = line_blocks(file)
    for number, block in enumerate(parts):
        if not number and block.startswith(COMPRESSED):
            raise LogError(f"{name}: the file is compressed; unpack it first, or: zcat | explain -")
        if not number and block.lstrip()[:1] == b"{" and b'"log_history"' in block:
            # Imported here because few logs are such a document.
            from stepglass.logs.state_file import read_trainer_state  # noqa: PLC0415

            return read_trainer_state(chain([block], parts), name, new_table)
        intake.feed(block)
    log = intake.log()
    log.finish()
    if not any(segment.is_worth_keeping for segment in log.segments):
        raise LogError(nothing_found(log, name))
    return log
