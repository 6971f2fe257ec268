"""Helpers of all commands: their options, checked under the names that the user typed, and output on a terminal.

A terminal gets lines within its width, and words of verdicts in colour; files and pipes get the bare text.
"""

import inspect
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform, get_args, get_origin

import click

from dpaudit.errors import InvalidSpec, at
from dpaudit.options import OPTIONS
from dpaudit.report import formats_of

if TYPE_CHECKING:
    from dpaudit.claims import Claim
    from dpaudit.report import Format
    from dpaudit.spec.questions import Layers, SpecQuestion

LONGEST_LINE = 600  # characters of a message; what is longer was data
NARROWEST = 40  # columns; narrower terminals break lines themselves
REPEAT = "repeat  "  # of a report: the lines below it are to be copied
COLOURS = {  # never alone: the word is the verdict; and green is for what is proved
    r"\b(?:NOT|not)\xa0(?:REFUTED|refuted)\b": "blue",
    r"(?<!\xa0)\bREFUTED\b(?: by bits)?": "red",
    r"\b(?:PROVED|PINNED)\b": "green",
    r"\b(?:UNEXPECTED|NOT as expected|EXPIRED|no verdict|error:)": "yellow",
}


def show(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """A text on standard output or, `err`, on standard error, as its reader can take it."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        click.echo(text, err=err, nl=nl)
        return
    colours = not os.environ.get("NO_COLOR")
    click.echo(laid_out(text, shutil.get_terminal_size().columns, colours=colours), err=err, nl=nl, color=colours)


def laid_out(text: str, columns: int, *, colours: bool) -> str:
    """The text in lines of at most `columns`, but for longer words; further lines hang under the first.

    >>> print(laid_out("claim           PureDP(epsilon=1); no relation stated", 40, colours=False))
    claim           PureDP(epsilon=1); no
                    relation stated
    """
    rows: list[str] = []
    as_typed = False
    for line in text.replace("NOT REFUTED", "NOT\xa0REFUTED").replace("not refuted", "not\xa0refuted").split("\n"):
        as_typed = line.startswith(REPEAT) or (as_typed and line.startswith(" "))
        rows += [line] if as_typed or len(line) <= columns else _wrapped(line, max(columns, NARROWEST))
    text = "\n".join(rows)
    for words, colour in COLOURS.items() if colours else ():
        text = re.sub(words, lambda met, colour=colour: click.style(met[0], colour, bold=True), text)  # type: ignore[misc]
    return text.replace("\xa0", " ")


def _wrapped(line: str, columns: int) -> list[str]:
    label = re.match(r" *\S.*?  +(?=\S)", line)
    before = len(line) - len(line.lstrip())
    hang = label.end() if label is not None and label.end() <= columns // 2 else before + 2
    return textwrap.wrap(line, columns, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)


def say(message: str) -> None:
    """A line for people, on standard error."""
    click.echo(message, err=True)


def say_error(error: Exception) -> None:
    """What is wrong, on standard error: a line each."""
    for each in error.args or (error,):
        show(f"error: {one_line(each)}", err=True)


def one_line(message: object) -> str:
    """A message on one line, without control characters.

    >>> one_line("two\\nlines")
    'two lines'
    """
    text = "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in " ".join(str(message).split()))
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 3] + "..."


def typed_again(*more: str, without: Collection[str] = ()) -> str:
    """This command line, as typed for the same question, but `without` these options, and with `more` words."""
    context = click.get_current_context()
    words = ["dpaudit", str(context.info_name)]
    for each in context.command.params:
        value = context.params[each.name or ""]
        if isinstance(each, click.Argument):
            words += [value] if isinstance(value, str) else value
        elif each.name not in without and value is not False and value not in (each.default, None, (), ""):
            for one in value if each.multiple else (value,):
                number = f"{one:.15g}" if each.name == "runs" else str(one)
                words += [each.opts[0]] if one is True else [each.opts[0], number]
    return shlex.join([*words, *more])


AUDITS = {"audit": "audit", "all": "all audits together", "instead": ""}  # what the words of an option are about
ONE = {**AUDITS, "all": "the audit"}
POINTS = {"audit": "point", "all": "each point for itself", "instead": ", instead of those of the spec"}


def argument(metavar: str, **more: object) -> Any:
    """A field that is an argument; a tuple takes all that are left."""
    return field(metadata={"metavar": metavar, **more})


def option(words: str | None = None, metavar: str | None = None, *, flag: str = "", **more: object) -> Any:
    """A field that is an option, of its own name where there is no `flag`; its kind says what may be given.

    A bool is given without a value, a tuple again and again; `shown` is a default that the help names.
    """
    return field(metadata={"flag": flag, "help": words, "metavar": metavar, **more})


def asked(metavar: str = "N", about: Mapping[str, str] = AUDITS) -> Any:
    """A field that is the option of audits of its name, in the words of its declaration; `layers` reads it."""
    return field(metadata={"flag": "", "about": about, "metavar": metavar})


def _param(name: str, kind: Any, told: dict[str, Any]) -> click.Parameter:
    """What a field is for click."""
    kinds, several = (kind, *get_args(kind)), get_origin(kind) is tuple
    if "flag" not in told:
        return click.Argument([name], nargs=-1 if several else 1, **told)
    if "about" in told:
        told |= {"flag": OPTIONS[name].flag, "help": OPTIONS[name].flag_words.format_map(told.pop("about"))}
    if "shown" in told:
        told |= {"default": told.pop("shown"), "show_default": True}
    words = next((click.Choice(get_args(each)) for each in kinds if get_origin(each) is Literal), None)
    number = next((each for each in kinds if each in (int, float)), words)
    told = {"is_flag": True, **told} if kind is bool else {"type": number, "multiple": several, **told}
    return click.Option([told.pop("flag") or f"--{name.replace('_', '-')}", name], **told)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(argument, option, asked))
class CommandLine:
    """What a command is given: its arguments and options, each a field, in the order of its help, the docstring.

    `group` is the heading that it stands under, `home` the module of what it does, where that is not of its own name.
    """

    command: ClassVar[str]
    group: ClassVar[str]
    home: ClassVar[str]

    def __init_subclass__(cls, group: str, home: str = "") -> None:
        dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)  # each costs every command its start
        cls.command = "-".join(re.findall("[A-Z][a-z]+", cls.__name__)[:-1]).lower()  # without "Command"
        cls.group, cls.home = group, home or cls.command.replace("-", "_")

    def keywords_of(self, function: Callable[..., Any]) -> dict[str, Any]:
        """What is given for those keywords of a function that a field is named after."""
        known = inspect.signature(function).parameters
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name in known}  # type: ignore[arg-type]

    @classmethod
    def of_click(cls, work: Callable[["CommandLine"], int]) -> click.Command:
        """The command for click; `work` does it, and returns its exit code."""
        params = [_param(each.name, each.type, dict(each.metadata)) for each in fields(cls)]  # type: ignore[arg-type]
        params.sort(key=lambda each: isinstance(each, click.Option))  # arguments first, of whatever class they are
        return click.Command(cls.command, callback=lambda **given: work(cls(**given)), params=params, help=cls.__doc__)


def layers(call: CommandLine, look: bool = False) -> "Layers":
    """What a command is given that is named like an option of audits, and the project's options.

    Raises `InvalidSpec` naming the option, or the project's key.
    """
    from dpaudit.spec.questions import Layers
    from dpaudit.spec.settings import read_settings

    given = {each.name: getattr(call, each.name) for each in fields(call) if each.name in OPTIONS}  # type: ignore[arg-type]
    stated = {name: value for name, value in given.items() if value is not None}
    command = {name: OPTIONS[name].check(OPTIONS[name].flag, value) for name, value in stated.items()}
    return Layers(command, read_settings(Path.cwd()).options, look)


def stated_claim(text: str | None, mu: float | None = None) -> "Claim | None":
    """The claim of --claim, or of --mu; None where neither is given. Raises `InvalidSpec` naming the option."""
    from dpaudit.claims import GaussianDP, claim_from_dict

    if text is None:
        return None if mu is None else GaussianDP(mu)
    if mu is not None:
        raise InvalidSpec("--claim and --mu: give one of the two")
    stated = from_json("--claim", text, """'{"form": "PureDP", "epsilon": 1.0}'""")
    with at("--claim"):
        return claim_from_dict(stated)


def from_json(option: str, text: str, example: str) -> Any:
    """The value of an option, which is read as JSON and never evaluated. Raises `InvalidSpec` naming the option."""
    from dpaudit.base.strict import parsed

    cure = f"give JSON such as {example}"
    with at(option):
        return parsed(text, cure=cure, not_json=cure)


def check_writable(option: str, path: str) -> None:
    """Raises `InvalidSpec` where a file cannot be made there: better known before long work than after it."""
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidSpec(f"{option}: {path} cannot be written; name a file in a folder that can")


def chosen_ledger(option: str | None) -> Path:
    """The ledger of the option, of this project's settings, or the default one. It need not be there."""
    from dpaudit.ledger.database import DEFAULT
    from dpaudit.spec.settings import read_settings

    named = option if option is not None else read_settings(Path.cwd()).ledger
    return DEFAULT if named is None else Path(named)


def report_formats(text: str) -> "tuple[Format, ...]":
    """The formats of --format, by their names with commas between them."""
    with at("--format"):
        return formats_of(name.strip() for name in text.split(","))


def read_all(
    paths: tuple[str, ...],
    given: "Layers",
    each: "Callable[[Path, Sequence[SpecQuestion]], None]" = lambda path, questions: None,
) -> "list[SpecQuestion]":
    """The audits of all spec files; `each` is called for each file. Ends with 2 where one is wrong: all are read."""
    from dpaudit.spec.questions import read_spec
    from dpaudit.spec.reading import find_specs

    questions: list[SpecQuestion] = []
    wrong = False
    for path in find_specs(paths):
        try:
            of_file = read_spec(path, given)
        except InvalidSpec as error:
            say_error(error)
            wrong = True
            continue
        each(path, of_file)
        questions += of_file
    if wrong:
        raise click.exceptions.Exit(InvalidSpec.exit_code)
    return questions


def chosen_questions(
    paths: tuple[str, ...], given: "Layers", tags: tuple[str, ...], only: tuple[str, ...] = ()
) -> "tuple[SpecQuestion, ...]":
    """The questions that carry one of the tags, and have one of the names; all of them where none is asked for.

    Raises `InvalidSpec` for a name that no question has. Ends with 5 where nothing is left.
    """
    questions = read_all(paths, given)
    for name in only:
        if all(name != question.name for question in questions):
            near = ", ".join(repr(question.name) for question in questions[:5])
            raise InvalidSpec(f"--only: no audit has the name {name!r}; there are {near or 'none'}")
    named = (question for question in questions if not only or question.name in only)
    chosen = tuple(question for question in named if not tags or set(tags) & set(question.tags))
    if not chosen:
        raise nothing_to_audit(paths, tags, len(questions))
    return chosen


def nothing_to_audit(paths: tuple[str, ...], tags: tuple[str, ...], audits: int) -> click.exceptions.Exit:
    """The end of a command that has nothing to do, which says why."""
    where = ", ".join(paths)
    if audits:
        say(f"nothing to audit: none of the {audits} audits in {where} has the tag {' or '.join(map(repr, tags))}")
    else:
        say(f"nothing to audit: no [[audit]] in {where}")
    return click.exceptions.Exit(5)
