"""nanochat: all versions of base_train, mid_train and chat_sft; and build-nanogpt, its forerunner.

    step 00019/13920 (0.14%) | loss: 6.817907 | lrm: 1.00 | dt: 681.35ms | tok/sec: 769,480 | ...
    Step 10000 | Validation bpb: 1.946162

    validation loss: 3.9522                                                 (build-nanogpt)
    step   250 | loss: 3.966010 | lr 2.1e-04 | norm: 0.61 | dt: 417.83ms | tok/sec: 1254805.81
    250 val 3.9522                                                          (its log.txt)
    250 train 3.966010

`dt` is measured between two synchronize calls and includes neither evaluation nor checkpoint.
`total time` excludes those and the first ten steps, so it is not a wall-clock time. `loss` is
smoothed. `lrm` is a factor on the learning rate. An mfu of 0.00 means that the GPU's peak is
unknown.

In build-nanogpt, `dt` is the time of a whole iteration. Where it evaluates, it includes the
evaluation, HellaSwag, a sample and a checkpoint. They are printed before the step, without its
number.
"""

import math
import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

BUILD = re.compile(
    rf"(?<![\w/-])step\s+(\d{{1,15}}) \| loss: ({NUMBER}) \| lr:? ({NUMBER}) \| norm: ({NUMBER})"
    rf" \| dt: ({NUMBER})ms \| tok/sec: ({NUMBER})"
)
BUILD_VAL = re.compile(rf"^(?:\[rank0\]:\s*)?validation loss: ({NUMBER})$")
BUILD_FILE = re.compile(rf"^(\d{{1,15}}) (train|val|hella) ({NUMBER})$")
STEP = re.compile(r"(?<![\w/-])[Ss]tep\s+(\d{1,15})(?:/(\d{1,15}))?(\s+\([\d.]+%\))?\s*\|(.*)")
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
LEAST_MINUTES = 0.5  # two decimals of a minute are too coarse for less
GPU = re.compile(rf"\bGPU: (.+?) \| Peak FLOPS \(\w+\): ({NUMBER})")
BATCH = re.compile(r"Total batch size ([\d,]+) => gradient accumulation steps: (\d{1,15})")
FLOPS = re.compile(rf"Estimated FLOPs per token: ({NUMBER})")
MEMORY = re.compile(rf"Peak memory usage: ({NUMBER})MiB")
SAVED = re.compile(r"Saved model parameters to: .*?model_(\d{1,15})\.pt")
TOTAL = re.compile(rf"Total training time: ({NUMBER})m\b")
COLLECTED = re.compile(rf"\[GC rank\d+\] gen\d: ({NUMBER})ms")


class Nanochat:
    """Reads nanochat's console."""

    format = LogFormat(
        "nanochat",
        limits=("format-nanochat",),
        smooths_loss=True,
        elapsed_name="total time",
        elapsed_excludes=("eval", "checkpoint", "warmup"),
    )

    def __init__(self) -> None:
        self._val_loss: float | None = None  # of an evaluation whose step follows

    def read(self, text: str) -> list[Record]:
        if " | norm: " in text and (found := BUILD.search(text)):
            return self._build(found)
        if "validation loss: " in text and (found := BUILD_VAL.match(text)):
            self._val_loss = plain_number(found[1])
            return [{"kind": "start"}]
        if text[:1].isdigit() and (found := BUILD_FILE.match(text)):
            self.format = BUILD_FORMAT
            return _file_line(int(found[1]), found[2], plain_number(found[3]))
        if "tep " in text and "|" in text and (found := STEP.search(text)):
            return _step(int(found[1]), found[2], bool(found[3]), found[4])
        if "[GC rank" in text and (found := COLLECTED.search(text)):
            return [{"kind": "event", "name": "gc", "time_ms": number(found[1])}]
        if "Saved model" in text and (found := SAVED.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if "Total training time" in text and (found := TOTAL.search(text)):
            return [{"kind": "end", "train_ms": 60_000 * (number(found[1]) or 0.0)}]
        return _header(text)

    def _build(self, found: re.Match[str]) -> list[Record]:
        self.format = BUILD_FORMAT
        step, val_loss = int(found[1]), self._val_loss
        self._val_loss = None
        record: Record = {"kind": "iter", "iter": step, "loss": plain_number(found[2])}
        record |= {"lr": number(found[3]), "grad_norm": number(found[4])}
        record |= {"time_ms": plain_number(found[5]), "tok_s": number(found[6])}
        if val_loss is None:
            return [record]
        return [{"kind": "eval", "iter": step, "val_loss": val_loss}, record]


# Its times are like nanoGPT's. Its other settings and defaults are not printed.
BUILD_FORMAT = LogFormat("build-nanogpt", limits=("device", "split"), time_holds_eval=True)


def _file_line(step: int, what: str, value: float | None) -> list[Record]:
    if what == "train":
        return [{"kind": "iter", "iter": step, "loss": value}]
    if what == "val":
        return [{"kind": "eval", "iter": step, "val_loss": value}]
    return [{"kind": "event", "name": "hellaswag", "iter": step, "value": value}]


def _step(step: int, last: str | None, has_percent: bool, rest: str) -> list[Record]:
    said: Record = {}
    for piece in rest.split("|"):
        key, _, value = piece.partition(":")
        key = key.strip()
        if not (found := VALUE.match(value)):
            continue
        if key == "Validation bpb":
            return [{"kind": "eval", "iter": step, "val_bpb": plain_number(found[1])}]
        if key == "Validation loss":
            return [{"kind": "eval", "iter": step, "val_loss": plain_number(found[1])}]
        if key == "CORE metric":
            return [{"kind": "event", "name": "core", "iter": step, "value": number(found[1])}]
        if (name := FIELDS.get(key)) and found[2] == UNITS.get(name, found[2]):
            is_plain = name in ("loss", "time_ms", "total_min")
            said[name] = plain_number(found[1]) if is_plain else number(found[1])
    # Many trainers print a step, a loss and `dt`. Only nanochat adds a percentage or `lrm`.
    if "loss" not in said or not ("lr_scale" in said or (has_percent and "time_ms" in said)):
        return []
    if "mfu" in said and not said["mfu"]:
        said["mfu"] = None
    if (said.get("total_min") or 0.0) >= LEAST_MINUTES:
        said["elapsed_s"] = 60 * said["total_min"]
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
    if "Flash Attention 3" in text and "SDPA fallback" in text:
        # Not slow attention: SDPA does not write out the attention matrix either.
        return [{"kind": "start", "attention": "PyTorch SDPA"}]
    return []
