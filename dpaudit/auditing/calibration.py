"""The tool measures itself: whole audits at the boundary of each claim form, where 1 - confidence may be refuted."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpaudit.auditing.question import Question
from dpaudit.auditing.runner import Runner
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import error_probability
from dpaudit.certify import CERTIFIERS, Certifier, EventCertifier, suited
from dpaudit.certify.binomial import lower_limit, quantile, upper_limit
from dpaudit.claims import FORMS, Claim, GaussianDP, PureDP, Relation
from dpaudit.data import AdjacentPair
from dpaudit.errors import UnsoundAudit
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import batched
from dpaudit.results.certification import frozen_delta_of

CONFIDENCE = 0.95
RUNS = 4_000
REPEATS, FULL_REPEATS = 200, 2_000
FALSE_ALARM = 1e-6  # of each line: that more are refuted although the rate is as stated
SCREENED = 4  # pairs, all at the boundary, where several are screened
TASK = 20  # audits
RARER = 0.2  # Q(S) of the boundary point; for every form but the pure one, where both outcomes bind
SLACK = 1e-9  # by which the point stays inside its region, more than a region's own rounding


@dataclass(frozen=True, slots=True)
class CalibrationCase:
    """One line: a claim, a certifier, a stopping rule, pairs screened, their distance, how many are certified."""

    name: str
    claim: Claim
    certifier: Certifier
    stopping: Literal["fixed", "anytime"] = "fixed"
    pairs: int = 1
    distance: int = 1
    certified: int = 1

    def point(self) -> tuple[float, float]:
        """Q(S) and P(S) on the boundary of the region at this distance."""
        claim = self.claim.at_distance(self.distance)
        if claim.pure:  # randomised response: both outcomes reach the bound
            q = 1.0 / (1.0 + math.exp(claim.epsilon_at(0.0)))
            return q, 1.0 - q
        return RARER, claim.max_probability(RARER) * (1.0 - SLACK)

    def question(self, runs: int, seed: int) -> Question:
        """One audit of this line."""
        q, p = self.point()
        return Question(
            claim=self.claim,
            mechanism=batched(two_outcomes),
            pairs=tuple(AdjacentPair(p, q, f"pair {j}", self.distance) for j in range(self.pairs)),
            runs=runs,
            confidence=CONFIDENCE,
            seed=seed,
            name=self.name,
            stopping=self.stopping,
            certifier=self.certifier,
            certify_pairs=self.certified,
        )


@dataclass(frozen=True, slots=True)
class CalibrationLine:
    """What the audits of a case came to: `refuted` of `repeats`, and at most `allowed` by chance.

    `fraction` is the mean certified bound over that of the true event at the expected counts of the same
    certifying runs (None where an audit may stop before them, bounds at different deltas, or takes the best of several
    pairs); `unsound` audits ended without a verdict.
    """

    case: CalibrationCase
    runs: int
    repeats: int
    refuted: int
    unsound: int
    fraction: float | None

    @property
    def allowed(self) -> int:
        """The most refutations that chance explains, at the stated error probability, but for one time in 10^6."""
        return quantile(self.repeats, error_probability(CONFIDENCE), FALSE_ALARM)

    @property
    def kept(self) -> bool:
        """Whether the rate is as stated, as far as this many audits can tell."""
        return self.refuted <= self.allowed and self.unsound == 0

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % interval of the false-refutation rate (Clopper & Pearson 1934)."""
        return lower_limit(self.refuted, self.repeats, 0.025), upper_limit(self.refuted, self.repeats, 0.025)

    def to_dict(self) -> dict[str, Any]:
        """The line as plain values."""
        return {
            "name": self.case.name,
            "claim": self.case.claim.to_dict(),
            "certifier": self.case.certifier.name,
            "stopping": self.case.stopping,
            "pairs": self.case.pairs,
            "distance": self.case.distance,
            "certified": self.case.certified,
            "runs": self.runs,
            "repeats": self.repeats,
            "confidence": CONFIDENCE,
            "refuted": self.refuted,
            "allowed": self.allowed,
            "rate_interval": list(self.interval),
            "unsound": self.unsound,
            "oracle_fraction": self.fraction,
        }


