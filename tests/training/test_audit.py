"""`audit_training`: from one training to many, and every input that deserves no verdict."""

from __future__ import annotations

import difflib
import json
import random
import re
import sys
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

import dpaudit
from dpaudit import ApproximateDP, GaussianDP, InvalidSpec, UnsoundAudit, Verdict, audit_training
from dpaudit.scores.result import LINES
from dpaudit.training import TrainingInterrupted, TrainingProgress, TrainingResult, load
from tests.cases import for_each

PLAIN = Path(__file__).resolve().parents[2] / "audits" / "training" / "plain"
CANARIES = 200
ONE: dict[str, Any] = {"canaries": CANARIES, "claim": GaussianDP(0.5)}
MANY: dict[str, Any] = {"canaries": 1, "trainings": 2_500, "claim": GaussianDP(0.5)}
FEW: dict[str, Any] = {"canaries": 300, "trainings": 4, "claim": GaussianDP(1.0)}
TWO: dict[str, Any] = FEW | {"trainings": 2}
STEPPED: dict[str, Any] = {"canaries": 200, "steps": 8, "trainings": 3, "claim": GaussianDP(0.2)}


def gaussian(mu: float) -> Any:
    """A training that releases every canary along a direction of its own, with noise of standard deviation 1."""

    def train(included: Any, rng: Any) -> Any:
        return mu * included + rng.normal(size=included.shape)

    return train


@cache
def clear() -> TrainingResult:
    """An audit that refutes."""
    words: dict[str, Any] = {"inserted": "rows", "not_tested": ("the loader",)}
    return audit_training(gaussian(4.0), canaries=CANARIES, claim=GaussianDP(0.5), **words)


@for_each("asked", [ONE, MANY, FEW, STEPPED])
def test_a_larger_loss_is_refuted_and_equal_sides_and_their_mirror_are_not(asked: dict[str, Any]) -> None:
    """Null: false at most once in a million seeds by its level. Several trainings stop when they refute."""
    found = audit_training(gaussian(3.0), **asked)
    assert found.verdict is Verdict.REFUTED
    assert 0.5 * asked["claim"].mu < found.lines[0].detail["mu_lower"] <= 3.0
    if found.e_values:
        assert found.trainings_used < found.trainings
        assert found.e_values[-1] >= 20.0 > max(found.e_values[:-1], default=1.0)
    for mu in (0.0, -3.0):
        found = audit_training(gaussian(mu), confidence=1.0 - 1e-6, underpowered=True, **asked)
        assert (found.refuted, found.trainings_used) == (asked is MANY and mu < 0.0, found.trainings)
        assert found.epsilon_lower == 0.0 or asked is MANY


def test_another_version_of_a_training_gets_other_coins_and_other_noise() -> None:
    """An attack that adds what an earlier version released learns nothing by it; the same script repeats itself."""
    seen: list[tuple[bytes, float]] = []

    def first(included: Any, rng: Any) -> Any:
        seen.append((included.tobytes(), rng.normal()))
        return included + rng.normal(size=included.size)

    def second(included: Any, rng: Any) -> Any:
        seen.append((included.tobytes(), rng.normal()))
        return 1.0 * included + rng.normal(size=included.size)

    for train in (first, second, first):
        audit_training(train, canaries=CANARIES, claim=GaussianDP(1.0))
    assert seen[0] == seen[2]
    assert all(mine != other for mine, other in zip(seen[0], seen[1], strict=True))


def test_trainings_of_one_canary_that_follow_their_own_earlier_scores_are_seen() -> None:
    """And those that do not are not, at one of three seeds: each is by a p-value of 0.01 or less once in 100."""
    place = [0.0]

    def walks(included: Any, rng: Any) -> Any:
        place[0] += 0.3 if included[0] else -0.3
        return included + rng.normal() + place[0]

    def seen(train: Any, seed: int) -> bool:
        found = audit_training(train, canaries=1, trainings=400, claim=GaussianDP(1.0), seed=seed)
        assert found.dependence is not None
        assert "in the order of the trainings" in str(found).replace("\n" + 30 * " ", " ")
        return found.dependence.words.startswith("dependence seen between")

    assert seen(walks, 0)
    assert not all(seen(gaussian(1.0), seed) for seed in range(3))


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    found = clear()
    assert load(found.save(tmp_path / "training.json")) == found
    assert [line for line in LINES if found.on_line(line)] == list(LINES)
    assert found.dependence is not None
    assert (found.dependence.p_value > 1e-6, "cannot see" in found.dependence.words) == (True, True)
    with pytest.raises(dpaudit.ClaimRefuted, match="REFUTED"):
        found.raise_if_refuted()


