"""Converts a run to TensorBoard events, to compare it with other runs in TensorBoard.

    to_tensorboard(Path("out"), Path("events/out"))

If a resumed run repeats iterations, the new records replace the old ones. Tags and times are the
same as with `--log_to=tensorboard`.
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
from stepglass.run_dir.imported_model import imported_model

COUNTED = (IterRecord, EvalRecord, CheckpointRecord)  # records with numbers for an iteration


def to_tensorboard(source: Path, out: Path) -> int:
    """Write the events of a run (its folder, or its run.jsonl) into the folder `out`. Return how
    many numbers were written.
    """
    path = source / "run.jsonl" if source.is_dir() else source
    imported = imported_model(source)
    if imported is not None:
        raise LogError(imported.why_no_log())
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
            # TensorBoard would mix the curves of both.
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
    """False if the record's iteration is not a number that TensorBoard can store."""
    if not isinstance(record, COUNTED):
        return True
    return type(record.iter) is int and 0 <= record.iter < 2**63
