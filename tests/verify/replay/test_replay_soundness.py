"""What replay must not believe: runs that are no function of data and choices, and laws that have no end."""

from __future__ import annotations

import builtins
import copy
import functools
import gc
import itertools
import os
import pickle
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.verify.deadline import within
from dpaudit.verify.replay import Choices, replay, walk
from dpaudit.verify.replay.canonical import raised
from dpaudit.verify.replay.choices import MOST_DRAWS, Again, PastRun
from tests.cases import for_each

KEPT: list[Any] = []


def bit(rng: Any) -> int:
    return int(rng.integers(2))


def kept(value: Any) -> int:
    """Remembers a value; how many are remembered."""
    KEPT.append(value)
    return len(KEPT)


@pytest.fixture
def watched() -> None:
    """The test is about randomness from elsewhere."""


@pytest.fixture(autouse=True)
def nothing_kept(request: pytest.FixtureRequest) -> None:
    KEPT.clear()
    if "watched" not in request.fixturenames:
        request.getfixturevalue("unwatched")


STATEFUL: dict[str, Callable[[int, Any], Any]] = {
    "counts its runs": lambda data, rng: kept(bit(rng)),
    "draws less later": lambda data, rng: sum(bit(rng) for _ in range(2 if kept(0) < 3 else 1)),
    "draws more later": lambda data, rng: sum(bit(rng) for _ in range(1 if kept(0) < 3 else 2)),
    "draws otherwise later": lambda data, rng: int(rng.integers(2 if kept(0) < 2 else 3)),
    "another chance later": lambda data, rng: bool(rng.random() < (0.5 if kept(0) < 2 else 0.25)),
    "leaks in the very first run": lambda data, rng: kept(bit(rng)) == 1,
    "tells the dataset of the run before": lambda data, rng: (kept(data) and KEPT[-2:][0], bit(rng)),
    "keeps the generator": lambda data, rng: kept(rng) and bit(KEPT[0]),
    "keeps a draw": lambda data, rng: kept(rng.random()) and bool(KEPT[0] < 0.5),
}


@for_each("name", STATEFUL)
def test_state_from_one_run_to_the_next_is_found_out(name: str) -> None:
    KEPT.clear()
    with pytest.raises(UnsoundAudit, match=r"dataset \d of the domain: the mechanism did not do the same on the same"):
        replay(STATEFUL[name], [0, 1, 2], "all")


