"""The command line, from its own help: every command, argument and option, and the exit codes."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click

from dpaudit import errors
from dpaudit.cli import group as door
from reference import text
from reference.text import code, fenced, prose, table

INTRODUCTION = """\
`dpaudit COMMAND --help` says the same. Results go to standard output, progress and errors to standard error;
`NO_COLOR` and `CI` are honoured. Options go before the spec file, the spec file before `[tool.dpaudit]` in
`./pyproject.toml`, and that before the defaults. Every command ends with one of the [exit codes](exit-codes.md)."""

MEANINGS = {
    70: "An internal error: dpaudit's fault. `dpaudit --debug COMMAND ...` shows where.",
    2: "Bad usage, or a spec, a file or a value that is wrong. The message names the place, the value and the cure.",
    1: "A claim refuted against expectation, a known violation missed, an acceptance that expired, or an attestation"
    " that does not hold.",
    3: "No verdict: the experiment broke, or something it requires is not installed, cannot be loaded (too little"
    " memory), or ended the process.",
    4: "Finished, but without the power that the spec asks for with `detect`.",
    5: "Nothing was audited.",
    0: "Every audit finished, and every verdict is as expected.",
    130: "Interrupted (Ctrl-C, or a polite kill).",
}


def commands() -> dict[str, click.Command]:
    """Every command by its name, in the order of the help."""
    context = click.Context(door.group, info_name="dpaudit")
    found = {name: door.group.get_command(context, name) for name in door.group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def page_of(name: str, command: click.Command) -> list[str]:
    """The section of one command."""
    context = click.Context(command, info_name=f"dpaudit {name}", parent=None)
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## `dpaudit {name}` {{ #{name} }}", fenced("text", " ".join(usage.split())), *_help(command)]
    rows = [_row(option, context) for option in command.params if isinstance(option, click.Option)]
    return [*parts, table(("option", "meaning", "default"), rows)] if rows else parts


def page() -> str:
    """The page of all commands."""
    found = commands()
    rows = [
        (door.COMMANDS[name].group, f"[`{name}`](#{name})", prose(each.get_short_help_str(limit=200)))
        for name, each in found.items()
    ]
    sections = [part for name, each in found.items() for part in page_of(name, each)]
    return text.page("Commands", INTRODUCTION, table(("for", "command", "what it does"), rows), *sections)


def _help(command: click.Command) -> list[str]:
    return [prose(part) for part in inspect.cleandoc(command.help or "").split("\n\n")]


def _row(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    words = ", ".join(option.opts)
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    default = option.default
    plain = isinstance(default, (int, float, str)) and not isinstance(default, bool) and not option.multiple
    return code(words + value), prose(option.help or ""), code(str(default)) if plain else ""


# --- exit codes --------------------------------------------------------------------------------------------------


def exit_codes() -> dict[int, str]:
    """The codes in the words of the help, worst first. Raises where this page does not know one of them."""
    told = " ".join((door.group.help or "").split())
    listed = told.partition("Exit codes, worst first:")[2]
    found = {int(number): words.strip() for number, words in re.findall(r"(\d+) ([^,;.]+)", listed)}
    if set(found) != set(MEANINGS):
        raise LookupError(f"the help names the exit codes {sorted(found)}, this page {sorted(MEANINGS)}")
    return found


def exit_codes_page() -> str:
    """The page of the exit codes and of the errors behind them."""
    rows = [(code(str(number)), prose(words), prose(MEANINGS[number])) for number, words in exit_codes().items()]
    kinds = [each for each in vars(errors).values() if inspect.isclass(each) and hasattr(each, "exit_code")]
    raised = [(code(each.__name__), code(str(_exit_code(each))), prose(inspect.getdoc(each) or "")) for each in kinds]
    return text.page(
        "Exit codes",
        "The worst code of a suite is the code of the command, in this order. A mechanism's own exit never decides it.",
        "Where nobody reads the output to its end (`dpaudit run ... | head`), or the standard streams are closed, the"
        " work goes on in silence, and the code is what it would have been.",
        table(("code", "in short", "meaning"), rows),
        "## The errors behind them",
        "In Python the same outcomes are exceptions; each message is one line.",
        table(("error", "code", "meaning"), raised),
    )


def _exit_code(kind: Any) -> int:
    return int(kind.exit_code)
