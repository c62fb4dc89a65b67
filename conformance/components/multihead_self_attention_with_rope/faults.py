"""What people write instead of the definition of multihead_self_attention_with_rope."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("multihead_self_attention_with_rope")
fault = MISTAKES.fault
