"""One of the two models: by the settings of a run, or by what a checkpoint says it holds."""

from dataclasses import MISSING, asdict, fields
from typing import Any

from stepglass.models.gpt2 import GPT, GPTConfig
from stepglass.models.modern import Modern, ModernConfig
from stepglass.settings.train import TrainConfig
from stepglass.units import finite, shown

Model = GPT | Modern
Shape = GPTConfig | ModernConfig


def shape_of(cfg: TrainConfig, vocab_size: int) -> Shape:
    """The shape a run's settings ask for."""
    if cfg.model == "gpt2":
        return GPTConfig(
            vocab_size=vocab_size,
            block_size=cfg.block_size,
            n_layer=cfg.n_layer,
            n_head=cfg.n_head,
            n_embd=cfg.n_embd,
            dropout=cfg.dropout,
            bias=cfg.bias,
        )
    return ModernConfig(
        vocab_size=vocab_size,
        block_size=cfg.block_size,
        n_layer=cfg.n_layer,
        n_head=cfg.n_head,
        n_embd=cfg.n_embd,
        n_kv_head=cfg.n_kv_head,
        n_inner=cfg.n_inner,
        tie_weights=cfg.tie_weights,
        dropout=cfg.dropout,
    )


def build(shape: Shape) -> Model:
    return GPT(shape) if isinstance(shape, GPTConfig) else Modern(shape)


def as_record(shape: Shape) -> dict[str, Any]:
    """A shape as checkpoints keep it."""
    name = "gpt2" if isinstance(shape, GPTConfig) else "modern"
    return {"model": name, **asdict(shape)}


def from_record(record: Any) -> Shape:
    """The shape a checkpoint was written with. The first ones held no other model than GPT-2.
    Raises ValueError or TypeError for what is none."""
    if not isinstance(record, dict):
        raise ValueError(f"model_config is {shown(record)}")
    values = {key: value for key, value in record.items() if key != "model"}
    model = record.get("model", "gpt2")
    kinds: dict[Any, type[Shape]] = {"gpt2": GPTConfig, "modern": ModernConfig}
    shape = kinds.get(model)
    if shape is None:
        raise ValueError(f"model is {shown(model)}")
    for field in fields(shape):
        if field.name not in values and field.default is MISSING:
            raise ValueError(f"{field.name} is missing")
        value = values.get(field.name, field.default)
        if type(value) is not field.type and not (field.type is float and type(value) is int):
            raise ValueError(f"{field.name} is {shown(value)}")
        if field.type is float and finite(value) is None:
            raise ValueError(f"{field.name} is {shown(value)}")
    return shape(**values)
