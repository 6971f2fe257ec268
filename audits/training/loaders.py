"""Loaders as mechanisms: what an epoch of batches with noise gives away, against what was accounted for it.

Nothing is trained: a loader's own code draws the records of each batch, values are summed, noise is added. Every loader
that breaks its claim stands beside one that keeps it, at the same size. `python -m audits.training loaders`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.training.table import Row, timed
from dpaudit import ApproximateDP, AuditResult, GaussianDP, Verdict
from dpaudit.losses.distribution import Mixture, repeated_epsilon, step_losses, subsampled_gaussian_epsilon
from dpaudit.training.loader import audit_loader

ENVIRONMENT = "opacus"
DELTA = 1e-5
SEEDS = range(5)
MOST_S = 60.0  # that a refutation may take
ADDED = "add_or_remove_one"
LONG = 1_000  # batches of an epoch
CLAIMS = ((0.5, 3.239), (0.8, 0.304), (1.0, 0.149))  # sigma, and what was accounted


@dataclass(frozen=True)
class Case:
    """A loader with its noise, what was accounted for it, and whether that is too little; `exact` is what it loses."""

    name: str
    loader: Any
    sigma: float
    claim: Any
    refuted: bool
    exact: str
    runs: int
    options: dict[str, Any]
    seeds: Iterable[int] = SEEDS


def rows() -> Iterator[Row]:
    for case in (*_of_a_thousand(), *_of_wrong_rates(), *_of_the_end(), _seldom()):
        found = [timed(lambda case=case, seed=seed: _audited(case, seed)) for seed in case.seeds]
        results = [result for result, _ in found]
        refuted = [result.verdict is Verdict.REFUTED for result in results]
        bounds = sorted(_lower(result) for result in results)
        said = f"certified {bounds[0]:.3f} to {bounds[-1]:.3f}, refuted {sum(refuted)} of {len(refuted)}"
        wanted, slowest = "refuted" if case.refuted else "not refuted", max(cpu_s for _, cpu_s in found)
        yield Row(
            case.name,
            f"{case.exact}; claim {_claimed(case.claim)}: {wanted}",
            f"{said} ({case.runs:,} epochs)",
            all(each is case.refuted for each in refuted) and (slowest <= MOST_S or not case.refuted),
            slowest,
        )
    yield _level()


def _audited(case: Case, seed: int) -> AuditResult:
    given = {"records": LONG, **case.options}
    return audit_loader(case.loader, sigma=case.sigma, claim=case.claim, runs=case.runs, seed=seed, **given)


def _lower(result: AuditResult) -> float:
    return result.certificate.lower


def _claimed(claim: Any) -> str:
    return f"mu {claim.mu:g}" if isinstance(claim, GaussianDP) else f"{claim.epsilon:.3f}"


# --- a thousand batches, accounted as Poisson sampling at one in a thousand --------------------------------------


def _of_a_thousand() -> Iterator[Case]:
    for sigma, epsilon in CLAIMS:
        claim, runs = ApproximateDP(epsilon, DELTA), 20_000
        exact = f"at least {shuffled_epsilon(sigma, LONG):.3f}"
        for name, loader in (
            ("torch, shuffle=True", torch_loader(LONG, 1, shuffle=True)),
            ("Opacus, poisson_sampling=False", opacus_loader(LONG, 1, poisson=False)),
        ):
            yield Case(f"{name}, sigma {sigma}", loader, sigma, claim, True, exact, runs, {})
        fixed = torch_loader(LONG, 1, shuffle=False)
        mu = f"{gaussian_epsilon(sigma):.3f}"
        yield Case(f"a fixed order, sigma {sigma}", fixed, sigma, claim, True, mu, 4_000, {})
        buffered = f"a shuffle buffer of 50, sigma {sigma}"
        yield Case(buffered, shuffle_buffer(50), sigma, claim, True, exact, runs // 2, {}, SEEDS[:1])
        least = f"{epsilon}"
        yield Case(f"Poisson, numpy, sigma {sigma}", poisson(1.0 / LONG), sigma, claim, False, least, runs, {})
        private = opacus_loader(LONG, 1, poisson=True)
        yield Case(f"Opacus, Poisson, sigma {sigma}", private, sigma, claim, False, least, runs, {}, SEEDS[:1])


# --- a rate from the wrong length, and weights ---------------------------------------------------------------------


def _of_wrong_rates() -> Iterator[Case]:
    few, rate = 10, 0.1  # batches; a tenth of the records in each
    right, wrong = (ApproximateDP(_accounted(1.0, each, few), DELTA) for each in (rate, rate / 10))
    sampler = opacus_loader(LONG, 10, poisson=True, weights=np.ones(LONG), drawn=100)
    exact, runs = f"{right.epsilon:.3f}", 10_000
    yield Case("Opacus 813: 100 of 1,000 drawn; rate = 10 / 1,000", sampler, 1.0, wrong, True, exact, runs, {})
    yield Case("the same; rate = 1 / len(loader)", sampler, 1.0, right, False, exact, runs, {})
    part = {"records": 100, "batches": few}
    yield Case("Poisson on 100 records; rate of all 1,000", poisson(rate), 1.0, wrong, True, exact, runs, part)
    yield Case("the same; rate of the 100", poisson(rate), 1.0, right, False, exact, runs, part)
    weights = np.where(np.arange(LONG) == 0, 50.0, 1.0)
    claim = ApproximateDP(_accounted(1.0, 0.01, 100), DELTA)
    kept, replaced = (opacus_loader(LONG, 10, poisson=each, weights=weights, drawn=LONG) for each in (False, True))
    yield Case(
        "weights of 50 to 1, poisson_sampling=False",
        kept,
        1.0,
        claim,
        True,
        f"{weighted_epsilon(1.0, 10, weights[0] / weights.sum(), 100):.3f}",
        4_000,
        {},
    )
    yield Case(
        "the same, Poisson: the weights are gone", replaced, 1.0, claim, False, f"{claim.epsilon:.3f}", 4_000, {}
    )


# --- the last batch: dropped, partial, averaged -----------------------------------------------------------------------


def _of_the_end() -> Iterator[Case]:
    claim, runs = ApproximateDP(_accounted(1.0, 0.01, 100), DELTA), 20_000
    dropped = torch_loader(1_009, 10, shuffle=True, drop_last=True)
    exact = f"at least {shuffled_epsilon(1.0, 100, 1_000 / 1_009):.3f}"
    yield Case("drop_last=True, shuffled, as Poisson", dropped, 1.0, claim, True, exact, runs, {"records": 1_009})
    order = unturned_loader(LONG, 10)
    once = f"{gaussian_epsilon(1.0):.3f}"
    yield Case("DistributedSampler, set_epoch never called", order, 1.0, claim, True, once, 10_000, {})
    yield Case("Poisson, numpy, 100 batches", poisson(0.01, 100), 1.0, claim, False, f"{claim.epsilon:.3f}", runs, {})
    one_more = {"records": 1_001, "relation": ADDED}
    for name, make in (
        ("1,001 records, shuffled, a batch of one at the end", lambda n, rng: torch_loader(n, 10, rng, shuffle=True)),
        ("the same, Opacus' Poisson: steps = len(loader)", opacus_rebuilt),
    ):
        yield Case(name, make, 1.0, claim, True, "infinite", 1_000, one_more, SEEDS[:1])
    yield Case("Opacus' sampler, rate and steps given", opacus_sampler, 1.0, claim, False, "its claim", 1_000, one_more)
    whole = GaussianDP(1.0)
    for name, count, drop, broken, mu in (
        ("11 records in fives, each batch averaged", 11, False, True, "mu 5 in 1 of 11"),
        ("the same, drop_last=True", 11, True, False, "mu 1"),
    ):
        loader = torch_loader(count, 5, shuffle=True, drop_last=drop)
        yield Case(name, loader, 1.0, whole, broken, mu, 10_000, {"records": count, "averaged": True})


# --- claims that are met exactly -------------------------------------------------------------------------------------


def _seldom() -> Case:
    claim = ApproximateDP(_accounted(1.0, 0.25, 4), DELTA)
    sampler = opacus_loader(64, 16, poisson=True)
    return Case("Opacus, Poisson, 4 batches", sampler, 1.0, claim, False, "its claim", 20_000, {"records": 64})


def _level(repeats: int = 200) -> Row:
    """A claim at a delta that events of some probability reach, met exactly: refuted in 5 of 100 audits at the most."""
    from scipy.stats import binom

    claim = ApproximateDP(subsampled_gaussian_epsilon(0.1, 1.0, 0.25, 4), 0.1)
    case = Case("", poisson(0.25, 4), 1.0, claim, False, "", 1_000, {"records": 8})
    refuted, cpu_s = timed(lambda: sum(_audited(case, seed).verdict is Verdict.REFUTED for seed in range(repeats)))
    most = int(binom.isf(1e-6, repeats, 0.05))
    name, found = f"Poisson, numpy, {repeats} audits at the very claim", f"refuted {refuted}"
    return Row(name, f"at most {most} at a stated 5 %", found, refuted <= most, cpu_s)


# --- loaders ----------------------------------------------------------------------------------------------------------


def torch_loader(records: int, size: int, rng: np.random.Generator | None = None, **how: Any) -> Any:
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    return DataLoader(range(records), batch_size=size, generator=_generator(rng), **how)


def unturned_loader(records: int, size: int) -> Any:
    """Shuffled by the number of an epoch that nobody counts: the same order again and again."""
    from torch.utils.data import DataLoader, DistributedSampler

    numbers: Any = range(records)
    return DataLoader(numbers, batch_size=size, sampler=DistributedSampler(numbers, num_replicas=1, rank=0))


def _generator(rng: np.random.Generator | None) -> Any:
    import torch

    own = torch.Generator()
    return own if rng is None else own.manual_seed(int(rng.integers(1 << 63)))


def opacus_loader(records: int, size: int, *, poisson: bool, weights: Any = None, drawn: int = 0) -> Any:
    """The loader that `PrivacyEngine.make_private` gives back; with weights, one whose sampler draws so many."""
    import warnings

    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

    torch.set_num_threads(1)
    own = _generator(None)
    how: dict[str, Any] = {"shuffle": True}
    if weights is not None:
        how = {"sampler": WeightedRandomSampler(torch.as_tensor(weights), drawn, generator=own)}
    model = torch.nn.Linear(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, _, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=DataLoader(TensorDataset(torch.zeros(records, 1)), batch_size=size, generator=own, **how),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=poisson,
        )
    return loader


def opacus_rebuilt(records: int, rng: np.random.Generator) -> Any:
    """Opacus' Poisson loader of tens, made anew for so many records, as `make_private` makes it."""
    import torch
    from opacus.data_loader import DPDataLoader
    from torch.utils.data import DataLoader, TensorDataset

    given = DataLoader(TensorDataset(torch.zeros(records, 1)), batch_size=10)
    return DPDataLoader.from_data_loader(given, generator=_generator(rng))


