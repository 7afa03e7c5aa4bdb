"""The loss in chunks: the same loss and gradients as PyTorch's, and nothing as large as the
logits."""

import pytest
import torch
from torch.nn import functional as F

from stepglass.measure import memory_model
from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models import chunked_loss
from stepglass.models.model import Model
from stepglass.models.registry import model_of

SIZES = {"vocab_size": 300, "block_size": 16, "n_layer": 1, "n_head": 2, "n_embd": 32}
SHAPES = {
    "gpt2": GPTConfig(**SIZES),
    "modern": ModernConfig(**SIZES),
    "modern, tied, dropout": ModernConfig(**SIZES, tie_weights=True, dropout=0.2),
}
IN_FIVE = 4000  # logits at once: the 64 tokens of a batch take five chunks, the last one smaller


@pytest.fixture(params=SHAPES.values(), ids=SHAPES.keys())
def net(request) -> Model:
    torch.manual_seed(1)
    model = model_of(request.param)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model


@pytest.fixture
def batch():
    torch.manual_seed(2)
    return torch.randint(300, (4, 16)), torch.randint(300, (4, 16))


def learn(net, batch, monkeypatch, at_once, dtype=torch.float32):
    """The loss of a batch and the gradients, computed as training does."""
    monkeypatch.setattr(memory_model, "CHUNK_LOGITS", at_once)
    net.zero_grad()
    torch.manual_seed(3)  # of dropout
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16)
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
        loss = net(*batch)
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    return loss.item(), {name: p.grad / scale for name, p in net.named_parameters()}


def difference(one, other) -> float:
    """The largest of all gradients' differences, relative to the gradient."""
    return max(float((one[name] - other[name]).norm() / one[name].norm()) for name in one)


def test_the_loss_is_equal_and_the_gradients_to_a_millionth(net, batch, monkeypatch):
    loss, gradients = learn(net, batch, monkeypatch, 1 << 25)
    in_chunks, of_chunks = learn(net, batch, monkeypatch, IN_FIVE)
    assert in_chunks == pytest.approx(loss, rel=1e-6)
    assert difference(gradients, of_chunks) < 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_half_precision_the_gradients_are_as_exact_as_pytorchs(net, batch, dtype, monkeypatch):
    _, exact = learn(net, batch, monkeypatch, 1 << 25)
    loss, plain = learn(net, batch, monkeypatch, 1 << 25, dtype)
    in_chunks, of_chunks = learn(net, batch, monkeypatch, IN_FIVE, dtype)
    assert in_chunks == pytest.approx(loss, rel=1e-5)
    assert difference(exact, of_chunks) < 1.1 * difference(exact, plain) < 0.1


# torch's compiler makes an instance of it, and then says that nobody should.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.long
def test_the_compiler_makes_one_graph_of_it(monkeypatch):
    monkeypatch.setattr(memory_model, "CHUNK_LOGITS", IN_FIVE)
    torch.manual_seed(1)
    targets = torch.randint(300, (4, 16))
    compiled = torch.compile(chunked_loss.mean_loss, fullgraph=True, backend="aot_eager")
    found = []
    for measure in (chunked_loss.mean_loss, compiled):
        torch.manual_seed(2)
        x, head = torch.randn(4, 16, 32, requires_grad=True), torch.randn(300, 32).requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = measure(x, head, targets)
        (3 * loss).backward()
        found.append((loss, x.grad, head.grad))
    torch.testing.assert_close(*found)


def test_an_evaluation_gets_the_same_loss_for_each_token(net, batch, monkeypatch):
    net.eval()
    with torch.inference_mode():
        logits = net.lm_head(net.hidden(batch[0]))
        expected = F.cross_entropy(logits.flatten(0, 1), batch[1].flatten(), reduction="none")
        monkeypatch.setattr(memory_model, "CHUNK_LOGITS", IN_FIVE)
        torch.testing.assert_close(net(*batch, reduction="none"), expected, atol=1e-5, rtol=1e-5)
        assert net(*batch).item() == pytest.approx(expected.mean().item(), rel=1e-6)


def test_no_tensor_is_as_large_as_the_logits(net, batch, monkeypatch):
    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            sizes = [t.numel() for t in torch.utils._pytree.tree_leaves(out) if torch.is_tensor(t)]
            self.most = max(self.most, *sizes, 0)
            return out

    found = []
    for at_once in (1 << 25, IN_FIVE):
        with Largest() as largest:
            learn(net, batch, monkeypatch, at_once)
        found.append(largest.most)
    assert found[0] == 64 * 300 > found[1]


@pytest.mark.parametrize(
    ("num_tokens", "vocab_size", "expected"), [(12 * 1024, 65, 1), (12 * 1024, 50_304, 19)]
)
def test_characters_are_computed_at_once_and_words_in_chunks(num_tokens, vocab_size, expected):
    x, head = (torch.empty(size, device="meta") for size in [(1, num_tokens, 1), (vocab_size, 1)])
    assert chunked_loss.chunks_of(x, head) == expected
