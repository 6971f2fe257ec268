"""The table of the study: one row a bound, its columns, and what they come to for each mechanism."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from audits.literature.expected import down
from dpaudit import MissingRequirement
from dpaudit.account import Table
from dpaudit.certify.certificate import holm
from dpaudit.report.csv_ import parquet, table

Row = dict[str, Any]
LONGEST = 1_000  # characters of a cell
COLUMNS = {
    "part": "seeds, runs, claims, worst pair or published; left out: a claim that no parameter of the mechanism makes",
    "room": "the part of the catalogue that holds the mechanism",
    "mechanism": "name; a twin is called after its parent",
    "kind": "sound, broken, or harmless: a mistake that breaks nothing",
    "parameters": "all of them, as JSON",
    "pair": "name of the pair of datasets",
    "form": "form of the claim",
    "delta": "the delta that every epsilon of the row is at",
    "claimed": "epsilon that the claim allows the pair",
    "certified": "lower bound on epsilon, at the confidence of the row",
    "oracle": "what the best known event would certify with as many certifying runs, at expected counts; not certified",
    "oracle_from": "law: all events of the exact law; best of k events: of those that the mechanism's audits found",
    "exact": "epsilon of the pair; inf where nothing bounds it",
    "exact_from": "enumeration or enclosure (rigorous), the method of a law, or formula (the catalogue's, in floats)",
    "proved": "upper bound for all inputs, by a checked proof or a whole replay",
    "exact_worst_pair": "the largest exact epsilon of the default pair and all stock pairs of query answers",
    "verdict": "REFUTED or NOT_REFUTED",
    "p_value": "of the claim",
    "p_value_holm": "the same, adjusted for all rows by Holm's method",
    "confidence": "of this row alone",
    "runs": "executions that the audit may spend, search included",
    "certifying_runs": "fresh executions on the event, both datasets",
    "base_seed": "number of the repetition",
    "seed": "of this row alone: audit(seed=...) repeats it",
    "event": "the outputs that the bound is about",
    "benchmark": "name in the published benchmark",
    "certified_90": "the same counts at the confidence of the published bounds, 0.90, by two limits at 0.05",
    "dp_sniper": "DP-Sniper's better bound as published, at confidence 0.90",
    "dp_sniper_runs": "its executions, by its documented sample sizes",
    "statdp": "StatDP's better bound as published, at confidence 0.90",
    "remark": "what stands in the way of that comparison",
    "cpu_s": "seconds of a processor",
    "error": "why there is no bound",
}
REALS = (
    *("delta", "claimed", "certified", "oracle", "exact", "proved", "exact_worst_pair", "p_value", "p_value_holm"),
    *("confidence", "certifying_runs", "certified_90", "dp_sniper", "dp_sniper_runs", "statdp", "cpu_s"),
)


def finished(rows: Iterable[Row]) -> list[Row]:
    """The rows with all columns, and their p-values adjusted for all of them."""
    made = [{name: row.get(name) for name in COLUMNS} for row in rows]
    adjusted = holm([1.0 if row["p_value"] is None else row["p_value"] for row in made])
    return [
        row | {"p_value_holm": None if row["p_value"] is None else p} for row, p in zip(made, adjusted, strict=True)
    ]


def write(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Writes study.csv, and study.parquet where pyarrow or polars is installed; returns the paths."""
    text = folder / "study.csv"
    lines = ([row[name] for name in COLUMNS] for row in rows)
    text.write_text(table(tuple(COLUMNS), *lines, longest=LONGEST), encoding="utf-8")
    try:
        typed = folder / "study.parquet"
        typed.write_bytes(parquet(tuple(COLUMNS), rows, REALS))
    except MissingRequirement as error:
        print(f"study.parquet is left out: {error}")
        return [text]
    return [text, typed]


def by_mechanism(rows: Sequence[Row]) -> list[Row]:
    """Each mechanism at its own claim: the repetitions taken together, in the order of the catalogue.

    All but `claimed` are shares of the epsilon claimed at the delta of their row, which may differ among repetitions;
    of what is known of a mechanism the largest share, so that no bound stands above it for its delta alone.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row["part"] == "seeds" and row["certified"] is not None and row["claimed"]:
            groups.setdefault(row["mechanism"], []).append(row)
    return [_together(name, group) for name, group in groups.items()]


def _together(name: str, group: list[Row]) -> Row:
    certified = [row["certified"] / row["claimed"] for row in group]
    oracles = [row["oracle"] / row["claimed"] for row in group if row["oracle"] is not None]
    first = group[0]
    known = ("exact", "proved", "exact_worst_pair")
    held = {key: [row[key] / row["claimed"] for row in group if row[key] is not None] for key in known}
    return {key: max(shares, default=None) for key, shares in held.items()} | {
        "mechanism": name,
        "kind": first["kind"],
        "claimed": first["claimed"],
        "least": min(certified),
        "median": statistics.median_low(certified),
        "largest": max(certified),
        "oracle": statistics.median_low(oracles) if oracles else None,
        "refuted": sum(row["verdict"] == "REFUTED" for row in group),
        "audits": len(group),
    }


def mechanisms_summary(rows: Sequence[Row], runs: int) -> Table:
    """A row a mechanism."""
    head = ("mechanism", "kind", "claimed", "certified, median", "least", "largest", "best event", "exact", "proved",
            "refuted", "audits", "exact at the worst pair")  # fmt: skip
    made = []
    for each in by_mechanism(rows):
        bounds = [down(each[key], 3) for key in ("median", "least", "largest")]
        known = [number(each[key]) for key in ("oracle", "exact", "proved")]
        told = (each["mechanism"], each["kind"], f"{each['claimed']:.4g}", *bounds, *known, str(each["refuted"]))
        made.append((*told, str(each["audits"]), number(each["exact_worst_pair"])))
    title = f"Every mechanism at its own claim, audits of {runs:,} runs; all but claimed in shares of it"
    return Table(title, head, tuple(made), frozenset(range(2, len(head))))


def published_summary(rows: Sequence[Row]) -> Table:
    """A row a mechanism of the published benchmark: what was certified here, what others reported."""
    head = ("mechanism", "claimed", "certified", "at 0.90", "runs", "best event", "exact", "DP-Sniper", "its runs",
            "StatDP", "remark")  # fmt: skip
    made = tuple(
        (row["benchmark"], f"{row['claimed']:.4g}", down(row["certified"], 4), down(row["certified_90"], 4),
         f"{row['runs']:,}", number(row["oracle"]), number(row["exact"]), number(row["dp_sniper"]),
         "" if row["dp_sniper_runs"] is None else f"{row['dp_sniper_runs']:,}", number(row["statdp"]),
         row["remark"] or "")
        for row in rows
        if row["part"] == "published" and row["certified"] is not None
    )  # fmt: skip
    title = "The published benchmark: certified here on one pair, and as others reported it at confidence 0.90"
    return Table(title, head, made, frozenset(range(1, len(head) - 1)))


def number(value: float | None) -> str:
    """A value that is no certified bound, to four digits; empty where it is not known.

    >>> number(0.5), number(0.98039729), number(float("inf")), number(None)
    ('0.5', '0.9804', 'inf', '')
    """
    return "" if value is None else f"{value:.4g}"
