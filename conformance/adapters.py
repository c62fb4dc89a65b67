"""The adapters contract: one function per component, the only thing an implementation must offer.

An adapters module defines functions with these names and keywords. Each takes plain tensors, runs
the implementation on them and returns one tensor; how the implementation is organised inside is
its own affair. Every argument is passed by keyword.

Rules that hold for every function:

- Features are the last axis; vectors are rows; a weight of a linear map is stored (out, in).
- `...` stands for any number of leading axes, none included. The result has the same ones.
- Floating-point arguments of one call share a dtype (float32, float64, bfloat16 or float16) unless
  the function says otherwise, and the result has that dtype, on the same device.
- The tensors and dictionaries that are passed in hold the same values after the call, and the
  result shares no memory with them.
- Gradients flow from the result to every floating-point argument. Weights may be copied into
  modules, in which case no gradient reaches them: that is accepted, though not ideal.
- Numbers that describe sizes (`d_model`, `d_ff`, ...) agree with the shapes of the tensors. They
  are used as given, never recomputed or rounded.

Stubs: a component counts as *not implemented*, never as wrong, when its function is missing, raises
NotImplementedError, returns None (a body of `pass` or `...`), or does not accept a keyword listed
here. The other components are graded all the same.

Sources: "Course" is the handout of Stanford CS336, assignment 1 (section and equation numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

#: Component -> function, for the twelve components of the course: graded by default.
COURSE_FUNCTIONS: Mapping[str, str] = {
    "linear": "run_linear",
    "embedding": "run_embedding",
    "rmsnorm": "run_rmsnorm",
    "silu": "run_silu",
    "swiglu": "run_swiglu",
    "softmax": "run_softmax",
    "rope": "run_rope",
    "scaled_dot_product_attention": "run_scaled_dot_product_attention",
    "multihead_self_attention": "run_multihead_self_attention",
    "multihead_self_attention_with_rope": "run_multihead_self_attention_with_rope",
    "transformer_block": "run_transformer_block",
    "transformer_lm": "run_transformer_lm",
}

#: Component -> function, for components that are graded by default only where they are provided.
OPTIONAL_FUNCTIONS: Mapping[str, str] = {
    "glu": "run_glu",
    "sinusoidal": "run_sinusoidal",
    "rotation": "run_rotation_matrix",
    "next_token": "run_next_token",
}


def run_linear(d_in: int, d_out: int, weights: Tensor, in_features: Tensor) -> Tensor:
    """Linear map without bias: `x W^T`.

    Args:
        d_in, d_out: size of the last axis of input and result.
        weights: W, (d_out, d_in).
        in_features: x, (..., d_in).

    Returns: (..., d_out).
    Source: Course 3.3.1 eq. 1-3, 3.4.2.
    """
    raise NotImplementedError


def run_embedding(vocab_size: int, d_model: int, weights: Tensor, token_ids: Tensor) -> Tensor:
    """Table lookup: row `token_ids[...]` of the table for every id.

    Args:
        vocab_size, d_model: number of rows of the table and size of a row.
        weights: the table, (vocab_size, d_model).
        token_ids: int64 (...), each in 0 .. vocab_size - 1.

    Returns: (..., d_model), in the dtype of the table.
    Source: Course 3.4.3.
    """
    raise NotImplementedError


def run_rmsnorm(d_model: int, eps: float, weights: Tensor, in_features: Tensor) -> Tensor:
    """Root mean square normalisation: `x / sqrt(mean(x^2) + eps) * g`, mean over the last axis.

    The statistics are taken in float32 or better, whatever the dtype of the input.

    Args:
        d_model: size of the last axis.
        eps: added to the mean square, inside the root.
        weights: the gain g, (d_model,). It may be float32 with a bfloat16 or float16 input.
        in_features: x, (..., d_model).

    Returns: (..., d_model), in the dtype of `in_features`.
    Source: Zhang and Sennrich 2019 (arXiv 1910.07467) eq. 4; Course 3.5.1 eq. 4.
    """
    raise NotImplementedError


def run_silu(in_features: Tensor) -> Tensor:
    """`x * sigmoid(x)`, entry by entry; finite, with its gradient, for every finite input.

    Args:
        in_features: x, (...).

    Returns: (...), the shape of `in_features`.
    Source: Hendrycks, Gimpel 2016 (arXiv 1606.08415); Elfwing 2017 (1702.03118); Course eq. 5.
    """
    raise NotImplementedError


def run_glu(
    d_model: int, d_ff: int, w1_weight: Tensor, w2_weight: Tensor, in_features: Tensor
) -> Tensor:
    """Gated linear unit: `sigmoid(x W1^T) * (x W2^T)`.

    Args:
        d_model, d_ff: size of the last axis of input and result.
        w1_weight, w2_weight: W1 (the gate) and W2 (the values), (d_ff, d_model) each.
        in_features: x, (..., d_model).

    Returns: (..., d_ff).
    Source: Dauphin et al. 2017 (arXiv 1612.08083) eq. 1; Course 3.5.2 eq. 6.
    """
    raise NotImplementedError


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Tensor,
    w2_weight: Tensor,
    w3_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    """Feed-forward network with a SiLU gate: `(SiLU(x W1^T) * (x W3^T)) W2^T`.

    Args:
        d_model: size of the last axis of input and result.
        d_ff: size of the hidden layer, any number.
        w1_weight: W1, the gate, (d_ff, d_model).
        w2_weight: W2, the way back, (d_model, d_ff).
        w3_weight: W3, the values, (d_ff, d_model).
        in_features: x, (..., d_model).

    Returns: (..., d_model).
    Source: Shazeer 2020 (arXiv 2002.05202); Course 3.5.2 eq. 7.
    """
    raise NotImplementedError


def run_softmax(in_features: Tensor, dim: int) -> Tensor:
    """`exp(x_i) / sum_j exp(x_j)` along one axis, without overflow for any finite input.

    A slice of nothing but -inf has no softmax; what happens there is left open.

    Args:
        in_features: x, (...), one axis at least.
        dim: the axis, counted from the end when negative.

    Returns: (...), the shape of `in_features`.
    Source: Course 3.5.4 eq. 10.
    """
    raise NotImplementedError


def run_sinusoidal(d_model: int, max_seq_len: int, token_positions: Tensor) -> Tensor:
    """Sinusoidal encoding of positions: sine at even features, cosine at odd ones.

    `PE(p, 2i) = sin(p / 10000^(2i/d_model))`, `PE(p, 2i+1) = cos(p / 10000^(2i/d_model))`. The
    encoding alone, not added to anything.

    Args:
        d_model: size of the encoding, even.
        max_seq_len: upper bound of the positions, for implementations that keep a table.
        token_positions: p, int64 (...), each in 0 .. max_seq_len - 1, in any order.

    Returns: (..., d_model), float32.
    Source: Vaswani et al. 2017 (arXiv 1706.03762) section 3.5.
    """
    raise NotImplementedError


def run_rotation_matrix(angles: Tensor) -> Tensor:
    """The matrix that turns a column vector by an angle: `[[cos t, -sin t], [sin t, cos t]]`.

    Args:
        angles: t in radians, (...).

    Returns: (..., 2, 2).
    Source: Su et al. 2021 (arXiv 2104.09864) eq. 13.
    """
    raise NotImplementedError


def run_rope(
    d_k: int, theta: float, max_seq_len: int, in_query_or_key: Tensor, token_positions: Tensor
) -> Tensor:
    """Rotary position embedding: the pair of features (2i, 2i+1) of each row is turned by an angle.

    The angle is `position * theta^(-2i/d_k)`, i = 0 .. d_k/2 - 1, and the pair is made of
    neighbours: this is not the convention that pairs feature i with i + d_k/2.

    Args:
        d_k, theta: size of the last axis, even; base of the frequencies.
        max_seq_len: upper bound of the positions, for implementations that keep a table.
        in_query_or_key: x, (..., seq, d_k).
        token_positions: int64, each in 0 .. max_seq_len - 1, in any order, repeated or not. Shape
            (seq,), or one that broadcasts to the (..., seq) of x: (1, seq), (batch, 1, seq) for x
            of (batch, heads, seq, d_k). `seq` may be smaller than `max_seq_len`.

    Returns: (..., seq, d_k), the shape of `in_query_or_key`.
    Source: Su et al. 2021 (arXiv 2104.09864) eq. 13-16, section 3.4.2; Course 3.5.3 eq. 8-9.
    """
    raise NotImplementedError


def run_scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention: `softmax(Q K^T / sqrt(d_k)) V`, softmax over the keys.

    Where the mask is False the probability is exactly 0 and the others of that row sum to 1. A row
    with no True at all is left open. Without a mask every query sees every key.

    Args:
        Q: queries, (..., queries, d_k).
        K: keys, (..., keys, d_k).
        V: values, (..., keys, d_v); d_v may differ from d_k.
        mask: bool (queries, keys), or with leading axes that broadcast to those of Q; True means
            that the query sees the key. A single row (..., 1, keys) should hold for all queries.

    Returns: (..., queries, d_v).
    Source: Vaswani et al. 2017 (arXiv 1706.03762) eq. 1; Course 3.5.4 eq. 11.
    """
    raise NotImplementedError


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    """Causal multi-head self-attention without positions.

    Queries, keys and values are `x W^T` with their weights. Head h owns the rows
    `h * d_k .. (h + 1) * d_k - 1` of each projection, d_k = d_model / num_heads. Token i sees the
    tokens j <= i. The heads' results, side by side in order, go through `o_proj_weight`.

    Args:
        d_model: size of the last axis of input and result.
        num_heads: a divisor of d_model.
        q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight: (d_model, d_model) each.
        in_features: x, (..., seq, d_model).

    Returns: (..., seq, d_model).
    Source: Vaswani et al. 2017 (arXiv 1706.03762) section 3.2.2; Course 3.5.5 eq. 12-14.
    """
    raise NotImplementedError


