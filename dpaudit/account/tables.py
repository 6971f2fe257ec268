"""The numbers of a result as tables: enough of them to do the arithmetic again."""

from collections.abc import Callable
from dataclasses import dataclass

from dpaudit.account.findings import FOUND, KNOWN, SIMPLE, alone, could_see, meaning
from dpaudit.account.statements import certified, certified_bound, claimed, confidence, stamp, verdict_text
from dpaudit.account.suites import expected_text, until_text
from dpaudit.base.numerals import confidence_text, least_text, level_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, clean, standing
from dpaudit.base.validate import exact
from dpaudit.certify import Binned
from dpaudit.certify.certifiers import MASSES
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.suite import SuiteEntry, SuiteResult

MOST_ROWS = 60
COUNTS, CERTIFICATES = "Counts of fresh runs", "What the counts certify"
BINS, BETS, POWER_TABLE = "Counts bin by bin", "Bets of the blocks", "Power by event"
CHECKS, TRIED, CONTROLS, AUDITS = "Checks of the experiment", "What search looked at", "Controls", "All audits"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its title, what stands over the columns, rows of as many texts, and which columns hold numbers.

    `note` says what a reader must know about it; `left_out` counts the rows that were too many.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    note: str = ""
    left_out: int = 0


def tables(result: AuditResult) -> tuple[Table, ...]:
    """The tables of a result; those that would be empty are left out."""
    parts = (_counts, _certificates, _bins, _bets, _power, _checks, _controls, _tried)
    guarded = standing(lambda line: Table("A table", ("",), ((line,),)))
    return tuple(table for table in (guarded(make)(result) for make in parts) if table.rows)


def audits_table(suite: SuiteResult) -> Table:
    """One row an audit: what was claimed and certified, and whether it went as its author expects."""
    head = ("audit", "verdict", "expected", "claimed", "certified", "p-value", "Holm")
    rows = tuple(_row(entry, adjusted) for entry, adjusted in zip(suite.entries, suite.holm(), strict=True))
    return Table(AUDITS, head, rows, frozenset({3, 5, 6}))


def _row(entry: SuiteEntry, adjusted: float | None) -> tuple[str, ...]:
    holm = "" if adjusted is None else p_text(adjusted)
    expected = expected_text(entry)
    if entry.result is None:
        return clean(entry.name), "no verdict", expected, "", "", "", holm
    result = entry.result
    verdict = ", ".join(filter(None, (stamp(result), result.condition)))
    if entry.covered and entry.accepted is not None:
        verdict += f", {until_text(entry.accepted)}"
    p_value = p_text(result.certificate.p_value)
    return clean(entry.name), verdict, expected, claimed(result), certified(result), p_value, holm


def _listed(result: AuditResult) -> list[tuple[str, Finding, str]]:
    """Every certified finding with its number and Holm-adjusted p-value; without these a plain one and that on bits."""
    numbered = enumerate(zip((result.main, *result.others), result.holm, strict=True), start=1)
    rows = [(str(number), each, p_text(p_value)) for number, (each, p_value) in numbered]
    more = (("plain", result.plain), ("on bits", result.representation))
    return [*rows, *((name, each, "") for name, each in more if each is not None)]


def _counts(result: AuditResult) -> Table:
    rows = []
    for number, finding, _ in _listed(result):
        if isinstance(finding.evidence, Binned) or not finding.evidence.runs:
            continue
        pair = clean(result.spec["pairs"][finding.witness.pair]["name"])
        for name, (hits, runs) in finding.sides.items():
            rate = f"{hits / runs:.6g}" if runs else ""
            rows.append((number, pair, name, f"{hits:,}", f"{runs:,}", rate))
    head = ("finding", "pair", "dataset", "runs in the event", "all runs", "rate")
    return _cut(Table(COUNTS, head, tuple(rows), frozenset({3, 4, 5}), "Rates are estimates; only the counts certify."))


