"""nanoGPT, all versions, llama2.c, and forks that add fields.

    step 250: train loss 1.9639, val loss 2.0676
    saving checkpoint to out-shakespeare-char
    iter 250: loss 2.0307, time 90796.41ms, mfu 0.43%
    490 | loss 5.7543 | lr 4.900000e-05 | 8060.78ms | mfu 0.21%           (llama2.c)
    [train] iter 20: loss 8.7600 2906 ms/iter                             (forks)
    [eval] iter 500: train 4.2927 val 4.2780 lr 3.00e-04

`time` is the time between the ends of two iterations. At an evaluation, it includes the evaluation
and the checkpoint printed before it. `ms/iter` is a mean since the previous line: in the logs that
have it, the first line is slow, though the slow first iteration was long before. `mfu` is a moving
average over the printed iterations, relative to the 312 TFLOP/s of an A100; -100 % means not
measured yet. `loss` is that of the last micro-batch.
"""

import ast
import math
import re
from dataclasses import replace

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

A100_TFLOPS = 312.0  # nanoGPT's MFU divides by this peak on every device

ITER = re.compile(
    r"(?<![\w/-])iter\s+(\d{1,15})\s*:(?!\s*train\b)(?=.*?\b(?:loss|time)\b)(?!.*\btime:)(.*)"
)
LLAMA2C = re.compile(
    rf"(?:^|\s)(?P<iter>\d{{1,15}}) \| loss (?P<loss>{NUMBER}) \| lr (?P<lr>{NUMBER})"
    rf" \| (?P<time>{NUMBER}ms) \| mfu (?P<mfu>{NUMBER})%"
)
LOSS = re.compile(rf"(?<![\w ])\s*\bloss\s+({NUMBER})")
TIME = re.compile(rf"\btime\s+({NUMBER})\s*(ms|s)\b(?!/)")
DURATION = re.compile(rf"({NUMBER})(ms)")
PER_ITER = re.compile(rf"(?<![\w.,])({NUMBER})\s*(ms|s|sec)/iter\b")
MFU = re.compile(rf"\bmfu\s+({NUMBER})\s*%")
LR = re.compile(rf"\b(?:lr|learning rate)\s+({NUMBER})")
RATE = re.compile(
    rf"\b(?:tok|tokens)/s(?:ec)?\s+({NUMBER})|(?<![\w.,])({NUMBER})\s*(?:tok|tokens)/s"
)
STEP = re.compile(
    r"(?<![\w/-])(step|iter)\s+(\d{1,15})\s*:\s*train(?: loss)?(?P<rest>\b.*\bval(?: loss)?\b.*)"
)
VAL = re.compile(rf"\bval(?: loss)?\s+({NUMBER})")
TRAIN = re.compile(rf"^\s*({NUMBER})")
SAVING = re.compile(r"(?<![\w])saving checkpoint\b(?!\s*\{|\s+at iteration)")
# Prefixes that launchers and log collectors add to a line.
PREFIX = re.compile(
    r"^(?:\[rank\d+\]:|\d{1,4}:|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[-+]\d\d:?\d\d)?\]?|"
    r"(?:DEBUG|INFO|WARNING)(?::\w+)?:?|[\w./-]+\.(?:log|txt|out):|[\w.-]+\s*\||-|\*+)\s+"
)
OVERRIDE = re.compile(r"\bOverriding: (\w+) = (.+)$")
SETTING = re.compile(r"^(\w+)\s*=\s*([^=#]+?)\s*(?:#.*)?$")
HEADERS = [
    (re.compile(r"tokens per iteration will be: ([\d,]+)"), "tokens_per_iter"),
    (re.compile(r"number of parameters: ([\d.]+)M"), "parameters"),
    (re.compile(r"found vocab_size = (\d{1,12})"), "vocab_size"),
    (re.compile(r"defaulting to vocab_size of GPT-2 to (\d{1,12})"), "vocab_size"),
]
INIT = [
    (re.compile(r"Initializing a new model from scratch"), "scratch"),
    (re.compile(r"Resuming training from"), "resume"),
    (re.compile(r"Initializing from OpenAI GPT-2 weights"), "gpt2"),
]


