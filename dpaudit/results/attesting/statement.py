"""What an attestation says: an in-toto statement about stored files, a function of their bytes.

Source: in-toto attestation framework, version 1 (statement, resource descriptors, sets of digests).
Contract: what stands under a version of `PREDICATE` never changes; a further key is another version.
"""

import hashlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.errors import NotAttested
from dpaudit.results.result import AuditResult
from dpaudit.results.strict_json import LARGEST_SUITE, content_digest, parsed, text_in
from dpaudit.results.suite import SuiteResult
from dpaudit.results.wording.quoting import clean
from dpaudit.version import __version__

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
    raw: dict[str, Any]
    held: AuditResult | SuiteResult


def stored_file(path: str | os.PathLike[str]) -> StoredFile:
    """The result or suite at a path. Raises `InvalidSpec` as `load` does: what contradicts itself is not attested."""
    from dpaudit.results.stored.reading import CURE, GIVE, named
    from dpaudit.results.stored.suites import either_of

    with named(path):
        text = text_in(path, not_json=GIVE, largest=LARGEST_SUITE)
        raw = parsed(text, cure=CURE, not_json=GIVE)
        return StoredFile(Path(path).name, hashlib.sha256(text.encode()).hexdigest(), raw, either_of(raw))


def statement(files: Iterable[StoredFile], ledger: Head | None = None) -> dict[str, Any]:
    """The statement about some files, and a ledger's head: each file and each known source is a subject."""
    whole = list(files)
    subjects = [{"name": each.name, "digest": {"sha256": each.sha256}} for each in whole]
    sources = {
        (made["reference"] or made["name"], made["digest"])
        for each in whole
        for result in _results(each.raw)
        if (made := result["spec"]["mechanism"])["digest"]
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
        said = stated["predicate"]["files"].get(file.sha256)
        ledger = stated["predicate"].get("ledger")
        head = None if ledger is None else (int(ledger["rows"]), str(ledger["head"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise NotAttested("what is signed is no statement of this version about results") from None
    if file.sha256 not in subjects or said is None:
        raise NotAttested("its bytes are not those that were attested")
    if said != _said(file.raw):
        raise NotAttested("what is signed is not what it says")
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


def _results(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """The stored results of a file, one or those of a suite."""
    return [raw] if "spec" in raw else [each["result"] for each in raw["entries"] if each["result"] is not None]


def _said(raw: dict[str, Any]) -> dict[str, Any]:
    """What is told of a file: of a suite what became of each audit."""
    if "spec" in raw:
        return _result(raw)
    audits = [
        {**{key: each.get(key) for key in ENTRY}, "result": each["result"] and _result(each["result"])}
        for each in raw["entries"]
    ]
    return {"confidence": raw["confidence"], "exit_code": raw["exit_code"], "audits": audits}


def _result(raw: dict[str, Any]) -> dict[str, Any]:
    """What is told of a result: question, answer, counts, environment, and the digests of what is long or private."""
    return {
        "question": {key: raw["spec"][key] for key in QUESTION},
        "mechanism": {key: raw["spec"]["mechanism"][key] for key in MECHANISM},
        "witness": {key: raw["witness"][key] for key in EVENT},
        **{key: raw[key] for key in ANSWER if key in raw},
        "environment": {key: raw["provenance"][key] for key in ENVIRONMENT if key in raw["provenance"]},
        "digests": {key: content_digest(raw[key]) for key in DIGESTED if key in raw},
    }
