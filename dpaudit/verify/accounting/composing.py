"""Upper bounds for declared compositions: which method is used for which parts, and what is then known.

One form of its own has its own exact answer: normal noise (the squares of mu add up, in balls), equal (epsilon,
delta)-promises (optimal composition), one Laplace release (in balls), finite pairs (in fractions where these stay
few). Everything else goes to a grid of privacy losses. All bounds are about what is declared, not about code.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from dpaudit import validate
from dpaudit.claims.composition import compose_basic, compose_optimal
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.relation import Relation
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import Losses
from dpaudit.results.upper import Arithmetic, Label, UpperBound
from dpaudit.verify.accounting.finite import FinitePair, exact_composition, exact_delta, exact_epsilon
from dpaudit.verify.accounting.parts import LARGEST, Laplace, Part, SubsampledGaussian, discretised, largest_loss
from dpaudit.verify.accounting.summing import Repeated, delta_of_sum, epsilon_of_sum
from dpaudit.verify.enclosure import BITS, Enclosure, ball, of_ball
from dpaudit.verify.integrals.releases import gaussian_delta, gaussian_epsilon, laplace_delta
from dpaudit.verify.replay.losses import FiniteLosses
from dpaudit.verify.requirement import flint

FINE = 4e-6  # times * width^2 of the grid: some millionths of epsilon
NARROWEST, WIDEST = 2.0**-17, 2.0**-9  # of a cell
LEAST_CELLS = 4096  # of the widest part's losses on each side of 0
MOST_CELLS, MOST_PLACES = 400_000, 2**19  # of one part's grid, and of 20 deviations of the sum
PARTS = (PureDP, ApproximateDP, GaussianDP, Laplace, SubsampledGaussian, FinitePair)


def compose(parts: Iterable[Part], delta: float) -> UpperBound:
    """An epsilon for all these releases of the same data together, at a delta.

    Parts are `PureDP`, `ApproximateDP` and `GaussianDP` for any mechanism that keeps them, `Laplace`,
    `SubsampledGaussian` and `FinitePair`; repeat a part as often as it is made. Each release may be chosen after
    those before it, except finite pairs that dominate no others. `epsilon_lower` is given for such pairs alone, where
    the loss is exact; what keeps a promise may always lose less. Raises `InvalidSpec` for no parts, something else, or
    promises for two relations.

    >>> found = compose([GaussianDP(0.3), GaussianDP(0.4)], delta=1e-5)
    >>> round(found.epsilon_upper, 4), found.label.value
    (1.9931, 'numeric-upper')
    >>> round(compose([Laplace(0.1)] * 100, delta=1e-6).epsilon_upper, 3)
    4.693
    """
    listed = _checked(parts)
    delta = validate.probability("delta", delta)
    enclosed, method, arithmetic = _epsilon(listed, delta)
    pair_only = any(isinstance(part, FinitePair) and not part.dominating for part in listed)
    relation = next((found for found in map(_relation, listed) if found), None)
    inputs = f"all inputs, {Relation.word(relation)}" if relation else "all inputs that the parts are declared for"
    return UpperBound(
        enclosed.upper,
        delta,
        Label.EXACT_PAIR if pair_only else Label.NUMERIC_UPPER,
        f"{_words(listed)}: {'this pair of datasets' if pair_only else inputs}",
        arithmetic,
        method,
        enclosed.lower if pair_only and arithmetic is Arithmetic.BALLS else None,
    )


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


def composed_delta(parts: Iterable[Part], epsilon: float) -> Enclosure:
    """The delta at an epsilon of all these releases together; its lower end is 0 where only the upper one is known.

    >>> round(composed_delta([GaussianDP(1.0)], 1.0).upper, 6)
    0.126937
    """
    listed = _checked(parts)
    epsilon = validate.not_negative("epsilon", epsilon)
    if all(isinstance(part, GaussianDP) for part in listed):
        return gaussian_delta(_mu(listed), epsilon)
    match listed:
        case [Laplace(epsilon=own)]:
            return laplace_delta(Fraction(own), 1, epsilon)
    if all(isinstance(part, FinitePair) for part in listed):
        atoms = exact_composition([part for part in listed if isinstance(part, FinitePair)])
        if atoms is not None:
            return exact_delta(atoms, epsilon)
    if isinstance(listed[0], PureDP | ApproximateDP) and len(set(listed)) == 1:
        return Enclosure(0.0, compose_optimal(listed[0], len(listed)).delta_at(epsilon))
    return Enclosure(0.0, min(1.0, max(delta_of_sum(order, epsilon) for order in _grids(listed))))


def _epsilon(parts: Sequence[Part], delta: float) -> tuple[Enclosure, str, Arithmetic]:
    """The epsilon at a delta, how it was found, and in which arithmetic."""
    first = parts[0]
    if all(isinstance(part, GaussianDP) for part in parts):
        return gaussian_epsilon(_mu(parts), delta), "the exact profile of normal noise", Arithmetic.BALLS
    match parts:
        case [Laplace(epsilon=own)]:
            return _laplace_epsilon(own, delta), "the exact profile of Laplace noise", Arithmetic.BALLS
    if all(isinstance(part, FinitePair) for part in parts):
        atoms = exact_composition([part for part in parts if isinstance(part, FinitePair)])
        if atoms is not None:
            return exact_epsilon(atoms, Fraction(delta)), "all outputs, in fractions", Arithmetic.BALLS
    if isinstance(first, PureDP | ApproximateDP) and len(set(parts)) == 1:
        found = compose_optimal(first, len(parts)).epsilon_at(delta)
        return Enclosure(0.0, found), "optimal composition", Arithmetic.FLOATS
    basic = _basic(parts, delta)
    if delta == 0.0:
        return Enclosure(0.0, basic), "basic composition", Arithmetic.FLOATS
    found = max(epsilon_of_sum(order, delta) for order in _grids(parts))
    if basic <= found:
        return Enclosure(0.0, basic), "basic composition", Arithmetic.FLOATS
    return Enclosure(0.0, found), "privacy losses on a grid, rounded upwards", Arithmetic.FLOATS


def _basic(parts: Sequence[Part], delta: float) -> float:
    """The sum of the epsilons where every part has one and the deltas leave room; infinite otherwise."""
    promises: list[PureDP | ApproximateDP] = []
    for part in parts:
        match part:
            case PureDP() | ApproximateDP():
                promises.append(part.with_relation(None))
            case Laplace(epsilon=own):
                promises.append(PureDP(own))
            case FinitePair():
                atoms = part.atoms()
                if None in atoms or Fraction(0) in atoms:
                    return math.inf
                promises.append(PureDP(math.nextafter(part.largest_loss() * (1.0 + 1e-14), math.inf)))
            case GaussianDP() | SubsampledGaussian():
                return math.inf
    composed = compose_basic(promises)
    return composed.epsilon if composed.delta <= delta else math.inf


def _grids(parts: Sequence[Part]) -> tuple[list[Repeated], list[Repeated]]:
    """The losses of all parts on one grid, in the two orders."""
    counted = Counter(parts)
    widest = max(largest_loss(part) for part in counted)
    if widest > LARGEST:
        raise InvalidSpec(f"parts must have losses of at most {LARGEST:g} for the grid, got {widest:.4g}")
    rough = max(widest, NARROWEST) / 500.0  # wide cells tell the deviation well enough
    variance = math.fsum(times * discretised(part, rough)[0].variance() for part, times in counted.items())
    small = min(math.sqrt(FINE / len(parts)), widest / LEAST_CELLS)  # small losses need small cells
    wanted = max(small, 2.0 * widest / MOST_CELLS, 20.0 * math.sqrt(variance) / MOST_PLACES)
    width = 2.0 ** round(math.log2(min(WIDEST, max(NARROWEST, wanted))))
    both: list[tuple[tuple[Losses, Losses], int]] = [(discretised(part, width), n) for part, n in counted.items()]
    return [(losses[0], n) for losses, n in both], [(losses[1], n) for losses, n in both]


def _mu(parts: Sequence[Part]) -> Any:
    """The root of the sum of the squares of mu, as a ball."""
    squares = sum((Fraction(part.mu) ** 2 for part in parts if isinstance(part, GaussianDP)), Fraction(0))
    with flint().ctx.workprec(2 * BITS):
        return ball(squares).sqrt()


def _laplace_epsilon(own: float, delta: float) -> Enclosure:
    """The root of 1 - e^((epsilon - own) / 2) = delta, at least 0."""
    if delta == 1.0:
        return Enclosure(0.0, 0.0)
    with flint().ctx.workprec(BITS):
        return of_ball((ball(own) + 2 * (1 - ball(delta)).log()).max(flint().arb(0)))


def _checked(parts: Iterable[Part]) -> list[Part]:
    if not isinstance(parts, Iterable):
        raise InvalidSpec(f"parts must be a list of releases, got {parts!r}")
    listed: list[Any] = list(parts)
    if not listed:
        raise InvalidSpec("parts must hold at least one release, got none")
    for part in listed:
        if not isinstance(part, PARTS):
            known = ", ".join(form.__name__ for form in PARTS)
            raise InvalidSpec(f"parts must be of {known}, got {part!r}")
    relations = {_relation(part) for part in listed} - {None}
    if len(relations) > 1:
        words = ", ".join(sorted(str(Relation.word(relation)) for relation in relations))
        raise InvalidSpec(f"parts must be stated for one relation, got {words}")
    return listed


def _relation(part: Part) -> Relation | None:
    if isinstance(part, SubsampledGaussian):
        return Relation.ADD_OR_REMOVE_ONE
    return part.relation if isinstance(part, PureDP | ApproximateDP | GaussianDP) else None


def _words(parts: Sequence[Part]) -> str:
    counted = Counter(parts)
    shown = [f"{times} x {part}" if times > 1 else str(part) for part, times in list(counted.items())[:3]]
    more = len(counted) - len(shown)
    return " and ".join(shown) + (f" and {more} more" if more else "")


def _different(losses: FiniteLosses) -> list[FinitePair]:
    """The adjacent pairs of laws, those that differ by the names of outputs or by their order taken once."""
    found: dict[frozenset[frozenset[tuple[Fraction, Fraction]]], FinitePair] = {}
    for i, j in losses.pairs:
        pair = FinitePair.of_laws(losses.laws[i], losses.laws[j])
        both = list(pair.atoms().values())
        key = frozenset({frozenset(both), frozenset((q, p) for p, q in both)})
        found.setdefault(key, pair)
    return list(found.values())
