"""`dpaudit history`, `compare` and `accept`: results over time, changes between two records, reviewed findings."""

from datetime import date
from pathlib import Path

import click

from dpaudit.account.change import comparison_lines
from dpaudit.account.suites import accepted_text
from dpaudit.base.files import writing
from dpaudit.base.quoting import clean
from dpaudit.cli.commands import AcceptCommand, CompareCommand, HistoryCommand
from dpaudit.cli.options import check_writable, chosen_ledger, say, show
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.baseline import DEFAULT, FINGERPRINT, accept, merged, read_baseline, write_baseline
from dpaudit.ledger.comparison import compare
from dpaudit.ledger.history import as_csv, as_json, as_table, history, names, read_side
from dpaudit.ledger.results import Ledger
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import load
from dpaudit.spec.settings import read_settings


def history_command(call: HistoryCommand) -> int:
    if call.figure is not None:
        if Path(call.figure).suffix.lower() not in (".svg", ".png", ".pdf"):
            raise InvalidSpec(f"--figure must end in .svg, .png or .pdf, got {call.figure}")
        check_writable("--figure", call.figure)
    with Ledger(chosen_ledger(call.ledger), read_only=True) as opened:
        points = history(opened, call.mechanism)
        chain = opened.chain()
    if call.figure is not None and len(names(points)) > 1:
        several = ", ".join(map(repr, names(points)))
        raise InvalidSpec(
            f"--figure draws one audit, and {call.mechanism} names {len(names(points))}: give one of {several}"
        )
    if chain.wrong is not None:
        say(f"note: ledger {clean(opened.path, 200)}: {chain.text}; restore it from a copy")
    click.echo({"table": as_table, "csv": as_csv, "json": as_json}[call.form](points))
    if call.figure is not None:
        from dpaudit.report.figures import history_drawing

        with writing("--figure", call.figure):
            history_drawing([point.to_dict() for point in points]).save(call.figure)
        say(f"figure: {call.figure}")
    return 0


def compare_command(call: CompareCommand) -> int:
    from dpaudit.cli.recheck import fresh_result

    where = chosen_ledger(call.ledger)
    (old_label, before), (new_label, after) = read_side(call.old, where), read_side(call.new, where)
    again = (lambda result: fresh_result(result, result.name, None, call.jobs, silent=True)) if call.rerun else None
    comparison = compare(before, after, old_label=old_label, new_label=new_label, again=again)
    for line in comparison_lines(comparison, call.fail_on):
        show(line)
    return comparison.exit_code(call.fail_on)


def accept_command(call: AcceptCommand) -> int:
    try:
        last = date.fromisoformat(call.until)
    except ValueError:
        raise InvalidSpec(f"--until must be a day, as 2026-03-01, got {call.until!r}") from None
    result, bits = _finding(call.finding, call.ledger)
    new = accept(result, reason=call.reason, until=last, today=date.today(), representation=bits)
    path = call.accepted if call.accepted is not None else read_settings(Path.cwd()).accepted or DEFAULT
    all_of_them, before = merged(read_baseline(path, missing_ok=True), new)
    with writing("--accepted", path):
        write_baseline(path, all_of_them)
    show(accepted_text(new, path, before))
    return 0


def _finding(finding: str, ledger: str | None) -> tuple[AuditResult, bool | None]:
    """The result, and whether its finding on bits is meant; None: whichever of the two is refuted."""
    if not FINGERPRINT.fullmatch(finding) or Path(finding).exists():
        return load(finding), None
    with Ledger(chosen_ledger(ledger), read_only=True) as opened:
        records = [each for each in opened.find(finding) if finding in (each.fingerprint, each.representation)]
        if not records:
            raise InvalidSpec(f"{finding}: no finding of this fingerprint is in {opened.path}; give a result's file")
        latest = records[-1]
        return opened.load(latest), latest.fingerprint != finding
