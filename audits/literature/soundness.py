"""Soundness over the whole benchmark: many small audits, and how often a bound exceeds the exact loss of its pair.

A repetition audits one pair of a row, the pairs in turn, with its own seed. The bounds at several confidences come from
the counts of one witness; each is held against the exact loss of the pair in the direction that was certified.
`python -m audits.literature.soundness` prints the table.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import dpaudit
from audits.literature.measure import truth
from audits.literature.record import CONFIDENCE, CONFIDENCES, ROUNDING
from audits.literature.rows import Row, rows
from audits.literature.table import Table
from dpaudit.certify import CoinFlip, error_probability
from dpaudit.certify.coin_flip import epsilon_lower

REPETITIONS, RUNS = 200, 20_000
CHANCE = 1e-4  # of more bounds above the truth than the limit, if each is so with exactly its error probability
SEEDS = 1_000_000  # from the first seed of a row to that of the next: rows with the same noise share no draws
CHUNK = 50  # repetitions of a row that one process makes in a go


@dataclass(frozen=True, slots=True)
class Tally:
    """The repetitions of a row: how many bounds exceeded the exact loss, at each of `CONFIDENCES`.

    `finite` counts the repetitions whose exact loss is finite: none can exceed an infinite one. `positive` are those
    with a bound above 0 at the last confidence, `unsound` those without a verdict; `cpu_s` are seconds of all.
    """

    name: str
    repetitions: int
    finite: int
    above: tuple[int, ...]
    positive: int
    unsound: int
    cpu_s: float

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.name,
            self.repetitions + other.repetitions,
            self.finite + other.finite,
            tuple(mine + theirs for mine, theirs in zip(self.above, other.above, strict=True)),
            self.positive + other.positive,
            self.unsound + other.unsound,
            self.cpu_s + other.cpu_s,
        )

    @property
    def sound(self) -> bool:
        """Whether no count is above its limit."""
        return all(
            count <= limit(self.finite, confidence) for count, confidence in zip(self.above, CONFIDENCES, strict=True)
        )


def limit(repetitions: int, confidence: float) -> int:
    """The least number that is exceeded with probability at most `CHANCE` by so many bounds of this confidence.

    Of `repetitions` count those whose loss is finite: the others cannot fail.

    >>> limit(200, 0.9999), limit(200, 0.95), limit(200, 0.9)
    (2, 23, 37)
    """
    from scipy.stats import binom

    return int(binom.isf(CHANCE, repetitions, 1.0 - confidence))


def repeated(row: Row, repetitions: range, *, first_seed: int = 0, runs: int = RUNS) -> Tally:
    """The row audited once for each repetition, on the pair whose turn it is, in this process.

    Raises ValueError where the exact law is not known: a loss of the other direction may be larger.
    """
    known = truth(row)
    if known.unknown:
        raise ValueError(f"{row.name}: the exact law is not known: {known.unknown}")
    above = [0] * len(CONFIDENCES)
    finite, positive, unsound, cpu_s = 0, 0, 0, 0.0
    for repetition in repetitions:
        turn = repetition % len(row.pairs)
        try:
            result = dpaudit.audit(
                row.entry,
                pair=row.pairs[turn],
                claim=row.entry.claim(),
                runs=runs,
                confidence=CONFIDENCE,
                certifier="coin-flip",
                seed=first_seed + repetition,
                n_jobs=1,
            )
        except dpaudit.UnsoundAudit:
            unsound += 1
            continue
        exact = known.loss(turn, 0 if result.witness.p_side == "first" else 1)
        if exact is None:
            raise ValueError(f"{row.name}: the exact loss of {row.pairs[turn].name} is not known")
        if not isinstance(result.evidence, CoinFlip):
            raise TypeError(f"{row.name}: the bounds are those of the coin-flip design, not of {result.evidence}")
        bounds = [epsilon_lower(result.evidence, 0.0, error_probability(each)) for each in CONFIDENCES]
        above = [count + (bound > exact * (1.0 + ROUNDING)) for count, bound in zip(above, bounds, strict=True)]
        finite += math.isfinite(exact)
        positive += bounds[-1] > 0.0
        cpu_s += float(result.provenance["cpu_s"])
    return Tally(row.name, len(repetitions), finite, tuple(above), positive, unsound, cpu_s)


def tallies(
    chosen: Sequence[Row] | None = None, *, repetitions: int = REPETITIONS, runs: int = RUNS, n_jobs: int = -1
) -> tuple[Tally, ...]:
    """Every row, or those chosen; no two audits share a seed, and none depends on the processes."""
    from joblib import Parallel, delayed

    places = {row.name: place for place, row in enumerate(rows())}
    of = rows() if chosen is None else tuple(chosen)
    parts = [range(start, min(start + CHUNK, repetitions)) for start in range(0, repetitions, CHUNK)]
    made = Parallel(n_jobs=n_jobs)(
        delayed(repeated)(row, part, first_seed=SEEDS * places[row.name], runs=runs) for row in of for part in parts
    )
    return tuple(functools.reduce(operator.add, made[at : at + len(parts)]) for at in range(0, len(made), len(parts)))


def table(found: Sequence[Tally], *, runs: int = RUNS) -> Table:
    """The section of the page."""
    whole = dataclasses.replace(functools.reduce(operator.add, found), name="all")
    wrong = [each.name for each in (*found, whole) if not each.sound]
    before = (
        f"Each mechanism was audited {found[0].repetitions} times with {runs:,} executions, on its pairs in turn, each "
        "time with its own seed. Counted are the bounds above the exact loss of the pair in the direction that was "
        "certified. In brackets stands the limit: more are seen with probability at most "
        f"{CHANCE:g} if each bound fails exactly as often as stated.",
    )
    verdict = "No count of bounds above the truth is above its limit."
    if wrong:
        verdict = f"ABOVE THE LIMIT: {', '.join(wrong)}."
    notes = (
        f"With a bound are the repetitions whose bound at {CONFIDENCES[-1]:g} is above 0. An infinite loss cannot be "
        "exceeded; the second column counts the repetitions where it is finite. All audits took "
        f"{math.ceil(whole.cpu_s):,} CPU seconds.",
        *(
            f"{each.name}: {each.unsound} audits gave no verdict, for their runs looked dependent."
            for each in found
            if each.unsound
        ),
    )
    levels = (f"above at {each:g} (limit)" for each in CONFIDENCES)
    header = ("mechanism", "finite loss", "with a bound", *levels)
    return Table("Soundness", header, tuple(_cells(each) for each in (*found, whole)), before, notes, verdict)


def _cells(each: Tally) -> tuple[str, ...]:
    counts = (
        f"{count} ({limit(each.finite, confidence)})" for count, confidence in zip(each.above, CONFIDENCES, strict=True)
    )
    return each.name, str(each.finite), str(each.positive), *counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeats the audits and prints the table; exit code 1 where a count is above its limit."""
    parser = argparse.ArgumentParser(prog="python -m audits.literature.soundness", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this mechanism, by its published name")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, metavar="N", help="audits of a mechanism")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="executions of an audit")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="workers; -1 for all processors")
    given = parser.parse_args(arguments)
    chosen = [each for each in rows() if not given.only or each.name in given.only]
    found = tallies(chosen, repetitions=given.repetitions, runs=given.runs, n_jobs=given.jobs)
    print("\n\n".join(table(found, runs=given.runs).markdown()))
    return 0 if all(each.sound for each in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
