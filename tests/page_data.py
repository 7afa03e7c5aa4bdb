"""Logs to draw, and what a page makes of the columns it gets, for tests."""

import base64
import zlib
from pathlib import Path

import numpy as np

from stepglass.logs import detect
from stepglass.measure import run_log
from stepglass.report.chart_table import ChartTable


def iteration(number: int, **changes) -> dict:
    phases = {"data": 1.0, "forward_backward": 20.0, "optimizer": 4.0}
    figures = {"loss": 3.0 - number / 1000, "lr": 1e-3, "grad_norm": 1.0, "tokens": 32}
    return {"kind": "iter", "iter": number, "wall_ms": 25.0, "phases": phases, "mfu": 0.5,
            **figures, **changes}  # fmt: skip


def encoded(records: list[dict]) -> bytes:
    return b"".join(map(run_log.encode, records))


def read_drawn(data: bytes) -> "detect.Log":
    Path("run.jsonl").write_bytes(data)
    with open("run.jsonl", "rb") as file:
        return detect.read_log(file, "run.jsonl", ChartTable)


def page_numbers(packed: dict[str, str], count: int) -> list[float]:
    """What the page makes of a column, one that is a rule among them."""
    if "from" in packed:
        return [float(packed["from"]) + n * float(packed["step"]) for n in range(count)]
    return plain_numbers(packed).tolist()


def plain_numbers(packed: dict[str, str]) -> np.ndarray:
    """What the page makes of a column."""
    if "from" in packed:
        raise AssertionError("a row count is needed")
    kind, text = next(iter(packed.items()))
    data = base64.b64decode(text)
    size = int(kind[1:]) // 8
    if kind[0] == "z":
        by_weight = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size, -1)
        data = by_weight.T.tobytes()
    return np.frombuffer(data, f"<f{size}")
