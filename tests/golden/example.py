"""The results that the golden files hold, written out by hand: nothing here is computed by `dpaudit`."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from datetime import date
from typing import Any

from dpaudit.certify import Certificate, CoinFlip
from dpaudit.certify.coin_flip import METHOD
from dpaudit.claims import HalfPlane, PureDP
from dpaudit.events import event_from_dict
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.results.certification import Witness
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Check, Explored, Health, Histogram, PlaceValues, Typical
from dpaudit.results.result import AuditResult, Illustration
from dpaudit.results.suite import Acceptance, Reviewed, SuiteEntry, SuiteResult

PROVENANCE: dict[str, Any] = {
    "version": "0.1.0", "python": "3.11.7", "numpy": "2.2.0", "scipy": "1.15.0", "joblib": "1.4.2",
    "statsmodels": "0.14.4", "scikit-learn": "not installed", "platform": "Linux x86_64",
    "started": "2025-01-31T09:30:00+00:00", "wall_s": 3.25, "cpu_s": 5.5, "n_jobs": 2, "backend": "loky",
    "task_runs": 65536, "max_time_s": None, "file": "counts.py", "line": 4, "command": None, "source": None,
    "commit": "4f0c2d9b1e7a", "interruptions": 0,
}  # fmt: skip
MECHANISM = {
    "name": "noisy_count", "kind": "per-run", "reference": "counts:noisy_count", "parameters": {}, "takes_rng": True,
    "digest": "0c6c1f0b8a5d4e21",
}  # fmt: skip
PAIR = {
    "name": "one leaves",
    "distance": 1,
    "first": {"digest": "8f14e45fceea167a5a36dedd4bea2543", "value": ["a"] * 9},
    "second": {"digest": "c9f0f895fb98ab9159f51fd0297e236d", "value": ["a"] * 8},
}
SPEC: dict[str, Any] = {
    "name": "noisy count", "claim": {"form": "PureDP", "epsilon": 1.0, "relation": "add_or_remove_one"},
    "mechanism": MECHANISM, "pairs": [PAIR], "runs": 1_000_000, "confidence": 0.999, "seed": 0, "stopping": "fixed",
    "selector": "penalised", "certifier": "coin-flip", "sequential_share": 0.2, "certify_pairs": 1,
    "representation": False, "detect": None, "controls": 0, "search_share": 0.1, "shard_runs": 8192,
    "run_timeout_s": None,
}  # fmt: skip


def result(**changes: Any) -> AuditResult:
    """A count with Laplace noise of scale 0.5, claimed to be 1-DP; on `output > 9.5` its true loss is 2."""
    made = AuditResult(
        spec=copy.deepcopy(SPEC),
        claim=PureDP(1.0, "add_or_remove_one"),  # type: ignore[arg-type]
        witness=Witness(
            pair=0,
            event=event_from_dict(
                {"feature": {"kind": "coordinate", "path": []}, "intervals": [[9.5, "inf"]], "tokens": []}
            ),
            p_side="first",
            selector="penalised: above a threshold",
            score=1.9625,
            tangent=HalfPlane(ratio=2.718281828459045, offset=0.0),
        ),
        evidence=CoinFlip(hits_p=82_289, hits_q=11_206, runs_p=449_701, runs_q=450_267),
        certificate=Certificate(
            lower=1.9627309845969991,
            epsilon_lower=1.9627309845969991,
            p_value=1e-300,
            delta=0.0,
            confidence=0.999,
            method=METHOD,
        ),
        runs_used=999_968,
        explored=(Explored("feature", "output", "looked at", 1.9625),),
        ceiling=11.083685781148272,
        reproducible=True,
        adjacency=("records",),
        illustration=Illustration(
            histogram=Histogram(
                feature="output",
                edges=(7.0, 8.0, 9.0, 9.5, 10.0, 11.0),
                values=(),
                first=(46, 298, 2197, 2190, 1850, 1270, 199),
                second=(318, 2012, 4110, 1000, 370, 220, 22),
                labels=(),
                tokens_first=(),
                tokens_second=(),
                runs_first=8050,
                runs_second=8052,
            ),
            trail=(
                CoinFlip(hits_p=744, hits_q=97, runs_p=4101, runs_q=4091),
                CoinFlip(hits_p=20_590, hits_q=2_790, runs_p=112_400, runs_q=112_504),
                CoinFlip(hits_p=82_289, hits_q=11_206, runs_p=449_701, runs_q=450_267),
            ),
            typical=Typical(
                inside=(("9.51", "9.62", "9.84", "10.4"), ("9.53", "9.98")),
                hits=(1469, 197),
                runs=(8050, 8052),
                constant=(None, None),
                places=(
                    PlaceValues(
                        name="output",
                        named=True,
                        numbers=(8050, 8052),
                        different=(8050, 8052),
                        levels=((4.7, 7.85, 8.65, 9.0, 9.35, 10.15, 13.9), (3.6, 6.84, 7.66, 8.0, 8.34, 9.16, 12.2)),
                    ),
                ),
            ),
        ),
        health=Health((Check("repeated streams", -0.25, 5e-7), Check("drift over shards", -0.012, 5e-7))),
        provenance=PROVENANCE,
    )
    if "evidence" in changes:  # the trail ends in the evidence
        changes = {"trail": (), **changes}
    return changed(made, **changes)


def changed(made: AuditResult, **changes: Any) -> AuditResult:
    """The result with changes, of what is only shown too."""
    names = {each.name for each in fields(Illustration)}
    shown = {name: changes.pop(name) for name in names & changes.keys()}
    return replace(made, illustration=replace(made.illustration, **shown), **changes)


def kept(**changes: Any) -> AuditResult:
    """The same count with noise of scale 1: its true loss is 1, as claimed, and the audit does not refute it."""
    made = result()
    made = changed(
        made,
        spec={**made.spec, "name": "noisy count, whole noise"},
        evidence=CoinFlip(hits_p=136_400, hits_q=50_244, runs_p=449_701, runs_q=450_267),
        adjacency=("records",),
        trail=(CoinFlip(hits_p=136_400, hits_q=50_244, runs_p=449_701, runs_q=450_267),),
        certificate=replace(
            made.certificate,
            lower=0.982578067910215,
            epsilon_lower=0.982578067910215,
            p_value=0.5994705017012506,
        ),
        upper=UpperBound(
            1.0, 0.0, Label.EXACT_PAIR, 'the pair "one leaves"', Arithmetic.BALLS, "rigorous integrals", 1.0
        ),
    )
    return changed(made, **changes)


def suite() -> SuiteResult:
    """A finding that was expected, a claim that held, and an audit that ended without a verdict."""
    return SuiteResult(
        entries=(
            SuiteEntry("noisy count", Verdict.REFUTED, result()),
            SuiteEntry("noisy count, whole noise", Verdict.NOT_REFUTED, kept()),
            SuiteEntry("sparse", Verdict.REFUTED, None, "the worker of shard 3 was lost twice", 3),
        ),
        confidence=0.997,
    )


def accepted(**changes: Any) -> Acceptance:
    """Somebody answers for the refutation of the noisy count."""
    made = Acceptance(
        "cf51a7d0b0ad5991", "noisy count", "the old release, gone in May", date(2025, 1, 7), date(2025, 5, 1)
    )
    return replace(made, **changes)


def reviewed_suite() -> SuiteResult:
    """A suite with each kind of ending: an accepted finding, one that nobody expected, a violation that was missed."""
    held, gone = accepted(), accepted(fingerprint="00ff00ff00ff00ff", finding="histogram")
    over = accepted(fingerprint="0123456789abcdef", finding="old mean", until=date(2025, 1, 20))
    moved = result(
        spec={
            **result().spec,
            "name": "noisy sum",
            "mechanism": {**result().spec["mechanism"], "reference": "sums:total"},
        },
        provenance={**PROVENANCE, "file": "library/sums.py", "line": 12, "command": "dpaudit run sums.toml --seed 0"},
    )
    return SuiteResult(
        entries=(
            SuiteEntry("noisy count", Verdict.NOT_REFUTED, result(), accepted=held),
            SuiteEntry("noisy sum", Verdict.NOT_REFUTED, moved),
            SuiteEntry("noisy count, whole noise", Verdict.REFUTED, kept()),
            SuiteEntry("sparse", Verdict.REFUTED, None, "the worker of shard 3 was lost twice", 3),
        ),
        confidence=0.996,
        reviewed=(
            Reviewed(held, expired=False, matched=True),
            Reviewed(gone, expired=False, matched=False),
            Reviewed(over, expired=True, matched=False),
        ),
    )
