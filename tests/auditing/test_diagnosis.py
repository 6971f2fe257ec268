"""Kinds of broken functions: each has its diagnosis and, as event, what a maintainer would name; sound twins have none.

The audits are seeded. A sound twin is refuted by chance with probability at most 3e-8, all of them with 1e-6. Another
seed would change a diagnosis where quantiles of search runs stray by four deviations, about once in 10,000.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.account.diagnosis import diagnosis
from dpaudit.account.first import sentence
from tests.auditing import mistakes
from tests.cases import for_each
from tests.golden import example

TWO = [1.0, 2.0]
RUNS = 2000
SURE = 1.0 - 3e-8
TWINS: dict[tuple[int, str], dpaudit.AuditResult] = {}


ROWS = (mistakes.THREE, TWO)
FIRST_LEAVES = (["a", *"bbccaacab"], [*"bbccaacab"])
LETTERS = (["a", "b", "c"], ["a", "b"])


@pytest.mark.long
@for_each(
    ("broken", "sound", "pair", "kind", "event"),
    [
        (mistakes.fixed_seed, mistakes.count, ROWS, "constant output", "output == "),
        (mistakes.sometimes, mistakes.count, ROWS, "answer without noise", "output == "),
        (mistakes.early_return, mistakes.count, ROWS, "constant on one dataset", "output == 0"),
        (mistakes.by_category, mistakes.all_categories, LETTERS, "keys", "there is no output['c']"),
        (mistakes.by_row, mistakes.three_draws, ROWS, "length", "len(output) == 2"),
        (mistakes.in_order, mistakes.as_dict, ROWS, "order", "order(output) is "),
        (mistakes.rounded, mistakes.count, ROWS, "type", "type(output) is type int"),
        (mistakes.raises, mistakes.count, ROWS, "failure", "output is raised ValueError"),
        (mistakes.says, mistakes.hides, ROWS, "message", "message(output) is 'sum "),
        (mistakes.not_a_number, mistakes.as_dict, ROWS, "failure", "output['spread'] is nan"),
        (mistakes.small_scale, mistakes.count, ROWS, "location", "output <= "),
        (mistakes.scale_of_data, mistakes.public_scale, ([1.0, 30.0], [1.0]), "scale", "output "),
        (mistakes.noisy_sum, mistakes.clipped_sum, ([1.0, 2.0, 90.0], TWO), "location", "output "),
        (mistakes.uniform, mistakes.count, ROWS, "bounded noise", "output "),
        (dpaudit.batched(mistakes.normal), dpaudit.batched(mistakes.wide_normal), (1, 0), "tail", "output "),
        (mistakes.with_size, mistakes.as_dict, ROWS, "number of records", "output['n'] == 2"),
        (mistakes.one_draw, mistakes.two_draws, ROWS, "shared noise", "output[0] - output[1] "),
        (mistakes.candidates, mistakes.any_letter, LETTERS, "support", "output is 'c'"),
        (mistakes.response, mistakes.fair_response, (0, 1), "probabilities", "output == "),
        (mistakes.noisy_sum, mistakes.clipped_sum, ([1.0, 2.0, float("-inf")], TWO), "infinity", "output == -inf"),
        (dpaudit.batched(mistakes.cut_off), dpaudit.batched(mistakes.wide_normal), (1, 0), "bounded noise", "output "),
        (mistakes.die, mistakes.whole_count, ROWS, "bounded noise", "output == "),
        (mistakes.four_entries, mistakes.four_shared, (0.0, 1.0), "location", "score of "),
        (mistakes.clamped, mistakes.clamped_widely, ([99.0, -1.0], [-1.0]), "location", "output"),
        (mistakes.codes_of_last, mistakes.known_codes, FIRST_LEAVES, "probabilities", "score of "),
        (mistakes.one_vector, mistakes.two_vectors, ([1.0], []), "shared noise", " == output['w']"),
        (dpaudit.batched(mistakes.all_bits), dpaudit.batched(mistakes.grid), (0, 1), "bits of floats", ""),
    ],
    nightly=[
        (mistakes.no_noise, mistakes.as_dict, ROWS, "constant output", " == 2"),
        (mistakes.warns, mistakes.as_dict, ROWS, "keys", "there is no output['many']"),
        (mistakes.nothing, mistakes.count, ROWS, "failure", "output is None"),
        (mistakes.own_size, mistakes.public_size, ([0.5] * 5, [0.5]), "number of records", "output "),
        (mistakes.shuffled, mistakes.three_shuffled, ROWS, "length", "output"),
        (mistakes.whole_number, mistakes.whole_count, ROWS, "location", "output "),
        (mistakes.capped, mistakes.capped_widely, ([-99.0], [0.0]), "location", "output['sum']"),
    ],
)
def test_a_broken_function_has_its_diagnosis_and_a_plain_event(
    broken: Any, sound: Any, pair: Any, kind: str, event: str
) -> None:
    batched = isinstance(broken, type(dpaudit.batched(mistakes.all_bits)))
    settings = {"pair": pair, "epsilon": 1.0, "runs": 60_000 if batched else RUNS, "n_jobs": 1, "seed": 5}
    settings["representation"] = batched and kind == "bits of floats"
    found = dpaudit.audit(broken, confidence=0.9, **settings)  # constant outputs take fewer fresh processes then
    told = found.diagnosis
    assert told is not None, found
    assert told.kind == kind, (told.sentence, str(found.witness.event))
    assert event in str(found.witness.event)
    assert (found.plain is not None) == ("score" in event)
    text = str(found.explain())
    lines = told.lines[1:] if kind == "bits of floats" else told.lines  # that it shows in the bits is said already
    assert all(line in text or sentence(line) in text for line in lines)
    assert ("a finding with a level of its own" in text) <= settings["representation"]
    key = id(sound), str(pair)  # a twin of several is audited once
    if key not in TWINS:
        TWINS[key] = dpaudit.audit(sound, confidence=SURE, **settings)
    assert TWINS[key].diagnosis is None


@pytest.mark.long
def test_the_examples_are_kept_with_the_result(tmp_path: Path) -> None:
    found = dpaudit.audit(mistakes.by_category, pair=LETTERS, epsilon=1.0, runs=RUNS, n_jobs=1, seed=5)
    told = found.explain()
    assert (len(told.first), len(told.second)) == (8, 8)
    assert told.hits == (0, told.runs[1])
    assert all("'c': " in each for each in told.first), "none is inside: others, to compare with"
    assert all(each.startswith("{'a': ") and "'c'" not in each for each in told.second)
    assert "first, outside  {'a': " in str(told)
    assert told.diagnosis == found.diagnosis
    again = dpaudit.load(found.save(tmp_path / "result.json"))
    assert again == found
    assert again.explain() == told
    assert found.to_dict()["diagnosis"]["kind"] == "keys"


@pytest.mark.long
def test_a_kind_that_does_not_fit_is_not_guessed() -> None:
    """Clipping at 0 changes the shape of the outputs: nothing is said of scale or location."""

    def clipped(rows: list[Any], rng: np.random.Generator) -> float:
        return max(0.0, len(rows) - 2 + mistakes.laplace(rng, 0.4))

    def more_zeros(value: int, rng: np.random.Generator) -> float:
        return 0.0 if rng.random() < (0.2 if value else 0.01) else float(rng.integers(1, 1000))

    def one_draw(value: int, rng: np.random.Generator) -> tuple[float, float]:
        """Each entry alone keeps the claim, so that nothing is said of its noise."""
        noise = mistakes.laplace(rng)
        return noise, noise + (rng.random() < (0.9 if value else 0.1))

    found = dpaudit.audit(clipped, pair=ROWS, epsilon=1.0, runs=RUNS, n_jobs=1, seed=5)
    for each in (
        found,
        *(dpaudit.audit(f, pair=(1, 0), epsilon=1.0, runs=5000, seed=5) for f in (more_zeros, one_draw)),
    ):
        assert each.refuted
        assert each.diagnosis is None
    assert diagnosis(example.changed(found, typical=None)) is None
    assert "Look at: " not in str(found)


@pytest.mark.long
def test_the_bound_of_a_plain_event_is_at_most_that_of_the_witness() -> None:
    found = dpaudit.audit(mistakes.four_entries, pair=(0.0, 1.0), epsilon=1.0, runs=RUNS, n_jobs=1, seed=5)
    assert found.plain is not None
    made, first = found.plain.certificate, found.certificate
    assert (made.delta, made.confidence, found.plain.evidence.runs) == (
        first.delta,
        first.confidence,
        found.evidence.runs,
    )
    low = replace(first, lower=1.2, epsilon_lower=1.2)
    assert "alone it gives epsilon >= 1.20, at the same confidence" in str(replace(found, certificate=low).explain())
