"""What people write instead of RMSNorm."""

from __future__ import annotations

from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.diagnosis.catalogue import Mistakes
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("rmsnorm")
fault = MISTAKES.fault


def mean_square(x: Array) -> Array:
    """(..., d) -> (..., 1)."""
    return m.mean(m.square(m.upcast(x)))


def divided(x: Array, rms: Array, gain: Array) -> Array:
    """`x / rms * gain` in the format of `x`."""
    return m.cast(m.upcast(x) / rms * gain, x.format)


@fault("rmsnorm-eps-outside-root")
def eps_outside_root(*, d_model: int, eps: float, weights: Array, in_features: Array) -> Array:
    return divided(in_features, m.sqrt(mean_square(in_features)) + eps, weights)


@fault("rmsnorm-eps-always-1e-5")
def eps_always_1e_5(*, d_model: int, eps: float, weights: Array, in_features: Array) -> Array:
    return rmsnorm(d_model=d_model, eps=1e-5, weights=weights, in_features=in_features)
