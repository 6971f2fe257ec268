"""`audit_training`: trainings with canaries in them by coins of ours, their scores, and what these certify."""

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing.watching import AuditInterrupted
from dpaudit.base.arrays import Bools, Reals
from dpaudit.base.files import NoSuchFile, read_bytes, write_bytes, writing
from dpaudit.base.numerals import counted
from dpaudit.certify.certifiers import suited
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Description, wrap
from dpaudit.processes.tasks import parts_of
from dpaudit.results.provenance import versions
from dpaudit.running.program import changed, made_with, unknown
from dpaudit.scores import audit_scores, few
from dpaudit.scores.counts import corners, histogram
from dpaudit.scores.dependence import dependence
from dpaudit.scores.designs import FewRuns, ManyRun, OneRun, Steps
from dpaudit.scores.few import MOST_ROWS, Evidence, ceiling
from dpaudit.training.coins import Calls, TrainingPlan, check_informative, drawn, here, plan_of
from dpaudit.training.result import TrainingResult

BY_RUNS = {"methods": ("exact", "clopper-pearson", "gaussian")}  # where each training is one
LARGEST = 2**32  # bytes of a file of a training
CURE = "delete that file to train again, or give another folder"
MOST_SHOWN = 100_000  # scores that the pictures are made of


def check_reach(plan: TrainingPlan) -> None:
    """Raises `InvalidSpec` where not even scores that tell every coin could refute the claim, with how many could."""
    if plan.underpowered or refutable(plan):
        return
    given = plan.canaries, plan.claim, plan.delta, plan.alpha
    least = None if plan.apart else ceiling(*given, trainings=plan.trainings, steps=plan.steps)[1]
    could = [] if least is None else [f"{least:,} canaries"]
    grown = (plan.trainings << k for k in range(1, 1 if isinstance(plan.design, OneRun) else 9))
    fits = (each for each in grown if plan.apart or each * (plan.steps or 1) <= MOST_ROWS)
    enough = next((each for each in fits if refutable(replace(plan, trainings=each))), None)
    could += [] if enough is None else [f"{enough:,} trainings"]
    cures = [f"{' or '.join(could)} could"] if could else []
    if plan.claim.linear and isinstance(plan.design, OneRun | FewRuns):
        cures.append("a GaussianDP(mu), or the claim of one step with steps=..., needs fewer")
    raise InvalidSpec(
        f"{counted(plan.trainings, 'training')} with {counted(plan.canaries, 'canary', 'canaries')} can never refute "
        f"{plan.claim} at confidence {plan.confidence:g}, whatever they show: "
        f"{'; '.join([*cures, 'say underpowered=True for the bound alone'])}"
    )


def refutable(plan: TrainingPlan) -> bool:
    """Whether scores that tell every coin would refute the claim."""
    if isinstance(plan.design, ManyRun):
        judged = int(plan.trainings * (1.0 - plan.design.split)) // 2
        return suited(plan.claim).at(plan.claim).refutable(judged, judged, plan.claim, plan.confidence)
    found = few.refutable(plan.canaries, plan.claim, plan.alpha, trainings=plan.trainings, steps=plan.steps)
    return found is not False


