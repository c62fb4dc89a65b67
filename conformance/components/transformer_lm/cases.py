"""Cases of the language model: on each of them some mistake shows."""

from __future__ import annotations

from conformance.components.transformer_block.inputs import shuffled
from conformance.components.transformer_lm import inputs
from conformance.components.transformer_lm.inputs import ids_of_shape, plain, scaled, with_ids
from conformance.components.transformer_lm.oracle import transformer_lm
from conformance.suite.case import Case
from conformance.suite.check import HALF
from conformance.suite.component import Component

SMALL = {"d_model": 8, "num_heads": 2, "d_ff": 6, "vocab_size": 11}
TINY = {"token_embeddings.weight": 1e-3, "output_proj.weight": 1e-3, "w2.weight": 1e-3}
DEEP = {"num_layers": 14, "d_model": 8, "num_heads": 2, "d_ff": 6, "vocab_size": 11}
REPEATED = [[3, 3, 7, 3], [0, 10, 7, 0]]

CASES = (
    Case(
        "ordinary",
        "LM-DEFINITION",
        "2 layers, batch 2, length 7, 3 heads of width 4",
        plain(2, 7),
        flags=("ordinary",),
    ),
    Case(
        "large-logits",
        "LM-LOGITS",
        "logits of size 30",
        scaled(2, 5, {"lm_head.weight": 30.0}, num_layers=1),
        flags=("logits",),
    ),
    Case(
        "edge-ids",
        "LM-EMBEDDING",
        "the first and the last id",
        with_ids([[0, 36, 0, 1], [36, 35, 36, 36]]),
        flags=("ids",),
    ),
    Case(
        "repeated-ids",
        "LM-EMBEDDING",
        "one token throughout: only the position tells them apart",
        with_ids([[5, 5, 5, 5, 5], [5, 9, 5, 9, 9]]),
        flags=("ids",),
    ),
    Case("one-layer", "LM-LAYERS", "one layer", plain(2, 5, num_layers=1), flags=("layers",)),
    Case(
        "unlike-layers",
        "LM-LAYERS",
        "three layers of different magnitude",
        inputs.unlike_layers,
        flags=("layers",),
    ),
    Case(
        "fourteen-layers",
        "LM-LAYERS",
        "fourteen layers: as text, 10 to 13 come before 2",
        plain(1, 4, **DEEP),
        flags=("layers",),
    ),
    Case(
        "uneven-final-gain",
        "LM-FINAL-NORM",
        "a final gain from 1/8 to 8",
        inputs.uneven_final_gain,
        flags=("final-norm",),
    ),
    Case(
        "large-stream",
        "LM-FINAL-NORM",
        "embeddings of size 20",
        scaled(2, 5, {"token_embeddings.weight": 20.0}),
        flags=("final-norm",),
    ),
    Case(
        "square-head",
        "LM-HEAD",
        "vocab_size = d_model = 12",
        plain(2, 5, vocab_size=12, num_layers=1),
        flags=("head", "equal-axes"),
    ),
    Case(
        "tiny-stream",
        "LM-EPS",
        "a stream of 1e-3 throughout",
        scaled(2, 5, TINY),
        flags=("eps-dominates",),
    ),
    Case(
        "full-context",
        "LM-CONTEXT",
        "as many tokens as the context",
        plain(2, 6, context_length=6),
        flags=("context",),
    ),
    Case(
        "long-context",
        "LM-CONTEXT",
        "20 tokens in a context of 300",
        plain(1, 20, context_length=300),
        flags=("context",),
    ),
    Case(
        "long-and-narrow",
        "LM-CONTEXT",
        "12 tokens, more than d_model, d_ff and vocab_size: only the context bounds them",
        plain(2, 12, num_layers=1, **SMALL),
        flags=("context",),
    ),
    Case(
        "one-token",
        "LM-CONTEXT",
        "a single token",
        plain(3, 1, num_layers=1),
        flags=("context", "sizes"),
    ),
    Case(
        "context-of-one",
        "LM-CONTEXT",
        "a context of one token",
        plain(2, 1, context_length=1, **SMALL),
        flags=("context", "sizes"),
    ),
    Case("theta-small", "LM-THETA", "theta 2", plain(1, 9, rope_theta=2.0), flags=("theta",)),
    Case("theta-large", "LM-THETA", "theta 1e6", plain(1, 9, rope_theta=1e6), flags=("theta",)),
    Case(
        "narrow-hidden",
        "LM-FEED-FORWARD",
        "d_ff 5",
        plain(2, 4, d_ff=5, num_layers=1),
        flags=("feed-forward",),
    ),
    Case(
        "square-hidden",
        "LM-FEED-FORWARD",
        "d_ff = d_model",
        plain(2, 4, d_ff=12, num_layers=1),
        flags=("feed-forward", "equal-axes"),
    ),
    Case(
        "wide-hidden",
        "LM-FEED-FORWARD",
        "d_ff 67",
        plain(2, 3, d_ff=67, num_layers=1),
        flags=("feed-forward",),
    ),
    Case(
        "two-words",
        "LM-VOCABULARY",
        "2 tokens",
        plain(2, 5, vocab_size=2, num_layers=1),
        flags=("vocabulary",),
    ),
    Case(
        "many-words",
        "LM-VOCABULARY",
        "301 tokens, some ids beyond what a byte holds",
        with_ids([[300, 44, 256, 7], [0, 299, 255, 300]], vocab_size=301, num_layers=1),
        flags=("vocabulary",),
    ),
    Case(
        "batch-of-one", "LM-SIZES", "a single sequence", plain(1, 6, num_layers=1), flags=("sizes",)
    ),
    Case(
        "large-batch",
        "LM-SIZES",
        "more sequences than heads and tokens",
        plain(34, 3, **SMALL),
        flags=("sizes",),
    ),
    Case(
        "batch-equals-heads", "LM-SIZES", "3 sequences, 3 heads", plain(3, 5), flags=("equal-axes",)
    ),
    Case(
        "all-equal",
        "LM-SIZES",
        "batch = heads = length = head width = context = 4",
        plain(
            4, 4, d_model=16, num_heads=4, d_ff=16, vocab_size=16, context_length=4, num_layers=2
        ),
        flags=("equal-axes", "context"),
    ),
    Case(
        "one-head",
        "LM-SIZES",
        "one head",
        plain(2, 5, d_model=6, num_heads=1, num_layers=1),
        flags=("sizes",),
    ),
    Case(
        "shuffled-names",
        "LM-WEIGHT-NAMES",
        "the dictionary in another order",
        shuffled(plain(2, 4, **SMALL)),
        flags=("weight-names",),
        golden=False,
    ),
    Case(
        "weight-gradient",
        "LM-WEIGHT-GRADIENT",
        "all weights, with repeated tokens",
        with_ids(REPEATED, **SMALL, num_layers=2),
        flags=("gradient", "ids"),
        wrt=inputs.names(2),
    ),
    Case(
        "unbatched",
        "LM-LEADING-AXES",
        "ids (seq,)",
        ids_of_shape(5, **SMALL),
        flags=("leading-axes",),
    ),
    Case(
        "two-leading-axes",
        "LM-LEADING-AXES",
        "ids (2, 4, seq)",
        ids_of_shape(2, 4, 3, **SMALL),
        flags=("leading-axes",),
    ),
    Case(
        "empty",
        "LM-EMPTY-BATCH",
        "no sequence at all",
        ids_of_shape(0, 4, **SMALL),
        flags=("leading-axes",),
        golden=False,
    ),
    Case("half", "LM-HALF-VALUES", "2 layers", plain(2, 5), flags=("half",), dtypes=HALF),
    Case("double", "LM-FLOAT64", "2 layers", plain(2, 5), flags=("float64",), dtypes=("float64",)),
    Case(
        "no-layers",
        "LM-NO-LAYERS",
        "num_layers = 0",
        plain(2, 4, num_layers=0),
        flags=("layers",),
        golden=False,
    ),
    Case(
        "overlong",
        "LM-OVERLONG",
        "one token more than the context",
        plain(2, 7, context_length=6),
        flags=("context",),
        golden=False,
    ),
)

COMPONENT = Component(
    name="transformer_lm",
    oracle=transformer_lm,
    cases=CASES,
    parameters=inputs.names(2),
)
