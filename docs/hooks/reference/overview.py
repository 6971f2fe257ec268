"""The first page of the reference."""

from __future__ import annotations

from dpaudit.version import __version__
from reference.text import page as whole

TEXT = """\
These pages are made from the package itself, version {version}, when the site is built: from the help of the commands,
from the JSON Schemas of the files, from docstrings and from the catalogue. They are complete, and they are no tutorial.

- [Commands](commands.md): every command, argument and option.
- [Exit codes](exit-codes.md): what a command ends with, and the errors behind it.
- [Spec file](spec.md): every key of an audit written as TOML, and of `[tool.dpaudit]`.
- [Result file](result.md) and [suite file](suite.md): every key of what an audit stores.
- [Python](python.md): every public name, with a page for each group: [audits](audit.md), with a table of all keywords,
  [mechanisms and pairs](mechanisms.md), [claims](claims.md), [results](results.md), [brackets](bounds.md),
  [scores and training](scores.md), [sweeps](sweeps.md), [errors](errors.md).
- [Catalogue](catalogue.md): mechanisms from the literature, with the mistakes people make in them."""


def page() -> str:
    """The page."""
    return whole("Reference", TEXT.format(version=__version__))
