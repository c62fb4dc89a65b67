"""What people write instead of the definition of multihead_self_attention."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("multihead_self_attention")
fault = MISTAKES.fault