def two_outcomes(data: float, runs: int, rng: np.random.Generator) -> Reals:
    """1 with probability `data`, else 0: a mechanism whose loss is known because its dataset is its probability."""
    return (rng.random(runs) < data).astype(np.float64)


def claims() -> dict[str, Claim]:
    """One claim of each form, and one for local DP."""
    first, *others = ((form.__name__, form(*form.example)) for form in FORMS)
    return dict([first, ("local DP", PureDP(0.5, Relation.LOCAL)), *others])


def cases() -> tuple[CalibrationCase, ...]:
    """Every claim form with every certifier that takes it, fixed and anytime, with one pair and with several."""
    every: list[CalibrationCase] = []
    for name, claim in claims().items():
        usual = suited(claim)
        single = usual.single
        others = [each for each in CERTIFIERS if isinstance(each, EventCertifier)] if usual is single else [single]
        every += [
            *(CalibrationCase(name, claim, certifier) for certifier in dict.fromkeys((usual, *others))),
            CalibrationCase(name, claim, single, "anytime"),
            CalibrationCase(name, claim, usual, pairs=SCREENED),
        ]
    pure, gaussian = PureDP(0.4), GaussianDP(0.4)
    every += [
        CalibrationCase("PureDP, all pairs certified", PureDP(1.0), suited(pure), pairs=SCREENED, certified=SCREENED),
        CalibrationCase("PureDP, 3 steps apart", pure, suited(pure), distance=3),
        CalibrationCase("GaussianDP, 3 steps apart", gaussian, suited(gaussian), distance=3),
    ]
    return tuple(every)


def calibrate(
    chosen: tuple[CalibrationCase, ...], *, repeats: int = REPEATS, runs: int = RUNS, seed: int = 0, n_jobs: int = -1
) -> Iterator[CalibrationLine]:
    """The lines of some cases, one after the other, each from `repeats` whole audits of `runs` executions.

    Audit number i has the seed `seed` + i; the answer does not depend on `n_jobs`.
    """
    from joblib import Parallel, delayed

    parts = [range(start, min(start + TASK, seed + repeats)) for start in range(seed, seed + repeats, TASK)]
    with Parallel(n_jobs=n_jobs) as workers:
        for case in chosen:
            results = workers(delayed(_audits)(case, part, runs) for part in parts)
            refuted, unsound = sum(each[0] for each in results), sum(each[1] for each in results)
            total = sum(each[2] for each in results)
            sound = repeats - unsound
            # the best of several bounds is compared with none
            one_scale = case.claim.value is not None and case.stopping == "fixed" and case.certified == 1
            oracle = oracle_bound(case, runs) if one_scale and sound else 0.0
            fraction = total / sound / oracle if oracle > 0.0 else None
            yield CalibrationLine(case, runs, repeats, refuted, unsound, fraction)


def oracle_bound(case: CalibrationCase, runs: int) -> float:
    """The bound of the true event at the expected counts of the certifying runs: what no search can beat on average."""
    with Engine(n_jobs=1) as engine:
        result = Runner(engine).run(case.question(runs, 0))
    q, p = case.point()
    half = result.evidence.runs // 2
    expected = case.certifier.counts(round(half * p), round(half * q), 2 * half)
    claim = case.claim.at_distance(case.distance)
    return case.certifier.certify(expected, claim, result.level, frozen_delta_of(result.witness, claim)).lower


def _audits(case: CalibrationCase, seeds: range, runs: int) -> tuple[int, int, float]:
    """Refutations, audits without a verdict, and the sum of the bounds."""
    refuted = unsound = 0
    total = 0.0
    with Engine(n_jobs=1) as engine:
        for seed in seeds:
            try:
                certificate = Runner(engine).run(case.question(runs, seed)).certificate
            except UnsoundAudit:
                unsound += 1
                continue
            refuted += certificate.refuted
            total += min(certificate.lower, 1e6)
    return refuted, unsound, total
