"""Attestations in files: one envelope a line, beside the results that they are about."""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.base.files import read_bytes
from dpaudit.base.installed import lacking
from dpaudit.base.quoting import clean
from dpaudit.base.strict import LARGEST_SUITE, JsonObject, content_digest, parsed, text_in
from dpaudit.errors import InvalidSpec, NotAttested
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.version import __version__

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from securesystemslib.signer import CryptoSigner, SSlibKey


STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:uuid:60d5a809-d9f4-4bd4-894a-b0284cd610be#dpaudit-result/v1"  # a name that needs no domain
SOURCE = "dpaudit_source_v1"  # of a mechanism: the first 16 hex digits of the SHA-256 of its source
QUESTION = ("name", "claim", "runs", "confidence", "seed", "stopping", "certifier", "hash")
ANSWER = (  # so far as a file has it
    *("verdict", "evidence", "certificate", "runs_used", "ceiling", "reproducible", "health"),
    *("adjacency", "unseen", "unpaired", "unread", "milestones"),
)
EVENT = ("pair", "event_in_words", "p_side", "tangent")
MECHANISM = ("name", "reference", "digest")
ENTRY = ("name", "expect", "as_expected", "accepted", "exit_code", "error")
ENVIRONMENT = (
    *("version", "python", "numpy", "scipy", "joblib", "statsmodels", "platform", "backend", "isolation", "commit"),
)
DIGESTED = ("spec", "witness", "histogram", "provenance")


Head = tuple[int, str]  # of the chain of a ledger: how many results it holds, and the hash of the last


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A result or a suite in a file: its name, the SHA-256 of its bytes, its JSON, and what that says."""

    name: str
    sha256: str
    raw: JsonObject
    held: AuditResult | SuiteResult


def stored_file(path: str | os.PathLike[str]) -> StoredFile:
    """The result or suite at a path. Raises `InvalidSpec` as `load` does: what contradicts itself is not attested."""
    from dpaudit.results.stored.reading import CURE, GIVE, either_of, named

    with named(path):
        text = text_in(path, not_json=GIVE, largest=LARGEST_SUITE)
        raw = parsed(text, cure=CURE, not_json=GIVE)
        return StoredFile(Path(path).name, hashlib.sha256(text.encode()).hexdigest(), raw, either_of(raw))


def statement(files: Iterable[StoredFile], ledger: Head | None = None) -> JsonObject:
    """The statement about some files, and a ledger's head: each file and each known source is a subject."""
    whole = list(files)
    subjects = [{"name": each.name, "digest": {"sha256": each.sha256}} for each in whole]
    sources = {
        (mechanism["reference"] or mechanism["name"], mechanism["digest"])
        for each in whole
        for result in _results(each.raw)
        if (mechanism := result["spec"]["mechanism"])["digest"]
    }
    return {
        "_type": STATEMENT,
        "subject": [*subjects, *({"name": name, "digest": {SOURCE: digest}} for name, digest in sorted(sources))],
        "predicateType": PREDICATE,
        "predicate": {
            "dpaudit": __version__,
            "files": {each.sha256: _said(each.raw) for each in whole},
            **({} if ledger is None else {"ledger": {"rows": ledger[0], "head": ledger[1]}}),
        },
    }


def check_statement(stated: Any, file: StoredFile, here: Collection[str] = ()) -> Head | None:
    """The head of a ledger in a statement, where there is one.

    Raises `NotAttested` where the statement is none of ours, or says something else than the file, or is about further
    ones than those `here` (their SHA-256), if any are.
    """
    if not isinstance(stated, dict) or stated.get("_type") != STATEMENT or stated.get("predicateType") != PREDICATE:
        raise NotAttested("what is signed is no statement of this version about results")
    try:
        subjects = {each["digest"].get("sha256"): str(each["name"]) for each in stated["subject"]}
        subject = stated["predicate"]["files"].get(file.sha256)
        ledger = stated["predicate"].get("ledger")
        head = None if ledger is None else (int(ledger["rows"]), str(ledger["head"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise NotAttested("what is signed is no statement of this version about results") from None
    if file.sha256 not in subjects or subject is None:
        raise NotAttested("the file is not the one that was signed, byte for byte")
    if subject != _said(file.raw):
        raise NotAttested("the signed statement says something else than the file")
    if missing := sorted(name for digest, name in subjects.items() if here and digest not in (None, *here)):
        raise NotAttested(f"{clean(missing[0], 200)} was attested with it, and is not here as it was then")
    return head


def names_in(stated: Any) -> set[tuple[str, str]]:
    """The names of the files that a statement is about, each with the SHA-256 of its bytes."""
    try:
        return {
            (str(each["name"]), each["digest"]["sha256"]) for each in stated["subject"] if "sha256" in each["digest"]
        }
    except (KeyError, TypeError):  # of another kind
        return set()


def _results(raw: JsonObject) -> list[JsonObject]:
    """The stored results of a file, one or those of a suite."""
    return [raw] if "spec" in raw else [each["result"] for each in raw["entries"] if each["result"] is not None]


def _said(raw: JsonObject) -> JsonObject:
    """The statement about a file; of a suite, about each audit."""
    if "spec" in raw:
        return _result(raw)
    audits = [
        {**{key: each.get(key) for key in ENTRY}, "result": each["result"] and _result(each["result"])}
        for each in raw["entries"]
    ]
    return {"confidence": raw["confidence"], "exit_code": raw["exit_code"], "audits": audits}


def _result(raw: JsonObject) -> JsonObject:
    """The statement about a result: question, answer, counts, environment, and digests of what is long or private."""
    return {
        "question": {key: raw["spec"][key] for key in QUESTION},
        "mechanism": {key: raw["spec"]["mechanism"][key] for key in MECHANISM},
        "witness": {key: raw["witness"][key] for key in EVENT},
        **{key: raw[key] for key in ANSWER if key in raw},
        "environment": {key: raw["provenance"][key] for key in ENVIRONMENT if key in raw["provenance"]},
        "digests": {key: content_digest(raw[key]) for key in DIGESTED if key in raw},
    }


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


def signed(statement: JsonObject, by: "CryptoSigner") -> str:
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
                result = check_statement(each, file, here)
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
        yield replace(file, name=file.name if file.name in same else same[0]), result


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


def attestation_path(path: str | os.PathLike[str]) -> Path:
    """Where the attestation of a file stands, or of a folder."""
    given = Path(path)
    return given / f"results{SUFFIX}" if given.is_dir() else given.with_name(given.name + SUFFIX)


def _no_password() -> bytes:
    raise InvalidSpec("the private key is encrypted; give its password")