def _certificates(result: AuditResult) -> Table:
    head = ("finding", "event", "certified", "p-value", "Holm", "confidence", "verdict")
    rows = []
    for number, finding, adjusted in _listed(result):
        certificate = finding.certificate
        event, bound = clean(finding.witness.event, LONGEST_DATA), certified_bound(finding.claim, certificate)
        event += meaning(result) if finding.witness is result.witness else ""
        verdict = verdict_text(Verdict.REFUTED if certificate.refuted else Verdict.NOT_REFUTED)
        level, p_value = confidence_text(certificate.confidence), p_text(certificate.p_value)
        if finding is result.plain:  # a bound beside the witness, within it; no test of its own
            bound, p_value, verdict = alone(result), "", ""
        rows.append((number, event, bound, p_value, adjusted, level, verdict))
    note = "Each confidence is that of its own row. The verdict of the audit follows from the first."
    if result.others:
        note = (
            "Each confidence is that of its own row, before one looked; the one with the least p-value stands first, "
            f"and all that are numbered hold together at {confidence_text(confidence(result))}."
        )
    return _cut(Table(CERTIFICATES, head, tuple(rows), frozenset({3, 4, 5}), note))


def _bins(result: AuditResult) -> Table:
    e, event = result.evidence, result.witness.event
    if not isinstance(e, Binned):
        return Table(BINS, (), ())
    head = ("bin", f"runs on the {result.witness.p_side}", f"runs on the {result.witness.q_side}")
    names = [clean(each, LONGEST_DATA) for each in getattr(event, "bins", ())]
    rows = [(name, f"{p:,}", f"{q:,}") for name, p, q in zip(names, e.counts_p, e.counts_q, strict=True)]
    rows.append(("all runs", f"{e.runs_p:,}", f"{e.runs_q:,}"))
    note = "Bins stand in order of falling ratio; what none of them holds counts with the last."
    return Table(BINS, head, tuple(rows), frozenset({1, 2}), note)


def _bets(result: AuditResult) -> Table:
    head = ("block", "event", "likelier on", "hits there", "runs there", "hits on the other", "runs on the other")
    rows = []
    for number, block in enumerate(result.blocks, start=1):
        e = block.evidence
        counts = (f"{e.hits_p:,}", f"{e.runs_p:,}", f"{e.hits_q:,}", f"{e.runs_q:,}")
        rows.append((str(number), clean(block.event, LONGEST_DATA), block.p_side, *counts))
    return _cut(Table(BETS, head, tuple(rows), frozenset({0, 3, 4, 5, 6}), "Each bet was frozen before its block."))


def _power(result: AuditResult) -> Table:
    if not result.evidence.runs:
        return Table(POWER_TABLE, (), ())
    rows = []
    ways: list[tuple[str, Callable[[float], float | None]]] = [(KNOWN, result.least_caught)]
    if result.searching_runs:
        ways.insert(0, (FOUND, result.least_found))
    for mass in MASSES:
        losses = ("nothing" if least is None else least_text(least) for least in (way(mass) for _, way in ways))
        rows.append((exact(mass), *losses))
    least = f"least true {result.claim.parameter} that is refuted with power 0.95"
    head = ("probability of the event", *(f"{least}, {words}" for words, _ in ways))
    note = f"{could_see(result)[0]}; {FOUND}: {SIMPLE}"
    return Table(POWER_TABLE, head, tuple(rows), frozenset(range(len(head))), note)


def _checks(result: AuditResult) -> Table:
    rows = tuple((each.name, p_text(each.p_value), level_text(each.level)) for each in result.health.checks)
    note = "A p-value of at most its level would have ended the audit without a verdict."
    return Table(CHECKS, ("check", "p-value", "level"), rows, frozenset({1, 2}), note)


def _controls(result: AuditResult) -> Table:
    head = ("place", "probability", "rarer", f"leak in {result.claim.parameter}", "caught", "of audits", "needed")
    rows = []
    for each in result.controls:
        counts = map(str, (each.caught, each.repeats, each.needed))
        rows.append((each.place, exact(each.mass), f"{each.rarer:.3g}", f"{each.loss:.4g}", *counts))
    return Table(CONTROLS, head, tuple(rows), frozenset(range(1, 7)))


def _tried(result: AuditResult) -> Table:
    rows = tuple(
        (
            clean(each.what),
            clean(each.name, LONGEST_DATA),
            clean(each.status, LONGEST_DATA),
            "" if each.score is None else f"{each.score:.4g}",
            f"{each.runs:,}" if each.runs else "",
        )
        for each in result.explored
    )
    note = "Scores are guesses from search runs: they chose the witness and certify nothing."
    return _cut(Table(TRIED, ("what", "name", "what became of it", "score", "runs"), rows, frozenset({3, 4}), note))


def _cut(table: Table) -> Table:
    """The table with as many rows as a page can hold."""
    left = max(0, len(table.rows) - MOST_ROWS)
    return Table(table.title, table.head, table.rows[:MOST_ROWS], table.numbers, table.note, left)