def opacus_sampler(records: int, rng: np.random.Generator) -> Any:
    """Opacus' sampler where rate and steps do not depend on the number of records."""
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    own = _generator(rng)
    return UniformWithReplacementSampler(num_samples=records, sample_rate=0.01, steps=100, generator=own)


def poisson(rate: float, batches: int | None = None) -> Callable[[int, np.random.Generator], Iterator[Any]]:
    """Each record joins each of 1 / rate batches by a coin of its own: the cells of a table that are drawn."""
    steps = round(1.0 / rate) if batches is None else batches

    def epoch(records: int, rng: np.random.Generator) -> Iterator[Any]:
        count = rng.binomial(records * steps, rate)
        cells = np.sort(rng.choice(records * steps, count, replace=False, shuffle=False))
        ends = np.searchsorted(cells, records * np.arange(1, steps + 1))
        return iter(np.split(cells % records, ends[:-1]))

    return epoch


def shuffle_buffer(size: int) -> Callable[[int, np.random.Generator], Iterator[list[int]]]:
    """Batches of one from a buffer that is filled in order, as tf.data's `shuffle(size)` draws them."""

    def epoch(records: int, rng: np.random.Generator) -> Iterator[list[int]]:
        held = list(range(size))
        for drawn, following in zip(
            rng.integers(size, size=records - size).tolist(), range(size, records), strict=True
        ):
            yield [held[drawn]]
            held[drawn] = following
        yield from ([each] for each in rng.permutation(held).tolist())

    return epoch


