"""The model or micro-batch is so small that the GPU is idle between kernels."""

from stepglass.explain.finding import Change, Finding
from stepglass.explain.rules.gpu_limits import (
    LIKELY_LAUNCH_MS,
    LONGEST_LAUNCH_MS,
    SMALL_MICRO_BATCH,
    is_on_gpu,
    memory_bytes,
    micro_batch_ms,
)
from stepglass.explain.study import Part

SMALL_MODEL = 30e6
LOW_MFU = 20.0


def _micro_batch_tokens(part: Part) -> float | None:
    batch, block = part.number_setting("batch_size"), part.number_setting("block_size")
    if batch and block:
        return batch * block
    return None


def find_small_kernels(part: Part) -> list[Finding]:
    real = part.mfu.corrected
    parameters, micro = part.fact("parameters"), _micro_batch_tokens(part)
    if real is None or real >= LOW_MFU or not is_on_gpu(part):
        return []
    if part.format.mfu_is_of_own_device:
        return []
    took_ms = micro_batch_ms(part)
    if took_ms is None or took_ms > LONGEST_LAUNCH_MS:
        return []
    is_small = (parameters is not None and parameters < SMALL_MODEL) or (
        micro is not None and micro < SMALL_MICRO_BATCH
    )
    if not is_small:
        return []
    change: Change = {}
    batch, block = part.number_setting("batch_size"), part.number_setting("block_size")
    accumulation = part.number_setting("gradient_accumulation_steps")
    needed = memory_bytes(part, batch * 4) if batch and block else None
    if batch and accumulation in (None, 1.0) and needed is not None and needed < 4e9:
        change["batch_size"] = int(batch * 4)
    if part.setting("compile") is False:
        change["compile"] = True
    return [
        Finding(
            "small-kernels",
            "supported" if took_ms <= LIKELY_LAUNCH_MS else "hypothesis",
            "advice",
            {
                "corrected_mfu": real,
                "parameters": parameters,
                "micro_tokens": micro,
                "device": part.mfu.device,
                "normal_ms": part.timing.normal_ms,
            },
            part.line_of_fact("parameters") + part.line_of_setting("batch_size"),
            [],
            change,
            cost_ms=part.phase_ms("step") * 0.5,
        )
    ]
