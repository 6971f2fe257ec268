"""The options of an audit, each declared once: default, check, words, and the doors that it can be given at.

Derived from here: the keys of specs and of [tool.dpaudit] with their schema and examples, the options of commands and
of the pytest plugin, the axes of sweeps, the documentation's table of keywords, the stored form of a question, and the
text that repeats it. The signature of `dpaudit.audit` is written out for editors, and a test holds it equal.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from dpaudit.base import validate
from dpaudit.base.validate import AtLeastOne, Count, OpenProbability
from dpaudit.errors import InvalidSpec

FEWEST_RUNS = 200
MOST_RUNS = 10**15  # a million a second for thirty years; exact tails of more are slow
STOPPING = ("fixed", "anytime")
SELECTOR = "penalised"  # what proposes events: one way, whose name results keep
ISOLATION = ("process", "none")
LEADS = ("tell", "fail")
Check = Callable[[str, Any], Any]  # of a name in messages and a value; returns the value or raises `InvalidSpec`


@dataclass(frozen=True, slots=True)
class Detect:
    """The power that an audit must have: a loss of `value` on an event of probability `mass`, caught with 0.95.

    `parameter` is the claim's own ("epsilon", "mu", ...), `mass` in (0, 1].

    >>> Detect.of("detect", {"epsilon": 1.2, "mass": 0.01})
    Detect(parameter='epsilon', value=1.2, mass=0.01)
    """

    parameter: str
    value: float
    mass: float

    @classmethod
    def of(cls, name: str, given: Any) -> "Detect":
        """From the form of a spec, `{epsilon = 1.2, mass = 0.01}`. Raises `InvalidSpec`."""
        if isinstance(given, Detect):
            return given
        keys = [key for key in given if key != "mass"] if isinstance(given, Mapping) else []
        if len(keys) != 1 or "mass" not in given:
            raise InvalidSpec(f"{name} must read {{epsilon = 1.2, mass = 0.01}}, got {given!r}")
        mass = validate.positive(f"{name}.mass", given["mass"])
        if mass > 1.0:
            raise InvalidSpec(f"{name}.mass must lie above 0 and be at most 1, got {mass:g}")
        return cls(str(keys[0]), validate.positive(f"{name}.{keys[0]}", given[keys[0]]), mass)

    def to_dict(self) -> dict[str, float]:
        """As specs and results write it."""
        return {self.parameter: self.value, "mass": self.mass}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StoredKey:
    """The place of an option among the keys of a stored question, and what may stand there, its limits in the type.

    One that is stored only where it is `set` leaves the questions of earlier versions, and their digests, as they are.
    """

    place: int
    kind: Any
    when_set: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Axis:
    """The place of an option among the keys of a sweep, and its name there; `several`: a list varies it.

    Its meaning, where that is another than in the table of an audit.
    """

    place: int
    key: str
    words: str = ""
    several: bool = True


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Option:
    """One option: its name in Python, what it is where nobody gives it, and how each door names it.

    `kind` is what a spec may hold, `words` its meaning there (empty: it is no key of specs), `example` a value; `flag`
    and `flag_words` are of the command line, `axis` of sweeps, `session_words` of the plugin's `--dpaudit-...`;
    `project`: it is a key of [tool.dpaudit] too, `shown`: the text that repeats an audit has it at its default too.
    `keyword` is its row in the documentation's table on a `topic`, and `python` the default of `dpaudit.audit` where
    that is another. One that `answers` nothing changes no result.
    """

    name: str
    default: Any
    check: Check
    kind: Any = None
    words: str = ""
    example: str = ""
    flag: str = ""
    flag_words: str = ""
    axis: Axis | None = None
    session_words: str = ""
    topic: str = ""
    keyword: str = ""
    python: Any = ...
    project: bool = False
    shown: bool = False
    answers: bool = True
    stored: StoredKey | None = None

    @property
    def usual(self) -> Any:
        """The default of the keyword of `dpaudit.audit`."""
        return self.default if self.python is ... else self.python


def option(default: Any, *, check: Check, **told: Any) -> Any:
    """A field of `Options`: `seed: int = option(0, check=..., words="of all randomness", flag="--seed")`."""
    return field(default=default, metadata={"check": check, **told})


def options(holder: Any) -> tuple[Option, ...]:
    """The options of a class, in the order of its fields."""
    return tuple(Option(each.name, each.default, **each.metadata) for each in fields(holder) if each.metadata)


def whole(*, least: int, most: int | None = None) -> Check:
    """The check of a whole number within limits."""

    def check(name: str, value: Any) -> int:
        number = validate.whole(name, value, least=least)
        if most is not None and number > most:
            raise InvalidSpec(f"{name} must be at most {most:,}, got {number:,}")
        return number

    return check


def word(*known: str) -> Check:
    """The check of one of some words."""
    return lambda name, value: validate.one_of(name, value, known)


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that counts as one of them."""
    if not isinstance(value, bool):
        raise InvalidSpec(f"{name} must be True or False, got {value!r}")
    return value


