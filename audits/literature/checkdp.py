"""CheckDP's wrong programs: audited as the black boxes they are, and refuted from their source.

The eight wrong programs of the example set of Wang, Ding, Kifer & Zhang (CCS 2020), as plain functions of one run, on
StatDP's inputs. CheckDP reads source and needs no executions; what `dpaudit.bracket` says of the same source stands
beside the audit. `python -m audits.literature.checkdp` prints the table.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dpaudit
from audits.literature.expected import up
from audits.literature.refuting import CONFIDENCE, HEADER, RUNS, Attempt, attempt
from audits.literature.statdp import ALL, ONE
from audits.literature.table import Table
from benchmarks.programs import ALL as ALL_DIFFER
from benchmarks.programs import WRONG
from dpaudit import AdjacentPair, stock_pairs

GIVEN = {"eps": 1, "N": 1, "T": 1, "M": 2}  # T: the threshold, or the last place of the smart sum; M: its block
QUERIES = 10


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong program with its parameters, the epsilon that it claims, and the pairs that it is run on."""

    name: str
    function: Callable[..., Any]
    parameters: dict[str, int]
    claim: float
    pairs: tuple[AdjacentPair, ...]

    @property
    def mechanism(self) -> Callable[..., Any]:
        """The program of a dataset and a generator alone."""
        return functools.partial(self.function, **self.parameters)


@dataclass(frozen=True, slots=True)
class Found:
    """The audit of a program, and what its source says of the same pairs.

    `loss` is at most the largest exact loss of the pairs, `refuted` whether it refutes the claim, `cpu_s` the seconds
    for all pairs.
    """

    audit: Attempt
    loss: float
    refuted: bool
    cpu_s: float


def programs() -> tuple[Wrong, ...]:
    """The eight, in CheckDP's order.

    >>> [each.name for each in programs()][:2]
    ['noisy max value', 'partial sum half noise']
    """
    return tuple(_wrong(case.function, case.adjacency, case.claim) for case in WRONG.values())


def audited(wrong: Wrong, *, runs: int = RUNS, n_jobs: int = -1) -> Found:
    """One program, read and run."""
    started = time.process_time()
    read = [
        dpaudit.bracket(wrong.function, wrong.claim, pair=pair, parameters=wrong.parameters, runs=0)
        for pair in wrong.pairs
    ]
    cpu_s = time.process_time() - started
    loss = max(each.epsilon_lower or 0.0 for bracket in read for each in bracket.uppers)
    refuted = any(bracket.verdict is dpaudit.BracketVerdict.REFUTED for bracket in read)
    made = attempt(wrong.name, wrong.mechanism, wrong.pairs, wrong.claim, loss, runs=runs, n_jobs=n_jobs)
    return Found(made, loss, refuted, cpu_s)


def table(found: Sequence[Found]) -> Table:
    """The section of the page."""
    refuted = [each for each in found if each.audit.refuted]
    left = [each.audit.name for each in found if not each.audit.refuted]
    before = (
        f"The eight wrong programs of CheckDP (Wang and others 2020) at eps = {GIVEN['eps']}, N = {GIVEN['N']}, T = "
        f"{GIVEN['T']} (and M = {GIVEN['M']}), as functions of one run, on StatDP's inputs of {QUERIES} answers, with "
        f"at most {RUNS:,} executions at confidence {CONFIDENCE:g}. CheckDP is given the source; what dpaudit.bracket "
        "reads in it about the same inputs stands in the last columns.",
    )
    verdict = (
        f"As black boxes {len(refuted)} of {len(found)} are refuted{', all but ' if left else ''}{'; '.join(left)}. "
        f"From their source {sum(each.refuted for each in found)} of {len(found)} are, without a run."
    )
    notes = (
        "The exact loss is at least what stands here: the largest of these inputs over the events that the reading "
        "looks at. Where it exceeds the claim and the audit does not refute, it shows in outputs too rare for so "
        "many executions, or the search did not find them.",
    )
    rows = tuple(
        (
            each.audit.name,
            f"{each.audit.claimed:g}",
            *each.audit.cells,
            "refuted" if each.refuted else "open",
            up(each.cpu_s, 1),
        )
        for each in found
    )
    header = ("program", "claim", "exact loss, at least", *HEADER[1:], "its source, read", "CPU s, read")
    return Table("CheckDP's wrong programs", header, rows, before, notes, verdict)


def _wrong(function: Callable[..., Any], adjacency: str, claim: str) -> Wrong:
    parameters = {name: GIVEN[name] for name in inspect.signature(function).parameters if name in GIVEN}
    name = " ".join(function.__name__.split("_")[1:])
    epsilon = GIVEN["eps"] * (float(claim.partition("*")[0]) if "*" in claim else 1.0)
    pairs = stock_pairs(ALL if adjacency == ALL_DIFFER else ONE, queries=QUERIES)
    return Wrong(name, function, parameters, epsilon, pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Audits the programs, or some of them, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m audits.literature.checkdp", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this program, such as 'gap value'")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="executions to spend on a program")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="workers; -1 for all processors")
    given = parser.parse_args(arguments)
    chosen = [each for each in programs() if not given.only or each.name in given.only]
    print("\n\n".join(table([audited(each, runs=given.runs, n_jobs=given.jobs) for each in chosen]).markdown()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
