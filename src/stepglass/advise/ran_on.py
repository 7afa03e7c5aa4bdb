"""Whether the times of a log hold for the device that the advice is for.

Most logs do not name their device, so the one that is asked for is taken for it, unless the log
shows that it was another: another kind of device, or a speed that this one cannot have.
"""

from dataclasses import replace

from stepglass.advise.case import Case, Reason
from stepglass.advise.target import Target
from stepglass.explain.study import Part
from stepglass.measure.time_model import Kind
from stepglass.settings.nanogpt_defaults import NANOGPT

MOST_OF_A_CPU = 10e12  # FLOP/s: hundreds of cores with AVX-512 come near it
HALF = ("bfloat16", "float16")


def on_its_device(case: Case, part: Part, ran_on: Target) -> Case:
    """The case, without the log's times if they are another device's, and with the reason."""
    reason = _why_another(case, part, ran_on)
    if reason is None:
        return case
    return replace(case, subject=case.subject.on_another_device(), notes=(reason,))


def _why_another(case: Case, part: Part, ran_on: Target) -> Reason | None:
    target, measured = case.target, case.subject.measured
    if ran_on.name is not None:
        if ran_on.name == target.name:
            return None
        return Reason("device", "calculated", variant="named", name=ran_on.name)
    kind = known_kind(part)
    if kind is not None and kind != target.kind:
        return Reason("device", "calculated", variant=kind)
    if measured is None or measured.step_ms is None:
        return None
    speed = case.subject.flops_per_update(measured.cfg) / (measured.step_ms / 1000)
    speed /= case.devices_of(measured.cfg)
    most = _most_flops(target, str(measured.cfg.dtype))
    if most is None or speed <= most:
        return None
    return Reason("device", "calculated", variant="speed", tflops=speed / 1e12, most=most / 1e12)


def known_kind(part: Part) -> Kind | None:
    """The kind of device of a log that does not name it. nanoGPT prints every setting that is not
    its default."""
    said = str(part.segment.facts.get("device_type") or part.setting("device") or "")
    kind = said.partition(":")[0]
    has_head = bool(part.segment.config) or part.fact("tokens_per_iter") is not None
    if not kind and part.format.has_nanogpt_defaults and has_head:
        kind = NANOGPT["device"]
    for each in ("cuda", "mps", "cpu"):
        if kind == each:
            return each
    return "cuda" if part.setting("dtype") in HALF else None


def _most_flops(target: Target, dtype: str) -> float | None:
    """The peak in the number format of the run. Where the log does not say it, or this device does
    not have it, that of half precision: trainers fall back to float16."""
    if target.kind == "cpu":
        return MOST_OF_A_CPU
    chips = [target.chip(each) for each in ({dtype} & {*HALF, "float32"} or HALF)]
    chips = chips if any(chips) else [target.chip(each) for each in HALF]
    return max((chip.peak_flops for chip in chips if chip), default=None)
