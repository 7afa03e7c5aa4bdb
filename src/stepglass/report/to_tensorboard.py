"""A run as TensorBoard events, for those who want its curves beside other runs' there.

    to_tensorboard(Path("out"), Path("events/out"))

Reads run.jsonl as one story: what a resumed run did again stands for what it undid. Tags and times
are those of `--log_to=tensorboard`.
"""

from pathlib import Path

from stepglass.errors import ConfigError, LogError, os_reason
from stepglass.loggers import packages
from stepglass.loggers.tensorboard import TensorBoard
from stepglass.measure import run_log

COUNTED = ("iter", "eval", "checkpoint")  # the records that hold numbers, each at an iteration


def to_tensorboard(source: Path, out: Path) -> int:
    """Write the events of a run (its folder, or its run.jsonl) into the folder `out`, and return
    how many numbers they hold.
    """
    path = source / "run.jsonl" if source.is_dir() else source
    packages.load("tensorboard")
    try:
        records = run_log.history(path)
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {os_reason(error)}") from error
    except (KeyError, TypeError) as error:
        raise LogError(f"{path}: expected a run log, found records without `iter`") from error
    story = [record for record in records if record["kind"] not in COUNTED or has_step(record)]
    if not any(record["kind"] in COUNTED for record in story):
        raise LogError(f"{path}: expected a run log, found no iteration and no evaluation in it")
    try:
        if any(out.glob("*tfevents*")):
            # TensorBoard would draw both through each other.
            raise ConfigError(f"{out}: has TensorBoard's events already; choose another folder")
        writer = TensorBoard(out)
        try:
            writer.write(story)
        finally:
            writer.close()
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {os_reason(error)}") from error
    return writer.num_scalars


def has_step(record: run_log.Record) -> bool:
    """Its iteration is one that TensorBoard can store."""
    step = record.get("iter")
    return type(step) is int and 0 <= step < 2**63
