"""What people published: the points that the models of time and memory are held against.

Every point is a public log or figure, with its source. `error` says how far the model is off;
docs/hardware.md shows all of them, and a test keeps each within 25 %.
"""

from dataclasses import dataclass

from stepglass.measure.devices import device_named
from stepglass.measure.memory_model import memory_of_nanogpt
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.measure.time_model import LAYER_BYTES, Chip, chip_of, cpu_chip, predict_update

MOST_ERROR = 0.25

GPT2 = GPTConfig(vocab_size=50304, block_size=1024, n_layer=12, n_head=12, n_embd=768)
CHAR = GPTConfig(vocab_size=65, block_size=256, n_layer=6, n_head=6, n_embd=384, dropout=0.2)
SMALL_CHAR = GPTConfig(vocab_size=50257, block_size=64, n_layer=4, n_head=4, n_embd=64)
# nanochat's depth 20 and 12: without biases, head of its own, an MLP with as many weights as ours.
D20 = ModernConfig(vocab_size=65536, block_size=2048, n_layer=20, n_head=10, n_embd=1280)
D12 = ModernConfig(vocab_size=32768, block_size=2048, n_layer=12, n_head=6, n_embd=768)
QUICK = ModernConfig(vocab_size=84, block_size=64, n_layer=3, n_head=4, n_embd=128, n_inner=256)
NANOCHAT_BYTES = 150.0  # instead of LAYER_BYTES: it keeps weights and residual stream in bfloat16
OUR_PEAK = 166e9  # of two cores of a shared server, measured by a run


@dataclass(frozen=True)
class TimePoint:
    """A published time of an update on one device."""

    source: str
    device: str  # in the device table, or cpu
    model: str
    shape: Shape
    batch_size: int
    accumulation: int
    found_ms: float
    dtype: str = "bfloat16"
    does_compile: bool = True
    uses_muon: bool = False
    layer_bytes: float = LAYER_BYTES

    @property
    def chip(self) -> Chip:
        if self.device == "cpu":
            return cpu_chip(OUR_PEAK)
        chip = chip_of(device_named(self.device), self.dtype)
        assert chip is not None, self.device
        return chip

    @property
    def predicted_ms(self) -> float:
        return predict_update(
            self.shape,
            self.chip,
            batch_size=self.batch_size,
            accumulation=self.accumulation,
            does_compile=self.does_compile,
            uses_muon=self.uses_muon,
            layer_bytes=self.layer_bytes,
        ).total_ms

    @property
    def tokens(self) -> int:
        return self.batch_size * self.accumulation * self.shape.block_size

    @property
    def error(self) -> float:
        return self.predicted_ms / self.found_ms - 1


def _at_rate(tokens: int, tokens_per_s: float) -> float:
    return 1000 * tokens / tokens_per_s


TIMES = (
    TimePoint("nanoGPT's transformer_sizing.ipynb", "A100 40GB", "GPT-2 124M", GPT2, 20, 5, 755.0),
    TimePoint("nanoGPT #110, one of eight", "A100 40GB", "GPT-2 124M", GPT2, 12, 5, 562.0),
    TimePoint("nanoGPT PR #225 and #182", "RTX 4090", "GPT-2 124M", GPT2, 12, 40, 4627.0),
    TimePoint(
        "nanoGPT #215", "V100 32GB", "GPT-2 124M", GPT2, 12, 5, 1097.0, dtype="float16"
    ),
    TimePoint("nanoGPT PR #464, its mfu", "H100", "GPT-2 124M", GPT2, 12, 40, 1295.0),
    TimePoint("nanoGPT #178", "A100 40GB", "char 10.7M", CHAR, 64, 40, 893.8),
    TimePoint("nanoGPT PR #225", "RTX A6000", "char 10.7M", CHAR, 64, 40, 1608.0),
    TimePoint("nanoGPT PR #225, its mfu", "RTX A6000", "char 10.7M", CHAR, 64, 1, 46.7),
    TimePoint(
        "nanochat PR #147, one of eight", "A100 80GB", "nanochat d20", D20, 32, 1,
        _at_rate(32 * 2048, 66_000), layer_bytes=NANOCHAT_BYTES,
    ),
    TimePoint(
        "nanochat #157", "RTX 4090", "nanochat d20", D20, 4, 64,
        _at_rate(4 * 64 * 2048, 38_056), layer_bytes=NANOCHAT_BYTES,
    ),
    TimePoint(
        "a blog's run of nanochat", "RTX 4070", "nanochat d12", D12, 4, 64,
        _at_rate(4 * 64 * 2048, 55_700), layer_bytes=NANOCHAT_BYTES,
    ),
    TimePoint(
        "a public log of a Mac mini", "M4", "char 10.7M", CHAR, 64, 1, 770.0,
        dtype="float32", does_compile=False,
    ),
    TimePoint(
        "simonw/public-notes #11", "M2", "4 x 64, vocabulary 50257", SMALL_CHAR, 8, 1, 130.0,
        dtype="float32", does_compile=False,
    ),
    TimePoint(
        "our README's run, measured", "cpu", "quick 0.5M", QUICK, 24, 1, 86.6,
        dtype="float32", does_compile=False, uses_muon=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class MemoryPoint:
    """A published use of memory by nanoGPT on a GPU, in bfloat16 and compiled."""

    source: str
    model: str
    shape: GPTConfig
    batch_size: int
    found_bytes: float

    @property
    def predicted_bytes(self) -> float:
        return memory_of_nanogpt(self.shape, batch_size=self.batch_size).total

    @property
    def error(self) -> float:
        return self.predicted_bytes / self.found_bytes - 1


MEMORIES = (MemoryPoint("nanoGPT #303, 60 % of 20 GB", "GPT-2 124M", GPT2, 12, 12e9),)


def largest_time_error() -> float:
    return max(abs(point.error) for point in TIMES)
