"""A loader as a mechanism: the batches that its own code draws, as noisy sums of what each record contributes.

Shuffling once an epoch is no Poisson sampling (Chua et al. 2024, arXiv 2403.17673). No model is needed to see it: a
batch's sum of bounded values with noise is all that a step releases along one direction. A run is an epoch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from dpaudit.api.audits import audit
from dpaudit.base import validate
from dpaudit.base.arrays import Bools, Integers, Reals
from dpaudit.claims import Claim, Relation
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Description, Opened
from dpaudit.mechanisms.functions import name_of
from dpaudit.results.result import AuditResult

DEFAULT_RUNS = 20_000
RELATIONS = Relation.REPLACE_SPECIAL, Relation.ADD_OR_REMOVE_ONE
GLANCED = 100  # epochs that are drawn beforehand, as an attacker would who has the loader's code
MOST_BATCHES = 1 << 17  # of an epoch: beyond, it does not seem to end
MOST_CELLS = 1 << 20  # noisy sums that are held at a time
LARGEST, TINY = 650.0, 1e-300  # of a logarithm that is raised to a power


@dataclass(frozen=True, slots=True)
class Habits:
    """What a loader usually does, from epochs that no run uses.

    `sizes`: the mean size of each batch, `rates`: how many times the canary is in it on the average; float[batches].
    `once`: never twice in an epoch. `others` is what the other records do best to contribute: -1 where sizes never
    change, so that the canary's batch stands out, and else nothing that varies.
    """

    sizes: Reals
    rates: Reals
    once: bool
    others: float


@dataclass(frozen=True, slots=True)
class LoaderMechanism:
    """The noisy sums of a loader's batches, in the few numbers that tell most; data is each record's value, float[n].

    `sigma` is the noise of a sum in units of the largest value, `batches` how many are drawn (None: an epoch).
    `averaged`: a batch is divided by its own size, and noise scaled to the usual one. `removed`: the canary leaves in
    the second dataset; else it contributes 0 there.

    An output is ln of how much likelier the sums are with the canary, for a loader that puts it into one batch of an
    epoch, or one that draws anew for each batch; and, where the canary leaves, the number of batches.
    """

    loader: Any
    sigma: float
    habits: Habits
    batches: int | None = None
    averaged: bool = False
    removed: bool = False

    @property
    def name(self) -> str:
        loader = name_of(self.loader) if callable(self.loader) else type(self.loader).__name__
        return f"log likelihood ratio of noisy batches of {loader}"

    def describe(self) -> Description:
        parameters = {"sigma": self.sigma, "others": self.habits.others, "batches": self.batches or "an epoch"}
        return Description(self.name, "batched", parameters={**parameters, "averaged": self.averaged}, takes_rng=True)

    def open(self) -> Opened:
        return Opened(self._outputs, per_run=False, takes_rng=True)

    def _outputs(self, values: Reals, runs: int, rng: np.random.Generator) -> Reals:
        block = max(1, MOST_CELLS // len(self.habits.sizes))
        return np.concatenate([self._some(values, min(block, runs - done), rng) for done in range(0, runs, block)])

    def _some(self, values: Reals, runs: int, rng: np.random.Generator) -> Reals:
        drawn = [self._sums(values, rng) for _ in range(runs)]
        counts = np.array([len(sums) for sums in drawn])
        present = np.arange(max(1, counts.max())) < counts[:, None]
        sums = np.zeros(present.shape)
        sums[present] = np.concatenate(drawn)
        sums += rng.normal(scale=self.sigma, size=sums.shape)
        likelier = self._likelier(sums, present)
        return np.stack([likelier, counts], axis=1) if self.removed else likelier

    def _sums(self, values: Reals, rng: np.random.Generator) -> Reals:
        records, sizes = one_epoch(self.loader, len(values), rng, self.batches)
        sums = np.bincount(np.repeat(np.arange(len(sizes)), sizes), values[records], len(sizes))
        return np.asarray(sums * (self.habits.sizes.max() / np.maximum(sizes, 1)) if self.averaged else sums)

    def _likelier(self, sums: Reals, inside: Bools) -> Reals:
        """ln of how much likelier noisy sums are with the canary, each run's; float[runs, batches], where `held`."""
        usual, rates = (np.resize(each, sums.shape[1]) for each in (self.habits.sizes, self.habits.rates))
        away = sums - self.habits.others * (usual.max() if self.averaged else usual)  # from a batch without the canary
        without = 0.0 if self.removed else -self.habits.others
        return self._shifted(away, rates * inside, 1.0 - self.habits.others) - self._shifted(
            away, rates * inside, without
        )

    def _shifted(self, away: Reals, rates: Reals, shift: float) -> Reals:
        """ln of how much likelier the sums of each run are if the canary shifts those that it is in."""
        ratios = np.exp(np.clip((shift * away - shift**2 / 2.0) / self.sigma**2, -LARGEST, LARGEST))
        if self.habits.once:
            missed = np.maximum(1.0 - rates.sum(axis=1), 0.0)
            return np.asarray(np.log(missed + (rates * ratios).sum(axis=1) + TINY))
        return np.asarray(np.log(1.0 - rates + rates * ratios + TINY).sum(axis=1))


