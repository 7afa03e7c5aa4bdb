"""timm (PyTorch Image Models) and OpenPCDet, whose lines are alike.

    Train: 0 [  50/1251 (  4%)]  Loss: 6.943 (6.95)  Time: 0.350s,  365.7/s (0.412s,  310.6/s)  ...
    Test: [  78/78]  Time: 0.054 (0.301)  Loss:  0.9136 (1.0822)  Acc@1: 80.25 (76.31)  ...
    Train:  1/3 ( 33%) [  49/323 ( 15%)]  Loss: 36.77 (81.7)  Acc_iter 50  Batch time: 0.31(0.31)

A value is the latest update's, the one in brackets the mean of the epoch so far. Time and `Batch
time` include the wait for data.
"""

import re

from stepglass.logs.bars import clock_seconds
from stepglass.logs.formats.running_mean import MeanOfEpoch, digits_of
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

TRAIN = re.compile(
    r"(?<!\w)Train:\s+(?P<epoch>\d{1,9})(?:/(?P<epochs>\d{1,9}))?(?:\s+\(\s*\d+%\))?\s+"
    r"\[\s*(?P<n>\d{1,12})/(?P<total>\d{1,12})\s+\(\s*\d+%\)\]\s+(?P<rest>.*)"
)
TEST = re.compile(
    r"(?<!\w)Test(?: ?\((?P<set>[\w -]{1,40})\))?:\s+"
    r"\[\s*(?P<n>\d{1,12})/(?P<total>\d{1,12})\]\s+(?P<rest>.*)"
)
PAIR = re.compile(rf"(?<![\w@])([A-Za-z][\w@]*(?: time)?):?\s+({NUMBER})s?\s*(?:\(\s*({NUMBER}))?")
TIME = re.compile(
    rf"(?<!\w)(?:Time|Batch time):\s*(?P<last>{NUMBER})s?(?:,\s*{NUMBER}/s)?"
    rf"\s*\(\s*(?P<mean>{NUMBER})(?=[s),])"
)
CLOCK = re.compile(r"Time cost: [\d:]{4,12}/[\d:]{4,12} \[(?P<elapsed>[\d:]{4,12})/[\d:]{4,12}\]")
COUNTED = re.compile(r"Acc_iter (\d{1,12})(?=\s|$)")  # over all epochs
RATE = re.compile(rf"Time:\s*{NUMBER}s?,\s*({NUMBER})/s")


class Timm:
    """Reads timm's console and OpenPCDet's."""

    format = LogFormat("timm", limits=("format-timm",), loss_is_nats=False, time_holds_data=True)

    def __init__(self) -> None:
        self._iter: int | None = None
        self._means = MeanOfEpoch()
        self.has_taken = False  # the last line shows the progress of an evaluation

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "Train:" in text and (found := TRAIN.search(text)):
            return self._train(found)
        if "Test" in text and "Time:" in text and (found := TEST.search(text)):
            return self._test(found)
        return []

    def _train(self, found: re.Match[str]) -> list[Record]:
        rest = found["rest"]
        pairs = {key.lower(): (last, mean) for key, last, mean in PAIR.findall(rest)}
        said = {key: number(last) for key, (last, _) in pairs.items()}
        if "loss" not in said:
            return []
        n, total, epoch = int(found["n"]), int(found["total"]), int(found["epoch"])
        record: Record = {"kind": "iter", "iter": n, "epoch": epoch, "epoch_iters": total}
        if counted := COUNTED.search(rest):
            self._iter = int(counted[1])
        else:
            # With a total, the epoch is counted from 1.
            self._iter = (epoch - (found["epochs"] is not None)) * total + n
        record |= {"global_iter": self._iter, "loss": said["loss"], "lr": said.get("lr")}
        if found["epochs"]:
            record["max_iters"] = int(found["epochs"]) * total
        if time := TIME.search(rest):
            last = number(time["last"])
            record["time_ms"] = None if last is None else 1000 * last
        data = said.get("data", said.get("data time"))
        record["data_ms"] = None if data is None else 1000 * data
        if time:
            data_mean = number(pairs.get("data", pairs.get("data time", ("", "")))[1] or None)
            record |= self._mean_times(record, time["mean"], data_mean)
        if rate := RATE.search(rest):
            record["samples_per_s"] = number(rate[1])
        if clock := CLOCK.search(rest):
            record["elapsed_s"] = clock_seconds(clock["elapsed"])
        return [record]

    def _mean_times(self, record: Record, time: str, data: float | None) -> Record:
        """The times since the line before, by the means of the epoch in brackets."""
        mean = number(time)
        if mean is None:
            return {}
        means = {"time": mean} | ({} if data is None else {"data": data})
        count = record["iter"] + 1
        own = self._means.since_line_before(record["epoch"], count, means, digits_of(time))
        if own is None:
            return {}
        return {f"{name}_ms": 1000 * s for name, s in own[0].items()} | {"window": own[1]}

    def _test(self, found: re.Match[str]) -> list[Record]:
        n, total = int(found["n"]), int(found["total"])
        self.has_taken = n < total
        if n < total or self._iter is None:
            return []  # the means of the last line are those of the whole set
        means = {key: number(mean) for key, _, mean in PAIR.findall(found["rest"]) if mean}
        loss, time = means.pop("Loss", None), means.pop("Time", None)
        if loss is None:
            return []
        metrics = {key: value for key, value in means.items() if value is not None}
        time_ms = None if time is None else 1000 * time * (total + 1)
        where = {"iter": self._iter, "set": found["set"] or ""}
        values = {"val_loss": loss, "metrics": metrics or None, "time_ms": time_ms}
        return [{"kind": "eval", **where, **values}]
