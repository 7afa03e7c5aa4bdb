"""TensorFlow: the Object Detection API, tf.estimator and slim.

    INFO:tensorflow:Step 200 per-step time 0.831s loss=1.192
    INFO:tensorflow:Step 200 per-step time 0.831s        and then a dict, one value a line
    INFO:tensorflow:loss = 1.23, step = 200 (83.100 sec)
    INFO:tensorflow:global step 200: loss = 1.1920 (0.831 sec/step)
    INFO:tensorflow:Saving dict for global step 1000: accuracy = 0.8, global_step = 1000, loss = 0.5

The per-step time is a mean over the steps since the previous line. absl prints many lines a second
time. The seconds of an estimator's line are those since the previous line.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

STEP = re.compile(
    rf"(?<!\w)Step (?P<step>\d{{1,15}}) per-step time (?P<s>{NUMBER})s"
    rf"(?: loss=(?P<loss>{NUMBER}))?$"
)
IN_DICT = re.compile(
    rf"'(?P<key>Loss/total_loss|learning_rate)': (?P<value>{NUMBER})(?P<end>\}})?,?$"
)
ESTIMATOR = re.compile(
    rf"(?<!\w)loss = (?P<loss>{NUMBER}), step = (?P<step>\d{{1,15}})(?: \((?P<s>{NUMBER}) sec\))?$"
)
SLIM = re.compile(
    rf"(?<!\w)global step (?P<step>\d{{1,15}}): loss = (?P<loss>{NUMBER}) "
    rf"\((?P<s>{NUMBER}) sec/step\)"
)
EVALUATED = re.compile(r"Saving dict for global step (?P<step>\d{1,15}): (?P<rest>.*)")
PAIR = re.compile(rf"([\w/@.-]{{1,120}}) = ({NUMBER})(?=,|$)")
SAVING = re.compile(r"Saving checkpoints for (\d{1,15}) into ")


class TensorFlowConsole:
    """Reads what TensorFlow's own training loops print."""

    format = LogFormat("tensorflow", limits=("format-tensorflow",), loss_is_nats=False)

    def __init__(self) -> None:
        self._held: Record | None = None  # a step whose loss follows in a dict
        self._step: int | None = None
        self.has_taken = False

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "per-step time" in text and (found := STEP.search(text)):
            record = _iteration(found, self._step, found["loss"])
            self._step = record["iter"]
            if found["loss"] is not None:
                return [*self.flush(), record]
            before, self._held = self.flush(), record
            self.has_taken = True
            return before
        if self._held is not None and text.startswith(("'", "{'")):
            return self._in_dict(text)
        if " step" in text and "loss = " in text:
            return self._step_line(text)
        if "Saving checkpoints for" in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if "Saving checkpoint to path" in text:
            return [{"kind": "checkpoint", "iter": None}]
        return []

    def flush(self) -> list[Record]:
        """The step whose dict has not ended."""
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _in_dict(self, text: str) -> list[Record]:
        self.has_taken = True
        found = IN_DICT.search(text)
        if found and self._held is not None:
            name = "lr" if found["key"] == "learning_rate" else "loss"
            self._held[name] = number(found["value"])
        return self.flush() if text.rstrip().endswith("}") else []

    def _step_line(self, text: str) -> list[Record]:
        if found := EVALUATED.search(text):
            metrics = {key: number(value) for key, value in PAIR.findall(found["rest"])}
            metrics.pop("global_step", None)
            loss = metrics.pop("loss", None)
            known = {key: value for key, value in metrics.items() if value is not None}
            values = {"val_loss": loss, "metrics": known or None}
            return [{"kind": "eval", "iter": int(found["step"]), **values}]
        if found := SLIM.search(text):
            seconds = number(found["s"])  # of this step alone
            record = {"kind": "iter", "iter": int(found["step"]), "loss": number(found["loss"])}
            return [{**record, "time_ms": None if seconds is None else 1000 * seconds}]
        if found := ESTIMATOR.search(text):
            before, step = self._step, int(found["step"])
            self._step = step
            record = {"kind": "iter", "iter": step, "loss": number(found["loss"])}
            seconds = number(found["s"])
            if seconds is not None and before is not None and before < step:
                record |= {"time_ms": 1000 * seconds / (step - before), "window": step - before}
            return [record]
        return []


def _iteration(found: re.Match[str], before: int | None, loss: str | None) -> Record:
    step, seconds = int(found["step"]), number(found["s"])
    record: Record = {"kind": "iter", "iter": step, "loss": number(loss), "is_mean": True}
    record["time_ms"] = None if seconds is None else 1000 * seconds
    if before is None:
        record["window"] = min(step, 100) or 1  # it is printed every 100 steps
    return record
