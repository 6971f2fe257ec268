"""`dpaudit record`: what recorded noise tells of a function, or of every audit of a spec."""

import json
from pathlib import Path

import click

from dpaudit.account import Level, account
from dpaudit.auditing.runner import Runner
from dpaudit.base.files import report_folder
from dpaudit.cli.audit import REFERENCE, table_of
from dpaudit.cli.commands import RecordCommand
from dpaudit.cli.options import chosen_questions, layers, say_error, show
from dpaudit.errors import DpAuditError, at
from dpaudit.execution.engine import Engine
from dpaudit.report import slug, write_page
from dpaudit.results.recorded import NoiseRecord
from dpaudit.spec.questions import SpecQuestion, asked_of

UNRECORDED = 3
OF_FUNCTIONS = ("data", "pair", "epsilon", "delta", "claim", "relation", "params")


def record_command(call: RecordCommand) -> int:
    folder, code = report_folder("--report", call.report), 0
    stated = call.epsilon is not None or call.claim is not None or call.pair is None and call.data is None
    given = layers(call, not stated)
    if REFERENCE.fullmatch(call.function) or any(getattr(call, name) for name in OF_FUNCTIONS):  # not of specs
        questions: tuple[SpecQuestion, ...] = (asked_of(table_of(call), "dpaudit record", given),)
    else:
        questions = chosen_questions((call.function,), given, ())
    records: list[NoiseRecord] = []
    for question in questions:
        try:
            question.check_requirements()
            with at(question.place), Engine(1, supervised=True, **question.where) as engine:
                records += Runner(engine).recorded(question, claimed=stated)
        except DpAuditError as error:
            say_error(error)
            code = max(code, error.exit_code)
    if call.as_json:
        stored = [each.to_dict() for each in records]
        click.echo(json.dumps(stored[0] if len(stored) == 1 else stored, indent=1))
    else:
        for each in records:
            told = account(each, Level.PAGE_ONE)
            brief = (told.headline, *(f"    {line}" for line in told["what was found"].lines))
            show("\n".join(told.lines() if len(records) == 1 else brief))
    for number, each in enumerate(records if folder is not None else (), start=1):
        place = Path(folder or "", *([f"{slug(each.mechanism)}-{number}"] if len(records) > 1 else []))
        click.echo(f"report: {write_page(each, place)[-1]}", err=call.as_json)
    if call.leads == "fail" and any(each.leads for each in records):
        return 1
    return code or (UNRECORDED if any(each.unseen for each in records) else 0)
