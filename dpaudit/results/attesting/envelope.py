"""Signatures: DSSE envelopes by securesystemslib, keys by pyca/cryptography. No cryptography is ours."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InvalidSpec, MissingRequirement, NotAttested
from dpaudit.results.files import read_bytes
from dpaudit.results.strict_json import parsed
from dpaudit.results.wording.quoting import clean

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from securesystemslib.signer import CryptoSigner, SSlibKey

PAYLOAD = "application/vnd.in-toto+json"
LARGEST_KEY = 2**16  # bytes of a file with a key
PRIVATE = "give a private key in PEM, as `openssl genpkey -algorithm ed25519 -out KEY` makes it"
PUBLIC = "give a public key in PEM, as `openssl pkey -in KEY -pubout` prints it"
NOT_ONE = "not a DSSE envelope of an in-toto statement"


def signer(path: str | os.PathLike[str], password: Callable[[], bytes]) -> CryptoSigner:
    """The private key of a PEM file; `password` is called where it is encrypted.

    Raises `InvalidSpec` where there is no such key, `MissingRequirement` where the libraries are not installed.
    """
    require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    pem, secret = _pem(path, PRIVATE), None
    for _ in range(2):
        try:
            key = load_pem_private_key(pem, secret)
            return CryptoSigner(key, _named(key.public_key()))
        except TypeError:  # it is encrypted
            secret = password()
        except (ValueError, UnsupportedAlgorithm):
            break
    wrong = "not a private key that can sign" if secret is None else "the password is not that of a key that can sign"
    raise InvalidSpec(f"{clean(path, 200)}: {wrong}; {PRIVATE}")


def public_key(path: str | os.PathLike[str]) -> SSlibKey:
    """The public key of a PEM file. Raises as `signer` does."""
    require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    pem = _pem(path, PUBLIC)
    try:
        return _named(load_pem_public_key(pem))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSpec(f"{clean(path, 200)}: not a public key that signatures are checked with; {PUBLIC}") from None


def signed(statement: dict[str, Any], by: CryptoSigner) -> str:
    """The envelope of a statement, signed: one line of JSON."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(json.dumps(statement, allow_nan=False).encode(), PAYLOAD, {})
    envelope.sign(by)
    return json.dumps(envelope.to_dict())


def opened(line: str, key: SSlibKey) -> Any:
    """What stands in an envelope that the key has signed.

    Raises `InvalidSpec` where the line is no envelope, `NotAttested` where no signature is that of the key.
    """
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    try:
        envelope = Envelope.from_dict(parsed(line, cure=NOT_ONE, not_json=NOT_ONE))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidSpec(NOT_ONE) from None
    if envelope.payload_type != PAYLOAD:
        raise InvalidSpec(NOT_ONE)
    # the name of a key in an envelope is a hint that nobody signed: each signature is tried with our key
    names = [each for each in envelope.signatures if isinstance(each, str)]
    try:
        if not names:
            raise VerificationError
        envelope.verify([SSlibKey(name, key.keytype, key.scheme, key.keyval) for name in names], 1)
    except VerificationError:
        raise NotAttested(f"no signature in it is that of the key {key.keyid[:16]}") from None
    try:
        return parsed(envelope.payload.decode("utf-8"), cure=NOT_ONE, not_json=NOT_ONE)
    except UnicodeDecodeError:
        raise InvalidSpec(NOT_ONE) from None


def require() -> None:
    """Raises `MissingRequirement` where the libraries of the extra [attest] are not installed."""
    try:
        import cryptography.hazmat.primitives.serialization  # noqa: F401
        import securesystemslib.dsse  # noqa: F401
    except ImportError as error:
        raise MissingRequirement(
            "attestations need securesystemslib, which is not installed: python3 -m pip install 'dpaudit[attest]'"
        ) from error


def _pem(path: str | os.PathLike[str], cure: str) -> bytes:
    try:
        return read_bytes(path, LARGEST_KEY)
    except InvalidSpec as error:
        raise InvalidSpec(f"{clean(path, 200)}: {error}; {cure}") from None


def _named(key: PublicKeyTypes) -> SSlibKey:
    """A key with the name that Go's DSSE library gives it: the SHA-256 of its standard form."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from securesystemslib.signer import SSlibKey

    standard = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SSlibKey.from_crypto(key, hashlib.sha256(standard).hexdigest())
