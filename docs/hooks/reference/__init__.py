"""The reference pages: each is made from what the package says of itself, when the site is built."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reference import catalogue, commands, overview, python, schemas

PAGES: dict[str, Callable[[], str]] = {
    "reference/index.md": overview.page,
    "reference/commands.md": commands.page,
    "reference/exit-codes.md": commands.exit_codes_page,
    "reference/spec.md": schemas.spec_page,
    "reference/result.md": schemas.result_page,
    "reference/suite.md": schemas.suite_page,
    "reference/python.md": python.page,
    "reference/catalogue.md": catalogue.page,
}
for group in python.GROUPS.keys() - {"audit"}:  # that one stands in docs/reference/, and has slots for its tables
    PAGES[f"reference/{group}.md"] = partial(python.group_page, group)
