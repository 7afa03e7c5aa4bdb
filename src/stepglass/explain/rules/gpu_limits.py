"""Properties of a GPU: number formats, memory, and batches large enough to keep it busy."""

from stepglass.explain.study import Part
from stepglass.measure import devices

SMALL_MICRO_BATCH = 16_384  # tokens


def is_on_gpu(part: Part) -> bool:
    device = part.setting("device") or part.segment.facts.get("device_type") or "cuda"
    return isinstance(device, str) and device.startswith("cuda")


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
