"""The result of an audit as a user holds it, which prints itself and can end a test; and what makes two the same."""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

from dpaudit.base.arrays import Bools
from dpaudit.base.presenter import presented
from dpaudit.base.strict import content_digest
from dpaudit.certify import Certificate, certifier_named
from dpaudit.certify.certificate import divided
from dpaudit.errors import ClaimRefuted
from dpaudit.mechanisms.importing import is_own
from dpaudit.results.audited import Audited, Finding, Units
from dpaudit.results.certification import AuditEvidence, Witness, anytime_certificate, ceiling_of, certificate_of
from dpaudit.results.display import Displayed
from dpaudit.results.observations import Diagnosis, Explanation, Health


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Displayed, Audited):
    """What an audit was asked and what it found; its fields and all that follows from them are those of `Audited`."""

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What kind of mistake a refutation fits, where to look, what usually mends it; None where no kind fits."""
        return cast(Diagnosis | None, presented().diagnosis(self))

    def contains(self, outputs: Any) -> Bools:
        """Which outputs are in the event of the witness: `Witness.contains`."""
        return self.witness.contains(outputs)

    def explain(self) -> Explanation:
        """Up to eight typical outputs of either dataset inside the event of a refutation, with its cause and diagnosis.

        They are outputs of search runs that the result keeps: the same from run to run, and after `load`.
        """
        return cast(Explanation, presented().explanation(self))

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self), presented().beyond(self))
        return self

    def __str__(self) -> str:
        return str(presented().parts(self).text())


AGAIN = "dpaudit.recheck(result, mechanism, fresh=True)  # of the result with seed {}, whose witness this is"
ALONE_WORDS = "called for one run at a time"
ALONE = {"stopping": "fixed", "certify_pairs": 1, "representation": False, "detect": None, "controls": 0}


def recompute(result: AuditResult) -> Certificate:
    """The certificate again, from the counts (and the blocks), the claim and the confidence of a result alone."""
    spec, certifier = result.spec, certifier_named(result.certifier)
    if spec["stopping"] == "anytime":
        share, confidence, part = spec["sequential_share"], spec["confidence"], result.part(result.evidence)
        counted = result.blocks, result.witness, result.evidence, result.claim
        return anytime_certificate(*counted, confidence, certifier, share=share, part=part)
    return recompute_finding(result, result.main, spec["certify_pairs"])


def recompute_finding(result: AuditResult, finding: Finding, witnesses: int) -> Certificate:
    """The certificate, computed again, of one of `witnesses` that share the confidence; that on bits is alone."""
    level = divided(result.spec["confidence"], witnesses)
    certifier, part = certifier_named(result.certifier), result.part(finding.evidence)
    return certificate_of(finding.witness, finding.evidence, finding.claim, level, certifier, part=part)


def went_alone(result: AuditResult) -> bool:
    """Whether the audit gave a batched mechanism a call for each run, because a call for many had raised."""
    return any(entry.status.startswith(ALONE_WORDS) for entry in result.explored)


def repeated(result: AuditResult, evidence: AuditEvidence, health: Health, *, seed: int) -> AuditResult:
    """The result that the same witness has on fresh runs: a fixed audit of that witness alone, at the confidence."""
    spec = {**result.spec, **ALONE, "seed": seed}
    confidence, certifier = spec["confidence"], certifier_named(result.certifier)
    kind, ours = spec["mechanism"]["kind"], is_own(spec["mechanism"]["reference"] or "")
    # no second bound was made of what was not refuted
    unlooked = Units(0) if kind in ("batched", "command") and not (ours or result.refuted) else None
    return replace(
        result,
        spec=spec,
        evidence=evidence,
        certificate=certificate_of(result.witness, evidence, result.claim, confidence, certifier),
        ceiling=ceiling_of(result.witness, evidence, result.claim, confidence, certifier),
        runs_used=evidence.runs,
        trail=(),
        health=health,
        blocks=(),
        others=(),
        representation=None,
        plain=None,
        units=result.units or unlooked,
        controls=(),
        milestones=None,
        provenance={**result.provenance, "command": AGAIN.format(result.spec["seed"])},
    )


FAILURES = ("raised ", "timed out", "nan", "None", "absent")
BITS = ("lowest-bit", "first-bit", "trailing-zeros", "part", "on-grid")


def fingerprint(result: AuditResult, *, representation: bool = False) -> str:
    """The fingerprint of a result's finding: 16 hex digits. With `representation`, that of the finding on bits.

    Mechanism, claim, class of pair and class of event, and no digits: neither runs nor seed, confidence, threshold or
    dataset stand in it, so that a finding keeps its fingerprint from run to run.
    """
    return content_digest(identity(result, representation=representation))[:16]


def identity(result: AuditResult, *, representation: bool = False) -> dict[str, Any]:
    """What the fingerprint is made of."""
    finding = result.representation if representation else None
    witness = result.witness if finding is None else finding.witness
    # how the datasets differ: the relation of the claim and the distance, not the data
    apart = {"relation": result.spec["claim"]["relation"], "distance": result.spec["pairs"][witness.pair]["distance"]}
    parts = {"subject": subject(result.spec), "pair": apart, "event": event_class(witness)}
    mechanism = result.spec["mechanism"]
    if mechanism["reference"] is None and not mechanism["parameters"]:
        parts["audit"] = result.name  # closures of one name may be anything: only the audit tells them apart
    return parts


def subject(spec: dict[str, Any]) -> dict[str, Any]:
    """Mechanism and claim: what a history follows through the versions of its source."""
    mechanism = spec["mechanism"]
    return {
        "mechanism": mechanism["reference"] or mechanism["name"],
        "parameters": mechanism["parameters"],
        "claim": spec["claim"],
    }


def event_class(witness: Witness) -> str:
    """The family of an event: "representation" (bits of floats), "failure" (exceptions, None, NaN) or "calibration"."""
    stored = witness.event.to_dict()
    if stored["feature"]["kind"] in BITS:
        return "representation"
    parts = stored.get("bins", [stored])
    labels = [token["label"] for part in parts for token in part["tokens"]]
    numbers = any(part["intervals"] for part in parts)
    failures = bool(labels) and all(label.startswith(FAILURES) for label in labels)
    return "failure" if failures and not numbers else "calibration"
