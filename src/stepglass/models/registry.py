"""All models by name."""

from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models.gpt2 import GPT
from stepglass.models.model import Model
from stepglass.models.modern import Modern

MODELS: dict[str, type[Model]] = {GPTConfig.name: GPT, ModernConfig.name: Modern}


def model_of(shape: Shape) -> Model:
    """A new model of this shape."""
    return MODELS[shape.name](shape)
