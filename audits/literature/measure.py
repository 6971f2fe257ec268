"""One row measured: audits with rising numbers of runs, and beside them what its law says is there to be found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dpaudit
from audits.digest import digest
from audits.literature.chances import chances
from audits.literature.laws import Curve, curves
from audits.literature.oracle import ceiling, oracle_bound
from audits.literature.record import CONFIDENCE, Point, Record
from audits.literature.rows import Row
from dpaudit.certify import CoinFlip, error_probability

SEED = 0
SMALLER = (100_000, 1_000_000, 5_000_000)  # for the figure of bound against executions
LONGEST = 120  # characters of a dataset in words


@dataclass(frozen=True, slots=True)
class Truth:
    """The law of a row on its pairs: two curves a pair. No curves: `unknown` says why, and losses are the catalogue's.

    `losses` are the exact losses a pair, where the first dataset is likelier and where the second is; the catalogue's
    are the larger of the two, for both.
    """

    curves: tuple[tuple[Curve, Curve], ...]
    losses: tuple[tuple[float, float] | None, ...]
    unknown: str
    cpu_s: float

    def loss(self, pair: int, side: int) -> float | None:
        """The exact loss of a pair in one direction."""
        found = self.losses[pair]
        return None if found is None else found[side]

    @property
    def largest(self) -> float | None:
        """The largest exact loss of all pairs; None where that of one of them is not known."""
        known = [max(each) for each in self.losses if each is not None]
        return max(known) if len(known) == len(self.losses) else None

    def oracle(self, runs: int, pair: int, side: int) -> tuple[float | None, float | None]:
        """The best event's bound on this pair in this direction, and on all pairs in both."""
        if not self.curves:
            return None, None
        alpha = error_probability(CONFIDENCE)
        bounds = [[oracle_bound(curve, runs, alpha) for curve in both] for both in self.curves]
        return bounds[pair][side], max(max(both) for both in bounds)


def truth(row: Row) -> Truth:
    """The law of a row; a law that fails is said, and leaves the losses that the catalogue knows."""
    started = time.process_time()
    try:
        found = tuple(curves(row.name, row.entry, pair) for pair in row.pairs)
    except Exception as error:  # the audit stands without it
        losses = tuple(None if each is None else (each, each) for each in _formula(row))
        return Truth((), losses, f"{type(error).__name__}: {error}", time.process_time() - started)
    losses = tuple((first.loss, second.loss) for first, second in found)
    return Truth(found, losses, "", time.process_time() - started)


def catalogued(row: Row) -> float | None:
    """The largest exact loss of the pairs by the catalogue's formula; None where it does not know all of them."""
    known = _formula(row)
    return None if None in known else max(each for each in known if each is not None)


def _formula(row: Row) -> list[float | None]:
    return [row.entry.true_loss(pair.first, pair.second) for pair in row.pairs]


def measured(
    row: Row, runs: int, *, smaller: Sequence[int] = SMALLER, n_jobs: int = -1, seed: int = SEED
) -> tuple[Record, dict[str, Any]]:
    """The record of a row audited with `runs` executions, and before that with each smaller number; and with what.

    Everything but the seconds is a function of the row, the runs and the seed. Raises what `dpaudit.audit` raises.
    """
    known = truth(row)
    sizes = [*(size for size in sorted(smaller) if size < runs), runs]
    results = [
        dpaudit.audit(
            row.entry,
            pairs=row.pairs,
            claim=row.entry.claim(),
            runs=size,
            confidence=CONFIDENCE,
            certifier="coin-flip",
            seed=seed,
            n_jobs=n_jobs,
        )
        for size in sizes
    ]
    chance_p, chance_q, error = chances(row, results[-1])
    points = [point(row, known, result) for result in results]
    points[-1] = replace(points[-1], chance_p=chance_p, chance_q=chance_q, chance_error=error)
    every = [curve for both in known.curves for curve in both]
    record = Record(
        name=row.name,
        mechanism=row.entry.reference,
        parameters=dict(row.entry.values()),
        claim=str(row.entry.claim()),
        claimed=row.claim,
        discrete=row.discrete,
        pairs=len(row.pairs),
        exact=known.largest,
        catalogued=catalogued(row),
        ceiling=max((ceiling(curve) for curve in every), default=None),
        method=every[0].method if every else "",
        error=max((curve.error for curve in every), default=None),
        unknown=known.unknown,
        oracle_s=round(known.cpu_s, 3),
        points=tuple(points),
    )
    return record, made_with(results[-1])


def point(row: Row, known: Truth, result: dpaudit.AuditResult) -> Point:
    """One audit as plain data. Raises ValueError where the evidence is not that of the coin-flip design."""
    counts, witness = result.evidence, result.witness
    if not isinstance(counts, CoinFlip):
        raise ValueError(f"{row.name}: the bounds are those of the coin-flip design, the evidence is {counts.kind}")
    pair, side = row.pairs[witness.pair], 0 if witness.p_side == "first" else 1
    sides = (words(pair.first), words(pair.second))
    oracle, oracle_all = known.oracle(result.evidence.runs, witness.pair, side)
    return Point(
        asked=int(result.spec["runs"]),
        executions=result.runs_used,
        hits_p=counts.hits_p,
        hits_q=counts.hits_q,
        runs_p=counts.runs_p,
        runs_q=counts.runs_q,
        pair=pair.name,
        likelier=sides[side],
        rarer=sides[1 - side],
        event=str(witness.event),
        cpu_s=float(result.provenance["cpu_s"]),
        wall_s=float(result.provenance["wall_s"]),
        exact=known.loss(witness.pair, side),
        oracle=oracle,
        oracle_all=oracle_all,
    )


def words(data: Any) -> str:
    """A dataset in a few letters: `20 x 1` for twenty answers that are 1.

    >>> words([1, 1, 1, 1, 1]), words([2, 0, 0, 0]), words([0.5, 1.0, 0.5, 2.0]), words(1)
    ('5 x 1', '1 x 2, 3 x 0', '[0.5, 1.0, 0.5, 2.0]', '1')
    """
    import itertools

    if not isinstance(data, list | tuple):
        return repr(data)
    groups: list[Any] = list(data)
    if len(data) > 3 and all(isinstance(each, int | float) for each in data):
        groups = [(value, len(list(group))) for value, group in itertools.groupby(data)]
        told = ", ".join(f"{count} x {value:g}" for value, count in groups)
    if 2 * len(groups) > len(data):
        told = repr(list(data))
    return told if len(told) <= LONGEST else f"{told[: LONGEST - 3]}..."


def made_with(result: dpaudit.AuditResult) -> dict[str, Any]:
    """What the audits ran on: versions, the system by name and processors; nothing that tells machines apart."""
    import os
    import platform

    names = ("version", "python", "numpy", "scipy", "n_jobs")
    system = f"{platform.system()} {platform.machine()}"
    found = {name: result.provenance[name] for name in names} | {"platform": system, "processors": os.cpu_count()}
    return found | {"code_digest": digest("literature")}
