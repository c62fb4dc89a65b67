"""Faults of the transformer block: how its parts are put together, and wrong attention in it."""

import torch.nn.functional as F
from torch import Tensor

from ..adapting import block_by
from ..parts import Attention, Block, Function, pre_norm
from .catalogue import Entry, registrar
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

fault("post-norm")(
    staged(first=lambda x, n1, a: n1(x + a(x)), second=lambda z, n2, f: n2(z + f(z)))
)

fault("sublayer-output-normalised")(
    staged(first=lambda x, n1, a: x + n1(a(x)), second=lambda z, n2, f: z + n2(f(z)))
)

fault("first-residual-missing")(staged(first=lambda x, n1, a: a(n1(x))))

fault("second-residual-missing")(staged(second=lambda z, n2, f: f(n2(z))))

fault("residuals-missing")(wired(lambda x, n1, a, n2, f: f(n2(a(n1(x))))))

fault("first-residual-normalised")(staged(first=lambda x, n1, a: n1(x) + a(n1(x))))

fault("second-residual-normalised")(staged(second=lambda z, n2, f: n2(z) + f(n2(z))))

fault("second-residual-from-input")(wired(lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x))))))

fault("input-added-twice")(wired(lambda x, n1, a, n2, f: x + pre_norm(x, n1, a, n2, f)))

fault("parallel")(wired(lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x))))

fault("feed-forward-first")(wired(lambda x, n1, a, n2, f: pre_norm(x, n2, f, n1, a)))

fault("feed-forward-missing")(wired(lambda x, n1, a, n2, f: x + a(n1(x))))

fault("attention-missing")(wired(lambda x, n1, a, n2, f: x + f(n2(x))))

fault("first-norm-missing")(staged(first=lambda x, n1, a: x + a(x)))

fault("second-norm-missing")(staged(second=lambda z, n2, f: z + f(z)))

fault("first-norm-shared")(wired(lambda x, n1, a, n2, f: pre_norm(x, n1, a, n1, f)))

fault("norms-swapped")(wired(lambda x, n1, a, n2, f: pre_norm(x, n2, a, n1, f)))

fault("output-normalised")(staged(second=lambda z, n2, f: n2(z + f(n2(z)))))

fault("residual-scaled")(
    staged(first=lambda x, n1, a: x + 0.5 * a(n1(x)), second=lambda z, n2, f: z + 0.5 * f(n2(z)))
)

fault("sum-divided-by-root-two")(
    staged(
        first=lambda x, n1, a: (x + a(n1(x))) / 2**0.5,
        second=lambda z, n2, f: (z + f(n2(z))) / 2**0.5,
    )
)

fault("attention-sees-normalised-twice")(staged(first=lambda x, n1, a: x + a(n1(n1(x)))))

fault("dropout-active")(
    staged(
        first=lambda x, n1, a: x + F.dropout(a(n1(x)), 0.5),
        second=lambda z, n2, f: z + F.dropout(f(n2(z)), 0.5),
    )
)

fault("residual-detached")(staged(second=lambda z, n2, f: z.detach() + f(n2(z))))

fault("attention-without-gradient")(staged(first=lambda x, n1, a: x + a(n1(x)).detach()))


def added_in_place(x: Tensor, n1: Function, a: Function, n2: Function, f: Function) -> Tensor:
    """Both residual additions into the block's input."""
    x += a(n1(x))
    x += f(n2(x))
    return x


fault("input-overwritten")(wired(added_in_place))

fault("drops-size-one-axes", at={"lead": (1,)})(
    staged(second=lambda z, n2, f: (z + f(n2(z))).squeeze())
)
