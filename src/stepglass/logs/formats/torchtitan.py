"""torchtitan, all versions.

    step: 14  loss:  3.24405  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%

`tps` (formerly `wps`), `tflops` and `mfu` are means per GPU since the previous line, so a
checkpoint, a profiler dump or a garbage collection lowers them in the next line. The time of a step
is not printed. For an unknown GPU, MFU is relative to an A100. `mfu: N/A` means that MFU is
meaningless because of low precision.
"""

import math
import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

A100_TFLOPS = 312.0  # the peak that torchtitan assumes for an unknown GPU

STEP = re.compile(r"(?<![\w/-])(validate )?step:\s*(\d{1,15})(?:/(\d{1,15}))?(?=\s)(.*)")
PAIR = re.compile(rf"(?<![\w/])(\w+):\s*({NUMBER})")
LOSS = re.compile(rf"(?<![\w/])loss:\s*({NUMBER})")
PERCENT = re.compile(rf"GiB\(({NUMBER})%\)")
FIELDS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "memory": "memory_gib",
    "peak_memory": "memory_percent",
    "tps": "tok_s",
    "wps": "tok_s",
    "tflops": "tflops",
    "mfu": "mfu",
    "lr": "lr",
}
SAVING = re.compile(r"Saving a [\w ]*checkpoint\b.*?\bstep (\d{1,15})")
SAVED = re.compile(
    r"(?:Finished (?:saving|staging) the checkpoint\b.*?|Last step checkpoint completed )"
    rf"in ({NUMBER})\s*s"
)
COLLECTED = re.compile(rf"\[GC\] .*?(?<![\d.,])({NUMBER}) seconds")
DUMPED = re.compile(rf"Finished dumping (?:profiler traces|memory snapshot) in ({NUMBER}) seconds")


class Torchtitan:
    """Reads torchtitan's console."""

    format = LogFormat(
        "torchtitan", limits=("format-torchtitan",), fallback_peak_tflops=A100_TFLOPS
    )

    def __init__(self) -> None:
        self._saving: int | None = None  # the step being saved, if printed

    def read(self, text: str) -> list[Record]:
        if "memory:" in text and (found := STEP.search(text)):
            return _step(found)
        if "checkpoint" in text:
            return self._checkpoint(text)
        if "[GC] " in text and (found := COLLECTED.search(text)):
            return [{"kind": "event", "name": "gc", "time_ms": 1000 * (number(found[1]) or 0.0)}]
        if "Finished dumping" in text and (found := DUMPED.search(text)):
            return [
                {"kind": "event", "name": "profiler", "time_ms": 1000 * (number(found[1]) or 0.0)}
            ]
        if "Peak flops undefined" in text and "fallback to A100" in text:
            return [{"kind": "event", "name": "unknown-peak", "detail": text}]
        return []

    def _checkpoint(self, text: str) -> list[Record]:
        if found := SAVING.search(text):
            self._saving = int(found[1])
        if not (found := SAVED.search(text)):
            return []
        # The saved step may differ from the last printed step: most steps are not printed.
        record: Record = {"kind": "checkpoint", "time_ms": 1000 * (number(found[1]) or 0.0)}
        if self._saving is not None:
            record["iter"] = self._saving
        self._saving = None
        return [record]


def _step(found: re.Match[str]) -> list[Record]:
    rest = found[4]
    said = {FIELDS[key]: number(value) for key, value in PAIR.findall(rest) if key in FIELDS}
    if loss := LOSS.search(rest):
        said["loss"] = plain_number(loss[1])
    if "loss" not in said or "tok_s" not in said:
        return []
    if found[1]:
        record = {"kind": "eval", "iter": int(found[2]), "val_loss": said["loss"]}
        return [{**record, "tok_s": said["tok_s"]}]
    if percent := PERCENT.search(rest):
        said["memory_percent"] = number(percent[1])
    if not math.isfinite(said.setdefault("mfu", None) or 0.0):
        said["mfu"] = None
    if found[3]:
        said["max_iters"] = int(found[3])
    return [{"kind": "iter", "iter": int(found[2]), "is_mean": True, **said}]
