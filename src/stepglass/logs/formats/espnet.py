"""ESPnet 2.

    3epoch:train:201-400batch: iter_time=0.002, forward_time=0.151, loss=41.205, backward_time=0.2,
    optim_step_time=0.01, optim0_lr0=3.1e-04, train_time=0.366                         (one line)
    3epoch results: [train] ..., loss=39.4, ..., total_count=6000, [valid] loss=35.1, acc=0.712, ...

Values are means over the batches named. `iter_time` is the wait for a batch. `train_time` is of an
update, which may have several batches. Batches are counted from 1 in every epoch.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

BATCHES = re.compile(
    r"(?<![\w.])(\d{1,9})epoch:train:(\d{1,12})-(\d{1,12})batch:"
    r"(?:\d{1,12}num_updates:)?\s+(\w.{1,8000})"  # FunASR adds the updates
)
RESULTS = re.compile(r"(?<![\w.])(\d{1,9})epoch results: (\[train\] .{1,16000})")
SECTION = re.compile(r"\[(\w+)\] ")
PAIR = re.compile(rf"(?<!\w)(\w+)=({NUMBER})(?=,|\s|$)")
SPAN = re.compile(
    r"(?<!\w)time=(?:(?P<d>\d{1,6}) days?,? ?(?:and )?)?(?:(?P<h>\d{1,3}) hours?,? ?(?:and )?)?"
    r"(?:(?P<m>\d{1,3}) minutes?,? ?(?:and )?)?(?:(?P<s>\d{1,3}(?:\.\d+)?) seconds?)?"
)
SKIPPED = re.compile(r"The grad norm is (?:nan|-?inf)\. Skipping updating the model")
METRICS = {"acc": "accuracy", "wer": "wer", "cer": "cer"}


class ESPnet:
    """Reads ESPnet's train.log."""

    format = LogFormat("espnet", limits=("format-espnet",), loss_is_nats=False)

    def __init__(self) -> None:
        self._epoch = 0  # of the latest line; 0 before the first
        self._last = 0  # latest batch of this epoch, or its last one if known
        self._offset = 0  # batches of the earlier epochs in this log
        self._total: int | None = None  # batches of all epochs, as the previous results say
        self._num_skipped = 0  # since the previous line
        self._has_batches = False  # lines within an epoch, not only its results

    def read(self, text: str) -> list[Record]:
        if "epoch:train:" in text and (found := BATCHES.search(text)):
            return self._batches(found)
        if "epoch results: " in text and (found := RESULTS.search(text)):
            return self._results(int(found[1]), found[2])
        if "Skipping updating" in text and SKIPPED.search(text):
            self._num_skipped += 1
            return [{"kind": "event", "name": "skipped-update", "detail": text[:500]}]
        return []

    def _move_to(self, epoch: int) -> None:
        if epoch < self._epoch:  # the run was restarted
            self._offset, self._total = 0, None
        elif epoch > self._epoch:
            self._offset += self._last
        if epoch != self._epoch:
            self._epoch, self._last = epoch, 0

    def _batches(self, found: re.Match[str]) -> list[Record]:
        said = {key: number(value) for key, value in PAIR.findall(found[4])}
        if said.get("loss") is None or "train_time" not in said:
            return []
        first, last = int(found[2]), int(found[3])
        self._move_to(int(found[1]))
        self._last, self._has_batches = last, True
        rates = [value for key, value in said.items() if key in ("lr_0", "optim0_lr0")]
        skipped, self._num_skipped = self._num_skipped, 0
        return [
            {
                "kind": "iter",
                "iter": last,
                "global_iter": self._offset + last,
                "epoch": self._epoch,
                "loss": said["loss"],
                "time_ms": _batch_ms(said),
                "window": max(1, last - first + 1),
                "data_ms": _wait_ms(said.get("iter_time")),
                "lr": rates[0] if rates else None,
                "grad_norm": said.get("grad_norm"),
                "num_skipped": skipped or None,
            }
        ]

    def _results(self, epoch: int, text: str) -> list[Record]:
        self._move_to(epoch)
        parts = SECTION.split(text)
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        train = dict(PAIR.findall(sections["train"]))
        total = number(train.get("total_count"))
        own: list[Record] = []
        if total is not None and not self._has_batches:
            own = self._epoch_alone(epoch, int(total), sections["train"])
        if total is not None:
            before = 0 if epoch == 1 else self._total
            self._total = int(total)
            if before is not None and total > before:
                self._last = max(self._last, self._total - before)
        valid = {key: number(value) for key, value in PAIR.findall(sections.get("valid", ""))}
        if valid.get("loss") is None:
            return own
        metrics = {METRICS[key]: value for key, value in valid.items() if key in METRICS}
        where = own[0]["iter"] if own else self._offset + self._last
        record: Record = {"kind": "eval", "iter": where}
        record |= {"train_loss": number(train.get("loss")), "val_loss": valid["loss"]}
        timed = {"metrics": metrics or None, "time_ms": _span_ms(sections["valid"])}
        return [*own, record | timed]

    def _epoch_alone(self, epoch: int, total: int, text: str) -> list[Record]:
        """An epoch whose lines are not in the log: the mean of its batches."""
        said = {key: number(value) for key, value in PAIR.findall(text)}
        count = total - self._total if self._total is not None else 0
        if self._total is None and epoch and total % epoch == 0:
            count = total // epoch  # all epochs are of the same length
        time_ms = _span_ms(text)
        record: Record = {"kind": "iter", "iter": total, "epoch": epoch, "loss": said.get("loss")}
        record["lr"] = said.get("optim0_lr0", said.get("lr_0"))
        if count > 0 and time_ms:
            record |= {"time_ms": time_ms / count, "window": count}
        return [record]


def _batch_ms(said: dict[str, float | None]) -> float | None:
    """The time of a batch: `train_time`, if it is about the sum of its parts. Otherwise, an update
    has several batches, or much is not timed."""
    names = ("iter_time", "forward_time", "backward_time")
    parts, update = [said.get(name) for name in names], said["train_time"]
    if update is None or None in parts:
        return None
    whole = sum(part for part in parts if part is not None) + (said.get("optim_step_time") or 0.0)
    return 1000 * update if 0.7 * update <= whole <= 1.2 * update else None


def _wait_ms(seconds: float | None) -> float | None:
    """The wait for a batch. With three decimals, a few milliseconds are too coarse to believe."""
    return None if seconds is None or 1e-3 <= seconds < 1e-2 else 1000 * seconds


def _span_ms(text: str) -> float | None:
    """
    >>> _span_ms("loss=1.6, time=1 minute and 43.19 seconds, total_count=49")
    103190.0
    """
    found = SPAN.search(text)
    if not found or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(value or 0) for value in found.groups())
    return round(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))), 3)
