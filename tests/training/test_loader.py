"""A loader as a mechanism: the law of its outputs, what is refuted and what is not, and loaders that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import dpaudit
from dpaudit import ApproximateDP, Verdict
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import epsilon_of, subsampled_gaussian_epsilon
from dpaudit.training.loader import Habits, LoaderMechanism, audit_loader, habits_of, one_epoch
from tests.cases import for_each

RNG = np.random.default_rng(0)
REMOVED = "add_or_remove_one"


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fresh processes that would be compared with this one: tests/auditing asks for them."""
    monkeypatch.setattr("dpaudit.auditing.audit.compare_twins", lambda *_, **__: None)
    monkeypatch.setattr("dpaudit.auditing.audit.looked_again", lambda session, first, refuted: (first, 0))


def shuffled(records: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Batches of two, the last of one where the number of records is odd."""
    order = rng.permutation(records).tolist()
    return (order[start : start + 2] for start in range(0, records, 2))


def ones(records: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(records)[:, None]


def poisson(records: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Four batches that each record joins with probability 1 / 4."""
    return [np.flatnonzero(rng.random(records) < 0.25) for _ in range(4)]


@dataclass
class Generator:
    """Shaped like torch's."""

    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def manual_seed(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)


@dataclass
class BatchSampler:
    """Shaped like torch's, with its `RandomSampler`: a generator of its own, or that of everyone."""

    sampler: SimpleNamespace

    def __iter__(self) -> Iterator[list[int]]:
        rng = self.sampler.generator.rng if self.sampler.generator else np.random.default_rng()
        order = rng.permutation(4).tolist()
        return iter([order[:2], order[2:]])


@dataclass
class DataLoader:
    """Shaped like torch's: it would load data, and its `batch_sampler` says which."""

    batch_sampler: BatchSampler

    def __iter__(self) -> Iterator[object]:
        raise AssertionError("data are not loaded")


def torch_like(generator: Generator | None) -> DataLoader:
    return DataLoader(BatchSampler(SimpleNamespace(generator=generator)))


def exact(sigma: float, delta: float) -> float:
    """The loss of two shuffled batches of one record each, the other record at -1: an integral on a grid."""
    edges = np.linspace(-9.0, 9.0 + 2.0 / sigma, 700)

    def law(shift: float) -> np.ndarray:
        at, aside = (np.diff(norm.cdf(edges, centre)) for centre in (shift / sigma, 0.0))
        return ((np.outer(at, aside) + np.outer(aside, at)) / 2.0).ravel()

    return epsilon_of(law(2.0), law(1.0), delta)


@for_each("once", [True, False])
def test_an_output_is_the_log_ratio_of_two_laws(once: bool) -> None:
    """Beside the densities of mixtures, added up one by one; the last place is never the canary's."""
    sigma, rate, others = 0.7, 0.3, -1.0
    habits = Habits(np.array([2.0, 2.0, 1.0]), np.array([rate, rate, 0.0]), once, others)
    mechanism = LoaderMechanism(shuffled, sigma, habits)
    sums = RNG.normal(size=(5, 3)) - 2.0
    found = mechanism._likelier(sums, np.ones((5, 3), np.bool_))
    for row, value in zip(sums, found, strict=True):
        one = rate if once else rate * (1.0 - rate)
        chances = {(0, 0): 1.0 - 2.0 * rate if once else (1.0 - rate) ** 2, (0, 1): one, (1, 0): one}
        chances |= {} if once else {(1, 1): rate**2}
        total = [0.0, 0.0]
        for inside, chance in chances.items():
            for side, shift in enumerate((2.0, 1.0)):
                total[side] += chance * np.prod(norm.pdf(row[:2], shift * np.array(inside) - 2.0, sigma))
        assert value == pytest.approx(np.log(total[0] / total[1]), rel=1e-9)


def test_sums_are_those_of_the_batches_and_an_average_counts_a_small_batch_more() -> None:
    values = RNG.normal(size=5)
    epochs = [list(shuffled(5, np.random.default_rng(3))) for _ in range(2)]
    habits = habits_of(shuffled, 5, 0, np.random.default_rng(1))
    assert (habits.once, habits.others, habits.sizes.tolist()) == (True, -1.0, [2.0, 2.0, 1.0])
    assert habits.rates == pytest.approx(1.0 / 3.0)
    plain, averaged = (LoaderMechanism(shuffled, 1.0, habits, averaged=each) for each in (False, True))
    sums = [sum(values[each] for each in batch) for batch in epochs[0]]
    assert plain._sums(values, np.random.default_rng(3)) == pytest.approx(sums)
    assert averaged._sums(values, np.random.default_rng(3)) == pytest.approx([*sums[:2], 2.0 * sums[2]])
    indices, sizes = one_epoch(shuffled, 5, np.random.default_rng(0), batches=5)  # of as many epochs as it takes
    assert sizes.tolist() == [2, 2, 1, 2, 2]
    assert sorted(indices[:5]) == [0, 1, 2, 3, 4]


def test_a_shuffled_epoch_and_its_mirror_image_are_certified_below_the_exact_loss_and_poisson_keeps_its_own() -> None:
    """A bound is above its truth in one audit of 1e6; a third of it is five deviations of the log ratio below."""
    truth, sure = exact(0.6, 0.05), 1.0 - 1e-6
    result = audit_loader(ones, records=2, sigma=0.6, claim=ApproximateDP(1.0, 0.05), runs=2_000, confidence=sure)
    mechanism = LoaderMechanism(ones, 0.6, habits_of(ones, 2, 0, RNG))
    pair = np.array([0.0, -1.0]), np.array([1.0, -1.0])
    mirror = dpaudit.audit(mechanism, pair=pair, claim=ApproximateDP(1.0, 0.05), runs=2_000, confidence=sure, n_jobs=1)
    for each in (result, mirror):
        assert each.verdict is Verdict.REFUTED
        assert truth / 3.0 < each.certificate.lower <= truth
    accounted = subsampled_gaussian_epsilon(0.05, 1.0, 0.25, 4)
    claim = ApproximateDP(accounted, 0.05)
    sound = audit_loader(poisson, records=4, sigma=1.0, claim=claim, runs=4_000, confidence=sure)
    assert sound.verdict is Verdict.NOT_REFUTED
    assert 0.0 < sound.certificate.lower <= accounted
    assert sound.reproducible
    assert sound.provenance["command"].startswith("dpaudit.training.loader.audit_loader(loader, records=4, sigma=1.0")


def test_a_batch_more_where_the_canary_is_there_refutes_any_epsilon() -> None:
    """With three batches always, only the last one's size differs, by a ninth of the noise: below GDP(1)."""
    claim = ApproximateDP(3.0, 1e-5)
    result = audit_loader(shuffled, records=5, sigma=9.0, claim=claim, relation=REMOVED, runs=1_000)
    assert result.verdict is Verdict.REFUTED
    still = audit_loader(shuffled, records=5, sigma=9.0, claim=claim, relation=REMOVED, runs=1_000, batches=3)
    assert still.verdict is Verdict.NOT_REFUTED


def test_a_loader_is_seeded_where_it_has_a_generator_and_its_data_are_not_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = [
        [one_epoch(torch_like(generator), 4, np.random.default_rng(seed))[0].tolist() for seed in range(9)]
        for generator in (Generator(), Generator(), None)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]  # 24 ** -9 of a chance
    assert len({tuple(order) for order in drawn[0]}) > 1
    monkeypatch.setattr("dpaudit.auditing.probing.PROBE_SHARE", 50)
    own = audit_loader(torch_like(None), records=4, sigma=1.0, claim=ApproximateDP(2.0, 1e-5), runs=2_000)
    assert not own.reproducible  # 40 runs in which the canary is in one of two batches: 2 ** -40 of a chance
    assert own.spec["mechanism"]["name"] == "log likelihood ratio of noisy batches of DataLoader"


def endless(records: int, rng: np.random.Generator) -> Iterator[list[int]]:
    while True:
        yield [0]


WRONG = [
    ({"loader": iter([[0], [1]])}, "function loader"),
    ({"loader": 7}, "function loader"),
    ({"loader": lambda records, rng: [0, 1]}, "lists or arrays of integers"),
    ({"loader": lambda records, rng: [[0], [4]]}, "record 4, and there are records 0 to 3"),
    ({"loader": lambda records, rng: [[1], [2]]}, "record 0 is in no batch"),
    ({"loader": lambda records, rng: [], "batches": 2}, "no batch"),
    ({"loader": endless}, "more than 131,072 batches"),
    ({"canary": 4}, "canary must be one of the records 0 to 3"),
    ({"batches": 0}, "batches"),
    ({"records": 1}, "records"),
    ({"sigma": 0.0}, "sigma"),
    ({"relation": "replace_one"}, "relation must be"),
    ({"loader": torch_like(None), "relation": REMOVED}, "got add_or_remove_one with DataLoader"),
]


@for_each("changed, said", WRONG)
def test_what_cannot_be_used_is_said_in_a_line(changed: dict[str, object], said: str) -> None:
    given = {"loader": ones, "records": 4, "sigma": 1.0, "claim": ApproximateDP(1.0, 1e-5)} | changed
    loader = given.pop("loader")
    with pytest.raises(InvalidSpec, match=said) as raised:
        audit_loader(loader, **given)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
