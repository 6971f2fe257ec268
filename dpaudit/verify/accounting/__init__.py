"""Accounting: upper bounds for declared compositions, of one mechanism or of several different ones."""

from dpaudit.verify.accounting.composing import compose, compose_replayed, composed_delta
from dpaudit.verify.accounting.finite import FinitePair
from dpaudit.verify.accounting.parts import Laplace, SubsampledGaussian

__all__ = ["FinitePair", "Laplace", "SubsampledGaussian", "compose", "compose_replayed", "composed_delta"]
