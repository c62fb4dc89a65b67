"""What this machine reaches: matrix products and copies in each format, on the threads of the run.

Measured in a process without any candidate, at the start of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformance.bench.inputs import Pool
from conformance.bench.process import BenchWorker
from conformance.bench.workload import Cost

EDGES = (256, 512, 768)
GPU_EDGES = (2048, 4096, 8192)
COPIES = (1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
GPU_COPIES = (1 << 22, 1 << 26, 1 << 30)

GENEROUS = 0.4
"""A candidate that takes less than this share of what the machine needs cannot have done it."""


@dataclass(frozen=True)
class Ceiling:
    """The best rates of one format: operations, and bytes by size of what is copied."""

    dtype: str
    flops: float
    bandwidths: dict[int, float] = field(default_factory=dict)

    @property
    def best_bandwidth(self) -> float:
        """Bytes per second where caches help most."""
        return max(self.bandwidths.values())

    def bandwidth(self, moved: float) -> float:
        """Bytes per second for work that moves so many bytes."""
        nearest = min(self.bandwidths, key=lambda size: abs(2 * size - moved))
        return self.bandwidths[nearest]

    def seconds(self, cost: Cost) -> float:
        """What a perfect implementation would take: the slower of computing and moving."""
        return max(cost.matmul / self.flops, cost.bytes / self.bandwidth(cost.bytes))

    def floor(self, cost: Cost) -> float:
        """Less than this is not possible, generously."""
        return GENEROUS * max(cost.matmul / self.flops, cost.bytes / self.best_bandwidth)

    def bound(self, cost: Cost) -> str:
        """Which ceiling applies."""
        memory = cost.bytes / self.bandwidth(cost.bytes)
        return "compute" if cost.matmul / self.flops > memory else "memory"

    def to_json(self) -> dict[str, Any]:
        """As in bench.json."""
        return {
            "dtype": self.dtype,
            "flops_per_second": self.flops,
            "bytes_per_second": {str(size): rate for size, rate in self.bandwidths.items()},
        }


def measure_ceiling(
    worker: BenchWorker, pool: Pool, label: str, *, seconds: float, gpu: bool, tf32: bool = False
) -> Ceiling:
    """The ceiling of the pool's format; `seconds` in all."""
    worker.pool(pool, tf32=tf32)
    edges, copies = (GPU_EDGES, GPU_COPIES) if gpu else (EDGES, COPIES)
    budget = seconds / (len(edges) + len(copies))
    flops = max(2.0 * edge**3 / worker.ceiling("product", edge, budget) for edge in edges)
    rates = {size: 2.0 * size / worker.ceiling("copy", size, budget) for size in copies}
    return Ceiling(label, flops, rates)
