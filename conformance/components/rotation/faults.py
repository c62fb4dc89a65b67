"""What people write instead of the definition of rotation."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("rotation")
fault = MISTAKES.fault
