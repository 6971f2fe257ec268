"""`dpaudit report`: results and suites that are stored already, in any of the formats."""

import sys
from pathlib import Path
from typing import Any

import click

from dpaudit import report
from dpaudit.base.files import FOLDER, found_at, write_text, writing
from dpaudit.base.quoting import clean
from dpaudit.cli.commands import ReportCommand
from dpaudit.cli.options import one_line, report_formats, say, show
from dpaudit.errors import InvalidSpec
from dpaudit.report import Format
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import load_either, stored_files
from dpaudit.results.suite import SuiteResult, together

STANDARD = "-"


def report_command(call: ReportCommand) -> int:
    chosen = report_formats(call.formats)
    output = None if call.output == STANDARD else call.output
    parts: list[AuditResult | SuiteResult] = []
    read: list[Path] = []
    wrong = 0
    for given in call.results:
        for path in stored_files(Path(given)) if found_at(given) == FOLDER else [Path(given)]:
            read.append(path)
            try:
                parts.append(load_either(path))
            except InvalidSpec as error:
                if len(call.results) == 1 and _trained(path, chosen, output):
                    return 0
                say(f"error: {one_line(error)}")
                wrong += 1
    if wrong:
        return InvalidSpec.exit_code
    whole = parts[0] if len(parts) == 1 else together(parts)
    if len(chosen) == 1 and (output is None or not _is_folder(output, chosen[0])):
        _one(whole, chosen[0], output, read)
    elif output is None:
        raise InvalidSpec(f"--format {call.formats}: several formats need --output, the folder to write them to")
    else:
        _several(together(parts), chosen, output, read)
    return 0


def _trained(read: Path, chosen: tuple[Format, ...], output: str | None) -> bool:
    """Whether a file holds the result of an audit of training, which is then printed or written."""
    from dpaudit.training import load

    try:
        result = load(read)
    except InvalidSpec:
        return False
    if output is None or Path(output).suffix:
        _one(result, chosen[0], output, [read])
        return True
    _spare([read], [Path(output, "training.json")])
    with writing("--output", output):
        for path in result.write_report(output):
            click.echo(str(path))
    return True


def _is_folder(output: str, form: Format) -> bool:
    """Whether a path is meant as a folder; for pages of HTML, also one that is not there and has no suffix."""
    there = found_at(output)
    return there == FOLDER or output.endswith("/") or (form.name == "html" and not Path(output).suffix and not there)


def _spare(read: list[Path], written: list[Path]) -> None:
    """Raises `InvalidSpec` where a file would be written over that was read: it may be the only record."""
    sources = {path.resolve() for path in read}
    for path in written:
        if path.resolve() in sources:
            name = clean(path, 200)
            raise InvalidSpec(f"--output: {name} is one of the files that were read; name another place")


def _print(text: str, *, plain: bool = False) -> None:
    """The text on standard output, in UTF-8 as in a file, whatever the terminal speaks; `plain` is for people there."""
    if plain and sys.stdout.isatty():
        show(text, nl=False)
        return
    try:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # a reader that has gone
    except OSError as error:
        raise InvalidSpec(f"standard output cannot be written ({error.strerror}); name a file with --output") from None


def _one(whole: Any, form: Format, output: str | None, read: list[Path]) -> None:
    if output is not None:
        _spare(read, [Path(output)])
    text = report.render(whole, form)
    if output is None:
        _print(text, plain=form.name == "txt")
        return
    with writing("--output", output):
        write_text(output, text)
    click.echo(output)


def _several(suite: SuiteResult, chosen: "tuple[Format, ...]", output: str, read: list[Path]) -> None:
    names: list[str] = [each.file for each in chosen]
    if "json" in {each.name for each in chosen}:
        names += filter(None, report.record_names(suite))
    _spare(read, [Path(output, name) for name in names])
    with writing("--output", output):
        paths = report.write_suite(suite, output, [each.name for each in chosen])
    for path in paths:
        click.echo(str(path))
