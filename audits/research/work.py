"""The rows of one mechanism: its audits by seed, by runs, by claim and at its worst pair, with what is known beside."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from audits.literature.laws import curves
from audits.literature.published import Published, of
from audits.literature.rows import row as benchmark_row
from audits.research.questions import Plan, asked, kind_of, promised
from benchmarks.best_event import Asked, Events, law_of, likeliest
from dpaudit import AuditResult, DpAuditError, stock_pairs, sweep
from dpaudit.catalogue import Entry, find
from dpaudit.certify.cross_check import two_interval_epsilon

Row = dict[str, Any]
Audited = tuple[Row, AuditResult]
PATTERNS = ("one_differs", "all_differ", "half_up_half_down", "far_from_threshold")
PEERS = 0.90  # the confidence of the published bounds, each by two limits at 0.05
FEW = 10  # certifying runs are few where they are less than one part in so many of all runs: fresh processes alone
CLOSER = 1e-9  # relative: a loss that is larger by less is the same
PUBLISHED, LEFT_OUT = "published", "left out"


@dataclass
class Work:
    """The audits of one mechanism, or of one row of the published benchmark, and the rows that come of them."""

    name: str
    plan: Plan
    confidence: float
    sized: bool = False
    rows: list[Row] = field(default_factory=list)

    def done(self) -> list[Row]:
        """Everything that is asked of a mechanism of the catalogue."""
        entry, plan = find(self.name), self.plan
        own = self.ask("seeds", entry, runs=plan.runs, seeds=0)
        few = all(result.evidence.runs * FEW < plan.runs for _, result in own)
        if not few:
            known = {key: own[0][0][key] for key in ("exact", "exact_from", "proved")}  # of one question
            seeds = tuple(range(1, plan.seeds))
            again = self.ask("seeds", entry, prove=False, runs=plan.runs, seeds=seeds) if seeds else []
            if self.sized:
                again += self.ask("runs", entry, prove=False, runs=plan.sizes)
            for row, result in again:
                row |= known if row["delta"] == own[0][0]["delta"] else {}
                own.append((row, result))
        largest = max((row["certifying_runs"] for row, _ in own), default=0)
        events = Events(entry, [result for _, result in own], 0 if few else largest)
        self.add_oracle(entry, own, None if few else events)
        if kind_of(entry) == "sound":
            made, left_out = asked(entry, plan.claimed)
            self.rows += [{"part": LEFT_OUT, "mechanism": self.name, "claimed": epsilon} for epsilon in left_out]
            for each in made:
                self.add_oracle(each, self.ask("claims", each, runs=(plan.runs_at(round(promised(each), 9)),)))
        self.at_worst_pair(entry)
        return self.rows

    def ask(self, part: str, entry: Entry, pair: Any = None, *, prove: bool = True, **axes: Any) -> list[Audited]:
        """Audits the entry with these axes of a grid; returns the rows that have a result, with it."""
        rho = entry.claim().parameter == "rho"  # on one event, as the others, so that its bound is one on epsilon
        results: list[AuditResult] = []
        table = sweep(
            entry, pair=pair, certifiers="unconditional" if rho else None, confidence=self.confidence, prove=prove,
            n_jobs=1, record=results.append, **axes,
        )  # fmt: skip
        made = [told(part, entry, row) for row in table.rows]
        self.rows += made
        return list(zip((row for row in made if row["verdict"] is not None), results, strict=True))

    def add_oracle(self, entry: Entry, audited: list[Audited], events: Events | None = None) -> None:
        """Puts the best event's bound beside the certified ones, and the exact loss where a law gives it."""
        law = law_of(entry)
        for row, result in audited:
            if law is not None:
                exact = law.upper_bound(row["delta"])
                row["exact"], row["exact_from"] = exact.epsilon_upper, "enumeration"
                row["oracle"], row["oracle_from"] = Asked.of(result).best(*likeliest(law)), "law"
            elif events is not None:
                row["oracle"], row["oracle_from"] = events.best(Asked.of(result)), f"best of {len(events)} events"

    def at_worst_pair(self, entry: Entry) -> None:
        """An audit at the stock pair of largest loss, where one is larger than that of the default pair."""
        found = worst_pair(entry)
        if found is not None:
            pair, own, largest = found
            for row in self.rows:
                if row["part"] == "seeds":
                    row["exact_worst_pair"] = max(own, largest)
            if largest > own * (1.0 + CLOSER):
                for row, _ in self.ask("worst pair", entry, pair, runs=(self.plan.runs,)):
                    row["exact_worst_pair"] = largest


