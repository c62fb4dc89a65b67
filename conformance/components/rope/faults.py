"""What people write instead of the definition of rope."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("rope")
fault = MISTAKES.fault
