"""Where a data set is, and whether there is text to make it from."""

from pathlib import Path

from stepglass.data import sources


def folder_of(name: str) -> Path:
    """The folder of a data set: `data/NAME`, as in nanoGPT, or the path of a folder itself."""
    direct = Path(name)
    return direct if (direct / "train.bin").exists() else Path("data") / name


def is_missing(name: str) -> bool:
    """True if the data set does not exist yet, but `prepare` can make it from its name."""
    return name in sources.NAMED and not (folder_of(name) / "train.bin").exists()


def is_text(name: str) -> bool:
    """True if there is no data set of this name, but a file or a folder of text to make it from."""
    return Path(name).exists() and not (folder_of(name) / "train.bin").exists()
