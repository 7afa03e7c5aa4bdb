"""A compiled run has two graphs of fixed sizes: one trains, one evaluates."""

import pytest
import torch

from helpers import prepare_tiny, records, train_tiny
from stepglass.train.engines import engine


# torch's compiler makes an instance of it, and then says that nobody should.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"dropout": 0.1, "gradient_accumulation_steps": 3}, marks=pytest.mark.long),
        {"model": "gpt2", "optimizer": "adamw", "dropout": 0.1},
    ],
    ids=["modern", "gpt2"],
)
def test_nothing_is_compiled_again_during_a_run(settings, threads, monkeypatch):
    threads(1)
    prepare_tiny()
    graphs = []
    real_compile = torch.compile

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def compile_and_count(model, **options):
        assert options == {"fullgraph": True, "dynamic": False}
        return real_compile(model, backend=count, **options)

    torch._dynamo.reset()
    monkeypatch.setattr(engine.torch, "compile", compile_and_count)
    # The last batch of an evaluation is smaller than the others.
    monkeypatch.setattr("stepglass.train.evaluate.CPU_TOKENS", 5 * 16)
    assert train_tiny(compile=True, max_iters=8, eval_interval=4, eval_iters=3, **settings) == 0
    torch._dynamo.reset()
    assert not [record for record in records("event") if record["name"] == "compile_failed"]
    assert len(graphs) == 2