class Gathered:
    """The scores of the calls so far, in their order; `add` raises `UnsoundAudit` where they deserve no verdict."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.done = plan, 0
        self.e_values: tuple[float, ...] = ()
        self._process: Evidence | None = None  # where all scores are looked at together
        if isinstance(plan.design, FewRuns | Steps):
            asked: dict[str, Any] = {"delta": plan.delta, "steps": plan.steps, "rate": plan.sample_rate}
            self._process = few.begin(plan.claim, plan.canaries, plan.alpha, **asked)
        self._included: list[Bools] = []
        self._scores: list[Reals] = []
        self._told = False

    @property
    def refuted(self) -> bool:
        """Whether the evidence of several trainings refutes the claim already."""
        return self._process is not None and self._process.refuted

    def add(self, scores: Reals) -> None:
        """The scores of the next call."""
        call = len(self._scores)
        included = drawn(self.plan, call)[0]
        if self._process is not None:
            self._process = self._process.after(scores, included)
            self.e_values += (self._process.e_value,)
        self._included.append(included)
        self._scores.append(scores)
        self.done += self.plan.trainings_in(call)
        if not self._told:  # what tells something, and not all, does so whatever follows
            self._told = check_informative(*self.all, self.plan, over=call + 1 == self.plan.calls)

    @property
    def all(self) -> tuple[Bools, Reals]:
        """Coins and scores, a row for each training or step."""
        return np.concatenate(self._included), np.concatenate(self._scores)

    def found(self) -> dict[str, Any]:
        """The statements, the one that decides first, the test of dependence, and what pictures are made of."""
        (included, scores), plan = self.all, self.plan
        rows: tuple[Any, ...] = (scores.ravel(), included.ravel(), "trainings") if plan.apart else (scores, included)
        alone = plan.canaries == 1 and not plan.apart
        facts: dict[str, Any] = {"dependence": None if alone else dependence(*rows)}
        if self._process is None:
            asked: dict[str, Any] = {name: getattr(plan, name) for name in ("claim", "delta", "confidence", "seed")}
            own = int(hashlib.sha256(included.tobytes()).hexdigest()[:12], 16)  # where nearly all scores are equal
            asked |= BY_RUNS if plan.apart else {"seed": plan.seed + own}
            scored = audit_scores(scores[included], scores[~included], design=plan.design, **asked)
            pictured = {name: getattr(scored, name) for name in ("histogram", "roc", "band")}
            return {**facts, "lines": scored.estimates, **pictured}
        first, shown = included.ravel()[:MOST_SHOWN], scores.ravel()[:MOST_SHOWN]
        inside, outside = shown[first], shown[~first]
        if inside.size and outside.size:
            facts |= {"histogram": histogram(inside, outside), "roc": corners(inside, outside)}
        return {**facts, "lines": self._process.lines(plan.compose)}


@dataclass(frozen=True, slots=True)
class KeptTrainings:
    """The folder of an audit's trainings; each file repeats the question's `digest` and the `parts` of train."""

    folder: Path
    digest: str
    plan: TrainingPlan
    parts: Mapping[str, str]

    @classmethod
    def into(
        cls, folder: str | os.PathLike[str], digest: str, plan: TrainingPlan, parts: Mapping[str, str], *, resume: bool
    ) -> "KeptTrainings":
        """The folder, made where it is missing. Raises `InvalidSpec` where it holds trainings that are not wanted."""
        home = Path(folder)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSpec(f"folder {home} cannot be made ({error.strerror}); name another") from None
        if not resume and any(home.glob("training-*.npz")):
            raise InvalidSpec(f"{home} holds trainings already: go on with resume (--resume), or name another folder")
        return cls(home, digest, plan, parts)

    def path(self, call: int) -> Path:
        """Where a call's scores are kept."""
        return self.folder / f"training-{call + 1:06}.npz"

    def keep(self, call: int, scores: Reals) -> None:
        """Stores the scores and the coins of a call, whole or not at all."""
        content = io.BytesIO()
        np.savez(
            content,
            scores=scores,
            included=drawn(self.plan, call)[0],
            question=np.array(self.digest),
            made=json.dumps(dict(self.parts)),
        )
        with writing("", self.path(call), "folder"):
            write_bytes(self.path(call), content.getvalue())

    def scores(self, call: int) -> Reals | None:
        """The scores of a call that was kept; None where there are none. Raises `InvalidSpec` for another's file."""
        path = self.path(call)
        try:
            with np.load(io.BytesIO(read_bytes(path, LARGEST)), allow_pickle=False) as archive:
                if any(each.compress_type for each in archive.zip.infolist()):  # which may unpack to anything
                    raise InvalidSpec("packed, as no training is kept")
                question, coins = str(archive["question"]), archive["included"]
                parts = dict[str, str](json.loads(str(archive["made"])) if "made" in archive else {})
                scores: Reals = archive["scores"]
        except NoSuchFile:
            return None
        except InvalidSpec as error:
            raise InvalidSpec(f"{path}: {error}; {CURE}") from None
        except Exception:  # zipfile and numpy raise many kinds for bytes that are not theirs
            raise InvalidSpec(f"{path}: damaged, or no training of ours; {CURE}") from None
        if parts and (differences := changed(parts, self.parts) + unknown(self.parts)):
            raise InvalidSpec(f"{path}: {'; '.join(differences[:3])}; to train anew, give another folder")
        if question != self.digest or not parts:
            raise InvalidSpec(
                f"{path}: of another question (claim, canaries, trainings, seed, steps, confidence or train differ); "
                "ask as before, or give another folder"
            )
        rows = scores.shape[0] if scores.ndim == 2 else 0
        fits = scores.dtype == np.float64 and rows > 0 and scores.shape[1] == self.plan.canaries
        if not fits or not np.isfinite(scores).all() or not np.array_equal(coins, drawn(self.plan, call)[0]):
            raise InvalidSpec(f"{path}: its scores or coins are not those of this training; {CURE}")
        return scores


