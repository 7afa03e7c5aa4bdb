"""lingua: the console and metrics.jsonl.

    step: 2  acc: 0  loss: 12.1832  flops: 1.97e+14  wps: 1.84e+04  iter:  0.8908  data: 0.001  ...
    {"global_step": 2, "speed/curr_iter_time": 0.8908, "loss/out": 12.1832, ...}

`iter` is the time of a step on the GPU, and `data` the wait for its batch, both in seconds. `wps`
and `flops` are means per GPU since the previous line, so a checkpoint or evaluation lowers them in
the next line.
"""

import json
import re
from typing import Any

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

STEP = re.compile(r"(?<![\w/-])step:\s*(\d{1,15})\s+(.*)")
PAIR = re.compile(rf"(?<![\w/])(\w+):\s*({NUMBER})")
TEXT_FIELDS = {
    "acc": "acc_step",
    "loss": "loss",
    "grad": "grad_norm",
    "flops": "tflops",
    "wps": "tok_s",
    "iter": "time_ms",
    "data": "data_ms",
    "lr": "lr",
    "mem": "memory_percent",
    "pow": "power_w",
}
JSON_FIELDS = {
    "acc_step": "acc_step",
    "loss/out": "loss",
    "optim/grad_norm": "grad_norm",
    "speed/FLOPS": "tflops",
    "speed/wps": "tok_s",
    "speed/curr_iter_time": "time_ms",
    "speed/data_load_time": "data_ms",
    "optim/lr": "lr",
    "optim/total_tokens": "tokens",
    "memory/max_active_pct": "memory_percent",
}
COLLECTION = re.compile(r"(?:^| - )garbage collection$")
SAVING = re.compile(r"Saving to: \S*?(\d{10})$")


class Lingua:
    """Reads lingua's console, train.log and metrics.jsonl."""

    format = LogFormat("lingua", limits=("format-lingua",))

    def read(self, text: str) -> list[Record]:
        if " iter:" in text and " data:" in text and (found := STEP.search(text)):
            said = {
                TEXT_FIELDS[key]: plain_number(value)
                for key, value in PAIR.findall(found[2])
                if key in TEXT_FIELDS
            }
            return _iteration(int(found[1]), said)
        if '"global_step"' in text and "{" in text:
            return _metrics(text[text.index("{") :])
        if "garbage coll" in text and COLLECTION.search(text):
            return [{"kind": "event", "name": "gc"}]
        if "Saving to: " in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        return []


def _metrics(text: str) -> list[Record]:
    try:
        line: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    step = line.get("global_step") if isinstance(line, dict) else None
    if type(step) is not int:  # not isinstance: a bool is an int too
        return []
    said = {
        name: number(str(line[key]))  # an integer may be too large for float()
        for key, name in JSON_FIELDS.items()
        if type(line.get(key)) in (int, float)
    }
    return _iteration(step, said)


def _iteration(step: int, said: Record) -> list[Record]:
    if "loss" not in said or "time_ms" not in said:
        return []
    for key in ("time_ms", "data_ms"):
        if key in said:
            said[key] = round(1000 * said[key], 6)
    if "tflops" in said:
        said["tflops"] /= 1e12
    return [{"kind": "iter", "iter": step, **said}]
