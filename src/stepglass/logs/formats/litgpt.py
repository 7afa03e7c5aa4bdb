"""litgpt, all versions, including lit-gpt and TinyLlama.

    Epoch 34 | iter 3050700 step 610140 | loss train: 2.846, val: 2.861 | iter time: 112.20 ms ...
    iter 4800: val loss 1.7258, val time: 3778.02 ms

`iter` counts micro-batches and `step` counts updates. `(step)` marks iterations with an update,
which take longer than the others. The time starts after the batch is loaded, so it does not include
the wait for data. `val` in a train line repeats the last evaluation, so a new value is a new one.
The final Tok/sec of pretraining is wrong: it was divided by the wrong time.
"""

import re
from dataclasses import replace

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

ITER = re.compile(r"(?<![\w/-])iter\s+(\d{1,15})(?:/(\d{1,15}))?(?=[\s:|])(.*)")
TIME = re.compile(rf"(?<!val )(?<!remaining )\btime:\s*({NUMBER})\s*ms\b")
LOSS = re.compile(rf"\bloss(?: train(?: \(\w+\))?:)?\s+({NUMBER})")
STEP = re.compile(r"\bstep\s+(\d{1,15})", re.IGNORECASE)
UPDATE = re.compile(r"\((?:opt(?:imizer)?\.)?step\)")
REPEAT = re.compile(rf",\s*val(?: \([\w ]+\))?:\s*({NUMBER})")
VAL = re.compile(
    r"(?<![\w/-])(?:iter|step)\s+(\d{1,15}):\s*"
    rf"val loss:?\s+({NUMBER})(?:,\s*val time:\s*({NUMBER})\s*ms)?"
)
SAME = 0.0011  # an iteration repeats the evaluation's loss with three decimals
FINAL = re.compile(rf"Final evaluation \| val loss: ({NUMBER})")
SAVING = re.compile(r"Saving checkpoint to ['\"](?:.*\bstep-(\d{1,15}))?")
TOTALS = [
    (re.compile(rf"\|\s*- Tok/sec\s*:\s*({NUMBER})\s*tok/s"), "stated_tok_s", 1),
    (re.compile(rf"\|\s*- Training Time\s*:\s*({NUMBER})\s*s\b"), "train_ms", 1000),
    (re.compile(r"\|\s*- Total tokens\s*:\s*([\d,]+)"), "tokens", 1),
]
TRAINED = re.compile(rf"(?<!\w )Training time: ({NUMBER})s$")
PARAMETERS = re.compile(r"\bTotal parameters: ([\d,]+)$")


class LitGPT:
    """Reads litgpt's console, pretraining and finetuning."""

    format = LogFormat("litgpt", limits=("format-litgpt",))

    def __init__(self) -> None:
        self._is_litgpt = False  # True after a line that only litgpt prints
        self._val_loss: float | None = None  # of the latest evaluation
        self._was_seen = False  # an iteration

    def read(self, text: str) -> list[Record]:
        if "time:" in text:
            return self._timed(text)
        if "Final eval" in text and (found := FINAL.search(text)):
            return [{"kind": "eval", "val_loss": plain_number(found[1]), "final": True}]
        if self._is_litgpt and ": val loss" in text and (found := VAL.search(text)):
            return self._evaluation(found)
        if "Saving checkpoint" in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", **({"step": int(found[1])} if found[1] else {})}]
        if "| - " in text:
            for pattern, key, scale in TOTALS:
                if found := pattern.search(text):
                    return [{"kind": "end", key: scale * (number(found[1]) or 0.0)}]
        if "Time to instantiate model: " in text:
            self._is_litgpt = True
        # Other trainers print this line too, so it counts only after a line of litgpt.
        if self._is_litgpt and "Total parameters" in text and (found := PARAMETERS.search(text)):
            return [{"kind": "start", "parameters": number(found[1])}]
        return []

    def _timed(self, text: str) -> list[Record]:
        if "val time:" in text and (found := VAL.search(text)):
            self._is_litgpt = True
            return self._evaluation(found)
        if "iter " in text and (found := ITER.search(text)):
            return self._iteration(int(found[1]), found[2], found[3])
        # Other trainers print this line too.
        if self._is_litgpt and (found := TRAINED.search(text)):
            return [{"kind": "end", "train_ms": 1000 * (number(found[1]) or 0.0)}]
        return []

    def _evaluation(self, found: re.Match[str]) -> list[Record]:
        self._val_loss = plain_number(found[2])
        record: Record = {"kind": "eval", "iter": int(found[1]), "val_loss": self._val_loss}
        return [{**record, "time_ms": plain_number(found[3])}]

    def _iteration(self, iteration: int, last: str | None, rest: str) -> list[Record]:
        if not (time := TIME.search(rest)):
            return []
        self._is_litgpt = True
        loss = LOSS.search(rest)
        record: Record = {"kind": "iter", "iter": iteration}
        record["loss"] = plain_number(loss[1]) if loss else None
        record["time_ms"] = plain_number(time[1])
        if step := STEP.search(rest):
            record["step"] = int(step[1])
            if record["step"] != iteration:  # an update has several iterations
                self.format = replace(self.format, counts="micro-batches")
        if UPDATE.search(rest):
            record["is_update"] = True
        if last:
            record["max_iters"] = int(last)
        val_loss = plain_number(repeat[1]) if (repeat := REPEAT.search(rest)) else None
        before = self._val_loss
        if val_loss is None or (before is not None and abs(val_loss - before) < SAME):
            self._was_seen = True
            return [record]
        # An evaluation whose own line is missing. It ended before this iteration.
        self._val_loss = val_loss
        was_seen, self._was_seen = self._was_seen, True
        where = iteration if was_seen else None  # this log begins after it
        return [{"kind": "eval", "iter": where, "val_loss": val_loss}, record]