# --- exact figures ----------------------------------------------------------------------------------------------------


def _accounted(sigma: float, rate: float, batches: int) -> float:
    return subsampled_gaussian_epsilon(DELTA, sigma, rate, batches)


def gaussian_epsilon(sigma: float) -> float:
    """A fixed place: one Gaussian release of sensitivity 1."""
    from dpaudit.losses.distribution import gaussian_epsilon as exact

    return exact(DELTA, 1.0 / sigma)


def shuffled_epsilon(sigma: float, batches: int, used: float = 1.0) -> float:
    """What "the largest sum is above C" shows at the best C: the canary's batch is 2 or 1 above the others' sums.

    `used` is the chance that the canary is in a batch at all. A lower bound on the loss (Chua et al. 2024).
    """
    from scipy.stats import norm

    best = 0.0
    for cut in np.linspace(0.0, 12.0, 4_801):
        rest = norm.logcdf(cut)
        missed = [norm.logcdf(cut - shift / sigma) + (batches - 1) * rest for shift in (2.0, 1.0)]
        p, q = (-used * math.expm1(log) - (1.0 - used) * math.expm1(batches * rest) for log in missed)
        if p > DELTA and q > 0.0:
            best = max(best, math.log((p - DELTA) / q))
    return best


def weighted_epsilon(sigma: float, size: int, weight: float, batches: int) -> float:
    """Each of `size` draws is the canary with probability `weight`: 2 or 1 above the others' sums as often as drawn."""
    from scipy.stats import binom

    times = np.arange(size + 1.0)
    chances = tuple(binom.pmf(times, size, weight).tolist())
    first, second = (Mixture(tuple((shift * times / sigma).tolist()), chances) for shift in (2.0, 1.0))
    return repeated_epsilon(DELTA, step_losses(first, second, "above", 1e-2), batches)
