"""Diagnoses in words: what was found, how sure that is, and what to think about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.diagnosis.catalogue import Fault
from conformance.diagnosis.exceptions import reading
from conformance.diagnosis.match import Match
from conformance.diagnosis.observe import Observation
from conformance.diagnosis.patterns import pattern
from conformance.report import Diagnosis
from conformance.suite.component import Component
from conformance.suite.failure import CheckResult

SURE = 3
"""A single mistake that fits so many inputs on which it shows is called certain."""

NAMED = 4
"""So many mistakes that cannot be told apart are named."""


def matched(owner: Component, matches: Sequence[Match], alone: bool) -> Diagnosis:
    """One mistake (or two together) that predicts every answer; or several that all do.

    `alone` says that the part which holds the mistake is wrong by itself as well.
    """
    best = matches[0]
    found = best.hypothesis.faults
    place = _place(owner, found[0], alone)
    others = tuple(_id(one.hypothesis.faults) for one in matches[1:NAMED])
    told = [one.hypothesis.faults for one in matches[:NAMED]]
    sentence = place + _or(" And: ".join(fault.sentence for fault in faults) for faults in told)
    inputs = f"{best.shown} input{'s' if best.shown > 1 else ''}"
    basis = f"it predicts what was answered on {inputs} where it shows"
    if best.shown == 1:
        basis = "it predicts what was answered on the one input where it shows"
    if others:
        basis += f"; {len(matches) - 1} more predict the same"
    elif best.unexplained:
        basis += f"; {best.unexplained} more inputs fail in another way"
    else:
        basis += "; nothing else in the catalogue does"
    certainty = "likely"
    if others:
        certainty = "one of several"
    elif best.shown >= SURE and not best.unexplained:
        certainty = "certain"
    return Diagnosis(
        fault=_id(found),
        sentence=sentence,
        hint=" ".join(dict.fromkeys(fault.hint for fault in found)),
        component=found[0].component,
        certainty=certainty,
        basis=basis,
        others=others,
    )


def _or(sentences: Iterable[str]) -> str:
    """Alternatives, each told once: a mistake may be known in several parts by the same words."""
    return " Or: ".join(dict.fromkeys(sentences))


def _id(faults: Sequence[Fault]) -> str:
    return " + ".join(fault.id for fault in faults)


def _place(owner: Component, fault: Fault, alone: bool) -> str:
    if fault.component == owner.name:
        return ""
    if alone:
        return f"Its {fault.component} is wrong: "
    return f"Its {fault.component} is wrong, though the one graded by itself is right: "


def part(broken: Component, found: Diagnosis | None) -> Diagnosis:
    """The component is right but for a part that is wrong by itself."""
    sentence = f"It is built on {broken.name}, which is wrong by itself; the rest is right."
    return Diagnosis(
        fault=found.fault if found else "",
        sentence=f"{sentence} {found.sentence}" if found else sentence,
        hint=found.hint if found else f"Repair {broken.name} first.",
        component=broken.name,
        certainty="certain",
        basis=f"the definition with the candidate's own {broken.name} in it gives its answers",
        others=found.others if found else (),
    )


def beside(owner: Component, broken: Component, matches: Sequence[Match]) -> Diagnosis:
    """A part that is wrong by itself, and mistakes of the component's own that fit beside it."""
    named = [match.hypothesis.faults for match in matches[:NAMED]]
    told = _or(" And: ".join(fault.sentence for fault in faults) for faults in named)
    return Diagnosis(
        fault=_id(named[0]),
        sentence=f"It is built on {broken.name}, which is wrong by itself. And: {told}",
        hint=" ".join(dict.fromkeys(fault.hint for fault in named[0])),
        component=owner.name,
        certainty="likely" if len(matches) == 1 else "one of several",
        basis=f"the mistake and the candidate's own {broken.name} together give its answers",
        others=tuple(_id(faults) for faults in named[1:]),
    )


def behaves(owner: Component, possible: Sequence[Fault], result: CheckResult) -> Diagnosis:
    """A mistake that is known by the requirement that it breaks."""
    cause = reading(result.message)
    return Diagnosis(
        fault=possible[0].id,
        sentence=_or(fault.sentence for fault in possible),
        hint=" ".join(dict.fromkeys(fault.hint for fault in possible)),
        component=owner.name,
        certainty="likely" if len(possible) == 1 else "one of several",
        basis="it is known to break this requirement while plain values are right"
        + (f"; the exception says: {cause}" if cause else ""),
        others=tuple(fault.id for fault in possible[1:]),
    )


def kept(owner: Component, names: Sequence[str], possible: Sequence[Fault]) -> Diagnosis:
    """The answer is right for arguments of an earlier call."""
    return _named(
        owner,
        possible,
        f"It answers as if {_listed(names)} of an earlier call.",
        "What is kept between calls, and by what is it found again?",
        f"the wrong answer is right for {', '.join(names)} of another call",
    )


def _listed(names: Sequence[str]) -> str:
    """ "theta were that" or "q, k and v were those"."""
    if len(names) == 1:
        return f"{names[0]} were that"
    return f"{', '.join(names[:-1])} and {names[-1]} were those"


def unsteady(owner: Component, possible: Sequence[Fault]) -> Diagnosis:
    """One input is answered in more than one way."""
    return _named(
        owner,
        possible,
        "It answers the same input in different ways.",
        "What is kept between calls, or drawn anew in each?",
        "one input was asked several times and answered differently",
    )


def _named(
    owner: Component, possible: Sequence[Fault], sentence: str, hint: str, basis: str
) -> Diagnosis:
    """What was seen, and the faults of the catalogue that do this."""
    known = _or(fault.sentence for fault in possible)
    return Diagnosis(
        fault=possible[0].id if possible else "",
        sentence=f"{sentence} {known}".rstrip(),
        hint=" ".join(dict.fromkeys(fault.hint for fault in possible)) or hint,
        component=owner.name,
        certainty="likely" if len(possible) < 2 else "one of several",
        basis=basis,
        others=tuple(fault.id for fault in possible[1:]),
    )


def raised(name: str, result: CheckResult, where: str) -> Diagnosis | None:
    """What an exception says, and on which inputs it comes."""
    cause = reading(result.message)
    if not cause and not where:
        return None
    only = f"It raises only {where}" if where else "It raises"
    return Diagnosis(
        fault="",
        sentence=f"{only}: {cause}." if cause else f"{only}.",
        hint="",
        component=name,
        certainty="described",
        basis="the exception and the inputs on which it comes",
        others=(),
    )


def described(name: str, seen: Sequence[Observation], where: str) -> Diagnosis | None:
    """How wrong answers differ from right ones, and on which inputs they come."""
    how = pattern(seen)
    if not how and not where:
        return None
    only = f"It is wrong only {where}" if where else "No known mistake explains it"
    inputs = f"{len(seen)} input{'s' if len(seen) != 1 else ''}"
    return Diagnosis(
        fault="",
        sentence=f"{only}: {how}." if how else f"{only}.",
        hint="",
        component=name,
        certainty="described",
        basis=f"seen on {inputs}; no mistake of the catalogue predicts these answers",
        others=(),
    )
