"""A run as TensorBoard events, for those who want its curves beside other runs' there.

    to_tensorboard(Path("out"), Path("events/out"))

Reads run.jsonl as one story: what a resumed run did again replaces what stood there before. Tags
and times are those of `--log_to=tensorboard`.
"""

from pathlib import Path

from stepglass.errors import ConfigError, LogError, os_reason
from stepglass.loggers.tensorboard import PACKAGE, TensorBoard
from stepglass.measure import run_log
from stepglass.measure.records import (
    CheckpointRecord,
    EvalRecord,
    IterRecord,
    RunRecord,
    record_from,
)

COUNTED = (IterRecord, EvalRecord, CheckpointRecord)  # they have numbers, each at an iteration


def to_tensorboard(source: Path, out: Path) -> int:
    """Write the events of a run (its folder, or its run.jsonl) into the folder `out`, and return
    how many numbers they hold.
    """
    path = source / "run.jsonl" if source.is_dir() else source
    PACKAGE.load()
    try:
        found = [record_from(record) for record in run_log.history(path)]
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {os_reason(error)}") from error
    except (KeyError, TypeError) as error:
        raise LogError(f"{path}: expected a run log, found records without `iter`") from error
    story = [record for record in found if record is not None and has_known_step(record)]
    if not any(isinstance(record, COUNTED) for record in story):
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


def has_known_step(record: RunRecord) -> bool:
    """False if its numbers belong to an iteration that TensorBoard cannot store."""
    if not isinstance(record, COUNTED):
        return True
    return type(record.iter) is int and 0 <= record.iter < 2**63
