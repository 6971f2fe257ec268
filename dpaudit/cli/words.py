"""Small words that all commands share: errors on one line, times as people say them."""

from __future__ import annotations

import click

LONGEST_LINE = 600  # characters of a message; what is longer was data


def say(message: str) -> None:
    """A line for people, on standard error."""
    click.echo(message, err=True)


def one_line(message: object) -> str:
    """A message on one line, without control characters.

    >>> one_line("two\\nlines")
    'two lines'
    """
    text = "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in " ".join(str(message).split()))
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 3] + "..."


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.42), duration(75.0)
    ('0.4 s', '1 min 15 s')
    """
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"
