"""Stored proofs as upper bounds: of the program that runs and of no other, checked again, and never one way alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpaudit.catalogue.sparse import above_threshold, sparse_monotone
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Label
from dpaudit.spec.questions import read_spec
from dpaudit.verify.alignment import prove
from dpaudit.verify.bracketing import bound_of_proofs, target_of
from dpaudit.verify.checker import ProofRejected
from dpaudit.verify.language import read
from dpaudit.verify.proof import Proof
from dpaudit.verify.stored import save

COUNT = """
def noisy_count(data, rng, eps):
    return data + rng.laplace(scale=1 / eps)
"""


def noisy_count(data, rng, eps):  # type: ignore[no-untyped-def]
    return data + rng.laplace(scale=1 / eps)


SPEC = """
schema = "dpaudit.audit/1"
[[audit]]
name = "it"
mechanism = "counts:noisy_count"
parameters = {{ eps = 0.5 }}
claim = {{ epsilon = 0.5 }}
pair = {{ first = 10, second = 9 }}
runs = 1_000
upper = {upper}
"""


def proved(function: object, adjacency: str, **given: object) -> Proof:
    found = prove(read(function), adjacency, **given)  # type: ignore[arg-type]
    assert isinstance(found, Proof), found
    return found


def test_a_proof_bounds_the_program_at_its_parameters() -> None:
    entry = above_threshold.with_parameters({"epsilon": 0.5})
    bound = bound_of_proofs([proved(entry.program, "all-differ")], target_of(entry), source="a file")
    assert (bound.epsilon_upper, bound.label, bound.source) == (0.5, Label.PROVED, "a file")
    assert "any number of answers" in bound.scope
    assert "epsilon = 1/2" in bound.scope


def test_both_ways_together_are_a_bound_and_one_alone_is_none() -> None:
    up, down = (proved(sparse_monotone.program, way) for way in ("up", "down"))
    target = target_of(sparse_monotone)
    assert bound_of_proofs([down, up], target, source="two files").epsilon_upper == 1.0
    with pytest.raises(InvalidSpec, match="'up' is one way; give the proof of the other way"):
        bound_of_proofs([up], target, source="a file")
    for wrong in ([], [up, up], [up, down, down]):
        with pytest.raises(InvalidSpec, match="give one proof, or one of 'up' and one of 'down'"):
            bound_of_proofs(wrong, target, source="files")


def test_a_proof_of_another_program_is_refused() -> None:
    proof = proved(above_threshold.program, "all-differ")
    with pytest.raises(InvalidSpec, match=r"of another program than above_threshold\.half_noise"):
        bound_of_proofs([proof], target_of(above_threshold.half_noise), source="a file")


def test_a_proof_about_one_number_is_not_one_about_vectors() -> None:
    proof, target = proved(noisy_count, "all-differ"), target_of(noisy_count, {"eps": 0.5})
    assert bound_of_proofs([proof], target, [AdjacentPair(1, 0)], source="a file").epsilon_upper == 0.5
    with pytest.raises(InvalidSpec, match='is read for one number as data, the pair "pair" holds a list'):
        bound_of_proofs([proof], target, [AdjacentPair([1, 0], [0, 0])], source="a file")


def test_a_proof_for_other_parameters_is_refused() -> None:
    proof = proved(above_threshold.program, "all-differ", fixed={"threshold": Fraction(7)})
    with pytest.raises(InvalidSpec, match="the proof is for threshold = 7, and above_threshold has 0"):
        bound_of_proofs([proof], target_of(above_threshold), source="a file")


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (AdjacentPair([0, 0], [2, 0]), "the pair is not adjacent: .* move by 2, 0"),
        (AdjacentPair([0, 0], [2, 2], distance=2), "the proof is about neighbours"),
        (AdjacentPair([0, 0, 0], [1, 1, 1]), 'the proof is for 2 answers, and the pair "[^"]*" has 3'),
        (AdjacentPair(["a"], ["b"]), "must be a finite number"),
    ],
)
def test_a_pair_that_the_proof_is_not_about_is_refused(pair: AdjacentPair, message: str) -> None:
    entry = above_threshold.no_halt
    proof = proved(entry.program, "all-differ", answers=2)
    assert proof.answers == 2
    assert (
        bound_of_proofs([proof], target_of(entry), [AdjacentPair([0, 0], [1, -1])], source="a file").epsilon_upper > 0
    )
    with pytest.raises(InvalidSpec, match=message):
        bound_of_proofs([proof], target_of(entry), [pair], source="a file")


def test_a_fixed_value_of_no_parameter_is_rejected_in_a_line() -> None:
    proof = replace(proved(above_threshold.program, "all-differ"), fixed={"other": Fraction(1)})
    with pytest.raises(ProofRejected, match="has no such parameter"):
        bound_of_proofs([proof], target_of(above_threshold), source="a file")


def test_a_changed_proof_is_rejected() -> None:
    proof = replace(proved(above_threshold.program, "all-differ"), cost="epsilon/2")
    with pytest.raises(ProofRejected):
        bound_of_proofs([proof], target_of(above_threshold), source="a file")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "counts.py").write_text(COUNT)
    save(proved(COUNT.strip(), "all-differ"), tmp_path / "it.proof.json")
    return tmp_path


def spec_in(folder: Path, upper: str) -> Path:
    path = folder / "it.toml"
    path.write_text(SPEC.format(upper=upper))
    return path


def test_a_spec_names_the_file_of_a_proof(folder: Path) -> None:
    (question,) = read_spec(spec_in(folder, '{ proof = "it.proof.json" }'))
    assert question.upper is not None
    assert (question.upper.epsilon_upper, question.upper.label) == (0.5, Label.PROVED)
    assert question.upper.source == "checked proof it.proof.json"


def test_what_is_only_stated_says_so(folder: Path) -> None:
    (question,) = read_spec(spec_in(folder, '{ epsilon = 0.5, scope = "all", source = "our paper", label = "proved" }'))
    assert question.upper is not None
    assert question.upper.source == "stated in the spec, not checked here: our paper"


@pytest.mark.parametrize(
    ("upper", "message"),
    [
        ('{ proof = "no.json" }', r"it.toml: line 10: audit 'it': upper.proof: .*there is no such file"),
        ("{ proof = [] }", "upper.proof: give one proof"),
        ('{ proof = "it.proof.json", epsilon = 1.0, scope = "all" }', "a proof says it all; leave out epsilon, scope"),
        ('{ proof = "it.toml" }', "upper.proof: "),
        ("{ proof = 3 }", "upper.proof must be "),
    ],
)
def test_a_bad_proof_in_a_spec(folder: Path, upper: str, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        read_spec(spec_in(folder, upper))


def test_a_proof_is_for_the_source_as_it_is_now(folder: Path) -> None:
    (folder / "counts.py").write_text(COUNT.replace("1 / eps", "1 / (2 * eps)"))
    with pytest.raises(InvalidSpec, match="of another program than noisy_count, as its source now reads"):
        read_spec(spec_in(folder, '{ proof = "it.proof.json" }'))


def test_a_changed_file_of_a_proof(folder: Path) -> None:
    path = folder / "it.proof.json"
    path.write_text(path.read_text().replace('"cost": "eps"', '"cost": "eps/2"'))
    with pytest.raises(InvalidSpec, match=r"upper\.proof: the checker rejects it: "):
        read_spec(spec_in(folder, '{ proof = "it.proof.json" }'))


def test_a_pair_in_a_spec_must_be_one_of_the_proof_and_written_down(folder: Path) -> None:
    path = spec_in(folder, '{ proof = "it.proof.json" }')
    written = path.read_text()
    for pair, message in (
        ("{ first = 10, second = 8 }", "upper.proof: the pair is not adjacent"),
        ('"counts:noisy_count"', "upper.proof: it is about query answers: write the datasets of the pair down"),
    ):
        path.write_text(written.replace("{ first = 10, second = 9 }", pair))
        with pytest.raises(InvalidSpec, match=message):
            read_spec(path)
