"""What makes two findings the same finding: mechanism, claim, class of pair and class of event, and no digits.

Neither runs nor seed, confidence, threshold or dataset stand in it: a finding keeps its fingerprint from run to run.
"""

import hashlib
import json
from typing import Any

from dpaudit.results.result import AuditResult
from dpaudit.results.witness import Witness

FAILURES = ("raised ", "timed out", "nan", "None", "absent")
BITS = ("lowest-bit", "first-bit", "trailing-zeros", "part", "on-grid")


def fingerprint(result: AuditResult, *, representation: bool = False) -> str:
    """The fingerprint of a result's finding: 16 hex digits. With `representation`, that of the finding on bits."""
    text = json.dumps(identity(result, representation=representation), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def identity(result: AuditResult, *, representation: bool = False) -> dict[str, Any]:
    """What the fingerprint is made of."""
    finding = result.representation if representation else None
    witness = result.witness if finding is None else finding.witness
    # how the datasets differ: the relation of the claim and the distance, not the data
    apart = {"relation": result.spec["claim"]["relation"], "distance": result.spec["pairs"][witness.pair]["distance"]}
    found = {"subject": subject(result.spec), "pair": apart, "event": event_class(witness)}
    mechanism = result.spec["mechanism"]
    if mechanism["reference"] is None and not mechanism["parameters"]:
        found["audit"] = result.name  # closures of one name may be anything: only the audit tells them apart
    return found


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
