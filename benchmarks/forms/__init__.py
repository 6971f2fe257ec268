"""The corpus of forms: mechanisms as authors write them, each with its claim and the truth beside what brackets say.

`python -m benchmarks forms` prints a line for each: what was decided, in how many CPU seconds, and the reasons where
nothing was. A verdict against the truth ends it with status 1.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import dpaudit
from benchmarks.forms.answers import ANSWERS
from benchmarks.forms.entry import BREAKS, KEEPS, Form
from benchmarks.forms.library import LIBRARY
from benchmarks.forms.noise import NOISE
from benchmarks.forms.records import RECORDS
from benchmarks.forms.selection import SELECTION
from benchmarks.forms.table import TABLE
from benchmarks.tables import print_table

__all__ = ["BREAKS", "COLLECTIONS", "FORMS", "KEEPS", "Decided", "Form", "decide", "run"]

COLLECTIONS = (TABLE, ANSWERS, SELECTION, RECORDS, NOISE, LIBRARY)
FORMS: tuple[Form, ...] = tuple(form for each in COLLECTIONS for form in each.forms)
RUNS, MOST_S = 20_000, 60.0  # of the audit where nothing else refuted a form that breaks; of one bracket
WORDS = ("proved", "refuted", "open", "error")


@dataclass(frozen=True, slots=True)
class Decided:
    """A word of `WORDS`, the CPU seconds it took, and the first reason where the claim was left open."""

    word: str
    seconds: float
    reason: str = ""

    def contradicts(self, form: Form) -> bool:
        """Whether this is against the truth."""
        return self.word == ("refuted" if form.truth == KEEPS else "proved")


def decide(form: Form, runs: int = RUNS) -> Decided:
    """What a bracket says of a form: first without an audit, then of one that breaks with `runs` of its pair."""
    started = time.process_time()
    found = _bracket(form, 0)
    if form.truth == BREAKS and form.pair is not None and found[0] == "open" and runs:
        found = _bracket(form, runs)
    return Decided(found[0], time.process_time() - started, found[1])


def _bracket(form: Form, runs: int) -> tuple[str, str]:
    pair = form.pair if form.adjacency not in ("up", "down") else None
    datasets = {} if form.domain is None else {"domain": form.domain, "neighbours": "all"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = dpaudit.bracket(
                form.function,
                form.claim,
                adjacency=form.adjacency,
                parameters=form.parameters,
                pair=pair,
                runs=runs,
                max_time_s=MOST_S,
                **datasets,
            )
        except dpaudit.DpAuditError as error:
            return "error", str(error)
    if found.refuted:
        return "refuted", ""
    return ("proved", "") if found.settled else ("open", "; ".join(found.reasons))


def run(quick: bool) -> None:
    """Prints one line for each form and the numbers of each kind; `quick` takes every fifth, without audits."""
    forms = FORMS[::5] if quick else FORMS
    table: dict[str, Decided] = {}
    rows = (_row(form, table, 0 if quick else RUNS) for form in forms)
    print_table("Forms", ("form", "kind", "truth", "verdict", "CPU s", "reason"), rows)
    counts = []
    for collection in COLLECTIONS:
        for truth in (KEEPS, BREAKS):
            words = [table[form.name].word for form in forms if (form.kind, form.truth) == (collection.kind, truth)]
            counts.append((collection.kind, truth, str(len(words)), *(str(words.count(word)) for word in WORDS)))
    for truth in (KEEPS, BREAKS):
        words = [table[form.name].word for form in forms if form.truth == truth]
        counts.append(("all", truth, str(len(words)), *(str(words.count(word)) for word in WORDS)))
    print_table("Forms decided", ("kind", "truth", "forms", *WORDS), counts)
    wrong = [form.name for form in forms if table[form.name].contradicts(form)]
    print(f"\nagainst the truth: {'; '.join(wrong) or 'none'}")
    if wrong:
        raise SystemExit(1)


def _row(form: Form, table: dict[str, Decided], runs: int) -> tuple[str, ...]:
    found = table[form.name] = decide(form, runs)
    said = "AGAINST THE TRUTH" if found.contradicts(form) else _line(found.reason)
    return form.name, form.kind, form.truth, found.word, f"{found.seconds:.2f}", said


def _line(reason: str, most: int = 160) -> str:
    line = " ".join(reason.replace("|", "/").split())
    return line if len(line) <= most else line[: most - 3] + "..."
