"""Mutants of the reference implementation: how they are made and judged, and a sample of them.

`python tests/mutation.py` judges all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import edits
import mutants
import mutation
from mutants import Mutant
from mutation import KILLED, Verdict

ALL = list(mutants.mutants())
LISTED = mutation.equivalent()
EVERY = 50
"""One in so many mutants is judged; survivors, which take long, only by the whole run."""

SAMPLE = [mutant for mutant in ALL if mutation.named(mutant) not in LISTED][::EVERY]


def _first(where: str, after: str) -> Mutant:
    return next(m for m in ALL if m.where == where and after in m.after)


@pytest.mark.parametrize("kind", edits.KINDS)
def test_every_kind_of_edit_is_made(kind: str) -> None:
    assert [mutant for mutant in ALL if mutant.kind == kind]


def test_every_mutant_compiles_and_is_another_program() -> None:
    for mutant in ALL[::10]:
        compile(mutant.source, mutant.id, "exec")
    originals = {mutants.plain(module) for module in mutants.trees()}
    sources = [(mutant.module, mutant.source) for mutant in ALL]
    assert len(set(sources)) == len(sources)
    assert not originals & {source for _, source in sources}


def test_mutants_are_the_same_every_time() -> None:
    assert list(mutants.mutants()) == ALL
    assert len({mutant.id for mutant in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("where", "after"),
    [
        ("norm.RMSNorm.__init__", "eps: float=1e-06"),
        ("norm.RMSNorm.forward", ".mean(dim=0, keepdim=True)"),
        ("norm.RMSNorm.forward", ".mean(dim=-1) + "),
        ("linear.Linear.forward", "return x @ self.weight"),
        ("activations.SwiGLU.forward", "silu(self.w3(x)) * self.w3(x)"),
        ("attention.causal_mask", ".triu()"),
        ("attention.scaled_dot_product_attention", "math.sqrt(d_k + 1)"),
        ("positions.position_angles", "base ** (two_i / dim)"),
        ("positions.RotaryPositionalEmbedding.forward", "wide[..., 1::2], wide[..., 1::2]"),
        ("block.TransformerBlock.forward", "z = x.add_("),
        ("model.TransformerLM.forward", "list(self.layers)[:-1]"),
        ("adapters.run_swiglu", "'w3.weight': w1_weight"),
        ("sampling.nucleus", "pass"),
    ],
)
def test_likely_slips_are_among_them(where: str, after: str) -> None:
    assert _first(where, after)


def test_a_mutant_concerns_the_components_that_reach_it() -> None:
    assert mutants.affected()["RMSNorm"] == ("rmsnorm", "transformer_block", "transformer_lm")
    assert mutants.affected()["nucleus"] == ("next_token",)
    assert "sample_next_token" not in mutants.affected()


def test_the_copy_is_mutated_and_the_original_is_not() -> None:
    import torch

    from reference_impl import activations

    mutant = _first("activations.silu", "torch.tanh(")
    before = set(sys.modules)
    x = torch.tensor([1.0])
    assert mutation.load(mutant).run_silu(x) == x * torch.tanh(x)
    assert activations.silu(x) == x * torch.sigmoid(x)
    assert set(sys.modules) == before


def test_what_blocks_its_process_is_killed() -> None:
    worker = mutation.Worker()
    worker.give(replace(ALL[0], source="while True:\n    pass"))
    assert worker.heard() is None
    worker.since -= mutation.LIMIT
    verdict = worker.heard()
    assert verdict is not None
    assert verdict.message.startswith("timed out")


def test_results_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mutant] = []

    def judged(chosen: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, Verdict]]:
        asked.extend(chosen)
        return ((mutant, Verdict(KILLED, "a check")) for mutant in chosen)

    monkeypatch.setattr(mutation, "judged", judged)
    file = tmp_path / "build" / "results.jsonl"
    assert len(list(mutation.results(ALL[:2], 1, file))) == 2
    file.write_text(file.read_text("utf-8") + '{"key": "cut off', "utf-8")
    found = dict(mutation.results(ALL[:3], 1, file))
    assert asked == ALL[:3]
    assert found == dict.fromkeys(ALL[:3], Verdict(KILLED, "a check"))


def test_what_may_survive_is_listed_with_a_reason_and_still_made() -> None:
    assert set(LISTED) <= {mutation.named(mutant) for mutant in ALL}
    assert all(why.endswith(".") for why in LISTED.values())


def test_survivors_that_are_not_listed_and_listed_ones_that_are_killed_are_problems() -> None:
    listed = next(mutant for mutant in ALL if mutation.named(mutant) in LISTED)
    other = SAMPLE[0]
    survived, killed = Verdict(mutation.SURVIVED), Verdict(KILLED, "a check")
    assert mutation.problems({listed: survived, other: killed}) == []
    assert len(mutation.problems({listed: killed, other: survived})) == 2


UNREACHED = replace(ALL[0], function="nowhere")
ENDING = replace(ALL[0], source="import os\nos._exit(3)")


@pytest.fixture(scope="module")
def verdicts() -> dict[Mutant, Verdict]:
    return dict(mutation.judged([*SAMPLE, UNREACHED, ENDING], jobs=1))


def test_a_sample_is_killed(verdicts: dict[Mutant, Verdict]) -> None:
    sample = {mutant: verdicts[mutant] for mutant in SAMPLE}
    assert mutation.problems(sample) == []
    assert {verdict.state for verdict in sample.values()} == {KILLED}


def test_when_the_suite_itself_fails_nothing_is_killed(verdicts: dict[Mutant, Verdict]) -> None:
    assert verdicts[UNREACHED].state == mutation.BROKEN
    assert mutation.problems({UNREACHED: verdicts[UNREACHED]})


def test_what_ends_its_process_is_killed(verdicts: dict[Mutant, Verdict]) -> None:
    assert verdicts[ENDING] == Verdict(KILLED, message="crashed: the process ended")