def test_a_mechanism_without_randomness_has_one_path() -> None:
    found = replay(lambda data: data // 2, [0, 1, 2], [(0, 1)])
    assert (found.paths, found.epsilon.upper) == (3, 0.0)


def spoils_its_data(data: Any, rng: Any) -> int:
    data[0] += 1
    return int(data[0]) + bit(rng)


def spoils_them_deep(data: dict[str, list[int]], rng: Any) -> int:
    data["a"].append(bit(rng))
    return len(data["a"]) + bit(rng)


@for_each(
    ("mechanism", "domain"),
    [
        *((spoils_its_data, domain) for domain in ([[0], [1]], [np.array([0]), np.array([1])], [{0: 0}, {0: 1}])),
        (spoils_them_deep, [{"a": []}, {"a": [1]}]),
    ],
)
def test_a_run_that_spoils_its_data_spoils_no_other(mechanism: Any, domain: list[Any]) -> None:
    before = repr(domain)
    found = replay(mechanism, domain, "all")
    assert [dict(law) for law in found.laws] == [dict.fromkeys(both, Fraction(1, 2)) for both in ((1, 2), (2, 3))]
    assert repr(domain) == before


def test_what_only_a_stand_in_does_in_a_rare_run_is_seen() -> None:
    def told(step: Callable[[Any], Any]) -> Any:
        def mechanism(data: int, rng: Any) -> int:
            if sum(bit(rng) << place for place in range(13)) == 4321:
                return data if step(rng) else 0
            return 0

        return mechanism

    def fails(rng: Any) -> bool:
        try:
            return bool(float.is_integer(rng.random()))
        except TypeError:
            return True

    rare = told(lambda rng: rng.integers(2) is rng.integers(2))  # numpy makes each anew
    assert replay(rare, [0, 1], "all").epsilon.upper == 0.0
    for step in (fails, lambda rng: rng.random(1).dtype == object):
        with pytest.raises(UnsoundAudit, match="did not do the same"):
            replay(told(step), [0, 1], "all")


def test_a_run_that_never_ends_ends_with_the_time() -> None:
    def ending(after: int) -> Any:
        turns = itertools.count()

        def mechanism(data: int, rng: Any) -> int:
            count = next(turns)
            while count >= after:
                pass
            return bit(rng)

        return mechanism

    for after in (0, 4, 100):  # the first run, those that are made again, and those with a true generator
        with pytest.raises(OutOfTime), within(1.0):
            replay(ending(after), [0, 1], "all")


def test_a_rare_failure_is_made_again_with_true_numbers() -> None:
    """It lies between the runs that are kept of a long walk."""

    def fails_rarely(data: int, rng: Any) -> int:
        u = rng.random()
        if sum(bit(rng) << place for place in reversed(range(13))) == 4095 and hasattr(u, "low"):
            raise RuntimeError("no float")
        return 0

    with pytest.raises(UnsoundAudit, match="dataset 0 of the domain: the mechanism did not do the same"):
        replay(fails_rarely, [0, 1], "all")


class Unseeded(random.Random):
    """One of a class of its own."""


def drawn_and_seeded() -> float:
    made = random.Random()
    drawn = made.random()
    made.seed(1)
    return drawn


ELSEWHERE: dict[str, Callable[[], float]] = {
    "random.Random": lambda: random.Random().random(),
    "of a class": lambda: Unseeded().random(),
    "seeded again": drawn_and_seeded,
    "a generator of the system's": lambda: random.SystemRandom().random(),
    "random, where it changes nothing": lambda: random.random(),
    "numpy.random": lambda: np.random.random(),
    "default_rng": lambda: np.random.default_rng().random(),
    "os": lambda: 1.0 + len(os.urandom(8)),
}
ELSEWHERE_TOO: dict[str, Callable[[], float]] = {
    "None as the seed": lambda: random.Random(None).random(),
    "seeded twice by nobody": lambda: [made := random.Random(), made.random(), made.seed()][1],
    "the bits for numpy": lambda: np.random.default_rng(random.Random().getrandbits(64)).random(),
    "a hidden one": lambda: secrets.SystemRandom().random(),
    "a seed": lambda: random.seed(0) or 1.0,
    "secrets": lambda: secrets.randbits(64),
}


@pytest.mark.usefixtures("watched")
@for_each("draw", ELSEWHERE.values(), [*ELSEWHERE, *ELSEWHERE_TOO], nightly=ELSEWHERE_TOO.values())
def test_other_randomness_is_found_out_though_it_is_gone_or_changes_nothing(draw: Callable[[], float]) -> None:
    own = os.urandom
    with pytest.raises(UnsoundAudit, match="drew randomness from elsewhere than rng"):
        replay(lambda data, rng: ("x", data) if draw() < 1e-9 else bit(rng), [0, 1], "all")
    assert os.urandom is own


@pytest.mark.usefixtures("watched")
def test_generators_with_a_seed_are_part_of_the_code() -> None:
    def seeded(data: int, rng: Any) -> Any:
        made = random.Random(3).random(), Unseeded(5).random(), np.random.default_rng(2).random()
        return data + float(np.random.default_rng(int(rng.integers(3))).laplace()), made

    found = replay(seeded, [0, 1], "all")
    assert (found.infinite, found.paths) == (True, 6)
    assert not hasattr(random.Random.seed, "__wrapped__")


# --- what a replay leaves behind, and what lives beside it ------------------------------------------------------------


class OfTheSystem(random.SystemRandom):
    """It has no state at all."""


class WithoutState(random.Random):
    def getstate(self) -> Any:
        raise NotImplementedError


class StrangeState(random.Random):
    def getstate(self) -> Any:
        return (lambda: 1,)


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("kind", [OfTheSystem, WithoutState, StrangeState])
def test_a_living_generator_without_a_state_costs_nothing_and_is_looked_at_where_it_has_one(kind: Any) -> None:
    own = kind(1)
    assert replay(lambda data, rng: bit(rng), [0, 1], "all").epsilon.upper == 0.0
    with pytest.raises(UnsoundAudit, match="drew randomness from elsewhere than rng"):
        replay(lambda data, rng: (own.random() < 2, bit(rng)), [0, 1], "all")


@pytest.mark.usefixtures("watched")
def test_two_threads_replay_one_after_the_other_and_leave_nothing_behind() -> None:
    before = os.urandom, random.Random.seed
    losses: list[float] = []

    def slow(data: int, rng: Any) -> int:
        time.sleep(0.0005)
        return int(rng.integers(4))

    def once() -> None:
        losses.append(replay(slow, [0, 1], "all").epsilon.upper)

    threads = [threading.Thread(target=once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert losses == [0.0] * 3
    assert (os.urandom, random.Random.seed) == before


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("users", [False, True])
def test_a_replay_that_fails_leaves_what_is_frozen_as_it_was(users: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> Any:
        raise KeyboardInterrupt

    frozen = gc.get_freeze_count()
    gc.unfreeze()
    if users:
        gc.freeze()
    try:
        with monkeypatch.context() as broken:
            broken.setattr("dpaudit.verify.replay._state", breaks)
            with pytest.raises(KeyboardInterrupt):
                replay(lambda data, rng: bit(rng), [0, 1], "all")
        assert bool(gc.get_freeze_count()) is users
        assert replay(lambda data, rng: bit(rng), [0, 1], "all").epsilon.upper == 0.0
        kept = gc.get_freeze_count()
        assert bool(kept) is users
        replay(lambda data, rng: bit(rng), [0, 1], "all")
        assert gc.get_freeze_count() - kept < 10_000
    finally:
        gc.unfreeze()
        if frozen:  # by the suite, whose other tests would walk it all
            gc.freeze()


@pytest.mark.usefixtures("watched")
def test_a_generator_that_a_cache_keeps_is_named() -> None:
    @functools.lru_cache
    def cached(seed: int) -> Any:
        return random.Random(seed)

    with pytest.raises(UnsoundAudit, match="Random was made in a run and is kept, maybe by a cache or a first import"):
        replay(lambda data, rng: (cached(3) is None, bit(rng)), [0, 1], "all")


# --- the stand-ins themselves ----------------------------------------------------------------------------------------


def test_another_draw_at_a_place_that_was_drawn_at_is_an_error_and_a_closed_generator_draws_no_more() -> None:
    choices = Choices(most_outcomes=10)
    choices.begin()
    choices.place(2)
    choices.end()
    choices.begin()
    with pytest.raises(UnsoundAudit, match="did not do the same"):
        choices.place(3)
    choices.close()
    with pytest.raises(UnsoundAudit, match="did not do the same"):
        choices.place(2)


@for_each("picked", [((2, 1), (3, 2)), ((2, 1),), ((3, 2), (2, 1))])
def test_a_run_made_again_draws_all_it_drew_and_nothing_else(picked: tuple[tuple[int, int], ...]) -> None:
    again = Again(PastRun(picked, (), 0), last=False)

    def run() -> None:
        again.place(2)
        again.random()

    with pytest.raises(UnsoundAudit, match="did not do the same"):
        run()
    left = Again(PastRun(((2, 1), (3, 2)), ((0, 5),), 0), last=True)
    assert (left.place(2), left.random()) == (1, 4 * 2.0**-53)
    with pytest.raises(UnsoundAudit, match="did not do the same"):
        left.end()


# --- caps -----------------------------------------------------------------------------------------------------------


def test_too_many_paths_are_told_with_how_far_they_reach() -> None:
    with pytest.raises(InvalidSpec, match=r"dataset 0 .*100 of them cover 0\.098 of one dataset's.*raise most_paths"):
        replay(lambda data, rng: sum(bit(rng) for _ in range(10)), [0, 1], "all", most_paths=100)
    assert replay(same, [0, 1], "all", most_paths=4).paths == 4
    with pytest.raises(InvalidSpec, match="dataset 1 of the domain: more paths than most_paths allows"):
        replay(same, [0, 1], "all", most_paths=3)


def test_a_loop_without_end_is_told() -> None:
    with pytest.raises(InvalidSpec, match="draws more than 2,000 times: a loop that can go on for ever"):
        replay(lambda data, rng: sum(1 for _ in iter(lambda: bit(rng), 1)), [0, 1], "all")


def test_a_loop_that_ends_first_and_then_ever_later_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path for every number of rounds: the time grows with the square of the draws that are allowed."""
    assert MOST_DRAWS <= 2_000
    monkeypatch.setattr("dpaudit.verify.replay.choices.MOST_DRAWS", 100)

    def until_zero(data: int, rng: Any) -> int:
        rounds = 0
        while rounds < KEPT[0] and rng.random() >= 0.5:
            rounds += 1
        return rounds

    KEPT.append(100)
    assert replay(until_zero, [0, 1], "all").laws[0][100] == Fraction(1, 2**100)
    KEPT[0] = 101
    with pytest.raises(InvalidSpec, match="draws more than 100 times"):
        replay(until_zero, [0, 1], "all")


def test_the_runs_that_are_kept_take_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they are: a run is kept with every draw that it made."""
    monkeypatch.setattr(walk, "KEPT_DRAWS", 50)
    choices = Choices(most_outcomes=10)
    walked = walk.walk_paths(lambda data, rng: sum(bit(rng) for _ in range(9)), 0, choices, 1000)
    assert walked.paths == 512
    assert 1 <= len(walked.records) <= 50


def test_paths_of_probability_zero_are_not_run() -> None:
    def careful(data: int, rng: Any) -> int:
        drawn = rng.choice(4, p=[0.0, 0.5, 0.0, 0.5])
        assert drawn in (1, 3)
        return int(drawn)

    assert replay(careful, [0, 1], "all").paths == 4


# --- exceptions ------------------------------------------------------------------------------------------------------


def test_exceptions_are_outputs() -> None:
    def fails(data: int, rng: Any) -> int:
        if rng.random() < 0.25 * (1 + data):
            raise ValueError("too low")
        return 0

    found = replay(fails, [0, 1], "all")
    assert found.laws[0] == {raised(ValueError("too low")): Fraction(1, 4), 0: Fraction(3, 4)}
    assert found.worst.p / found.worst.q == 2
    assert found.scope.endswith("exceptions told apart by type, message and cause")


def raising(error: BaseException) -> Any:
    raise error


def test_leaving_the_interpreter_is_an_output_too_and_an_interrupt_is_none() -> None:
    left = replay(lambda data, rng: raising(SystemExit()) if bit(rng) else data, [0, 1], "all")
    assert raised(SystemExit()) in left.laws[0]
    with pytest.raises(KeyboardInterrupt):
        replay(lambda data, rng: raising(KeyboardInterrupt()), [0, 1], "all")
    with pytest.raises(UnsoundAudit, match="raised RuntimeError in every run, so it has no answer"):
        replay(lambda data, rng: raising(RuntimeError(f"no answer to {data}")), [0, 1], "all")


SEEDED: dict[str, Callable[[Any], Any]] = {
    "a generator made of it": np.random.default_rng,
    "a state made of it": lambda rng: np.random.RandomState(rng),
    "a method it lacks": lambda rng: rng.__matmul__(1),
    "an argument too many": lambda rng: rng.integers(2, 3, None, int, False, 1),
    "the stand-in named": lambda rng: (_ for _ in ()).throw(ValueError(f"{rng!r} cannot be used as a generator")),
}


@for_each("name", SEEDED)
def test_an_error_that_the_stand_in_made_is_no_output(name: str) -> None:
    def mechanism(data: int, rng: Any) -> Any:
        return 0 if bit(rng) else next(SEEDED[name](rng))

    refusals = "the stand-in for rng cannot do what the mechanism asks|is no draw that replay knows|did not do the same"
    with pytest.raises((InvalidSpec, UnsoundAudit), match=refusals):
        replay(mechanism, [0, 1], "all")


# --- questions ------------------------------------------------------------------------------------------------------


def same(data: Any, rng: Any) -> int:
    return int(bit(rng))


def test_neighbours_are_a_function_a_list_or_all() -> None:
    assert replay(same, [0, 1, 2], "all").pairs == ((0, 1), (0, 2), (1, 2))
    assert replay(same, [0, 1, 2], lambda a, b: b == a - 1).pairs == ((0, 1), (1, 2))
    assert replay(same, [[0], [1, 2], [1]], [([1], [0]), ([0], [1])]).pairs == ((0, 2),)


@for_each(
    ("domain", "neighbours", "message"),
    [
        ([0, 1], [], "no two of the 2 datasets are neighbours"),
        ([], "all", "the domain must hold two datasets at least, got 0"),
        ([0], "all", "the domain must hold two datasets at least, got 1"),
        (7, "all", "domain must be a list of datasets, got 7"),
        ([0, 1], lambda a, b: False, "no two of the 2 datasets are neighbours"),
        ([0, 1], 7, 'neighbours must be a function, a list of pairs or "all", got 7'),
        ([0, 1], lambda a, b: 1 / 0, "failed on datasets 0 and 1: ZeroDivisionError: division by zero"),
        ([0, 1], lambda a, b: np.ones(2), "failed on datasets 0 and 1: ValueError: The truth value of an array"),
        ([0, 1], "some", "a function, a list of pairs or \"all\", got 'some'"),
        ([0, 1], [(0, 2)], "name a dataset that the domain lacks"),
        ([{0: 0, 1: 1}, {1: 1, 0: 0}], [({0: 0, 1: 1}, {1: 1, 0: 0})], "same by content"),
        ([0, 1], [(1, 1)], "two datasets of a pair must differ"),
        ([0, 1], [0, 1], "must be two datasets, got 0"),
    ],
)
def test_a_wrong_question_is_told(domain: Any, neighbours: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        replay(same, domain, neighbours)


def test_the_scope_says_where_a_law_is_taken_as_ideal() -> None:
    """numpy never draws 1 from binomial(1, 1e-17): its own law has an infinite loss where the ideal one has 38.45."""

    def draws(data: int, rng: Any) -> int:
        return int(rng.binomial(1, 1e-17 if data else 0.5))

    assert replay(draws, [0, 1], "all").upper_bound().scope.endswith("rng.binomial taken as the ideal law")
    assert "ideal" not in replay(lambda data, rng: rng.binomial(3, 1) + bit(rng), [0, 1], "all").scope
    assert "ideal" not in replay(lambda data, rng: rng.random() < 0.5, [0, 1], "all").scope


def test_parameters_are_bound_and_checked() -> None:
    def keep(data: int, rng: Any, p: float) -> int:
        return data if rng.random() < p else 1 - data

    assert replay(keep, [0, 1], "all", parameters={"p": 0.75}).worst.p == Fraction(3, 4)
    for wrong, message in (
        (lambda: replay(keep, [0, 1], "all"), "needs a value for 'p'"),
        (lambda: replay(same, [0, 1], "all", most_paths=0), "most_paths must be at least 1"),
        (lambda: replay(7, [0, 1], "all"), "replay takes a function, got int"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidSpec, match=message):
            wrong()


def test_every_vector_of_choices_is_run_once() -> None:
    seen: list[tuple[int, ...]] = []

    def tells(data: int, rng: Any) -> tuple[int, ...]:
        seen.append((data, bit(rng), int(rng.integers(3)), bit(rng)))
        return seen[-1][1:]

    replay(tells, [0, 1], "all")
    assert seen[:24] == list(itertools.product(range(2), range(2), range(3), range(2)))


# --- what a mechanism sees of its generator --------------------------------------------------------------------------


def leaks(data: int, rng: Any) -> int:
    return data


def responds(data: int, rng: Any) -> int:
    return data if rng.random() < 0.75 else 1 - data


class Meta(type):
    """A metaclass made while Python's own `type` is in place."""


SEEN: dict[str, Callable[[Any], Any]] = {  # what a mechanism may ask of numpy's Generator, and act upon
    "isinstance": lambda rng: isinstance(rng, np.random.Generator),
    "of Python": lambda rng: isinstance(rng, random.Random),
    "type": lambda rng: type(rng) is np.random.Generator,
    "type in a table": lambda rng: {np.random.Generator: 1}.get(type(rng)),
    "name": lambda rng: (type(rng).__name__, rng.__class__.__qualname__, type(rng).__module__),
    "module": lambda rng: hasattr(rng, "__module__"),
    "class": lambda rng: rng.__class__ is np.random.Generator,
    "bases": lambda rng: [each.__name__ for each in type(rng).__mro__],
    "hasattr": lambda rng: [hasattr(rng, name) for name in ("randrange", "bit", "pick", "error", "kind", "face")],
    "all names": lambda rng: (
        dir(rng) == dir(np.random.Generator)
        and all(hasattr(rng, name) for name in dir(rng) if name[0] != "_" and name != "bit_generator")
    ),
    "getattr": lambda rng: getattr(rng, "randrange", None) is None,
    "vars": lambda rng: hasattr(rng, "__dict__") or hasattr(rng, "__slots__"),
    "doc": lambda rng: rng.__doc__ == np.random.Generator.__doc__,
    "a method": lambda rng: (rng.integers.__name__, rng.integers.__qualname__, rng.integers.__doc__),
    "default_rng": lambda rng: np.random.default_rng(rng) is rng,
    "types of types": lambda rng: (type(bool) is type, isinstance(int, type), type("A", (), {}).__name__),
    "metaclasses": lambda rng: (type(Meta("B", (), {})) is Meta, issubclass(Meta, type), {type: 1}[type]),
    "generic": lambda rng: (repr(type[int]).replace("builtins.", ""), type.__name__),
    "type within": lambda rng: (replay(leaks, [0, 1], "all").paths, type(rng) is np.random.Generator),
    "a draw": lambda rng: (type(rng.integers(2)).__name__, type(rng.random()), isinstance(rng.random(), float)),
}
TOLD_APART: dict[str, Callable[[Any], Any]] = {  # refused, for an answer would not be the generator's own
    "repr": repr,
    "str": str,
    "format": lambda rng: f"{rng}",
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "state": lambda rng: rng.__getstate__(),
    "bits": lambda rng: rng.bit_generator,
    "private bits": lambda rng: rng._bit_generator,
    "spawn": lambda rng: rng.spawn(1),
    "size": sys.getsizeof,
}
PAST_IT: dict[str, Callable[[Any], Any]] = {
    "past the stand-in": lambda rng: np.random.Generator.random(rng) < 2.0,
    "bits past the stand-in": lambda rng: np.random.Generator.bit_generator.__get__(rng).random_raw() < 2**64,
}


def refused(ask: Callable[[Any], Any]) -> None:
    def mechanism(data: int, rng: Any) -> int:
        try:
            told = ask(rng)
        except Exception:
            told = None
        return responds(data, rng) + (told is ...)

    with pytest.raises((InvalidSpec, UnsoundAudit)):
        replay(mechanism, [0, 1], "all")


@for_each("name", SEEN)
def test_a_stand_in_is_seen_as_numpy_s_generator(name: str) -> None:
    """A mechanism that behaves with what it is given is replayed as that: with anything else it would leak."""
    true, ask = SEEN[name](np.random.default_rng(0)), SEEN[name]
    found = replay(lambda data, rng: (responds if ask(rng) == true else leaks)(data, rng), [0, 1], "all")
    assert found.worst.p / found.worst.q == 3
    assert type is builtins.type is type(type)


@for_each(("in_replay", "in_truth"), [(responds, leaks), (responds, lambda data, rng: 2 + data), (leaks, responds)])
def test_what_sees_a_stand_in_all_the_same_does_otherwise_with_a_true_generator(
    in_replay: Callable[[int, Any], Any], in_truth: Callable[[int, Any], Any]
) -> None:
    """No class can be `type` and say that of its own class."""
    with pytest.raises(UnsoundAudit, match="did not do the same"):
        replay(lambda data, rng: (in_truth if int.__class__ is type else in_replay)(data, rng), [0, 1], "all")


@for_each("name", TOLD_APART)
def test_what_would_tell_a_stand_in_apart_is_refused(name: str) -> None:
    refused(TOLD_APART[name])


@pytest.mark.usefixtures("watched")
@for_each("name", PAST_IT)
def test_what_goes_past_a_stand_in_is_refused(name: str) -> None:
    refused(PAST_IT[name])


def test_a_mechanism_that_never_ends_is_ended_with_the_time() -> None:
    def stuck(count: int, rng: Any) -> Any:
        while count > 0:
            pass
        return rng.integers(2)

    with pytest.raises(OutOfTime, match="max_time_s"), within(0.5):
        replay(stuck, (0, 1), [(0, 1)])
