"""The exact privacy loss of laws over finitely many outputs: epsilon, delta, the worst pair."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.data.data import digest
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.verify.deadline import left_s
from dpaudit.verify.enclosure import INFINITE, Enclosure, hockey_stick, largest, of_log
from dpaudit.verify.replay.canonical import Shaped
from dpaudit.verify.replay.cuts import TailCuts
from dpaudit.verify.replay.source import exact

Law = Mapping[Hashable, Fraction]
Atoms = dict[Fraction | float, tuple[Fraction, Fraction]]  # P and Q by their ratio

SOURCE = "replay of every choice"


@dataclass(frozen=True, slots=True)
class Worst:
    """The pair of the largest loss, `first` and `second` in the domain, and the event that has it.

    `p` and `q` are the probabilities of the event, all outputs of the largest ratio, under the first and the second
    dataset. Where the loss is infinite, q is 0.
    """

    first: int
    second: int
    p: Fraction
    q: Fraction

    @property
    def loss(self) -> Enclosure:
        """ln(p / q), enclosed; infinite where q is 0."""
        return of_log(self.p / self.q) if self.q else INFINITE


@dataclass(frozen=True, slots=True)
class FiniteLosses:
    """The exact laws of the output on every dataset of a domain, and the privacy loss over all adjacent pairs.

    `laws[i]` maps each output on `domain[i]`, in canonical form, to its probability. `pairs` are places in the domain;
    both orders count. `paths` is the number of runs behind the laws, `scope` says what the statement is about.
    `rests[i]` is what `laws[i]` lacks to 1, of runs that were not followed: their outputs may be any. `endless` says
    that outputs may hold a `Tail`.

    >>> third = Fraction(1, 4)
    >>> coin = FiniteLosses.of([0, 1], [(0, 1)], [{0: 1 - third, 1: third}, {0: third, 1: 1 - third}])
    >>> coin.worst.p, coin.worst.q, coin.delta(0)
    (Fraction(3, 4), Fraction(1, 4), Enclosure(lower=0.5, upper=0.5))
    """

    domain: tuple[Any, ...]
    pairs: "tuple[Places, ...]"
    laws: tuple[Law, ...]
    worst: Worst
    paths: int = 0
    scope: str = "all pairs listed, all outputs"
    rests: tuple[Fraction, ...] = ()
    endless: bool = False

    @classmethod
    def of(
        cls,
        domain: Sequence[Any],
        pairs: "Sequence[Places]",
        laws: Sequence[Law],
        paths: int = 0,
        scope: str = "",
        *,
        endless: bool = False,
    ) -> "FiniteLosses":
        """The losses of laws that are known. Raises `InvalidSpec` where one is no law, or there is no pair."""
        rests = tuple(Fraction(1) - sum(law.values()) for law in laws)
        for place, law in enumerate(laws):
            if not 0 <= rests[place] <= int(endless) or min(law.values()) < 0:
                raise InvalidSpec(f"law {place} must have probabilities that sum to 1, got {sum(law.values())}")
        if not pairs or not all(0 <= place < len(laws) == len(domain) for pair in pairs for place in pair):
            raise InvalidSpec("pairs must be places of two datasets of the domain, and there must be one at least")
        together = in_pairs(laws, _both_ways(pairs), endless=endless)
        of_pairs = [_worst(i, j, atoms, rests[j]) for i, j, atoms in together]
        # an infinite loss is above all others, and of two that are equal the likelier one
        worst = max(of_pairs, key=lambda w: (w.q == 0, w.p / w.q if w.q else Fraction(0), w.p))
        words = scope or f"{pairs_in_words(len(pairs), len(domain))}, all outputs"
        return cls(tuple(domain), tuple(pairs), tuple(laws), worst, paths, words, rests, endless)

    @property
    def epsilon(self) -> Enclosure:
        """The largest loss of any output on any pair, at delta 0; both ends infinite where it is infinite."""
        return Enclosure(max(0.0, self.worst.loss.lower), math.inf) if any(self.rests) else self.worst.loss

    @property
    def infinite(self) -> bool:
        """Whether some output is possible on one dataset and impossible on a neighbour."""
        return self.worst.q == 0

    def delta(self, epsilon: Fraction | float) -> Enclosure:
        """The least delta at an epsilon, over all pairs in both orders; epsilon is taken as the number it is."""
        value = exact(epsilon)
        if value is None or value < 0:
            raise InvalidSpec(f"epsilon must be finite and at least 0, got {epsilon!r}")
        found = largest(hockey_stick([*atoms.values(), (self.rests[i], 0)], value) for i, _, atoms in self._in_pairs())
        return Enclosure(0.0, found.upper) if any(self.rests) else found  # what was not followed may be anything

    def epsilon_at(self, delta: Fraction | float) -> Enclosure:
        """The least epsilon of at least 0 at a delta, all pairs in both orders; infinite if no epsilon is enough."""
        value = exact(delta)
        if value is None or not 0 <= value <= 1:
            raise InvalidSpec(f"delta must be a probability, got {delta!r}")
        least, ratios = Fraction(1), list[Fraction | None]()
        for i, j, atoms in self._in_pairs():
            steps = steps_of(atoms)
            ratios.append(ratio_at([(self.rests[i], Fraction(0)), *steps], value))
            ratio = ratio_at(steps, value, self.rests[j])
            if ratio is None:
                return INFINITE
            least = max(least, ratio)
        most = max([ratio for ratio in ratios if ratio is not None], default=least)
        return Enclosure(of_log(least).lower, math.inf if None in ratios else of_log(max(least, most)).upper)

    def steps(self, first: int, second: int) -> list[tuple[Fraction, Fraction]]:
        """The probabilities of the outputs of one ratio under two datasets, the largest ratio first.

        Places in the domain. The first few together are the event that tells the first dataset best from the second.
        """
        return next(steps_of(atoms) for *_, atoms in in_pairs(self.laws, [(first, second)], endless=self.endless))

    def _in_pairs(self) -> "Iterator[tuple[int, int, Atoms]]":
        return in_pairs(self.laws, _both_ways(self.pairs), endless=self.endless)

    def upper_bound(self, delta: float = 0.0) -> UpperBound:
        """The least epsilon at a delta, as an upper bound for the pairs of this domain (and a lower one)."""
        delta = validate.probability("delta", delta)  # as a double: the number that the bound states
        epsilon = self.epsilon if delta == 0.0 else self.epsilon_at(delta)
        label, arithmetic = Label.EXACT_FINITE, Arithmetic.RATIONAL
        return UpperBound(epsilon.upper, delta, label, self.scope, arithmetic, SOURCE, max(0.0, epsilon.lower))


def _both_ways(pairs: "Sequence[Places]") -> "Iterator[Places]":
    for i, j in pairs:
        yield i, j
        yield j, i


def pairs_in_words(pairs: int, datasets: int) -> str:
    """How many pairs of how many datasets a statement is about.

    >>> pairs_in_words(12, 8)
    'the 12 adjacent pairs of the 8 datasets listed'
    """
    counted = "the one adjacent pair" if pairs == 1 else f"the {pairs:,} adjacent pairs"
    return f"{counted} of the {datasets:,} datasets listed"


def side_by_side(first: Law, second: Law) -> Iterator[tuple[Fraction, Fraction]]:
    """P and Q of every output."""
    nothing = Fraction(0)
    return ((first.get(output, nothing), second.get(output, nothing)) for output in {**first, **second})


def atoms_of(both: Iterable[tuple[Fraction, Fraction]]) -> "Atoms":
    """P and Q of outputs, those of one ratio p / q taken together; the ratio is infinite where q is 0."""
    atoms: Atoms = {}
    nothing = Fraction(0), Fraction(0)
    for p, q in both:
        if p or q:
            ratio = p / q if q else math.inf
            before = atoms.get(ratio, nothing)
            atoms[ratio] = before[0] + p, before[1] + q
    return atoms


def in_pairs(
    laws: Sequence[Law], places: "Iterable[Places]", *, endless: bool = False
) -> "Iterator[tuple[int, int, Atoms]]":
    """P and Q of the outputs of each ratio, for pairs of laws; of pairs where these are the same, one is enough.

    Laws of vectors with independent entries are compared entry by entry. `endless` laws may hold tails.
    """
    factors, known, one = [_factors(law) for law in laws], set[Hashable](), dict[Any, Any]()
    factors = [(shape, [one.setdefault(each, each) for each in entries]) for shape, entries in factors]

    def atoms(first: Law, second: Law) -> Atoms:
        return atoms_of(side_by_side(*(TailCuts((first, second)).laws if endless else (first, second))))

    for i, j in places:
        (shape, entries), (other, others) = factors[i], factors[j]
        if not entries or shape != other:
            yield i, j, atoms(laws[i], laws[j])
        elif (pairs := frozenset(Counter(zip(entries, others, strict=True)).items())) not in known:
            known.add(pairs)
            both = [(Fraction(1), Fraction(1))]
            for (p, q), count in pairs:
                entry = [*atoms(dict(p), dict(q)).values()]
                for _ in range(count):
                    both = [*atoms_of((a * c, b * d) for (a, b), (c, d) in product(both, entry)).values()]
            yield i, j, atoms_of(both)


def _factors(law: Law) -> tuple[Hashable, list[frozenset[tuple[Hashable, Fraction]]]]:
    """The shape of a law's outputs and the laws of their entries, if these are independent; else none."""
    shape, first = _vector(next(iter(law)))
    size, weights = math.lcm(*(p.denominator for p in law.values())), dict[tuple[Hashable, ...], int]()
    for output, p in law.items():
        other, entries = _vector(output)
        if other != shape or len(entries) != len(first):
            return None, []
        weights[entries] = p.numerator * (size // p.denominator)
    marginals = [Counter[Hashable]() for _ in first]
    for entries, weight in weights.items():
        for marginal, entry in zip(marginals, entries, strict=True):
            marginal[entry] += weight
    for entries, weight in weights.items():
        alone = math.prod(marginal[entry] for marginal, entry in zip(marginals, entries, strict=True))
        if weight * size ** len(first) != alone * size:
            return None, []
    return (shape, len(first)), [frozenset((e, Fraction(n, size)) for e, n in each.items()) for each in marginals]


def _vector(form: Any) -> tuple[Hashable, tuple[Hashable, ...]]:
    """The entries of an output that has some, and all else that there is of it."""
    if type(form) is tuple:
        return tuple, form
    if type(form) is not Shaped:
        return form, ()
    content: Any = form.content
    if form.kind is np.ndarray and type(content[2]) is bytes:
        dtype, shape, held = content
        size = max(1, len(held) // max(1, math.prod(shape)))
        return (np.ndarray, dtype, shape), tuple(held[at : at + size] for at in range(0, len(held), size))
    within, entries = _vector(content)
    return (form.kind, within), entries


def steps_of(atoms: "Atoms") -> list[tuple[Fraction, Fraction]]:
    """P and Q of the outputs of one ratio, the largest first."""
    return [atoms[ratio] for ratio in sorted(atoms, reverse=True)]


def _worst(i: int, j: int, atoms: "Atoms", rest: Fraction) -> Worst:
    """The outputs of the largest ratio of two laws; of the likely ones where q may be larger by a rest."""
    p, q = atoms[max(atoms)] if not rest else max(atoms.values(), key=lambda both: both[0] / (both[1] + rest))
    return Worst(i, j, p, q + rest)


def ratio_at(
    steps: Iterable[tuple[Fraction, Fraction]], delta: Fraction, rest: Fraction = Fraction(0)
) -> Fraction | None:
    """The least e^epsilon with P(S) <= e^epsilon Q(S) + delta for all S, at least 0; None if no epsilon is enough.

    `steps` are P and Q of the outputs of one ratio, the largest first: the hardest events hold those above some ratio.
    Q(S) counts as larger by a rest.
    """
    p, q, most = Fraction(0), rest, Fraction(0)
    for more_p, more_q in steps:
        p, q = p + more_p, q + more_q
        if p > delta:
            if q == 0:
                return None
            most = max(most, (p - delta) / q)
    return most


# --- which datasets of a finite domain are neighbours, as pairs of their places -------------------------------


Places = tuple[int, int]
Neighbours = Callable[[Any, Any], object] | Iterable[tuple[Any, Any]] | str


def adjacent(domain: Sequence[Any], neighbours: Neighbours) -> tuple[Places, ...]:
    """The pairs of places, the smaller first; order does not matter, for neighbours are so both ways.

    `neighbours` is a predicate of two datasets, a list of pairs of datasets, or "all". Raises `InvalidSpec` where
    there is no pair, or a pair names a dataset that the domain lacks.

    >>> adjacent([0, 1, 2], lambda a, b: abs(a - b) == 1)
    ((0, 1), (1, 2))
    >>> adjacent(["a", "b"], [("b", "a")])
    ((0, 1),)
    """
    if len(domain) < 2:
        raise InvalidSpec(f"the domain must hold two datasets at least, got {len(domain)}")
    everywhere = combinations(range(len(domain)), 2)
    if isinstance(neighbours, str):
        if neighbours != "all":
            raise InvalidSpec(f'neighbours must be a function, a list of pairs or "all", got {neighbours!r}')
        pairs = tuple(everywhere)
    elif callable(neighbours):
        pairs = tuple(
            (i, j) for i, j in everywhere if _holds(neighbours, domain, i, j) or _holds(neighbours, domain, j, i)
        )
    elif not isinstance(neighbours, Iterable):
        raise InvalidSpec(f'neighbours must be a function, a list of pairs or "all", got {neighbours!r}')
    else:
        places = {digest(data): place for place, data in reversed(list(enumerate(domain)))}
        if len(places) < len(domain):
            raise InvalidSpec(
                "two datasets of the domain are the same by content, so a list cannot name one; leave one out"
            )
        pair_places = set()
        for pair in neighbours:
            try:
                first, second = (places[digest(data)] for data in pair)
            except (TypeError, ValueError):
                raise InvalidSpec(f"a pair of neighbours must be two datasets, got {pair!r}") from None
            except KeyError:
                raise InvalidSpec(f"neighbours name a dataset that the domain lacks, in {pair!r}; add it") from None
            if first == second:
                raise InvalidSpec(f"the two datasets of a pair must differ, got {pair!r}")
            pair_places.add((min(first, second), max(first, second)))
        pairs = tuple(sorted(pair_places))
    if not pairs:
        raise InvalidSpec(f"no two of the {len(domain)} datasets are neighbours; list them, or change neighbours")
    return pairs


def _holds(neighbours: Callable[[Any, Any], object], domain: Sequence[Any], i: int, j: int) -> bool:
    """Whether the predicate says so; what it raises, or an array of truth values, is named with the datasets."""
    left_s()
    try:
        return bool(neighbours(domain[i], domain[j]))
    except Exception as error:
        text = " ".join(str(error).split())
        raise InvalidSpec(f"neighbours failed on datasets {i} and {j}: {type(error).__name__}: {text}") from error
