"""From a spec to a result: the stages of an audit in their order, probe, search, freeze, certify, health."""

from dpaudit.auditing.audit import repeat_witness, run_audit
from dpaudit.auditing.spec import AuditSpec

__all__ = ["AuditSpec", "repeat_witness", "run_audit"]
