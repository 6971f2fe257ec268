"""Integers in, certified statements out: evidence, exact binomial limits, certificates, power."""

from dpaudit.certify.certificate import Certificate
from dpaudit.certify.certifier import Certifier, EventCertifier
from dpaudit.certify.certifiers import CERTIFIERS, NAMES, CertifierName, certifier_named, certify, suited
from dpaudit.certify.evidence import Binned, CoinFlip, Evidence, FixedSides, evidence_from_dict
from dpaudit.certify.power import smallest_caught

__all__ = [
    "CERTIFIERS",
    "NAMES",
    "Binned",
    "Certificate",
    "Certifier",
    "CertifierName",
    "CoinFlip",
    "EventCertifier",
    "Evidence",
    "FixedSides",
    "certifier_named",
    "certify",
    "evidence_from_dict",
    "smallest_caught",
    "suited",
]
