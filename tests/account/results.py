"""Findings of every kind, made in seconds with fixed seeds or written out by hand: what whole accounts are taken of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import dpaudit
from dpaudit.account.change import Half
from dpaudit.auditing.clock import cut
from dpaudit.certify import CoinFlip, certify
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.ledger.comparison import compare
from dpaudit.results.bounds import Arithmetic, Bracket, Label, LowerBound, UpperBound
from dpaudit.results.display import Verdict
from dpaudit.results.observations import FAR, INSIDE, LATE, ONE_OUTPUT, Control, Ending
from dpaudit.results.recorded import Lead, NoiseCall, NoiseRecord, OutputPart
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.scores import audit_scores
from dpaudit.sweeps import Sweep
from dpaudit.sweeps.rows import COLUMNS
from tests.golden import example
from tests.training.test_page import result as trained

VARYING = (
    "version",
    "started",
    "wall_s",
    "cpu_s",
    "platform",
    "python",
    "numpy",
    "scipy",
    "joblib",
    "file",
    "line",
    "commit",
)
CALL: dict[str, Any] = {"n_jobs": 1, "isolation": "none", "progress": False}


def of_spec(made: AuditResult, **changes: Any) -> AuditResult:
    """The same result with another question."""
    return replace(made, spec={**made.spec, **changes})


def counted(made: AuditResult, *counts: int, claim: Any = None) -> AuditResult:
    """The same audit with other counts, certified for its claim or another."""
    evidence, claim = CoinFlip(*counts), made.claim if claim is None else claim
    certificate = certify(evidence, claim, made.spec["confidence"])
    return example.changed(made, evidence=evidence, claim=claim, certificate=certificate, trail=())


def claiming(made: AuditResult, claim: Any, distance: int = 1) -> AuditResult:
    """The same counts, held against another claim, of datasets some steps apart."""
    pair = {**made.spec["pairs"][0], "distance": distance}
    whole = of_spec(made, claim=claim.to_dict(), pairs=[pair])
    e = made.evidence
    return counted(whole, e.hits_p, e.hits_q, e.runs_p, e.runs_q, claim=claim.at_distance(distance))  # type: ignore[union-attr]


def by_bits(made: AuditResult) -> AuditResult:
    """The same result with a finding on bits: that of the example which is refuted."""
    return replace(of_spec(made, representation=True), representation=example.result().main)


def raising() -> AuditResult:
    """Runs that raise on the first dataset alone, and one more often than the other."""
    made = example.kept()
    endings = (Ending("a value", (4000, 4100), (300, 310)), Ending("raised ValueError", (50, 0), (50, 0)))
    told = {**made.provenance, "exceptions": {"raised ValueError": "'too few rows' (counts.py, line 7)"}}
    return example.changed(made, endings=endings, provenance=told)


def users() -> AuditResult:
    """A claim per user, whose record each one is standing in its first column."""
    made = example.result()
    pair = {**made.spec["pairs"][0], "user": 0}
    claim = {**made.spec["claim"], "relation": "add_or_remove_user"}
    return replace(of_spec(made, claim=claim, pairs=[pair]), adjacency=("users",))


def controlled() -> AuditResult:
    """Leaks that were put in: caught in one place, missed in another."""
    lost = tuple(Control(mass, mass / 5.0, 1.7, 3, 5, 19, INSIDE) for mass in (0.01, 0.03))
    caught, late = Control(0.01, 0.002, 1.7, 20, 20, 19, FAR), Control(0.03, 0.006, 1.7, 19, 20, 19, LATE)
    return of_spec(replace(example.kept(), controls=(caught, *lost, late)), controls=20)


def plain(made: AuditResult) -> AuditResult:
    """A result of today without what differs from machine to machine."""
    return replace(made, provenance={key: each for key, each in made.provenance.items() if key not in VARYING})


@dpaudit.batched
def laplace(data: float, runs: int, rng: Any) -> Any:
    return data + rng.laplace(0.0, 0.5, runs)


def audited(**asked: Any) -> AuditResult:
    """An audit of a second or less; what differs from machine to machine is left out."""
    return plain(dpaudit.audit(laplace, **{"pair": (1.0, 0.0), "epsilon": 1.0, "runs": 20_000, **CALL, **asked}))


def bracket(**changes: Any) -> Bracket:
    """What is known of the loss of a sparse vector, from below and from above."""
    audit = LowerBound(0.9, 0.0, 0.999, "one pair", "coin-flip")
    proved = UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment")
    exact = UpperBound(math.inf, 0.0, Label.EXACT_PAIR, "q = (1, 0)", Arithmetic.BALLS, "integrals", 0.99)
    made = Bracket("sparse", PureDP(1.0), audit, (proved, exact))
    return replace(made, **changes)


def scores(**asked: Any) -> Any:
    """Scores of members that are 2 above those of others."""
    few = [float(number % 7) for number in range(60)]
    return audit_scores([score + 2.0 for score in few], few, seed=1, **asked)


def swept() -> Sweep:
    """Two points of a grid, one of them without a verdict."""
    point = dict.fromkeys(COLUMNS) | {"point": 1, "mechanism": "laplace", "confidence": 0.99, "verdict": "REFUTED"}
    point |= {"parameter": "epsilon", "base_seed": 0, "claimed": 1.0, "claimed_epsilon": 1.0, "delta": 0.0}
    point["claim"] = "1-DP"
    numbers = {"lower": 1.5, "epsilon_lower": 1.5, "p_value": 1e-9, "runs": 500}
    return Sweep((point | numbers, point | {"point": 2, "verdict": None, "error": "too few runs", "runs": 2}))


def compared() -> Any:
    """An audit that became refuted, one that did not change, and one that is new."""

    def half(name: str, made: AuditResult) -> Half:
        return Half(name, of_spec(made, name=name))

    old = [half("count", example.kept()), half("sum", example.kept())]
    return compare(old, [half("count", example.result()), half("sum", example.kept()), half("mean", example.kept())])


MOVES = Lead(
    "shift",
    ("output",),
    "9 + laplace, scale 0.5",
    "8 + laplace, scale 0.5",
    "counts.py, line 7",
    "Generator.laplace",
    "laplace",
    2.0,
    2.0,
)


def recorded(*leads: Lead, **changes: Any) -> NoiseRecord:
    """A record of noise on the pair of the example, written out by hand."""
    spec = example.result().spec
    drawn = NoiseCall("counts.py, line 7", "Generator.laplace", "laplace, scale 0.5: 0.31", "laplace, scale 0.5: 0.31")
    given = {"draws": (drawn,), "parts": (OutputPart("output", "9.31", "8.31"),), "leads": leads, **changes}
    given = {"loss": 2.0, "allowed": 1.0, "description": spec["mechanism"], "claim": spec["claim"], **given}
    return NoiseRecord(mechanism="noisy count", pair=dict(spec["pairs"][0]), seed=0, runs=46, **given)


def with_record(made: AuditResult, *records: NoiseRecord, leads: str = "tell") -> AuditResult:
    """The audit with what was recorded before it."""
    return replace(of_spec(made, leads=leads), recorded=records)


KINDS: dict[str, Callable[[], Any]] = {
    "refuted": example.result,
    "not-refuted": example.kept,
    "approximate": lambda: claiming(example.result(), ApproximateDP(1.0, 1e-6)),
    "gaussian": lambda: claiming(example.result(), GaussianDP(0.5)),
    "several-steps": lambda: claiming(example.result(), PureDP(0.5), distance=3),
    "on-trust": lambda: replace(example.result(), adjacency=(None,)),
    "further-apart": lambda: replace(example.result(), adjacency=("2 records leave and 0 come",)),
    "not-looked-at": lambda: replace(example.kept(), unseen=744, unpaired=1, unread="@order"),
    "bits-alone": lambda: by_bits(example.kept()),
    "bits-too": lambda: replace(by_bits(example.result()), upper=example.kept().upper, adjacency=(None,)),
    "raising": raising,
    "users": users,
    "controls": controlled,
    "no-power": lambda: of_spec(example.kept(), detect={"epsilon": 1.01, "mass": 0.001}),
    "few-runs": lambda: counted(example.kept(), 40, 12, 150, 150),
    "one-output": lambda: replace(
        counted(example.kept(), 0, 0, 500, 500), health=replace(example.kept().health, notes=(ONE_OUTPUT,))
    ),
    "deadline": lambda: replace(
        example.result(), explored=(*example.result().explored, cut("302 certifying runs", 82_139))
    ),
    "own-randomness": lambda: example.result(reproducible=False, provenance={}),
    "anytime": lambda: audited(epsilon=0.5, runs=100_000, stopping="anytime"),
    "bins": lambda: audited(epsilon=None, claim=dpaudit.RenyiDP(order=2.0, epsilon=1.0)),
    "two-pairs": lambda: audited(
        pair=None, pairs=[(1.0, 0.0), dpaudit.AdjacentPair(3.0, 1.0, distance=2)], certify_pairs=2
    ),
    "accepted": lambda: example.reviewed_suite().entries[0],
    "known": lambda: SuiteEntry("noisy count", Verdict.REFUTED, example.result()),
    "missed": lambda: SuiteEntry("noisy count", Verdict.REFUTED, example.kept()),
    "without-verdict": lambda: example.suite().entries[2],
    "recorded-lead": lambda: recorded(MOVES),
    "recorded-leads": lambda: recorded(
        Lead("untouched", ("output['n']", "output['max']"), "9", "8"),
        MOVES,
        Lead("raised", (), "a value", "ValueError"),
    ),
    "recorded-no-lead": lambda: recorded(loss=1.0),
    "recorded-differs": lambda: recorded(
        loss=None,
        draws=(
            NoiseCall(
                "svt.py, line 3", "random.gauss", "2 times normal, scale 1: 0.5", "normal, scale 1: 0.5", ("number",)
            ),
        ),
        differs=("the length of output",),
    ),
    "recorded-unseen": lambda: recorded(draws=(), loss=None, unseen=("threads, whose draws have no order",)),
    "led": lambda: with_record(example.kept(), recorded(MOVES), recorded(MOVES), leads="fail"),
    "led-and-refuted": lambda: with_record(example.result(), recorded(MOVES)),
    "not-led": lambda: with_record(example.kept(), recorded(loss=1.0)),
    "suite": example.reviewed_suite,
    "empty-suite": lambda: SuiteResult((), 0.99),
    "bracket": bracket,
    "bracket-contradiction": lambda: bracket(lower=replace(bracket().lower, epsilon_lower=1.2), reasons=("a", "b")),  # type: ignore[type-var]
    "scores": lambda: scores(claim=ApproximateDP(1.0, 1e-5)),
    "scores-estimates": lambda: scores(methods=("gaussian-fit",)),
    "training": trained,
    "sweep": swept,
    "comparison": compared,
}


@cache
def made(kind: str) -> Any:
    """The finding of this kind, made once."""
    return KINDS[kind]()
