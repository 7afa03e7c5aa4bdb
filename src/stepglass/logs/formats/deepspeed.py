"""DeepSpeed: the lines of its engines, as diffusion-pipe and many scripts print them.

    [Rank 0] step=10, skipped=3, lr=[0.0001], mom=[(0.9, 0.999)]
    steps: 10 loss: 0.2107 iter time (s): 1.283 samples/sec: 12.470
    [Rank 0] Loss: 10.8101
    [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768

Only the pipeline engine prints the second line: loss of the step, and the mean time of a step since
the previous line, without evaluation and checkpoint. Some scripts print a loss without a step right
after a progress line. `skipped` counts from the start.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

PROGRESS = re.compile(
    r"\[Rank -?\d{1,6}\] step=(\d{1,15}), skipped=(\d{1,15}), lr=\[([^\],]{0,40})[\],]"
)
PIPELINE = re.compile(
    rf"(?<![\w/-])steps?:\s*(\d{{1,15}})(?:\s*/\s*(\d{{1,15}}))?\s+loss:\s*({NUMBER})\s.{{0,400}}?"
    rf"iter time \(s\):\s*({NUMBER})\s+samples/sec:\s*({NUMBER})"
)
SPEED = re.compile(r"(?<!\w)global_step=\d+, RunningAvgSamplesPerSec=\d")
SKIPPED = re.compile(
    r"\[deep(?:speed|scale)\] (?:OVERFLOW! |fp16 dynamic loss scale overflow! )"
    r"(?:Rank \d+ )?Skipping step\.(?:$| Attempted loss scale: \d)"
)
SAVING = re.compile(r"Saving model checkpoint: \S*?global_step(\d{1,15})\b")
LOSS_ALONE = re.compile(
    rf"(?:^|\[Rank \d{{1,6}}\] )(?:train(?:ing)? )?loss\s?[:=]\s?({NUMBER})$", re.IGNORECASE
)
OTHER_LOSS = re.compile(r"(?<!\w)loss['\"]?\s*[:=]\s*['\"]?-?\d")
LONGEST_DETAIL = 500
ENOUGH = 2  # progress lines after which nothing that says more is expected


def engine_records(text: str) -> list[Record]:
    """What DeepSpeed's engine says in the log of any trainer: skipped updates and checkpoints."""
    if "kipping step" in text and SKIPPED.search(text):
        return [{"kind": "event", "name": "skipped-update", "detail": text[:LONGEST_DETAIL]}]
    if "Saving model checkpoint" in text and (found := SAVING.search(text)):
        return [{"kind": "checkpoint", "iter": int(found[1])}]
    return []


class DeepSpeed:
    """Reads DeepSpeed's console.

    Its progress lines also stand in the logs of trainers that print a loss of their own, which says
    more. So they count as iterations only where no loss is printed.
    """

    format = LogFormat("deepspeed", limits=("format-deepspeed",), loss_is_nats=False)

    def __init__(self) -> None:
        self._step = -1  # of the latest progress line
        self._is_open = False  # it has no record yet
        self._lr: float | None = None
        self._num_progress = 0  # progress lines so far
        self._skipped: int | None = None  # since the start, as printed
        self._new_skipped: int | None = None  # since the previous iteration that was read
        self._num_notices = 0  # of skipped updates, since the previous iteration
        self._has_losses = False  # other lines have the losses of these steps
        self._has_other_loss = False
        self.has_taken = False  # the last line was understood, although it has no record

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "iter time (s):" in text and (found := PIPELINE.search(text)):
            return [self._pipeline_step(found)]
        if ", skipped=" in text and (found := PROGRESS.search(text)):
            self.has_taken = True
            return self._progress(int(found[1]), int(found[2]), number(found[3]))
        if records := engine_records(text):
            self._num_notices += records[0]["kind"] == "event"
            return records
        if "RunningAvgSamplesPerSec" in text:
            self.has_taken = bool(SPEED.search(text))
        elif self._is_open and (found := LOSS_ALONE.search(text)):
            return [self._step_record(number(found[1]))]
        elif "loss" in text and OTHER_LOSS.search(text):
            self._has_other_loss = True
        return []

    def _pipeline_step(self, found: re.Match[str]) -> Record:
        self._has_losses, self._is_open = True, False
        time_s = number(found[4])
        record: Record = {
            "kind": "iter",
            "iter": int(found[1]),
            "loss": number(found[3]),
            "time_ms": None if time_s is None else 1000 * time_s,
            "is_mean": True,
            "samples_per_s": number(found[5]),
        }
        if found[2]:
            record["max_iters"] = int(found[2])
        if self._step == record["iter"]:  # its progress line stands before it
            record["lr"] = self._lr
        return record | {"num_skipped": self._take_skipped(self._step == record["iter"])}

    def _progress(self, step: int, skipped: int, lr: float | None) -> list[Record]:
        if step == 0:
            return []  # printed when the engine is made
        self._num_progress += 1
        # After a restart, the count goes on from a checkpoint.
        goes_on = self._skipped is not None and step > self._step and skipped >= self._skipped
        more = skipped - (self._skipped or 0)
        self._new_skipped = (self._new_skipped or 0) + more if goes_on else None
        self._step, self._lr, self._skipped = step, lr, skipped
        self._is_open = not self._has_other_loss
        if self._num_progress < ENOUGH or self._has_losses or self._has_other_loss:
            return []
        return [self._step_record(None)]

    def _step_record(self, loss: float | None) -> Record:
        self._is_open = False
        self._has_losses |= loss is not None
        record = {"kind": "iter", "iter": self._step, "loss": loss, "time_ms": None, "lr": self._lr}
        return record | {"num_skipped": self._take_skipped(True)}

    def _take_skipped(self, has_count: bool) -> int | None:
        notices, self._num_notices = self._num_notices, 0
        counted = self._new_skipped if has_count else None
        if has_count:
            self._new_skipped = 0
        return counted if counted is not None else notices or None
