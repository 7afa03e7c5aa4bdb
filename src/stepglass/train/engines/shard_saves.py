"""The saves of a checkpoint in shards: what rank 0 and the others tell each other about them.

    others = OthersSaving(group, number=3, ...)   # rank 0, which commits the checkpoint
    order = SavingOrder(group, number=3)          # each other process, which writes its part

Both work in the threads that write, while training goes on. So they do not use the connection for
orders or tensors, but torchrun's store, and nothing here waits inside of a call to it. If the store
is on a machine that is gone, a call to it need not return: rank 0 lets a thread of its own ask.
"""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepglass import units
from stepglass.errors import CheckpointError
from stepglass.files import read_regular
from stepglass.run_dir import lock
from stepglass.run_dir.commit import Entries
from stepglass.train.engines.group import Group

LOOK_EVERY_S = 0.02
ALIVE_EVERY_S = 1.0
URGENT_EVERY_S = 0.2
FOLDER_WITHIN_S = 5.0  # a network file system may show a new file a little later
MAX_LOCK_BYTES = 1 << 12


class OthersSaving:
    """Rank 0's view of one save in the other processes."""

    def __init__(
        self, group: Group, number: int, waits: bool, has_lost: Callable[[], bool]
    ) -> None:
        """`has_lost` says that rank 0 has lost a process, in whatever it did meanwhile."""
        self.of, self.waits = group.here.of, waits
        self._group, self._number, self._has_lost = group, number, has_lost
        self._store = group.own_store()  # for the thread that asks
        self._own_store = group.own_store()
        self._has_begun = False
        self._heard: dict[int, tuple[Any, float]] = {}  # the last sign of life of each process

    def begin(self, folder: Path) -> None:
        self._has_begun = True
        self._own_store.set(key(self._number, "folder"), str(folder))

    def cancel(self) -> None:
        self.hurry()  # they must be ready for the next save
        if not self._has_begun:
            with suppress(RuntimeError):
                self._own_store.set(key(self._number, "folder"), "")

    def hurry(self) -> None:
        with suppress(RuntimeError):  # the store is gone, and the others with it
            self._own_store.set(key(self._number, "hurry"), "1")

    def finish(self) -> Entries:
        """Wait for the answer of every process, also if one has failed: rank 0 deletes the folder
        then, and nobody should still write to it."""
        found: Future[Entries] = Future()
        threading.Thread(target=self._collect, args=(found,), daemon=True).start()
        while True:
            try:
                return found.result(LOOK_EVERY_S)
            except TimeoutError:
                self._check_not_lost()

    def _collect(self, found: "Future[Entries]") -> None:
        try:
            found.set_result(self._answers())
        except BaseException as error:  # noqa: BLE001  raised by `finish`
            found.set_exception(error)

    def _check_not_lost(self) -> None:
        if self._has_lost():
            raise CheckpointError("another process was lost before it had written its part")

    def _answers(self) -> Entries:
        answers = {rank: key(self._number, rank) for rank in range(1, self.of)}
        last_look = time.monotonic()
        while not self._store.check(list(answers.values())):
            self._check_not_lost()
            time.sleep(LOOK_EVERY_S)
            if time.monotonic() - last_look > ALIVE_EVERY_S:
                last_look = time.monotonic()
                self._check_alive([r for r, at in answers.items() if not self._store.check([at])])
        entries: Entries = {}
        for rank, at in answers.items():
            written, error = json.loads(self._store.get(at))
            self._store.delete_key(at)
            if error is not None:
                raise CheckpointError(f"rank {rank}: {error}")
            entries |= written
        return entries

    def _check_alive(self, missing: list[int]) -> None:
        """Raise CheckpointError if a process without an answer has ended or hangs."""
        gone = self._group.gone()
        if gone:
            raise CheckpointError(f"{', '.join(gone)} ended before its part was written")
        now, notes = time.monotonic(), self._group.notes()
        for rank in missing:
            note, since = self._heard.setdefault(rank, (None, now))
            if notes.get(rank) != note:
                self._heard[rank] = notes.get(rank), now
            elif now - since > self._group.timeout_s:
                within = units.duration(1000 * self._group.timeout_s)
                raise CheckpointError(f"rank {rank} gave no sign of life for {within}")


class SavingOrder:
    """One save, in a process other than rank 0."""

    def __init__(self, group: Group, number: int) -> None:
        self._group, self._number = group, number
        self._store = group.own_store()
        self._is_urgent, self._asked = False, 0.0

    def folder(self) -> Path | None:
        at = key(self._number, "folder")
        while not self._store.check([at]):
            time.sleep(LOOK_EVERY_S)
        found = self._store.get(at).decode()
        return Path(found) if found else None

    def is_urgent(self) -> bool:
        now = time.monotonic()
        if not self._is_urgent and now - self._asked > URGENT_EVERY_S:
            self._asked = now
            self._is_urgent = self._store.check([key(self._number, "hurry")])
        return self._is_urgent

    def answer(self, entries: Entries, error: str | None) -> None:
        at = key(self._number, self._group.here.number)
        with suppress(RuntimeError):  # the store is gone, and rank 0 with it
            self._store.set(at, json.dumps([entries, error]))


def key(number: int, what: str | int) -> str:
    """The name of a message about a save, in the store."""
    return f"save/{number}/{what}"


def sees_lock(run_dir: Path, expected: bytes) -> bool:
    """True if a run directory has the lock of rank 0: then it is the same folder."""
    deadline = time.monotonic() + FOLDER_WITHIN_S
    while True:
        try:
            if read_regular(run_dir / lock.NAME, MAX_LOCK_BYTES) == expected:
                return True
        except (OSError, ValueError):
            pass
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
