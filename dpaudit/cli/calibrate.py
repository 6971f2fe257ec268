"""`dpaudit calibrate`: the tool measures its own rate of false refutations."""

import json

import click

from dpaudit.account import templates
from dpaudit.auditing.calibration import CONFIDENCE, FULL_REPEATS, REPEATS, RUNS, CalibrationLine, calibrate, cases
from dpaudit.base import validate
from dpaudit.base.files import write_text, writing
from dpaudit.cli.commands import CalibrateCommand
from dpaudit.cli.options import check_writable
from dpaudit.errors import InvalidSpec
from dpaudit.options import FEWEST_RUNS

HEADER = ("claim", "certifier", "stopping", "pairs", "refuted", "allowed", "rate, 95 % interval", "of the oracle")


def calibrate_command(call: CalibrateCommand) -> int:
    number = FULL_REPEATS if call.full else REPEATS
    if call.repeats is not None:
        number = validate.whole("--repeats", call.repeats, least=1)
    size = RUNS if call.runs is None else validate.whole("--runs", call.runs, least=FEWEST_RUNS)
    known = tuple(dict.fromkeys(case.name for case in cases()))
    for form in call.forms:
        if form not in known:
            raise InvalidSpec(f"--form must be one of {'; '.join(known)}, got {form!r}")
    if call.output is not None:
        check_writable("--json", call.output)
    chosen = tuple(case for case in cases() if not call.forms or case.name in call.forms)
    click.echo(templates.CALIBRATED.format(audits=number, runs=size, confidence=CONFIDENCE, seed=call.seed))
    lines: list[CalibrationLine] = []
    click.echo(_row(HEADER))
    for line in calibrate(
        chosen, repeats=number, runs=size, seed=validate.whole("--seed", call.seed, least=0), n_jobs=call.jobs
    ):
        lines.append(line)
        click.echo(_row(_cells(line)))
    if call.output is not None:
        with writing("--json", call.output):
            write_text(call.output, json.dumps([line.to_dict() for line in lines], indent=1) + "\n")
    broken = [line for line in lines if not line.kept]
    if broken:
        worst = ", ".join(f"{line.case.name} ({line.case.certifier.name}, {line.case.stopping})" for line in broken)
        click.echo(f"NOT as stated: {worst}")
        return 1
    click.echo(templates.AS_STATED)
    return 0


def _cells(line: CalibrationLine) -> tuple[str, ...]:
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
