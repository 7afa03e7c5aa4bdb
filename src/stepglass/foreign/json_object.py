"""Reads a file of another program that has to be a JSON object."""

from pathlib import Path
from typing import Any

from stepglass import json_files
from stepglass.errors import CheckpointError, os_reason
from stepglass.units import shown

MAX_JSON = 1 << 26  # bytes: tokenizers of large vocabularies have tens of megabytes


def read_object(path: Path, is_optional: bool = False) -> dict[str, Any]:
    """The JSON object in a file. An optional file that is not there is an empty one."""
    if is_optional and not path.exists():
        return {}
    try:
        found = json_files.read_json(path, MAX_JSON)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: expected JSON, found a problem: {error}") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {shown(found)}")
    return found
