"""Calls of `train`: whose coins they are (ours, drawn for every training by a seed of its own), and what it gives back.

Calls run here, on joblib's workers, or each in a process of ours; all give the same scores.
"""

import math
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bools, Reals
from dpaudit.base.quoting import clean
from dpaudit.base.strict import by_fields, content_digest
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim
from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.mechanisms import Description, Mechanism, Opened
from dpaudit.mechanisms.importing import in_a_line
from dpaudit.outputs.canonical import Column, Outputs
from dpaudit.processes.pools import LostWorker, Processes
from dpaudit.processes.tasks import check_code, parts_of
from dpaudit.running import alike
from dpaudit.running.program import made_with
from dpaudit.scores.audit import stated_claim
from dpaudit.scores.designs import Design, FewRuns, ManyRun, OneRun, Steps
from dpaudit.scores.question import curved
from dpaudit.training.canaries import RATE

LEAST_MANY = 50  # trainings of one canary: with fewer, one side may have none to compare
CALL = 1_000  # trainings of one canary that one call makes, and one file keeps
USUAL_DELTA = 1e-5  # at which the epsilon of a claim without a delta of its own is told


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What is asked: `claim` of the run, or of one of `steps` steps; `delta` is where epsilon is told.

    A call is one training, or up to `CALL` of them where each has one canary alone. `tossed` is the digest of the
    training for which the seed tosses coins: another version of it gets others (`of`).
    """

    claim: Claim
    delta: float
    canaries: int
    trainings: int
    steps: int | None
    compose: int | None
    confidence: float
    seed: int
    sample_rate: float = 1.0
    exact: bool = False
    underpowered: bool = False
    tossed: str = ""

    def __post_init__(self) -> None:
        if self.steps is None and (self.compose is not None or self.sample_rate != 1.0):
            raise InvalidSpec("compose and sample_rate are for an audit of one step: give steps=..., or leave them out")
        for name, least in (("canaries", 1), ("trainings", 1), ("seed", 0)):
            object.__setattr__(self, name, validate.whole(name, getattr(self, name), least=least))
        if isinstance(design := self.design, Steps):
            object.__setattr__(self, "steps", design.steps)
            object.__setattr__(self, "compose", design.compose or design.steps)
        if self.apart:
            validate.whole("trainings of one canary each", self.trainings, least=LEAST_MANY)
        validate.open_probability("confidence", self.confidence)
        validate.probability("delta", self.delta)

    def of(self, train: Description) -> Self:
        """The same about this training, whose source and parameters go into the seed of its coins and its noise."""
        return replace(self, tossed=content_digest([train.digest or train.name, train.parameters]))

    @property
    def design(self) -> Design:
        """How trainings become evidence."""
        if self.steps is not None:
            return Steps(steps=self.steps, compose=self.compose, sample_rate=self.sample_rate)
        if self.trainings == 1:
            return OneRun()
        return ManyRun() if self.canaries == 1 else FewRuns()

    @property
    def apart(self) -> bool:
        """Whether each training is one of many that have a canary alone."""
        return isinstance(self.design, ManyRun)

    @property
    def alpha(self) -> float:
        """The error probability of the verdict."""
        return error_probability(self.confidence)

    @property
    def calls(self) -> int:
        """How often `train` is called, if it is not stopped before."""
        return -(-self.trainings // CALL) if self.apart else self.trainings

    def trainings_in(self, call: int) -> int:
        """How many trainings a call makes."""
        return min(CALL, self.trainings - call * CALL) if self.apart else 1

    def shape(self, call: int) -> tuple[int, int]:
        """The shape of a call's coins and scores: steps or trainings, by canaries."""
        return self.steps or self.trainings_in(call), self.canaries

    def digest(self, train: Description) -> str:
        """What two audits share whose trainings may go into one result."""
        asked = by_fields(self) | {"exact": None, "underpowered": None}
        if isinstance(self.design, FewRuns | Steps):  # their evidence may be prolonged at any time
            asked["trainings"] = None
        return content_digest([asked, train.reference, train.digest, train.parameters])


def plan_of(claim: Claim | None, epsilon: float | None, delta: float | None, **asked: Any) -> TrainingPlan:
    """The plan of these words, which are those of `audit_training`. Raises `InvalidSpec` for wrong ones."""
    stated, words = stated_claim(claim, epsilon, delta)
    if stated is None:
        raise InvalidSpec("an audit needs a claim: epsilon=... (--epsilon), or claim=dpaudit.GaussianDP(mu=...) (--mu)")
    return TrainingPlan(claim=stated, delta=USUAL_DELTA if delta is None and curved(stated) else words, **asked)


TORCH_SEED = 67280421310721  # that of a generator of torch that nobody has seeded
OURS = str(Path(__file__).parents[1])  # where a failure of train does not lie
Calls = Callable[[Sequence[int]], Iterator[Reals]]  # the scores of the calls of these numbers, in their order
ENOUGH = 20  # scores that are equal, or equal the coins, by more than luck


