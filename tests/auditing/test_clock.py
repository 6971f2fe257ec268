"""A cap on time, by a clock that the mechanism itself moves: no test here waits, and none depends on the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, PureDP
from dpaudit.auditing.audit import run_stages
from dpaudit.auditing.clock import Clock
from dpaudit.errors import OutOfTime
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.results.result import part_of, recompute
from dpaudit.results.stored.reading import loads
from tests.cases import for_each

RUNS = 6_000


class Timed:
    """A run takes a thousandth of a second, or from some run on more, or more where its output is large."""

    def __init__(self, *, slow_from: int = 1 << 40, slow: float = 1e-3, large: float = 0.0) -> None:
        self.time, self.runs, self.slow_from, self.slow, self.large = 0.0, 0, slow_from, slow, large

    def __deepcopy__(self, memo: Any) -> Timed:
        return self

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        found = data + rng.laplace()
        self.runs += 1
        self.time += (self.slow if self.runs > self.slow_from else 1e-3) + self.large * (found > 0.5)
        return float(found)


def ask(timed: Timed, limit_s: float | None, **options: Any) -> Any:
    spec = AuditSpec(
        claim=PureDP(1.5), mechanism=wrap(timed), pairs=(AdjacentPair(0.0, 1.0),), runs=RUNS, seed=2, **options
    ).resolved()
    with Engine(1) as engine:
        clock = None if limit_s is None else Clock(limit_s, lambda: timed.time)
        return run_stages(spec, engine, clock=clock)


@pytest.mark.long
@for_each("stopping", ["fixed"], nightly=["anytime"])
def test_time_that_does_not_run_out_leaves_all_runs(stopping: str) -> None:
    """The last milestone then has nine tenths of the error probability."""
    plain, timed, again = (ask(Timed(), limit, stopping=stopping) for limit in (None, 9.0, 9.0))
    assert plain.milestones is None
    assert timed.milestones.planned_runs == timed.evidence.runs
    assert [entry.what for entry in timed.explored] == [entry.what for entry in plain.explored]
    assert part_of(timed, timed.evidence) == 0.9
    assert {**timed.to_dict(), "provenance": None} == {**again.to_dict(), "provenance": None}
    assert recompute(loads(timed.to_json())) == timed.certificate


@pytest.mark.long
@for_each(
    ("slow_from", "stopping"),
    [(0, "fixed"), (600, "fixed"), (200, "anytime")],
    nightly=[(200, "fixed"), (0, "anytime"), (600, "anytime")],
)
def test_a_load_that_triples_before_certification_is_kept_within_the_time(slow_from: int, stopping: str) -> None:
    """Six seconds of runs at the speed of the plan, and a load that makes it eighteen."""
    timed = Timed(slow_from=slow_from, slow=3e-3)
    result = ask(timed, 6.0, stopping=stopping)
    assert timed.time <= 6.3  # with the runs kept back for a fresh process, which the clock does not see
    assert timed.time >= 4.0
    assert result.evidence.runs >= 400
    made = f"{result.evidence.runs:,} certifying runs" if stopping == "fixed" else ""
    *_, told = [entry.status for entry in result.explored if entry.what == "time"]  # what search lost comes before it
    assert told.startswith(f"there was time for {made}")


@pytest.mark.long
@for_each(
    ("stopping", "slow_from"),
    [("fixed", 1_300), ("fixed", 4_000), ("anytime", 2_400)],
    nightly=[("fixed", 2_400), ("anytime", 4_000)],
)
def test_certification_ends_at_a_milestone(stopping: str, slow_from: int) -> None:
    """How long a run takes may depend on its output: what counts are the runs of a milestone, fixed before them."""
    timed = Timed(slow_from=slow_from, slow=0.01)
    result = ask(timed, 6.5, stopping=stopping)
    assert timed.time <= 6.5 + 0.01 * 500  # no clock looks into a task of this process: an eighth of the runs before it
    ends = result.milestones.ends
    assert result.evidence.runs in ends[:-1]
    assert result.runs_used >= result.evidence.runs + (result.evidence.runs > 0)
    share = 0.1 / (len(ends) - 1)
    assert part_of(result, result.evidence) == pytest.approx(share)
    assert result.evidence.runs < result.milestones.planned_runs
    bound = 0.8 if stopping == "anytime" else 1.0
    assert result.level == pytest.approx(1.0 - 0.001 * bound * share)
    assert recompute(loads(result.to_json())) == result.certificate
    assert result.cut_short


def test_without_the_time_for_a_first_milestone_there_is_no_verdict() -> None:
    with pytest.raises(OutOfTime, match="max_time_s was over") as caught:
        ask(Timed(large=1.0), 1.0)
    assert caught.value.exit_code == 3


def test_little_time_for_certification_plans_few_runs_and_takes_the_time_of_checks_for_the_first_milestone() -> None:
    """At 5.2 of 6.5 seconds that milestone is not reached; the rest was kept for checks."""
    timed = Timed(slow_from=1_000, slow=0.015)
    result = ask(timed, 6.5)
    assert result.evidence.runs == result.milestones.ends[0]
    assert result.milestones.planned_runs < 200
    assert 5.2 < timed.time <= 6.5
