"""Composer and llm-foundry: a heading for each logged batch, followed by one metric per line.

    [batch=2/10]:
             Train time/train: 0.0146
             Train loss/train/total: 11.6153
    [Eval batch=32/32] Eval on eval data:
             Eval metrics/eval/LanguageCrossEntropy: 3.2

`time/train`, `time/val` and `time/total` are hours since the start. `time/train` includes saving
but not evaluation. Old versions print `wall_clock/train` etc. in seconds. MFU is a fraction.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

HEADING = re.compile(
    r"\[(?:epoch=(?P<epoch>\d{1,9})(?:/\d{1,9})?\]\[)?"
    r"(?P<eval>Eval )?batch=(?P<batch>\d{1,12})(?:/(?P<total>\d{1,12}))?\]"
)
METRIC = re.compile(rf"(?<!\w)(?:Train|Eval) ([\w/.-]{{1,200}}): ({NUMBER})$")
HOUR_MS = 3_600_000.0
NAMES = {
    "loss/train/total": ("loss", 1.0),
    "time/train": ("train_ms", HOUR_MS),
    "time/val": ("val_ms", HOUR_MS),
    "time/total": ("wall_ms", HOUR_MS),
    "wall_clock/train": ("train_ms", 1000.0),
    "wall_clock/val": ("val_ms", 1000.0),
    "wall_clock/total": ("wall_ms", 1000.0),
    "time/token": ("tokens", 1.0),
    "throughput/tokens_per_sec": ("tok_s", 1.0),
    "throughput/batches_per_sec": ("rate_per_s", 1.0),
    "throughput/samples_per_sec": ("samples_per_s", 1.0),
    "throughput/device/mfu": ("mfu", 100.0),
    "l2_norm/grad/global": ("grad_norm", 1.0),
    "memory/alloc_retries": ("alloc_retries", 1.0),
    "trainer/device_train_microbatch_size": ("micro_batch_size", 1.0),
}
TOTALS = ("train_ms", "val_ms", "wall_ms")  # running totals that the trainer prints
TRAIN_LOSS = re.compile(r"metrics/train/\w*(?:CrossEntropy|[Ll]oss)$")
VAL_LOSS = re.compile(r"metrics/(?!train/).*(?:CrossEntropy|[Ll]oss)$|loss/eval/")


class Composer:
    """Reads Composer's console. A block is complete when the next one begins."""

    format = LogFormat("composer", limits=("format-composer",))

    def __init__(self) -> None:
        self._block: Record | None = None
        self._train_loss: float | None = None
        self._batch: int | None = None  # number of the latest training block
        self.has_taken = False  # the last line belongs to a block

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "batch=" in text and (found := HEADING.search(text)):
            done = self.flush()
            self._begin(found)
            self.has_taken = True
            return done
        if self._block is not None and (found := METRIC.search(text)):
            value = number(found[2])
            self.has_taken = value is not None
            if value is not None:
                self._take(self._block, found[1], value)
        return []

    def flush(self) -> list[Record]:
        """The records of the unfinished block. A block without metrics only shows progress."""
        block, self._block = self._block, None
        if block is None:
            return []
        if block["kind"] == "eval":
            return [block] if "val_loss" in block else []
        if "loss" not in block and self._train_loss is not None:
            block["loss"] = self._train_loss
        totals = {name: block[name] for name in TOTALS if name in block}
        totals_record: list[Record] = [{"kind": "start", **totals}] if totals else []
        return [block, *totals_record] if len(block) > 4 else []

    def _begin(self, found: re.Match[str]) -> None:
        self._train_loss = None
        if found["eval"]:
            self._block = {"kind": "eval", "iter": self._batch}
            return
        self._batch = int(found["batch"])
        total = int(found["total"]) if found["total"] else None
        epoch = int(found["epoch"]) if found["epoch"] else None
        self._block = {"kind": "iter", "iter": self._batch, "epoch": epoch, "max_iters": total}
        if epoch is not None:
            self._block["epoch_iters"] = self._block.pop("max_iters")  # counted per epoch

    def _take(self, block: Record, key: str, value: float) -> None:
        if block["kind"] == "eval":
            if VAL_LOSS.match(key):
                block.setdefault("val_loss", value)
        elif key in NAMES:
            name, factor = NAMES[key]
            block[name] = value * factor
        elif key.startswith("lr-"):
            block.setdefault("lr", value)
        elif TRAIN_LOSS.match(key):
            self._train_loss = value
