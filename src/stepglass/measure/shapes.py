"""The shapes of models: sizes and arithmetic, without weights and without torch.

    shape = shape_of(cfg, vocab_size)     # from the settings of a run
    shape.num_params(), shape.flops_per_token()
    record = shape_record(shape)          # as a checkpoint stores it

The models in `models/` are built from these. Readers of logs use them as well.
"""

from abc import ABC, abstractmethod
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar

from stepglass.measure.mfu import palm_flops_per_token
from stepglass.settings.train import TrainConfig
from stepglass.units import finite, shown


@dataclass(frozen=True, kw_only=True)
class Shape(ABC):
    """The shape of a model. The shape and the weights are enough to rebuild the model."""

    name: ClassVar[str]  # of the model, in settings and checkpoints
    block_prefix: ClassVar[str]  # the prefix of the names of parameters inside the blocks
    token_table: ClassVar[str]  # the name of the token embedding

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int

    def __post_init__(self) -> None:
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a whole number above 0, not {shown(value)}")

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def kv_heads(self) -> int:
        """The number of key and value heads."""
        return self.n_head

    @property
    @abstractmethod
    def dropout(self) -> float:
        """The share of activations that training sets to zero. A field of every model's shape."""

    @abstractmethod
    def num_params(self) -> int:
        """The number of parameters, computed without building the model. A tied head counts
        once."""

    @abstractmethod
    def num_looked_up(self) -> int:
        """The number of parameters in tables that are only looked up, not multiplied."""

    def num_params_shown(self) -> int:
        """The number of parameters that a run prints."""
        return self.num_params()

    def flops_per_token(self) -> int:
        """FLOPs of a forward and a backward pass, by the formula in `measure/mfu.py`."""
        return palm_flops_per_token(
            num_params=self.num_params() - self.num_looked_up(),
            n_layer=self.n_layer,
            width=self.n_head * self.head_dim,
            num_tokens=self.block_size,
        )


@dataclass(frozen=True, kw_only=True)
class GPTConfig(Shape):
    """The shape of a GPT-2."""

    name = "gpt2"
    block_prefix = "transformer.h."
    token_table = "transformer.wte.weight"

    dropout: float = 0.0
    bias: bool = False
    gelu: str = "exact"  # or "tanh", the approximation that OpenAI's GPT-2 was trained with

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gelu not in ("exact", "tanh"):
            raise ValueError(f"gelu must be exact or tanh, found {shown(self.gelu)}")
        if self.n_embd % self.n_head:
            raise ValueError(f"n_head={self.n_head} does not divide n_embd={self.n_embd}")

    def num_params(self) -> int:
        C = self.n_embd
        matrices = 12 * C * C  # qkv 3, attention output 1, MLP 4 + 4
        norms = 2 * C
        biases = (3 * C + C + 4 * C + C + 2 * C) if self.bias else 0
        final_norm = C * (2 if self.bias else 1)
        return (
            self.n_layer * (matrices + norms + biases)
            + final_norm
            + (self.vocab_size + self.block_size) * C
        )

    def num_looked_up(self) -> int:
        return self.block_size * self.n_embd  # positions; the token table is also the head

    def num_params_shown(self) -> int:
        """As nanoGPT counts: without the position table."""
        return self.num_params() - self.block_size * self.n_embd


@dataclass(frozen=True, kw_only=True)
class ModernConfig(Shape):
    """The shape of a modern model."""

    name = "modern"
    block_prefix = "layers."
    token_table = "embed_tokens.weight"

    n_kv_head: int = 0  # 0: the same as n_head
    n_head_dim: int = 0  # 0: n_embd / n_head
    n_inner: int = 0  # 0: 8/3 n_embd, rounded up to a multiple of 32
    tie_weights: bool = False
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-6
    qk_norm: bool = True  # False: a Llama
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n_head_dim and self.n_embd % (2 * self.n_head):
            raise ValueError(
                f"n_embd={self.n_embd} must be an even multiple of n_head={self.n_head}"
            )
        if self.n_head_dim < 0 or self.n_head_dim % 2:
            raise ValueError(f"n_head_dim must be even, found {self.n_head_dim}")
        if self.n_kv_head < 0 or self.n_head % self.kv_heads:
            raise ValueError(f"n_kv_head={self.n_kv_head} does not divide n_head={self.n_head}")
        if self.n_inner < 0:
            raise ValueError(f"n_inner must not be negative, found {self.n_inner}")
        if self.rope_theta <= 0 or self.norm_eps <= 0:
            raise ValueError(
                f"rope_theta and norm_eps must be above 0, found {self.rope_theta} and "
                f"{self.norm_eps}"
            )

    @property
    def head_dim(self) -> int:
        return self.n_head_dim or super().head_dim

    @property
    def kv_heads(self) -> int:
        return self.n_kv_head or self.n_head

    @property
    def inner(self) -> int:
        return self.n_inner or -(-8 * self.n_embd // (3 * 32)) * 32

    def num_params(self) -> int:
        C, D = self.n_embd, self.head_dim
        matrices = (2 * self.n_head + 2 * self.kv_heads) * D * C + 3 * C * self.inner
        norms = 2 * C + (2 * D if self.qk_norm else 0)
        tables = self.vocab_size * C * (1 if self.tie_weights else 2)
        return self.n_layer * (matrices + norms) + C + tables

    def num_looked_up(self) -> int:
        """The token table, unless it is also the head."""
        return 0 if self.tie_weights else self.vocab_size * self.n_embd


SHAPES: dict[str, type[Shape]] = {shape.name: shape for shape in (GPTConfig, ModernConfig)}


def shape_of(cfg: TrainConfig, vocab_size: int) -> Shape:
    """The shape for the settings of a run. The settings have the same names as its fields."""
    shape = SHAPES[cfg.model]
    asked = {
        field.name: getattr(cfg, field.name) for field in fields(shape) if hasattr(cfg, field.name)
    }
    return shape(vocab_size=vocab_size, **asked)


def shape_record(shape: Shape) -> dict[str, Any]:
    """A shape in the form that checkpoints store."""
    return {"model": shape.name, **asdict(shape)}


def shape_from_record(record: Any) -> Shape:
    """The shape in a checkpoint. The first checkpoints had no model name, because GPT-2 was the
    only model. Raises ValueError or TypeError if the record is not a shape."""
    if not isinstance(record, dict):
        raise ValueError(f"model_config is {shown(record)}")
    values = {key: value for key, value in record.items() if key != "model"}
    name = record.get("model", "gpt2")
    if not isinstance(name, str) or name not in SHAPES:
        raise ValueError(f"model is {shown(name)}")
    shape = SHAPES[name]
    for field in fields(shape):
        if field.name not in values and field.default is MISSING:
            raise ValueError(f"{field.name} is missing")
        value = values.get(field.name, field.default)
        if type(value) is not field.type and not (field.type is float and type(value) is int):
            raise ValueError(f"{field.name} is {shown(value)}")
        if field.type is float and finite(value) is None:
            raise ValueError(f"{field.name} is {shown(value)}")
    return shape(**values)
