"""The designs of scores: how they came about, which says what a certificate rests on. Each has options of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Literal

from dpaudit.base import validate
from dpaudit.errors import InvalidSpec

EVENTS = ("in", "out", "both")
EVERY = "all"


class _Design:
    """What designs share: each option is checked as its field says; one that a design does not have is as here."""

    __slots__ = ()
    name: ClassVar[str]
    threshold: float | Literal["all"] | None = None
    splits: int = 1
    event: str | None = None

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            if (value := getattr(self, each.name)) is not None:
                object.__setattr__(self, each.name, each.metadata["check"](each.name, value))


def _option(check: Callable[[str, Any], Any], default: Any = None) -> Any:
    return field(default=default, metadata={"check": check})


_whole, _event = partial(validate.whole, least=1), partial(validate.one_of, known=EVENTS)


def _threshold(name: str, value: Any) -> float | str:
    return EVERY if isinstance(value, str) and value == EVERY else validate.real(name, value)


def _rate(name: str, value: Any) -> float:
    return validate.positive(name, validate.probability(name, value))


def _ends(name: str, value: Any) -> tuple[int, int]:
    try:
        high, low = value
    except (TypeError, ValueError):
        raise InvalidSpec(f'{name} must be two whole numbers ("in", "out"), got {value!r}') from None
    return validate.whole(f"{name}[0]", high, least=0), validate.whole(f"{name}[1]", low, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyRun(_Design):
    """Each score is from a training of its own, and how many of them are in and out was fixed before.

    A threshold is never chosen on the scores that certify: it is chosen on a random part `split` of them and judged on
    the rest, or over several `splits`, whose median is taken, each at half the error probability; or `threshold` was
    known before the scores were; or it is "all", and every one is paid for. A score of at least the threshold is a
    guess "in". `event` names the guesses that the exact test compares where the rule was known before: "in", "out", or
    "both" at half the error probability each.

    >>> ManyRun(splits=3).splits, ManyRun(threshold="all").threshold
    (3, 'all')
    """

    name: ClassVar[str] = "many-run"
    threshold: float | Literal["all"] | None = _option(_threshold)
    split: float = _option(validate.open_probability, 0.25)
    splits: int = _option(_whole, 1)
    event: str = _option(_event, "both")

    def __post_init__(self) -> None:
        _Design.__post_init__(self)
        if self.threshold is not None and self.splits > 1:
            raise InvalidSpec("give threshold or splits, not both: a given threshold needs no split")

    def __str__(self) -> str:
        if self.threshold is not None:
            return EVERY_ONE if self.threshold == EVERY else f"threshold {self.threshold:g}, given beforehand"
        if self.splits > 1:
            return f"median of {self.splits} splits, threshold chosen on {self.split:.0%} of the scores of each"
        return f"threshold chosen on {self.split:.0%} of the scores, judged on the rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun(_Design):
    """The scores are those of canaries of one training, each in or out by a fair coin of its own.

    How many guesses are made, and with which weights, is known before the run for every claim, so no score is spent on
    it. `guesses=(k, l)` fixes the numbers of guesses "in" and "out" instead, and `threshold` makes them where a score
    is at least that. `event` names the guesses that are made: "in", "out" or "both"; without it "both", and "in" of a
    threshold or of counts.

    >>> OneRun(guesses=(50, 30)).guesses
    (50, 30)
    """

    name: ClassVar[str] = "one-run"
    guesses: tuple[int, int] | None = _option(_ends)
    threshold: float | None = _option(validate.real)
    event: str | None = _option(_event)

    def __post_init__(self) -> None:
        _Design.__post_init__(self)
        if self.guesses is not None and self.threshold is not None:
            raise InvalidSpec("give guesses or threshold, not both: each says which guesses are made")

    def __str__(self) -> str:
        if self.guesses is not None:
            return f'{self.guesses[0]:,} guesses "in" and {self.guesses[1]:,} "out", fixed before'
        return EVERY_ONE if self.threshold is None else f"threshold {self.threshold:g}, given beforehand"


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRuns(_Design):
    """The scores are of a few trainings, each with as many canaries as the others, and fresh coins for all of them.

    `in_scores` and `out_scores` hold a list of scores for each training, in the order in which they were made.
    """

    name: ClassVar[str] = "few-runs"

    def __str__(self) -> str:
        return "ranks within each training, its bets of those before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(_Design):
    """The scores are of steps, with a fresh coin for every canary at every step; the claim is that of a step.

    `in_scores` and `out_scores` hold a list of scores for each step; a training has `steps` of them, without which all
    are of one training. They are composed to a statement about a run of `compose` steps, those of a training if that is
    not said. `sample_rate` is the probability with which the audit itself let a canary that was in join a step, alone:
    the claim is then of a step before it is sampled.
    """

    name: ClassVar[str] = "steps"
    steps: int | None = _option(_whole)
    compose: int | None = _option(_whole)
    sample_rate: float = _option(_rate, 1.0)

    def __str__(self) -> str:
        before = f"; the claim is of a step before it is sampled at rate {self.sample_rate:g}"
        return "ranks within each step, its bets of those before" + (before if self.sample_rate < 1.0 else "")


EVERY_ONE = "every threshold, each paid for (one run: numbers of guesses known before it, for which nothing is paid)"
Design = ManyRun | OneRun | FewRuns | Steps
DESIGNS: dict[str, type[Design]] = {each.name: each for each in (ManyRun, OneRun, FewRuns, Steps)}
OF_SCORES = (ManyRun.name, OneRun.name)  # one list of scores a side


def options_of(kind: type[Design]) -> tuple[str, ...]:
    """The names of a design's options."""
    return tuple(each.name for each in fields(kind))


def place_of(option: str) -> str:
    """The designs that have this option, as they are written; "" where none has.

    >>> place_of("threshold"), place_of("split")
    ('ManyRun(threshold=...) or OneRun(threshold=...)', 'ManyRun(split=...)')
    """
    return " or ".join(f"{each.__name__}({option}=...)" for each in DESIGNS.values() if option in options_of(each))


def check_design(design: Any, options: Mapping[str, Any]) -> Design:
    """The design; raises `InvalidSpec` where it is none, or where `options` stand beside it and not in it."""
    for name in options:
        if not place_of(name):
            raise TypeError(f"audit_scores() got an unexpected keyword argument {name!r}")
        raise InvalidSpec(f"{name} is an option of a design: say design={place_of(name)}")
    if not isinstance(design, Design):
        known = DESIGNS.get(design) if isinstance(design, str) else None
        cure = f": say design={known.__name__}()" if known else ""
        names = ", ".join(f"{each.__name__}()" for each in DESIGNS.values())
        raise InvalidSpec(f"design must be one of {names}, got {design!r}{cure}")
    return design


def design_of(name: str, **options: Any) -> Design:
    """The design of this name with these options, as a command line gives them.

    >>> design_of("one-run", guesses=(2, 1))
    OneRun(guesses=(2, 1), threshold=None, event=None)
    """
    kind = DESIGNS[validate.one_of("design", name, OF_SCORES)]
    for option in options:
        if option not in options_of(kind):
            raise InvalidSpec(f"{option} is for {place_of(option)}, got design {name}")
    return kind(**options)
