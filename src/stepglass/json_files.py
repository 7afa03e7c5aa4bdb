"""JSON files: written sorted, indented and atomically; read strictly."""

import json
from pathlib import Path
from typing import Any

from stepglass.files import read_regular, replacing


def json_bytes(value: Any) -> bytes:
    """JSON for people and programs: sorted, indented, and strict (no NaN)."""
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file. Readers see either the old file or the new one."""
    with replacing(path) as file:
        file.write(json_bytes(value))


def read_json(path: Path, max_bytes: int = 1 << 28) -> Any:
    """Read a JSON file. Raises OSError or ValueError, for the caller to turn into a message."""
    return parse_json(read_regular(path, max_bytes))


def parse_json(data: bytes) -> Any:
    """Parse strict JSON: no NaN and no duplicate keys. Raises ValueError."""
    try:
        return json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise ValueError("a key occurs twice")
    return keys
