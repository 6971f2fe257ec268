"""The statements of the lecture notes by name, and what their checks find, each run once a session."""

from __future__ import annotations

from functools import cache

from audits.lectures.claims import collect
from audits.lectures.claims.statement import Truth

TOPICS = collect.topics()
STATEMENTS = {each.name: each for statements in TOPICS.values() for each in statements}


@cache
def truth(name: str) -> Truth:
    """What the check of a statement finds."""
    return STATEMENTS[name].check()
