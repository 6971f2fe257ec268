"""The inputs and outputs of the GitHub Action, from its own file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from reference.text import code, prose, table

ACTION = Path(__file__).resolve().parents[2] / "action.yml"


def part(name: str) -> str:
    """The table of the action's `inputs` or `outputs`."""
    held: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))[name]
    if name == "outputs":
        return table(("output", "what it is"), [(code(key), prose(each["description"])) for key, each in held.items()])
    rows = [(code(key), prose(each["description"]), _default(each)) for key, each in held.items()]
    return table(("input", "meaning", "left out"), rows)


def _default(each: dict[str, Any]) -> str:
    default = str(each.get("default", ""))
    return code(default) if default else "must be given" if each.get("required") else "nothing"
