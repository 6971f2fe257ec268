"""Results in the ledger: recorded once and whole, found by name, reference, fingerprint, subject or commit."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, get_type_hints

from dpaudit.base.quoting import clean
from dpaudit.base.strict import spec_hash
from dpaudit.ledger.database import LAST_LINK, START, Chain, Database, Head, LedgerError, append_link, follow
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, fingerprint, subject

DIRTY = "-dirty"  # at the end of the commit of a tree that had changes


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """One recorded result without its content: what a history is made of.

    `run` and `number` say which run of which suite recorded it, and as which of its audits. `claimed`, `lower` are in
    the unit of the claim's own parameter, `epsilon_lower` an epsilon at `delta`. `mechanism` is the digest of the
    source, None where there is none; `pairs` that of the datasets; `representation` the fingerprint of a refuting
    finding on bits.
    """

    id: int
    run: str | None
    number: int | None
    recorded: str
    started: str | None
    name: str
    subject: str
    reference: str
    fingerprint: str
    representation: str | None
    spec_hash: str
    pairs: str
    mechanism: str | None
    commit: str | None
    version: str | None
    seed: int
    runs: int
    verdict: str
    claimed: float | None
    lower: float
    epsilon_lower: float | None
    delta: float
    confidence: float
    p_value: float


COLUMNS = tuple(field.name for field in fields(LedgerRecord))
TYPES = tuple(get_type_hints(LedgerRecord).items())
NOT_RECORDED = "ledger {}: result {}: not what was recorded; restore the ledger from a copy"
AGREES = """json_extract(content, '$.verdict') IS verdict AND json_extract(content, '$.spec.runs') IS runs AND
    (json_extract(content, '$.certificate.lower') IS 'inf' OR
    abs(json_extract(content, '$.certificate.lower') - lower) <= 1e-9 * (1 + abs(lower)))"""
SELECTED = ", ".join(f'"{name}"' for name in COLUMNS)


class Ledger(Database):
    """The results of a ledger file."""

    def record(self, result: AuditResult, *, run: str | None = None, number: int | None = None) -> int:
        """Records a result, on the disk when this returns; returns its id.

        A second time for the same `run` and `number` changes nothing and returns the same id. Raises `LedgerError`
        where another result stands there already, `LedgerWriteFailed` where the disk refuses.
        """
        values = _values(result, run, number)
        with self.transaction() as connection:
            if run is not None and number is not None:
                row = connection.execute(
                    "SELECT id, content FROM results WHERE run = ? AND number = ?", (run, number)
                ).fetchone()
                if row is not None:
                    if _evidence(row["content"]) != _evidence(values["content"]):
                        place = f"ledger {clean(self.path, 200)}: audit {number} of run {clean(run)}"
                        raise LedgerError(f"{place} has another result already; start a new run")
                    return int(row["id"])
            names = ", ".join(f'"{name}"' for name in values)
            marks = ", ".join("?" * len(values))
            cursor = connection.execute(f"INSERT INTO results ({names}) VALUES ({marks})", tuple(values.values()))
            assert cursor.lastrowid is not None
            append_link(connection, cursor.lastrowid)
            return cursor.lastrowid

    def head(self) -> Head:
        """How many results are chained, and the hash of the last link: what to write down to check them all later."""
        rows = self.rows(LAST_LINK) if self.version > 1 else []
        return (int(rows[0]["row"]), str(rows[0]["link"])) if rows else (0, START)

    def chain(self, head: Head | None = None) -> Chain:
        """What the chain of the results says, followed from the first; `head`: one that was written down before."""
        if self.version > 1:
            return follow(self.rows, head)
        return Chain() if head in (None, (0, START)) else Chain(wrong="there is none")

    def results(self, *, commit: str | None = None) -> list[LedgerRecord]:
        """The records in the order in which they were recorded.

        `commit` matches from its first digits on, and with "-dirty" those of a tree with changes.
        """
        if commit is None:
            return self._records([], [])
        digits = storable(commit).removesuffix(DIRTY)  # either side may have only the first ones
        tail = DIRTY if commit.endswith(DIRTY) else ""
        bare = f'substr("commit", 1, length("commit") - {len(tail)})'
        ends = f"\"commit\" LIKE '%{DIRTY}'" if tail else f"\"commit\" NOT LIKE '%{DIRTY}'"
        match = f"(substr({bare}, 1, length(?)) = ? OR substr(?, 1, length({bare})) = {bare})"
        return self._records([f"({ends} AND length({bare}) >= 4 AND {match})"], [digits, digits, digits])

    def find(self, mechanism: str) -> list[LedgerRecord]:
        """The records of what a person names: an audit, a mechanism's reference, or a fingerprint; in order.

        A name goes before a reference, and a reference before a fingerprint; empty where nothing matches. Raises
        `LedgerError` where what a table shows of a result is not what its content says.
        """
        agrees = f"CASE WHEN json_valid(content) THEN {AGREES} ELSE 0 END"
        for column in ("name", "reference", "fingerprint", "representation"):
            if records := self._records([f"{column} = ?"], [storable(mechanism)]):
                query = f"SELECT id FROM results WHERE {column} = ? AND NOT ({agrees}) ORDER BY id LIMIT 1"
                if wrong := self.rows(query, (storable(mechanism),)):
                    raise LedgerError(NOT_RECORDED.format(clean(self.path, 200), wrong[0]["id"]))
                return records
        return []

    def near(self, mechanism: str, most: int = 5) -> list[str]:
        """Names and references that hold the text, for a message to somebody who gave one that is not there."""
        part = storable(mechanism).lower()
        rows = self.rows("SELECT DISTINCT name, reference FROM results ORDER BY name")
        known = dict.fromkeys(text for row in rows for text in (row["name"], row["reference"]) if text)
        close = [text for text in known if part in text.lower()]
        return (close or list(known))[:most]

    def load(self, number: int | LedgerRecord) -> AuditResult:
        """The whole result of an id or a record, checked against its own counts as one read from a file.

        Raises `LedgerError` where there is none, or what stands there is not what was recorded.
        """
        from dpaudit.results.stored import loads

        wanted = number.id if isinstance(number, LedgerRecord) else number
        place = f"ledger {clean(self.path, 200)}: result {wanted}"
        rows = self.rows("SELECT content, digest FROM results WHERE id = ?", (wanted,))
        if not rows:
            raise LedgerError(f"{place}: there is none; give an id that the ledger holds")
        content = rows[0]["content"]
        if digest(content) != rows[0]["digest"]:
            raise LedgerError(NOT_RECORDED.format(clean(self.path, 200), wanted))
        return loads(content, place)

    def fail(self, name: str, error: str, exit_code: int, *, run: str, number: int) -> None:
        """Records that an audit of a run ended without a verdict, and why; the first reason for it stays."""
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO failures VALUES (?, ?, ?, ?, ?, ?)",
                (run, number, now(), storable(name), storable(error), exit_code),
            )

    def failure(self, run: str, number: int) -> tuple[str, int] | None:
        """Why an audit of a run ended without a verdict, and its exit code; None where it did not."""
        rows = self.rows("SELECT error, exit_code FROM failures WHERE run = ? AND number = ?", (run, number))
        return (rows[0]["error"], rows[0]["exit_code"]) if rows else None

    def of_run(self, run: str, number: int) -> LedgerRecord | None:
        """The record of an audit of a run; None where there is none."""
        return next(iter(self._records(["run = ?", "number = ?"], [run, number])), None)

    def _records(self, where: Sequence[str], values: Sequence[Any]) -> list[LedgerRecord]:
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        rows = self.rows(f"SELECT {SELECTED} FROM results{condition} ORDER BY id", values)
        return [self._record(dict(row)) for row in rows]

    def _record(self, row: dict[str, Any]) -> LedgerRecord:
        """A row as a record; a value of another type than was written is no record."""
        with suppress(TypeError, ValueError, LookupError):  # a column may have another name
            row["seed"] = int(row["seed"])
            Verdict(row["verdict"])
            if all(isinstance(row[name], kind) for name, kind in TYPES):
                return LedgerRecord(**row)
        raise LedgerError(NOT_RECORDED.format(clean(self.path, 200), row.get("id")))


def subject_text(subject: dict[str, Any]) -> str:
    """A subject as the ledger stores it: JSON with sorted keys."""
    return json.dumps(subject, sort_keys=True, separators=(",", ":"))


def storable(text: str) -> str:
    r"""A text as SQLite can hold it: halves of characters, which are none, as escapes.

    >>> storable("a\ud800b")
    'a\\ud800b'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def digest(content: str) -> str:
    """The SHA-256 of a stored content, which SQLite itself would not notice to have changed."""
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def now() -> str:
    """This moment in UTC, in seconds, as results write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _values(result: AuditResult, run: str | None, number: int | None) -> dict[str, Any]:
    spec, certificate = result.spec, result.certificate
    mechanism = spec["mechanism"]
    content = result.to_json()

    def recorded(key: str) -> str | None:
        value = result.provenance.get(key)
        return None if value is None else storable(str(value))

    return {
        **{name: getattr(certificate, name) for name in ("lower", "epsilon_lower", "delta", "p_value")},
        **{key: recorded(key) for key in ("started", "commit", "version")},
        "run": run,
        "number": number,
        "recorded": now(),
        "name": storable(result.name),
        "subject": subject_text(subject(spec)),
        "reference": storable(mechanism["reference"] or mechanism["name"]),
        "fingerprint": fingerprint(result),
        "representation": fingerprint(result, representation=True) if result.representation_refuted else None,
        "spec_hash": spec_hash(spec),
        "pairs": digest(json.dumps(spec["pairs"], sort_keys=True)),
        "mechanism": mechanism["digest"],
        "seed": str(spec["seed"]),
        "runs": spec["runs"],
        "verdict": result.verdict.value,
        "claimed": float(result.claim.promised(certificate.delta)),
        "confidence": float(spec["confidence"]),
        "content": content,
        "digest": digest(content),
    }


def _evidence(content: str) -> Any:
    """All of a stored result that two equal audits share."""
    return {key: value for key, value in json.loads(content).items() if key != "provenance"}
