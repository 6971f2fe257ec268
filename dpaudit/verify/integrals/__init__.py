"""Rigorous integrals: probabilities of outputs of programs with continuous noise, enclosed in balls."""

from dpaudit.verify.integrals.events import Between, Density, Event, Factor, Line, Slice, Term
from dpaudit.verify.integrals.probabilities import delta, log_ratio, log_ratio_of, probability
from dpaudit.verify.integrals.releases import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    laplace_delta,
    laplace_epsilon,
    uniform_delta,
)

__all__ = [
    "Between",
    "Density",
    "Event",
    "Factor",
    "Line",
    "Slice",
    "Term",
    "delta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "laplace_delta",
    "laplace_epsilon",
    "log_ratio",
    "log_ratio_of",
    "probability",
    "uniform_delta",
]
