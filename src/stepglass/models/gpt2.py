"""GPT-2, as OpenAI published it and nanoGPT trains it, with their parameter names.

    model = GPT(GPTConfig(vocab_size=65, block_size=64, n_layer=4, n_head=4, n_embd=128))
    loss = model(idx, targets)               # training: mean loss over all tokens
    logits = model.next_logits(idx, cache)   # sampling: logits of the last position only

Shapes: B batch, T tokens, C = n_embd, H heads, D = C / H, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stepglass.measure.shapes import GPTConfig
from stepglass.models.cpu_ops import attention
from stepglass.models.kv_cache import KVCache, SlotCache
from stepglass.models.model import Model

# torch's names for the two GELUs: nanoGPT has the exact one, OpenAI's weights were trained with the
# other.
GELU = {"exact": "none", "tanh": "tanh"}


def drop(x: Tensor, share: float) -> Tensor:
    """Dropout. If `share` is 0, torch is not called, because the call takes longer than the
    arithmetic of a small model."""
    return F.dropout(x, share) if share > 0 else x


class LayerNorm(nn.Module):
    """LayerNorm with an optional bias."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.shape = (width,)
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        # Not F.layer_norm, to save the time of its Python code.
        return torch.layer_norm(x, self.shape, self.weight, self.bias)


class CausalSelfAttention(nn.Module):
    """Every token attends to itself and to the tokens before it."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head = config.n_head
        self.dropout = config.dropout
        self.layer = layer

    def forward(self, x: Tensor, cache: KVCache | None) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        y = attention(q, k, v, self.dropout if self.training else 0.0)  # (B, H, T, D)
        y = self.c_proj(y.transpose(1, 2).reshape(B, T, C))
        return drop(y, self.dropout) if self.training else y


class GPT2MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each token separately."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.gelu = GELU[config.gelu]
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        y = self.c_proj(F.gelu(self.c_fc(x), approximate=self.gelu))
        return drop(y, self.dropout) if self.training else y


class GPT2Block(nn.Module):
    """Attention, then the MLP, each with a residual connection."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, config.bias)
        self.attn = CausalSelfAttention(config, layer)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = GPT2MLP(config)

    def forward(self, x: Tensor, cache: KVCache | None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        x = x + self.mlp(self.ln_2(x))
        return x


class Transformer(nn.Module):
    """Holds all parts except the head, under GPT-2's names."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList(GPT2Block(config, layer) for layer in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd, config.bias)


class GPT(Model):
    """The whole model."""

    config: GPTConfig

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        # Tied weights: the token embedding is also the head.
        self.lm_head.weight = self.transformer.wte.weight
        self.apply(_init_weights)
        for name, parameter in self.named_parameters():
            # The residual stream is a sum of 2L such layers. As in GPT-2, their weights are scaled
            # down so that the sum keeps its size.
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * config.n_layer))

    def hidden(self, idx: Tensor, cache: KVCache | None = None) -> Tensor:
        start = 0 if cache is None else cache.length
        position = torch.arange(start, start + idx.size(1), device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(position)  # (B, T, C)
        if self.training:
            x = drop(x, self.config.dropout)
        for block in self.transformer.h:
            x = block(x, cache)
        out: Tensor = self.transformer.ln_f(x)
        return out

    def joined_rows(self, name: str) -> dict[str, int]:
        C = self.config.n_embd
        return {"q": C, "k": C, "v": C} if name.endswith("c_attn.weight") else {}

    def token_decoder(self, cache: KVCache | SlotCache) -> "GPT2TokenDecoder":
        return GPT2TokenDecoder(self, cache)


class GPT2TokenDecoder:
    """Computes one token of each sequence, with the same results as `GPT.next_logits` in half the
    time.

    In a small model, calling a module takes Python longer than the arithmetic of one token. So this
    class calls no modules and looks up all weights in advance. A test compares the results.
    """

    def __init__(self, model: GPT, cache: KVCache | SlotCache) -> None:
        parts = model.transformer
        self._cache = cache
        self._embeddings = (parts.wte.weight, parts.wpe.weight)
        self._layers = [
            [(m.weight, m.bias) for m in (b.ln_1, b.attn.c_attn, b.attn.c_proj)]
            + [(m.weight, m.bias) for m in (b.ln_2, b.mlp.c_fc, b.mlp.c_proj)]
            for b in (block for block in parts.h if isinstance(block, GPT2Block))
        ]
        self._final_norm = (parts.ln_f.weight, parts.ln_f.bias)
        self._qkv_shape = (-1, 3, model.config.n_head, 1, model.config.head_dim)
        self._width = (model.config.n_embd,)
        self._gelu = GELU[model.config.gelu]

    def __call__(self, tokens: int | Tensor) -> Tensor:
        """Read one token of each of B sequences, and return the logits (B, V) of the next ones."""
        wte, wpe = self._embeddings
        x = (wte[tokens] + wpe[self._cache.positions]).view(-1, *self._width)  # (B, C)
        for layer, (ln_1, qkv, proj, ln_2, fc, proj_2) in enumerate(self._layers):
            h = F.linear(torch.layer_norm(x, self._width, *ln_1), *qkv)
            q, k, v = h.view(self._qkv_shape).unbind(1)
            k, v = self._cache.update(layer, k, v)
            y = F.scaled_dot_product_attention(q, k, v, self._cache.mask)
            x = x + F.linear(y.reshape(x.shape), *proj)
            h = F.linear(torch.layer_norm(x, self._width, *ln_2), *fc)
            h = F.gelu(h, approximate=self._gelu)
            x = x + F.linear(h, *proj_2)
        self._cache.advance(1)
        return F.linear(torch.layer_norm(x, self._width, *self._final_norm), wte)


def _init_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
