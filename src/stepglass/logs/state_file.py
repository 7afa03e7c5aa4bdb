"""Reads a whole trainer_state.json of Hugging Face's Trainer, which is one JSON document."""

from collections.abc import Callable, Iterable

from stepglass.errors import LogError
from stepglass.logs.formats.huggingface import HFTrainer
from stepglass.logs.formats.trainer_history import TrainerState
from stepglass.logs.log import Log
from stepglass.logs.table import Table


def read_trainer_state(parts: Iterable[bytes], name: str, new_table: Callable[[], Table]) -> Log:
    """Read the document entry by entry."""
    state, log = TrainerState(), Log(new_table)
    log.format = HFTrainer.format
    is_whole_line = True
    for part in parts:
        log.num_lines += part.count(b"\n")
        is_whole_line = part.endswith(b"\n")
        for record in state.feed(part.decode("utf-8", "replace")):
            log.add(record, record.pop("line", 1), None)
    log.num_lines += not is_whole_line
    if state.max_steps is not None:
        for segment in log.segments:
            if len(segment.table):
                first = int(segment.table.column("line")[0])
                segment.add_setting("max_iters", state.max_steps, first)
    log.num_understood = log.num_lines if state.has_records else 0
    log.finish()
    if all(segment.is_empty() for segment in log.segments):
        raise LogError(f"{name}: the log_history of this trainer_state.json holds no training step")
    return log
