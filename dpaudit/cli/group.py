"""The command `dpaudit`: loads the one command that is asked for, and turns every error into a line and a code."""

import copy
import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from dpaudit.base.validate import meant
from dpaudit.cli.commands import EVERY
from dpaudit.cli.options import CommandLine, one_line, say, say_error
from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from dpaudit.version import __version__

FILES = {"PATH", "PATH...", "SPEC", "SPEC...", "FILE", "DIR", "RESULT...", "OLD", "NEW", "FINDING"}  # metavars
INTERNAL, INTERRUPTED = 70, 130
OBSERVE = "python -m audits.libraries.observe"
OLD = {"verify": "bracket", "check": "check-proof"}  # names that commands had; they go on
MOVED = {"observe": OBSERVE, "bisect": f"{OBSERVE} --versions A..B"}


@dataclass
class Caller:
    """What the whole command line shares."""

    debug: bool = False


class File(click.Path):
    """A file or folder; shells complete it. Nothing is no name, and "-" is standard output in `report` alone."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """The path as it was given. Raises `BadParameter`."""
        if value == "" or (value == "-" and getattr(context, "info_name", "") != "report"):
            self.fail(f"give a path, got {value!r}" + "; ./- is a file of that name" * bool(value), param, context)
        return super().convert(value, param, context)


def _of_digits(convert: Callable[..., Any], value: Any, param: click.Parameter, context: click.Context) -> Any:
    if isinstance(value, str) and not value.isascii():  # Python takes the digits of any script
        raise click.BadParameter(f"{value!r} is not written with the digits 0 to 9.", context, param)
    return convert(value, param, context)


def _command(line: type[CommandLine]) -> click.Command:
    """The command for click; what it does is imported when it is called."""

    def work(call: CommandLine) -> int:
        module = importlib.import_module(f"dpaudit.cli.{line.home}")
        code: int = getattr(module, f"{line.command.replace('-', '_')}_command")(call)
        return code

    command = line.of_click(work)
    for each in command.params:
        if each.metavar in FILES:
            each.type = File()
        elif isinstance(each.type, click.types.IntParamType | click.types.FloatParamType):
            each.type = copy.copy(each.type)
            each.type.convert = partial(_of_digits, each.type.convert)  # type: ignore[method-assign]
    return command


class LazyGroup(click.Group):
    """A group whose commands do their work in modules beside this one, imported when they are called."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The commands in the order in which users need them."""
        return list(COMMANDS)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands in their groups, each with the first sentence of its help."""
        wide = max(map(len, COMMANDS))
        for title, lines in itertools.groupby(EVERY, lambda line: line.group):
            with formatter.section(title):
                sentences = ((line.command.ljust(wide), (line.__doc__ or "").partition("\n")[0]) for line in lines)
                formatter.write_dl([*sentences])

    def get_command(self, context: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or that had it once, made when it is asked for."""
        name = OLD.get(cmd_name, cmd_name)
        return _command(COMMANDS[name]) if name in COMMANDS else None

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for. Raises `UsageError` with the one that may be meant."""
        asked = arguments[0]
        if asked in COMMANDS or asked in OLD or asked.startswith("-") or context.resilient_parsing:
            return super().resolve_command(context, arguments)
        if asked in MOVED:
            raise click.UsageError(f"{asked} is a program of dpaudit's repository now: {MOVED[asked]}", context)
        hint = meant(asked, COMMANDS, f"; there are {', '.join(COMMANDS)}")
        raise click.UsageError(f"no command {asked!r}{hint}", context)

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands with this beginning, none of which is loaded, and options."""
        names = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, context, incomplete)]


def _print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"dpaudit {__version__}")
        context.exit()


COMMANDS = {line.command: line for line in EVERY}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show it.")
@click.option("--debug", is_flag=True, help="Show a traceback for an internal error.")
@click.pass_obj
def group(caller: Caller, debug: bool) -> None:
    """Find out what a differentially private mechanism really does.

    Try: dpaudit audit my_module:noisy_count --data '[34, 51]' --epsilon 1

    Exit codes, worst first: 70 internal error, 2 bad usage or spec, 1 a verdict not as expected, 3 no verdict,
    4 too little power, 5 nothing audited, 0 all as expected; 130 interrupted.
    """
    caller.debug = debug


def exit_code(arguments: list[str]) -> int:
    """Runs a command line and returns its exit code; every error is one line on standard error."""
    caller = Caller()
    try:
        code = group.main(arguments, prog_name="dpaudit", standalone_mode=False, obj=caller)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return error.exit_code
    except click.ClickException as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", "dpaudit")
        see = f" (see {asked} --help)" if isinstance(error, click.UsageError) else ""
        say(f"error: {one_line(error.format_message())}{see}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        reason = (error.__cause__ or error).args  # click wraps the one in the other
        say(f"interrupted: {one_line(reason[0])}" if reason else "interrupted")
        return INTERRUPTED
    except DpAuditError as error:
        say_error(error)
        return error.exit_code
    except (OSError, MemoryError, ImportError) as error:  # what a command does not say itself
        if caller.debug:
            return internal_error(error, caller)
        if not isinstance(error, OSError):  # too little memory, or a library that cannot be loaded in it
            what = f"{type(error).__name__}: {one_line(error.__cause__ or error)}"
            say(f"error: {what}; give it more memory (ulimit -v), or install it anew")
            return UnsoundAudit.exit_code
        say(f"error: {one_line(error.filename or 'this folder or the output')}: {one_line(error.strerror or error)}")
        return InvalidSpec.exit_code  # a full disk under its output, a folder that is gone
    except SystemExit as ended:  # of a completion; or of a library, with 1, which here is a verdict
        return UnsoundAudit.exit_code if ended.code else 0
    except Exception as error:
        return internal_error(error, caller)


def internal_error(error: Exception, caller: Caller) -> int:
    """Says that it is our fault, in a line; the whole traceback where it was asked for."""
    if caller.debug:
        import traceback

        traceback.print_exception(error)
    hint = "" if caller.debug else "; `dpaudit --debug ...` shows where"
    say(f"internal error: {type(error).__name__}: {one_line(error)}{hint}")
    return INTERNAL
