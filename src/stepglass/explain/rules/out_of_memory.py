"""The memory of the device, or of the computer, ran out."""

import re

from stepglass.explain.finding import Change, Finding
from stepglass.explain.study import Part

# The system or the CPU allocator ran out, not the GPU.
HOST = re.compile(r"Kill(?:ed)? process|oom[-_]kill|CPUAllocator")


def find_out_of_memory(part: Part) -> list[Finding]:
    events = [e for e in part.segment.events if e.name == "oom"]
    if not events:
        return []
    first = events[0]
    change: Change = {}
    batch = part.number_setting("batch_size")
    accumulation = part.number_setting("gradient_accumulation_steps")
    is_host = bool(HOST.search(str(first.record.get("detail"))))
    if batch and batch % 2 == 0 and not is_host:
        change["batch_size"] = int(batch // 2)
        if accumulation:
            change["gradient_accumulation_steps"] = int(accumulation * 2)
    return [
        Finding(
            "out-of-memory",
            "established",
            "problem",
            {
                "tried_bytes": first.record.get("tried_bytes"),
                "free_bytes": first.record.get("free_bytes"),
                "total_bytes": first.record.get("total_bytes"),
                "iter": first.iter,
                "halved": "batch" if change else "no",
            },
            [first.line],  # later errors are consequences of the first
            [first.iter] if first.iter is not None else [],
            change,
            variant="host" if is_host else "sizes" if first.record.get("tried_bytes") else "plain",
            cost_ms=part.wall_ms or 0.0,
        )
    ]
