"""char-rnn (Lua).

    1209/9500 (epoch 6.363), train_loss = 1.5225, grad/param norm = 2.6e-02, time/batch = 0.1708s
    saving checkpoint to cv/lm_lstm_epoch6.36_1.4012.t7

`time/batch` is one step, without evaluation. The norm is the gradient norm divided by the parameter
norm. The validation loss appears only in the name of a checkpoint.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, field, number, plain_number

LINE = re.compile(
    rf"(?<![\w/.])(\d{{1,12}})/(\d{{1,12}}) \(epoch ({NUMBER})\),"
    rf".{{0,200}}?\btrain_loss = ({NUMBER})"
)
SAVING = re.compile(rf"\bsaving checkpoint to \S*_epoch({NUMBER})_({NUMBER})\.t7\b")


class CharRNN:
    """Reads the console of char-rnn's train.lua."""

    format = LogFormat("char-rnn", limits=("format-char-rnn",))

    def __init__(self) -> None:
        self._iter: int | None = None

    def read(self, text: str) -> list[Record]:
        if "train_loss = " in text and (found := LINE.search(text)):
            self._iter = int(found[1])
            time_s = field(text, "time/batch", "s")
            return [
                {
                    "kind": "iter",
                    "iter": self._iter,
                    "max_iters": int(found[2]),
                    "epoch": number(found[3]),
                    "loss": plain_number(found[4]),
                    "time_ms": None if time_s is None else 1000 * time_s,
                    "grad_param_norm": field(text, "grad/param norm"),
                }
            ]
        if ".t7" in text and (found := SAVING.search(text)):
            return [
                {"kind": "eval", "iter": self._iter, "val_loss": plain_number(found[2])},
                {"kind": "checkpoint", "iter": self._iter},
            ]
        return []
