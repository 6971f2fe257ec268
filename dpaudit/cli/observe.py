"""`dpaudit observe` and `bisect`: audits of libraries and their versions, each in an environment of its own."""

import os
from contextlib import suppress
from pathlib import Path

import click

from dpaudit.cli.commands import BisectCommand, ObserveCommand
from dpaudit.cli.options import layers, nothing_to_audit, one_line, report_folder, say, show, typed_again
from dpaudit.errors import InvalidSpec
from dpaudit.observatory.environments import Children
from dpaudit.observatory.page import Observation, line
from dpaudit.observatory.rows import (
    SLOW,
    Observed,
    Observer,
    VersionOutcome,
    at_version,
    bisect,
    choose,
    read_rows,
    versions,
)


def observe_command(call: ObserveCommand) -> int:
    rows, left_out = read_rows(call.paths, Path(call.environments), layers(call))
    for path in left_out:
        say(f"note: {path} names no [environment] and is left out; `dpaudit run` runs it")
    chosen = choose(rows, tags=call.tags, skipped=(*call.skipped, *[SLOW] * call.fast), only=call.only)
    if not chosen:
        raise nothing_to_audit(call.paths, call.tags, len(rows))
    folder = report_folder(call.report)
    finished: dict[str, Observed] = {}

    def tell(seen: Observed) -> None:
        finished[seen.row.question.name] = seen
        say(f"[{len(finished)}/{len(chosen)}] {one_line(line(seen))}")

    with suppress(KeyboardInterrupt):
        Observer(folder, call.ledger, call.resume, Children(), say).observe(
            chosen, call.jobs or os.cpu_count() or 1, tell
        )
    observation = Observation(
        tuple(finished[row.question.name] for row in chosen if row.question.name in finished),
        tuple(row for row in rows if row not in chosen),
        tuple(row for row in chosen if row.question.name not in finished),
        (
            "--environments",
            call.environments,
            *(() if call.confidence is None else ("--confidence", repr(call.confidence))),
        ),
    )
    page = observation.write(folder)
    for seen in observation.seen:
        show(line(seen))
    show(f"\n{observation.headline}; exit code {observation.exit_code}\nreport: {page}")
    if observation.unfinished:
        raise KeyboardInterrupt(f"go on with: {typed_again('--resume', without=('resume',))}")
    return observation.exit_code


def bisect_command(call: BisectCommand) -> int:
    rows, left_out = read_rows([call.spec], Path(call.environments))
    if left_out:
        raise InvalidSpec(f"{left_out[0]} names no [environment], so there is no library to exchange")
    chosen = choose(rows, only=[call.name] if call.name else (), option="--audit")
    if len(chosen) != 1:
        names = ", ".join(repr(row.question.name) for row in chosen)
        raise InvalidSpec(f"{call.spec} has {len(chosen)} audits; choose one by --audit: {names}")
    row, children = chosen[0], Children()
    observer = Observer(report_folder(call.report), None, True, children, say)
    try:
        row.environment.make(children, say)
        known = versions(row.environment.package, call.span, row.environment.own, children)

        def ask(version: str) -> VersionOutcome:
            outcome = VersionOutcome.of(observer.see(at_version(row, version)).entry)
            say(f"{row.environment.package} {version}: {one_line(outcome.said or f'skipped, {outcome.error}')}")
            return outcome

        change = bisect(known, ask)
    except KeyboardInterrupt:
        children.end()
        raise
    one_of = f"one of {', '.join((*change.between, change.after))}" if change.between else change.after
    show(f"{row.environment.package} {one_of} is the first version with another outcome")
    for version, outcome in zip((change.before, change.after), change.outcomes, strict=True):
        show(f"  {version}: {outcome.said}")
    for version, error in change.skipped.items():
        show(f"  {version}: skipped: {one_line(error)}")
    show(f"This supposes one change among {len(known)} versions, {known[0]} to {known[-1]}.")
    click.echo(f"repeat: {typed_again(without=('report', 'environments'))}")
    return 0
