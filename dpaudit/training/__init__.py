"""Audits of private training: canaries in, the training code of the user's own library, scores out, a bound."""

from dpaudit.training.audit import audit_training
from dpaudit.training.result import TrainingResult

__all__ = ["TrainingResult", "audit_training"]