@contextmanager
def own_randomness(seed: np.random.SeedSequence) -> Iterator[None]:
    """Seeds the generators of the whole process (of Python, numpy and a loaded torch), and puts them back afterwards.

    What draws from them then repeats itself, and no two trainings get the same noise: torch starts every process with
    one seed. Raises `UnsoundAudit` where that is the seed it was loaded with.
    """
    word, torch = int(seed.generate_state(1)[0]), sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()
    random.seed(word)
    np.random.seed(word)
    if torch is not None:
        torch.manual_seed(word)
    try:
        yield
        late = sys.modules.get("torch")
        if torch is None and late is not None and late.initial_seed() == TORCH_SEED:
            raise UnsoundAudit(
                "train loaded torch, whose noise is the same in every process: import it where the module begins, or "
                "call torch.manual_seed(int(rng.integers(2**63))) in train; no verdict"
            )
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None:
            torch.set_rng_state(before[2])


def drawn(plan: TrainingPlan, call: int) -> tuple[Bools, np.random.Generator]:
    """The coins of a call, in `plan.shape(call)`, and the rng that `train` gets, which knows nothing of them."""
    ours, theirs, _ = _seeds(plan, call)
    coins = np.random.Generator(np.random.SFC64(ours)).integers(0, 2, plan.shape(call), dtype=np.int8) == 1
    return coins, np.random.default_rng(theirs)


def _seeds(plan: TrainingPlan, call: int) -> list[np.random.SeedSequence]:
    """Of a call: for its coins, the rng of `train`, and the generators of the process; other code gets others."""
    return np.random.SeedSequence([plan.seed, *plan.tossed.encode()], spawn_key=(call,)).spawn(3)


def trained(opened: Opened, plan: TrainingPlan, call: int) -> Reals:
    """The scores of a call, in `plan.shape(call)`.

    Raises `UnsoundAudit` where `train` fails or changes its coins, `InvalidSpec` for what is no score for each canary.
    """
    (included, rng), first, steps = drawn(plan, call), call * plan.trainings_in(0) + 1, plan.steps is not None
    if steps and not opened.per_run:
        raise InvalidSpec("an audit of one step trains one run at a time: give train itself, not batched(train)")
    with own_randomness(_seeds(plan, call)[2]):
        if not opened.per_run:
            where = f"trainings {first:,} to {first + len(included) - 1:,}"
            return _asked(opened, plan, included, (len(included), rng), where)
        each = (included,) if steps else included
        rows = (_asked(opened, plan, row, (rng,), f"training {first + k:,}") for k, row in enumerate(each))
        return np.concatenate([*rows])


def _asked(opened: Opened, plan: TrainingPlan, included: Bools, arguments: tuple[Any, ...], where: str) -> Reals:
    given = included.copy()
    token = RATE.set(None if plan.steps is None else plan.sample_rate)
    try:
        raw = opened.call(given, *arguments)
    except (DpAuditError, KeyboardInterrupt):
        raise
    except BaseException as error:  # it may exit, too
        frames = traceback.extract_tb(error.__traceback__)
        own = [each for each in frames if "site-packages" not in each.filename and OURS not in each.filename]
        at = f", at {clean(own[-1].filename, 60)}:{own[-1].lineno}" if own else ""
        raise UnsoundAudit(f"{where} failed with {in_a_line(error)}{at}; no verdict") from error
    finally:
        RATE.reset(token)
    if not np.array_equal(given, included):
        raise UnsoundAudit(f"{where}: train changed `included`, which says who is in; let it work on a copy")
    return _checked(raw, included.shape, where, plan)


def _checked(raw: Any, shape: tuple[int, ...], where: str, plan: TrainingPlan) -> Reals:
    """What `train` returned as finite rows of scores, one a canary; a run's own steps are summed."""
    try:
        values = np.asarray(raw)
        if raw is None or values.dtype.kind in "cSUmM" or np.ma.is_masked(raw):
            raise TypeError
        scores = np.asarray(values, np.float64)
    except Exception:  # tensors and ragged lists have errors of their own
        raise InvalidSpec(f"{where}: train must return numbers, one score a canary, got {type(raw).__name__}") from None
    summed = scores.ndim == 2 and len(shape) == 1
    if scores.shape != shape and not (summed and scores.shape[1:] == shape and len(scores)):
        what = {1: "a score a canary", 2: "a row of scores a training"}[len(shape)]
        what = "row t what step t released" if plan.steps is not None else what
        few = " (fewer scores than canaries)" if scores.ndim == len(shape) and scores.size < np.prod(shape) else ""
        raise InvalidSpec(f"{where}: train must return shape {shape}, {what}, got shape {scores.shape}{few}")
    wrong = np.argwhere(~np.isfinite(scores))
    if len(wrong):
        *row, canary = wrong[0].tolist()
        at = f"step {row[0] + 1:,}, canary {canary + 1:,}" if row and not plan.apart else f"canary {canary + 1:,}"
        value = scores[tuple(wrong[0])]
        raise UnsoundAudit(
            f"{where}: the score of {at} is {value} ({len(wrong):,} such), so there is no verdict; did the model "
            "become NaN? Where the training releases that, return a finite score for it, such as the lowest"
        )
    return np.atleast_2d(scores.sum(axis=0) if summed else scores)


