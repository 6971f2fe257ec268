"""Attestations in files: one envelope a line, beside the results that they are about."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InvalidSpec, NotAttested
from dpaudit.installed import lacking
from dpaudit.results.attesting.statement import Head, StoredFile, check_statement, names_in, statement, stored_file
from dpaudit.results.files import read_bytes
from dpaudit.results.strict_json import LARGEST_SUITE, parsed
from dpaudit.results.wording.quoting import clean

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from securesystemslib.signer import CryptoSigner, SSlibKey


PAYLOAD = "application/vnd.in-toto+json"
LARGEST_KEY = 2**16  # bytes of a file with a key
PRIVATE = "give a private key in PEM, as `openssl genpkey -algorithm ed25519 -out KEY` makes it"
PUBLIC = "give a public key in PEM, as `openssl pkey -in KEY -pubout` prints it"
NOT_ONE = "not a DSSE envelope of an in-toto statement"


def signer(path: str | os.PathLike[str], password: Callable[[], bytes]) -> "CryptoSigner":
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


def public_key(path: str | os.PathLike[str]) -> "SSlibKey":
    """The public key of a PEM file. Raises as `signer` does."""
    require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    pem = _pem(path, PUBLIC)
    try:
        return _named(load_pem_public_key(pem))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSpec(f"{clean(path, 200)}: not a public key that signatures are checked with; {PUBLIC}") from None


def signed(statement: dict[str, Any], by: "CryptoSigner") -> str:
    """The envelope of a statement, signed: one line of JSON."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(json.dumps(statement, allow_nan=False).encode(), PAYLOAD, {})
    envelope.sign(by)
    return json.dumps(envelope.to_dict())


def opened(line: str, key: "SSlibKey") -> Any:
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
        raise lacking("attestations need securesystemslib, which is not installed here", "attest") from error


def _pem(path: str | os.PathLike[str], cure: str) -> bytes:
    try:
        return read_bytes(path, LARGEST_KEY)
    except InvalidSpec as error:
        raise InvalidSpec(f"{clean(path, 200)}: {error}; {cure}") from None


def _named(key: "PublicKeyTypes") -> "SSlibKey":
    """A key with the name that Go's DSSE library gives it: the SHA-256 of its standard form."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from securesystemslib.signer import SSlibKey

    standard = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SSlibKey.from_crypto(key, hashlib.sha256(standard).hexdigest())


SUFFIX = ".intoto.jsonl"  # of a bundle of attestations about a file, added to its name
GIVE = "give a file that `dpaudit attest` wrote"


def attest(
    paths: Iterable[str | os.PathLike[str]],
    key: str | os.PathLike[str],
    *,
    password: Callable[[], bytes] | None = None,
    ledger: Head | None = None,
) -> str:
    """The attestation of stored results and suites: an in-toto statement in a DSSE envelope, one line of JSON.

    It binds the bytes of each file and, in words of its own, what stands in it: question, mechanism and the digest of
    its source, witness, counts, certificate, verdict, health, environment. `key` is the file of a private key in PEM
    (Ed25519, ECDSA or RSA), `password` is called where that is encrypted. `ledger` is the head of a ledger's chain
    (`Ledger.head()`), which holds all that was recorded in it before.

    Raises `InvalidSpec` for a file that is no result or contradicts its counts, and for a key that cannot sign;
    `MissingRequirement` where the extra [attest] is not installed.
    """
    by = signer(key, password or _no_password)
    return signed(statement(map(stored_file, paths), ledger), by)


def verify_attestation(
    attestation: str | os.PathLike[str], path: str | os.PathLike[str], key: str | os.PathLike[str]
) -> tuple[StoredFile, Head | None]:
    """The result or suite at a path, where the holder of a key has attested it: `key` is the file of the public key.

    Beside it stands the head of a ledger's chain, where one was attested. The signature must be of this key, the file
    byte for byte the one that was attested, and all that is told of it what stands in it, its verdict and certificate
    computed again from its counts.

    Raises `NotAttested` where it does not hold, `InvalidSpec` for files that are not what they should be and
    `MissingRequirement` where the extra [attest] is not installed.
    """
    return next(verified(attestation, [path], key))


def verified(
    attestation: str | os.PathLike[str],
    paths: Sequence[str | os.PathLike[str]],
    key: str | os.PathLike[str],
    *,
    whole: bool = False,
) -> Iterator[tuple[StoredFile, Head | None]]:
    """`verify_attestation` of several files, one after the other: the attestation is read once.

    Where the paths are a `whole` folder, none that was attested together with one of them may be missing.
    """
    by, stated = public_key(key), None
    here = [stored_file(path).sha256 for path in paths] if whole else []
    for path in paths:
        file, reason = stored_file(path), None
        stated = [_stated(line, by) for line in envelopes(attestation)] if stated is None else stated
        for each in stated:
            try:
                if isinstance(each, Exception):
                    raise each
                found = check_statement(each, file, here)
                break
            except (InvalidSpec, NotAttested) as error:  # lines of other kinds may stand beside ours
                reason = error
        else:
            place = clean(attestation, 200)
            raise NotAttested(f"{clean(path, 200)}: {place} does not attest it: {reason}")
        names = set[tuple[str, str]]().union(*map(names_in, stated))
        same = sorted(name for name, digest in names if digest == file.sha256)
        if file.name not in same and any(name == file.name for name, _ in names):  # exchanged for another
            raise NotAttested(f"{clean(path, 200)}: what stands in it was attested as {clean(same[0], 200)}")
        yield replace(file, name=file.name if file.name in same else same[0]), found


def _stated(line: str, by: "SSlibKey") -> Any:
    """What stands in a line of this key, or why nothing does."""
    try:
        return opened(line, by)
    except (InvalidSpec, NotAttested) as error:
        return error


def envelopes(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a file of attestations. Raises `InvalidSpec` where it is none."""
    try:
        content = read_bytes(path, LARGEST_SUITE)
    except InvalidSpec as error:
        raise InvalidSpec(f"{clean(path, 200)}: {error}; {GIVE}") from None
    with suppress(ValueError, TypeError):  # neither text, nor JSON, nor an object
        lines = content.decode("utf-8").splitlines()
        if lines and all("payloadType" in parsed(line, cure=NOT_ONE, not_json=NOT_ONE) for line in lines):
            return lines
    raise InvalidSpec(f"{clean(path, 200)}: {NOT_ONE}; {GIVE}")


def beside(path: str | os.PathLike[str]) -> Path:
    """Where the attestation of a file stands, or of a folder."""
    given = Path(path)
    return given / f"results{SUFFIX}" if given.is_dir() else given.with_name(given.name + SUFFIX)


def _no_password() -> bytes:
    raise InvalidSpec("the private key is encrypted; give its password")
