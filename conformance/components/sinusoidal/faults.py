"""What people write instead of the definition of sinusoidal."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("sinusoidal")
fault = MISTAKES.fault
