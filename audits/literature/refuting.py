"""One audit that stops as soon as the claim is refuted, beside what is true of the pairs it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dpaudit
from audits.literature.expected import down, up
from audits.literature.record import ROUNDING
from audits.literature.sections import number
from dpaudit import AdjacentPair, PureDP

RUNS, CONFIDENCE, SEED = 1_000_000, 0.999, 0
HEADER = ("exact loss", "verdict", f"bound at {CONFIDENCE:g}", "executions", "CPU s")  # of `Attempt.cells`
CLEARLY = 1.05  # a loss of so many times the claim is to be refuted


@dataclass(frozen=True, slots=True)
class Attempt:
    """An audit of one claim: what is true, what was found, and what it took.

    `exact` is the largest exact loss of the `pairs`, both directions, in nats as `claimed` is; `bound` the certified
    one, which stops growing where the claim is refuted. `runs` are all executions, `cpu_s` all seconds of the audit.
    """

    name: str
    queries: int
    pairs: int
    claimed: float
    exact: float
    refuted: bool
    bound: float
    runs: int
    cpu_s: float

    @property
    def expected(self) -> bool | None:
        """Whether the claim is to be refuted; None where the loss is above it by less than 5 %: either will do.

        >>> Attempt("above", 5, 8, 1.0, 1.04, False, 0.9, 1000, 0.1).expected is None
        True
        """
        if self.exact >= CLEARLY * self.claimed:
            return True
        return None if self.exact > self.claimed * (1.0 + ROUNDING) else False

    @property
    def met(self) -> bool:
        """Whether the verdict is the one expected."""
        return self.expected is None or self.refuted == self.expected

    @property
    def cells(self) -> tuple[str, ...]:
        """Exact loss, verdict, bound, executions and seconds, as tables show them."""
        verdict = "refuted" if self.refuted else "not refuted"
        return number(self.exact), verdict, down(self.bound), f"{self.runs:,}", up(self.cpu_s, 1)


def attempt(
    name: str,
    mechanism: Any,
    pairs: Sequence[AdjacentPair],
    claimed: float,
    exact: float,
    *,
    runs: int = RUNS,
    n_jobs: int = -1,
) -> Attempt:
    """Audits a claim of `claimed` nats on these pairs until it is refuted, with at most `runs` executions.

    Raises what `dpaudit.audit` raises.
    """
    result = dpaudit.audit(
        mechanism,
        pairs=pairs,
        claim=PureDP(claimed),
        runs=runs,
        confidence=CONFIDENCE,
        stopping="anytime",
        seed=SEED,
        n_jobs=n_jobs,
    )
    return Attempt(
        name=name,
        queries=len(pairs[0].first),
        pairs=len(pairs),
        claimed=claimed,
        exact=exact,
        refuted=result.certificate.refuted,
        bound=result.epsilon_lower or 0.0,
        runs=result.runs_used,
        cpu_s=float(result.provenance["cpu_s"]),
    )


def counted(attempts: Sequence[Attempt]) -> str:
    """What came of all of them, against what was expected before."""
    above = [each for each in attempts if each.expected]
    within = [each for each in attempts if each.expected is False]
    refuted, wrongly = (sum(each.refuted for each in some) for some in (above, within))
    return (
        f"Of {len(above)} claims that the exact loss exceeds by 5 % or more, {refuted} were refuted; of {len(within)} "
        f"that it keeps within, {wrongly} were."
    )


def taken(attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """What the refutations of wrong claims took, where there are any."""
    runs = sorted(each.runs for each in attempts if each.expected and each.refuted)
    if not runs:
        return ()
    return (
        f"A refutation took between {runs[0]:,} and {runs[-1]:,} executions, {runs[len(runs) // 2]:,} in the middle, "
        f"search included; all audits together took {up(sum(each.cpu_s for each in attempts), 0)} CPU seconds.",
    )
