"""The exact privacy loss of laws over finitely many outputs: epsilon, delta, the worst pair."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from dpaudit.verify.replay.source import exact
from dpaudit.verify.replay.tails import ENDLESS, Tail
from dpaudit.verify.replay.walk import Law, Unfollowed

Atoms = dict[Fraction | float, tuple[Fraction, Fraction]]  # P and Q of outputs by their ratio

SOURCE = "replay of every choice"
MOST_CELLS = 100_000  # outputs that a tail is cut into


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
    both orders count. `paths` is the number of runs behind the laws, `scope` says what the statement is about. Where a
    law has `Unfollowed` outputs, of runs that were not followed, they may be any: no lower end is known then.

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

    @classmethod
    def of(
        cls, domain: Sequence[Any], pairs: "Sequence[Places]", laws: Sequence[Law], paths: int = 0, scope: str = ""
    ) -> "FiniteLosses":
        """The losses of laws that are known. Raises `InvalidSpec` where one is no law, or there is no pair."""
        for place, law in enumerate(laws):
            if sum(law.values()) != 1 or min(law.values()) < 0:
                raise InvalidSpec(f"law {place} must have probabilities that sum to 1, got {sum(law.values())}")
        if not pairs or not all(0 <= place < len(laws) == len(domain) for pair in pairs for place in pair):
            raise InvalidSpec("pairs must be places of two datasets of the domain, and there must be one at least")
        followed = [{output: p for output, p in law.items() if type(output) is not Unfollowed} for law in laws]
        of_pairs = [Worst(i, j, *atoms[max(atoms)]) for i, j, atoms in in_pairs(followed, _both_ways(pairs))]
        # an infinite loss is above all others, and of two that are equal the likelier one
        worst = max(of_pairs, key=lambda w: (w.q == 0, w.p / w.q if w.q else Fraction(0), w.p))
        words = scope or f"{pairs_in_words(len(pairs), len(domain))}, all outputs"
        return cls(tuple(domain), tuple(pairs), tuple(laws), worst, paths, words)

    @property
    def epsilon(self) -> Enclosure:
        """The largest loss of any output on any pair, at delta 0; both ends infinite where it is infinite."""
        return self._known(INFINITE if self.lost else self.worst.loss)

    @property
    def lost(self) -> bool:
        """Whether some runs were not followed."""
        return any(type(output) is Unfollowed for law in self.laws for output in law)

    def _known(self, found: Enclosure) -> Enclosure:
        return Enclosure(0.0, found.upper) if self.lost else found

    @property
    def infinite(self) -> bool:
        """Whether some output is possible on one dataset and impossible on a neighbour."""
        return self.worst.q == 0 and not self.lost

    def delta(self, epsilon: Fraction | float) -> Enclosure:
        """The least delta at an epsilon, over all pairs in both orders; epsilon is taken as the number it is."""
        value = exact(epsilon)
        if value is None or value < 0:
            raise InvalidSpec(f"epsilon must be finite and at least 0, got {epsilon!r}")
        return self._known(largest(hockey_stick(atoms.values(), value) for *_, atoms in self._in_pairs()))

    def epsilon_at(self, delta: Fraction | float) -> Enclosure:
        """The least epsilon of at least 0 at a delta, all pairs in both orders; infinite if no epsilon is enough."""
        value = exact(delta)
        if value is None or not 0 <= value <= 1:
            raise InvalidSpec(f"delta must be a probability, got {delta!r}")
        worst = Fraction(1)
        for *_, atoms in self._in_pairs():
            ratio = ratio_at(steps_of(atoms), value)
            if ratio is None:
                return self._known(INFINITE)
            worst = max(worst, ratio)
        return self._known(of_log(worst))

    def steps(self, first: int, second: int) -> list[tuple[Fraction, Fraction]]:
        """The probabilities of the outputs of one ratio under two datasets, the largest ratio first.

        Places in the domain. The first few together are the event that tells the first dataset best from the second.
        """
        return next(steps_of(atoms) for *_, atoms in in_pairs(self.laws, [(first, second)]))

    def _in_pairs(self) -> "Iterator[tuple[int, int, Atoms]]":
        return in_pairs(self.laws, _both_ways(self.pairs))

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


def atoms_of(both: Iterable[tuple[Fraction, Fraction]]) -> Atoms:
    """P and Q of outputs, those of one ratio p / q taken together; the ratio is infinite where q is 0."""
    atoms: Atoms = {}
    nothing = Fraction(0), Fraction(0)
    for p, q in both:
        if p or q:
            ratio = p / q if q else math.inf
            before = atoms.get(ratio, nothing)
            atoms[ratio] = before[0] + p, before[1] + q
    return atoms


def steps_of(atoms: Atoms) -> list[tuple[Fraction, Fraction]]:
    """P and Q of the outputs of one ratio, the largest first."""
    return [atoms[ratio] for ratio in sorted(atoms, reverse=True)]


def ratio_at(steps: Iterable[tuple[Fraction, Fraction]], delta: Fraction) -> Fraction | None:
    """The least e^epsilon with P(S) <= e^epsilon Q(S) + delta for all S, at least 0; None if no epsilon is enough.

    `steps` are P and Q of the outputs of one ratio, the largest first: the hardest events hold those above some ratio.
    """
    p = q = most = Fraction(0)
    for more_p, more_q in steps:
        p, q = p + more_p, q + more_q
        if p > delta:
            if q == 0:
                return None
            most = max(most, (p - delta) / q)
    return most


# --- laws side by side: part by part where parts are independent, and tails cut so that two can be compared -----------


def in_pairs(laws: Sequence[Law], places: "Iterable[Places]") -> "Iterator[tuple[int, int, Atoms]]":
    """P and Q of the outputs of each ratio, for pairs of laws; of pairs where these are the same, one is enough."""
    parted, known, one = [by_leaf(law) for law in laws], set[Hashable](), dict[Any, Any]()
    entries = [[one.setdefault(each, each) for each in found] for _, found in parted]
    nested = [
        any(type(part) is Tail for each in law if type(each) is not Tail for part in leaves(each)[1]) for law in laws
    ]
    for i, j in places:
        if not entries[i] or parted[i][0] != parted[j][0]:
            if nested[i] or nested[j]:
                raise InvalidSpec(f"{ENDLESS} is part of an output whose parts depend on each other")
            yield i, j, _atoms(laws[i], laws[j])
        elif (pairs := frozenset(Counter(zip(entries[i], entries[j], strict=True)).items())) not in known:
            known.add(pairs)
            both = [(Fraction(1), Fraction(1))]
            for (p, q), count in pairs:
                part = [*_atoms(dict(p), dict(q)).values()]
                for _ in range(count):
                    both = [*atoms_of((a * c, b * d) for (a, b), (c, d) in product(both, part)).values()]
            yield i, j, atoms_of(both)


def _atoms(first: Law, second: Law) -> Atoms:
    nothing = Fraction(0)
    p, q = cut((first, second))
    return atoms_of((p.get(output, nothing), q.get(output, nothing)) for output in {**p, **q})


def by_leaf(law: Law) -> tuple[Hashable, list[frozenset[tuple[Hashable, Fraction]]]]:
    """The shape of a law's outputs and the laws of their parts, if these are independent; else None and none."""
    shape, parts = _parts(law)
    split = [(leaves(output)[1], p) for output, p in law.items()] if shape is not None else []
    alone = (p == math.prod(part[each] for part, each in zip(parts, found, strict=True)) for found, p in split)
    return (shape, [frozenset(each.items()) for each in parts]) if split and all(alone) else (None, [])


