"""What people write instead of the definition of scaled_dot_product_attention."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("scaled_dot_product_attention")
fault = MISTAKES.fault
