"""`dpaudit calibrate`: the tool measures its own rate of false refutations."""

import json
from typing import TYPE_CHECKING

import click

from dpaudit.cli.options import check_writable, writing
from dpaudit.errors import InvalidSpec

if TYPE_CHECKING:
    from dpaudit.auditing.calibration import CalibrationLine

HEADER = ("claim", "certifier", "stopping", "pairs", "refuted", "allowed", "rate, 95 % interval", "of the oracle")


@click.command("calibrate")
@click.option("--full", is_flag=True, help="2,000 audits a line, as before a release; 200 without it.")
@click.option("--repeats", type=int, metavar="N", help="Audits a line, instead.")
@click.option("--runs", type=int, metavar="N", help="Executions of each audit.")
@click.option("--form", "forms", multiple=True, metavar="NAME", help="Only lines of this claim form; may be repeated.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the first audit of a line.")
@click.option("--jobs", type=int, default=-1, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--json", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the lines as JSON too.")
def calibrate_command(
    full: bool, repeats: int | None, runs: int | None, forms: tuple[str, ...], seed: int, jobs: int, output: str | None
) -> int:
    """Audit mechanisms whose loss is exactly their claim, again and again, and count the refutations.

    Prints, for each claim form and certifier, the rate of false refutations at confidence 0.95 with its exact
    interval, and how much of the best possible bound is certified. Ends with 1 where a rate is above the stated
    one by more than chance explains (one time in a million a line).
    """
    from dpaudit.auditing.calibration import CONFIDENCE, FULL_REPEATS, REPEATS, RUNS, calibrate, cases
    from dpaudit.base import validate
    from dpaudit.base.files import write_text
    from dpaudit.options import FEWEST_RUNS

    number = FULL_REPEATS if full else REPEATS
    if repeats is not None:
        number = validate.whole("--repeats", repeats, least=1)
    size = RUNS if runs is None else validate.whole("--runs", runs, least=FEWEST_RUNS)
    known = tuple(dict.fromkeys(case.name for case in cases()))
    for form in forms:
        if form not in known:
            raise InvalidSpec(f"--form must be one of {'; '.join(known)}, got {form!r}")
    if output is not None:
        check_writable("--json", output)
    chosen = tuple(case for case in cases() if not forms or case.name in forms)
    click.echo(f"{number:,} whole audits a line, {size:,} runs each, at confidence {CONFIDENCE}, seed {seed}")
    lines: list[CalibrationLine] = []
    click.echo(_row(HEADER))
    for line in calibrate(chosen, repeats=number, runs=size, seed=validate.whole("--seed", seed, least=0), n_jobs=jobs):
        lines.append(line)
        click.echo(_row(_cells(line)))
    if output is not None:
        with writing("--json", output):
            write_text(output, json.dumps([line.to_dict() for line in lines], indent=1) + "\n")
    broken = [line for line in lines if not line.kept]
    if broken:
        worst = ", ".join(f"{line.case.name} ({line.case.certifier.name}, {line.case.stopping})" for line in broken)
        click.echo(f"NOT as stated: {worst}")
        return 1
    click.echo("every rate is as stated, as far as this many audits can tell")
    return 0


def _cells(line: "CalibrationLine") -> tuple[str, ...]:
    case, (low, high) = line.case, line.interval
    return (
        case.name,
        case.certifier.name,
        case.stopping,
        str(case.pairs),
        f"{line.refuted:,} of {line.repeats:,}" + (f" ({line.unsound} without verdict)" if line.unsound else ""),
        f"{line.allowed:,}",
        f"{low:.4f} to {high:.4f}",
        "" if line.fraction is None else f"{line.fraction:.3f}",
    )


def _row(cells: tuple[str, ...]) -> str:
    widths = (27, 13, 8, 5, 14, 7, 19, 13)
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
