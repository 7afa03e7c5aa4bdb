"""Main memory: what this process has, and what it could still have."""

import os
from pathlib import Path


def resident_bytes() -> int | None:
    """Main memory of this process, or None off Linux."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def available_host_bytes() -> int | None:
    """Memory that this process could still have, or None off Linux: the machine's, or that of its
    container if it is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        kinds = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # The page cache makes way. Shared memory is counted in it, and does not.
        cache = int(kinds["file"]) - int(kinds.get("shmem", 0))
        return min(available, limit - used + cache)
    except (OSError, ValueError, KeyError):  # no container, or no limit
        return available
