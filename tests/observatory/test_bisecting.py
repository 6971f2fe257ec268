"""A search by halves: against a walk over all versions, with versions that have no outcome, and with ends alike."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.observatory.environments import Ended
from dpaudit.observatory.rows import VersionOutcome, bisect, versions
from dpaudit.results.observations import Ending

OLD, NEW, NONE = VersionOutcome("REFUTED"), VersionOutcome("not refuted"), VersionOutcome(error="pip says no")
LISTED = "Available versions: 1.10.0, 1.9, 1.9rc1, 1.2.0, 1.0.post1, 1.0"


def test_the_change_is_where_a_walk_finds_it() -> None:
    """Every place of the change among up to nine versions, versions without outcome at random, 400 cases."""
    draw = random.Random(0)
    for _ in range(400):
        count = draw.randint(2, 9)
        change = draw.randint(1, count - 1)
        known = [f"1.{place}" for place in range(count)]
        asked: list[str] = []
        outcomes = {v: NONE if draw.random() < 0.3 else OLD if p < change else NEW for p, v in enumerate(known)}

        def ask(
            version: str, asked: list[str] = asked, outcomes: dict[str, VersionOutcome] = outcomes
        ) -> VersionOutcome:
            asked.append(version)
            return outcomes[version]

        able = [version for version in known if outcomes[version].said]
        if not able or outcomes[able[0]] == outcomes[able[-1]]:
            with pytest.raises(InvalidSpec if able else MissingRequirement):
                bisect(known, ask)
            continue
        found = bisect(known, ask)
        after = next(version for version in able if outcomes[version] == NEW)
        before = able[able.index(after) - 1]
        assert (found.before, found.after, found.outcomes) == (before, after, (OLD, NEW))
        assert list(found.between) == known[known.index(before) + 1 : known.index(after)]
        assert set(found.between) <= set(found.skipped)
        assert len(asked) == len(set(asked))


def test_versions_are_releases_in_their_order() -> None:
    children: Any = SimpleNamespace(run=lambda argv: Ended(0, LISTED, ""))
    assert versions("p", "1.0..1.10", "python", children) == ("1.0", "1.2.0", "1.9", "1.10.0")
    for span, said in (("1.0-1.2", "a..b"), ("2..3", "has none of p")):
        with pytest.raises(InvalidSpec, match=said):
            versions("p", span, "python", children)
    silent: Any = SimpleNamespace(run=lambda argv: Ended(1, "", "ERROR: no such package"))
    with pytest.raises(MissingRequirement, match="no such package"):
        versions("p", "1..2", "python", silent)


def test_where_every_run_raised_there_is_no_outcome(refuted_entry: Any) -> None:
    """A call of an API that a version does not have, yet."""
    result = refuted_entry.result
    raised = Ending("raised TypeError", (5, 5), (5, 5))
    for endings, error in (
        ((raised,), "every run raised TypeError"),
        ((raised, Ending("a value", (1, 0), (1, 0))), ""),
    ):
        found = VersionOutcome.of(replace(refuted_entry, result=replace(result, endings=endings)))
        assert (found.error, bool(found.said)) == (error, not error)
    assert VersionOutcome.of(replace(refuted_entry, result=None, error="pip")) == VersionOutcome(error="pip")
