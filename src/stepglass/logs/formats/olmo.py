"""OLMo and OLMo-core: a heading for each logged step, followed by one metric per line.

    [step=100/739328,epoch=0]
        optim/total_grad_norm=0.4312
        train/CrossEntropyLoss=6.104
        throughput/device/tokens_per_second=9,812
        throughput/device/batches_per_second=0.2995
        eval/c4_en-validation/CrossEntropyLoss=3.2            (below an evaluator's name)
    Finished lm evals in 12.3 seconds. Metrics:                (OLMo-core)
        c4_en-validation/CE loss=3.1

Rates are those of one device. OLMo's are means over the last batches, without evaluation and
checkpoint; OLMo-core's are of one step, with them. MFU of an unknown GPU is relative to an A100.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

A100_TFLOPS = 312.0  # the peak that OLMo-core assumes for an unknown GPU

HEADING = re.compile(
    r"\[step=(\d{1,15})/(?:(\d{1,15})|\?{1,9})(?:,epoch=\d{1,9})?(?:,eta=[^\]]{1,60})?\]$"
)
METRIC = re.compile(rf"(?:^|\s)([A-Za-z][\w/. ()%,:*-]{{1,200}}?)=({NUMBER})([TBPE]?)$")
FINISHED = re.compile(rf"Finished ([\w ./-]{{1,80}}) evals in ({NUMBER}) seconds\. Metrics:$")
SAVED = re.compile(r"[Cc]heckpoint saved to '?\S*?step(\d{1,15})(?:-unsharded)?/?'?$")
NAMES = {
    "train/CrossEntropyLoss": ("loss", 1.0),
    "train/CE loss": ("loss", 1.0),
    "optim/total_grad_norm": ("grad_norm", 1.0),
    "optim/total grad norm": ("grad_norm", 1.0),
    "optim/LR (group 0)": ("lr", 1.0),
    "optim/step skipped": ("num_skipped", 1.0),
    "throughput/device/tokens_per_second": ("tok_s", 1.0),
    "throughput/device/TPS": ("tok_s", 1.0),
    "throughput/device/batches_per_second": ("rate_per_s", 1.0),
    "throughput/device/BPS": ("rate_per_s", 1.0),
    "throughput/device/data loading (s)": ("data_ms", 1000.0),
    "throughput/device/MFU": ("mfu", 1.0),
}
# An evaluation of OLMo names its set in every metric, one of OLMo-core only below its heading.
EVAL_LOSS = re.compile(r"eval/(.+)/CrossEntropyLoss$")
CORE_EVAL_LOSS = re.compile(r"(?:eval/)?(.+)/CE loss$")


class OLMo:
    """Reads the console of OLMo and OLMo-core. A step's block ends with the first other line."""

    format = LogFormat("olmo", limits=("format-olmo",), fallback_peak_tflops=A100_TFLOPS)

    def __init__(self) -> None:
        self.line = 0  # of the log: a block is about its first line
        self._block: Record | None = None
        self._step: int | None = None
        self._eval_ms: float | None = None  # of the evaluation that was just reported
        self._is_in_evals = False
        self._late: list[Record] = []  # the last block of a run, until a line without a timestamp
        self.has_taken = False  # the last line belongs to a block

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "[step=" in text and (found := HEADING.search(text)):
            self.has_taken = True
            return self._begin(int(found[1]), int(found[2]) if found[2] else None)
        if "=" in text and (found := METRIC.search(text)):
            late, self._late = self._late, []
            return late + self._metric(found[1].strip(), number(found[2]), found[3])
        done = self.flush()
        if "evals in " in text and (found := FINISHED.search(text)):
            self._is_in_evals = self.has_taken = True
            self._eval_ms = 1000 * (number(found[2]) or 0.0)
        else:
            self._is_in_evals = False
        if "heckpoint saved" in text and (found := SAVED.search(text)):
            done.append({"kind": "checkpoint", "iter": int(found[1])})
        return done

    def flush(self) -> list[Record]:
        """The finished block. Other ranks print headings without metrics."""
        block, self._block = self._block, None
        late, self._late = self._late, []
        return late + ([block] if block is not None and "loss" in block else [])

    def _begin(self, step: int, last: int | None) -> list[Record]:
        if self._block is not None and self._block["iter"] == step:
            return []  # another rank's heading
        done = self.flush()
        if self._step is not None and step < self._step:
            done, self._late = [], done  # a restart, whose timestamp is not that of this block
        self._is_in_evals = False
        self._step = step
        self._block = {"kind": "iter", "iter": step, "time_ms": None, "line": self.line}
        if last is not None:
            self._block["max_iters"] = last
        return done

    def _metric(self, key: str, value: float | None, suffix: str) -> list[Record]:
        if found := EVAL_LOSS.search(key) or (self._is_in_evals and CORE_EVAL_LOSS.search(key)):
            done = self.flush()
            time_ms, self._eval_ms = self._eval_ms, None
            record: Record = {"kind": "eval", "iter": self._step, "set": found[1]}
            return [*done, {**record, "val_loss": value, "time_ms": time_ms}]
        if self._block is not None and "/" in key:
            self.has_taken = True
            name, factor = NAMES.get(key, ("", 1.0))
            if name and value is not None and not suffix:
                self._block[name] = value * factor
            if key == "throughput/device/batches_per_second":
                self._block["is_mean"] = True
        return []