def certifier(name: str, value: Any) -> Any:
    """A certifier, or the name of one."""
    from dpaudit.certify import certifier_named

    certifier_named(value)
    return value


def as_given(name: str, value: Any) -> Any:
    """For what is checked where it is used, by the engine and the ledger."""
    return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Options:
    """What may be asked beside mechanism, claim and datasets; a value of None leaves the choice to dpaudit.

    Raises `InvalidSpec` naming the option that is wrong.
    """

    runs: int | None = option(
        1_000_000,
        check=whole(least=FEWEST_RUNS, most=MOST_RUNS),
        kind=float | int | None,
        words="executions to spend in all",
        example="1_000_000",
        flag="--runs",
        flag_words="Executions to spend on each {audit}.",
        axis=Axis(0, "runs", "executions to spend on a point"),
        session_words="the runs of every audit, whatever its test says",
        python=None,
        topic="spent",
        keyword="executions in all; None: 1,000,000, [fewer](../how/runs.md#no-number-of-runs) where they would take "
        "more than a minute, or with `max_time_s` as many as fit",
        project=True,
        shown=True,
        stored=StoredKey(0, AtLeastOne),
    )
    max_time_s: float | None = option(
        None,
        check=validate.seconds,
        kind=float | None,
        words="seconds to spend at the most",
        example="60",
        topic="spent",
        keyword="seconds for all of it; fewer runs are made where not all fit",
    )
    run_timeout_s: float | None = option(
        None,
        check=validate.seconds,
        kind=float | None,
        words="seconds after which one run counts as hanging",
        example="1.0",
        axis=Axis(6, "run_timeout_s", several=False),
        topic="spent",
        keyword="seconds after which one run counts as hanging, which is an output",
        stored=StoredKey(13, float | None),
    )
    isolation: str | None = option(
        None,
        check=word(*ISOLATION),
        kind=Literal["process", "none"] | None,
        words="process, the usual: counts are made where no mechanism runs",
        flag="--isolation",
        flag_words="process: count where no mechanism runs; none: where it runs.",
        topic="working",
        keyword='`"process"`: outputs are counted where no mechanism runs; None: `"none"`, in this process',
        answers=False,
    )
    backend: str | None = option(
        None,
        check=as_given,
        kind=str | None,
        words="dask, ray or spark, or a joblib backend; left out: the one that fits the work",
        example='"dask"',
        flag="--backend",
        flag_words="dask, ray, spark or a joblib backend, not the one that fits the work.",
        topic="working",
        keyword='`"dask"`, `"ray"`, `"spark"`, or a backend of joblib by its name; `None`: that of '
        "`joblib.parallel_config`, else as the mechanism suits",
        project=True,
        answers=False,
    )
    scheduler: str | None = option(
        None,
        check=as_given,
        kind=str | None,
        words="the address of the cluster of that backend",
        example='"tcp://10.0.0.1:8786"',
        flag="--scheduler",
        flag_words="The address of the cluster of --backend, such as tcp://HOST:8786.",
        topic="working",
        keyword="the address of the [cluster](../how/cluster.md) of that backend; `None`: the one that the program is "
        "connected with, else one of this machine",
        project=True,
        answers=False,
    )
    confidence: float = option(
        0.999,
        check=validate.open_probability,
        kind=float | None,
        words="of the suite, if this audit were all of it",
        example="0.999",
        flag="--confidence",
        flag_words="Confidence of {all}.",
        axis=Axis(5, "confidence", "of each point for itself", several=False),
        topic="spent",
        keyword="of the bound and of a refutation",
        project=True,
        shown=True,
        stored=StoredKey(1, OpenProbability),
    )
    seed: int = option(
        0,
        check=whole(least=0),
        kind=int | None,
        words="of all randomness",
        example="1",
        flag="--seed",
        flag_words="Seed of all randomness{instead}.",
        axis=Axis(4, "seeds", "of all randomness; several repeat every point"),
        session_words="the seed of every audit, whatever its test says",
        topic="spent",
        keyword="of all randomness: the same seed and runs give the same counts",
        project=True,
        shown=True,
        stored=StoredKey(2, Annotated[int, ("ge", 0)]),
    )
    search_share: float | None = option(
        None,
        check=validate.open_probability,
        kind=float | None,
        words="part of the runs that looks for the event; left out: as much as is worth it (anytime: 0.25)",
        stored=StoredKey(11, OpenProbability | None),
    )
    stopping: str = option(
        "fixed",
        check=word(*STOPPING),
        kind=Literal["fixed", "anytime"],
        words="anytime: stop as soon as the claim is refuted",
        axis=Axis(3, "stopping"),
        topic="spent",
        keyword='`"anytime"`: stop as soon as the claim is refuted',
        stored=StoredKey(3, Literal["fixed", "anytime"]),
    )
    sequential_share: float = option(
        0.2,
        check=validate.open_probability,
        kind=float | None,
        words="anytime: part of the error probability that may stop it early",
        topic="spent",
        keyword='with `"anytime"`, the part of the error probability that may stop it',
        stored=StoredKey(6, OpenProbability),
    )
    certifier: Any = option(
        None,
        check=certifier,
        kind=str | None,  # one of `certifier_names`
        words="left out: the one that suits the form of the claim",
        axis=Axis(1, "certifiers"),
        topic="sought",
        keyword="the name of a certifier; None: the one that suits the claim",
        stored=StoredKey(5, str),
    )
    certify_pairs: int = option(
        1,
        check=whole(least=1),
        kind=int | None,
        words="how many of the pairs to certify; 1 if left out",
        topic="sought",
        keyword="how many of several pairs are certified, each at its part of the error probability",
        stored=StoredKey(7, AtLeastOne),
    )
    representation: bool = option(
        False,
        check=flag,
        kind=bool,
        words="also look at the bits of floating-point outputs",
        topic="sought",
        keyword="also look at the low bits of floats, a finding of its own",
        stored=StoredKey(8, bool),
    )
    detect: Detect | None = option(
        None,
        check=Detect.of,
        kind=dict[str, Any] | None,  # its keys are the parameters of the claim forms
        words="power that the audit must have",
        example="{ epsilon = 1.2, mass = 0.01 }",
        topic="sought",
        keyword='a power that the audit must have: `{"epsilon": 1.2, "mass": 0.01}`',
        stored=StoredKey(9, dict[str, float] | None),
    )
    controls: int = option(
        0,
        check=whole(least=0),
        kind=int | None,
        words="repeats of each spiked control; none if left out",
        example="20",
        flag="--controls",
        flag_words="Repeat each spiked control so many times: 20 is usual.",
        topic="sought",
        keyword="repeats of each spiked control: the same audit with a known leak put in",
        stored=StoredKey(10, Count),
    )
    leads: str | None = option(
        None,
        check=word(*LEADS),
        kind=Literal["tell", "fail"] | None,
        words="record noise first: tell of a lead, or fail for one (exit code 1); left out: do not",
        example='"tell"',
        flag="--leads",
        flag_words="Record noise first: tell of a lead, or fail for one.",
        topic="sought",
        keyword='[recorded noise](../how/recorded.md) first: `"tell"` of a lead, or `"fail"`: exit code 1 for one',
        project=True,
        stored=StoredKey(14, Literal["tell", "fail"], when_set=True),
    )
    user: str | int | None = option(
        None,
        check=validate.column,
        kind=str | int | None,
        words="under add_or_remove_user: the column, key, field or position that says whose record each one is",
        example='"id"',
        axis=Axis(7, "user", "of every pair, under add_or_remove_user", several=False),
        topic="users",
        keyword="the column, key, field or position that says whose record each one is, as in `user='id'`",
    )
    selector: str = option(
        SELECTOR,
        check=word(SELECTOR),
        kind=Literal["penalised"],
        axis=Axis(2, "selectors", "how the event is chosen: there is one way"),
        stored=StoredKey(4, Literal["penalised"]),
    )
    shard_runs: int | None = option(None, check=whole(least=1), stored=StoredKey(12, AtLeastOne))

    def __post_init__(self) -> None:
        for each in OPTIONS.values():
            value = getattr(self, each.name)
            if value is not None or each.default is not None and each.python is ...:
                object.__setattr__(self, each.name, each.check(each.name, value))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Working:
    """The keywords of `dpaudit.audit` that say how it runs; none of them changes an answer."""

    n_jobs: int | None = option(
        None,
        check=as_given,
        topic="working",
        keyword="workers, as joblib counts them (-1: one for each core); `None`: those of `joblib.parallel_config`, "
        "else one for each core",
    )
    ledger: Any = option(
        None,
        check=as_given,
        topic="working",
        keyword="a file that keeps what was counted: the same call goes on after Ctrl-C",
    )
    progress: bool | None = option(
        None,
        check=as_given,
        topic="working",
        keyword="a bar on terminals and in notebooks; `True`: lines elsewhere; `False`: neither, and how long it "
        "takes, once, where that is long",
    )


