"""`dpaudit audit`: one question that is asked on the command line, as a spec file would ask it."""

import re
from pathlib import Path
from typing import Any

import click

from dpaudit import report
from dpaudit.account import Level, account, templates
from dpaudit.auditing.runner import Runner
from dpaudit.auditing.watching import watching
from dpaudit.base.files import report_folder
from dpaudit.claims import Relation
from dpaudit.cli.bracket import parameters
from dpaudit.cli.commands import AuditCommand, RecordCommand
from dpaudit.cli.options import from_json, layers, show, typed_again
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.results.suite import SuiteResult
from dpaudit.spec.questions import asked_of
from dpaudit.spec.settings import read_settings

REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")  # module:function
PAIR = "[[34, 51], [34]]"


def audit_command(call: AuditCommand) -> int:
    folder = report_folder("--report", call.report)
    question = asked_of(table_of(call), "dpaudit audit", layers(call))
    workers = next(value for value in (call.jobs, read_settings(Path.cwd()).jobs, -1) if value is not None)
    repeat = typed_again("--seed", str(question.seed), without=("seed", "report", "no_progress"))
    with (
        watching(1, question.name, shown=not call.no_progress) as watcher,
        Engine(workers, supervised=True, **question.where) as engine,
    ):
        result = Runner(engine, progress=watcher, origin=lambda planned: {"command": repeat}).run(question)
    show("\n".join(account(result, Level.PAGE_ONE).lines(templates.WHOLE)))
    if folder is not None:
        click.echo(f"report: {report.write_suite(SuiteResult.of([result]), folder)[-1]}")
    return 1 if result.refuted else result.exit_code


def table_of(call: AuditCommand | RecordCommand) -> dict[str, Any]:
    """What a spec would hold. Raises `InvalidSpec` naming the option that is wrong."""
    claim = {name: value for name in ("epsilon", "delta") if (value := getattr(call, name)) is not None}
    if not REFERENCE.fullmatch(call.function):
        raise InvalidSpec(f"give the function as MODULE:FUNCTION, such as my_module:noisy_count, got {call.function!r}")
    if claim and call.claim is not None:
        raise InvalidSpec("--claim and --epsilon, --delta: give one of the two")
    if claim.keys() == {"delta"}:
        raise InvalidSpec("--delta needs --epsilon")
    if call.data is not None and call.pair is not None:
        raise InvalidSpec("--data and --pair: give one of the two")
    if claim and call.data is None and call.pair is None:
        raise InvalidSpec("give --data, one dataset of which neighbours are made, or --pair, two neighbours")
    table = {
        "name": call.function.rpartition(":")[2],
        "mechanism": call.function,
        "parameters": parameters(call.params),
        "claim": claim or (None if call.claim is None else from_json("--claim", call.claim, '{"mu": 1.0}')),
        "relation": call.relation,
    }
    if call.data is not None:
        table["data"] = _read("--data", call.data, "[34, 51, 29]")
        table["relation"] = call.relation or Relation.ADD_OR_REMOVE_ONE.value
    if call.pair is not None:
        both = _read("--pair", call.pair, PAIR)
        if isinstance(both, list):
            if len(both) != 2:
                raise InvalidSpec(f"--pair: give two datasets, such as {PAIR}, got {len(both)}")
            both = {"first": both[0], "second": both[1]}
        table["pair"] = both
    return {key: value for key, value in table.items() if value is not None}


def _read(option: str, text: str, example: str) -> Any:
    """The value of an option, or the name that a worker imports."""
    return text if REFERENCE.fullmatch(text) else from_json(option, text, f"{example}, or MODULE:FUNCTION")
