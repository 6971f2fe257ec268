"""The statements on additive noise: each check finds what is known, and its numbers are those of independent sums."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from audits.lectures.claims.additive import STATEMENTS
from audits.lectures.claims.statement import Statement
from dpaudit.catalogue.additive.normal import classic_sigma
from dpaudit.claims import GaussianDP
from tests.cases import for_each

SPECS = sorted((Path(__file__).parents[3] / "audits" / "lectures").glob("*.toml"))
NAMED = {statement.name: statement for statement in STATEMENTS}


@for_each("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_the_check_finds_what_is_known(statement: Statement) -> None:
    """Simulations are seeded; a seed would miss by chance with less than 1e-8."""
    truth = statement.check()
    assert truth.verdict == statement.verdict
    assert "nan" not in truth.text
    assert statement.check() == truth


def test_every_audit_named_is_there() -> None:
    names = {table["name"] for path in SPECS for table in tomllib.loads(path.read_text(encoding="utf-8"))["audit"]}
    assert not {name for statement in STATEMENTS for name in statement.audits} - names


def numbers(name: str) -> dict[str, float]:
    return dict(NAMED[name].check().numbers)


def test_version_1_has_the_known_numbers() -> None:
    found = numbers("gaussian-version-1")
    assert found["worst share"] == pytest.approx(0.319159, abs=5e-7)  # delta 1 at epsilon 1, by its closed form
    assert found["delta at (1, 1e-5)"] == pytest.approx(4.1e-8, rel=0.02)
    assert [found[f"ends at {delta:g}"] for delta in (0.01, 1e-5, 1e-10)] == pytest.approx([6.77, 8.42, 9.85], abs=0.01)
    sigma = classic_sigma(6.8, 0.01, 1.0)
    assert GaussianDP(1.0 / sigma).delta_at(6.8) > 0.01 > GaussianDP(1.0 / classic_sigma(6.7, 0.01, 1.0)).delta_at(6.7)


def test_version_2_has_the_known_numbers() -> None:
    found = numbers("gaussian-version-2")
    assert (found["printed"], found["halved"]) == pytest.approx((0.926, 0.931), abs=2e-3)
    assert found["printed_sigma"] == pytest.approx(6.442, abs=5e-4)


def test_the_gaussian_of_claim_5_5_leaves_its_claim_at_large_epsilon() -> None:
    found = numbers("gaussian-vector")
    assert found["share at 1"] < 0.32
    assert 2.3 <= found["share at 10"] <= 4.1 + 0.05


def test_uniform_noise_has_the_known_deltas() -> None:
    count, mean = numbers("uniform-noise-on-a-count"), numbers("uniform-noise-on-a-mean")
    assert count["at epsilon 2"] == pytest.approx(0.2, abs=1e-4)
    assert mean["value moves by L"] == pytest.approx(50 / 101)
    assert mean["value moves by 2 L"] == pytest.approx(100 / 101)


def test_the_advanced_distortion_has_the_known_numbers() -> None:
    found = numbers("distortion-advanced")
    assert found["advanced"] == pytest.approx(1.109, abs=5e-4)
    assert found["optimal at 1"] < 1.0
    assert found["optimal at 8"] > 8.0


def test_the_clipped_noise_has_the_delta_of_its_last_step_and_of_its_other_end() -> None:
    """At epsilon = 1 and a shift of 1: Pr(noise > k - 1), beyond the neighbour's end, and the heap on the own end."""
    for reach in (1, 5, 30):
        last, heap = math.exp(1.0 - reach) / 2.0, math.exp(-reach) / 2.0
        assert numbers("noise-needs-infinite-support")[f"delta at {reach}"] == pytest.approx(
            last + heap, rel=1e-3, abs=0.0
        )
