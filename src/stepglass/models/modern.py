"""The modern model. It has the architecture of Qwen3, and its weights can be used as Qwen3's.

    model = Modern(ModernConfig(vocab_size=65, block_size=64, n_layer=2, n_head=4, n_embd=128))
    loss = model(idx, targets)               # training: mean loss over all tokens
    logits = model.next_logits(idx, cache)   # sampling: logits of the last position only
    weights = qwen3_weights(model)           # with the names of the transformers library

Differences from GPT-2: RMSNorm instead of LayerNorm, rotary positions instead of a table, normed
queries and keys, a gated MLP, and no biases. Without the norm of queries and keys (`qk_norm=False`)
it is a Llama. Parameters have Qwen3's names, except that queries,
keys and values are one matrix, and so are gate and up: for small matrices, the overhead of a
product is larger than its arithmetic. Shapes: B batch, T tokens, C = n_embd, H heads, G key and
value heads, D = head_dim, V vocabulary.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stepglass.measure.shapes import ModernConfig
from stepglass.models.cpu_ops import (
    attention,
    normed_and_rotated,
    plain_rms_norm,
    plain_swiglu,
    rms_norm,
    rotated,
    swiglu,
)
from stepglass.models.gpt2 import drop
from stepglass.models.kv_cache import KVCache, SlotCache
from stepglass.models.model import Model


class RMSNorm(nn.Module):
    """Scales each vector to length sqrt(C), then multiplies each element by a weight."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


class ModernAttention(nn.Module):
    """Every token attends to itself and to the tokens before it."""

    def __init__(self, config: ModernConfig, layer: int) -> None:
        super().__init__()
        self.H, self.G, self.D = config.n_head, config.kv_heads, config.head_dim
        self.qkv_proj = nn.Linear(config.n_embd, (self.H + 2 * self.G) * self.D, bias=False)
        self.eps = config.norm_eps
        self.q_norm = RMSNorm(self.D, self.eps) if config.qk_norm else None
        self.k_norm = RMSNorm(self.D, self.eps) if config.qk_norm else None
        self.o_proj = nn.Linear(self.H * self.D, config.n_embd, bias=False)
        self.dropout = config.dropout
        self.layer = layer

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: KVCache | None) -> Tensor:
        B, T, _ = x.shape
        H, G, D = self.H, self.G, self.D
        qk, v = torch.split(self.qkv_proj(x).view(B, T, H + 2 * G, D), [H + G, G], 2)
        weight = self.qk_weight()
        if weight is None:
            qk = rotated(qk, cos, sin)  # (B, H + G, T, D)
        else:
            qk = normed_and_rotated(qk, weight, cos, sin, self.eps)
        q, k = torch.split(qk, [H, G], 1)
        v = v.transpose(1, 2)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        y = attention(q, k, v, self.dropout if self.training else 0.0)
        y = self.o_proj(y.transpose(1, 2).reshape(B, T, H * D))
        return drop(y, self.dropout) if self.training else y

    def qk_weight(self) -> Tensor | None:
        """The weights of the norms, one row per head: (H + G, D). None if there are no norms."""
        if self.q_norm is None or self.k_norm is None:
            return None
        return torch.cat(
            [
                self.q_norm.weight.expand(self.H, self.D),
                self.k_norm.weight.expand(self.G, self.D),
            ]
        )


