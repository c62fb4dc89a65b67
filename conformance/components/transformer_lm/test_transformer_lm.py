"""Checks of the language model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformance.components.transformer_block.inputs import NAMES
from conformance.components.transformer_lm.cases import COMPONENT
from conformance.components.transformer_lm.inputs import names
from conformance.numerics.compare import compare
from conformance.suite import Grader, check, composites, placement, protocols, transformed
from conformance.suite.case import Arguments
from conformance.suite.check import HALF
from conformance.suite.composites import Reading

case = COMPONENT.case
IDS = ("in_indices",)


@check("LM-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-DEFINITION"))


@check("LM-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("LM-LOGITS")
def test_logits(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-LOGITS"))


@check("LM-EMBEDDING")
def test_embedding(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-EMBEDDING"))


@check("LM-LAYERS")
def test_layers(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-LAYERS"))


@check("LM-FINAL-NORM")
def test_final_norm(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-FINAL-NORM"))


@check("LM-HEAD")
def test_head(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-HEAD"))


@check("LM-EPS")
def test_small_stream(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-EPS"))


@check("LM-CONTEXT")
def test_context(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-CONTEXT"))


@check("LM-THETA")
def test_theta(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-THETA"))


@check("LM-FEED-FORWARD")
def test_feed_forward(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-FEED-FORWARD"))


@check("LM-VOCABULARY")
def test_vocabulary(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-VOCABULARY"))


@check("LM-SIZES")
def test_sizes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-SIZES"))


@check("LM-WEIGHT-NAMES")
def test_weights_by_name(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-WEIGHT-NAMES"))


# ---------------------------------------------------------------- laws


@check("LM-CAUSAL")
def test_later_tokens_change_nothing(grade: Grader) -> None:
    """With other ids from position 1, 4 or 6 on, the logits before are those of the first ids."""
    example = grade.bounded(grade.example(case("ordinary")))
    for first in (1, 4, 6):
        ids = np.copy(example.arguments["in_indices"])
        ids[:, first:] = (ids[:, first:] + 11) % example.arguments["vocab_size"]
        before = (slice(None), slice(first))
        claim = f"before the ids that were changed from position {first} on, the result"
        protocols.unaffected(grade, example, {"in_indices": ids}, before, before, claim)


@check("LM-CAUSAL", profile="standard")
def test_prefix(grade: Grader) -> None:
    """The logits of a prefix are the first logits of the whole."""
    example = grade.bounded(grade.example(case("ordinary")))
    for length in (1, 3, 6):
        prefix = {"in_indices": example.arguments["in_indices"][:, :length]}
        first = (slice(None), slice(length))
        claim = f"for the first {length} ids alone, the result"
        protocols.unaffected(grade, example, prefix, ..., first, claim)


@check("LM-SIZES")
def test_sequences_are_independent(grade: Grader) -> None:
    """Each sequence alone has the logits that it has in the batch."""
    example = grade.bounded(grade.example(case("large-batch")))
    for entry in (0, 4, 6):
        own = slice(entry, entry + 1)
        alone = {"in_indices": example.arguments["in_indices"][own]}
        claim = f"for sequence {entry} of the batch alone, the result"
        protocols.unaffected(grade, example, alone, ..., own, claim)


# ---------------------------------------------------------------- gradients


@check("LM-WEIGHT-GRADIENT")
def test_gradients_of_weights(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-WEIGHT-GRADIENT"))


@check("LM-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("weight-gradient"))


# ---------------------------------------------------------------- what SHOULD work


@check("LM-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("LM-LEADING-AXES"))


@check("LM-EMPTY-BATCH", profile="standard")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("ordinary"), case("empty"))


# ---------------------------------------------------------------- a function of its arguments


@check("LM-STRIDES")
def test_layouts(grade: Grader) -> None:
    protocols.layouts(grade, case("ordinary"), "in_indices")


@check("LM-PURE")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("ordinary"), (*IDS, "weights"))


@check("LM-DICTIONARY")
def test_dictionary_unchanged(grade: Grader) -> None:
    protocols.dictionary_unchanged(grade, case("ordinary"), "weights")


@check("LM-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    protocols.result_is_fresh(grade, case("ordinary"), IDS)


@check("LM-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))
    names = ("ordinary", "theta-small", "one-head", "long-context")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("LM-MODES")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("LM-DEVICE")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


# ---------------------------------------------------------------- dtypes


@check("LM-HALF", dtypes=HALF)
def test_half_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, case("half"))


@check("LM-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_values_in_other_dtypes(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("LM-FLOAT64", dtypes=("float64",), profile="standard")
def test_float64_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, case("double"))


# ---------------------------------------------------------------- left open


@check("LM-NO-LAYERS")
def test_no_layers(grade: Grader) -> None:
    bounds = grade.bounded(grade.example(case("no-layers"))).bounds
    assert bounds is not None

    def describe(result: np.ndarray) -> str:
        as_expected = not compare(result, bounds.result).problem
        return f"no layers: {'' if as_expected else 'not '}the head on the normalised embedding"

    protocols.observe(grade, case("no-layers"), describe)


@check("LM-OVERLONG")
def test_more_tokens_than_context(grade: Grader) -> None:
    def describe(result: np.ndarray) -> str:
        return f"more tokens than the context are answered, in shape {result.shape}"

    protocols.observe(grade, case("overlong"), describe)


@check("LM-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form


def _parameters(arguments: Arguments) -> Mapping[str, str]:
    return {name.removeprefix("weights."): name for name in names(arguments["num_layers"])}


def _likely(arguments: Arguments) -> Mapping[int, str]:
    width, layers = arguments["d_model"], arguments["num_layers"]
    block = sum(arguments["weights"][f"layers.0.{name}"].size for name in NAMES)
    return {
        -layers * block: "no layer is registered; a plain list hides modules from PyTorch",
        (1 - layers) * block: "all layers share the weights of one, or only one is registered",
        -arguments["vocab_size"] * width: "the head shares its weight with the embedding",
        -width: "a norm has no gain",
        arguments["vocab_size"]: "the head has a bias",
        arguments["context_length"] * width: "positions are learned instead of rotated",
    }


FORM = composites.Composite(
    "TransformerLM",
    needed=("vocab_size", "d_model", "num_layers", "num_heads", "d_ff"),
    known={"context_length": "context_length", "theta": "rope_theta"},
    parameters=_parameters,
    input="in_indices",
    likely=_likely,
)


@check("LM-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    composites.has_the_parameters(grade, FORM, case("ordinary"))


@check("LM-MODULE-NAMES", module=FORM.class_name)
def test_module_names(grade: Grader) -> None:
    composites.names_noted(grade, FORM, case("ordinary"))


@check("LM-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    composites.keeps_no_tables(grade, FORM, case("ordinary"))


@check("LM-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    made = case("ordinary").arguments("float32")
    composites.forward_matches(grade, Reading(FORM, COMPONENT, made), told=True)


@check("LM-MODULE-GRADIENT", module=FORM.class_name)
def test_module_gradients(grade: Grader) -> None:
    composites.reaches_every_parameter(grade, FORM, case("ordinary"))


@check("LM-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    composites.honours_dtype(grade, FORM, case("ordinary"))


@check("LM-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device_where_taken(grade, FORM, case("ordinary"))


@check("LM-MODULE-CONTEXT", module=FORM.class_name)
def test_module_over_the_whole_context(grade: Grader) -> None:
    made = case("full-context").arguments("float32")
    composites.forward_matches(grade, Reading(FORM, COMPONENT, made), told=True)


@check("LM-MODULE-CONVERTED", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_converted(grade: Grader) -> None:
    made = case("ordinary").arguments(grade.dtype)
    composites.converted_matches(grade, Reading(FORM, COMPONENT, made), told=True)


@check("LM-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    composites.learns(grade, FORM, case("ordinary"))
