"""The table of verdicts, without audits; `python -m tests.verify.forms.verdicts` writes it anew, in minutes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.claims import CLAIMS
from benchmarks.forms import FORMS, decide

TABLE = Path(__file__).with_name("verdicts.txt")
EVERY = (*FORMS, *CLAIMS)


def stored() -> dict[str, str]:
    """The word that is stored for each form and claim, by its name."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {name: word for word, name in (line.split(" ", 1) for line in lines)}


if __name__ == "__main__":
    TABLE.write_text("".join(f"{decide(each, runs=0).word} {each.name}\n" for each in EVERY), encoding="utf-8")
