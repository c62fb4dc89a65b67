"""What people write instead of the definition of transformer_lm."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("transformer_lm")
fault = MISTAKES.fault
