"""NeMo's own progress printer: fields separated by `|`.

    Training epoch 0, iteration 120/149 | lr: 3e-05 | global_step: 120 | reduced_train_loss: 1.233 |
    train_step_timing in s: 0.03146 | val_loss: 4.106            (one line)

Iterations count from 0, and the number after them is the last one. `val_loss` is repeated until the
next evaluation. The bars of NeMo 1 are Lightning's.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, plain_number

LINE = re.compile(r"\bTraining epoch (\d{1,9}), iteration (\d{1,15})/(\d{1,15})\s*\|(.{1,4000})")
PAIR = re.compile(rf"(?:^|\|)\s*([A-Za-z][\w /()-]{{0,80}}?)\s*:\s*({NUMBER})\s*(?=\||$)")
NAMES = {
    "lr": "lr",
    "reduced_train_loss": "loss",
    "grad_norm": "grad_norm",
    "consumed_samples": "consumed_samples",
    "global_batch_size": "global_batch_size",
}


class NeMo:
    """Reads NeMo 2's console."""

    format = LogFormat("nemo")

    def __init__(self) -> None:
        self._val_loss: float | None = None
        self._was_seen = False  # a line of training

    def read(self, text: str) -> list[Record]:
        if "Training epoch " not in text or not (found := LINE.search(text)):
            return []
        said = {key: plain_number(value) for key, value in PAIR.findall(found[4])}
        time_s = said.get("train_step_timing in s")
        if time_s is None and "reduced_train_loss" not in said:
            return []
        step = said.get("global_step")
        iteration = int(step) if step is not None and abs(step) < 1e15 else int(found[2])
        record: Record = {
            "kind": "iter",
            "iter": iteration,
            "max_iters": int(found[3]) + 1,
            "epoch": int(found[1]),
            "loss": None,
            "time_ms": None if time_s is None else 1000 * time_s,
        }
        record |= {name: said[key] for key, name in NAMES.items() if key in said}
        val_loss = said.get("val_loss")
        was_seen, self._was_seen = self._was_seen, True
        if val_loss is None or val_loss == self._val_loss:
            return [record]
        self._val_loss = val_loss
        where = iteration if was_seen else None  # this log begins after the evaluation
        return [{"kind": "eval", "iter": where, "val_loss": val_loss}, record]
