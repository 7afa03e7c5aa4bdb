"""Fused attention, compilation or a fast number format is missing."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gpu_limits import better_dtype
from stepglass.explain.study import Part
from stepglass.measure import devices


def find_slow_path(part: Part) -> list[Finding]:
    device = str(part.setting("device") or "")
    found = _attention(part) + _by_events(part, "compile-fallback", "compile")
    if part.setting("dtype") == "float32" and device.startswith("cuda"):
        found += _float32(part)
    if part.format.is_float32_on_mps and device.startswith("mps"):
        lines = part.line_of_setting("device")
        found.append(Finding("slow-path", "established", "note", {}, lines, variant="mps"))
    return found


def _attention(part: Part) -> list[Finding]:
    if "SDPA" in str(part.segment.facts.get("attention")):
        # SDPA is fused attention too: slower than FlashAttention 3, but it writes out no matrix.
        lines = part.line_of_fact("attention")
        return [Finding("slow-path", "established", "note", {}, lines, variant="sdpa")]
    return _by_events(part, "slow-attention", "attention")


def _by_events(part: Part, name: str, variant: str) -> list[Finding]:
    """A slow path that the log itself reports."""
    events = [e for e in part.segment.events if e.name == name]
    if not events:
        return []
    return [
        Finding(
            "slow-path",
            "established",
            "advice",
            {"count": part.segment.num_events[name]},
            [e.line for e in events],
            variant=variant,
            cost_ms=part.phase_ms("step") * 0.3,
        )
    ]


def _float32(part: Part) -> list[Finding]:
    """Float32 on a GPU with a faster format. Old GPUs have none."""
    known = devices.find_device(part.mfu.device) if part.mfu.device else None
    dtype = better_dtype(part, "bfloat16") or better_dtype(part, "float16")
    if dtype is None:
        return []
    return [
        Finding(
            "slow-path",
            "established" if known else "supported",
            "advice",
            {"dtype": dtype, "device": part.mfu.device},
            part.line_of_setting("dtype"),
            change={"dtype": dtype},
            variant="float32",
            cost_ms=part.phase_ms("step") * 0.4,
        )
    ]
