"""The numbers of a result as tables: enough of them to do the arithmetic again."""

from collections.abc import Callable, Sequence

from dpaudit.account.section import Table
from dpaudit.account.statements import alone, certified_bound, confidence, meaning, verdict_text
from dpaudit.base.numerals import confidence_text, level_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.certify import Binned
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, Finding

MOST_ROWS = 60
Contents = tuple[tuple[str, ...], Sequence[tuple[str, ...]], set[int], str]  # head, rows, columns of numbers, note


def _listed(result: AuditResult) -> list[tuple[str, Finding, str]]:
    """Every certified finding with its number and Holm-adjusted p-value; without these a plain one and that on bits."""
    numbered = enumerate(zip((result.main, *result.others), result.holm, strict=True), start=1)
    rows = [(str(number), each, p_text(p_value)) for number, (each, p_value) in numbered]
    more = (("plain", result.plain), ("on bits", result.representation))
    return [*rows, *((name, each, "") for name, each in more if each is not None)]


def _counts(result: AuditResult) -> Contents:
    rows = []
    for number, finding, _ in _listed(result):
        if isinstance(finding.evidence, Binned) or not finding.evidence.runs:
            continue
        pair = clean(result.spec["pairs"][finding.witness.pair]["name"])
        for name, (hits, runs) in finding.sides.items():
            rate = f"{hits / runs:.6g}" if runs else ""
            rows.append((number, pair, name, f"{hits:,}", f"{runs:,}", rate))
    head = ("finding", "pair", "dataset", "runs in the event", "all runs", "rate")
    return head, rows, {3, 4, 5}, "Rates are estimates; only the counts certify."


def _certificates(result: AuditResult) -> Contents:
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
            "Each confidence is that of its own row alone; the one with the least p-value stands first, "
            f"and all that are numbered hold together at {confidence_text(confidence(result))}."
        )
    return head, rows, {3, 4, 5}, note


def _bets(result: AuditResult) -> Contents:
    head = ("block", "event", "likelier on", "hits there", "runs there", "hits on the other", "runs on the other")
    rows = []
    for number, block in enumerate(result.blocks, start=1):
        e = block.evidence
        counts = (f"{e.hits_p:,}", f"{e.runs_p:,}", f"{e.hits_q:,}", f"{e.runs_q:,}")
        rows.append((str(number), clean(block.event, LONGEST_DATA), block.p_side, *counts))
    return head, rows, {0, 3, 4, 5, 6}, "Each bet was frozen before its block."


def _checks(result: AuditResult) -> Contents:
    rows = [(each.name, p_text(each.p_value), level_text(each.level)) for each in result.health.checks]
    note = "A p-value of at most its level would have ended the audit without a verdict."
    return ("check", "p-value", "level"), rows, {1, 2}, note


CONTENTS: dict[str, Callable[[AuditResult], Contents]] = {
    "counts of fresh runs": _counts,
    "what the counts certify": _certificates,
    "bets of the blocks": _bets,
    "checks of the experiment": _checks,
}


def table(title: str, result: AuditResult) -> Table:
    """The table of this title, of `CONTENTS`, with as many rows as a page can hold."""
    head, rows, numbers, note = CONTENTS[title](result)
    left = max(0, len(rows) - MOST_ROWS)
    return Table(title, head, tuple(rows[:MOST_ROWS]), frozenset(numbers), note, left)
