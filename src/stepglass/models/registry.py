"""All models by name. Makes a model from the settings of a run or from a checkpoint."""

from dataclasses import MISSING, asdict, fields
from typing import Any

from stepglass.models.gpt2 import GPT
from stepglass.models.model import Model, Shape
from stepglass.models.modern import Modern
from stepglass.settings.train import TrainConfig
from stepglass.units import finite, shown

MODELS: dict[str, type[Model]] = {
    GPT.shape_class.name: GPT,
    Modern.shape_class.name: Modern,
}


def shape_of(cfg: TrainConfig, vocab_size: int) -> Shape:
    """The shape for the settings of a run. The settings have the same names as its fields."""
    shape = MODELS[cfg.model].shape_class
    asked = {
        field.name: getattr(cfg, field.name) for field in fields(shape) if hasattr(cfg, field.name)
    }
    return shape(vocab_size=vocab_size, **asked)


def model_of(shape: Shape) -> Model:
    """A new model of this shape."""
    return MODELS[shape.name](shape)


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
    if not isinstance(name, str) or name not in MODELS:
        raise ValueError(f"model is {shown(name)}")
    shape = MODELS[name].shape_class
    for field in fields(shape):
        if field.name not in values and field.default is MISSING:
            raise ValueError(f"{field.name} is missing")
        value = values.get(field.name, field.default)
        if type(value) is not field.type and not (field.type is float and type(value) is int):
            raise ValueError(f"{field.name} is {shown(value)}")
        if field.type is float and finite(value) is None:
            raise ValueError(f"{field.name} is {shown(value)}")
    return shape(**values)