class NanoGPT:
    """Reads nanoGPT's console."""

    format = LogFormat(
        "nanogpt",
        limits=("data-wait", "unprinted", "device", "split", "last-micro-batch"),
        time_holds_eval=True,
        prints_saves=True,
        averages_mfu=True,
        assumed_peak_tflops=A100_TFLOPS,
        has_nanogpt_settings=True,
        has_nanogpt_defaults=True,
        max_iters_is_last_iter=True,
        evaluates_random_batches=True,
        has_one_checkpoint=True,
        is_float32_on_mps=True,
    )

    def __init__(self) -> None:
        self._is_in_config = False  # inside a config file, which nanoGPT prints line by line

    def read(self, text: str) -> list[Record]:
        if found := ITER.search(text):
            return self._iteration(int(found[1]), found[2])
        if found := STEP.search(text):
            return self._evaluation(int(found[2]), found["rest"])
        if SAVING.search(text):
            return [{"kind": "checkpoint"}]
        if " | lr " in text and (found := LLAMA2C.search(text)):
            self.format = LLAMA2C_FORMAT
            time = DURATION.match(found["time"])
            record = _record(int(found["iter"]), found["loss"], time, found["mfu"])
            return [{**record, "lr": plain_number(found["lr"])}]
        text = unprefixed(text)
        if text.startswith("Overriding config with"):
            self._is_in_config = True
            return [{"kind": "start"}]
        if self._is_in_config and (found := SETTING.match(text)) and found[1] in SETTINGS:
            return setting_record(found[1], found[2])
        records = header(text)
        self._is_in_config &= not records or "config" in records[0]
        return records

    def _evaluation(self, iteration: int, rest: str) -> list[Record]:
        """An evaluation. In a post, people write `val loss...` and leave out the numbers."""
        train, val = TRAIN.search(rest), VAL.search(rest)
        if not val and "loss..." not in rest:
            return []
        return [
            {
                "kind": "eval",
                "iter": iteration,
                "train_loss": plain_number(train[1]) if train else None,
                "val_loss": plain_number(val[1]) if val else None,
            }
        ]

    def _iteration(self, iteration: int, rest: str) -> list[Record]:
        loss, time, mfu = LOSS.search(rest), TIME.search(rest), MFU.search(rest)
        mean = None if time else PER_ITER.search(rest)
        if not loss and not time and not mean:
            return []
        record = _record(
            iteration,
            loss=loss[1] if loss else None,
            time=time or mean,
            mfu=mfu[1] if mfu else None,
        )
        if mean:
            self.format = FORK_FORMAT
            record["is_mean"] = True
        if " lr " in rest and (found := LR.search(rest)):
            record["lr"] = plain_number(found[1])
        if "tok" in rest and (found := RATE.search(rest)):
            record["tok_s"] = number(found[1] or found[2])
        return [record]


LLAMA2C_FORMAT = replace(
    NanoGPT.format,
    name="llama2.c",
    has_nanogpt_defaults=False,
    evaluates_random_batches=False,
    evaluates_same_windows=True,
)
# Of an unknown fork, only what its lines show.
FORK_FORMAT = LogFormat("nanogpt", limits=("data-wait", "device", "split"), time_holds_eval=True)


def _record(
    iteration: int, loss: str | None, time: re.Match[str] | None, mfu: str | None
) -> Record:
    time_ms = plain_number(time[1]) if time else None
    if time and time_ms is not None and time[2] != "ms":
        time_ms *= 1000
    percent = plain_number(mfu)
    return {
        "kind": "iter",
        "iter": iteration,
        "loss": plain_number(loss),
        "time_ms": time_ms,
        "mfu": None if percent is None or percent < 0 else percent,
        **({"is_unmeasured": True} if percent is not None and percent < 0 else {}),
    }


def unprefixed(text: str) -> str:
    """
    >>> unprefixed("[rank0]: 2024-05-01 10:00:00 batch_size = 12")
    'batch_size = 12'
    """
    while found := PREFIX.match(text):
        text = text[found.end() :]
    return text


def header(text: str) -> list[Record]:
    """Lines that nanoGPT prints before the loop: settings, sizes, the source of the weights."""
    if found := OVERRIDE.search(text):
        return setting_record(found[1], found[2])
    for pattern, key in HEADERS:
        if found := pattern.search(text):
            value = number(found[1])
            if value is not None and key == "parameters":
                value *= 1e6
            return [{"kind": "start", key: value}]
    for pattern, how in INIT:
        if pattern.search(text):
            return [{"kind": "start", "init_from": how}]
    if "compiling the model..." in text:
        return [{"kind": "start", "config": {"compile": True}}]
    if found := re.search(r"using fused AdamW: (True|False)", text):
        return [{"kind": "start", "fused": found[1] == "True"}]
    if "num decayed parameter tensors" in text or "num non-decayed parameter" in text:
        return [{"kind": "start"}]
    if "using slow attention" in text:
        return [{"kind": "event", "name": "slow-attention", "detail": text}]
    return []


# Settings that a line of a printed config file may assign.
SETTINGS = set(
    [
        "out_dir",
        "eval_interval",
        "log_interval",
        "eval_iters",
        "eval_only",
        "always_save_checkpoint",
        "init_from",
        "wandb_log",
        "wandb_project",
        "wandb_run_name",
        "dataset",
        "gradient_accumulation_steps",
        "batch_size",
        "block_size",
        "n_layer",
        "n_head",
        "n_embd",
        "dropout",
        "bias",
        "learning_rate",
        "max_iters",
        "weight_decay",
        "beta1",
        "beta2",
        "grad_clip",
        "decay_lr",
        "warmup_iters",
        "lr_decay_iters",
        "min_lr",
        "backend",
        "device",
        "dtype",
        "compile",
        "seed",
        "vocab_size",
    ]
)


def setting_record(key: str, value: str) -> list[Record]:
    return [{"kind": "start", "config": {key: _value(value)}}]


def _value(text: str) -> object:
    """A literal, or a product or quotient of numbers as config files write them (`5 * 8`)."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    parts = re.split(r"([*/])", text.replace(" ", ""))
    numbers = [number(part) for part in parts[::2]]
    if not numbers or any(n is None or not math.isfinite(n) for n in numbers):
        return text.strip()
    result = numbers[0] or 0.0
    for sign, n in zip(parts[1::2], numbers[1:], strict=True):
        if sign == "/" and not n:
            return text.strip()
        result = result * (n or 0.0) if sign == "*" else result / (n or 1.0)
    if not math.isfinite(result):
        return text.strip()
    return int(result) if result == int(result) else result
