"""What people write instead of the definition of next_token."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("next_token")
fault = MISTAKES.fault
