"""lucidrains' `rotary-embedding-torch` under the names of the contract.

It rotates neighbouring pairs, as the contract does, so nothing needs to be permuted.
"""

from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch import Tensor

COMPONENTS = ["rope"]


def run_rope(
    d_k: int, theta: float, max_seq_len: int, in_query_or_key: Tensor, token_positions: Tensor
) -> Tensor:
    rotary = RotaryEmbedding(dim=d_k, theta=theta).to(in_query_or_key.device)
    # `rotate_queries_or_keys` counts positions itself; this is the way for positions of one's own.
    angles = rotary(token_positions)  # (..., seq, d_k)
    rotated: Tensor = apply_rotary_emb(angles, in_query_or_key, freqs_seq_dim=-2)
    return rotated