WORKING = tuple(each.name for each in options(Working))
OPTIONS = {each.name: each for each in options(Options)}
IN_SPECS = {name: each for name, each in OPTIONS.items() if each.words}
WHERE = tuple(name for name, each in OPTIONS.items() if not each.answers)  # where runs are made, and counted
IN_PROJECTS = {name: each for name, each in OPTIONS.items() if each.project}


def _placed(part: str) -> dict[str, Option]:
    """The options that have a place in something else, in the order of their places there."""
    there = [each for each in OPTIONS.values() if getattr(each, part) is not None]
    return {each.name: each for each in sorted(there, key=lambda each: getattr(each, part).place)}


IN_SWEEPS, STORED = _placed("axis"), _placed("stored")
SWEEP_KEYS = {name: each.axis.key for name, each in IN_SWEEPS.items() if each.axis}
TOGETHER = (("runs", "max_time_s"), ("backend", "scheduler"))  # who gives one of them decides about both


def precedence(*layers: Mapping[str, Any], together: Iterable[tuple[str, ...]] = TOGETHER) -> dict[str, Any]:
    """The values of several layers, those of an earlier one before those of a later one.

    A layer that gives one of the keys that belong `together` decides about all of them.

    >>> precedence({"runs": 500}, {"max_time_s": 60.0, "seed": 1}, {"seed": 0, "confidence": 0.99})
    {'seed': 1, 'confidence': 0.99, 'runs': 500}
    """
    settled: dict[str, Any] = {}
    for layer in reversed(layers):
        for group in together:
            if any(layer.get(key) is not None for key in group):
                settled = {key: value for key, value in settled.items() if key not in group}
        settled.update(layer)
    return settled