def check_informative(included: Bools, scores: Reals, plan: TrainingPlan, *, over: bool) -> bool:
    """Whether there are enough scores to say that they are neither all equal nor the coins in other words.

    Raises `UnsoundAudit` where they are. Few equal scores may be luck: they count once all is `over`. Two values that
    tell every coin are what a training without noise gives, and what a score does that reads `included` itself.
    """
    enough = scores.size >= ENOUGH
    if not (enough or over):
        return False
    if np.ptp(scores) == 0.0:
        raise UnsoundAudit(
            f"all {scores.size:,} scores are {scores.flat[0]:g}, so there is no verdict: the canaries are not in what "
            "is scored; check that train puts in those that `included` says, and that the hook of the library ran"
        )
    inside, outside = scores[included], scores[~included]
    informative = enough and inside.size > 0 and outside.size > 0
    if informative and not plan.exact and np.ptp(inside) == np.ptp(outside) == 0.0:
        raise UnsoundAudit(
            f"the scores are the coins: {inside[0]:g} for all {inside.size:,} canaries that were in, {outside[0]:g} "
            f"for all {outside.size:,} that were out, so there is no verdict; score what the training released, or say "
            "exact=True where it is meant (a training without noise)"
        )
    return enough


def here(mechanism: Mechanism, plan: TrainingPlan, n_jobs: int = 1) -> Calls:
    """Calls in this process, or on so many of joblib's workers."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InvalidSpec(f"n_jobs must be a whole number other than 0 (-1 for all processors), got {n_jobs!r}")

    def calls(numbers: Sequence[int]) -> Iterator[Reals]:
        if n_jobs == 1 or len(numbers) == 1:
            opened = mechanism.open()
            yield from (trained(opened, plan, number) for number in numbers)
            return
        from joblib import Parallel, delayed

        shown = alike.shown(parts_of(mechanism) | made_with())
        work = (delayed(_elsewhere)(mechanism, plan, number, shown) for number in numbers)
        yield from Parallel(n_jobs, return_as="generator", pre_dispatch="n_jobs", max_nbytes=None)(work)

    return calls


def _elsewhere(mechanism: Mechanism, plan: TrainingPlan, number: int, shown: alike.Shown) -> Reals:
    opened = mechanism.open()
    alike.check(shown, opened=True)
    return trained(opened, plan, number)


def supervised(mechanism: Mechanism, plan: TrainingPlan, n_jobs: int = 1, limit_s: float = math.inf) -> Calls:
    """Calls in processes of ours, one each, at most `limit_s` seconds long; numbers come back, and nothing that runs.

    Raises `UnsoundAudit` where a process ended or hung.
    """

    def calls(numbers: Sequence[int]) -> Iterator[Reals]:
        for start in range(0, len(numbers), n_jobs):
            wave = numbers[start : start + n_jobs]
            pool = Processes(len(wave), anew=True)
            scores: dict[int, Reals] = {}
            try:
                tasks: list[Any] = [(mechanism, plan, number) for number in wave]
                for place, (outputs,) in pool.numbered(_in_a_process, tasks, time.monotonic() + limit_s):
                    scores[wave[place]] = _read(outputs, plan, wave[place])
            except (LostWorker, OutOfTime) as error:
                slow = f"took longer than the {limit_s:g} s it was given"
                what = "ended its process, or ran out of memory" if isinstance(error, LostWorker) else slow
                raise UnsoundAudit(f"training {wave[0] + 1:,} {what}; no verdict") from None
            finally:
                pool.close()
            yield from (scores[number] for number in wave)

    return calls


def _in_a_process(mechanism: Mechanism, plan: TrainingPlan, number: int) -> Outputs:
    """A call in the process it has for itself: its scores as the one column of outputs."""
    scores = trained(mechanism.open(), plan, number).ravel()
    check_code()
    return Outputs(scores.size, {(): Column(scores)})


def _read(outputs: Any, plan: TrainingPlan, number: int) -> Reals:
    """The scores again; a process that was taken over may send anything that is numbers."""
    column = outputs.columns.get(()) if isinstance(outputs, Outputs) else None
    values = None if column is None else np.asarray(column.values, np.float64)
    if values is None or not np.isfinite(values).all() or values.size % plan.canaries:
        raise UnsoundAudit(f"training {number + 1:,} did not send its scores; no verdict")
    return values.reshape(-1, plan.canaries)
