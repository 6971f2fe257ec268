"""Attestations in files: one envelope a line, beside the results that they are about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InvalidSpec, NotAttested
from dpaudit.results.attesting.envelope import NOT_ONE, opened, public_key, signed, signer
from dpaudit.results.attesting.statement import Head, StoredFile, check_statement, statement, stored_file
from dpaudit.results.files import read_bytes
from dpaudit.results.strict_json import LARGEST_SUITE, parsed
from dpaudit.results.wording.quoting import clean

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

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
        yield file, found


def _stated(line: str, by: SSlibKey) -> Any:
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
