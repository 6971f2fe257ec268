"""From a question to a result: its plan, and the stages probe, search, freeze, certify, health, in their order."""

from dpaudit.auditing.audit import repeat_witness, run_audit
from dpaudit.auditing.question import Question, plan
from dpaudit.auditing.runner import Runner

AuditSpec = Question  # its public name

__all__ = ["AuditSpec", "Question", "Runner", "plan", "repeat_witness", "run_audit"]
