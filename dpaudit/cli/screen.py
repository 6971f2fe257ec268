"""What a terminal shows: lines within its width, and words of verdicts in colour; files and pipes get the bare text."""

import os
import re
import shutil
import sys
import textwrap

import click

NARROWEST = 40  # columns; narrower terminals break lines themselves
REPEAT = "repeat  "  # of a report: what stands below it is to be copied
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
    """The text in lines of at most so many columns, but for longer words; what follows hangs under its beginning.

    >>> print(laid_out("claim           PureDP(epsilon=1); no relation stated", 40, colours=False))
    claim           PureDP(epsilon=1); no
                    relation stated
    """
    rows: list[str] = []
    as_typed = False
    for line in text.replace("NOT REFUTED", "NOT\xa0REFUTED").replace("not refuted", "not\xa0refuted").split("\n"):
        as_typed = as_typed and line.startswith(" ")
        rows += [line] if as_typed or len(line) <= columns else _wrapped(line, max(columns, NARROWEST))
        as_typed = as_typed or line.startswith(REPEAT)
    found = "\n".join(rows)
    for words, colour in COLOURS.items() if colours else ():
        found = re.sub(words, lambda met, colour=colour: click.style(met[0], colour, bold=True), found)  # type: ignore[misc]
    return found.replace("\xa0", " ")


def _wrapped(line: str, columns: int) -> list[str]:
    label = re.match(r" *\S.*?  +(?=\S)", line)
    before = len(line) - len(line.lstrip())
    hang = label.end() if label is not None and label.end() <= columns // 2 else before + 2
    return textwrap.wrap(line, columns, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)