@for_each("key, value", [("claim", None), ("verdict", "NOT_REFUTED"), ("schema", "dpaudit.result/1"), ("lines", [{}])])
def test_a_spoilt_file_is_no_result(key: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "spoilt.json").write_text(json.dumps(clear().to_dict() | {key: value}))
    with pytest.raises(InvalidSpec, match="restore the file"):
        load(tmp_path / "spoilt.json")


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "another name": (lambda included, random: included, InvalidSpec, "needs a value for 'random'; .* or generator"),
    "all equal": (lambda included, rng: np.ones(len(included)), UnsoundAudit, "all 200 scores are 1.*hook"),
    "the coins": (lambda included, rng: included, UnsoundAudit, "the scores are the coins.*exact=True"),
    "the coins in other words": (lambda included, rng: 3.0 - 2.0 * included, UnsoundAudit, "the scores are the coins"),
    "NaN": (
        lambda included, rng: np.where(np.arange(200) == 17, np.nan, rng.normal(size=200)),
        UnsoundAudit,
        "training 1: the score of canary 18 is nan",
    ),
    "fewer": (lambda included, rng: rng.normal(size=199), InvalidSpec, r"shape \(200,\).*got shape \(199,\).*fewer"),
    "steps of other canaries": (lambda included, rng: rng.normal(size=(200, 7)), InvalidSpec, r"got shape \(200, 7\)"),
    "words": (lambda included, rng: ["a"] * 200, InvalidSpec, "must return numbers"),
    "exits": (lambda included, rng: sys.exit(0), UnsoundAudit, "training 1 failed with SystemExit"),
    "raises": (lambda included, rng: 1 / 0, UnsoundAudit, r"ZeroDivisionError: .*, at .*test_audit.py:[0-9]+; no"),
    "changes the coins": (
        lambda included, rng: [included.fill(False), rng.normal(size=200)][1],
        UnsoundAudit,
        "changed `included`",
    ),
}


@for_each("name", list(WRONG))
def test_what_deserves_no_verdict_gets_one_line(name: str) -> None:
    train, error, words = WRONG[name]
    with pytest.raises(error, match=words) as found:
        audit_training(train, canaries=CANARIES, claim=GaussianDP(1.0))
    assert "\n" not in str(found.value)


def test_what_a_training_may_return_and_take() -> None:
    """The rows of a run are summed; without noise it is judged where that is meant; one call may make many."""

    def rows(included: Any, rng: Any) -> Any:
        return included * 0.5 + rng.normal(size=(16, included.size)) / 4.0

    def several(included: Any, runs: int, rng: Any) -> Any:
        assert included.shape == (runs, 1)
        return 2.0 * included + rng.normal(size=(runs, 1))

    assert audit_training(rows, canaries=CANARIES, epsilon=0.5, delta=1e-5).refuted
    assert audit_training(lambda included, rng: included, canaries=CANARIES, claim=GaussianDP(0.5), exact=True).refuted
    found = audit_training(dpaudit.batched(several), confidence=1.0 - 1e-6, **MANY)
    assert found.refuted
    assert 1.0 < found.lines[0].detail["mu_lower"] <= 2.0  # above the truth once in a million seeds by its level


def test_arguments_of_another_kind_are_refused() -> None:
    for given, words in (({}, "needs a claim"), ({"claim": ApproximateDP(1.0, 1e-5), "delta": 1e-6}, "delta must be")):
        with pytest.raises(InvalidSpec, match=words):
            audit_training(gaussian(1.0), canaries=10, **given)
    for name in ("canaries", "trainings", "seed"):
        with pytest.raises(InvalidSpec, match=f"{name} must be a whole number, got None"):
            audit_training(gaussian(1.0), **{"canaries": 10, "epsilon": 1.0} | {name: None})
    with pytest.raises(InvalidSpec, match="trainings of one canary each must be at least 50, got 2"):
        audit_training(gaussian(1.0), canaries=1, trainings=2, epsilon=1.0)
    for name, value in (("not_tested", 3), ("not_tested", [3]), ("inserted", 3), ("folder", 3)):
        with pytest.raises(InvalidSpec, match=f"{name} must be .*, got .*3"):
            audit_training(gaussian(1.0), canaries=10, epsilon=1.0, **{name: value})


