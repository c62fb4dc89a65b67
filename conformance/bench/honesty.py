"""Can the times be believed? What a candidate may do to look fast, and how each of it shows.

* outputs cached by shape, content or place, calls skipped, stale buffers: inputs never come twice,
  and results of samples nobody has announced are compared (`check.py`): WRONG;
* work left to a thread or another stream: the output is looked at when the clock has stopped, and
  again later: LATE;
* a clock that was replaced: names are compared (REPLACED), and the judge's own clock knows how long
  requests took, once beside those of the reference, once as the difference between N and 2N calls:
  CLOCK;
* more threads or processes than everybody else has, work before and after the timed calls: the
  system counts processor time: PROCESSORS;
* the comparison slowed down: a process without the candidate times it too: DISTURBED;
* whatever else: faster than the machine can be (FLOOR).

What is flagged is never reported as fast: its ratios are withheld.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from conformance.bench.process import CANDIDATE, REFERENCE, Sample
from conformance.bench.timing import Series

MORE_PROCESSORS = 1.3
HIDDEN_SHARE = 0.5
HIDDEN_SECONDS = 3e-4
CLOCK_FACTOR = 2.0
CLOCK_SECONDS = 2e-5
LEAST_PAIRS, MOST_PAIRS = 3, 10
"""Pairs of samples on the judge's clock: all of the most have to speak against the candidate."""

DISTURBED_FACTOR = 1.8
DISTURBED_SECONDS = 3e-5


class Kind(StrEnum):
    """Why a row is not believed."""

    WRONG = "wrong result when timed"
    LATE = "result came after the clock had stopped"
    REPLACED = "clock replaced"
    CLOCK = "clocks disagree"
    PROCESSORS = "more processors"
    DISTURBED = "comparison disturbed"
    FLOOR = "faster than the machine"


@dataclass(frozen=True)
class Flag:
    """One reason, in a sentence."""

    kind: Kind
    sentence: str


@dataclass
class Crossed:
    """Samples of few and of many calls in turn, by the judge's clock alone.

    What both have in common, the way of the request above all, cancels in their difference.
    """

    more: int
    pairs: list[tuple[float, float]] = field(default_factory=list)

    def longer(self, claimed: float) -> list[bool]:
        """For each pair: do the additional calls take much longer than is claimed?"""
        limit = (CLOCK_FACTOR * claimed + CLOCK_SECONDS) * self.more
        return [many - few > limit for few, many in self.pairs]

    def enough(self, claimed: float) -> bool:
        """Whether further pairs could not change anything."""
        if len(self.pairs) < LEAST_PAIRS:
            return False
        return len(self.pairs) >= MOST_PAIRS or not all(self.longer(claimed))

    @property
    def per_call(self) -> float | None:
        """Seconds of one call."""
        if not self.pairs:
            return None
        few = min(pair[0] for pair in self.pairs)
        many = min(pair[1] for pair in self.pairs)
        return max(0.0, many - few) / self.more


@dataclass
class Watched:
    """What was seen of a row beside its times."""

    threads: int
    screened: int = 0
    verified: int = 0
    wrong: list[str] = field(default_factory=list)
    late: int = 0
    #: seconds of one call of the reference in a process without a candidate
    clean: list[float] = field(default_factory=list)
    #: samples of N and of 2N calls on the judge's clock
    crossed: Crossed | None = None
    #: processor time and wall clock of the candidate's process over the whole row
    busy: float = 0.0
    wall: float = 0.0
    children: int = 0
    floor: float = 0.0


def flags(series: Series, seen: Watched) -> list[Flag]:
    """Everything that speaks against the times of a row."""
    samples = series.samples(CANDIDATE)
    found = [Flag(Kind.WRONG, text) for text in dict.fromkeys(seen.wrong)]
    if seen.late:
        found.append(
            Flag(Kind.LATE, f"the output changed after the clock had stopped, {seen.late} times")
        )
    found += _replaced(samples)
    found += _clock(series, seen)
    found += _processors(samples, seen)
    found += _disturbed(series, seen)
    found += _floor(samples, seen)
    return found


