"""From a spec to a result: search, the pipeline, results, and every sentence about them."""

from dpaudit.auditing.pipeline import repeat_witness, run_audit
from dpaudit.auditing.result import AuditResult, Explored
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.suite import SuiteEntry, SuiteResult
from dpaudit.auditing.verdict import Verdict
from dpaudit.auditing.witness import Witness

__all__ = [
    "AuditResult",
    "AuditSpec",
    "Explored",
    "SuiteEntry",
    "SuiteResult",
    "Verdict",
    "Witness",
    "repeat_witness",
    "run_audit",
]