def test_an_interrupted_audit_goes_on_bit_for_bit_and_another_question_does_not_mix_in(tmp_path: Path) -> None:
    def stop(progress: TrainingProgress) -> None:
        if progress.done == 2_000:
            raise KeyboardInterrupt

    whole = audit_training(gaussian(2.0), **MANY)
    with pytest.raises(TrainingInterrupted, match=r"2,000 of 2,500 trainings done, kept in .*resume"):
        audit_training(gaussian(2.0), folder=tmp_path, progress=stop, **MANY)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(InvalidSpec, match="holds trainings already"):
        audit_training(gaussian(2.0), folder=tmp_path, **MANY)
    with pytest.raises(InvalidSpec, match="of another question"):
        audit_training(gaussian(2.0), folder=tmp_path, resume=True, **MANY | {"claim": GaussianDP(0.6)})
    with parallel_config(backend="threading"):  # several at a time give what they give one by one
        again = audit_training(gaussian(2.0), folder=tmp_path, resume=True, n_jobs=2, **MANY)
    assert again == whole
    assert again.to_dict() | {"provenance": None} == whole.to_dict() | {"provenance": None}


def test_trainings_of_another_program_do_not_mix_in(tmp_path: Path) -> None:
    """What is another is named; a generator of its own cannot be shown to be where it was."""
    model = {"noise": 1.0}

    def train(included: Any, rng: Any) -> Any:
        return included * 2.0 + model["noise"] * rng.normal(size=included.shape)

    audit_training(train, folder=tmp_path, **TWO)
    assert audit_training(train, folder=tmp_path, resume=True, **TWO) == audit_training(train, **TWO)
    model["noise"] = 0.5
    place = r"training-000001.npz: values of .*<locals>\.train"
    with pytest.raises(InvalidSpec, match=f"{place} is not what it was; to train anew, give another folder"):
        audit_training(train, folder=tmp_path, resume=True, **TWO)
    model["own"] = np.random.default_rng(1)  # type: ignore[assignment]
    audit_training(train, folder=tmp_path / "other", **TWO)
    with pytest.raises(InvalidSpec, match=r"train cannot be shown to be what it was \(a random generator with a state"):
        audit_training(train, folder=tmp_path / "other", resume=True, **TWO)


def test_a_damaged_training_is_named(tmp_path: Path) -> None:
    audit_training(gaussian(2.0), folder=tmp_path, **TWO)
    first = tmp_path / "training-000001.npz"
    for spoilt in (b"", first.read_bytes()[:-40], b"PK" + b"\0" * 40):
        first.write_bytes(spoilt)
        with pytest.raises(InvalidSpec, match=r"training-000001.npz: damaged"):
            audit_training(gaussian(2.0), folder=tmp_path, resume=True, **TWO)
    np.savez_compressed(first, scores=np.zeros(2**20), included=True, question=np.array("?"))  # 8 MB, from 9 kB
    with pytest.raises(InvalidSpec, match=r"training-000001.npz: packed, as no training is kept; delete that file"):
        audit_training(gaussian(2.0), folder=tmp_path, resume=True, **TWO)


def test_a_step_is_certified_before_it_is_sampled_and_composed_to_the_run() -> None:
    def train(included: Any, rng: Any) -> Any:
        return included * (rng.random(included.shape) < 0.5) * 4.0 + rng.normal(size=included.shape)

    found = audit_training(gaussian(0.5), compose=100, **STEPPED)
    step, run = found.on_line("certified")
    assert found.deciding is step
    assert (found.steps, found.compose) == (8, 100)
    assert 0.0 < (step.epsilon_lower or 0.0) < (run.epsilon_lower or 0.0)
    asked = STEPPED | {"trainings": 1, "steps": 4, "claim": GaussianDP(1.0)}
    whole, sampled = audit_training(train, **asked), audit_training(train, sample_rate=0.5, **asked)
    bounds = [each.on_line("certified")[0].detail["mu_lower"] for each in (whole, sampled)]
    assert bounds[0] < bounds[1] <= 4.0
    assert "before it is sampled at rate 0.5" in str(sampled)
    with pytest.raises(InvalidSpec, match="give steps"):
        audit_training(train, canaries=CANARIES, epsilon=1.0, sample_rate=0.5)


