"""Where the quotations stand in the notes: each in one place of one lecturer, its parts in the order of the notes.

`python -m audits.lectures.claims.quotations FOLDER` looks for all of them in the texts of the notes, which are not part
of the project, and writes their places to `quotations.json`; the tests hold the page to that file.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from audits.lectures.claims.items import NOTES
from audits.lectures.claims.statement import Statement

FILE = Path(__file__).with_name("quotations.json")
LEFT_OUT = re.compile(r"\s*\.\.\.\s*")
SIGNS = {"∈": r"\in", "≥": r"\ge", "≤": r"\le", "\N{SCRIPT SMALL L}": r"\ell"}
GREEK = re.compile(r"GREEK (?:SMALL LETTER |CAPITAL LETTER |LUNATE )(\w+)")
CUT = {
    "arepsilon": "epsilon",
    "rac": "frac",
    "pprox": "approx",
    "extbf": "",
    "au": "tau",
}  # commands without their ends


def plain(text: str) -> str:
    """The letters and signs of a text alone: what extraction and typesetting make differ is left out.

    >>> plain(r"For small $\\varepsilon \\leq 1$ ▶ *so*") == plain("for small ε≤ 1 so")
    True
    """
    for sign in {sign for sign in text if not sign.isascii()}:
        letter = GREEK.match(unicodedata.name(sign, ""))
        text = text.replace(sign, f"\\{letter[1].lower()}" if letter else SIGNS.get(sign, sign))
    text = re.sub(r"</?u>|\\(var(?=epsilon)|left|right|[bB]ig|quad|mathbf|textbf|boldsymbol|text|mathsf)", r"\\", text)
    text = re.sub(r"\\(le|ge)q\b", r"\\\1", text)
    text = re.sub(rf"(?<![a-z])({'|'.join(CUT)})(?![a-z])", lambda cut: CUT[cut[0]], text)
    return re.sub(r"[^a-z0-9<>=+/|_^]", "", text.lower())


def digest(words: str) -> str:
    """What the file knows a quotation by."""
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def said(statements: Iterable[Statement]) -> Iterator[tuple[str, str, str]]:
    """Each quotation of the statements: the name, the words, and where it says that they stand."""
    for each in statements:
        yield from ((each.name, words, place) for words, place in each.quotations)
        if each.context:
            yield each.name, each.context, each.place


def found(words: str, place: str, texts: Mapping[str, str]) -> tuple[str, list[int]] | None:
    """The notes that have all parts of a quotation in their order, of those that its place names, and where."""
    parts = [plain(part) for part in LEFT_OUT.split(words) if plain(part)]
    for notes in (each for each in texts if each in place):
        at: list[int] = []
        for part in parts:
            start = texts[notes].find(part, at[-1] + 1 if at else 0)
            if start < 0:
                break
            at.append(start)
        if len(at) == len(parts):
            return notes, at
    return None


def main(folder: str, statements: Sequence[Statement]) -> int:
    """Writes the file; 1 where a quotation is nowhere."""
    texts = {notes: plain(next(Path(folder).glob(f"{notes}*.txt")).read_text(encoding="utf-8")) for notes in NOTES}
    table, lost = {}, 0
    for name, words, place in said(statements):
        where = found(words, place, texts)
        if where is None:
            lost += 1
            print(f"{name}: not in one place of the notes: {words}")
        else:
            table[digest(words)] = {"statement": name, "notes": where[0], "at": where[1]}
    FILE.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    return int(lost > 0)


if __name__ == "__main__":
    from audits.lectures.claims.collect import topics

    raise SystemExit(main(sys.argv[1], [each for statements in topics().values() for each in statements]))
