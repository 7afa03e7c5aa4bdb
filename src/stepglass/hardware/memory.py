"""Main memory: how much this process uses, and how much is available."""

import os
from pathlib import Path


def resident_bytes() -> int | None:
    """Main memory that this process uses, or None if not on Linux."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def available_host_bytes() -> int | None:
    """Memory that is available to this process, or None if not on Linux: that of the machine, or of
    the container if it is less."""
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
        # The kernel can free the page cache, but not shared memory, which is counted as cache.
        cache = int(kinds["file"]) - int(kinds.get("shmem", 0))
        return min(available, limit - used + cache)
    except (OSError, ValueError, KeyError):  # not in a container, or no memory limit
        return available
