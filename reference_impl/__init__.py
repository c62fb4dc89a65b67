"""A transformer language model written the way the papers write it.

Read it in this order; each file needs only those before it:

    precision    when half precision is not enough
    linear       y = x W^T
    embedding    one row per token
    norm         RMSNorm
    activations  softmax, SiLU, GLU, SwiGLU
    positions    rotations, the sinusoidal encoding, rotary position embedding
    attention    scaled dot products, many heads
    block        pre-norm residual block
    model        the language model
    sampling     from logits to the next token

Features are the last axis everywhere and vectors are rows, so a linear map reads `x W^T` and its
matrix is stored `(out, in)`. Shapes stand at the end of a line: B is any number of leading axes
(none, too), T the sequence, D the model's width, H the heads, d_k = D / H the width of one head.

Nothing here is fused and nothing is clever. `adapters.py` offers it all under the names of the
contract.
"""

from .activations import SwiGLU, glu, silu, softmax
from .attention import MultiheadSelfAttention, causal_mask, scaled_dot_product_attention
from .block import TransformerBlock
from .embedding import Embedding
from .linear import Linear
from .model import TransformerLM
from .norm import RMSNorm
from .positions import RotaryPositionalEmbedding, SinusoidalEncoding, rotation_matrix
from .sampling import next_token_probabilities, sample_next_token

__all__ = [
    "Embedding",
    "Linear",
    "MultiheadSelfAttention",
    "RMSNorm",
    "RotaryPositionalEmbedding",
    "SinusoidalEncoding",
    "SwiGLU",
    "TransformerBlock",
    "TransformerLM",
    "causal_mask",
    "glu",
    "next_token_probabilities",
    "rotation_matrix",
    "sample_next_token",
    "scaled_dot_product_attention",
    "silu",
    "softmax",
]
