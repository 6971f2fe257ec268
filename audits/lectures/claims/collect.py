"""What the page is made of: the statements by topic, and the results of the audits by name."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import dpaudit
from audits.lectures.claims.items import NOTES
from audits.lectures.claims.statement import Statement, Truth
from audits.lectures.claims.tightness import ENOUGH, reached
from dpaudit.catalogue import Entry, rooms
from dpaudit.catalogue.attacks import ATTACKS, achieves, allowed

ROOT = Path(__file__).parents[3]
SPECS = ROOT / "audits" / "lectures"
SCHEMA = "dpaudit.lectures/1"  # of the page's own record, which may lie among the results
SEED = 0  # of the runs that measure an attack
TOPICS = (
    "definitions",
    "conversions",
    "examples",
    "knowledge",
    "adversary",
    "additive",
    "selection",
    "utility",
    "sparse",
    "composition",
    "releases",
    "attacks",
    "learning",
    "descent",
    "adaptive",
    "holdout",
    "remarks",
)

Results = Mapping[str, dpaudit.AuditResult]


@dataclass(frozen=True, slots=True)
class Checked:
    """A statement with what its check found, the results of its audits, and where the check stands."""

    statement: Statement
    truth: Truth
    results: tuple[dpaudit.AuditResult, ...]
    missing: tuple[str, ...]
    file: str
    line: int

    @property
    def reached(self) -> float | None:
        """The part of what is promised that the check shows to be reached; None where it was not tested."""
        return reached(self.statement.name, self.truth.numbers)

    @property
    def tight_as_said(self) -> bool:
        """Whether it is called tight just where a number shows it."""
        shown = self.reached is not None and self.reached >= ENOUGH
        return (self.truth.verdict == "right and tight") == shown

    @property
    def as_known(self) -> bool:
        """Whether the check found what is known, tight where that is shown, and every audit named was run."""
        return self.truth.verdict == self.statement.verdict and self.tight_as_said and not self.missing

    @property
    def lectures(self) -> tuple[str, ...]:
        """The notes that make the statement, by number."""
        return tuple(notes for notes in NOTES if notes in self.statement.place)


@dataclass(frozen=True, slots=True)
class Audited:
    """One mechanism of the catalogue and the results of its audits."""

    entry: Entry
    results: tuple[dpaudit.AuditResult, ...]

    def exact(self, result: dpaudit.AuditResult) -> float | None:
        """The exact loss of the audited pair, where the entry knows it and the claim is the entry's own."""
        (pair,) = result.spec["pairs"]
        entry = self.entry.with_parameters(result.spec["mechanism"]["parameters"])
        own, asked = ({**claim, "relation": None} for claim in (entry.claim().to_dict(), result.spec["claim"]))
        first, second = (pair[side].get("value") for side in ("first", "second"))
        if first is None or second is None or own != asked:  # a record keeps no large data
            return None
        return entry.true_loss(first, second)


def topics() -> dict[str, tuple[Statement, ...]]:
    """The statements by topic: the first line of a module's docstring, and its `STATEMENTS`."""
    modules = [importlib.import_module(f"audits.lectures.claims.{topic}") for topic in TOPICS]
    return {str(module.__doc__).splitlines()[0].rstrip("."): module.STATEMENTS for module in modules}


def checked(statement: Statement, results: Results) -> Checked:
    """Runs the check of a statement and gathers its audits."""
    place = inspect.getsourcefile(statement.check)
    assert place is not None
    return Checked(
        statement,
        statement.check(),
        tuple(results[name] for name in statement.audits if name in results),
        tuple(name for name in statement.audits if name not in results),
        str(Path(place).relative_to(ROOT)),
        inspect.getsourcelines(statement.check)[1],
    )


def audited(results: Results) -> dict[str, list[Audited]]:
    """The mechanisms of the catalogue by room, twins after their parents, each with its results."""
    by_reference: dict[str, list[dpaudit.AuditResult]] = {}
    for result in results.values():
        by_reference.setdefault(result.spec["mechanism"]["reference"], []).append(result)
    return {
        room: [
            Audited(each, tuple(by_reference.get(each.reference, ())))
            for entry in entries
            for each in (entry, *entry.twins.values())
        ]
        for room, entries in rooms().items()
    }


def results_in(folder: Path) -> dict[str, dpaudit.AuditResult]:
    """The results that a folder holds, by the name of the audit; raises `InvalidSpec` for one that does not check."""
    return {result.name: result for result in map(dpaudit.load, paths_in(folder))}


def records_in(folder: Path, beside: Path) -> dict[str, str]:
    """Links to the same results from a page, by the name of the audit: to the HTML of a result where there is one."""
    found = {}
    for path in paths_in(folder):
        page = path.with_suffix(".html")
        link = Path(os.path.relpath(page if page.exists() else path, beside.parent)).as_posix()
        found[json.loads(path.read_text(encoding="utf-8"))["spec"]["name"]] = quote(link)
    return found


def paths_in(folder: Path) -> list[Path]:
    """The records of results in a folder, not that of a suite or a page; of one audit the newest comes last."""
    paths = [path for path in folder.glob("*.json") if path.name != "suite.json" and not _is_record(path)]
    return sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name))


def _is_record(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["schema"] == SCHEMA)
    except (OSError, ValueError, LookupError, TypeError):
        return False  # whoever reads it as a result will say what is wrong


def unexpected(results: Results) -> dict[str, str]:
    """The audits of the specs that did not end as these expect, by name: what was expected and what there is."""
    files = (tomllib.loads(path.read_text("utf-8")) for path in sorted(SPECS.glob("*.toml")))
    written = [table for file in files for table in file.get("audit", [])]
    found: dict[str, str] = {}
    for name, expect in ((table["name"], table.get("expect", "not-refuted")) for table in written):
        verdict = f"found {results[name].verdict.value.lower().replace('_', '-')}" if name in results else "was not run"
        if verdict != f"found {expect}":
            found[name] = f"expected {expect}, {verdict}"
    return found


def attacks() -> list[dict[str, object]]:
    """Each attack: its advantage on the release without DP, on the same one with DP, and the most that DP allows."""
    found: list[dict[str, object]] = []
    for attack in ATTACKS:
        claim = attack.private.claim()
        epsilon, delta = claim.epsilon_at(claim.delta), claim.delta
        without, private = (achieves(attack, entry, attack.runs, SEED) for entry in (attack.without, attack.private))
        found.append(
            {
                "name": attack.name,
                "title": attack.title,
                "formula": attack.formula,
                "source": attack.source.lecture or attack.source.paper,
                "without": without.advantage,
                "private": private.advantage,
                "allowed": allowed(epsilon, delta),
                "claim": str(claim),
                "runs": attack.runs,
            }
        )
    return found