def _parts(law: Law) -> tuple[Hashable, list[Law]]:
    """The shape of a law's outputs, and the law of each part; where they have no shape in common, None and the law."""
    split = {output: leaves(output) for output in law}
    shape, first = next(iter(split.values()))
    if shape is None or any(other != shape for other, _ in split.values()):
        return None, [law]
    laws = [dict[Hashable, Fraction]() for _ in first]
    for output, p in law.items():
        for each, part in zip(laws, split[output][1], strict=True):
            each[part] = each.get(part, Fraction(0)) + p
    return shape, [*laws]


def leaves(form: Any) -> tuple[Hashable, tuple[Hashable, ...]]:
    """The parts of an output that have no parts, and all else that there is of it; None where it is one itself."""
    if type(form) is tuple:
        shapes, parts = zip(*map(leaves, form), strict=True) if form else ((), ())
        return shapes, tuple(each for part in parts for each in part)
    content: Any = form.content if type(form) is Shaped else None
    if type(content) is not tuple:
        return None, (form,)
    if form.kind is np.ndarray and type(content[2]) is bytes:
        dtype, shape, held = content
        size = max(1, len(held) // max(1, math.prod(shape)))
        return (np.ndarray, dtype, shape), tuple(held[at : at + size] for at in range(0, len(held), size))
    within, parts = leaves(content)
    return (form.kind, within), parts


def cut(laws: Sequence[Law]) -> Sequence[Law]:
    """Laws whose outputs are one or have nothing in common: a tail is cut into single numbers, and what is far out.

    Where all laws agree on how their tails fall, the ratio of two is the same all along what is far out, so that what
    is computed of these laws is right for the outputs themselves.
    """
    tails = [each for law in laws for each in law if type(each) is Tail]
    if not tails:
        return laws
    if any(len({(each.step, each.rate) for each in tails if each.step * sign > 0}) > 1 for sign in (1, -1)):
        raise InvalidSpec(f"{ENDLESS} falls at two rates or in two steps, which are not compared")
    ends = [each.start for each in tails] + [each for law in laws for each in law if type(each) is int]
    if max(ends) - min(ends) > MOST_CELLS:
        raise InvalidSpec(f"{ENDLESS} is compared with more than {MOST_CELLS:,} others; give fewer datasets")
    return [_cut(law, min(ends), max(ends)) for law in laws]


def _cut(law: Law, low: int, high: int) -> Law:
    cells = dict[Hashable, Fraction]()
    for output, p in law.items():
        place = output
        if type(output) is Tail:
            at = output.start
            while low <= at <= high:
                cells[at] = cells.get(at, Fraction(0)) + p * (1 - output.rate)
                at, p = at + output.step, p * output.rate
            place = replace(output, start=at)
        cells[place] = cells.get(place, Fraction(0)) + p
    return cells


def beside(law: Law, seen: Law) -> Iterable[Sequence[Law]]:
    """A law and what was seen of it; where it has tails part by part, and cut."""
    if not any(type(part) is Tail for output in law for part in leaves(output)[1]):
        return [(law, seen)]
    (shape, parts), (other, others) = _parts(law), _parts(seen)
    return map(cut, zip(parts, others, strict=True)) if shape == other else [(law, seen)]


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
