"""Integers in, certified statements out: evidence, exact binomial limits, certificates, power."""

from dpaudit.certify.certificate import Certificate
from dpaudit.certify.coin_flip import ceiling, certify
from dpaudit.certify.evidence import CoinFlip
from dpaudit.certify.power import smallest_epsilon_caught

__all__ = ["Certificate", "CoinFlip", "ceiling", "certify", "smallest_epsilon_caught"]
