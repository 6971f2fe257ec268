"""Stored proofs as upper bounds: of the program that runs and of no other, checked again, and never one way alone."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpaudit.catalogue.sparse import above_threshold, sparse_monotone
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Label, UpperBound
from dpaudit.spec.questions import read_spec
from dpaudit.verify.alignment import prove
from dpaudit.verify.bracketing import bound_of_proofs, target_of
from dpaudit.verify.checker import ProofRejected
from dpaudit.verify.language import read
from dpaudit.verify.proof import Proof
from dpaudit.verify.stored import save
from tests.cases import for_each


def noisy_count(data, rng, eps):  # type: ignore[no-untyped-def]
    return data + rng.laplace(scale=1 / eps)


COUNT = inspect.getsource(noisy_count)
SPEC = """
schema = "dpaudit.audit/1"
[[audit]]
name = "it"
mechanism = "counts:noisy_count"
parameters = {{ eps = 0.5 }}
claim = {{ epsilon = 0.5 }}
pair = {pair}
runs = 1_000
upper = {upper}
"""


def proved(function: object, adjacency: str = "all-differ", **given: object) -> Proof:
    found = prove(read(function), adjacency, **given)  # type: ignore[arg-type]
    assert isinstance(found, Proof), found
    return found


UP, DOWN = (proved(sparse_monotone.program, way) for way in ("up", "down"))
COUNTED, COUNTING = proved(noisy_count), target_of(noisy_count, {"eps": 0.5})
ANY = proved(above_threshold.program)
AT_7 = proved(above_threshold.program, fixed={"threshold": Fraction(7)})


def test_a_proof_bounds_the_program_at_its_parameters() -> None:
    entry = above_threshold.with_parameters({"epsilon": 0.5})
    bound = bound_of_proofs([proved(entry.program)], target_of(entry), source="a file")
    assert (bound.epsilon_upper, bound.label, bound.source) == (0.5, Label.PROVED, "a file")
    assert "any number of answers" in bound.scope
    assert "epsilon = 1/2" in bound.scope
    count = bound_of_proofs([COUNTED], COUNTING, [AdjacentPair(1, 0)], source="a file")
    assert count.epsilon_upper == 0.5
    both = bound_of_proofs([DOWN, UP], target_of(sparse_monotone), source="two files")
    assert both.epsilon_upper == 1.0


LIST = AdjacentPair([1, 0], [0, 0])
BOTH_WAYS = "give one proof, or one of 'up' and one of 'down'"


@for_each(
    ("proofs", "target", "pair", "message"),
    [
        ([UP], sparse_monotone, None, "'up' is one way; give the proof of the other way"),
        *((wrong, sparse_monotone, None, BOTH_WAYS) for wrong in ([], [UP, UP], [UP, DOWN, DOWN])),
        ([ANY], above_threshold.half_noise, None, r"of another program than above_threshold\.half_noise"),
        ([AT_7], above_threshold, None, "the proof is for threshold = 7, and above_threshold has 0"),
        ([replace(ANY, fixed={"other": Fraction(1)})], above_threshold, None, "has no such parameter"),
        ([replace(ANY, cost="epsilon/2")], above_threshold, None, "the cost is"),
        ([COUNTED], COUNTING, LIST, 'is read for one number as data, the pair "pair" holds a list'),
        ([ANY], above_threshold, AdjacentPair([0, 0], [2, 0]), "the pair is not adjacent: .* move by 2, 0"),
        ([ANY], above_threshold, AdjacentPair([0, 0], [2, 2], distance=2), "the proof is about neighbours"),
        ([ANY], above_threshold, AdjacentPair(["a"], ["b"]), "must be a finite number"),
    ],
)
def test_what_the_proofs_are_not_about_is_refused(
    proofs: list[Proof], target: Any, pair: AdjacentPair | None, message: str
) -> None:
    of = target if target is COUNTING else target_of(target)
    with pytest.raises((InvalidSpec, ProofRejected), match=message):
        bound_of_proofs(proofs, of, [] if pair is None else [pair], source="a file")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "counts.py").write_text(COUNT)
    save(proved(COUNT.strip()), tmp_path / "it.proof.json")
    return tmp_path


PROOF = '{ proof = "it.proof.json" }'


def upper_in(folder: Path, upper: str = PROOF, pair: str = "{ first = 10, second = 9 }") -> UpperBound:
    path = folder / "it.toml"
    path.write_text(SPEC.format(upper=upper, pair=pair))
    (question,) = read_spec(path)
    assert question.upper is not None
    return question.upper


def test_a_spec_names_the_file_of_a_proof_and_what_is_only_stated_says_so(folder: Path) -> None:
    upper = upper_in(folder)
    assert (upper.epsilon_upper, upper.label, upper.source) == (0.5, Label.PROVED, "checked proof it.proof.json")
    stated = upper_in(folder, '{ epsilon = 0.5, scope = "all", source = "our paper", label = "proved" }')
    assert stated.source == "stated in the spec, not checked here: our paper"


@for_each(
    ("upper", "pair", "message"),
    [
        ('{ proof = "no.json" }', "", r"it.toml: line 10: audit 'it': upper.proof: .*there is no such file"),
        ("{ proof = [] }", "", "upper.proof: give one proof"),
        (
            '{ proof = "it.proof.json", epsilon = 1.0, scope = "all" }',
            "",
            "a proof says it all; leave out epsilon, scope",
        ),
        ('{ proof = "it.toml" }', "", "upper.proof: "),
        ("{ proof = 3 }", "", "upper.proof must be "),
        (PROOF, "{ first = 10, second = 8 }", "upper.proof: the pair is not adjacent"),
        (PROOF, '"counts:noisy_count"', "upper.proof: it is about neighbours: write the datasets of the pair down"),
    ],
)
def test_a_bad_proof_in_a_spec(folder: Path, upper: str, pair: str, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        upper_in(folder, upper, pair or "{ first = 10, second = 9 }")


def test_a_proof_is_for_the_source_as_it_is_now_and_must_be_accepted(folder: Path) -> None:
    (folder / "counts.py").write_text(COUNT.replace("1 / eps", "1 / (2 * eps)"))
    with pytest.raises(InvalidSpec, match="of another program than noisy_count, as its source now reads"):
        upper_in(folder)
    (folder / "counts.py").write_text(COUNT)
    path = folder / "it.proof.json"
    path.write_text(path.read_text().replace('"cost": "eps"', '"cost": "eps/2"'))
    with pytest.raises(InvalidSpec, match=r"upper\.proof: the checker rejects it: "):
        upper_in(folder)
