"""The table that Hugging Face's Trainer shows in a notebook, as people copy it.

    Step	Training Loss	Validation Loss	Wer
    1000	0.001200	0.420562	74.457216

    | Epoch | Training Loss | Validation Loss |
    | 1     | No log        | 0.523100        |

The loss is the latest one logged; before the first, it is `No log`. TRL adds columns of its own. If
the table counts epochs, there is one row for each.
"""

import re

from stepglass.logs.formats.trainer_dict import REWARD_KEYS, as_real
from stepglass.logs.reader import Record

HEADER = re.compile(r"^\W*(Step|Epoch)\s*[\t|]\s*(?:Training|Validation) Loss\b")
RULE = re.compile(r"[\s|:+=-]*")
MOST_CELLS = 300
MOST_METRICS = 50


class TrainerTable:
    """Reads the rows with as many cells as the header, wherever they stand after it: messages of an
    evaluation often come between."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self.counts = "steps"

    def read(self, text: str) -> list[Record]:
        if "\t" not in text and "|" not in text:
            return []
        if "Loss" in text and HEADER.match(text):
            self._names = [name.lower() for name in _cells(text)]
            self.counts = "epochs" if self._names[0] == "epoch" else "steps"
            return [{"kind": "start"}]
        if not self._names or RULE.fullmatch(text):
            return []
        cells = _cells(text)
        if len(cells) != len(self._names) or not cells[0].isdigit() or len(cells[0]) > 15:
            return []
        return self._records(dict(zip(self._names, cells, strict=True)))

    def _records(self, row: dict[str, str]) -> list[Record]:
        step = int(row[self._names[0]])
        values = {name: as_real(cell) for name, cell in list(row.items())[1:]}
        loss, val_loss = values.pop("training loss", None), values.pop("validation loss", None)
        train: Record = {"kind": "iter", "iter": step, "loss": loss}
        if not REWARD_KEYS.isdisjoint(values):
            train["is_policy"] = True
        records = [train] if loss is not None else []
        if "validation loss" in row:
            known = {name: value for name, value in values.items() if value is not None}
            metrics = dict(list(known.items())[:MOST_METRICS])
            records.append(
                {"kind": "eval", "iter": step, "val_loss": val_loss, "metrics": metrics or None}
            )
        return records


def _cells(text: str) -> list[str]:
    if "\t" not in text:
        text = text.strip().strip("|").replace("|", "\t")
    return [cell.strip() for cell in text.strip("\n\r").split("\t", MOST_CELLS)]
