"""What people write instead of the definition of softmax."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("softmax")
fault = MISTAKES.fault
