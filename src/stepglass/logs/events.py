"""Reads lines that any trainer's log may contain: failures, signals, compiler warnings, wall-clock
times and devices.

    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total ...
    W0110 12:27:06.332000 158 convert_frame.py:1551] torch._dynamo hit config.recompile_limit (8)
    4233.60 real        96.24 user        31.10 sys

A line counts only if it has the same numbers as the real message, or the same position of the
words, because source code and advice contain the same words.
"""

import re

from stepglass.logs.bars import clock_seconds
from stepglass.logs.notable import is_notable
from stepglass.logs.reader import NUMBER, Record, decimal, number

LONGEST = 4096  # characters of a message
LONGEST_DETAIL = 500
SOURCE = re.compile(
    r"""(?:[#@{]|f?["']|[\w.]+\(|[\w.\[\]]+\s*[-+*/|]?=(?!=)"""
    r"""|(?:def|class|return|raise|except|if|elif|assert|import|from|with|while|for|yield)\b)"""
)

SIZE = rf"({NUMBER})\s*(bytes|[KMGT]i?B)\b"
OOM = re.compile(
    r"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate \d"
    r"|MPS backend out of memory \(MPS allocated: \d"
    r"|DefaultCPUAllocator: (?:can't allocate|not enough) memory: you tried to allocate \d"
    r"|(?:RESOURCE_EXHAUSTED|Resource exhausted): .{0,80}?[Oo]ut of memory .{0,40}?\d"
    r"|CUDA error: out of memory"
    r"|[Oo]ut of memory: Kill(?:ed)? process \d"
    r"|oom[-_]kill event"
    r"|ran out of memory at step \d"
)
# The framework adds this general advice whatever the cause was, so it is cut off.
ADVICE = re.compile(
    r"\s*(?:If reserved (?:but unallocated )?memory|See documentation for Memory|Use PYTORCH_MPS"
    r"|[^.;]*\bPYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF\b)"
)
TRIED = re.compile(rf"(?:[Tt]r(?:ied|ying) to allocate|[Oo]ut of memory allocating) {SIZE}")
FREE = re.compile(rf"{SIZE} (?:is )?free\b")
TOTAL = re.compile(
    rf"(?:total capac\w+ of |max allowed: ){SIZE}|{SIZE} total capac\w+"
)  # old versions of torch misspell it
FACTOR = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

TRACEBACK = re.compile(r"^[^\"'(]*Traceback \(most recent call last\):?$")
# The name of a raised error starts the line, or follows the prefix of a launcher.
ERROR = re.compile(
    r"(?:^|[\]:|]\s+|\]:)((?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception)|Exception|(?<=exc\.)[A-Z]\w*))"
    r"(?:$|:$|:\s+(?!(?:[Ii]f|[Ww]hen|[Rr]aised)\b)\S)"
)
INTERRUPT = re.compile(
    r"(?:^|[\]:|]\s+|\]:|\^C)KeyboardInterrupt(?:$|:)"
    r"|\b(?:[Rr]eceived|[Gg]ot|[Cc]aught|closing|stopped by)\b.{0,30}?\bSIG(?:TERM|INT)\b"
    r"|\bSIG(?:TERM|INT)\b.{0,12}?\b(?:received|caught)\b"
    r"|\bCANCELLED AT \d{4}-.{0,40}?(?:DUE TO|\*\*\*)"
)
# A warning of dynamo has many lines and may contain a traceback. That is not a crash.
WARNED = re.compile(r"(?<!\w)[WI]\d{4} \d\d:\d\d:\d\d|convert_frame: \[WARNING\]")
RECOMPILE = re.compile(
    r"dynamo hit (?:config\.\w*(?:cache_size|recompile)_limit|recompilation cache limit) \(\d+\)"
    r"|\]\s+Recompiling function \w+ in "
)
FALLBACK = re.compile(
    r"WON'T CONVERT \S+ \S+|\b[Ff]all(?:ing|s|en)? back to eager\b"
    r"|\bGraph break(?:: | in user code at | from user code at )"
)
WARNING = re.compile(r"\bWARN(?:ING)?\b|Warning: |_dynamo\b.*\]")
ADVISED = re.compile(r"\bYou can\b|\bby setting\b")

