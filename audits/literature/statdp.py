"""StatDP's own mechanisms at its own claims, with 5 and 10 queries: verdicts, and what it takes to refute.

The set of Ding, Wang, Wang, Zhang & Kifer (CCS 2018) with its parameters and its input patterns. Outputs are as they
are: StatDP summarises those of the sparse vector technique by a number that its authors chose for each variant.
`python -m audits.literature.statdp` prints the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.literature.published import STATDP_EVENT, STATDP_TEST
from audits.literature.refuting import CONFIDENCE, HEADER, RUNS, Attempt, attempt, counted, taken
from audits.literature.rows import Row
from audits.literature.table import Table
from dpaudit import AdjacentPair, stock_pairs
from dpaudit.catalogue import Entry, find

CLAIMS = (0.2, 0.7, 1.5)
QUERIES = (5, 10)
ONE, ALL = "statdp_one_differs", "statdp_all_differ"


@dataclass(frozen=True, slots=True)
class Theirs:
    """A mechanism under StatDP's name for it: the entry of the catalogue, its parameters, and the input pattern."""

    name: str
    mechanism: str
    parameters: Mapping[str, Any]
    pattern: str

    def at(self, claim: float) -> Entry:
        """The mechanism at a claim, in nats."""
        return find(self.mechanism).with_parameters({**self.parameters, "epsilon": claim})

    def pairs(self, queries: int) -> tuple[AdjacentPair, ...]:
        """StatDP's inputs of this many answers.

        >>> len(MECHANISMS[0].pairs(5)), len(MECHANISMS[4].pairs(5))
        (8, 2)
        """
        return stock_pairs(self.pattern, queries=queries)


MECHANISMS = (
    Theirs("noisy_max_v1a", "report_noisy_max_general", {}, ALL),
    Theirs("noisy_max_v1b", "report_noisy_max_general.value_only", {}, ALL),
    Theirs("noisy_max_v2a", "report_noisy_max_exponential", {}, ALL),
    Theirs("noisy_max_v2b", "report_noisy_max_exponential.value_only", {}, ALL),
    Theirs("histogram", "laplace_vector", {"sensitivity": 1}, ONE),
    Theirs("histogram_eps", "laplace_vector.inverted_scale", {"sensitivity": 1}, ONE),
    Theirs("SVT", "sparse_lyu_1", {"c": 1, "threshold": 0.5}, ALL),
    Theirs("iSVT1", "sparse_lyu_1.lyu_5", {"c": 1, "threshold": 1}, ALL),
    Theirs("iSVT2", "sparse_lyu_1.lyu_6", {"c": 1, "threshold": 1}, ALL),
    Theirs("iSVT3", "sparse_lyu_1.lyu_4", {"c": 1, "threshold": 1}, ALL),
    Theirs("iSVT4", "sparse_lyu_1.lyu_3", {"c": 1, "threshold": 1}, ALL),
)


def audited(theirs: Theirs, claim: float, queries: int, *, runs: int = RUNS, n_jobs: int = -1) -> Attempt:
    """One mechanism at one claim with this many answers, audited on all of StatDP's inputs of that length.

    Raises ValueError where the exact loss of the inputs is not known, and what `dpaudit.audit` raises.
    """
    entry, pairs = theirs.at(claim), theirs.pairs(queries)
    exact = Row(theirs.name, entry, pairs, discrete=False).exact
    return attempt(theirs.name, entry, pairs, claim, exact, runs=runs, n_jobs=n_jobs)


def attempts(mechanisms: Sequence[Theirs] = MECHANISMS, *, runs: int = RUNS, n_jobs: int = -1) -> tuple[Attempt, ...]:
    """All of them, at all claims with all lengths."""
    return tuple(
        audited(theirs, claim, queries, runs=runs, n_jobs=n_jobs)
        for theirs in mechanisms
        for claim in CLAIMS
        for queries in QUERIES
    )


def table(found: Sequence[Attempt]) -> Table:
    """The section of the page."""
    missed = [f"{each.name} at {each.claimed:g} with {each.queries} answers" for each in found if not each.met]
    theirs = {pattern: _executions(pattern) for pattern in (ALL, ONE)}
    before = (
        f"StatDP's mechanisms (Ding and others 2018) at its claims {', '.join(f'{claim:g}' for claim in CLAIMS)}, with "
        f"N = 1 and T = 1 (SVT: 0.5), on its inputs of {QUERIES[0]} and of {QUERIES[1]} answers. Each audit takes all "
        f"inputs of one length, has at most {RUNS:,} executions at confidence {CONFIDENCE:g}, and stops when it "
        f"refutes. StatDP takes {theirs[ALL]:,} executions for both lengths together ({theirs[ONE]:,} for the "
        "histograms), for each epsilon that it tries.",
        *taken(found),
    )
    verdict = " ".join([counted(found), *([f"MISSED: {'; '.join(missed)}."] if missed else [])])
    notes = (
        "The exact loss is the largest of these inputs, both directions: it may be below the loss of the mechanism. "
        "Expected is a refutation where it exceeds the claim by 5 % or more, and none where it does not exceed it. "
        "Where a claim is refuted the bound stays near it, for the audit stops.",
        "The histograms are audited as they are released, every cell; StatDP's programs give back the first cell "
        "alone. iSVT1 to iSVT4 are algorithms 5, 6, 4 and 3 of Lyu, Su and Li.",
    )
    rows = tuple(
        (each.name, f"{each.claimed:g}", str(each.queries), *each.cells, "yes" if each.met else "MISSED")
        for each in found
    )
    header = ("mechanism", "claim", "answers", *HEADER, "as expected")
    return Table("StatDP's mechanisms", header, rows, before, notes, verdict)


def _executions(pattern: str) -> int:
    """StatDP's executions for one epsilon that it tries.

    >>> _executions(ALL), _executions(ONE)
    (4200000, 1800000)
    """
    return sum(len(stock_pairs(pattern, queries=queries)) for queries in QUERIES) * STATDP_EVENT + STATDP_TEST


def main(arguments: Sequence[str] | None = None) -> int:
    """Audits the set, or some of it, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m audits.literature.statdp", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this mechanism, by StatDP's name for it")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="executions to spend on a claim")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="workers; -1 for all processors")
    given = parser.parse_args(arguments)
    chosen = [each for each in MECHANISMS if not given.only or each.name in given.only]
    print("\n\n".join(table(attempts(chosen, runs=given.runs, n_jobs=given.jobs)).markdown()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
