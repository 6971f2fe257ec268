"""The executor on plain data and draws that are written down does what Python does."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from dpaudit.verify.coupled.cases import MOVES
from dpaudit.verify.coupled.tape import DrawTape, as_plain, executed, near
from dpaudit.verify.coupled.values import KnownArray
from dpaudit.verify.coupled.ways import NotShown
from dpaudit.verify.language.source import source_of
from tests.cases import NIGHTLY, for_each
from tests.verify.coupled.random_programs import mechanism
from tests.verify.coupled.test_attacks import MODULES, Attack, attacks

SEEDS = range(2_000 if NIGHTLY else 200)


def by_python(function: Any, data: Any, seed: int) -> Any:
    """What a run returns, or the name of what it raises."""
    try:
        with np.errstate(all="ignore"):
            return as_plain(function(data, DrawTape(seed)))
    except Exception as error:
        return "raised", type(error).__name__


def by_the_executor(source: str, data: Any, seed: int) -> Any:
    """The same, of the syntax tree; "not followed" where it is refused."""
    read = source_of(source, "f")
    name = read.definition.args.args[0].arg
    try:
        return executed(read, {name: data, "rng": DrawTape(seed, lambda items: KnownArray(list(items)))})
    except NotShown:
        return "not followed"


def test_random_programs_run_alike() -> None:
    refused = 0
    for seed in SEEDS:
        given = mechanism(seed)
        for place, data in enumerate(given.pair(random.Random(seed))):
            found = by_the_executor(given.source, data, seed + place)
            refused += found == "not followed"
            alike = found == "not followed" or near(found, by_python(given.function, data, seed + place))
            assert alike, f"{found} of {data}\n{given.source}"
    assert refused < len(SEEDS) / 10


TWINS = [each for each in attacks("twins.txt") if each.adjacency in MOVES and not each.parameters]


@for_each("twin", TWINS, ids=lambda each: each.name)
def test_sound_programs_over_answers_run_alike(twin: Attack) -> None:
    for seed, answers in enumerate([[0.5, 2.0, -1.0], [1.0, 3.0, 0.0], [2.0, 2.0, 2.0]]):
        data: Any = answers[: twin.answers] if twin.answers else answers[0]
        found = by_the_executor(MODULES + twin.source, data, seed)
        assert found == "not followed" or near(found, by_python(twin.function, data, seed)), (found, data)
