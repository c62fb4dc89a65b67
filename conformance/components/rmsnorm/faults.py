"""What people write instead of RMSNorm.

Mistakes about the statistics replace `mean_square`, about eps `root_mean_square`, about the gain
`with_gain`, so that one of each can be combined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.components.rmsnorm.oracle import (
    mean_square,
    normalised_rows,
    rmsnorm,
    root_mean_square,
    with_gain,
)
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import axes_other_than, refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32, FORMATS, Format
from conformance.numerics.tape import node

MISTAKES = Mistakes("rmsnorm")
fault = MISTAKES.fault
combined = MISTAKES.combined
BFLOAT16 = FORMATS["bfloat16"]


def norm(by: Callable[[Array, Array, float], Array]) -> Callable[..., Array]:
    """The component computed by a function of rows, gain and eps."""

    def whole(*, d_model: int, eps: float, weights: Array, in_features: Array) -> Array:
        return by(in_features, weights, eps)

    return whole


def right(x: Array, gain: Array, eps: float) -> Array:
    """The component itself."""
    return rmsnorm(d_model=x.shape[-1], eps=eps, weights=gain, in_features=x)


def as_given(x: Array) -> Array:
    """Not widened: what comes next sees the format of the input."""
    return x


def magnitude(x: Array) -> Array:
    """`|x|`."""
    return m.where(x.value < 0, -x, x)


def at_least(x: Array, bound: float) -> Array:
    """`max(x, bound)`."""
    return m.where(x.value >= bound, x, bound)


def ones(gain: Array) -> Array:
    """A gain that changes nothing."""
    return m.constant(np.ones(gain.shape), gain)


fault("rmsnorm-eps-outside-root", "root_mean_square")(lambda x, eps: m.sqrt(mean_square(x)) + eps)

fault("rmsnorm-eps-ignored", "root_mean_square")(lambda x, eps: m.sqrt(mean_square(x)))

fault("rmsnorm-eps-always-1e-5", "root_mean_square")(lambda x, eps: root_mean_square(x, 1e-5))

fault("rmsnorm-eps-always-1e-6", "root_mean_square")(lambda x, eps: root_mean_square(x, 1e-6))

fault("rmsnorm-eps-always-1e-8", "root_mean_square")(lambda x, eps: root_mean_square(x, 1e-8))

fault("rmsnorm-eps-squared", "root_mean_square")(lambda x, eps: root_mean_square(x, eps**2))

fault("rmsnorm-eps-as-lower-bound", "root_mean_square")(
    lambda x, eps: m.sqrt(at_least(mean_square(x), eps))
)

fault("rmsnorm-length-with-lower-bound", "root_mean_square")(
    lambda x, eps: (
        m.sqrt(at_least(mean_square(x) * float(x.shape[-1]), eps**2)) / float(x.shape[-1]) ** 0.5
    )
)

fault("rmsnorm-eps-inside-mean", "root_mean_square")(
    lambda x, eps: root_mean_square(x, eps / x.shape[-1])
)

combined(
    "rmsnorm-eps-added-to-result",
    root_mean_square=lambda x, eps: m.sqrt(mean_square(x)),
    rmsnorm=norm(lambda x, gain, eps: right(x, gain, eps) + eps),
)

fault("rmsnorm-normalised-twice", "normalised_rows")(
    lambda x, eps: normalised_rows(normalised_rows(x, eps), eps)
)

fault("rmsnorm-gain-ignored", "with_gain")(lambda normalised, gain: normalised)

fault("rmsnorm-gain-added", "with_gain")(lambda normalised, gain: normalised + gain)

fault("rmsnorm-gain-plus-one", "with_gain")(
    lambda normalised, gain: with_gain(normalised, 1.0 + gain)
)

fault("rmsnorm-gain-before-statistics")(
    norm(lambda x, gain, eps: m.cast(right(x * gain, ones(gain), eps), x.format))
)

fault("rmsnorm-gain-first-element", "with_gain")(
    lambda normalised, gain: with_gain(normalised, gain[:1])
)

fault("rmsnorm-gain-normalised", "with_gain")(
    lambda normalised, gain: with_gain(normalised, gain / m.mean(gain))
)

fault("rmsnorm-gain-absolute", "with_gain")(
    lambda normalised, gain: with_gain(normalised, magnitude(gain))
)

fault("rmsnorm-gain-along-sequence", "with_gain")(
    lambda normalised, gain: with_gain(normalised, m.reshape(gain, (*gain.shape, 1)))
)

fault("rmsnorm-layer-norm", "normalised_rows")(lambda x, eps: normalised_rows(x - m.mean(x), eps))

fault("rmsnorm-variance-for-mean-square", "mean_square")(lambda x: mean_square(x - m.mean(x)))

fault("rmsnorm-unbiased-mean", "mean_square")(
    lambda x: m.total(m.square(x)) / float(x.shape[-1] - 1)
)

fault("rmsnorm-sum-for-mean", "mean_square")(lambda x: m.total(m.square(x)))

fault("rmsnorm-mean-magnitude", "root_mean_square")(lambda x, eps: m.mean(magnitude(x)) + eps)

fault("rmsnorm-root-missing", "root_mean_square")(lambda x, eps: mean_square(x) + eps)

fault("rmsnorm-first-half-statistics", "mean_square")(
    lambda x: mean_square(x[..., : x.shape[-1] // 2])
)

fault("rmsnorm-largest-magnitude", "root_mean_square")(
    lambda x, eps: m.maximum(magnitude(x), through=True) + eps
)

fault("rmsnorm-statistics-along-sequence", "mean_square")(lambda x: m.mean(m.square(x), -2))

fault("rmsnorm-statistics-over-sample", "mean_square")(lambda x: m.mean(mean_square(x), -2))

fault("rmsnorm-statistics-over-everything", "mean_square")(
    lambda x: mean_square(m.reshape(x, (-1,)))
)

fault("rmsnorm-statistics-over-batch", "mean_square")(lambda x: m.mean(mean_square(x), 0))

fault("rmsnorm-axis-two-always", "mean_square")(lambda x: m.mean(m.square(x), 2))


def squares_in(x: Array, fmt: Format) -> Array:
    """The mean of squares that are rounded, and may overflow, in a format."""
    return m.rounded(m.mean(m.rounded(m.square(x), fmt)), fmt)


def through(x: Array, fmt: Format) -> Array:
    """`x` converted to a format and back, its gradient too."""
    value = m.rounded(x, fmt).value
    return node(value, [(x, lambda g: m.rounded(g, fmt))], x.format, rounded=False)


def root_in(square: Array, eps: float, fmt: Format) -> Array:
    """`sqrt(square + eps)` with every result rounded to a format."""
    return m.rounded(m.sqrt(m.rounded(square + eps, fmt)), fmt)


def running_mean_square(x: Array) -> Array:
    """The mean of squares added up one by one in the format of `x`; differentiated as it is."""
    exact = m.total(m.square(x))
    squares = m.rounded(m.square(x), x.format).value.astype(x.format.numpy)
    added = np.add.accumulate(squares, axis=-1)[..., -1:].astype(np.float64)
    return node(added, [(exact, lambda g: g)], x.format, rounded=False) / float(x.shape[-1])


combined(
    "rmsnorm-eps-lost-in-half",
    widened_features=as_given,
    root_mean_square=lambda x, eps: root_in(m.rounded(mean_square(x), x.format), eps, x.format),
)

combined(
    "rmsnorm-squares-in-half",
    widened_features=as_given,
    root_mean_square=lambda x, eps: root_in(squares_in(x, x.format), eps, x.format),
)

combined("rmsnorm-low-precision-sum", widened_features=as_given, mean_square=running_mean_square)

combined(
    "rmsnorm-bfloat16-inside",
    widened_features=lambda x: through(x, BFLOAT16),
    rmsnorm=norm(lambda x, gain, eps: through(right(x, gain, eps), BFLOAT16)),
)

combined(
    "rmsnorm-float64-through-float32",
    widened_features=lambda x: through(x, FLOAT32),
    mean_square=lambda x: squares_in(x, FLOAT32),
    rmsnorm=norm(lambda x, gain, eps: through(right(x, gain, eps), FLOAT32)),
)

fault("rmsnorm-stays-flat")(
    norm(lambda x, gain, eps: m.reshape(right(x, gain, eps), (-1, x.shape[-1])))
)

fault("rmsnorm-drops-size-one-axes")(
    norm(lambda x, gain, eps: m.reshape(right(x, gain, eps), tuple(n for n in x.shape if n != 1)))
)

fault("rmsnorm-scale-detached", "root_mean_square")(
    lambda x, eps: m.detach(root_mean_square(x, eps))
)

fault("rmsnorm-gain-detached", "with_gain")(
    lambda normalised, gain: with_gain(normalised, m.detach(gain))
)


@fault("rmsnorm-backward-forgets-gain", "with_gain")
def backward_forgets_gain(normalised: Array, gain: Array) -> Array:
    """The right product, whose derivative is that of the normalised rows alone."""
    product = with_gain(normalised, gain)
    return node(product.value, [(normalised, lambda g: g)], product.format, rounded=False)


fault("rmsnorm-gradient-nan-at-zero", "root_mean_square")(
    lambda x, eps: m.sqrt(m.square(m.sqrt(mean_square(x))) + eps)
)


fault("rmsnorm-three-axes-only")(norm(refusing(right, axes_other_than(3))))


@fault("rmsnorm-axis-lost", "root_mean_square")
def axis_lost(x: Array, eps: float) -> Array:
    root = root_mean_square(x, eps)
    return m.reshape(root, root.shape[:-1])
