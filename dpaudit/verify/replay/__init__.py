"""Exact replay of finite randomness: the code itself, run for every choice that it can make."""

from dpaudit.verify.replay.canonical import Raised, Shaped, canonical
from dpaudit.verify.replay.choices import Choices
from dpaudit.verify.replay.losses import FiniteLosses, Worst
from dpaudit.verify.replay.replaying import replay

__all__ = ["Choices", "FiniteLosses", "Raised", "Shaped", "Worst", "canonical", "replay"]
