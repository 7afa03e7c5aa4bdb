"""The user's cache folder, for downloads and the hashes of large files."""

import os
from pathlib import Path

from stepglass.errors import DataError


def cache_dir() -> Path:
    """STEPGLASS_CACHE if it is set, otherwise `stepglass` in the user's cache folder."""
    own = os.environ.get("STEPGLASS_CACHE")
    if own:
        return Path(own)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepglass"
    except RuntimeError as error:  # HOME is not set, and the user is not in the user database
        raise DataError(
            "expected a home folder to keep what is fetched in, found none; set STEPGLASS_CACHE to "
            "a folder"
        ) from error
