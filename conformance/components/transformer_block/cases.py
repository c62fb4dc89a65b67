"""Cases of the transformer block: on each of them some mistake shows."""

from __future__ import annotations

from conformance.components.transformer_block import inputs
from conformance.components.transformer_block.inputs import plain, scaled
from conformance.components.transformer_block.oracle import transformer_block
from conformance.suite.case import Case
from conformance.suite.check import HALF
from conformance.suite.component import Component

X = ("in_features",)
WEIGHTS = tuple(f"weights.{name}" for name in inputs.NAMES)
NO_ATTENTION = {"attn.output_proj.weight": 0.0}
NO_FEED_FORWARD = {"ffn.w2.weight": 0.0}
SATURATED = {"attn.q_proj.weight": 12.0, "attn.k_proj.weight": 12.0}
SMALL = {"d_model": 8, "num_heads": 2, "d_ff": 10}

CASES = (
    Case(
        "ordinary",
        "BLOCK-DEFINITION",
        "batch 2, length 5, 3 heads of width 4, d_ff 20",
        plain((2,), 5),
        flags=("ordinary",),
    ),
    Case(
        "strong-attention",
        "BLOCK-DEFINITION",
        "the attention changes the stream a lot: a feed-forward network beside it shows",
        scaled((2,), 4, {"attn.output_proj.weight": 4.0}),
        flags=("ordinary",),
    ),
    Case(
        "large-stream",
        "BLOCK-PRE-NORM",
        "a stream of size 30: a norm behind the addition shows",
        plain((2,), 4, scale=30.0),
        flags=("norms",),
    ),
    Case(
        "no-attention",
        "BLOCK-RESIDUAL",
        "the attention gives zeros",
        scaled((2,), 4, NO_ATTENTION),
        flags=("residual",),
    ),
    Case(
        "no-feed-forward",
        "BLOCK-RESIDUAL",
        "the feed-forward network gives zeros",
        scaled((2,), 4, NO_FEED_FORWARD),
        flags=("residual",),
    ),
    Case(
        "identity",
        "BLOCK-IDENTITY",
        "both give zeros",
        scaled((2,), 4, NO_ATTENTION | NO_FEED_FORWARD),
        flags=("residual", "gradient"),
        wrt=X,
    ),
    Case(
        "one-hot-gains",
        "BLOCK-NORMS",
        "each norm lets its own half of the features through",
        inputs.one_hot_gains,
        flags=("norms",),
    ),
    Case(
        "unequal-gains",
        "BLOCK-NORMS",
        "gains of different size",
        scaled((2,), 4, {"ln1.weight": 3.0, "ln2.weight": 0.2}),
        flags=("norms",),
    ),
    Case(
        "tiny-stream",
        "BLOCK-EPS",
        "rows of 1e-1 to 1e-5 that stay small",
        inputs.tiny_stream,
        flags=("eps-dominates",),
    ),
    Case(
        "tiny-input",
        "BLOCK-EPS",
        "rows of 1e-3: eps counts in the first norm",
        plain((2,), 4, scale=1e-3),
        flags=("eps-dominates",),
    ),
    Case(
        "narrow-hidden",
        "BLOCK-FEED-FORWARD",
        "d_ff 5, below d_model",
        plain((2,), 4, d_ff=5),
        flags=("feed-forward",),
    ),
    Case(
        "square-hidden",
        "BLOCK-FEED-FORWARD",
        "d_ff = d_model: transposed weights fit",
        plain((2,), 4, d_ff=12),
        flags=("feed-forward", "equal-axes"),
    ),
    Case(
        "wide-hidden",
        "BLOCK-FEED-FORWARD",
        "d_ff 67, no multiple of anything",
        plain((2,), 3, d_ff=67),
        flags=("feed-forward",),
    ),
    Case(
        "one-hidden",
        "BLOCK-FEED-FORWARD",
        "d_ff 1",
        plain((2,), 3, d_ff=1),
        flags=("feed-forward",),
    ),
    Case(
        "later-tokens-dominate",
        "BLOCK-CAUSAL",
        "later tokens are larger",
        inputs.later_tokens_dominate,
        flags=("causal",),
    ),
    Case(
        "theta-small",
        "BLOCK-ROTATION",
        "theta 2",
        plain((1,), 12, theta=2.0, max_seq_len=15),
        flags=("theta",),
    ),
    Case(
        "theta-large",
        "BLOCK-ROTATION",
        "theta 1e6",
        plain((1,), 12, theta=1e6, max_seq_len=15),
        flags=("theta",),
    ),
    Case(
        "full-table",
        "BLOCK-TABLE",
        "as many tokens as max_seq_len",
        plain((2,), 6, max_seq_len=6),
        flags=("table",),
    ),
    Case(
        "long-table",
        "BLOCK-TABLE",
        "3 tokens, max_seq_len 512",
        plain((2,), 3, max_seq_len=512),
        flags=("table",),
    ),
    Case(
        "one-token",
        "BLOCK-TABLE",
        "one token, max_seq_len 1",
        plain((3,), 1, max_seq_len=1),
        flags=("table", "sizes"),
    ),
    Case("batch-of-one", "BLOCK-SIZES", "a single sequence", plain((1,), 5), flags=("sizes",)),
    Case(
        "large-batch",
        "BLOCK-SIZES",
        "more sequences than heads and tokens",
        plain((34,), 3, **SMALL),
        flags=("sizes",),
    ),
    Case(
        "batch-equals-heads",
        "BLOCK-SIZES",
        "3 sequences, 3 heads",
        plain((3,), 5),
        flags=("equal-axes",),
    ),
    Case(
        "all-equal",
        "BLOCK-SIZES",
        "batch = heads = length = head width = 4",
        plain((4,), 4, d_model=16, num_heads=4, d_ff=16, max_seq_len=4),
        flags=("equal-axes",),
    ),
    Case(
        "one-head",
        "BLOCK-SIZES",
        "one head",
        plain((2,), 5, d_model=6, num_heads=1),
        flags=("sizes",),
    ),
    Case(
        "narrow-heads",
        "BLOCK-SIZES",
        "five heads of width 2",
        plain((2,), 4, d_model=10, num_heads=5),
        flags=("sizes",),
    ),
    Case(
        "long",
        "BLOCK-SIZES",
        "40 tokens",
        plain((1,), 40, **SMALL, max_seq_len=64),
        flags=("sizes",),
    ),
    Case(
        "saturated",
        "BLOCK-STABLE",
        "attention scores of several hundred",
        scaled((2,), 5, SATURATED),
        flags=("extreme-scores",),
    ),
    Case(
        "rows-of-all-magnitudes",
        "BLOCK-STABLE",
        "rows from 1e-2 to 1e4",
        inputs.rows_of_all_magnitudes,
        flags=("extreme-scores",),
    ),
    Case(
        "shuffled-names",
        "BLOCK-WEIGHT-NAMES",
        "the dictionary in another order",
        inputs.shuffled(plain((2,), 4, d_ff=12)),
        flags=("weight-names",),
        golden=False,
    ),
    Case(
        "gradient", "BLOCK-GRADIENT", "the input alone", plain((2,), 5), flags=("gradient",), wrt=X
    ),
    Case(
        "gradient-tiny",
        "BLOCK-GRADIENT",
        "rows of 1e-1 to 1e-5",
        inputs.tiny_stream,
        flags=("gradient", "eps-dominates"),
        wrt=X,
    ),
    Case(
        "weight-gradient",
        "BLOCK-WEIGHT-GRADIENT",
        "input and all weights",
        plain((2,), 4, **SMALL),
        flags=("gradient",),
        wrt=(*X, *WEIGHTS),
    ),
    Case(
        "unbatched", "BLOCK-LEADING-AXES", "x (seq, d_model)", plain((), 5), flags=("leading-axes",)
    ),
    Case(
        "two-leading-axes",
        "BLOCK-LEADING-AXES",
        "x (2, 4, seq, d_model)",
        plain((2, 4), 3),
        flags=("leading-axes",),
    ),
    Case(
        "empty",
        "BLOCK-EMPTY-BATCH",
        "no sequence at all",
        plain((0,), 4),
        flags=("leading-axes",),
        golden=False,
    ),
    Case("half", "BLOCK-HALF-VALUES", "order one", plain((2,), 5), flags=("half",), dtypes=HALF),
    Case(
        "half-gradient",
        "BLOCK-HALF",
        "gradients",
        plain((2,), 4, **SMALL),
        flags=("half", "gradient"),
        dtypes=HALF,
        wrt=X,
    ),
    Case(
        "double",
        "BLOCK-FLOAT64",
        "order one, with gradients",
        plain((2,), 5),
        flags=("float64", "gradient"),
        dtypes=("float64",),
        wrt=X,
    ),
)

COMPONENT = Component(
    name="transformer_block",
    oracle=transformer_block,
    cases=CASES,
    inputs=X,
    parameters=WEIGHTS,
)
