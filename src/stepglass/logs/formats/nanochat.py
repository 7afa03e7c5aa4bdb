"""nanochat: all versions of base_train, mid_train and chat_sft.

    step 00019/13920 (0.14%) | loss: 6.817907 | lrm: 1.00 | dt: 681.35ms | tok/sec: 769,480 | ...
    Step 10000 | Validation bpb: 1.946162

`dt` is measured between two synchronize calls and includes neither evaluation nor checkpoint.
`total time` excludes those and the first ten steps, so it is not a wall-clock time. `loss` is
smoothed. `lrm` is a factor on the learning rate. An mfu of 0.00 means that the GPU's peak is
unknown.
"""

import math
import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

STEP = re.compile(r"(?<![\w/-])[Ss]tep\s+(\d{1,15})(?:/(\d{1,15}))?(?:\s+\([\d.]+%\))?\s*\|(.*)")
VALUE = re.compile(rf"\s*({NUMBER})\s*([a-z]*)")
FIELDS = {
    "loss": "loss",
    "Training loss": "loss",
    "lrm": "lr_scale",
    "dt": "time_ms",
    "tok/sec": "tok_s",
    "mfu": "mfu",
    "bf16_mfu": "mfu",
    "grad norm": "grad_norm",
    "total time": "total_min",
    "num_tokens": "tokens",
}
UNITS = {"time_ms": "ms", "total_min": "m"}
GPU = re.compile(rf"\bGPU: (.+?) \| Peak FLOPS \(\w+\): ({NUMBER})")
BATCH = re.compile(r"Total batch size ([\d,]+) => gradient accumulation steps: (\d{1,15})")
FLOPS = re.compile(rf"Estimated FLOPs per token: ({NUMBER})")
MEMORY = re.compile(rf"Peak memory usage: ({NUMBER})MiB")
SAVED = re.compile(r"Saved model parameters to: .*?model_(\d{1,15})\.pt")
TOTAL = re.compile(rf"Total training time: ({NUMBER})m\b")
COLLECTED = re.compile(rf"\[GC rank\d+\] gen\d: ({NUMBER})ms")
SLOW = re.compile(r"Flash Attention 3 (?:not available|only supports)")


class Nanochat:
    """Reads nanochat's console."""

    format = LogFormat("nanochat", limits=("format-nanochat",))

    def read(self, text: str) -> list[Record]:
        if "tep " in text and "|" in text and (found := STEP.search(text)):
            return _step(int(found[1]), found[2], found[3])
        if "[GC rank" in text and (found := COLLECTED.search(text)):
            return [{"kind": "event", "name": "gc", "time_ms": number(found[1])}]
        if "Saved model" in text and (found := SAVED.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if "Total training time" in text and (found := TOTAL.search(text)):
            return [{"kind": "end", "train_ms": 60_000 * (number(found[1]) or 0.0)}]
        return _header(text)


def _step(step: int, last: str | None, rest: str) -> list[Record]:
    said: Record = {}
    for piece in rest.split("|"):
        key, _, value = piece.partition(":")
        key = key.strip()
        if not (found := VALUE.match(value)):
            continue
        if key == "Validation bpb":
            return [{"kind": "eval", "iter": step, "val_bpb": number(found[1])}]
        if key == "Validation loss":
            return [{"kind": "eval", "iter": step, "val_loss": number(found[1])}]
        if key == "CORE metric":
            return [{"kind": "event", "name": "core", "iter": step, "value": number(found[1])}]
        if (name := FIELDS.get(key)) and found[2] == UNITS.get(name, found[2]):
            said[name] = number(found[1])
    # Many trainers print a step and a loss. Only nanochat adds one of these two.
    if "loss" not in said or not {"lr_scale", "time_ms"} & set(said):
        return []
    if "mfu" in said and not said["mfu"]:
        said["mfu"] = None
    if last:
        said["max_iters"] = int(last)
    return [{"kind": "iter", "iter": step, **said}]


def _header(text: str) -> list[Record]:
    if "GPU: " in text and (found := GPU.search(text)):
        start: Record = {"kind": "start", "device": found[1]}
        peak = number(found[2])
        if peak and math.isfinite(peak):  # it is infinite if nanochat does not know the GPU
            start["peak_tflops"] = peak / 1e12
        return [start]
    if "Total batch size" in text and (found := BATCH.search(text)):
        config = {"gradient_accumulation_steps": int(found[2])}
        return [{"kind": "start", "tokens_per_iter": number(found[1]), "config": config}]
    if "FLOPs per token" in text and (found := FLOPS.search(text)):
        return [{"kind": "start", "flops_per_token": number(found[1])}]
    if "Peak memory usage" in text and (found := MEMORY.search(text)):
        return [{"kind": "start", "peak_memory_mb": number(found[1])}]
    if "Peak flops undefined" in text and "MFU will show as 0%" in text:
        return [{"kind": "event", "name": "unknown-peak", "detail": text}]
    if "Flash Attention 3" in text and "SDPA fallback" in text and SLOW.search(text):
        return [{"kind": "event", "name": "slow-attention", "detail": text}]
    return []
