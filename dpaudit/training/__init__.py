"""Audits of private training: canaries in, the training code of the user's own library, scores out, a bound."""

from dpaudit.training.audit import TrainingInterrupted, TrainingProgress, audit_training
from dpaudit.training.result import TrainingResult, load

__all__ = ["TrainingInterrupted", "TrainingProgress", "TrainingResult", "audit_training", "load"]
