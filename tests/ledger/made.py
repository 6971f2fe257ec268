"""Results with counts of our choice, certified from them, as an audit would have made them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpaudit.account.change import Half
from dpaudit.certify import CoinFlip, certifier_named
from dpaudit.claims import PureDP
from dpaudit.events import event_from_dict
from dpaudit.results.certification import ceiling_of
from dpaudit.results.result import AuditResult, Finding, recompute
from tests.golden import example

RUNS = 450_000
BITS = {
    "feature": {"kind": "lowest-bit", "paths": [[]]},
    "intervals": [[1.0, 1.0]],
    "tokens": [],
}


def counted(hits_p: int, hits_q: int, *, epsilon: float = 1.0, **spec: Any) -> AuditResult:
    """The audit of the golden file with these hits of `RUNS` runs a side; `spec` changes keys of its question."""
    made = example.kept()
    asked = {**made.spec, **spec}
    asked["claim"] = PureDP(epsilon, "add_or_remove_one").to_dict()  # type: ignore[arg-type]
    made = example.changed(
        made,
        spec=asked,
        claim=PureDP(epsilon, "add_or_remove_one"),  # type: ignore[arg-type]
        evidence=CoinFlip(hits_p, hits_q, RUNS, RUNS),
        trail=(),
        histogram=None,
        upper=None,
    )
    made = replace(made, certificate=recompute(made))
    return replace(
        made, ceiling=ceiling_of(made.witness, made.evidence, made.claim, made.level, certifier_named(made.certifier))
    )


def sourced(result: AuditResult, digest: str | None) -> AuditResult:
    """The result with another source of its mechanism."""
    return replace(result, spec={**result.spec, "mechanism": {**result.spec["mechanism"], "digest": digest}})


def at(result: AuditResult, commit: str | None, started: str = "2026-01-02T03:04:05+00:00") -> AuditResult:
    """The result as made at a commit."""
    return replace(result, provenance={**result.provenance, "commit": commit, "started": started})


def with_bits(result: AuditResult) -> AuditResult:
    """The result with a refuting finding on the bits of floats."""
    witness = replace(result.witness, event=event_from_dict(BITS))
    strong = counted(400_000, 10)
    found = Finding(result.claim, witness, strong.evidence, strong.certificate)
    return replace(result, representation=found, spec={**result.spec, "representation": True})


def half(result: AuditResult) -> Half:
    """One side of a comparison."""
    return Half(result.name, result)
