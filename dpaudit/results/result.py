"""The result of an audit as a user holds it: the answer, which prints itself and can end a test."""

from dataclasses import dataclass, replace
from typing import Any, Self

from dpaudit.arrays import Bools
from dpaudit.certify import Certificate, certifier_named
from dpaudit.certify.certificate import divided
from dpaudit.errors import ClaimRefuted
from dpaudit.mechanisms.importing import is_own
from dpaudit.results.audited import Audited, Finding, Units
from dpaudit.results.beside import Health
from dpaudit.results.certification import AuditEvidence, anytime_certificate, ceiling_of, certificate_of
from dpaudit.results.display import Displayed
from dpaudit.results.wording.advice import Diagnosis
from dpaudit.results.wording.diagnosis import diagnosis
from dpaudit.results.wording.first import Explanation, explanation
from dpaudit.results.wording.sections import full_text
from dpaudit.results.wording.statements import beyond


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Displayed, Audited):
    """What an audit was asked and what it found; its fields and all that follows from them are those of `Audited`."""

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What kind of mistake a refutation fits, where to look, what usually mends it; None where no kind fits."""
        return diagnosis(self)

    def contains(self, outputs: Any) -> Bools:
        """Which outputs are in the event of the witness: `Witness.contains`."""
        return self.witness.contains(outputs)

    def explain(self) -> Explanation:
        """Up to eight typical outputs of either dataset inside the event of a refutation, with its cause and diagnosis.

        They are outputs of search runs that the result keeps: the same from run to run, and after `load`.
        """
        return explanation(self)

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self), beyond(self))
        return self

    def __str__(self) -> str:
        return full_text(self)


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
    """The certificate again of one of so many witnesses that share the confidence; that on bits is alone."""
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
