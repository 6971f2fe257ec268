"""From a spec to a result: search, the pipeline, results, and every sentence about them."""

from dpaudit.audit.pipeline import repeat_witness, run_audit
from dpaudit.audit.result import AuditResult, Explored, SuiteEntry, SuiteResult
from dpaudit.audit.spec import AuditSpec
from dpaudit.audit.verdict import Verdict
from dpaudit.audit.witness import Witness

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
