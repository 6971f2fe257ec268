"""Several runs of a replayed mechanism on the same data: the largest of all its adjacent pairs."""

from __future__ import annotations

from fractions import Fraction

from dpaudit import validate
from dpaudit.results.upper import Arithmetic, Label, UpperBound
from dpaudit.verify.accounting.composing import compose
from dpaudit.verify.accounting.finite import FinitePair
from dpaudit.verify.replay.losses import FiniteLosses


def compose_replayed(losses: FiniteLosses, times: int, delta: float) -> UpperBound:
    """An epsilon at a delta for `times` independent runs of a replayed mechanism on one dataset of its domain.

    Holds for all adjacent pairs of the replay; exact, with its lower end, where all pairs were composed in fractions.
    Raises `InvalidSpec` for fewer than one run, or a delta outside [0, 1].

    >>> from dpaudit.verify.replay import replay
    >>> def response(bit, rng):
    ...     return bit if rng.bernoulli(Fraction(3, 4)) else 1 - bit
    >>> found = compose_replayed(replay(response, [0, 1], "all", generator="replay"), times=2, delta=0.0)
    >>> round(found.epsilon_upper, 6), found.label.value  # 2 ln 3
    (2.197225, 'exact-finite')
    """
    times = validate.whole("times", times, least=1)
    bounds = [compose([pair] * times, delta) for pair in _different(losses)]
    exact = all(bound.arithmetic is Arithmetic.BALLS for bound in bounds)
    upper = max((bound.epsilon_upper for bound in bounds), default=0.0)
    lower = max((bound.epsilon_lower or 0.0 for bound in bounds), default=0.0)
    return UpperBound(
        upper,
        float(delta),
        Label.EXACT_FINITE if exact else Label.NUMERIC_UPPER,
        f"{times} independent runs on the same data: {losses.scope}",
        Arithmetic.BALLS if exact else Arithmetic.FLOATS,
        "replay, all outputs in fractions" if exact else "replay, privacy losses on a grid, rounded upwards",
        lower if exact else None,
    )


def _different(losses: FiniteLosses) -> list[FinitePair]:
    """The adjacent pairs of laws, those that differ by the names of outputs or by their order taken once."""
    found: dict[frozenset[frozenset[tuple[Fraction, Fraction]]], FinitePair] = {}
    for i, j in losses.pairs:
        pair = FinitePair.of_laws(losses.laws[i], losses.laws[j])
        both = list(pair.atoms().values())
        key = frozenset({frozenset(both), frozenset((q, p) for p, q in both)})
        found.setdefault(key, pair)
    return list(found.values())
