"""`dpaudit check`: a stored proof doubted from end to end, by judgements that the search for it does not share."""

import click

from dpaudit.cli.options import one_line, show


@click.command("check")
@click.argument("certificate", type=click.Path(), metavar="CERT")
def command(certificate: str) -> int:
    """Check the proof in CERT and say what it shows, for which inputs, and which obligations were discharged.

    The program is read from the certificate, never run. Exit codes: 0 accepted, 1 rejected, 2 not a proof at all. An
    accepted proof bounds the loss by its cost; where that is above the claim the claim is open, and the code 3.
    """
    from dpaudit.verify.checker import check
    from dpaudit.verify.stored import load

    checked = check(load(certificate))
    lines = [f"accepted: {checked.statement}"]
    if checked.claim is not None:
        keeps = "the claim holds" if checked.keeps_claim else "the cost is above it for some parameters of the scope"
        lines.append(f"claim     {checked.claim}: {keeps}")
    lines.append(f"for       {checked.scope}")
    lines.append(f"assumed   {'; '.join(checked.assumptions)}")
    lines.append(f"shown     {len(checked.obligations)} obligations:")
    lines += [f"          {obligation}" for obligation in checked.obligations]
    for line in lines:
        show(line[:10] + one_line(line[10:]))
    return 3 if checked.keeps_claim is False else 0
