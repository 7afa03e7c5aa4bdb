"""Fused attention, compilation or a fast number format is missing."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gpu_limits import (
    better_dtype,
)
from stepglass.explain.study import Part


def find_slow_path(part: Part) -> list[Finding]:
    found = []
    for name, variant in (("slow-attention", "attention"), ("compile-fallback", "compile")):
        events = [e for e in part.segment.events if e.name == name]
        if events:
            found.append(
                Finding(
                    "slow-path",
                    "established",
                    "advice",
                    {"count": part.segment.num_events[name]},
                    [e.line for e in events],
                    variant=variant,
                    cost_ms=part.phase_ms("step") * 0.3,
                )
            )
    device = str(part.setting("device") or "")
    if part.setting("dtype") == "float32" and device.startswith("cuda"):
        found.append(
            Finding(
                "slow-path",
                "established",
                "advice",
                {},
                part.line_of_setting("dtype"),
                change={"dtype": better_dtype(part, "bfloat16") or "float16"},
                variant="float32",
                cost_ms=part.phase_ms("step") * 0.4,
            )
        )
    if part.format.is_float32_on_mps and device.startswith("mps"):
        found.append(
            Finding(
                "slow-path",
                "established",
                "note",
                {},
                part.line_of_setting("device"),
                variant="mps",
            )
        )
    return found
