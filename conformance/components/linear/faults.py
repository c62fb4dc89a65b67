"""What people write instead of the definition of linear."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("linear")
fault = MISTAKES.fault
