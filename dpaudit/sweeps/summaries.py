"""Tables about a sweep, of text ready to be printed: one row a mechanism, and one row a point."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.results.verdict import Verdict
from dpaudit.results.wording.numerals import down, p_text
from dpaudit.results.wording.quoting import clean
from dpaudit.results.wording.tables import Table
from dpaudit.sweeps.rows import PARAMETERS
from dpaudit.sweeps.sentences import certified_text, claim_text, epsilon_text

Fields = Mapping[str, Any]
ALIKE = (1, 2, 3, 4, 5, 11)  # columns of the points that are left out where all cells are one
NUMBERS = (3, 5, 8, 9, 10, 11, 12)  # columns of the points that hold numbers


def mechanisms_table(rows: Sequence[Fields]) -> Table:
    """A row for each mechanism: its points, the claims, and how much of the exact loss was certified."""
    groups: dict[str, list[Fields]] = {}
    for row in rows:
        groups.setdefault(str(row["mechanism"]), []).append(row)
    head = (
        "mechanism",
        "points",
        "claimed epsilon",
        "refuted",
        "certified of exact, median",
        "exact of claimed, median",
        "proved",
        "without verdict",
    )
    made = tuple(_mechanism(name, group) for name, group in groups.items())
    title = "Points of each mechanism; shares are of epsilons at one delta, over the points where both are known"
    return Table(title, head, made, frozenset({1, 3, 4, 5, 6, 7}))


def points_table(rows: Sequence[Fields]) -> Table:
    """A row for each point; what is the same at all of them stands in the note, once."""
    head = (
        "mechanism",
        "parameters",
        "claim",
        "runs",
        "procedure",
        "seed",
        "verdict",
        "certified",
        "claimed epsilon",
        "exact epsilon",
        "proved epsilon",
        "at delta",
        "p-value",
    )
    cells = [_point(row) for row in rows]
    same = [k for k in ALIKE if len({row[k] for row in cells}) == 1 and len(cells) > 1]
    kept = [k for k in range(len(head)) if k not in same]
    told = ", ".join(f"{head[k]} {cells[0][k]}" for k in same if cells[0][k])
    return Table(
        "Every point of the sweep",
        tuple(head[k] for k in kept),
        tuple(tuple(row[k] for k in kept) for row in cells),
        frozenset(at for at, k in enumerate(kept) if k in NUMBERS),
        f"The same at every point: {told}." if told else "",
    )


def share(part: float | None, whole: float | None) -> float | None:
    """One epsilon as a part of another; None where either is not known or the other is 0 or infinite."""
    if part is None or whole is None or math.inf in (part, whole) or whole <= 0.0:
        return None
    return float(part) / float(whole)


def exact_of(row: Fields) -> float | None:
    """The exact epsilon of the pair: the one that is rigorously enclosed, or else the catalogue's."""
    found: float | None = row["exact_epsilon"] if row["exact_epsilon"] is not None else row["true_epsilon"]
    return found


def _mechanism(name: str, group: Sequence[Fields]) -> tuple[str, ...]:
    claimed = [row["claimed_epsilon"] for row in group if row["claimed_epsilon"] is not None]
    ends = (claim_text(min(claimed)), claim_text(max(claimed))) if claimed else ("", "")
    certified = [share(row["epsilon_lower"], exact_of(row)) for row in group]
    exact = [share(exact_of(row), row["claimed_epsilon"]) for row in group]
    return (
        clean(name),
        str(len(group)),
        ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}",
        str(sum(row["verdict"] == Verdict.REFUTED.value for row in group)),
        _median(certified),
        _median(exact),
        str(sum(row["proved"] is not None for row in group)),
        str(sum(row["verdict"] is None for row in group)),
    )


def _median(shares: Sequence[float | None]) -> str:
    known = [each for each in shares if each is not None]
    return down(statistics.median(known), 2) if known else ""


def _point(row: Fields) -> tuple[str, ...]:
    given = {key.removeprefix(PARAMETERS): value for key, value in row.items() if key.startswith(PARAMETERS)}
    told = ", ".join(f"{key} = {json.dumps(value, default=str)}" for key, value in given.items() if value is not None)
    verdict = "no verdict" if row["verdict"] is None else row["verdict"].lower().replace("_", " ")
    return (
        clean(row["mechanism"]),
        clean(told, 200),
        clean(row["claim"] or ""),
        f"{row['runs']:,}",
        clean(", ".join(filter(None, (row["certifier"], row["stopping"])))),
        str(row["base_seed"]),
        verdict,
        clean(row["error"] or "", 200) if row["verdict"] is None else certified_text(row),
        "" if row["claimed_epsilon"] is None else claim_text(row["claimed_epsilon"]),
        epsilon_text(exact_of(row)),
        epsilon_text(row["proved"]),
        "" if not row["delta"] else f"{row['delta']:.3g}",
        "" if row["p_value"] is None else p_text(row["p_value"]),
    )