def told(part: str, entry: Entry, row: Row) -> Row:
    """The row of the study's table for a row of a sweep."""
    exact = row["exact_epsilon"] if row["exact_epsilon"] is not None else row["true_epsilon"]
    given = {key.partition(".")[2]: value for key, value in row.items() if key.startswith("parameters.")}
    kept = ("mechanism", "pair", "form", "delta", "runs", "certifying_runs", "confidence", "base_seed", "seed")
    return {
        "part": part,
        "room": entry.module.rpartition(".")[2],
        "kind": kind_of(entry),
        **{name: row[name] for name in kept},
        "parameters": json.dumps({**entry.values(), **given}, default=str),
        "claimed": row["claimed_epsilon"],
        "verdict": row["verdict"],
        "certified": row["epsilon_lower"],
        "p_value": row["p_value"],
        "exact": exact,
        "exact_from": None if exact is None else "formula" if row["exact_epsilon"] is None else "enclosure",
        "proved": row["proved"],
        "event": row["event"],
        "cpu_s": row["cpu_s"],
        "error": row["error"],
    }


def worst_pair(entry: Entry) -> tuple[Any, float, float] | None:
    """The stock pair of query answers with the largest exact loss, the loss of the default pair, and that loss.

    None for mechanisms of other data, and where a loss is not known.
    """
    first = entry.default_pair[0]
    if not entry.adjacency or not isinstance(first, list):
        return None
    unit = entry.values().get("sensitivity", 1)
    own, best, most = entry.true_loss(*entry.default_pair), None, -math.inf
    for pair in _stock(len(first), unit):
        if _adjacent(entry.adjacency, pair, unit):
            try:
                loss = entry.true_loss(pair.first, pair.second)
            except (DpAuditError, ArithmeticError, ValueError, TypeError, LookupError):
                continue  # answers that the formula of its loss does not take
            if loss is not None and loss > most:
                best, most = pair, loss
    return None if best is None or own is None else (best, own, most)


def _stock(queries: int, unit: float) -> Iterator[Any]:
    for pattern in PATTERNS:
        if queries >= 2 or pattern != "half_up_half_down":
            yield from stock_pairs(pattern, queries=queries, sensitivity=unit)


def _adjacent(ways: tuple[str, ...], pair: Any, unit: float) -> bool:
    moves = [after - before for before, after in zip(pair.first, pair.second, strict=True)]
    one_way = all(move >= 0 for move in moves) or all(move <= 0 for move in moves)
    if max(map(abs, moves)) > unit or ("up" in ways and not one_way):
        return False
    return "one-differs" not in ways or sum(move != 0 for move in moves) <= 1


def published(name: str, plan: Plan, confidence: float) -> list[Row]:
    """The row of a mechanism of the published benchmark, at its parameters, with what others reported of it.

    It is audited at the one of its pairs whose best event certifies most; the published tools were given all of them.
    """
    benchmark, said = benchmark_row(name), of(name)
    entry = benchmark.entry
    both = {pair.name: curves(name, entry, pair) for pair in benchmark.pairs}
    laws = {key: np.concatenate([np.stack([each.p, each.q]) for each in found], 1) for key, found in both.items()}
    exact = {key: max(each.loss for each in found) for key, found in both.items()}
    like = Asked(entry.claim(), "coin-flip", 0.0, confidence, plan.published_runs)
    pair = max(benchmark.pairs, key=lambda each: like.best(*laws[each.name]))
    work = Work(entry.name, plan, confidence)
    for row, result in work.ask(PUBLISHED, entry, pair, runs=(plan.published_runs,)):
        row["oracle"], row["oracle_from"] = Asked.of(result).best(*laws[pair.name]), "law"
        row["exact"], row["exact_from"] = exact[pair.name], both[pair.name][0].method
        row["certified_90"] = two_interval_epsilon(result.evidence, 0.0, PEERS)
        row |= reported(said)
    return work.rows


def reported(said: Published) -> Row:
    """What was published of a mechanism, all of it at confidence 0.90; what was not is None."""
    return {
        "benchmark": said.name,
        "dp_sniper": None if said.best is None else said.best.epsilon,
        "dp_sniper_runs": None if said.best is None else said.executions,
        "statdp": max((each.epsilon for each in said.statdp), default=None) if said.same else None,
        "remark": said.remark or None,
    }
