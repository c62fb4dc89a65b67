"""What people write instead of the definition of embedding."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("embedding")
fault = MISTAKES.fault