def test_coins_are_ours_and_new_for_every_training_and_step() -> None:
    seen: list[Any] = []

    def train(included: Any, rng: Any) -> Any:
        seen.append(included.copy())
        return rng.normal(size=included.shape)

    for seed in (0, 1):
        audit_training(train, seed=seed, **STEPPED)
    rows = np.concatenate(seen)
    assert rows.shape == (2 * 3 * 8, 200)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert abs(rows.mean() - 0.5) < 5.0 * 0.5 / np.sqrt(rows.size)  # by chance once in 1.7 million; the seeds are fixed


def test_a_few_trainings_go_on_bit_for_bit_one_by_one_or_side_by_side(tmp_path: Path) -> None:
    asked = FEW | {"claim": GaussianDP(1.2)}

    def stop(progress: TrainingProgress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    whole = audit_training(gaussian(1.0), **asked)
    with pytest.raises(TrainingInterrupted, match="2 of 4 trainings done"):
        audit_training(gaussian(1.0), folder=tmp_path, progress=stop, **asked)
    with parallel_config(backend="threading"):
        assert audit_training(gaussian(1.0), folder=tmp_path, resume=True, n_jobs=2, **asked) == whole
    more = asked | {"trainings": 6}  # asked for after a look: the evidence holds at any time
    assert audit_training(gaussian(1.0), folder=tmp_path, resume=True, **more) == audit_training(gaussian(1.0), **more)


@for_each(
    "asked, cure",
    [
        ({"canaries": 1, "steps": 25, "trainings": 100, "claim": GaussianDP(0.4)}, "2 canaries could"),
        ({"canaries": 20, "trainings": 2, "epsilon": 4.0}, "180 canaries or 32 trainings could"),
        ({"canaries": 100, "claim": GaussianDP(2.0)}, "[0-9]+ canaries could; say"),
        ({"canaries": 1_000, "trainings": 3, "epsilon": 10.0, "delta": 1e-5}, "one step with steps"),
        ({"canaries": 1, "trainings": 20_000, "epsilon": 10.0, "delta": 1e-5}, "320,000 trainings could"),
    ],
)
def test_what_nobody_could_refute_is_said_before_it_is_trained(asked: dict[str, Any], cure: str) -> None:
    def train(included: Any, rng: Any) -> Any:
        raise AssertionError("trained")

    with pytest.raises(InvalidSpec, match=rf"can never refute.*{cure}.*underpowered=True") as found:
        audit_training(train, **asked)
    if more := re.search(r"([0-9,]+) canaries could", str(found.value)):
        with pytest.raises(UnsoundAudit, match="AssertionError: trained"):
            audit_training(train, **asked | {"canaries": int(more[1].replace(",", ""))})


def test_noise_from_the_generators_of_the_process_is_new_in_each_training_and_the_same_again() -> None:
    def train(included: Any, rng: Any) -> Any:
        return included + np.random.normal(size=included.shape) + random.random()

    before = random.getstate(), np.random.get_state()[1].tolist()
    first, second = audit_training(train, **TWO), audit_training(train, **TWO)
    assert first == second
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_torch_that_train_loads_unseeded_makes_no_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = [67280421310721]
    torch = SimpleNamespace(initial_seed=lambda: seed[0], manual_seed=lambda word: seed.__setitem__(0, word))

    def train(included: Any, rng: Any, seeded: bool) -> Any:
        monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
        if seeded:
            torch.manual_seed(int(rng.integers(2**63)))
        return rng.normal(size=included.shape)

    for seeded in (True, False):
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        seed[0] = 67280421310721
        asked = partial(audit_training, partial(train, seeded=seeded), canaries=50, epsilon=0.1)
        if seeded:
            asked()
        else:
            with pytest.raises(UnsoundAudit, match="import it where the module begins"):
                asked()


@for_each("name", [path.stem for path in PLAIN.glob("*_loop.py")])
def test_a_loop_of_ones_own_is_audited_with_at_most_ten_added_lines(name: str) -> None:
    plain, audited = (
        [line for line in (PLAIN / f"{each}.py").read_text(encoding="utf-8").splitlines() if line.strip()]
        for each in (name, f"{name}_audited")
    )
    changes = list(difflib.ndiff(plain, audited))
    assert 0 < sum(line.startswith("+ ") for line in changes) <= 10, "\n".join(changes)
    assert sum(line.startswith("- ") for line in changes) <= 3  # the head, what it returns, and the call
