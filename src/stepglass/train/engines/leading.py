"""The engine of rank 0 among several processes: it gives each order to the others, and does its own
share of the work.

Everything else of a run exists only in rank 0: the loop, the log, the console, the checkpoints, and
every decision that depends on time. So the processes need not agree on anything: the others stop
when rank 0 stops, at the same step.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch import Tensor

from stepglass.checkpoint.sharded import ShardedTensors
from stepglass.checkpoint.tensors import Files, Snapshot, load_rng, rng_tensors
from stepglass.errors import ConfigError
from stepglass.measure.event_details import RanksEvent, SilenceEvent
from stepglass.process import Interrupted
from stepglass.run_dir import checkpoints, lock
from stepglass.run_dir.commit import OtherShards
from stepglass.run_dir.folder import RunFolder
from stepglass.train.engines.engine import Engine, MicroBatch
from stepglass.train.engines.group import Group, GroupLost, ranks_in_words
from stepglass.train.engines.shard_saves import MAX_LOCK_BYTES, OthersSaving


class Leader(Engine):
    """An engine that other processes share. `share` is what this process computes."""

    def __init__(self, share: Engine, group: Group) -> None:
        super().__init__(share.model, share.optimizer, share.device)
        self.saves_shards = share.saves_shards
        self._scaler = share._scaler
        self._share, self._group = share, group
        self._lost: GroupLost | None = None
        self._generators: dict[str, Tensor] | None = None  # before the current update
        self._saves = 0  # in shards

    def backward(self, batches: list[MicroBatch], step: int, counted: float = 1.0) -> Tensor:
        self._generators = rng_tensors(self.device.type)
        with self._all("backward", step=step, count=len(batches), counted=counted):
            return self._share.backward(batches, step, counted)

    def update(self, grad_clip: float) -> Tensor | None:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        with self._all("update", grad_clip=grad_clip, rates=rates):
            norm = self._share.update(grad_clip)
        self._generators = None
        return norm

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        """Each process scores the same number of rows, so some may be scored twice."""
        processes = self._group.here.of
        each = -(-len(x) // processes)
        rows = torch.arange(processes * each) % len(x)
        both = torch.stack((x, y)).to(torch.int32)[:, rows]
        with self._all("score", rows=each, width=x.size(1)):
            return score_together(self._share, self._group, both)[: len(x)]

    def compile(self, does_compile: bool) -> None:
        with self._all("compile", does_compile=does_compile):
            self._share.compile(does_compile)
        self.device = self._share.device

    def rehearse_update(self, grad_clip: float) -> None:
        with self._all("rehearse_update", grad_clip=grad_clip):
            self._share.rehearse_update(grad_clip)

    def discard_gradients(self) -> None:
        with self._all("discard_gradients"):
            self._share.discard_gradients()
        self._generators = None  # the warm-up is over: a checkpoint may bring generators of its own

    def rank_times(self) -> RanksEvent | None:
        with self._all("rank_times"):
            return self._share.rank_times()

    def silences(self) -> list[SilenceEvent]:
        return self._group.signs.silences()

    def has_finite_weights(self) -> bool:
        if not self._share.is_spread:
            return self._share.has_finite_weights()
        with self._all("has_finite_weights"):
            return self._share.has_finite_weights()

    def tensors(self) -> Files:
        if not self._share.is_spread or self._share.saves_shards:
            return self._share.tensors()
        with self._all("tensors"):
            return self._share.tensors()

    def check_folder(self, folder: RunFolder) -> None:
        if not self._share.saves_shards:
            return
        # Another process may have been started in another folder.
        run_dir = folder.where().absolute()
        locked = folder.folder.read(lock.NAME, MAX_LOCK_BYTES)
        with self._all("check_folder", run_dir=str(run_dir), locked=locked.decode()):
            without = self._group.say_yes(True)
        if without:
            raise ConfigError(
                f"--out_dir={run_dir}: {ranks_in_words(without)} cannot see this folder of rank 0, "
                "and each process has to write its part of a checkpoint there; put it on a disk "
                "that all machines share, or type --checkpoint_shards=False if rank 0 has memory "
                "for all parts"
            )

    def save_shards(self, has_room: bool) -> OtherShards | None:
        if not self._share.saves_shards:
            return None
        self._saves += 1
        with self._all("save_shard", number=self._saves):
            without_room = self._group.say_yes(has_room)
        waits = bool(without_room)
        return OthersSaving(self._group, self._saves, waits, lambda: self._lost is not None)

    def restore(self, snapshot: Snapshot, place: str) -> None:
        self._share.check_fits(snapshot, place)
        shards = None
        if self._share.is_spread and isinstance(snapshot.model, ShardedTensors):
            manifest = checkpoints.read_manifest(Path(place) / "MANIFEST.json")
            shards = str(Path(place).absolute()), manifest["manifest_sha256"]
        with self._all("restore", scaler=snapshot.state["scaler"], shards=shards):
            self._share.restore(snapshot, place)

    def close(self) -> None:
        if self._lost is None:
            with suppress(RuntimeError):
                self._group.tell("close")
        self._group.close()

    @contextmanager
    def _all(self, order: str, **what: object) -> Iterator[None]:
        """Let the other processes do something that this one does inside the block."""
        if self._lost is not None:
            raise self._lost
        try:
            with self._group.blaming():
                self._group.tell(order, **what)
                yield
        except GroupLost as lost:
            self._lost = lost
            if self._generators is not None:
                load_rng(self._generators)  # a resumed run will repeat this update
            if self._share.is_spread:
                lost.is_torn, lost.unsaved = True, "were spread over all processes"
            raise
        except (Exception, Interrupted):
            # The others may be in the middle of it: there is no way back to the same point.
            self._lost = GroupLost(f"rank 0 has left `{order}` with an error")
            raise


def score_together(share: Engine, group: Group, both: Tensor) -> Tensor:
    """The losses of all rows, of which each process scores its part. `both` are inputs and targets;
    those of rank 0 count."""
    group.share(both)
    x, y = both.long().chunk(group.here.of, dim=1)[group.here.number]
    return group.gather_rows(share.score(x, y))
