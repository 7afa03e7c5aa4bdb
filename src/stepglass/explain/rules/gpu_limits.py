"""Properties of a GPU: number formats, memory, and batches large enough to keep it busy."""

from stepglass.explain.study import Part
from stepglass.measure import devices

SMALL_MICRO_BATCH = 16_384  # tokens
# Launching the kernels of a small model takes 10 to 30 ms. A micro-batch that takes much longer
# keeps the GPU busy.
LONGEST_LAUNCH_MS = 100.0
LIKELY_LAUNCH_MS = 30.0


def is_on_gpu(part: Part) -> bool:
    device = part.setting("device") or part.segment.facts.get("device_type") or "cuda"
    return isinstance(device, str) and device.startswith("cuda")


def micro_batch_ms(part: Part) -> float | None:
    """The time of one micro-batch. If the log does not say how many an iteration has, the time of
    the iteration, which is longer."""
    accumulation = part.number_setting("gradient_accumulation_steps") or 1.0
    normal_ms = part.timing.normal_ms
    return None if normal_ms is None else normal_ms / max(accumulation, 1.0)


def better_dtype(part: Part, wanted: str) -> str | None:
    """The wanted number format, if the device supports it or is unknown."""
    known = devices.find_device(part.mfu.device) if part.mfu.device else None
    short = {"bfloat16": "bf16", "float16": "fp16"}[wanted]
    return wanted if known is None or known.tflops.get(short) else None


def memory_bytes(part: Part, batch: float) -> float | None:
    """The memory for training with this batch: weights, gradients, AdamW, activations, logits."""
    names = ("block_size", "n_layer", "n_embd")
    block, layers, width = (part.number_setting(name) for name in names)
    parameters, vocab = part.fact("parameters"), part.fact("vocab_size")
    if not (block and layers and width and parameters and vocab):
        return None
    tokens = batch * block
    return 18 * parameters + 34 * layers * tokens * width + 10 * tokens * vocab + 0.5e9
