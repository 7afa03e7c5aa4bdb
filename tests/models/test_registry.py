"""Models by name: what the trainer takes from a model's shape is true of the model itself."""

import pytest

from stepglass.measure import shapes
from stepglass.models import registry
from stepglass.settings.train import DEFAULT_OPTIMIZER, TRAIN_SETTINGS, TrainConfig

SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 8}


def new_model(name: str):
    return registry.model_of(shapes.shape_of(TrainConfig(model=name, **SIZES), vocab_size=11))


def test_every_model_is_a_choice_and_has_an_optimizer():
    choices = next(row[1] for row in TRAIN_SETTINGS.table() if row[0] == "model")
    assert (
        set(choices.split(" or "))
        == set(registry.MODELS)
        == set(shapes.SHAPES)
        == set(DEFAULT_OPTIMIZER)
    )


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_shape_knows_where_its_models_blocks_and_tokens_are(name):
    model = new_model(name)
    parameters = dict(model.named_parameters())
    shape = model.config
    inside = [key for key in parameters if key.startswith(shape.block_prefix)]
    assert {key.removeprefix(shape.block_prefix)[0] for key in inside} == {"0", "1"}
    assert parameters[shape.token_table].shape == (11, 16)
    assert shape.token_table not in inside
    assert shape.num_params() == sum(p.numel() for p in parameters.values())


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_shape_comes_back_from_its_record(name):
    shape = new_model(name).config
    assert shapes.shape_from_record(shapes.shape_record(shape)) == shape


def test_a_record_without_a_name_is_a_gpt2s():
    record = shapes.shape_record(new_model("gpt2").config)
    del record["model"]
    assert shapes.shape_from_record(record).name == "gpt2"


@pytest.mark.parametrize("name", ["gpt3", None, ["gpt2"]])
def test_a_record_of_an_unknown_model_is_refused(name):
    record = shapes.shape_record(new_model("gpt2").config) | {"model": name}
    with pytest.raises(ValueError, match="model is"):
        shapes.shape_from_record(record)
