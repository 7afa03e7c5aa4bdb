"""Out-of-memory errors, turned into one line that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from stepglass.errors import DeviceError
from stepglass.hardware.device import Device
from stepglass.measure.console_lines import no_memory_text
from stepglass.measure.event_details import OutOfMemoryEvent
from stepglass.measure.memory_model import same_rows
from stepglass.settings.train import TrainConfig
from stepglass.train.run import Run

# Of PyTorch's allocators, of cuBLAS, and of an Apple GPU's largest buffer.
TEXTS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "Invalid buffer size",
)


@contextmanager
def naming_memory_errors(run: Run) -> Iterator[None]:
    """Turn an out-of-memory error of torch into a DeviceError that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        run.event(OutOfMemoryEvent(message=str(error)[:500]))
        raise memory_error(run.device, run.cfg, f"at step {run.state.step}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """True for every kind of error that torch raises when memory runs out."""
    if not isinstance(error, RuntimeError):
        return isinstance(error, MemoryError)
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in TEXTS)


def memory_error(device: Device, cfg: TrainConfig, when: str) -> DeviceError:
    """The out-of-memory error for the user, with smaller settings to try."""
    if cfg.batch_size > 1:
        rows = cfg.batch_size * cfg.gradient_accumulation_steps
        batch_size, steps = same_rows(rows, cfg.batch_size // 2)
        less = f"--batch_size={batch_size} --gradient_accumulation_steps={steps}"
    else:
        less = f"--block_size={max(1, cfg.block_size // 2)}, or lower --n_layer or --n_embd"
    sizes = f"batch_size={cfg.batch_size} and block_size={cfg.block_size}"
    return DeviceError(no_memory_text(f"{device.type} ({device.name})", when, sizes, less))
