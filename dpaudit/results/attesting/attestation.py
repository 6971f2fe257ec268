"""Attestations in files: one envelope a line, beside the results that they are about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from dpaudit.errors import InvalidSpec, NotAttested
from dpaudit.results.attesting.envelope import NOT_ONE, opened, public_key, signed, signer
from dpaudit.results.attesting.statement import LARGEST, StoredFile, check_statement, statement, stored_file
from dpaudit.results.files import read_bytes
from dpaudit.results.wording.quoting import clean

SUFFIX = ".intoto.jsonl"  # of a bundle of attestations about a file, added to its name
GIVE = "give a file that `dpaudit attest` wrote"


def attest(
    paths: Iterable[str | os.PathLike[str]],
    key: str | os.PathLike[str],
    *,
    password: Callable[[], bytes] | None = None,
) -> str:
    """The attestation of stored results and suites: an in-toto statement in a DSSE envelope, one line of JSON.

    It binds the bytes of each file and, in words of its own, what stands in it: question, mechanism and the digest of
    its source, witness, counts, certificate, verdict, health, environment. `key` is the file of a private key in PEM
    (Ed25519, ECDSA or RSA), `password` is called where that is encrypted.

    Raises `InvalidSpec` for a file that is no result or contradicts its counts, and for a key that cannot sign;
    `MissingRequirement` where the extra [attest] is not installed.
    """
    by = signer(key, password or _no_password)
    return signed(statement(map(stored_file, paths)), by)


def verify_attestation(
    attestation: str | os.PathLike[str], path: str | os.PathLike[str], key: str | os.PathLike[str]
) -> StoredFile:
    """The result or suite at a path, where the holder of a key has attested it: `key` is the file of the public key.

    The signature must be of this key, the file byte for byte the one that was attested, and all that is told of it
    what stands in it, its verdict and certificate computed again from its counts.

    Raises `NotAttested` where it does not hold, `InvalidSpec` for files that are not what they should be and
    `MissingRequirement` where the extra [attest] is not installed.
    """
    by, file = public_key(key), stored_file(path)
    place = clean(attestation, 200)
    try:
        lines = read_bytes(attestation, LARGEST).decode("utf-8").splitlines()
    except (InvalidSpec, UnicodeDecodeError) as error:
        raise InvalidSpec(f"{place}: {error if isinstance(error, InvalidSpec) else NOT_ONE}; {GIVE}") from None
    reason = None
    for line in lines:
        try:
            check_statement(opened(line, by), file)
            return file
        except InvalidSpec:  # lines of other kinds may stand beside ours
            continue
        except NotAttested as error:
            reason = error
    if reason is None:
        raise InvalidSpec(f"{place}: {NOT_ONE}; {GIVE}")
    raise NotAttested(f"{clean(path, 200)}: {place} does not attest it: {reason}")


def beside(path: str | os.PathLike[str]) -> Path:
    """Where the attestation of a file stands, or of a folder."""
    given = Path(path)
    return given / f"results{SUFFIX}" if given.is_dir() else given.with_name(given.name + SUFFIX)


def _no_password() -> bytes:
    raise InvalidSpec("the private key is encrypted; give its password")
