"""Cases of attention with rotary positions: on each of them some mistake shows."""

from __future__ import annotations

from conformance.components.multihead_self_attention.inputs import WEIGHTS
from conformance.components.multihead_self_attention_with_rope import inputs
from conformance.components.multihead_self_attention_with_rope.inputs import at
from conformance.components.multihead_self_attention_with_rope.oracle import (
    multihead_self_attention_with_rope,
)
from conformance.suite.case import Case
from conformance.suite.check import HALF
from conformance.suite.component import Component

X = ("in_features",)
ROW = [[0, 1, 2, 3, 4]]
IRREGULAR = [9, 2, 2, 14, 5]

CASES = (
    Case(
        "ordinary",
        "MHAROPE-DEFINITION",
        "positions 0 to 4 as (1, seq)",
        at((2,), ROW),
        flags=("ordinary",),
    ),
    Case(
        "ordinary-vector",
        "MHAROPE-DEFINITION",
        "positions 0 to 5 as (seq,)",
        at((3,), list(range(6)), d_model=8, num_heads=2),
        flags=("ordinary",),
    ),
    Case(
        "irregular",
        "MHAROPE-POSITIONS",
        "out of order, repeated, with gaps",
        at((2,), IRREGULAR),
        flags=("positions",),
    ),
    Case(
        "irregular-row",
        "MHAROPE-POSITIONS",
        "the same as (1, seq)",
        at((2,), [IRREGULAR]),
        flags=("positions",),
    ),
    Case(
        "drawn",
        "MHAROPE-POSITIONS",
        "positions in any order",
        inputs.drawn_positions,
        flags=("positions",),
    ),
    Case(
        "spread",
        "MHAROPE-POSITIONS",
        "every third position from 1 on",
        at((2,), [1, 4, 7, 10]),
        flags=("positions",),
    ),
    Case(
        "one-head",
        "MHAROPE-PER-HEAD",
        "one head over the whole width",
        at((2,), IRREGULAR, d_model=6, num_heads=1),
        flags=("heads",),
    ),
    Case(
        "narrow-heads",
        "MHAROPE-PER-HEAD",
        "five heads of a single pair each, all of frequency 1",
        at((2,), [0, 3, 1, 7], d_model=10, num_heads=5),
        flags=("heads",),
    ),
    Case(
        "wide-heads",
        "MHAROPE-PER-HEAD",
        "two heads of eight pairs",
        at((1,), [0, 3, 1, 7], d_model=32, num_heads=2),
        flags=("heads",),
    ),
    Case(
        "single-token",
        "MHAROPE-VALUES",
        "one token far from position 0: only its value counts",
        at((3,), [11]),
        flags=("values", "sizes"),
    ),
    Case(
        "equal-tokens",
        "MHAROPE-VALUES",
        "equal tokens at different positions",
        inputs.equal_tokens,
        flags=("values",),
    ),
    Case(
        "pairs-visible",
        "MHAROPE-PAIRS",
        "one head, the identity as query and key weight",
        inputs.pairs_visible,
        flags=("pairs",),
    ),
    Case(
        "theta-small",
        "MHAROPE-THETA",
        "theta 2: all pairs turn fast",
        at((2,), IRREGULAR, theta=2.0),
        flags=("theta",),
    ),
    Case(
        "theta-usual",
        "MHAROPE-THETA",
        "theta 10000, positions in the hundreds",
        at((2,), [0, 150, 700, 999], theta=1e4, max_seq_len=1000),
        flags=("theta", "table"),
    ),
    Case(
        "theta-large",
        "MHAROPE-THETA",
        "theta 1e6, positions in the thousands",
        at((2,), [17, 1500, 4000, 2999], theta=1e6, max_seq_len=4096),
        flags=("theta",),
    ),
    Case(
        "full-table",
        "MHAROPE-TABLE",
        "a sequence as long as the table",
        at((2,), [[0, 1, 2, 3, 4, 5]], max_seq_len=6),
        flags=("table",),
    ),
    Case(
        "last-position",
        "MHAROPE-TABLE",
        "the last positions of the table, by a short sequence",
        at((2,), [29, 30, 31], max_seq_len=32),
        flags=("table",),
    ),
    Case(
        "one-position",
        "MHAROPE-TABLE",
        "a table of one position",
        at((2,), [0], max_seq_len=1),
        flags=("table", "sizes"),
    ),
    Case(
        "long-table",
        "MHAROPE-TABLE",
        "a short sequence and a table of 2048",
        at((2,), [[0, 1, 2]], max_seq_len=2048),
        flags=("table",),
    ),
    Case(
        "same-position",
        "MHAROPE-EQUAL-POSITIONS",
        "all tokens at position 5",
        at((2,), [5, 5, 5, 5]),
        flags=("positions",),
    ),
    Case(
        "later-tokens-dominate",
        "MHAROPE-CAUSAL",
        "falling positions, growing tokens",
        inputs.later_tokens_dominate,
        flags=("causal", "positions"),
    ),
    Case(
        "batch-equals-heads",
        "MHAROPE-SIZES",
        "3 sequences, 3 heads, positions (1, seq)",
        at((3,), ROW),
        flags=("equal-axes",),
    ),
    Case(
        "all-equal",
        "MHAROPE-SIZES",
        "batch = heads = length = head width = 4",
        at((4,), [3, 0, 2, 7], d_model=16, num_heads=4),
        flags=("equal-axes",),
    ),
    Case(
        "length-equals-heads",
        "MHAROPE-SIZES",
        "3 tokens, 3 heads",
        at((2,), [4, 0, 9]),
        flags=("equal-axes",),
    ),
    Case(
        "length-equals-width",
        "MHAROPE-SIZES",
        "4 tokens, heads of width 4, one of them a table of 4",
        at((2,), [0, 1, 2, 3], d_model=8, num_heads=2, max_seq_len=4),
        flags=("equal-axes", "table"),
    ),
    Case(
        "batch-of-one", "MHAROPE-SIZES", "a single sequence", at((1,), IRREGULAR), flags=("sizes",)
    ),
    Case(
        "large-batch",
        "MHAROPE-SIZES",
        "more sequences than heads and tokens",
        at((7,), [[2, 0, 5]], d_model=8, num_heads=2),
        flags=("sizes",),
    ),
    Case(
        "long",
        "MHAROPE-SIZES",
        "70 tokens",
        at((1,), list(range(70)), d_model=8, num_heads=2, max_seq_len=80),
        flags=("sizes",),
    ),
    Case(
        "rows-of-all-magnitudes",
        "MHAROPE-STABLE",
        "tokens from 1e-2 to 60",
        inputs.rows_of_all_magnitudes,
        flags=("extreme-scores",),
    ),
    Case(
        "batch-positions",
        "MHAROPE-BATCH-POSITIONS",
        "2 sequences, 3 heads",
        inputs.batch_positions,
        flags=("batch-positions",),
    ),
    Case(
        "batch-positions-equal",
        "MHAROPE-BATCH-POSITIONS",
        "3 sequences of 3 tokens, 3 heads",
        inputs.batch_positions_equal_axes,
        flags=("batch-positions", "equal-axes"),
    ),
    Case(
        "none",
        "MHAROPE-NO-POSITIONS",
        "token_positions=None",
        at((2,), None, length=5),
        flags=("no-positions",),
    ),
    Case(
        "unbatched",
        "MHAROPE-LEADING-AXES",
        "x (seq, d_model)",
        at((), IRREGULAR),
        flags=("leading-axes",),
    ),
    Case(
        "two-leading-axes",
        "MHAROPE-LEADING-AXES",
        "x (2, 4, seq, d_model)",
        at((2, 4), IRREGULAR),
        flags=("leading-axes",),
    ),
    Case(
        "empty",
        "MHAROPE-EMPTY-BATCH",
        "no sequence at all",
        at((0,), IRREGULAR),
        flags=("leading-axes",),
        golden=False,
    ),
    Case(
        "gradient",
        "MHAROPE-GRADIENT",
        "irregular positions",
        at((2,), IRREGULAR),
        flags=("gradient",),
        wrt=X,
    ),
    Case(
        "gradient-equal-axes",
        "MHAROPE-GRADIENT",
        "batch = heads = length",
        at((3,), [[0, 1, 2]]),
        flags=("gradient", "equal-axes"),
        wrt=X,
    ),
    Case(
        "weight-gradient",
        "MHAROPE-WEIGHT-GRADIENT",
        "input and weights",
        at((2,), [3, 0, 8], d_model=8, num_heads=2),
        flags=("gradient",),
        wrt=(*X, *WEIGHTS),
    ),
    Case(
        "half",
        "MHAROPE-HALF-VALUES",
        "positions below 16",
        at((2,), IRREGULAR),
        flags=("half",),
        dtypes=HALF,
    ),
    Case(
        "half-far",
        "MHAROPE-HALF-VALUES",
        "positions around 500, theta 100",
        at((2,), [500, 509, 503, 511], theta=100.0, max_seq_len=512),
        flags=("half", "far-positions"),
        dtypes=HALF,
    ),
    Case(
        "half-gradient",
        "MHAROPE-HALF",
        "gradients",
        at((2,), [3, 0, 8], d_model=8, num_heads=2),
        flags=("half", "gradient"),
        dtypes=HALF,
        wrt=X,
    ),
    Case(
        "double",
        "MHAROPE-FLOAT64",
        "irregular positions, with gradients",
        at((2,), IRREGULAR),
        flags=("float64", "gradient"),
        dtypes=("float64",),
        wrt=X,
    ),
)

COMPONENT = Component(
    name="multihead_self_attention_with_rope",
    oracle=multihead_self_attention_with_rope,
    cases=CASES,
    inputs=X,
    parameters=WEIGHTS,
)
