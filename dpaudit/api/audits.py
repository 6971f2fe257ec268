"""The Python door: one call audits a mechanism, others load, check and write results."""

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from dpaudit.adapters.adapted import Adapted, OwnClaim, offered
from dpaudit.auditing import Question, Runner
from dpaudit.auditing.watching import uninterrupted, watching
from dpaudit.base import validate
from dpaudit.base.validate import meant
from dpaudit.claims import Claim, PureDP, Relation, check_claim, claim_of
from dpaudit.data import AdjacentPair, pairs_of_data
from dpaudit.data.patterns import Example, drawn_pairs, is_strategy
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.options import OPTIONS, WORKING
from dpaudit.results.bounds import Bracket, UpperBound
from dpaudit.results.provenance import recorded
from dpaudit.results.result import AuditResult

if TYPE_CHECKING:
    from dpaudit.ledger.runs import Call


Asked = TypeVar("Asked", bound=Callable[..., Any])


def by_name(call: Asked) -> Asked:
    """The same, which tells what is meant by a keyword that it does not have, or by an argument without a name."""
    known = inspect.signature(call).parameters
    places = [name for name, each in known.items() if each.kind is each.POSITIONAL_OR_KEYWORD]

    @functools.wraps(call)
    def asked(*given: Any, **keywords: Any) -> Any:
        if len(given) > len(places):
            rest = "name the others, as in pair=(first, second), epsilon=1.0"
            raise InvalidSpec(f"{call.__name__} takes {' and '.join(places)} without a name; {rest}")
        check_keywords(call.__name__, keywords, known)
        return call(*given, **keywords)

    return asked  # type: ignore[return-value]


