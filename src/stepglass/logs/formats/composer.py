"""Composer and llm-foundry: a heading for each logged batch, followed by one metric per line.

    [batch=2/10]:
             Train time/train: 0.0146
             Train loss/train/total: 11.6153
    [Eval batch=32/32] Eval on eval data:
             Eval metrics/eval/LanguageCrossEntropy: 3.2

`time/train`, `time/val` and `time/total` are hours since the start, with four decimals.
`time/train` includes saving but not evaluation. Old versions print `wall_clock/train` etc. in
seconds. MFU is a fraction. `time/batch` counts batches.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, plain_number

HEADING = re.compile(
    r"\[(?:epoch=(?P<epoch>\d{1,9})(?:/\d{1,9})?\]\[)?"
    r"(?P<eval>Eval )?batch=(?P<batch>\d{1,12})(?:/(?P<total>\d{1,12}))?\]"
)
METRIC = re.compile(rf"(?<!\w)(?:Train|Eval) ([\w/.-]{{1,200}}): ({NUMBER})(?=\s|$)")
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
HEADING_KEYS = {"kind", "line", "iter", "epoch", "max_iters", "epoch_iters", "global_iter"}
TOTALS = ("train_ms", "val_ms", "wall_ms")  # running totals that the trainer prints
TRAIN_LOSS = re.compile(r"metrics/train/\w*(?:CrossEntropy|[Ll]oss)$")
VAL_LOSS = re.compile(r"metrics/(?!train/)(?:.*CrossEntropy|(?:.*[/_])?[Ll]oss)$|loss/eval/")
VAL_METRIC = re.compile(r"metrics/(?!train/)(?P<set>.+)/(?P<name>[\w.-]+)$")
LEAST_SPAN_MS = 20_000.0  # an hour with four decimals is too coarse for less


class Composer:
    """Reads Composer's console. A block is complete when the next one begins."""

    format = LogFormat("composer", limits=("format-composer",), elapsed_name="time/total")

    def __init__(self) -> None:
        self.line = 0  # of the log: a block is about its first line
        self._block: Record | None = None
        self._train_loss: float | None = None
        self._batch: int | None = None  # number of the latest training block, over all epochs
        self._epoch: int | None = None
        self._epoch_start = 0  # batches before this epoch
        self._timed: tuple[int, float] | None = None  # batch and time that times are counted from
        self.has_taken = False  # the last line belongs to a block

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        done: list[Record] = []
        if "batch=" in text and (found := HEADING.search(text)):
            done = [*self.flush(), {"kind": "start"}]  # the block comes when it is complete
            self._begin(found)
            self.has_taken = True
        if self._block is not None:
            for found in METRIC.finditer(text):
                value = plain_number(found[2])
                if value is not None:
                    self.has_taken = True
                    self._take(self._block, found[1], value)
        return done

    def flush(self) -> list[Record]:
        """The records of the unfinished block. A block without metrics only shows progress."""
        block, self._block = self._block, None
        if block is None:
            return []
        if block["kind"] == "eval":
            return [block] if "val_loss" in block or "metrics" in block else []
        if "loss" not in block and self._train_loss is not None:
            block["loss"] = self._train_loss
        if "wall_ms" in block:
            block["elapsed_s"] = block["wall_ms"] / 1000
        if "train_ms" in block and "rate_per_s" not in block and self._batch is not None:
            block |= self._time(self._batch, block["train_ms"])
        totals = {name: block[name] for name in TOTALS if name in block}
        totals_record: list[Record] = [{"kind": "start", **totals}] if totals else []
        return [block, *totals_record] if not block.keys() <= HEADING_KEYS else []

    def _time(self, batch: int, clock_ms: float) -> Record:
        """The mean time of the batches since the time was last counted."""
        before = self._timed
        if before is None or batch <= before[0] or clock_ms < before[1]:
            self._timed = (batch, clock_ms)
            return {"time_ms": None}
        span = clock_ms - before[1]
        if span < LEAST_SPAN_MS:
            return {"time_ms": None}
        self._timed = (batch, clock_ms)
        return {"time_ms": span / (batch - before[0]), "window": batch - before[0]}

    def _begin(self, found: re.Match[str]) -> None:
        self._train_loss = None
        if found["eval"]:
            self._block = {"kind": "eval", "iter": self._batch, "line": self.line}
            return
        batch = int(found["batch"])
        total = int(found["total"]) if found["total"] else None
        epoch = int(found["epoch"]) if found["epoch"] else None
        self._block = {"kind": "iter", "iter": batch, "epoch": epoch, "max_iters": total}
        self._block["line"] = self.line
        if epoch is not None:
            self._block["epoch_iters"] = self._block.pop("max_iters")  # counted per epoch
            if total and self._epoch is not None and epoch > self._epoch:
                self._epoch_start += total * (epoch - self._epoch)
            elif self._epoch is not None and epoch < self._epoch:
                self._epoch_start = 0  # another run
            self._epoch = epoch
            self._block["global_iter"] = self._epoch_start + batch
        self._batch = self._epoch_start + batch

    def _take(self, block: Record, key: str, value: float) -> None:
        if block["kind"] == "eval":
            self._take_eval(block, key, value)
        elif key in NAMES:
            name, factor = NAMES[key]
            block[name] = value * factor
        elif key.startswith("lr-"):
            block.setdefault("lr", value)
        elif TRAIN_LOSS.match(key):
            self._train_loss = value

    def _take_eval(self, block: Record, key: str, value: float) -> None:
        if VAL_LOSS.match(key) and "val_loss" not in block:
            block["val_loss"] = value
        elif found := VAL_METRIC.match(key):
            block.setdefault("metrics", {})[found["name"]] = value
        if (found := VAL_METRIC.match(key)) and found["set"] != "eval":
            block["set"] = found["set"].removeprefix("eval/")