class ModernMLP(nn.Module):
    """A gated MLP, applied to each token separately."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(config.n_embd, 2 * config.inner, bias=False)
        self.down_proj = nn.Linear(config.inner, config.n_embd, bias=False)
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        y = self.down_proj(swiglu(self.gate_up_proj(x)))
        return drop(y, self.dropout) if self.training else y


class ModernBlock(nn.Module):
    """Attention, then the MLP, each with a residual connection."""

    def __init__(self, config: ModernConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.n_embd, config.norm_eps)
        self.self_attn = ModernAttention(config, layer)
        self.post_attention_layernorm = RMSNorm(config.n_embd, config.norm_eps)
        self.mlp = ModernMLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: KVCache | None) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache)
        x = x + self.mlp(self.post_attention_layernorm(x))
        return x


class Modern(Model):
    """The whole model."""

    config: ModernConfig

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.n_embd)
        self.layers = nn.ModuleList(ModernBlock(config, layer) for layer in range(config.n_layer))
        self.norm = RMSNorm(config.n_embd, config.norm_eps)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tie_weights:
            self.lm_head.weight = self.embed_tokens.weight
        self.cos: Tensor
        self.sin: Tensor
        cos, sin = rotation(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self._init_weights()

    def _init_weights(self) -> None:
        C = self.config.n_embd
        for name, parameter in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight", "lm_head.weight")):
                nn.init.zeros_(parameter)  # at the start, blocks and head output zero
            elif name == "embed_tokens.weight":
                nn.init.normal_(parameter, std=0.02 if self.config.tie_weights else 0.5)
            elif parameter.dim() == 2:
                nn.init.uniform_(parameter, -((3 / C) ** 0.5), (3 / C) ** 0.5)

    def hidden(self, idx: Tensor, cache: KVCache | None = None) -> Tensor:
        start = 0 if cache is None else cache.length
        cos, sin = (table[start : start + idx.size(1)] for table in (self.cos, self.sin))
        x = self.embed_tokens(idx)  # (B, T, C)
        if self.training:
            x = drop(x, self.config.dropout)
        for block in self.layers:
            x = block(x, cos, sin, cache)
        out: Tensor = self.norm(x)
        return out

    def joined_rows(self, name: str) -> dict[str, int]:
        H, G, D = self.config.n_head, self.config.kv_heads, self.config.head_dim
        if name.endswith("qkv_proj.weight"):
            return {"q_proj": H * D, "k_proj": G * D, "v_proj": G * D}
        if name.endswith("gate_up_proj.weight"):
            return {"gate_proj": self.config.inner, "up_proj": self.config.inner}
        return {}

    def token_decoder(self, cache: KVCache | SlotCache) -> "ModernTokenDecoder":
        return ModernTokenDecoder(self, cache)


class ModernTokenDecoder:
    """Computes one token of each sequence, with the same results as `Modern.next_logits` in half
    the time. See GPT2TokenDecoder in gpt2.py.
    """

    def __init__(self, model: Modern, cache: KVCache | SlotCache) -> None:
        self._model = model
        self._cache = cache
        self._layers = [block for block in model.layers if isinstance(block, ModernBlock)]
        self._qk_weights = [block.self_attn.qk_weight() for block in self._layers]

    def __call__(self, tokens: int | Tensor) -> Tensor:
        """Read one token of each of B sequences, and return the logits (B, V) of the next ones."""
        model, cache, config = self._model, self._cache, self._model.config
        H, G, D, eps = config.n_head, config.kv_heads, config.head_dim, config.norm_eps
        cos, sin = model.cos[cache.positions], model.sin[cache.positions]  # (1, D) or (B, 1, D)
        x = model.embed_tokens.weight[tokens].view(-1, config.n_embd)  # (B, C)
        for layer, (block, weight) in enumerate(zip(self._layers, self._qk_weights, strict=True)):
            attn, mlp = block.self_attn, block.mlp
            h = plain_rms_norm(x, block.input_layernorm.weight, eps)
            h = F.linear(h, attn.qkv_proj.weight).view(-1, H + 2 * G, D)
            qk = h[:, : H + G]
            if weight is not None:
                qk = plain_rms_norm(qk, None, eps) * weight
            qk = torch.addcmul(qk * cos, qk.roll(D // 2, -1), sin).unsqueeze(2)
            k, v = cache.update(layer, qk[:, H:], h[:, H + G :].unsqueeze(2))
            y = F.scaled_dot_product_attention(qk[:, :H], k, v, cache.mask, enable_gqa=G != H)
            x = x + F.linear(y.reshape(x.size(0), -1), attn.o_proj.weight)
            h = plain_rms_norm(x, block.post_attention_layernorm.weight, eps)
            x = x + F.linear(
                plain_swiglu(F.linear(h, mlp.gate_up_proj.weight)), mlp.down_proj.weight
            )
        cache.advance(1)
        return F.linear(plain_rms_norm(x, model.norm.weight, eps), model.lm_head.weight)


def qwen3_weights(model: Modern) -> dict[str, Tensor]:
    """The weights with the names that transformers, vLLM and llama.cpp use. The numbers are the
    same, but joined matrices are split."""
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        full = name if name.startswith("lm_head") else f"model.{name}"
        rows = model.joined_rows(name)
        if not rows:
            weights[full] = tensor
        for part, piece in zip(
            rows, tensor.split(list(rows.values())) if rows else [], strict=True
        ):
            weights[full.replace(name.split(".")[-2], part)] = piece
    return weights


def qwen3_config(config: ModernConfig) -> dict[str, object]:
    """The shape with the names of `Qwen3Config` in the transformers library."""
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.n_embd,
        "intermediate_size": config.inner,
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.block_size,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tie_weights,
        "attention_bias": False,
        "hidden_act": "silu",
    }


def rotation(config: ModernConfig) -> tuple[Tensor, Tensor]:
    """cos and sin of the angles of every position, (T, 1, D). The first half of sin is negative."""
    D = config.head_dim
    frequency = config.rope_theta ** (-torch.arange(0, D, 2).float() / D)  # (D / 2)
    angle = torch.outer(torch.arange(config.block_size).float(), frequency).unsqueeze(1)
    sin = angle.sin()
    return torch.cat([angle.cos()] * 2, -1), torch.cat([-sin, sin], -1)