def run_multihead_self_attention_with_rope(
    d_model: int,
    num_heads: int,
    max_seq_len: int,
    theta: float,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
    token_positions: Tensor | None = None,
) -> Tensor:
    """As `run_multihead_self_attention`, with queries and keys turned by rope in every head.

    The rotation is that of `run_rope` over the d_k features of one head, the same in every head;
    values are not turned. The mask goes by the order of the tokens, not by their positions.

    Args:
        d_model: size of the last axis of input and result.
        num_heads: a divisor of d_model; d_model / num_heads is even.
        max_seq_len, theta: upper bound of sequence length and positions, base of rope.
        q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight: (d_model, d_model) each.
        in_features: x, (..., seq, d_model).
        token_positions: int64 (seq,) or (..., seq); None stands for 0 .. seq - 1.

    Returns: (..., seq, d_model).
    Source: Vaswani et al. 2017 (arXiv 1706.03762) section 3.2.2; Su et al. 2021 (arXiv 2104.09864)
    eq. 16; Course 3.5.5.
    """
    raise NotImplementedError


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Tensor],
    in_features: Tensor,
) -> Tensor:
    """Pre-norm block: `z = x + attention(norm1(x))`, `y = z + ffn(norm2(z))`.

    Attention is causal, with rope at positions 0 .. seq - 1; the norms are RMSNorm with eps 1e-5;
    the feed-forward network is SwiGLU.

    Args:
        d_model: size of the last axis of input and result.
        num_heads: a divisor of d_model; d_model / num_heads is even.
        d_ff: size of SwiGLU's hidden layer.
        max_seq_len, theta: upper bound of the sequence length, base of rope's frequencies.
        weights: a dict with exactly these keys:

            ln1.weight               (d_model,)          gain of the norm before attention
            attn.q_proj.weight       (d_model, d_model)  rows grouped by head
            attn.k_proj.weight       (d_model, d_model)  rows grouped by head
            attn.v_proj.weight       (d_model, d_model)  rows grouped by head
            attn.output_proj.weight  (d_model, d_model)
            ln2.weight               (d_model,)          gain of the norm before the network
            ffn.w1.weight            (d_ff, d_model)     gate
            ffn.w2.weight            (d_model, d_ff)     way back
            ffn.w3.weight            (d_ff, d_model)     values

        in_features: x, (..., seq, d_model), seq <= max_seq_len.

    Returns: (..., seq, d_model).
    Source: Xiong et al. 2020 (arXiv 2002.04745); Course 3.6 eq. 15.
    """
    raise NotImplementedError