ASKED = tuple(each.name for each in fields(TrainingPlan))
NOT_KEPT = ("exact", "underpowered", "tossed")
LIBRARIES = ("torch", "opacus", "jax", "jax-privacy")  # a verdict is about one version of them
NEVER_TESTED = (
    "the loader, unless canaries are examples that it draws",
    "the accountant's own arithmetic: the claim is taken as it was given",
    "other data, other canaries",
)


class TrainingInterrupted(AuditInterrupted):
    """An audit of training that was stopped by hand; its words say what is kept, and how to go on."""


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far an audit of training is: trainings `done` of `trainings`, and the evidence against the claim.

    The largest `e_value` so far refutes at `refutes_at`;
    it is None where one number comes only at the end. `left_s` is a guess.
    """

    done: int
    trainings: int
    e_value: float | None
    refutes_at: float
    left_s: float

    def __str__(self) -> str:
        evidence = "" if self.e_value is None else f"; evidence {self.e_value:.3g}, refuted at {self.refutes_at:.3g}"
        left = "" if not 0.0 < self.left_s < 1e9 else f"; at most {self.left_s:,.0f} s left"
        return f"{self.done:,} of {self.trainings:,} trainings done{evidence}{left}"


def audit_training(
    train: Any,
    *,
    canaries: int,
    claim: Claim | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    trainings: int = 1,
    steps: int | None = None,
    compose: int | None = None,
    sample_rate: float = 1.0,
    confidence: float = 0.95,
    seed: int = 0,
    inserted: str = "",
    not_tested: Iterable[str] = (),
    exact: bool = False,
    underpowered: bool = False,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[TrainingProgress], object] | None = None,
    n_jobs: int = 1,
) -> TrainingResult:
    """Audits private training by canaries, each put in or left out by a fair coin of ours.

    `train(included, rng)` trains once: `included` is a bool array of shape (canaries,) that says which canaries are in,
    and every random choice is drawn from `rng` (or from the generators of Python, numpy and torch, which are seeded for
    every call and put back after it); its argument is called rng, gen or generator, or annotated as one. It returns a
    score a canary, higher where the training looks as if the canary was in: an array of shape (canaries,), or (any,
    canaries) of which the rows are summed. White box, a score is what the steps released along the canary's direction;
    black box, what the final model says of it.

    `trainings=1` certifies from one training. Of several the evidence is multiplied, and the audit stops when the claim
    is refuted. With `canaries=1` each training is a run of the usual kind, which must know nothing of the others: what
    earlier ones drew, released or scored; `dpaudit.batched(train)` then makes many at once: `train(included, runs,
    rng)`, arrays of shape (runs, 1). `steps=T` audits the claim of one *step*: coins and scores have shape (T,
    canaries), a coin of its own for every canary at every step, row t what step t released; `compose` (T) steps are
    then composed to a statement about the run. Where `train` lets a canary that is in join a step with a probability of
    its own (as our hooks do), `sample_rate` is that, and the claim is of a step before sampling.

    Neighbours differ by one record that is added or removed. Scores that take two values and tell every coin are
    refused, unless `exact` says that they are meant, and a claim that not even perfect scores of so many canaries could
    refute, unless `underpowered`. Coins and noise are of `seed` and of the source and parameters of `train`: scores
    that use what an earlier audit of the same code released need another seed. Trainings are kept in `folder` as they
    are done, and with `resume` not run again. The reference has a table of all keywords.

    Raises `InvalidSpec` for a question that cannot be asked, `UnsoundAudit` where a training breaks or its scores say
    nothing, and `TrainingInterrupted`, a `KeyboardInterrupt`, where it was stopped by hand.

    >>> def train(included, rng):  # every canary along a direction of its own, noise of standard deviation 1
    ...     return included * 2.0 + rng.normal(size=included.size)
    >>> result = audit_training(train, canaries=1_000, epsilon=0.5, delta=1e-5)
    >>> result.verdict.value, result.epsilon_lower > 1.2
    ('REFUTED', True)
    """
    given = locals()
    plan = plan_of(**{name: given[name] for name in ("epsilon", *ASKED) if name in given})
    if progress is not None and not callable(progress):
        raise InvalidSpec(f"progress must be a function of a TrainingProgress, got {progress!r}")
    mechanism = wrap(train)
    several = isinstance(not_tested, Iterable) and not isinstance(not_tested, str)
    left_out = tuple(not_tested) if several else (not_tested,)
    if not all(isinstance(each, str) for each in left_out):
        raise InvalidSpec(f"not_tested must be texts, got {not_tested!r}")
    path: Any = str | os.PathLike | None
    for name, value, kind, what in (("inserted", inserted, str, "text"), ("folder", folder, path, "path")):
        if not isinstance(value, kind):
            raise InvalidSpec(f"{name} must be a {what}, got {value!r}")
    words = {"inserted": inserted, "not_tested": (*left_out, *NEVER_TESTED)}
    described = mechanism.describe()
    calls = here(mechanism, plan := plan.of(described), n_jobs)
    parts = {} if folder is None else parts_of(mechanism) | made_with()
    return run_plan(plan, calls, described, words, folder, parts, resume=resume, progress=progress)


def run_plan(
    plan: TrainingPlan,
    calls: Calls,
    train: Description,
    words: Mapping[str, Any],
    folder: str | os.PathLike[str] | None,
    parts: Mapping[str, str],
    *,
    resume: bool,
    progress: Callable[[TrainingProgress], object] | None,
) -> TrainingResult:
    """The result of a plan, whose calls run wherever `calls` runs them; `words` are those of a `TrainingResult`.

    A `folder` keeps what is trained, with the `parts` that `train` is made of (`running.program`).
    """
    check_reach(plan)
    if resume and folder is None:
        raise InvalidSpec("resume needs the folder that keeps the trainings: give folder=...")
    store = None if folder is None else KeptTrainings.into(folder, plan.digest(train), plan, parts, resume=resume)
    gathered, started, began, fresh_ones = Gathered(plan), time.process_time(), time.monotonic(), 0
    try:
        stored = {} if store is None else {call: store.scores(call) for call in range(plan.calls)}
        fresh = calls([call for call in range(plan.calls) if stored.get(call) is None])
        for call in range(plan.calls):
            scores = stored.get(call)
            if scores is None:
                scores = next(fresh)
                fresh_ones += plan.trainings_in(call)
                if store is not None:  # before it is looked at
                    store.keep(call, scores)
            gathered.add(scores)
            if progress is not None:
                left_s = (time.monotonic() - began) / max(1, fresh_ones) * (plan.trainings - gathered.done)
                e_value = max(gathered.e_values, default=None)
                progress(TrainingProgress(gathered.done, plan.trainings, e_value, 1.0 / plan.alpha, left_s))
            if gathered.refuted:
                break
    except KeyboardInterrupt:
        where = "" if store is None else f", kept in {store.folder}; the same with resume goes on"
        raise TrainingInterrupted(f"{gathered.done:,} of {plan.trainings:,} trainings done{where}") from None
    asked: dict[str, Any] = {name: getattr(plan, name) for name in ASKED if name not in NOT_KEPT}
    return TrainingResult(
        **asked,
        **words,
        **gathered.found(),
        trainings_used=gathered.done,
        e_values=gathered.e_values,
        provenance={"train": train.to_dict(), "cpu_s": time.process_time() - started, **versions(LIBRARIES)},
    )
