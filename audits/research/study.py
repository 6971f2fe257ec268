"""Claimed epsilon from 0.1 to 8 for the whole catalogue: what is certified, what is exact, and what is proved.

`python -m audits.research.study` audits every mechanism of the catalogue at seven claims and writes a table, figures
and a page about them. Nothing here is special to the catalogue: `dpaudit.sweep` takes any mechanism.
"""

from __future__ import annotations

import argparse
import functools
import math
import operator
import sys
import time
from collections.abc import Sequence
from typing import Any

from scipy.optimize import brentq

from dpaudit import InvalidSpec, Sweep, sweep
from dpaudit.catalogue import Entry, entries

CLAIMED = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 0.01  # at which a claim on mu or rho is set to one of these epsilons
RUNS, SEED = 400_000, 0
CONFIDENCE = 0.99999  # of each point: some 600 of them together are wrong with probability at most 0.006
CLOSE = 1e-8  # relative: how closely a parameter is set to make a claim
DIALS = {  # the parameter that sets the claim, where it is not epsilon, and where to look for its value
    "mu": (1e-3, 50.0),
    "rho": (1e-5, 100.0),
    "keep": (0.5 + 1e-6, 1.0 - 1e-6),
    "f": (1e-6, 1.0 - 1e-6),
    "noise_multiplier": (0.25, 50.0),
    "beta": (1e-6, 0.5),
}
TITLE = "Claimed, certified, exact and proved epsilon of the catalogue"


def promised(entry: Entry) -> float:
    """The epsilon that the entry's claim promises: at its own delta, or at `DELTA` for a claim on mu or rho."""
    claim: Any = entry.claim()
    return float(claim.epsilon if claim.parameter == "epsilon" else claim.epsilon_at(DELTA))


def dialled(entry: Entry, epsilon: float) -> Entry | None:
    """The entry with the parameter that makes it claim this epsilon; None where no value does."""
    names = {parameter.name for parameter in entry.parameters}
    dial = next((name for name in ("epsilon", *DIALS) if name in names), None)
    if dial is None:
        return None
    low, high = DIALS.get(dial, (1e-6, 64.0))

    def excess(value: float) -> float | None:
        try:
            return promised(entry.with_parameters({dial: value})) - epsilon
        except (InvalidSpec, ArithmeticError, ValueError):
            return None

    if dial == "epsilon" and excess(epsilon) == 0.0:
        return entry.with_parameters({dial: epsilon})
    first, last = excess(low), excess(high)
    if first is None or last is None or first * last > 0.0:
        return None
    # the claims are monotone in their parameter, and smooth in its logarithm
    value = math.exp(brentq(lambda log: excess(math.exp(log)) or 0.0, math.log(low), math.log(high), xtol=1e-12))
    error = excess(value)
    return entry.with_parameters({dial: value}) if error is not None and abs(error) <= CLOSE * epsilon else None


def asked(claimed: Sequence[float] = CLAIMED, most: int | None = None) -> tuple[list[Entry], list[str]]:
    """The sound entries at every claim, and which claims of which entry no value of its parameters makes."""
    made, left_out = [], []
    for entry in [each for each in entries() if not each.broken][:most]:
        for epsilon in claimed:
            found = dialled(entry, epsilon)
            if found is None:
                left_out.append(f"{entry.name} at {epsilon:g}")
            else:
                made.append(found)
    return made, left_out


def study(mechanisms: Sequence[Entry], *, runs: int = RUNS, **options: Any) -> Sweep:
    """The table of the study; `options` are those of a sweep.

    A claim on rho is tested on one event, as the others are, so that its bound is one on epsilon too.
    """
    on_rho = [entry for entry in mechanisms if entry.claim().parameter == "rho"]
    others = [entry for entry in mechanisms if entry.claim().parameter != "rho"]
    parts = [
        sweep(group, certifiers=certifier, runs=runs, confidence=CONFIDENCE, seeds=SEED, prove=True, **options)
        for group, certifier in ((others, None), (on_rho, "unconditional"))
        if group
    ]
    return functools.reduce(operator.add, parts)


def about(table: Sweep, left_out: Sequence[str], runs: int) -> tuple[str, ...]:
    """What the page says first."""
    proved = sum(row["proved"] is not None for row in table.rows)
    rigorous = sum(row["exact_epsilon"] is not None for row in table.rows)
    exact = sum(row["exact_epsilon"] is not None or row["true_epsilon"] is not None for row in table.rows)
    told = [
        f"Every mechanism of the catalogue that is listed as sound, at claimed epsilons from {min(CLAIMED):g} to "
        f"{max(CLAIMED):g}, each on its default pair with {runs:,} runs, search included, seed {SEED}, and confidence "
        f"{CONFIDENCE:g} a point. Claims on mu or rho are set to that epsilon at delta {DELTA:g}; all numbers of a row "
        "are then at the delta of its certificate.",
        f"The exact loss of the pair is known for {exact:,} of {len(table.rows):,} points: enclosed rigorously for "
        f"{rigorous:,}, and otherwise by the catalogue's formula in floating point. A proof for all inputs was found "
        f"and checked for {proved:,} points; for the others nothing is proved here, and the column not_proved of the "
        "table says why. What is proved is the mechanism over the real numbers, not the code that runs.",
    ]
    if left_out:
        told.append(f"Left out, for no value of their parameters makes that claim: {', '.join(left_out)}.")
    return tuple(told)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and writes its files."""
    parser = argparse.ArgumentParser(prog="python -m audits.research.study", description=__doc__)
    parser.add_argument("--report", default="reports/research", metavar="DIR", help="where the files go")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="executions to spend on a point")
    parser.add_argument("--ledger", metavar="FILE", help="record results here, and take from here those that are there")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="workers; -1 for all processors")
    parser.add_argument("--most", type=int, metavar="N", help="only the first entries of the catalogue")
    given = parser.parse_args(arguments)
    mechanisms, left_out = asked(most=given.most)
    started, done = time.monotonic(), 0

    def progress(row: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        if done % 50 == 0 or done == len(mechanisms):
            print(f"{done} of {len(mechanisms)} points, {time.monotonic() - started:.0f} s", file=sys.stderr)

    table = study(mechanisms, runs=given.runs, ledger=given.ledger, n_jobs=given.jobs, progress=progress)
    paths = table.write(given.report, title=TITLE, about=about(table, left_out, given.runs))
    print(table)
    print(f"page: {paths[-1]}")
    return table.exit_code


if __name__ == "__main__":
    sys.exit(main())
