"""What people write instead of the definition of transformer_block."""

from __future__ import annotations

from conformance.diagnosis.catalogue import Mistakes

MISTAKES = Mistakes("transformer_block")
fault = MISTAKES.fault
