"""Megatron-LM and its forks.

    iteration  122/ 250000 | elapsed time per iteration (ms): 86545.2 | lm loss: 2.504220E+00 | ...
    validation loss at iteration 1000 | lm loss value: 2.724416E+00 | lm loss PPL: 1.524750E+01 |

The time is the mean over the iterations since the previous line. In versions that print no date, a
validation or a checkpoint in between is part of it. The counters of skipped and nan iterations
cover the same iterations. An iteration is skipped if its gradients overflow. If all of them were,
the loss is missing from the line.
"""

import re
from dataclasses import replace

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

ITERATION = re.compile(
    r"(?P<date>\d\d:\d\d\] )?(?<![\w/-])iteration\s+(\d{1,15})/\s*(\d{1,15})\s*\|(.*)"
)
# Numbers are printed with `E`, which writes NAN. Primus adds the mean so far: `410.2/408.9`.
VALUE = re.compile(rf"\s*({NUMBER})(?:/{NUMBER})?\s*$", re.IGNORECASE)
FIELDS = {
    "elapsed time per iteration (ms)": "time_ms",
    "elapsed time per iteration (s)": "time_ms",
    "lm loss": "loss",
    "lm_loss": "loss",
    "lm-loss": "loss",
    "loss": "loss",
    "learning rate": "lr",
    "grad norm": "grad_norm",
    "loss scale": "loss_scale",
    "global batch size": "global_batch_size",
    "consumed samples": "samples",
    "consumed tokens": "tokens",
    "throughput per GPU (TFLOP/s/GPU)": "tflops",
    "TFLOPs": "tflops",
    "number of skipped iterations": "num_skipped",
    "number of nan iterations": "num_nan",
}
VALIDATION = re.compile(
    r"validation loss at iteration\s+(\d{1,15})\b(?!.*\btest set)"
    rf".*?\|\s*(?:lm[ _-])?loss value:\s*({NUMBER})",
    re.IGNORECASE,
)
SAVING = re.compile(
    r"(?:saving checkpoint at|successfully saved checkpoint from) iteration\s+(\d{1,15})\s+to\b"
)


NEW = LogFormat("megatron", limits=("format-megatron",))
OLD = replace(NEW, limits=("next-line",), times_everything=True)


class Megatron:
    """Reads the console of Megatron-LM and of forks that print the same lines."""

    format = NEW

    def __init__(self) -> None:
        self._saved = -1

    def read(self, text: str) -> list[Record]:
        if "iteration" not in text:
            return []
        if "elapsed time per iteration" in text and (found := ITERATION.search(text)):
            self.format = NEW if found["date"] else OLD
            return self._iteration(int(found[2]), int(found[3]), found[4])
        if "validation loss" in text and (found := VALIDATION.search(text)):
            return [{"kind": "eval", "iter": int(found[1]), "val_loss": plain_number(found[2])}]
        if "checkpoint" in text and (found := SAVING.search(text)):
            # A second line with the same iteration reports that the save has finished. With
            # background saves, it comes some lines later.
            if int(found[1]) == self._saved:
                return []
            self._saved = int(found[1])
            return [{"kind": "checkpoint", "iter": self._saved}]
        return []

    def _iteration(self, iteration: int, last: int, rest: str) -> list[Record]:
        record: Record = {"kind": "iter", "iter": iteration, "loss": None, "time_ms": None}
        record["is_mean"] = True
        for piece in rest.split("|"):
            key, _, value = piece.rpartition(":")
            name = FIELDS.get(key.strip())
            if name and (found := VALUE.match(value)):
                is_plain = name in ("loss", "time_ms")
                record[name] = plain_number(found[1]) if is_plain else number(found[1])
                if key.strip().endswith("(s)"):
                    record[name] = 1000 * (plain_number(found[1]) or 0.0)
        if record["time_ms"] is None:
            return []
        skipped, nan = record.get("num_skipped"), record.get("num_nan")
        if record["loss"] is None and "loss_scale" not in record and skipped is None:
            return []  # the line is cut off before the place of the loss
        if record.get("grad_norm") == 0:
            del record["grad_norm"]  # printed with three decimals, so not exactly 0; or not known
        if nan is not None:  # an iteration with a nan is skipped too, and may be counted as both
            record["num_skipped"] = max(skipped or 0.0, nan)
        if iteration <= self._saved:
            self._saved = -1  # after a restart, the same iteration may be saved again
        return [{**record, "max_iters": last}]