def one_epoch(
    loader: Any, records: int, rng: np.random.Generator, batches: int | None = None
) -> tuple[Integers, Integers]:
    """The records of all batches of an epoch in a row, int[entries], and the batches' sizes, int[batches].

    With `batches`, so many: of the epoch's beginning, or of as many epochs as it takes.

    >>> pairs_of_four = lambda records, rng: rng.permutation(records).reshape(-1, 2)
    >>> one_epoch(pairs_of_four, 4, np.random.default_rng(0))[1]
    array([2, 2])
    """
    every: list[Any] = []
    while batches is None or len(every) < batches:
        most = MOST_BATCHES + 1 if batches is None else batches - len(every)
        added = list(islice(_begun(loader, records, rng), most))
        every += added
        if (batches is None and len(added) == most) or (batches is not None and not added):
            much = f"more than {MOST_BATCHES:,} batches an epoch: say batches=..." if added else "no batch"
            raise InvalidSpec(f"the loader gives {much}")
        if batches is None:
            break
    try:
        sizes = np.fromiter(map(len, every), np.int64, len(every))
        listed = (batch if isinstance(batch, list) else np.asarray(batch).tolist() for batch in every)
        indices = np.fromiter(chain.from_iterable(listed), np.int64, int(sizes.sum()))
    except (TypeError, ValueError):
        raise InvalidSpec("a loader must give batches of record numbers: lists or arrays of integers") from None
    if len(indices) and not 0 <= indices.min() <= indices.max() < records:
        wrong = indices[(indices < 0) | (indices >= records)][0]
        raise InvalidSpec(f"the loader gave record {wrong}, and there are records 0 to {records - 1}; give records=...")
    return indices, sizes


def _begun(loader: Any, records: int, rng: np.random.Generator) -> Iterator[Any]:
    """An epoch begins. The generators of a loader object are seeded; what a function made is left as it is."""
    begun = loader(records, rng) if callable(loader) else loader
    inner = getattr(begun, "batch_sampler", None)  # torch's words, and torch is not imported: what says which records
    batches = begun if inner is None else inner
    for part in (begun, batches, getattr(batches, "sampler", None)) if begun is loader else ():
        seeded = getattr(getattr(part, "generator", None), "manual_seed", None)
        if seeded is not None:
            seeded(int(rng.integers(1 << 63)))
    if isinstance(loader, Iterator) or not isinstance(batches, Iterable):
        kind = type(batches).__name__
        raise InvalidSpec(f"give a function loader(records, rng) of an epoch, or a loader of many, got {kind}")
    return iter(batches)


def habits_of(loader: Any, records: int, canary: int, rng: np.random.Generator, batches: int | None = None) -> Habits:
    """What `GLANCED` epochs show of a loader. Raises `InvalidSpec` where the canary is in none of them."""
    epochs = [one_epoch(loader, records, rng, batches) for _ in range(GLANCED)]
    sizes = [each for _, each in epochs]
    longest = max(map(len, sizes))
    total = np.sum([np.pad(each, (0, longest - len(each))) for each in sizes], axis=0)
    places = [np.repeat(np.arange(len(each)), each)[indices == canary] for indices, each in epochs]
    seen = np.concatenate(places)
    if len(seen) == 0:
        raise InvalidSpec(f"record {canary} is in no batch of {GLANCED} epochs; say canary=... for one that is drawn")
    first, end = int(seen.min()), int(seen.max()) + 1
    further = 4 * (end - first - 1) // len(seen)  # a place that is seldom seen is missed by about so much
    window = slice(max(0, first - further), end + further)
    rates = np.zeros(longest)
    rates[window] = min(1.0, len(seen) / GLANCED / len(rates[window]))
    even = all(np.array_equal(each, sizes[0]) for each in sizes)
    return Habits(total / GLANCED, rates, max(map(len, places)) == 1, -1.0 if even else 0.0)


