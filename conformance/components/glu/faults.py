"""What people write instead of the definition of glu."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("glu")
fault = MISTAKES.fault
