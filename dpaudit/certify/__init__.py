"""Integers in, certified statements out: evidence, exact binomial limits, certificates, power."""

from dpaudit.base.validate import error_probability
from dpaudit.certify.certificate import Certificate, Certifier, EventCertifier
from dpaudit.certify.certifiers import CERTIFIERS, certifier_named, certifier_names, certify, smallest_caught, suited
from dpaudit.certify.evidence import Binned, CoinFlip, Evidence, FixedSides, evidence_from_dict

__all__ = [
    "CERTIFIERS",
    "Binned",
    "Certificate",
    "Certifier",
    "CoinFlip",
    "EventCertifier",
    "Evidence",
    "FixedSides",
    "certifier_named",
    "certifier_names",
    "certify",
    "error_probability",
    "evidence_from_dict",
    "smallest_caught",
    "suited",
]
