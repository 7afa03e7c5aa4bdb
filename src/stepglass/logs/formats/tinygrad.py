"""tinygrad's examples.

    8 2.51 s run, 9.1250 loss, 0.000000000400 LR, 610.20 GB used, 310400.10 GFLOPS
    8  305.12 ms run,  3.10 ms python,  0.52 ms fetch data,  301.50 ms AMD,  6.91 loss, ..., GFLOPS
    8 2.510 s step, 2.3 s gbs, 0.2 s optim, 0.001 s data, 9.1250 loss, ..., GFLOPS, 21.40% MFU

The first steps hold the capture of the kernels. Some examples start again from 0 in every epoch,
after the evaluation.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LINE = re.compile(
    rf"(?:^|\s)(\d{{1,9}})\s+({NUMBER}) (ms|s) (?:run|step), (.{{1,1000}} GFLOPS\b.{{0,100}})"
)
PIECE = re.compile(rf"\s*({NUMBER})\s+([A-Za-z_][\w ]{{0,40}})$")
NAMES = {"loss": "loss", "LR": "lr", "grad_norm": "grad_norm", "ms fetch data": "data_ms"}
EVALS = (
    re.compile(rf"^eval\s+\d+/\d+\s+({NUMBER})%,\s+(?P<loss>{NUMBER}) val_loss STEP=(?P<step>\d+)"),
    re.compile(rf"^eval (?:log perplexity|loss): (?P<loss>{NUMBER})(?=,|\s|$)"),
)


class Tinygrad:
    """Reads the console of tinygrad's training examples."""

    format = LogFormat("tinygrad", loss_is_nats=False)

    def __init__(self) -> None:
        self._last = -1  # step of the previous line
        self._offset = 0  # steps of the epochs before this one
        self._has_evaluated = False  # since the previous line

    def read(self, text: str) -> list[Record]:
        if "GFLOPS" in text and text[0] != "#" and (found := LINE.search(text)):
            return self._step(found)
        if text.startswith("eval "):
            for pattern in EVALS:
                if found := pattern.search(text):
                    self._has_evaluated = True
                    step = found.groupdict().get("step")
                    iteration = int(step) if step else None
                    return [{"kind": "eval", "iter": iteration, "val_loss": number(found["loss"])}]
        return []

    def _step(self, found: re.Match[str]) -> list[Record]:
        step, time = int(found[1]), number(found[2])
        said: Record = {}
        for piece in found[4].split(","):
            if (pair := PIECE.match(piece)) and pair[2] in NAMES:
                said[NAMES[pair[2]]] = number(pair[1])
        if "loss" not in said or time is None:
            return []
        if self._has_evaluated and step < self._last:
            self._offset += self._last + 1
        self._last, self._has_evaluated = step, False
        time_ms = time if found[3] == "ms" else 1000 * time
        number_of = {"iter": step, "global_iter": self._offset + step}
        return [{"kind": "iter", **number_of, "time_ms": time_ms, **said}]
