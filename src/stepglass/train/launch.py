"""Starts several processes that train together: `stepglass train --nproc=N`.

torchrun does it, as a library: it starts the processes, passes signals on to them, ends all if one
is lost, and starts them again as often as `max_restarts` says. Rank 0 prints what there is to say.
"""

import logging
import os
import shlex
import signal
import sys
import uuid
from pathlib import Path

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from stepglass.errors import TrainingFailed
from stepglass.measure import run_log
from stepglass.measure.records import GOOD_ENDINGS
from stepglass.run_dir import checkpoints
from stepglass.settings.train import TrainConfig

# How long the processes have to save and to end after a signal.
END_WITHIN_S = 120


def launch(cfg: TrainConfig, argv: list[str]) -> int:
    """Run `stepglass train` in `nproc` processes, and return an exit code."""
    logging.disable(logging.ERROR)  # torchrun's own lines: this process and rank 0 say more
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // cfg.nproc)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=cfg.nproc,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=cfg.max_restarts,
        shutdown_timeout=END_WITHIN_S,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "stepglass", "train", *argv)
    except ChildFailedError as failed:
        return exit_code(failed, cfg)
    except SignalException:
        return 0 if has_ended_well(Path(cfg.out_dir)) else 1
    return 0


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def exit_code(failed: ChildFailedError, cfg: TrainConfig) -> int:
    """That of rank 0, which has printed its error. If it could not, this says who was lost."""
    leader = failed.failures.get(0)
    if leader is not None and leader.exitcode > 0:
        return int(leader.exitcode)
    rank, lost = (0, leader) if leader is not None else failed.get_first_failure()
    code = lost.exitcode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    if not checkpoints.committed(Path(cfg.out_dir)):
        what_next = "no checkpoint had been saved yet"
    else:
        what_next = f"go on with: stepglass resume {shlex.quote(cfg.out_dir)}"
    raise TrainingFailed(
        f"rank {rank} (process {lost.pid}) {how}; {what_next}; --max_restarts=3 starts again by "
        "itself"
    )


def has_ended_well(run_dir: Path) -> bool:
    """Whether the run log ends as that of a run that was not lost."""
    try:
        [*_, last] = run_log.read_records(run_dir / run_log.NAME)
    except (OSError, ValueError):
        return False
    return last["kind"] == "end" and last.get("reason") in GOOD_ENDINGS
