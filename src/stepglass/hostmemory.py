"""Freed memory is kept for the next use, where glibc would give it back and ask for it again."""

import ctypes
import os


def keep_freed_memory() -> None:
    """By default every large block goes back to the system, which then clears each page again for
    the next one: 4 % to 13 % of a step on a CPU, and more after an evaluation; a tenth of the time
    a long log takes to read (docs/decisions.md).
    """
    if is_glibc():
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no mapping of its own for a large block
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never give the top of the heap back


def is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError):  # Windows has no confstr, other libraries no such name
        return False
