"""What people write instead of the definition of swiglu."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("swiglu")
fault = MISTAKES.fault
