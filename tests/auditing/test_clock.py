"""A cap on time, by a clock that the mechanism itself moves: no test here waits, and none depends on the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, PureDP
from dpaudit.auditing.audit import run_stages
from dpaudit.auditing.clock import Clock
from dpaudit.mechanisms import wrap
from dpaudit.sampling import Engine, Session, Stage

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


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_time_that_does_not_run_out_changes_nothing(stopping: str) -> None:
    plain, timed = (ask(Timed(), limit, stopping=stopping) for limit in (None, 6.5))
    assert timed.evidence == plain.evidence
    assert timed.explored == plain.explored
    assert timed.runs_used == plain.runs_used


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
@pytest.mark.parametrize("slow_from", [0, 200, 600])
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


def test_certification_that_has_begun_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a run takes may depend on its output: the number of certifying runs is settled before the first."""
    asked: list[int] = []
    before = Session._run

    def noted(session: Session, work: Any, reducer: Any) -> Any:
        if work[0].stage is Stage.CERTIFY:
            asked.append(sum(shard.runs for shard in work))
        return before(session, work, reducer)

    monkeypatch.setattr(Session, "_run", noted)
    calm, late = Timed(), Timed(slow_from=2_400, slow=1e-2)
    assert ask(late, 6.5, search_share=0.25).evidence == ask(calm, 6.5, search_share=0.25).evidence
    assert len(set(asked)) == 1
    assert late.time > 6.5


def test_without_any_time_left_the_fewest_runs_certify() -> None:
    timed = Timed(large=1.0)
    result = ask(timed, 1.0)
    assert result.evidence.runs == 200
    assert result.verdict.value == "NOT_REFUTED"
