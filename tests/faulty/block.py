"""Faults of the transformer block: how its parts are put together, and wrong attention in it."""

import torch.nn.functional as F
from torch import Tensor

from ..adapting import block_by
from ..parts import (
    Attention,
    Block,
    Function,
    pre_norm,
)
from .catalogue import CONVENTION, PYTORCH, SUBMISSIONS, Entry, registrar
from .pieces import ATTENTION, register
from .rotations import ROTATIONS

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "transformer_block", "block", block_by)
RIGHT = Block()


def wired(by: Function) -> Block:
    """The block with by(x, norm1, attention, norm2, feed-forward) for the way parts are joined."""
    return Block(wire=by)


def staged(
    first: Function = lambda x, n1, a: x + a(n1(x)),
    second: Function = lambda z, n2, f: z + f(n2(z)),
) -> Block:
    """The block as two stages: z = first(x, norm1, attention), second(z, norm2, feed-forward)."""
    return Block(wire=lambda x, n1, a, n2, f: second(first(x, n1, a), n2, f))


def attending(pieces: Attention) -> Block:
    """The block with other pieces of attention."""
    return Block(attention=pieces)


register(fault, [*ATTENTION, *ROTATIONS], attending)

fault(
    "post-norm",
    "Normalises after the residual additions instead of before the sublayers.",
    "Follow the residual stream: may a norm stand on it?",
    source=CONVENTION,
)(staged(first=lambda x, n1, a: n1(x + a(x)), second=lambda z, n2, f: n2(z + f(z))))

fault(
    "sublayer-output-normalised",
    "Normalises what the sublayers give instead of what they get.",
    "On which side of a sublayer does its norm stand?",
    source=CONVENTION,
)(staged(first=lambda x, n1, a: x + n1(a(x)), second=lambda z, n2, f: z + n2(f(z))))

fault(
    "first-residual-missing",
    "Leaves out the residual connection around attention.",
    "What does the block do when all its weights are zero?",
)(staged(first=lambda x, n1, a: a(n1(x))))

fault(
    "second-residual-missing",
    "Leaves out the residual connection around the feed-forward network.",
    "What does the block do when all its weights are zero?",
)(staged(second=lambda z, n2, f: f(n2(z))))

fault(
    "residuals-missing",
    "Leaves out both residual connections.",
    "What does the block do when all its weights are zero?",
)(wired(lambda x, n1, a, n2, f: f(n2(a(n1(x))))))

fault(
    "first-residual-normalised",
    "Adds the attention's result to the normalised input.",
    "Follow the residual stream: may a norm stand on it?",
    source=SUBMISSIONS,
)(staged(first=lambda x, n1, a: n1(x) + a(n1(x))))

fault(
    "second-residual-normalised",
    "Adds the feed-forward result to its normalised input.",
    "Follow the residual stream: may a norm stand on it?",
    source=SUBMISSIONS,
)(staged(second=lambda z, n2, f: n2(z) + f(n2(z))))

fault(
    "second-residual-from-input",
    "Adds the feed-forward result to the block's input, which loses the attention's.",
    "What does the second addition continue?",
    source=SUBMISSIONS,
)(wired(lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x))))))

fault(
    "input-added-twice",
    "Adds the block's input at both additions.",
    "What does the second addition continue?",
)(wired(lambda x, n1, a, n2, f: x + pre_norm(x, n1, a, n2, f)))

fault(
    "parallel",
    "Feeds the feed-forward network from the block's input, side by side with attention.",
    "What does the second sublayer see?",
    source=CONVENTION,
)(wired(lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x))))

fault(
    "feed-forward-first",
    "Runs the feed-forward network before attention.",
    "Which sublayer comes first?",
)(wired(lambda x, n1, a, n2, f: pre_norm(x, n2, f, n1, a)))

fault(
    "feed-forward-missing",
    "Leaves out the feed-forward network.",
    "Are all the weights used?",
)(wired(lambda x, n1, a, n2, f: x + a(n1(x))))

fault("attention-missing", "Leaves out attention.", "Are all the weights used?")(
    wired(lambda x, n1, a, n2, f: x + f(n2(x)))
)

fault(
    "first-norm-missing",
    "Feeds attention the input as it is.",
    "Double the input: by how much do the scores grow?",
)(staged(first=lambda x, n1, a: x + a(x)))

fault(
    "second-norm-missing",
    "Feeds the feed-forward network the residual stream as it is.",
    "What does each sublayer see?",
)(staged(second=lambda z, n2, f: z + f(z)))

fault(
    "first-norm-shared",
    "Uses the first norm for both sublayers.",
    "Gains of all ones hide this.",
    source=SUBMISSIONS,
)(wired(lambda x, n1, a, n2, f: pre_norm(x, n1, a, n1, f)))

fault(
    "norms-swapped",
    "Exchanges the two norms.",
    "Gains of all ones hide this.",
)(wired(lambda x, n1, a, n2, f: pre_norm(x, n2, a, n1, f)))

fault(
    "output-normalised",
    "Normalises the block's output as well.",
    "Follow the residual stream: may a norm stand on it?",
)(staged(second=lambda z, n2, f: n2(z + f(n2(z)))))

fault(
    "residual-scaled",
    "Halves each sublayer's contribution.",
    "The two terms are added as they are.",
    source=CONVENTION,
)(staged(first=lambda x, n1, a: x + 0.5 * a(n1(x)), second=lambda z, n2, f: z + 0.5 * f(n2(z))))

fault(
    "sum-divided-by-root-two",
    "Divides each sum by the root of two.",
    "The two terms are added as they are.",
    source=CONVENTION,
)(
    staged(
        first=lambda x, n1, a: (x + a(n1(x))) / 2**0.5,
        second=lambda z, n2, f: (z + f(n2(z))) / 2**0.5,
    )
)

fault(
    "attention-sees-normalised-twice",
    "Normalises once in the block and once more in attention.",
    "How often is the sublayer's input normalised?",
)(staged(first=lambda x, n1, a: x + a(n1(n1(x)))))

fault(
    "dropout-active",
    "Applies dropout to what the sublayers give at every call.",
    "Does the same input give the same output twice?",
    source=PYTORCH,
)(
    staged(
        first=lambda x, n1, a: x + F.dropout(a(n1(x)), 0.5),
        second=lambda z, n2, f: z + F.dropout(f(n2(z)), 0.5),
    )
)

fault(
    "residual-detached",
    "Detaches the residual stream before the second addition.",
    "Along which path does the gradient stay whole?",
    source=PYTORCH,
    visible="gradient",
)(staged(second=lambda z, n2, f: z.detach() + f(n2(z))))

fault(
    "attention-without-gradient",
    "Runs attention under torch.no_grad.",
    "Ask for the gradient of every weight.",
    source=PYTORCH,
    visible="gradient",
)(staged(first=lambda x, n1, a: x + a(n1(x)).detach()))


def added_in_place(x: Tensor, n1: Function, a: Function, n2: Function, f: Function) -> Tensor:
    """Both residual additions into the block's input."""
    x += a(n1(x))
    x += f(n2(x))
    return x


fault(
    "input-overwritten",
    "Adds what the sublayers give to the input in place.",
    "An operator like += changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)(wired(added_in_place))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a single token.",
    visible="shape",
    at={"lead": (1,)},
)(staged(second=lambda z, n2, f: (z + f(n2(z))).squeeze()))
