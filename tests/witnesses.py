"""Inputs on which a mistake shows: arguments for every adapter function, by keyword.

Sizes differ from one another by default (batch, heads, seq, d_k, d_v, d_ff), positions are not
0, 1, 2, ..., theta is not 10000 and eps not 1e-5, so that no coincidence hides anything. Every
function accepts other sizes; `**more` replaces any argument. Draws are seeded.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .adapting import CORRECT

Arguments = dict[str, Any]
FLOAT = torch.float32


def draw(*shape: int, seed: int = 0, scale: float = 1.0, dtype: torch.dtype = FLOAT) -> Tensor:
    """Normal numbers of the given scale."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * scale).to(dtype)


def weight(out: int, into: int, seed: int, dtype: torch.dtype = FLOAT) -> Tensor:
    """A weight (out, in) that keeps the scale of its input."""
    return draw(out, into, seed=seed, scale=into**-0.5, dtype=dtype)


def strided(x: Tensor) -> Tensor:
    """The same values, last two axes stored swapped: not contiguous."""
    return x.mT.contiguous().mT


def tensor(values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """torch.tensor, so that catalogues need only this module."""
    return torch.tensor(values, dtype=dtype)


def linear(
    lead: Sequence[int] = (2, 3), d_in: int = 5, d_out: int = 4, dtype: Any = FLOAT, **more: Any
) -> Arguments:
    """weights (d_out, d_in), in_features (*lead, d_in)."""
    base = {
        "d_in": d_in,
        "d_out": d_out,
        "weights": weight(d_out, d_in, 1, dtype),
        "in_features": draw(*lead, d_in, dtype=dtype),
    }
    return base | more


def embedding(
    ids: Any = ((3, 0, 10), (7, 7, 1)), vocab: int = 11, d: int = 4, dtype: Any = FLOAT, **more: Any
) -> Arguments:
    """weights (vocab, d); ids of any shape."""
    base = {
        "vocab_size": vocab,
        "d_model": d,
        "weights": draw(vocab, d, seed=1, dtype=dtype),
        "token_ids": tensor(ids),
    }
    return base | more


def rmsnorm(
    lead: Sequence[int] = (2, 3),
    d: int = 8,
    eps: float = 1e-3,
    scale: float = 1.0,
    dtype: Any = FLOAT,
    **more: Any,
) -> Arguments:
    """weights (d,) around 1, in_features (*lead, d) of the given scale."""
    base = {
        "d_model": d,
        "eps": eps,
        "weights": (1 + draw(d, seed=1, scale=0.3)).to(dtype),
        "in_features": draw(*lead, d, scale=scale, dtype=dtype),
    }
    return base | more


def silu(x: Any = None, dtype: Any = FLOAT) -> Arguments:
    """in_features: (2, 3, 5) normal numbers of scale 3, or the values given."""
    x = draw(2, 3, 5, scale=3.0) if x is None else x
    return {
        "in_features": torch.as_tensor(x, dtype=dtype) if not torch.is_tensor(x) else x.to(dtype)
    }


def softmax(x: Any = None, dim: int = -1, dtype: Any = FLOAT) -> Arguments:
    """in_features: (2, 3, 4) normal numbers of scale 2, or the values given."""
    x = draw(2, 3, 4, scale=2.0) if x is None else x
    x = x if torch.is_tensor(x) else tensor(x, FLOAT)
    return {"in_features": x.to(dtype), "dim": dim}


def glu(
    lead: Sequence[int] = (2, 3), d: int = 6, d_ff: int = 10, dtype: Any = FLOAT, **more: Any
) -> Arguments:
    """w1, w2 (d_ff, d), in_features (*lead, d)."""
    base = {
        "d_model": d,
        "d_ff": d_ff,
        "w1_weight": weight(d_ff, d, 1, dtype),
        "w2_weight": weight(d_ff, d, 2, dtype),
        "in_features": draw(*lead, d, scale=2.0, dtype=dtype),
    }
    return base | more


def swiglu(
    lead: Sequence[int] = (2, 3), d: int = 6, d_ff: int = 10, dtype: Any = FLOAT, **more: Any
) -> Arguments:
    """w1, w3 (d_ff, d), w2 (d, d_ff), in_features (*lead, d)."""
    base = {
        "d_model": d,
        "d_ff": d_ff,
        "w1_weight": weight(d_ff, d, 1, dtype),
        "w2_weight": weight(d, d_ff, 2, dtype),
        "w3_weight": weight(d_ff, d, 3, dtype),
        "in_features": draw(*lead, d, scale=2.0, dtype=dtype),
    }
    return base | more


def sinusoidal(positions: Any = (3, 0, 17, 49), d: int = 8, limit: int = 50) -> Arguments:
    """Positions of any shape below the limit."""
    return {"d_model": d, "max_seq_len": limit, "token_positions": torch.as_tensor(positions)}


def rotation(angles: Any = ((0.3, -1.2, 2.5), (4.0, -7.0, 0.0)), dtype: Any = FLOAT) -> Arguments:
    """Angles in radians."""
    return {"angles": torch.as_tensor(angles, dtype=dtype)}


def rope(
    lead: Sequence[int] = (2, 3),
    positions: Any = (3, 0, 7, 7, 19),
    d_k: int = 8,
    theta: float = 500.0,
    limit: int = 20,
    dtype: Any = FLOAT,
    **more: Any,
) -> Arguments:
    """in_query_or_key (*lead, seq, d_k); positions (seq,), (1, seq) or (batch, 1, seq)."""
    where = torch.as_tensor(positions)
    base = {
        "d_k": d_k,
        "theta": theta,
        "max_seq_len": limit,
        "in_query_or_key": draw(*lead, where.shape[-1], d_k, dtype=dtype),
        "token_positions": where,
    }
    return base | more


def attention(
    lead: Sequence[int] = (2, 3),
    queries: int = 4,
    keys: int = 5,
    d_k: int = 8,
    d_v: int = 6,
    scale: float = 1.0,
    mask: Any = "random",
    dtype: Any = FLOAT,
    **more: Any,
) -> Arguments:
    """Q, K of the given scale; mask "random" (full shape), "plane" (2-D), a tensor or None."""
    base = {
        "Q": draw(*lead, queries, d_k, scale=scale, dtype=dtype),
        "K": draw(*lead, keys, d_k, seed=1, scale=scale, dtype=dtype),
        "V": draw(*lead, keys, d_v, seed=2, dtype=dtype),
        "mask": mask,
    }
    if isinstance(mask, str):
        shape = (*lead, queries, keys) if mask == "random" else (queries, keys)
        allowed = draw(*shape, seed=3) > 0
        allowed[..., 0] = True  # a row with nothing to attend to is left unspecified
        base["mask"] = allowed
    return base | more


def mha(
    lead: Sequence[int] = (2,),
    seq: int = 5,
    heads: int = 3,
    d_k: int = 4,
    scale: float = 1.5,
    dtype: Any = FLOAT,
    **more: Any,
) -> Arguments:
    """Square projections (d_model, d_model), in_features (*lead, seq, d_model)."""
    d = heads * d_k
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")
    weights = {n: weight(d, d, i + 1, dtype) for i, n in enumerate(names)}
    x = draw(*lead, seq, d, scale=scale, dtype=dtype)
    return {"d_model": d, "num_heads": heads, **weights, "in_features": x} | more


def mha_rope(
    positions: Any = (3, 0, 7, 7, 19), theta: float = 500.0, limit: int = 20, **more: Any
) -> Arguments:
    """As `mha`, with positions (seq,), (1, seq) or (batch, seq), or None for 0, 1, 2, ..."""
    where = None if positions is None else torch.as_tensor(positions)[..., : more.get("seq")]
    if where is not None:
        more.setdefault("seq", where.shape[-1])
    rest = {"max_seq_len": limit, "theta": theta, "token_positions": where}
    return mha(**more) | rest


def block_weights(d: int, d_ff: int, seed: int = 0, dtype: Any = FLOAT) -> dict[str, Tensor]:
    """The weights of one block by the contract's names; norm gains around 1 and different."""
    names = ("q_proj", "k_proj", "v_proj", "output_proj")
    w = {f"attn.{n}.weight": weight(d, d, seed + i, dtype) for i, n in enumerate(names)}
    w["ln1.weight"] = (1 + draw(d, seed=seed + 4, scale=0.3)).to(dtype)
    w["ffn.w1.weight"] = weight(d_ff, d, seed + 5, dtype)
    w["ffn.w2.weight"] = weight(d, d_ff, seed + 6, dtype)
    w["ffn.w3.weight"] = weight(d_ff, d, seed + 7, dtype)
    w["ln2.weight"] = (1 + draw(d, seed=seed + 8, scale=0.3)).to(dtype)
    return w


def block(
    lead: Sequence[int] = (2,),
    seq: int = 5,
    heads: int = 3,
    d_k: int = 4,
    d_ff: int = 10,
    theta: float = 500.0,
    limit: int = 9,
    scale: float = 1.5,
    dtype: Any = FLOAT,
    **more: Any,
) -> Arguments:
    """weights by name, in_features (*lead, seq, d_model)."""
    d = heads * d_k
    base = {
        "d_model": d,
        "num_heads": heads,
        "d_ff": d_ff,
        "max_seq_len": limit,
        "theta": theta,
        "weights": block_weights(d, d_ff, dtype=dtype),
        "in_features": draw(*lead, seq, d, seed=90, scale=scale, dtype=dtype),
    }
    return base | more


def lm(
    lead: Sequence[int] = (2,),
    seq: int = 5,
    layers: int = 3,
    heads: int = 3,
    d_k: int = 4,
    d_ff: int = 10,
    vocab: int = 13,
    theta: float = 500.0,
    limit: int = 9,
    dtype: Any = FLOAT,
    **more: Any,
) -> Arguments:
    """weights of the whole model by name, in_indices (*lead, seq)."""
    d = heads * d_k
    w = {"token_embeddings.weight": draw(vocab, d, seed=91, dtype=dtype)}
    for i in range(layers):
        own = block_weights(d, d_ff, 100 * (i + 1), dtype)
        w |= {f"layers.{i}.{name}": value for name, value in own.items()}
    w["ln_final.weight"] = (1 + draw(d, seed=92, scale=0.3)).to(dtype)
    w["lm_head.weight"] = weight(vocab, d, 93, dtype)
    ids = torch.randint(vocab, (*lead, seq), generator=torch.Generator().manual_seed(94))
    base = {
        "vocab_size": vocab,
        "context_length": limit,
        "d_model": d,
        "num_layers": layers,
        "num_heads": heads,
        "d_ff": d_ff,
        "rope_theta": theta,
        "weights": w,
        "in_indices": ids,
    }
    return base | more


def next_token(logits: Any = None, dtype: Any = FLOAT, **more: Any) -> Arguments:
    """logits (2, 4, 9) of scale 2, or the values given."""
    x = draw(2, 4, 9, scale=2.0) if logits is None else logits
    x = x if torch.is_tensor(x) else tensor(x, FLOAT)
    return {"logits": x.to(dtype)} | more


# What each component is called with when an entry has no particular input in mind.
DEFAULT = {
    "linear": linear,
    "embedding": embedding,
    "rmsnorm": rmsnorm,
    "silu": silu,
    "glu": glu,
    "swiglu": swiglu,
    "softmax": softmax,
    "sinusoidal": sinusoidal,
    "rotation": rotation,
    "rope": rope,
    "scaled_dot_product_attention": attention,
    "multihead_self_attention": mha,
    "multihead_self_attention_with_rope": mha_rope,
    "transformer_block": block,
    "transformer_lm": lm,
    "next_token": next_token,
}


def double(value: Any) -> Any:
    """The same arguments with every floating tensor in float64, copied."""
    if isinstance(value, dict):
        return {name: double(part) for name, part in value.items()}
    if torch.is_tensor(value):
        return value.double() if value.is_floating_point() else value.clone()
    return value


def exact(component: str, arguments: Arguments) -> Tensor:
    """The right answer, computed in float64 by the plain implementation."""
    return CORRECT[component](**double(arguments))


# The floating inputs that a gradient is always asked for; weights are asked for by name.
INPUTS = {
    "linear": ("in_features",),
    "embedding": (),
    "rmsnorm": ("in_features",),
    "silu": ("in_features",),
    "glu": ("in_features",),
    "swiglu": ("in_features",),
    "softmax": ("in_features",),
    "sinusoidal": (),
    "rotation": ("angles",),
    "rope": ("in_query_or_key",),
    "scaled_dot_product_attention": ("Q", "K", "V"),
    "multihead_self_attention": ("in_features",),
    "multihead_self_attention_with_rope": ("in_features",),
    "transformer_block": ("in_features",),
    "transformer_lm": (),
    "next_token": ("logits",),
}
