"""`dpaudit accept`: a refutation that somebody reviewed and answers for, written into a file that is reviewed too."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.cli.options import chosen_ledger, show, writing
from dpaudit.errors import InvalidSpec

if TYPE_CHECKING:
    from dpaudit.results.result import AuditResult


@click.command("accept")
@click.argument("finding", metavar="FINDING")
@click.option("--reason", required=True, metavar="TEXT", help="Why this finding is accepted; people will read it.")
@click.option(
    "--until", required=True, metavar="DATE", help="The last day, as 2026-03-01; from then on it fails again."
)
@click.option(
    "--accepted",
    type=click.Path(),
    metavar="FILE",
    help="The file; otherwise that of [tool.dpaudit], or dpaudit-accepted.toml.",
)
@click.option("--ledger", metavar="FILE", help="Where fingerprints are looked up; otherwise as for dpaudit history.")
def command(finding: str, reason: str, until: str, accepted: str | None, ledger: str | None) -> int:
    """Accept FINDING, the file of a refuted result or a fingerprint in the ledger, for a reason and until a day.

    The finding is matched by its fingerprint (mechanism, claim, class of pair and event) and stays refuted in every
    report. When its last day is over, the audits fail again.
    """
    from dpaudit.account.suites import accepted_text
    from dpaudit.ledger.baseline import DEFAULT, accept, merged, read_baseline, write_baseline
    from dpaudit.spec.settings import read_settings

    try:
        last = date.fromisoformat(until)
    except ValueError:
        raise InvalidSpec(f"--until must be a day, as 2026-03-01, got {until!r}") from None
    result, bits = _found(finding, ledger)
    new = accept(result, reason=reason, until=last, today=date.today(), representation=bits)
    path = accepted if accepted is not None else read_settings(Path.cwd()).accepted or DEFAULT
    all_of_them, before = merged(read_baseline(path, missing_ok=True), new)
    with writing("--accepted", path):
        write_baseline(path, all_of_them)
    show(accepted_text(new, path, before))
    return 0


def _found(finding: str, ledger: str | None) -> "tuple[AuditResult, bool | None]":
    """The result, and whether its finding on bits is meant; None: whichever of the two is refuted."""
    from dpaudit.ledger.baseline import FINGERPRINT
    from dpaudit.ledger.results import Ledger
    from dpaudit.results.stored import load

    if not FINGERPRINT.fullmatch(finding) or Path(finding).exists():
        return load(finding), None
    with Ledger(chosen_ledger(ledger), read_only=True) as opened:
        records = [each for each in opened.find(finding) if finding in (each.fingerprint, each.representation)]
        if not records:
            raise InvalidSpec(f"{finding}: no finding of this fingerprint is in {opened.path}; give a result's file")
        latest = records[-1]
        return opened.load(latest), latest.fingerprint != finding
