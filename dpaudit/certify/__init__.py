"""Integers in, certified statements out: evidence, exact binomial limits, certificates, power."""

from dpaudit.certify.certificate import Certificate
from dpaudit.certify.certifiers import CERTIFIERS, ceiling, certify, suited
from dpaudit.certify.evidence import Binned, CoinFlip, Evidence, FixedSides, evidence_from_dict
from dpaudit.certify.power import smallest_caught

__all__ = [
    "CERTIFIERS",
    "Binned",
    "Certificate",
    "CoinFlip",
    "Evidence",
    "FixedSides",
    "ceiling",
    "certify",
    "evidence_from_dict",
    "smallest_caught",
    "suited",
]