WALL_CLOCKS = [
    re.compile(
        r"(?<![\w.])(?P<s>\d+[.,]\d+)\s+real\s+(?P<user>\d+[.,]\d+)\s+user\s+(?P<sys>\d+[.,]\d+)\s+sys"
    ),
    re.compile(r"Elapsed \(wall clock\) time \(h:mm:ss or m:ss\): (?P<clock>[\d:.]{4,20})$"),
    re.compile(r"(?:^|\s)real\s+(?:(?P<h>\d{1,9})h)?(?P<m>\d{1,9})m(?P<s>\d{1,9}(?:[.,]\d+)?)s$"),
    re.compile(r"^real\s+(?P<s>\d{1,9}[.,]\d+)$"),
    re.compile(r"\d[.,]\d+s user \d[\d.,]*s system \d+% cpu (?P<clock>[\d:.]{4,20}) total$"),
    re.compile(r"\d[.,]\d+user \d[\d.,]*system (?P<clock>[\d:.]{4,20})elapsed \d+%CPU"),
]
THROTTLE = re.compile(
    r"°C\s*\|\s*(?:power|thermal|other) cap\b"
    r"|(?:Slowdown|Power Cap)\s+: Active$"
    r"|\bclock throttled \(total events = \d"
)
GPU_ROW = re.compile(
    r"\|\s*\d+\s{2,}(?P<name>\S[^|]{2,60}?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*[0-9A-Fa-f]{8}:"
)
GPU_LIST = re.compile(r"\bGPU \d+: (?P<name>[^()]{3,80}?) \(UUID: GPU-")


def records_of_any_log(text: str) -> list[Record]:
    """Records of a line about the machine or the process, for any trainer."""
    if not is_notable(text) or SOURCE.match(text):
        return []
    text = text[:LONGEST]
    for reading in (_memory, _compiler, _failure, _wall_clock, _throttle, _device):
        if found := reading(text):
            return [found]
    return []


def _event(name: str, text: str) -> Record:
    return {"kind": "event", "name": name, "detail": text[:LONGEST_DETAIL]}


def _memory(text: str) -> Record | None:
    return out_of_memory_event(text) if OOM.search(text) else None


def out_of_memory_event(text: str) -> Record:
    """The event of an out-of-memory error, with the sizes that its message states."""
    record = _event("oom", ADVICE.split(text, maxsplit=1)[0])
    for key, pattern in (("tried_bytes", TRIED), ("free_bytes", FREE), ("total_bytes", TOTAL)):
        if found := pattern.search(text):
            size, unit = [group for group in found.groups() if group is not None]
            # Where torch writes GB, it also means a power of two.
            record[key] = (number(size) or 0.0) * FACTOR[unit[0].lower()]
    return record


def _compiler(text: str) -> Record | None:
    if RECOMPILE.search(text):
        return _event("recompile", text)
    if not FALLBACK.search(text) or ADVISED.search(text):
        return None
    is_warning = WARNED.search(text) or WARNING.search(text)
    return _event("compile-fallback", text) if is_warning else None


def _failure(text: str) -> Record | None:
    if WARNED.search(text):
        return None
    if INTERRUPT.search(text):
        return _event("interrupted", text)
    if TRACEBACK.search(text):
        return _event("traceback", text)
    if found := ERROR.search(text):
        return _event("error", text[found.start(1) :])
    return None


def _wall_clock(text: str) -> Record | None:
    for pattern in WALL_CLOCKS:
        if found := pattern.search(text):
            parts = found.groupdict()
            if parts.get("clock"):
                wall_s = clock_seconds(parts["clock"])
            else:
                wall_s = decimal(parts["s"])
                wall_s += 60 * decimal(parts.get("m")) + 3600 * decimal(parts.get("h"))
            record: Record = {"kind": "end", "wall_ms": 1000 * wall_s}
            for name in ("user", "sys"):
                if name in parts:
                    record[f"{name}_ms"] = 1000 * decimal(parts[name])
            return record
    return None


def _throttle(text: str) -> Record | None:
    return _event("throttle", text) if THROTTLE.search(text) else None


def _device(text: str) -> Record | None:
    found = GPU_ROW.search(text) or GPU_LIST.search(text)
    return {"kind": "start", "device": found["name"]} if found else None
