"""Attested results: what the holder of a key says of stored results, as an in-toto statement in a DSSE envelope."""

from dpaudit.results.attesting.attestation import attest, verify_attestation

__all__ = ["attest", "verify_attestation"]