def _replaced(samples: Sequence[Sample]) -> list[Flag]:
    names = sorted({name for sample in samples for name in sample.replaced})
    if not names:
        return []
    return [Flag(Kind.REPLACED, f"the candidate's process has replaced {', '.join(names[:5])}")]


def hidden_seconds(series: Series) -> float:
    """Seconds of a sample that the judge's clock sees and the worker's does not, beyond those of
    the reference's samples.

    Of each block the two samples that count. Surely more than half of the blocks show at least this
    much (sign test, one in a thousand): what a busy machine does happens to both.
    """
    if REFERENCE not in series.calls:
        return 0.0
    found = sorted(_unseen(block[CANDIDATE]) - _unseen(block[REFERENCE]) for block in series.blocks)
    count = len(found)
    return found[max(0, math.floor(count / 2 - 1.55 * math.sqrt(count)))]


def _unseen(pair: tuple[Sample, Sample]) -> float:
    counted = min(pair, key=lambda sample: sample.seconds)
    return counted.judge_seconds - counted.seconds


def _clock(series: Series, seen: Watched) -> list[Flag]:
    claimed = float(np.median(series.per_call(CANDIDATE)))
    hidden = hidden_seconds(series)
    own = float(np.median([s.seconds for s in series.samples(CANDIDATE)]))
    if hidden > HIDDEN_SECONDS + HIDDEN_SHARE * own:
        text = f"{hidden * 1e3:.3g} ms of each sample do not show on the process's own clock"
        return [Flag(Kind.CLOCK, text)]
    crossed = seen.crossed
    if crossed is not None and len(crossed.pairs) >= MOST_PAIRS and all(crossed.longer(claimed)):
        text = (
            f"a call takes {(crossed.per_call or 0.0) * 1e3:.3g} ms by the judge's clock and "
            f"{claimed * 1e3:.3g} ms by that of the process"
        )
        return [Flag(Kind.CLOCK, text)]
    return []


def _processors(samples: Sequence[Sample], seen: Watched) -> list[Flag]:
    wall = sum(sample.seconds for sample in samples)
    busy = sum(sample.processor for sample in samples)
    if wall and busy > MORE_PROCESSORS * seen.threads * wall:
        text = f"its calls kept {busy / wall:.1f} processors busy, with {seen.threads} allowed"
        return [Flag(Kind.PROCESSORS, text)]
    if any(sample.threads != seen.threads for sample in samples):
        return [Flag(Kind.PROCESSORS, "it has changed the number of threads")]
    if seen.wall > 0.2 and seen.busy > MORE_PROCESSORS * seen.threads * seen.wall:
        text = f"its process kept {seen.busy / seen.wall:.1f} processors busy beside its calls"
        return [Flag(Kind.PROCESSORS, text)]
    if seen.children:
        return [Flag(Kind.PROCESSORS, f"{seen.children} processes that it started were running")]
    return []


def _disturbed(series: Series, seen: Watched) -> list[Flag]:
    if REFERENCE not in series.calls or not seen.clean:
        return []
    here, alone = min(series.per_call(REFERENCE)), min(seen.clean)
    if here <= DISTURBED_FACTOR * alone + DISTURBED_SECONDS:
        return []
    return [
        Flag(
            Kind.DISTURBED,
            f"the reference takes {here * 1e3:.3g} ms in the candidate's process and "
            f"{alone * 1e3:.3g} ms without it",
        )
    ]


def _floor(samples: Sequence[Sample], seen: Watched) -> list[Flag]:
    claimed = float(np.median([sample.per_call for sample in samples]))
    if claimed >= seen.floor:
        return []
    return [
        Flag(
            Kind.FLOOR,
            f"a call takes {claimed * 1e6:.3g} us, and this machine cannot do that work in less "
            f"than {seen.floor * 1e6:.3g} us",
        )
    ]
