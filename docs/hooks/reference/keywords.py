"""The tables of keywords of `dpaudit.audit`, from the declarations of its options."""

from __future__ import annotations

from dpaudit.options import OPTIONS, Working, options


def rows(topic: str) -> str:
    """The table of a topic: each keyword with its default and what it says. Raises `LookupError` for another topic."""
    there = [each for each in (*options(Working), *OPTIONS.values()) if each.topic == topic]
    if not there:
        raise LookupError(f"no option of an audit has the topic {topic!r}")
    lines = [f"| `{each.name}` | `{_shown(each.usual)}` | {each.keyword} |" for each in there]
    return "\n".join(["| keyword | default | what it says |", "| --- | --- | --- |", *lines])


def _shown(default: object) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)
