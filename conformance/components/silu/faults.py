"""What people write instead of the definition of silu."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("silu")
fault = MISTAKES.fault
