"""Many small micro-batches where fewer larger ones would fit into memory."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gpu_limits import (
    LONGEST_LAUNCH_MS,
    SMALL_MICRO_BATCH,
    is_on_gpu,
    memory_bytes,
    micro_batch_ms,
)
from stepglass.explain.study import Part
from stepglass.measure import devices


def find_accumulation_waste(part: Part) -> list[Finding]:
    accumulation = part.number_setting("gradient_accumulation_steps")
    batch, block = part.number_setting("batch_size"), part.number_setting("block_size")
    parameters = part.fact("parameters")
    if not accumulation or accumulation < 8 or not batch or not block or not parameters:
        return []
    if not is_on_gpu(part) or batch * block >= SMALL_MICRO_BATCH:
        return []
    if (micro_batch_ms(part) or 0.0) > LONGEST_LAUNCH_MS:
        return []  # the GPU is busy, so larger batches would hardly be faster
    # With 8 GPUs, nanoGPT wants a multiple of 8, so a multiple stays one.
    keep = 8 if accumulation % 8 == 0 else 1
    factors = [k for k in (2, 4, 5, 8, 10) if accumulation % (k * keep) == 0]
    if not factors:
        return []
    factor = max(factors)
    needed = memory_bytes(part, batch * factor)
    if needed is None:
        return []
    known = devices.find_device(part.mfu.device) if part.mfu.device else None
    room = known.memory_bytes if known else None
    if needed > (0.8 * room if room else 4e9):
        return []
    return [
        Finding(
            "accumulation-waste",
            "supported" if room else "hypothesis",
            "advice",
            {
                "accumulation": int(accumulation),
                "batch": int(batch),
                "micro_tokens": batch * block,
                "memory_bytes": needed,
                "tokens_per_iter": part.tokens_per_iter,
            },
            part.line_of_setting("gradient_accumulation_steps")
            + part.line_of_setting("batch_size"),
            [],
            {
                "batch_size": int(batch * factor),
                "gradient_accumulation_steps": int(accumulation // factor),
            },
            cost_ms=part.phase_ms("step") * 0.3,
        )
    ]
