"""How long an update takes: a few constants, fitted to what people published.

    chip = chip_of(device_named("4090"), "bfloat16")
    predict_update(shape, chip, batch_size=12, accumulation=40, does_compile=True).total_ms

A micro-batch takes the time of its matrix products plus the time to move activations through
memory, but at least the time to launch its kernels. An update adds the optimizer. The constants
were fitted to the logs in calibration.py, most of them nanoGPT's; nothing was run on a GPU here.
Those of a CPU were fitted to updates that benchmarks/time_model.py has measured.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from stepglass.measure.devices import KnownDevice
from stepglass.measure.shapes import Shape

Kind = Literal["cuda", "mps", "cpu"]

# The width of a model at which its matrix products reach half of the peak. GeForce cards multiply
# with FP32 accumulation at half of what their tensor cores could do, so their peak is easy to
# reach; the cores of an A100 wait for data.
HALF_WIDTH = {"full-rate": 400.0, "half-rate": 60.0, "mps": 150.0, "cpu": 120.0}
LEAST_HALF_WIDTH, MOST_HALF_WIDTH, HALVINGS = 10.0, 2000.0, 20
CPU_BEST = 0.95  # of the peak: what the widest products of a CPU reach
CPU_QUERIES = 128  # at once in attention on a CPU; what comes after them is not computed
FILL_TOKENS = 512.0  # a micro-batch of so many keeps half of a GPU's cores busy
# Bytes that move per token, for each layer and unit of width: activations, written and read several
# times, forwards and backwards. Half precision by autocast, the residual stream in float32.
LAYER_BYTES = 480.0
FLOAT32_TIMES = 4 / 3  # more, if everything is float32
EAGER_TIMES = 2.0  # more, if nothing is fused: compiling then saves 20 to 35 %
LOGIT_BYTES = 12.0  # per token and entry of the vocabulary
ADAMW_BYTES = 28.0  # per parameter: reads weight, gradient and both moments, writes three of them
MUON_FLOPS = 15.0  # per parameter of a matrix and unit of its width
LAUNCHES = {True: 30, False: 120}  # kernels per layer of a micro-batch, compiled or not
OTHER_LAUNCHES = 60  # embedding, head, loss
UNFUSED_UPDATE = 15 * 6  # kernels per layer of an update that is not fused
LAUNCH_S: dict[Kind, float] = {"cuda": 6e-6, "mps": 130e-6, "cpu": 5e-6}
HOST_BYTES_PER_S = 20e9  # of a desktop's main memory, as one process sees it
FORWARD_SHARE = 0.4  # of a micro-batch's time: an evaluation needs no backward pass
COPY_BYTES_PER_S = 5e9  # from a device into main memory: training waits for it
DISK_BYTES_PER_S = 0.5e9  # a checkpoint that is written while training waits, as nanoGPT does


@dataclass(frozen=True)
class Chip:
    """What the time depends on."""

    kind: Kind
    peak_flops: float  # of matrix products in the run's number format
    bytes_per_s: float | None  # None: part of the efficiency, as on a CPU
    half_width: float
    is_half_precision: bool
    best: float = 1.0  # the share of the peak that very wide products reach

    def efficiency(self, width: float) -> float:
        """The share of the peak that matrix products of this width reach.

        >>> round(Chip("cuda", 312e12, 1.6e12, 400.0, True).efficiency(768), 2)
        0.66
        """
        return self.best * width / (width + self.half_width)


@dataclass(frozen=True)
class UpdateTime:
    """The time of one update in milliseconds, by cause. `busy_ms` is all micro-batches together."""

    matrix_ms: float
    memory_ms: float
    launch_ms: float  # if it is longer than the two above, it counts instead of them
    optimizer_ms: float

    @property
    def busy_ms(self) -> float:
        return max(self.matrix_ms + self.memory_ms, self.launch_ms)

    @property
    def is_launch_bound(self) -> bool:
        return self.launch_ms > self.matrix_ms + self.memory_ms

    @property
    def total_ms(self) -> float:
        return self.busy_ms + self.optimizer_ms


def chip_of(known: KnownDevice, dtype: str) -> Chip | None:
    """The chip of a row of the device table. None if it has no figure for this number format."""
    kind: Kind = "mps" if known.is_apple else "cuda"
    formats = {"bfloat16": ("bf16",), "float16": ("fp16",), "float32": ("tf32", "fp32")}[dtype]
    if known.is_apple:
        formats = ("fp32",)  # torch computes in float32 there, whatever is asked for
    peaks = [known.peak_flops(each) for each in formats if known.peak_flops(each)]
    if not peaks or peaks[0] is None:
        return None
    rate = "half-rate" if known.half_over_shader == 2 else "full-rate"
    half_width = HALF_WIDTH["mps" if known.is_apple else rate]
    return Chip(kind, peaks[0], known.bytes_per_s, half_width, dtype != "float32")


def cpu_chip(peak_flops: float) -> Chip:
    """A CPU whose peak was measured."""
    return Chip("cpu", peak_flops, None, HALF_WIDTH["cpu"], is_half_precision=False, best=CPU_BEST)


def fitted_to(update_ms: float, chip: Chip, predict: Callable[[Chip], UpdateTime]) -> Chip:
    """The chip for which `predict` gives a measured time. The peak of a CPU says little about
    narrow matrices: of two servers, one reached half of it at a width of 120, and the other at 60.
    So the half-width is fitted. If no half-width explains the time, the peak was measured wrongly.
    """
    least, most = LEAST_HALF_WIDTH, MOST_HALF_WIDTH
    for _ in range(HALVINGS):
        fitted = replace(chip, half_width=(least + most) / 2)
        expected = predict(fitted)
        if expected.total_ms < update_ms:
            least = fitted.half_width
        else:
            most = fitted.half_width
    if expected.is_launch_bound:  # then its time says nothing about the arithmetic
        return chip
    peak_times = expected.total_ms / max(update_ms, 1e-3)
    return replace(fitted, peak_flops=peak_times * fitted.peak_flops)


def computed_per_token(shape: Shape, kind: Kind) -> float:
    """The floating-point operations for a token. By the formula of MFU, except on a CPU: there,
    attention leaves out most of what comes later in a long sequence."""
    if kind != "cpu":
        return shape.flops_per_token()
    blocks = max(1.0, shape.block_size / CPU_QUERIES)
    left_out = 1 - (blocks + 1) / (2 * blocks)
    attention = 12 * shape.n_layer * shape.n_embd * shape.block_size
    return shape.flops_per_token() - left_out * attention


def predict_update(
    shape: Shape,
    chip: Chip,
    *,
    batch_size: int,
    accumulation: int,
    does_compile: bool,
    uses_muon: bool = False,
    layer_bytes: float = LAYER_BYTES,
) -> UpdateTime:
    """The time of an update of `accumulation` micro-batches."""
    tokens = batch_size * shape.block_size * accumulation
    rate = chip.peak_flops * chip.efficiency(shape.n_embd)
    at_once = batch_size * shape.block_size
    filled = at_once / (at_once + FILL_TOKENS) if chip.kind == "cuda" else 1.0
    moved = layer_bytes * shape.n_layer * shape.n_embd
    moved *= (1.0 if chip.is_half_precision else FLOAT32_TIMES) * (
        1.0 if does_compile else EAGER_TIMES
    )
    moved += LOGIT_BYTES * shape.vocab_size
    launches = LAUNCHES[does_compile] * shape.n_layer + OTHER_LAUNCHES
    memory_s = 0.0 if chip.bytes_per_s is None else tokens * moved / chip.bytes_per_s
    return UpdateTime(
        matrix_ms=1000 * tokens * computed_per_token(shape, chip.kind) / (rate * filled),
        memory_ms=1000 * memory_s,
        launch_ms=1000 * accumulation * launches * LAUNCH_S[chip.kind],
        optimizer_ms=1000 * _update_s(shape, chip, rate, uses_muon),
    )


def _update_s(shape: Shape, chip: Chip, rate: float, uses_muon: bool) -> float:
    traffic_s = ADAMW_BYTES * shape.num_params() / (chip.bytes_per_s or HOST_BYTES_PER_S)
    in_tables = 2 * shape.vocab_size * shape.n_embd
    matrices = max(0, shape.num_params() - in_tables)
    # Muon's products are float32, or TF32, which has half the rate of half precision.
    slower = 2.0 if chip.is_half_precision else 1.0
    muon_s = slower * MUON_FLOPS * matrices * shape.n_embd / rate if uses_muon else 0.0
    kernels = UNFUSED_UPDATE * shape.n_layer if chip.kind == "mps" else 0
    return traffic_s + muon_s + kernels * LAUNCH_S[chip.kind]


def evaluation_in_updates(eval_sequences: float, sequences: float) -> float:
    """How many updates an evaluation takes as long as, by the sequences that each reads.

    >>> evaluation_in_updates(4800, 480)
    4.0
    """
    return FORWARD_SHARE * eval_sequences / sequences


def save_wait_ms(state_bytes: float, in_background: bool) -> float:
    """How long training waits for a checkpoint."""
    return 1000 * state_bytes / (COPY_BYTES_PER_S if in_background else DISK_BYTES_PER_S)
