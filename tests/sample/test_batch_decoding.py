"""Sequences that are decoded together say what each would say alone."""

import pytest
import torch

from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models.batch_decoding import DecodingBatch
from stepglass.models.decoding import Draw, generate
from stepglass.models.gpt2 import GPT
from stepglass.models.kv_cache import SlotCache
from stepglass.models.model import Model
from stepglass.models.modern import Modern

SIZES = {"vocab_size": 40, "block_size": 16, "n_layer": 2, "n_head": 4, "n_embd": 32}
PROMPTS = [[1], [2, 3, 4], list(range(16)), [7] * 40]
MODELS = ["gpt2", "modern", "grouped"]


def net(name: str) -> Model:
    torch.manual_seed(3)
    if name == "gpt2":
        model: Model = GPT(GPTConfig(**SIZES))
    else:
        model = Modern(ModernConfig(**SIZES, n_kv_head=2 if name == "grouped" else 4))
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
        parameter.data *= 3  # a model that has opinions
    return model.eval()


def together(model: Model, draws: list[Draw], num_tokens: int) -> list[list[int]]:
    batch = DecodingBatch(model)
    sequences = [batch.add(p, draw) for p, draw in zip(PROMPTS, draws, strict=True)]
    found: dict[int, list[int]] = {id(sequence): [] for sequence in sequences}
    for _ in range(num_tokens):
        for sequence, token in batch.step():
            found[id(sequence)].append(token)
    return [found[id(sequence)] for sequence in sequences]


def alone(model: Model, draws: list[Draw], num_tokens: int) -> list[list[int]]:
    return [
        list(generate(model, p, max_new_tokens=num_tokens, draw=draw))
        for p, draw in zip(PROMPTS, draws, strict=True)
    ]


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_writes_what_each_sequence_writes_alone_beyond_the_window_too(name):
    greedy = [Draw(0)] * 4
    drawn = [Draw(1.0, seed=1), Draw(0.7, top_k=5, seed=2), Draw(1.0, top_p=0.5), Draw(0)]
    model = net(name)
    for draws in (greedy, drawn):
        assert together(model, draws, 40) == alone(model, draws, 40)


def test_a_cache_that_mixes_the_rows_up_would_be_noticed(monkeypatch):
    model, draws = net("modern"), [Draw(0)] * 4
    prepare = SlotCache.prepare

    def without_mask(self: SlotCache) -> None:
        prepare(self)
        self.mask = None

    monkeypatch.setattr(SlotCache, "prepare", without_mask)
    assert together(model, draws, 10) != alone(model, draws, 10)


def test_sequences_join_and_leave_while_others_go_on():
    model, want = net("modern"), alone(net("modern"), [Draw(0)] * 4, 12)
    batch = DecodingBatch(model)
    first, second = batch.add(PROMPTS[0], Draw(0)), batch.add(PROMPTS[1], Draw(0))
    found = {id(first): [], id(second): []}
    for step in range(12):
        if step == 4:
            batch.remove(first)  # its row goes to the second
            third = batch.add(PROMPTS[2], Draw(0))
            found[id(third)] = []
        for sequence, token in batch.step():
            found[id(sequence)].append(token)
    assert len(batch) == 2
    assert found[id(first)] == want[0][:4]
    assert found[id(second)] == want[1]
    assert found[id(third)] == want[2][:8]
    batch.remove(second)
    batch.remove(third)
    assert batch.step() == []
    batch.add(PROMPTS[3], Draw(0))
    assert [token for _, token in batch.step()] == want[3][:1]


def test_memory_grows_with_the_texts_and_not_beyond_the_window():
    batch = DecodingBatch(net("gpt2"))
    batch.add([1], Draw(0))
    for _ in range(40):
        batch.step()
    assert batch._slots._keys.shape[1:4:2] == (1, SIZES["block_size"])
