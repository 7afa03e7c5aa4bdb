"""What the processes of a run other than rank 0 do: they compute what rank 0 asks for.

They print nothing, and write nothing but their part of a checkpoint in shards. If one fails, it
tells rank 0 why and ends, and rank 0 shows the error. Once they are connected, signals are for rank
0: the others end when it ends.
"""

import os
import signal
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepglass.checkpoint.shard_writer import ShardWriter
from stepglass.data import dataset, identity
from stepglass.errors import DataError, StepglassError, TrainingFailed
from stepglass.hardware import choose
from stepglass.hardware.peak import Peak
from stepglass.hardware.ranks import this_rank
from stepglass.measure.clock import PhaseClock
from stepglass.measure.shapes import shape_of
from stepglass.process import ALWAYS, SIGNALS, keep_freed_memory
from stepglass.settings.command_line import read_command_line
from stepglass.settings.train import TrainConfig
from stepglass.train.batches import micro_batches
from stepglass.train.building import Plan, new_share
from stepglass.train.console import Console
from stepglass.train.engines.group import Group, first_line, is_group_error
from stepglass.train.engines.leading import score_together
from stepglass.train.engines.shard_saves import SavingOrder, sees_lock
from stepglass.train.memory_errors import is_out_of_memory


def follow_rank_0(argv: list[str]) -> int:
    """Follow rank 0 to the end of the run, and return an exit code."""
    for number in ALWAYS:
        signal.signal(number, signal.SIG_DFL)  # rank 0 may have ended before it could connect
    timeout_s = read_command_line(argv).value("rank_timeout")
    group = Group.connect(this_rank(), timeout_s)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        take_orders(group)
    except Exception as error:  # noqa: BLE001  whatever it is, rank 0 shows it
        if is_group_error(error):
            return without_others(group, error)
        group.report(error)
        if not (isinstance(error, StepglassError) or is_out_of_memory(error)):
            traceback.print_exc()
        return 1
    group.close()
    return 0


def without_others(group: Group, error: Exception) -> int:
    """The exit code of a process that has lost its connection: rank 0 has ended, or says who is to
    blame. On another machine, nobody may see what rank 0 says."""
    here = group.here
    if here.local_of == here.of:
        return 1
    raise TrainingFailed(
        f"step {group.step}: rank {here.number} has lost its connection, and ends; rank 0 says "
        f"more if it can: {first_line(error)}"
    ) from error


def take_orders(group: Group) -> None:
    """Build this process's share of the run, and do what rank 0 says until it says `close`."""
    order, what = group.listen()
    if order == "close":
        return
    following = Following(group, TrainConfig(**what["config"]), what["data"])
    while True:
        order, what = group.listen()
        if order == "close":
            following.close()
            return
        getattr(following, order)(**what)


class Following:
    """The orders of rank 0, each a method with the name of the engine's."""

    def __init__(self, group: Group, cfg: TrainConfig, data_of_leader: dict[str, Any]) -> None:
        self._group, self._cfg = group, cfg
        self._data = dataset.load_dataset(cfg.dataset, cfg.block_size)
        if not identity.is_same_data(data_of_leader, self._data.fingerprint):
            difference = identity.difference(data_of_leader, self._data.fingerprint)
            raise DataError(f"{self._data.folder}: not the data of rank 0 ({difference})")
        device = choose.pick_device(cfg)
        if device.type == "cpu":
            keep_freed_memory()
        shape = shape_of(cfg, self._data.vocab_size)
        plan = Plan(cfg, device, self._data, shape, Peak(None, "of rank 0"), cfg.batch_size, None)
        silent = Console(open(os.devnull, "w"))  # noqa: SIM115  as long as the process
        self._share = new_share(plan, silent, PhaseClock(), group)
        self._writer: ShardWriter | None = None  # from the first save in shards on

    def backward(self, step: int, count: int, counted: float) -> None:
        here = self._group.here
        mixed = np.random.SeedSequence((self._cfg.seed, step, here.number))
        torch.manual_seed(int(mixed.generate_state(1)[0]))  # rank 0's generator is in checkpoints
        batches = micro_batches(self._data, self._cfg, step)[:count]
        self._share.backward(batches, step, counted)

    def update(self, grad_clip: float, rates: list[float]) -> None:
        for group, rate in zip(self._share.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        if self._writer is not None:
            self._writer.protect_snapshot()
        self._share.update(grad_clip)

    @torch.inference_mode()
    def score(self, rows: int, width: int) -> None:
        both = torch.empty((2, self._group.here.of * rows, width), dtype=torch.int32)
        score_together(self._share, self._group, both)

    def compile(self, does_compile: bool) -> None:
        self._share.compile(does_compile)

    def rehearse_update(self, grad_clip: float) -> None:
        """As `rehearse_update` in train/pace.py does in rank 0: nothing changes."""
        for group in self._share.optimizer.param_groups:
            group["lr"] = 0.0
        self._share.rehearse_update(grad_clip)
        for remembered in self._share.optimizer.state.values():
            remembered["step"].zero_()

    def discard_gradients(self) -> None:
        self._share.discard_gradients()

    def rank_times(self) -> None:
        self._share.rank_times()

    def has_finite_weights(self) -> None:
        self._share.has_finite_weights()

    def tensors(self) -> None:
        self._share.tensors()

    def check_folder(self, run_dir: str, locked: str) -> None:
        self._group.say_yes(sees_lock(Path(run_dir), locked.encode()))

    def save_shard(self, number: int) -> None:
        if self._writer is None:
            self._writer = ShardWriter(self._share.device, self._group.here.local_of)
        files = self._share.tensors()
        without_room = self._group.say_yes(self._writer.make_room(files))
        self._writer.save(files, SavingOrder(self._group, number), waits=bool(without_room))

    def restore(self, scaler: dict[str, Any], shards: list[str] | None) -> None:
        self._share.receive(scaler, shards)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
