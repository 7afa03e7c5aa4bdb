"""The examples of PyTorch, which countless training scripts began as.

    Epoch: [0][  10/5005]   Time  0.455 ( 1.602)   Data  0.003 ( 0.201)   Loss 6.9e+00 (7.0e+00)
    Train Epoch: 1 [640/60000 (1%)]   Loss: 2.300039
    Test set: Average loss: 0.0462, Accuracy: 9849/10000 (98%)
    | epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 12.93 | loss  7.63 | ppl  2058.91
    | end of epoch   1 | time: 41.21s | valid loss  5.78 | valid ppl   323.36
    [1,  2000] loss: 2.227

imagenet: a value is the latest iteration's, the one in brackets the mean of the epoch, and Time
includes Data. mnist counts samples. The language model prints means since the line before, as
does the tutorial with CIFAR-10 (the last line), which does not say how long an epoch is.
"""

import re

from stepglass.logs.formats.running_mean import MeanOfEpoch, Times, digits_of
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

IMAGENET = re.compile(
    r"Epoch:\s*\[(?P<epoch>\d{1,9})(?:/\d{1,9})?\]\s*\[\s*(?P<n>\d{1,12})/\s*(?P<total>\d{1,12})\]"
    r"[\s,]+(?P<rest>.*)"
)
METER = re.compile(
    rf"(?<![\w@])(?P<key>[A-Za-z][\w@]*):?\s+(?P<last>{NUMBER})\s*\(\s*(?P<mean>{NUMBER})\)"
)
TEST = re.compile(r"(?<!\w)Test:\s*\[\s*\d{1,12}/\s*\d{1,12}\]")
TESTED = re.compile(rf"^\s*\*\s+(?:Prec|Acc)@1 ({NUMBER})(?:\s+(?:Prec|Acc)@5 ({NUMBER}))?\s*$")
MNIST = re.compile(
    r"Train Epoch: (?P<epoch>\d{1,9}) \[(?P<n>\d{1,12})/(?P<total>\d{1,12}) \(\s*\d+(?:\.\d+)?%\)\]"
    rf"\s+Loss: (?P<loss>{NUMBER})"
)
MNIST_TEST = re.compile(
    rf"Test set: Average loss: (?P<loss>{NUMBER}), "
    r"Accuracy: (?P<right>\d{1,12})/(?P<all>\d{1,12})"
)
BATCHES = re.compile(
    r"\| epoch\s+(?P<epoch>\d{1,9}) \|\s+(?P<n>\d{1,12})/\s*(?P<total>\d{1,12}) batches \|"
    r"(?P<rest>.*)"
)
END = re.compile(
    rf"\| end of epoch\s+(?P<epoch>\d{{1,9}}) \| time:\s+{NUMBER}s \| "
    rf"valid loss\s+(?P<loss>{NUMBER})"
)
CIFAR = re.compile(rf"^\[(?P<epoch>\d{{1,9}}),\s+\d{{1,12}}\] loss: (?P<loss>{NUMBER})$")
COLUMN = re.compile(rf"(?<!\w)(lr|ms/batch|s/batch|loss)\s+({NUMBER})(?=\s|$)")


class PytorchExamples:
    """Reads the consoles of PyTorch's examples: imagenet, mnist and word_language_model."""

    format = LogFormat(
        "pytorch-examples",
        limits=("format-pytorch-examples",),
        loss_is_nats=False,
        time_holds_data=True,
    )

    def __init__(self) -> None:
        self._iter: int | None = None
        self._epoch_iters = 0
        self._means = MeanOfEpoch()
        self.has_taken = False

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "Epoch:" in text:
            if found := IMAGENET.search(text):
                return self._imagenet(found)
            if found := MNIST.search(text):
                return self._training(found, {"loss": number(found["loss"])}, first_epoch=1)
        if text.startswith("| epoch") and (found := BATCHES.search(text)):
            return self._batches(found)
        if text.startswith("[") and (found := CIFAR.search(text)):
            where = {"iter": None, "epoch": int(found["epoch"])}
            return [{"kind": "iter", **where, "loss": number(found["loss"])}]
        if self._iter is None:
            return []
        if "| end of epoch" in text and (found := END.search(text)):
            iteration = int(found["epoch"]) * self._epoch_iters
            return [{"kind": "eval", "iter": iteration, "val_loss": number(found["loss"])}]
        if "Test set:" in text and (found := MNIST_TEST.search(text)):
            accuracy = int(found["right"]) / max(int(found["all"]), 1)
            values = {"val_loss": number(found["loss"]), "metrics": {"accuracy": accuracy}}
            return [{"kind": "eval", "iter": self._iter, **values}]
        if "@1" in text and (found := TESTED.search(text)):
            both = {"acc1": number(found[1]), "acc5": number(found[2])}
            metrics = {key: value for key, value in both.items() if value is not None}
            return [{"kind": "eval", "iter": self._iter, "metrics": metrics}]
        self.has_taken = "Test:" in text and TEST.search(text) is not None
        return []

    def _imagenet(self, found: re.Match[str]) -> list[Record]:
        meters = {m["key"].lower(): m for m in METER.finditer(found["rest"])}
        if "loss" not in meters:
            return []
        meters = {{"batch_time": "time"}.get(key, key): m for key, m in meters.items()}
        lasts = {key: number(m["last"]) for key, m in meters.items()}
        time, data = lasts.get("time"), lasts.get("data")
        values: Record = {
            "loss": lasts["loss"],
            "lr": lasts.get("lr"),
            "time_ms": None if time is None else 1000 * time,
            "data_ms": None if data is None else 1000 * data,
        }
        [record] = self._training(found, values, first_epoch=0)
        return [record | self._mean_times(record, meters)]

    def _mean_times(self, record: Record, meters: dict[str, re.Match[str]]) -> Record:
        """The times since the line before, by the means of the epoch in brackets."""
        named = {key: number(meters[key]["mean"]) for key in ("time", "data") if key in meters}
        means: Times = {key: mean for key, mean in named.items() if mean is not None}
        if "time" not in means:
            return {}
        digits = digits_of(meters["time"]["mean"])
        count = record["iter"] + 1
        found = self._means.since_line_before(record["epoch"], count, means, digits)
        if found is None:
            return {}
        times, window = found
        return {f"{name}_ms": 1000 * seconds for name, seconds in times.items()} | {
            "window": window
        }

    def _batches(self, found: re.Match[str]) -> list[Record]:
        said = {key: number(value) for key, value in COLUMN.findall(found["rest"])}
        if "loss" not in said:
            return []
        per_batch, seconds = said.get("ms/batch"), said.get("s/batch")
        time_ms = 1000 * seconds if seconds is not None else per_batch
        n, before = int(found["n"]), self._iter
        values = {"loss": said["loss"], "lr": said.get("lr"), "time_ms": time_ms}
        [record] = self._training(found, values, first_epoch=1)
        # No mean reaches back into the epoch before.
        distance = record["global_iter"] - before if before is not None else n
        return [{**record, "window": min(n, distance) if distance > 0 else n}]

    def _training(self, found: re.Match[str], values: Record, first_epoch: int) -> list[Record]:
        n, total, epoch = int(found["n"]), int(found["total"]), int(found["epoch"])
        self._iter, self._epoch_iters = max(0, epoch - first_epoch) * total + n, total
        where = {"iter": n, "epoch": epoch, "epoch_iters": total, "global_iter": self._iter}
        return [{"kind": "iter", **where, **values}]
