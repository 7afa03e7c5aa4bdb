"""llm.c: all versions of the C, CUDA and PyTorch trainers, and main.log.

    step   61/74 | loss 3.208939 (+nanz)| norm 1.4800 (+nanz)| lr 3.00e-04 | 44.57 ms | ...
    step 0: train loss 5.356189 (took 1452.121000 ms)
    s:1 trl:10.9598 lr:0.000002 norm:15.24

The time is that of the step alone, without evaluation, sampling and checkpoint. A z-score of nan
means that there were too few steps. An MFU of -100 % means that the GPU's peak is unknown. main.log
has train losses (trl), validation losses (tel) and HellaSwag accuracy (eval), but no times.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

# The part after the loss excludes litgpt's `step 220: loss 1.5947, iter time: ...`.
STEP = re.compile(
    rf"(?<![\w/-])step\s+(\d{{1,15}})(?:/(\d{{1,15}}))?\s*[:|]\s*(?:train )?loss\s+({NUMBER})"
    r"(?=\s*[(|]|\s+norm)(.*)"
)
TIME = re.compile(rf"(?<![\d.,])({NUMBER})\s*ms\b")
RATE = re.compile(rf"(?<![\d.,])({NUMBER})\s*tok/s")
MFU = re.compile(rf"(?<![\d.,])({NUMBER})%\s+(?:\w+\s+)*MFU")
NORM = re.compile(rf"\bnorm\s+({NUMBER})")
LR = re.compile(rf"\blr\s+({NUMBER})")
MAIN = re.compile(r"(?<![\w/-])s:(\d{1,15})\s+((?:trl|tel|eval):.*)")
PAIR = re.compile(rf"(\w+):({NUMBER})")
VALUE = re.compile(rf"\s*({NUMBER})")
FOREIGN = re.compile(r"\b(?:train|loss|iter|iteration|step|epoch)\b", re.IGNORECASE)
TABLE = re.compile(r"\|\s*(peak TFlops|device|num_parameters|total batch size)\s*\|\s*(.+?)\s*\|")
SKIPPED = re.compile(rf"skipping update due to (\w+ z-score of {NUMBER})")
HELLASWAG = re.compile(rf"HellaSwag: \d+/\d+ = ({NUMBER})")
THROTTLE = re.compile(r"\bfan:.*\bMHz\b.*\|\s*((?!no )\w+ cap)\b")
CHECKPOINT = re.compile(r"Writing checkpoint at step (\d{1,15})")
MEAN = re.compile(rf"(?:total average iteration time: |\bfinal \d+ iters avg: )({NUMBER})\s*ms\b")
MEMORY = re.compile(r"peak memory consumption: (\d{1,15}) MiB")
TABLE_KEYS = {"num_parameters": "parameters", "total batch size": "tokens_per_iter"}


class LlmC:
    """Reads llm.c's console and its main.log."""

    format = LogFormat("llm.c", limits=("format-llm-c",))

    def __init__(self) -> None:
        self._iter: int | None = None

    def read(self, text: str) -> list[Record]:
        if "step " in text and " ms" in text and (found := STEP.search(text)):
            return self._iteration(found)
        if "l:" in text and "s:" in text and (found := MAIN.search(text)):
            return self._main(int(found[1]), dict(PAIR.findall(found[2])))
        if "val loss " in text:
            return self._validation(text)
        if "HellaSwag: " in text and (found := HELLASWAG.search(text)):
            return [self._event("hellaswag", value=number(found[1]))]
        if "skipping update" in text and (found := SKIPPED.search(text)):
            return [self._event("skipped-update", detail=found[1])]
        if " cap" in text and (found := THROTTLE.search(text)):
            return [self._event("throttle", detail=found[1])]
        if "Writing checkpoint" in text and (found := CHECKPOINT.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if text[-1:] == "|" and (found := TABLE.search(text)):
            return _table(found[1], found[2])
        if "ms" in text and (found := MEAN.search(text)):
            return [{"kind": "end", "mean_time_ms": number(found[1])}]
        # modded-nanogpt prints this line too, so it counts only after a step of llm.c.
        if self._iter is not None and "peak memory" in text and (found := MEMORY.search(text)):
            return [{"kind": "start", "peak_memory_mb": number(found[1])}]
        return []

    def _iteration(self, found: re.Match[str]) -> list[Record]:
        rest = found[4]
        if not (time := TIME.search(rest)):
            return []
        self._iter = int(found[1])
        record: Record = {"kind": "iter", "iter": self._iter, "loss": plain_number(found[3])}
        record["time_ms"] = plain_number(time[1])
        for key, pattern in (("tok_s", RATE), ("grad_norm", NORM), ("lr", LR), ("mfu", MFU)):
            if said := pattern.search(rest):
                record[key] = number(said[1])
        if "mfu" in record and not record["mfu"] >= 0:  # `not >=` also drops nan
            record["mfu"] = None
        if found[2]:
            record["max_iters"] = int(found[2])
        return [record]

    def _main(self, step: int, said: dict[str, str]) -> list[Record]:
        records: list[Record] = []
        self._iter = step
        if "trl" in said:
            record: Record = {"kind": "iter", "iter": step, "loss": plain_number(said["trl"])}
            for key, name in (("lr", "lr"), ("norm", "grad_norm")):
                if key in said:
                    record[name] = number(said[key])
            records.append(record)
        if "tel" in said:
            records.append({"kind": "eval", "iter": step, "val_loss": plain_number(said["tel"])})
        if "eval" in said:
            records.append(self._event("hellaswag", value=number(said["eval"])))
        return records

    def _validation(self, text: str) -> list[Record]:
        """A line with only the loss. Other trainers print the step too, and are not matched."""
        before, _, after = text.partition("val loss ")
        if not (found := VALUE.fullmatch(after)) or FOREIGN.search(before):
            return []
        return [{"kind": "eval", "iter": self._iter or 0, "val_loss": plain_number(found[1])}]

    def _event(self, name: str, **said: object) -> Record:
        return {"kind": "event", "name": name, "iter": self._iter, **said}


def _table(key: str, value: str) -> list[Record]:
    if key == "device":
        return [{"kind": "start", "device": value}]
    amount = number(value)
    if amount is None or not amount > 0:  # -1 means that the peak of the GPU is unknown
        return []
    return [{"kind": "start", TABLE_KEYS.get(key, "peak_tflops"): amount}]
