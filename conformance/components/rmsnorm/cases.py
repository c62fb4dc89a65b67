"""Inputs on which mistakes in RMSNorm show."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component


def _arguments(x: Any, weights: Any, eps: float = 1e-5) -> dict[str, Any]:
    return {"d_model": x.shape[-1], "eps": eps, "weights": weights, "in_features": x}


def _gain(draw: Draw, d_model: int) -> Any:
    """A gain that is neither one nor positive throughout."""
    return draw.uniform(d_model, low=0.5, high=2.0) * draw.signs(d_model)


def _ordinary(draw: Draw) -> dict[str, Any]:
    return _arguments(draw.normal(2, 5, 12), _gain(draw, 12))


def _tiny(draw: Draw) -> dict[str, Any]:
    rows = draw.normal(6, 8) * np.array([1e-1, 1e-2, 3e-3, 1e-3, 1e-4, 1e-6])[:, None]
    return _arguments(rows, _gain(draw, 8))


CASES = (
    Case("ordinary", "RMSNORM-DEFINITION", "rows of order one with a gain of both signs", _ordinary, flags=("ordinary",)),
    Case("tiny-rows", "RMSNORM-EPS", "the mean square is near or far below eps: eps outside the root, left out or of another size shows", _tiny, flags=("eps-dominates",)),
)

COMPONENT = Component(
    name="rmsnorm", oracle=rmsnorm, cases=CASES, inputs=("in_features",), parameters=("weights",)
)
