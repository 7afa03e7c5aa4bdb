"""trainer_state.json, in which Hugging Face's Trainer keeps what it has logged.

    {"log_history": [{"loss": 2.1, "epoch": 0.1, "step": 20}, ...], "max_steps": 200}

The entries are the dicts of trainer_dict.py, with their step.
"""

import json
import re
from collections.abc import Iterator

from stepglass.logs.formats.trainer_dict import dict_records
from stepglass.logs.reader import Record

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
        self._has_ended = False  # the entry of the training's end was read

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
            for record in self._records(entry):
                self.has_records = True
                yield {**record, "line": self._line}
        self._line += self._rest.count("\n", counted, position)
        self._rest = self._rest[position:]
        # An incomplete entry may continue in the next part, up to LONGEST_ENTRY.
        self._is_over = self._rest[:1] not in ("{", "") or len(self._rest) > LONGEST_ENTRY
        self._is_inside = not self._is_over

    def _records(self, entry: object) -> list[Record]:
        step = entry.get("step") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or type(step) is not int or abs(step) > 1e15:
            return []
        records = dict_records(entry, step)
        for record in records:
            if record["kind"] == "eval" and self._has_ended:
                record["time_ms"] = None  # not within the time of the training
            elif record["kind"] != "eval":
                self._has_ended = record["kind"] == "end"
        return records


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
