"""Entries decided from source: no verdict is against what the catalogue knows, and a wrong entry is seen."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.prove import decided
from dpaudit.catalogue import Entry, entries, find
from dpaudit.verify.bracketing.targets import target_of
from dpaudit.verify.witnesses.followed import followed
from dpaudit.verify.witnesses.losses import loss_between
from tests.cases import for_each
from tests.catalogue.test_neighbours import cases

EVERY = [each for top in entries() for each in (top, *top.twins.values())]
SAMPLE = random.Random(40).sample(EVERY, 25)


@for_each("entry", SAMPLE, ids=lambda entry: entry.name, nightly=[each for each in EVERY if each not in SAMPLE])
def test_no_verdict_is_against_the_truth(entry: Entry) -> None:
    assert decided(entry).wrong == ""


@for_each(
    "name, verdict",
    [
        ("laplace_sum", "proved"),  # records
        ("gaussian_gdp", "proved"),
        ("geometric", "proved"),  # whole numbers
        ("k_randomised_response", "proved"),  # all its datasets
        ("laplace.deviation_as_scale", "refuted"),  # its parent at another parameter
        ("gaussian.sigma_as_variance", "refuted"),  # at a delta
        ("noisy_sum.refused", "refuted"),  # its pair, by replay
    ],
)
def test_what_an_entry_says_of_its_data_is_used(name: str, verdict: str) -> None:
    assert decided(find(name)).verdict == verdict


@for_each(
    "entry, word",
    [
        (replace(find("laplace"), broken=True), "proved"),
        (replace(find("randomised_response"), broken=True), "proved"),
        (replace(find("laplace.half_noise"), broken=False), "refuted"),
        (replace(find("noisy_sum.refused"), broken=False), "refuted"),
        (replace(find("laplace"), code=find("laplace").code._replace(loss=lambda *_, **__: 1.5)), "a bound of 1.0"),
        (replace(find("laplace"), code=find("laplace").code._replace(loss=lambda *_, **__: 0.5)), "a loss of at least"),
        (replace(find("gaussian_gdp"), code=find("gaussian_gdp").code._replace(loss=lambda *_, **__: 1.5)), "a bound"),
    ],
    ids=str,
)
def test_a_verdict_against_the_truth_is_seen(entry: Entry, word: str) -> None:
    assert word in decided(entry).wrong


@for_each("entry", EVERY, ids=lambda entry: entry.name)
def test_what_is_read_is_what_runs(entry: Entry) -> None:
    """Where a program hands its data on, what it hands it to gives the same outputs, draw by draw."""
    target = target_of(entry)
    if target.source is entry.program:
        return
    assert callable(target.source)
    for data in entry.default_pair:
        for seed in range(3):
            ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
            assert repr(target.source(data, theirs, **target.parameters)) == repr(entry.run(data, ours))
            assert ours.bit_generator.state == theirs.bit_generator.state


@for_each("entry", [each for each in EVERY if each.every_pair is not None], ids=lambda entry: entry.name)
def test_all_neighbours_are_those_of_the_default_pair(entry: Entry) -> None:
    assert entry.every_pair is not None
    pairs = list(entry.every_pair(**entry.values()))
    assert set(entry.default_pair) in [set(pair) for pair in pairs]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)


FOLLOWED = ("sparse", "report_noisy", "select", "adaptive", "noisy_m", "statistical", "sq_learner", "ridge")


@pytest.mark.long
@for_each(
    ("name", "given", "count", "pairs"),
    [case for case in cases() if case[0].startswith(FOLLOWED)],
)
def test_code_that_is_followed_loses_what_the_formula_of_the_catalogue_says(
    name: str, given: dict[str, Any], count: int, pairs: Any
) -> None:
    """On pairs of neighbours, drawn with a fixed seed: the formula and the code know nothing of each other."""
    entry, rng = find(name).with_parameters(given), np.random.default_rng(7)
    first, second = pairs(rng, given)
    loss = entry.true_loss(first, second)
    assert loss_between(*followed(entry.run, first, second, {})).loss.lower == pytest.approx(loss, rel=1e-6, abs=1e-6)
