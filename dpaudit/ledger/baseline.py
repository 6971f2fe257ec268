"""The file of accepted findings: written to be read in a diff, read strictly, and compared with a suite.

A finding is matched by its fingerprint. An acceptance that has expired covers nothing, and makes a suite fail.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, get_type_hints

from dpaudit.base.files import NoSuchFile, write_text
from dpaudit.base.quoting import clean
from dpaudit.base.strict import read_toml
from dpaudit.errors import InvalidSpec
from dpaudit.results.result import AuditResult, fingerprint
from dpaudit.results.suite import Acceptance, Reviewed, SuiteEntry

DEFAULT = "dpaudit-accepted.toml"
SCHEMA = "dpaudit.accepted/1"
LARGEST = 2**22  # bytes; thousands of findings
LONGEST_REASON = 2000
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
HEAD = (
    "# Findings of dpaudit that somebody reviewed and answers for, until the day that is named.",
    '# Written by "dpaudit accept"; look at every change of this file as at a change of the code.',
    "# Written anew each time: give reasons as values, comments are not kept.",
)
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
KEYS = tuple(field.name for field in fields(Acceptance))


def read_baseline(path: str | os.PathLike[str], *, missing_ok: bool = False) -> tuple[Acceptance, ...]:
    """The accepted findings of a file, expired ones too; with `missing_ok` none where there is no file.

    Raises `InvalidSpec` where there is no such file, or anything in it is not as `write_baseline` writes it.
    """
    shown = clean(path, 200)
    try:
        content = read_toml(path, largest=LARGEST, dates=True)
    except NoSuchFile:
        if missing_ok:
            return ()
        raise
    if content.get("schema") != SCHEMA:
        raise InvalidSpec(f"{shown}: schema must be {SCHEMA!r}, got {clean(repr(content.get('schema')))}")
    unknown = sorted(set(content) - {"schema", "finding"})
    if unknown:
        raise InvalidSpec(f"{shown}: unknown key {clean(unknown[0])!r}; there are schema and [[finding]]")
    tables = content.get("finding", [])
    if not isinstance(tables, list):
        raise InvalidSpec(f"{shown}: finding must be an array of tables, [[finding]]")
    read = tuple(_acceptance(table, f"{shown}: finding {number}") for number, table in enumerate(tables, start=1))
    seen: set[str] = set()
    for number, acceptance in enumerate(read, start=1):
        if acceptance.fingerprint in seen:
            raise InvalidSpec(f"{shown}: finding {number}: {acceptance.fingerprint} stands here twice; keep one")
        seen.add(acceptance.fingerprint)
    return read


def write_baseline(path: str | os.PathLike[str], acceptances: Sequence[Acceptance]) -> Path:
    """Writes the file whole or not at all, sorted by finding and fingerprint; `read_baseline` reads it back exactly."""
    ordered = sorted(acceptances, key=lambda each: (each.finding, each.fingerprint))
    blocks = ["\n".join((*HEAD, f"schema = {quoted(SCHEMA)}"))]
    for each in ordered:
        lines = ["[[finding]]"]
        for key in KEYS:
            value = getattr(each, key)
            lines.append(f"{key} = {value.isoformat() if isinstance(value, date) else quoted(value)}")
        blocks.append("\n".join(lines))
    return write_text(path, "\n\n".join(blocks) + "\n")


def accept(
    result: AuditResult, *, reason: str, until: date, today: date, representation: bool | None = None
) -> Acceptance:
    """The acceptance of a result's finding; of the one on bits where that is all that was refuted, or asked for.

    Raises `InvalidSpec` where nothing is refuted, the reason is empty, or the day is over.
    """
    bits = not result.refuted and result.representation_refuted
    chosen = bits if representation is None else representation
    refuted = result.representation_refuted if chosen else result.refuted
    name = clean(result.name)
    if not refuted:
        raise InvalidSpec(f"{name}: not refuted, so there is no finding to accept")
    kind = "; representation" if chosen else ""
    acceptance = Acceptance(fingerprint(result, representation=chosen), f"{name}{kind}", reason.strip(), today, until)
    if until < today:
        raise InvalidSpec(f"--until {until.isoformat()} is in the past; give a day from {today.isoformat()} on")
    return _checked(acceptance, "--reason")


def merged(acceptances: Sequence[Acceptance], new: Acceptance) -> tuple[tuple[Acceptance, ...], Acceptance | None]:
    """The acceptances with the new one in the place of the one with its fingerprint, and that one, if there was one."""
    before = next((each for each in acceptances if each.fingerprint == new.fingerprint), None)
    return (*(each for each in acceptances if each is not before), new), before


def review(
    entries: Sequence[SuiteEntry], acceptances: Sequence[Acceptance], today: date
) -> tuple[tuple[SuiteEntry, ...], tuple[Reviewed, ...]]:
    """The entries with the acceptances that cover them that day, and what became of every acceptance.

    Only a refuted entry is covered, and only by an acceptance that has not expired. The bits of floating-point
    outputs are a finding of their own: an acceptance of it matches, and covers no verdict.
    """
    by_print = {each.fingerprint: each for each in acceptances}
    matched: set[str] = set()
    reviewed = []
    for entry in entries:
        result, covering = entry.result, None
        if result is not None and result.refuted:
            covering = by_print.get(fingerprint(result))
        if covering is not None:
            matched.add(covering.fingerprint)
        if result is not None and result.representation_refuted:
            matched.add(fingerprint(result, representation=True))
        reviewed.append(replace(entry, accepted=None if covering is None or covering.expired(today) else covering))
    judged = tuple(Reviewed(each, each.expired(today), each.fingerprint in matched) for each in acceptances)
    return tuple(reviewed), judged


def quoted(text: str) -> str:
    r"""A basic string of TOML that hides nothing: control, bidirectional and invisible characters as escapes.

    >>> print(quoted('say "no"\x1b\u202e'))
    "say \"no\"\u001B\u202E"
    """

    def written(character: str) -> str:
        code = f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"
        return ESCAPES.get(character, character if character.isprintable() else code)

    return f'"{"".join(map(written, text))}"'


def _acceptance(table: Any, place: str) -> Acceptance:
    if not isinstance(table, dict) or set(table) != set(KEYS):
        raise InvalidSpec(f"{place}: it must have the keys {', '.join(KEYS)}, and no other")
    for key, kind in get_type_hints(Acceptance).items():
        if not isinstance(table[key], kind) or isinstance(table[key], datetime):
            what = "a text" if kind is str else "a day, as 2026-03-01"
            raise InvalidSpec(f"{place}: {key} must be {what}, got {clean(repr(table[key]))}")
    return _checked(Acceptance(**table), f"{place}: reason")


def _checked(acceptance: Acceptance, place: str) -> Acceptance:
    """Raises `InvalidSpec` for an acceptance that is incomplete or contradicts itself."""
    reason = acceptance.reason
    if not reason.strip():
        raise InvalidSpec(f"{place} must say why the finding is accepted, got nothing")
    if len(reason) > LONGEST_REASON:
        raise InvalidSpec(f"{place} must have at most {LONGEST_REASON:,} characters, got {len(reason):,}")
    if not FINGERPRINT.fullmatch(acceptance.fingerprint):
        got = clean(repr(acceptance.fingerprint))
        raise InvalidSpec(f"{place}: its fingerprint must be 16 hexadecimal digits, got {got}")
    if acceptance.until < acceptance.accepted:
        days = f"{acceptance.until.isoformat()} is before {acceptance.accepted.isoformat()}"
        raise InvalidSpec(f"{place}: until {days}, the day it was accepted")
    try:
        f"{reason}{acceptance.finding}".encode()
    except UnicodeEncodeError:
        raise InvalidSpec(f"{place} must be text that can be written as UTF-8, got {clean(repr(reason))}") from None
    return acceptance
