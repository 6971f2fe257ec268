"""A look: what a few runs see of a mechanism, where they can never refute its claim. It certifies nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpaudit.account.audit import evidence_lines
from dpaudit.account.first import cause
from dpaudit.account.statements import ending_lines
from dpaudit.api.audits import by_name, pose
from dpaudit.auditing import Runner
from dpaudit.base import validate
from dpaudit.base.numerals import counted
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.claims import PureDP, Relation
from dpaudit.execution.engine import Engine
from dpaudit.results.result import AuditResult
from dpaudit.running.streams import apart

if TYPE_CHECKING:
    from dpaudit.spec.questions import SpecQuestion

USUAL, MOST = 10_000, 100_000  # runs of a look; what a spec asks for beyond the second is not made


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a look saw: it certifies nothing, and has no verdict.

    `event` is what told the datasets of `pair` apart, "" where nothing did: `hits` of `runs` on the first and on the
    second, in runs that did not choose it; in `words` it is told with how runs ended.
    """

    name: str
    pair: str
    event: str
    hits: tuple[int, int]
    runs: tuple[int, int]
    words: tuple[str, ...]

    def __str__(self) -> str:
        return "\n    ".join((f"a look, which certifies nothing: {clean(self.name)}", *self.words))


@by_name
def look(
    mechanism: Any,
    *,
    pair: Any = None,
    pairs: Any = None,
    relation: Relation | str | None = None,
    user: str | int | None = None,
    parameters: Mapping[str, Any] | None = None,
    name: str = "",
    runs: int = USUAL,
    run_timeout_s: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    backend: str | None = None,
    isolation: str | None = None,
) -> Glimpse:
    """What `runs` runs see of a mechanism, without a claim, a bound or a verdict; the keywords are those of `audit`.

    For a claim that so few runs can never refute, and for a first glance. An audit with any seed makes other runs.
    Raises `InvalidSpec` and `UnsoundAudit` as `audit` does.

    >>> def fails_on_two(rows):
    ...     return 1 / (len(rows) - 2)
    >>> print(look(fails_on_two, pair=([1, 1], [1]), runs=400, n_jobs=1).words[-1])  # doctest: +ELLIPSIS
    the mechanism raises ZeroDivisionError in ... of ... search runs on the first dataset, 0 of ... on the second: ...
    """
    question = pose(
        mechanism,
        pair=pair,
        pairs=pairs,
        claim=PureDP(0.0),
        relation=relation,
        user=user,
        parameters=parameters,
        name=name,
        runs=runs,
        run_timeout_s=run_timeout_s,
        seed=_seed(seed),
    )
    with Engine(n_jobs, backend, isolation=isolation) as engine:
        return _glimpse(Runner(engine).run(question))


def look_at(question: "SpecQuestion", n_jobs: int) -> Glimpse:
    """The same for the audit of a spec that was read for a look."""
    with Engine(n_jobs, supervised=True, **question.where) as engine:
        question.check_requirements()
        runs = min(question.runs or USUAL, MOST)
        return _glimpse(Runner(engine).run(replace(question, seed=_seed(question.seed), runs=runs, max_time_s=None)))


def _seed(seed: int) -> int:
    """Whose streams no audit with `seed` has: it may be one that is made because of the look."""
    return apart(apart(validate.whole("seed", seed, least=0)))


def _glimpse(result: AuditResult) -> Glimpse:
    """From an audit that held the claim of no loss at all: whether anything differs, at its usual confidence."""
    sides = result.main.sides
    hits, runs = ((sides["first"][place], sides["second"][place]) for place in (0, 1))
    pair = str(result.pair["name"])
    if not result.certificate.refuted:
        nothing = f'no difference between the datasets of "{clean(pair)}" showed in {counted(result.runs_used, "run")}'
        return Glimpse(result.name, pair, "", hits, runs, (nothing, *ending_lines(result)))
    event = clean(result.witness.event, LONGEST_DATA)
    headline = f'the datasets of "{clean(pair)}" differ: {cause(result)}'
    return Glimpse(result.name, pair, event, hits, runs, (headline, *evidence_lines(result)[:2], *ending_lines(result)))
