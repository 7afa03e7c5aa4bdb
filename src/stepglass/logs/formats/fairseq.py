"""fairseq, with the simple, JSON and tqdm progress of all versions.

    | epoch 002:  700 / 2400 loss=9.104, ..., ups=1.7, num_updates=3097, wall=1840, train_wall=1611
    ... | INFO | train_inner | epoch 002:    800 / 2400 loss=8.93, ups=1.71, ..., wall=1899
    ... | INFO | valid | epoch 002 | valid on 'valid' subset | loss 8.2 | ... | num_updates 4800
    ... | INFO | train_inner | {"epoch": 2, "update": 1.333, "loss": "8.93", ..., "wall": "1899"}

Most criteria print the loss in base 2. `num_updates` does not count updates that were skipped for
an overflow. `wall` is the time since the start, with everything. Old versions, which print `wall`
before `train_wall`, average loss and `ups` since the start of the epoch; new ones since the
previous line.
"""

import json
import re
from dataclasses import replace
from typing import Any

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LEAST_UPS = 0.5  # printed with two digits, smaller ones are too coarse
LEAST_SECONDS = 20.0  # `train_wall` has whole seconds

INNER = re.compile(r"(?<!\w)epoch (\d{1,9}):\s.{0,200}?[\s,\[]loss=")
EQUALS = re.compile(rf"(?<![\w/])(\w+)=({NUMBER})(?=[,%\]\s]|$)")
SUMMARY = re.compile(
    r"(?<!\w)epoch (?P<epoch>\d{1,9}) \|(?: valid on '(?P<subset>[^']{1,80})' subset \|)?"
    r" (?P<rest>.{1,2000})"
)
PIPES = re.compile(rf"(?:^|\| )(\w+) ({NUMBER})(?=\s|$)")
OVERFLOW = re.compile(r"(?:NOTE|WARNING|AMP): (?:gradient )?overflow detected, ")
SAVED = re.compile(
    r"[Ss]aved checkpoint \S+ \(epoch \d+ @ (\d{1,15}) updates\b.{0,100}?"
    rf"\(writing took ({NUMBER}) seconds\)"
)
METRICS = ("bleu", "wer", "uer", "cer", "accuracy", "acc")


