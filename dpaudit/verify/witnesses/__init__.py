"""Witnesses: what a program's outputs are worth at concrete answers, and where it breaks its claim."""

from dpaudit.verify.witnesses.losses import OneWay, PairLoss, pair_delta, pair_loss
from dpaudit.verify.witnesses.outcomes import event, law, probability
from dpaudit.verify.witnesses.outputs import (
    ANY,
    OutputEvent,
    OutsideIntegrals,
    Values,
    at_least,
    at_most,
    in_words,
    output_event,
)
from dpaudit.verify.witnesses.refute import Refutation, refute, refute_at_length
from dpaudit.verify.witnesses.worst import worst_pair

__all__ = [
    "ANY",
    "OneWay",
    "OutputEvent",
    "OutsideIntegrals",
    "PairLoss",
    "Refutation",
    "Values",
    "at_least",
    "at_most",
    "event",
    "in_words",
    "law",
    "output_event",
    "pair_delta",
    "pair_loss",
    "probability",
    "refute",
    "refute_at_length",
    "worst_pair",
]
