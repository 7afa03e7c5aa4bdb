"""The user's cache folder: what was fetched, and the hashes of large files."""

import os
from pathlib import Path

from stepglass.errors import DataError


def cache_dir() -> Path:
    """STEPGLASS_CACHE, else `stepglass` in the user's cache folder."""
    own = os.environ.get("STEPGLASS_CACHE")
    if own:
        return Path(own)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepglass"
    except RuntimeError as error:  # a user without an entry, and no HOME
        raise DataError(
            "expected a home folder to keep what is fetched in, found none; set STEPGLASS_CACHE to "
            "a folder"
        ) from error