def check_keywords(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises `InvalidSpec` for the first keyword that the call does not have."""
    for word in given:
        if word not in known:
            raise InvalidSpec(f"{call} has no keyword {word!r}{meant(word, known, '; it has: ' + ', '.join(known))}")


@by_name
def audit(
    mechanism: Any,
    *,
    pair: Any = None,
    pairs: Any = None,
    data: Any = None,
    claim: Claim | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    relation: Relation | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    name: str = "",
    runs: int | None = None,
    max_time_s: float | None = None,
    run_timeout_s: float | None = None,
    confidence: float = 0.999,
    seed: int = 0,
    stopping: str = "fixed",
    certifier: str | None = None,
    sequential_share: float = 0.2,
    certify_pairs: int = 1,
    representation: bool = False,
    detect: Mapping[str, float] | None = None,
    controls: int = 0,
    leads: str | None = None,
    user: str | int | None = None,
    upper: UpperBound | None = None,
    record: Mapping[str, str | int] | None = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    scheduler: str | None = None,
    isolation: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> AuditResult:
    """Audits a mechanism on adjacent datasets and certifies a lower bound on its true epsilon.

    What runs: `mechanism` is `f(data, rng)` or `f(data)` for one run, `dpaudit.batched(f)`, `dpaudit.built_by(make)`,
    `dpaudit.command([...])`, one of `dpaudit.adapters`, which brings claim and pairs of its own, or a name
    "module:function". `parameters` are further keywords of the function, `name` is what the result is called.

    On what: `pair` is (first, second) or an `AdjacentPair`, `pairs` are several (the worst is found on search runs and
    certified on fresh ones) or a Hypothesis strategy, drawn from `seed`. Of `data`, one example dataset, pairs are
    made under the relation (`add_or_remove_one` where none is stated, and the result says so), and worse ones found by
    recorded noise; `pairs` may name patterns instead, as `stock_pairs` has them. Under `add_or_remove_user`, `user` is
    the column, key or position that says whose each record is.

    What is promised: `claim`, or `epsilon` with `delta`. `relation` says who is a neighbour, and is then checked.

    How much: `runs` caps all executions (left out: 1,000,000, or as few as 10,000 where these would take more than
    about a minute), `max_time_s` (seconds) the time; runs that record noise, or confirm a refutation of a batched
    mechanism or a factory, come beyond them. `run_timeout_s` (seconds) makes a run that hangs an output.
    `stopping="anytime"` stops as soon as the claim is refuted. `detect`, such as {"epsilon": 1.2, "mass": 0.01}, is a
    power that it must have. `controls` repeats it so many times with a known leak put in. `leads` looks at recorded
    noise first, as `record_noise` does: "tell" of a lead, which is no verdict, or "fail". The reference lists all.

    How it runs, which never changes the answer: `n_jobs` and `backend` are joblib's, `scheduler` is the address of a
    cluster of dask, ray or Spark. `isolation="process"` counts outputs where the mechanism cannot reach the counts.
    `ledger` is a file that keeps what was counted: after Ctrl-C (`AuditInterrupted`) or a kill, the same call goes on
    from there. `progress` left out shows a bar on terminals and in notebooks; True is lines where there is no terminal,
    False no bar. `record` is what only people know.

    Raises `InvalidSpec` for a question that cannot be asked and `UnsoundAudit` where there is no verdict.

    >>> def noisy_count(rows, rng):
    ...     return len(rows) + rng.laplace(scale=0.5)
    >>> result = audit(noisy_count, pair=(["a"] * 10, ["a"] * 9), epsilon=1.0, runs=20_000)
    >>> result.verdict.value, result.epsilon_lower > 1.6
    ('REFUTED', True)
    """
    given = locals()
    question = pose(**{key: value for key, value in given.items() if key not in WORKING})
    title = name or question.mechanism.name
    with (
        watching(1, title, shown=progress or None, bar=progress is not False) as watcher,
        uninterrupted(watcher, ledger),
        Engine(n_jobs, backend, scheduler, isolation=isolation) as engine,
        journal(question, ledger, title) as call,
    ):
        result = Runner(engine, call, watcher).run(question)
        return result if call is None else call.record(result)


def pose(mechanism: Any, **keywords: Any) -> Question:
    """The question of `audit`, its claim and pairs checked; the keywords are those of `audit`, but for `WORKING`."""
    check_keywords("audit", keywords, USUAL)
    told = {**USUAL, **keywords}
    asked = _claim(*(told[key] for key in ("claim", "epsilon", "delta", "relation")))
    pair, pairs, data, upper, user = (told[key] for key in ("pair", "pairs", "data", "upper", "user"))
    if upper is not None:
        _check_upper(upper)
    if user is not None:  # before pairs are made by it
        validate.column("user", user)
    wrapped = wrap(mechanism, told["parameters"])
    assumed = example = None
    if data is None:
        own = pair is None and pairs is None and isinstance(wrapped, Adapted) and wrapped.pairs
        posed = own or _pairs(pair, pairs, told["seed"])
    else:
        promised = wrapped.claim if isinstance(wrapped, Adapted) and isinstance(asked, OwnClaim) else None
        under = asked.relation or getattr(promised, "relation", None)
        usual = Relation.ADD_OR_REMOVE_ONE if user is None else Relation.ADD_OR_REMOVE_USER
        assumed = None if under else usual
        posed = _made_of(data, under or usual, pair, pairs, user)
        example = None if pairs else Example(data, under or usual, user)
    stated, adjacent = offered(asked, user, wrapped, posed)
    return Question(
        stated.with_relation(assumed) if assumed else stated,
        wrapped,
        adjacent,
        name=told["name"],
        upper=upper,
        record=recorded(told["record"]),
        assumed=assumed,
        example=example,
        **{name: value for name, value in told.items() if name in OPTIONS},
    )


USUAL = {each.name: each.default for each in inspect.signature(audit).parameters.values() if each.name != "mechanism"}


@contextmanager
def journal(question: Question, ledger: str | os.PathLike[str] | None, name: str) -> "Iterator[Call | None]":
    """The call in a ledger, where there is to be one: as it was interrupted, or new."""
    if ledger is None:
        yield None
        return
    from dpaudit.ledger.runs import resumed_call

    with resumed_call(ledger, name, question.mechanism, question.identity()) as call:
        yield call


@by_name
def bracket(
    mechanism: Any,
    claim: Claim | float | str | None = None,
    *,
    pair: Any = None,
    adjacency: str | None = None,
    domain: Iterable[Any] | None = None,
    neighbours: Any = None,
    most_paths: int = 1_000_000,
    parameters: Mapping[str, Any] | None = None,
    answers: int | None = None,
    runs: int = 1_000_000,
    confidence: float = 0.999,
    seed: int = 0,
    upper: UpperBound | Iterable[UpperBound] | None = None,
    max_time_s: float = 60.0,
    n_jobs: int | None = None,
    backend: str | None = None,
) -> Bracket:
    """Bounds a mechanism's privacy loss from both sides, and says what follows for the claim.

    From above: the source of a function `f(data, rng, ...)` is read, and a proof for all inputs is looked for and
    checked. `adjacency` says how neighbours differ: of vectors of query answers "all-differ", "one-differs",
    "monotone", or one way "up" or "down"; of records "add_or_remove_one", "replace_one", "add_or_remove_user". Of
    answers the loss of `pair` is enclosed, or that of the worst pair of `answers` that a search finds. `domain` and
    `neighbours` replay code of finite randomness on every choice, in at most `most_paths` runs. From below: an audit
    with so many `runs` (0: none) of the pair, or of the worst that was found. What was not done within `max_time_s`,
    and what a method cannot say, is a reason.

    `claim` is a claim, an epsilon, or a text in the parameters such as "2*eps". An entry of the catalogue brings its
    own claim, pair and adjacency. Raises `InvalidSpec` for a wrong question.

    >>> def noisy_count(data, rng, eps):
    ...     return data + rng.laplace(scale=1 / eps)
    >>> found = bracket(noisy_count, 1.0, pair=(10, 9), parameters={"eps": 0.5}, runs=0)
    >>> found.verdict.value, found.ends
    ('OPEN', (0.5, 0.5))
    """
    from dpaudit.verify.bracketing import Wanted, run_bracket, target_of

    stated: Any = claim
    if isinstance(stated, numbers.Real):
        stated = PureDP(validate.not_negative("claim", stated))
    elif stated is not None and not isinstance(stated, str):
        stated = check_claim(stated)
    given: object = () if upper is None else upper
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    uppers = tuple(map(_check_upper, several))
    wanted = Wanted(
        claim=stated,
        pair=None if pair is None else AdjacentPair.of(pair),
        adjacency=adjacency,
        answers=answers,
        domain=domain,
        neighbours=neighbours,
        most_paths=most_paths,
        runs=validate.whole("runs", runs, least=0),
        confidence=confidence,
        seed=seed,
        uppers=uppers,
        max_time_s=max_time_s,
    )
    with Engine(n_jobs, backend) as engine:
        return run_bracket(target_of(mechanism, parameters), wanted, engine).bracket


def _check_upper(given: object) -> UpperBound:
    if not isinstance(given, UpperBound):
        raise InvalidSpec(f"upper must be a dpaudit.UpperBound, got {given!r}")
    return given


def _claim(claim: Any, epsilon: float | None, delta: float, relation: Any) -> Claim | OwnClaim:
    if claim is not None:
        if epsilon is not None or delta:
            raise InvalidSpec("give the claim either as claim=... or as epsilon=... and delta=..., not both")
        return check_claim(claim) if relation is None else check_claim(claim).with_relation(relation)
    if epsilon is None and delta == 0.0:
        return OwnClaim(Relation.of(relation))
    return claim_of(epsilon, delta, relation)  # type: ignore[arg-type]  # which refuses a delta alone


def _made_of(data: Any, relation: Relation, pair: Any, patterns: Any, user: Any) -> tuple[AdjacentPair, ...]:
    if pair is not None or not (patterns is None or isinstance(patterns, list | tuple)):
        raise InvalidSpec("data makes the pairs: leave out pair, and let pairs be a list of patterns, or leave it out")
    return pairs_of_data(data, relation, patterns, user)


def _pairs(pair: Any, pairs: Any, seed: int) -> tuple[AdjacentPair, ...]:
    if (pair is None) == (pairs is None):
        raise InvalidSpec("an audit needs datasets: give one of pair=(first, second), pairs=[...] and data=rows")
    if pairs is None:
        return (AdjacentPair.of(pair),)
    if is_strategy(pairs):
        return drawn_pairs(pairs, validate.whole("seed", seed, least=0))
    if not isinstance(pairs, Iterable):
        raise InvalidSpec(f"pairs must be a sequence of pairs, or a strategy of them, got {type(pairs).__name__}")
    several = tuple(AdjacentPair.of(each, f"pair {index}") for index, each in enumerate(pairs))
    if not several:
        raise InvalidSpec("pairs must hold at least one pair of datasets, got none")
    return several