def audit_loader(
    loader: Any,
    *,
    records: int,
    sigma: float,
    claim: Claim,
    batches: int | None = None,
    canary: int = 0,
    averaged: bool = False,
    relation: Relation | str = Relation.REPLACE_SPECIAL,
    runs: int = DEFAULT_RUNS,
    confidence: float = 0.95,
    seed: int = 0,
) -> AuditResult:
    """Audits what an epoch of a loader releases where each batch is summed with noise, against what was accounted.

    `loader` is a function `loader(records, rng)` that returns an epoch's batches of record numbers (or a loader that
    has them), or an object that is gone through once an epoch: a `DataLoader` or `BatchSampler` of torch or Opacus; no
    data are loaded. A loader with a torch generator is seeded for each epoch; one that draws from the global
    generator makes the result not reproducible. `sigma` is the noise multiplier. The claim is what the accountant
    printed for one epoch, or for `batches` of them (which begin a new epoch where one ends).

    Record `canary` contributes 1, and 0 in the second dataset (relation "replace_special", which a figure for adding or
    removing one covers where batches are drawn by Poisson sampling), or it is not there ("add_or_remove_one": then
    `loader` is a function). The others contribute -1 where batches always have one size, as the canary's batch then
    stands out most, and else 0. `averaged`: a training divides by the size of the batch that it got.

    Raises `InvalidSpec` for a loader that cannot be used, `UnsoundAudit` where it breaks down.

    >>> def shuffled(records, rng):
    ...     return rng.permutation(records).reshape(-1, 1)
    >>> from dpaudit.claims import ApproximateDP
    >>> claim = ApproximateDP(epsilon=2.0, delta=1e-5)
    >>> result = audit_loader(shuffled, records=50, sigma=0.5, claim=claim, runs=2_000)
    >>> result.verdict.value, result.epsilon_lower > 2.0
    ('REFUTED', True)
    """
    count, place = validate.whole("records", records, least=2), validate.whole("canary", canary, least=0)
    most = None if batches is None else validate.whole("batches", batches, least=1)
    whole = validate.whole("seed", seed, least=0)
    if place >= count:
        raise InvalidSpec(f"canary must be one of the records 0 to {count - 1}, got {canary}")
    stated = Relation.of(relation)
    removed = stated is Relation.ADD_OR_REMOVE_ONE
    if stated not in RELATIONS or (removed and not callable(loader)):
        raise InvalidSpec(
            "relation must be replace_special, or add_or_remove_one with a function loader(records, rng), "
            f"got {Relation.word(stated)} with {type(loader).__name__}"
        )
    habits = habits_of(loader, count, place, np.random.default_rng([whole, GLANCED]), most)
    first = np.full(count, habits.others)
    first[place] = 1.0
    second = np.delete(first, place) if removed else np.where(np.arange(count) == place, 0.0, first)
    result = audit(
        LoaderMechanism(loader, validate.positive("sigma", sigma), habits, most, averaged, removed),
        pair=AdjacentPair(first, second, name="the canary is not there" if removed else "the canary contributes 0"),
        claim=claim,
        relation=stated,
        runs=runs,
        confidence=confidence,
        seed=whole,
        n_jobs=1,
    )
    given = f"records={count}, sigma={sigma!r}, claim={claim!r}, batches={most}, canary={place}, averaged={averaged}"
    more = f"relation={Relation.word(stated)!r}, runs={runs}, confidence={confidence}, seed={whole}"
    command = f"dpaudit.training.loader.audit_loader(loader, {given}, {more})"
    return replace(result, adjacency=("records",), provenance={**result.provenance, "command": command})