class Fairseq:
    """Reads fairseq's console and log files."""

    format = LogFormat(
        "fairseq",
        limits=("format-fairseq", "next-line"),
        times_everything=True,
        loss_is_nats=False,
        elapsed_name="wall",
    )

    def __init__(self) -> None:
        self._num_skipped = 0  # since the previous line
        self._updates_before: int | None = None  # of the previous line
        self._train_wall: tuple[int, float] | None = None  # updates and seconds of an epoch's line
        self._has_evaluated = False  # since the previous line
        self._has_lines = False  # lines within an epoch, not only its summary
        self.has_taken = False  # the last line sums up lines that were read

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "num_updates" in text:
            if "loss=" in text and (found := INNER.search(text)):
                return self._updates(dict(EQUALS.findall(text, found.start())))
            if '"epoch"' in text and "{" in text:
                return self._json(text[text.index("{") :])
            if found := SUMMARY.search(text):
                said = {key: value for key, value in PIPES.findall(found["rest"])}
                if self._train_wall is None and int(found["epoch"]) == 1:
                    self._train_wall = (0, 0.0)
                return self._summary(said, found["subset"])
        elif "valid on '" in text and "loss " in text and (found := SUMMARY.search(text)):
            return self._summary(dict(PIPES.findall(found["rest"])), found["subset"])
        elif '"valid_loss"' in text and "{" in text:
            return self._json(text[text.index("{") :])
        if "verflow detected" in text and OVERFLOW.search(text):
            self._num_skipped += 1
            return [{"kind": "event", "name": "skipped-update", "detail": text[:500]}]
        if "aved checkpoint" in text and (found := SAVED.search(text)):
            time_ms = 1000 * (number(found[2]) or 0.0)
            return [{"kind": "checkpoint", "iter": int(found[1]), "time_ms": time_ms}]
        return []

    def _updates(self, said: dict[str, str]) -> list[Record]:
        updates, loss = number(said.get("num_updates")), number(said.get("loss"))
        if updates is None or loss is None or not 0 <= updates < 1e15:
            return []
        self._has_lines = True
        skipped, self._num_skipped = self._num_skipped, 0
        names = list(said)
        is_old = "train_wall" in said and "wall" in names[: names.index("train_wall")]
        rate = number(said.get("ups"))
        time_ms = None if is_old else self._train_ms(int(updates), number(said.get("train_wall")))
        self._updates_before, self._has_evaluated = int(updates), False
        return [
            {
                "kind": "iter",
                "iter": int(updates),
                "loss": loss,
                "time_ms": time_ms,
                "lr": number(said.get("lr")),
                "grad_norm": number(said.get("gnorm")),
                "tok_s": number(said.get("wps")),
                "elapsed_s": number(said.get("wall")) or None,  # 0 after some restarts
                "rate_per_s": rate if rate and rate >= LEAST_UPS and not is_old else None,
                "is_mean": True,
                "num_skipped": skipped or None,
            }
        ]

    def _train_ms(self, updates: int, train_wall: float | None) -> float | None:
        """The time of an update after an evaluation, which `ups` includes and `train_wall` not."""
        count = updates - (updates if self._updates_before is None else self._updates_before)
        if not self._has_evaluated or count <= 0 or not train_wall or train_wall < LEAST_SECONDS:
            return None
        return 1000 * train_wall / count

    def _json(self, text: str) -> list[Record]:
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            return []
        if not isinstance(line, dict) or type(line.get("epoch")) is not int:
            return []
        said = {
            key: str(value) for key, value in line.items() if isinstance(value, str | int | float)
        }
        if "wps" in said and "num_updates" in said:
            return self._updates(said) if "update" in said else self._summary(said, None)
        if "valid_loss" in said and self._updates_before is not None:  # of an old version
            said.setdefault("valid_num_updates", str(self._updates_before))
        for key in said:
            if key.endswith("_num_updates"):
                prefix = key.removesuffix("num_updates")
                own = {k.removeprefix(prefix): v for k, v in said.items() if k.startswith(prefix)}
                return self._summary(own, None if prefix == "train_" else prefix.strip("_"))
        return []

    def _summary(self, said: dict[str, str], subset: str | None) -> list[Record]:
        """The last line of an epoch, or of an evaluation on a subset."""
        if subset is None:
            self.has_taken = self._has_lines
            return [] if self._has_lines else self._epoch(said)
        said = {key.removeprefix(f"{subset}_").removeprefix("valid_"): v for key, v in said.items()}
        updates, loss = number(said.get("num_updates")), number(said.get("loss"))
        if "num_updates" not in said:  # of an old version
            updates = self._updates_before
        if updates is None or loss is None or not 0 <= updates < 1e15:
            return []
        self._has_evaluated = True
        metrics = {key: number(said[key]) for key in METRICS if key in said}
        record: Record = {"kind": "eval", "iter": int(updates), "val_loss": loss}
        if subset != "valid":
            record["set"] = subset
        return [record | ({"metrics": metrics} if metrics else {})]

    def _epoch(self, said: dict[str, str]) -> list[Record]:
        """An epoch whose lines are not in the log. Its rate is a mean of the whole epoch."""
        before = self._train_wall
        records = self._updates(said)
        self._has_lines = False
        for record in records:
            # Since the epoch before, evaluations have passed: only `train_wall` leaves them out.
            record["rate_per_s"], record["is_clock_only"] = None, True
            record["time_ms"] = None
            spent, updates = number(said.get("train_wall")), record["iter"]
            if spent is None:
                continue
            is_total = "wall" in list(said)[: list(said).index("train_wall")]  # since the start
            self._train_wall = (updates, spent)
            if before is not None and is_total and before[0] < updates and before[1] < spent:
                self.format = replace(self.format, times_everything=False)
                record["window"] = updates - before[0]
                record["time_ms"] = 1000 * (spent - before[1]) / record["window"]
        return records
