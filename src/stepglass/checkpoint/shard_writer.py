"""Writes one process's part of a checkpoint, in the background. Rank 0 commits it (writer.py).

The thread is a daemon: if rank 0 is gone, nobody will commit what it writes.
"""

from pathlib import Path
from typing import Protocol

from stepglass.checkpoint import tensors
from stepglass.checkpoint.background import BackgroundWriter, Job, reason_of
from stepglass.files import FileOps
from stepglass.hardware.device import Device
from stepglass.run_dir import commit
from stepglass.run_dir.commit import Entries

# A part that is still written when the run ends belongs to a save that has failed in rank 0.
END_WITHIN_S = 5.0


class ShardOrder(Protocol):
    """One order of rank 0 to write a part of a checkpoint, and the answer to it."""

    def folder(self) -> Path | None:
        """Wait until rank 0 has made the folder. None if it could not."""

    def is_urgent(self) -> bool:
        """True if training waits for it."""

    def answer(self, entries: Entries, error: str | None) -> None:
        """Tell rank 0 what was written, or why it was not."""


class ShardWriter(BackgroundWriter):
    """Writes the parts of one process, one after the other."""

    def __init__(self, device: Device, sharers: int = 1) -> None:
        self._ops = FileOps()
        self._order: ShardOrder | None = None
        super().__init__(device, is_daemon=True, sharers=sharers)

    def make_room(self, files: tensors.Files) -> bool:
        """Wait for the part before, which may still be written if it has failed elsewhere, and
        reserve buffers. Returns False if there is not enough memory for them."""
        self.wait()
        if not self.is_reserved:
            self.reserve(files)
            self.wait()
        return self.has_room

    def save(self, files: tensors.Files, order: ShardOrder, waits: bool) -> None:
        """Start to copy and write the tensors. `waits`: return when they are written."""
        self._order = order
        self._start(files, lambda job: self._write(job, order), waits)

    def close(self) -> None:
        """Let the part in progress and the thread end. A thread that is in torch's store while the
        interpreter ends would abort the process."""
        self._hurry.set()
        if self._idle.wait(END_WITHIN_S):
            super().close()

    def _write(self, job: Job, order: ShardOrder) -> None:
        try:
            contents = self._paced(job)
            folder = order.folder()
            if folder is not None:
                order.answer(commit.write_shard(self._ops, folder, contents), None)
        except BaseException as error:  # noqa: BLE001 - rank 0 reports it
            order.answer({}, reason_of(error))

    def _rest(self, seconds: float) -> None:
        if self._order is not None and self._order.is_urgent():
            self._hurry.set()
        super()._rest(seconds)