def run_transformer_lm(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Tensor],
    in_indices: Tensor,
) -> Tensor:
    """The language model: embedding, `num_layers` blocks, final RMSNorm (eps 1e-5), linear head.

    Args:
        vocab_size, context_length: number of tokens, upper bound of the sequence length.
        d_model, num_layers: size of the residual stream, number of blocks.
        num_heads: a divisor of d_model; d_model / num_heads is even.
        d_ff, rope_theta: size of SwiGLU's hidden layer, base of rope's frequencies.
        weights: a dict with exactly these keys, i = 0 .. num_layers - 1:

            token_embeddings.weight             (vocab_size, d_model)
            layers.{i}.ln1.weight               (d_model,)
            layers.{i}.attn.q_proj.weight       (d_model, d_model)
            layers.{i}.attn.k_proj.weight       (d_model, d_model)
            layers.{i}.attn.v_proj.weight       (d_model, d_model)
            layers.{i}.attn.output_proj.weight  (d_model, d_model)
            layers.{i}.ln2.weight               (d_model,)
            layers.{i}.ffn.w1.weight            (d_ff, d_model)
            layers.{i}.ffn.w2.weight            (d_model, d_ff)
            layers.{i}.ffn.w3.weight            (d_ff, d_model)
            ln_final.weight                     (d_model,)
            lm_head.weight                      (vocab_size, d_model)

        in_indices: token ids, int64 (..., seq), seq <= context_length. What happens to a longer
            sequence is left open.

    Returns: logits, not probabilities, (..., seq, vocab_size), in the dtype of the weights. Those
        at position t are for token t + 1.
    Source: Radford et al. 2018, 2019; Touvron et al. 2023 (arXiv 2302.13971); Course 3.1, 3.2, 3.6.
    """
    raise NotImplementedError


def run_next_token(logits: Tensor, temperature: float = 1.0, top_p: float | None = None) -> Tensor:
    """Distribution of the token that follows a sequence, from the logits of its last position.

    `softmax(logits / temperature)`, then, with `top_p`, cut to the smallest set of most probable
    tokens whose mass reaches p (the token that crosses p belongs to it) and renormalised. Which of
    several equally probable tokens complete that set is left open.

    Args:
        logits: (..., seq, vocab).
        temperature: 0 or larger; 0 means greedy: all on the largest logit, the first on a tie.
        top_p: p in (0, 1]; 1 and None keep every token.

    Returns: probabilities, (..., vocab), in the dtype of `logits`.
    Source: Course 3 (introduction) and 6; Holtzman et al. 2019 (arXiv 1904.09751) eq. 2-3.
    """
    raise NotImplementedError
