"""What a result keeps beside its counts, none of it evidence: what search looked at, endings, spiked controls."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.base.validate import Probability
from dpaudit.errors import UnsoundAudit

BINS, MOST_VALUES = 48, 40  # of a histogram; this many different values at most have a count each
TAIL = 0.002  # of all numbers that lie outside the bins at either end
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # of the quantiles of a place
VALUE = "a value"  # how a run ended that gave one
PROCESSES, FIRST_CALLS = "processes", "first calls"  # what was explored in fresh processes; with runs where it was
FAR, INSIDE, RECURRING, NARROW, TEXT, LATE = PLACES = (  # where a control puts its leak
    *("an output far away, or a new word", "a new value inside the range", "a value that recurs"),
    *("a narrow range inside", "a part of a text", "the last entry"),
)


@dataclass(frozen=True, slots=True)
class Explored:
    """One thing that search looked at or left out.

    `what` it is (a pair, a feature, ...), and in `status` what became of it, or why it was left out.
    """

    what: str
    name: str
    status: str
    score: float | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How some search runs ended, on either dataset, and how many of them the event of the witness holds.

    `what` is "a value", "raised ValueError", "None" and the like.
    """

    what: str
    runs: tuple[int, int]
    hits: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Both output distributions on the witness's feature, in search runs: to look at, never evidence.

    `feature` is its printed name. With `edges` there are len(edges) + 1 counts a side: at most the first edge, then the
    half-open bins (low, high], then above the last edge. With `values` (few different ones) a count for each. Tokens,
    what is no number, are counted by `labels`, the last of them perhaps `others`. `runs_first` and `runs_second` are
    all runs looked at.
    """

    feature: str
    edges: tuple[float, ...]
    values: tuple[float, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    labels: tuple[str, ...]
    tokens_first: tuple[int, ...]
    tokens_second: tuple[int, ...]
    runs_first: int
    runs_second: int


@dataclass(frozen=True, slots=True)
class PlaceValues:
    """One place of outputs in search runs, the first dataset before the second: to look at, never evidence.

    `numbers` of the runs have a number there, `different` ones; `levels` are their quantiles at `LEVELS`, empty where
    there is none. `named`: whether the event of the witness reads it.
    """

    name: str
    named: bool
    numbers: tuple[int, int]
    different: tuple[int, int]
    levels: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def cut_off(self) -> tuple[float, float] | None:
        """How far outputs move at least whose end on one dataset, the end of all, is a quarter of them; and the width.

        The width is that of the middle half on the other dataset. None where outputs are not cut off so.
        """
        for way in (1, -1) if all(self.levels) else ():
            both = [[way * each for each in levels[::way]] for levels in self.levels]
            for cut, free in (both, both[::-1]):
                if cut[2] == cut[0] <= free[0] and cut[0] < free[2] < free[4]:
                    return free[3] - cut[3], free[4] - free[2]
        return None


@dataclass(frozen=True, slots=True)
class Typical:
    """Typical outputs of search runs, as text, the first dataset before the second: to look at, never evidence.

    `inside` the event, which holds `hits` of `runs`; of a dataset without hits, other ones. `constant` is the one
    output of all runs, or None; `places` are those that the event reads, and those in which the datasets differ most.
    """

    inside: tuple[tuple[str, ...], tuple[str, ...]]
    hits: tuple[int, int]
    runs: tuple[int, int]
    constant: tuple[str | None, str | None]
    places: tuple[PlaceValues, ...] = ()


def grid(numbers: Any, bins: int = BINS) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(edges, values) of a histogram of finite numbers, at least one: one of the two is empty."""
    import numpy as np

    different = np.unique(numbers)
    if len(different) <= MOST_VALUES:
        return (), tuple(different.tolist())
    low, high = np.quantile(numbers, [TAIL, 1.0 - TAIL])
    if not high > low:
        low, high = different[0], different[-1]
    return tuple(np.unique(np.linspace(low, high, bins + 1)).tolist()), ()


def counts_on(numbers: Any, edges: tuple[float, ...], values: tuple[float, ...]) -> tuple[int, ...]:
    """How many finite numbers lie in each cell of a histogram, as `Histogram` has them."""
    import numpy as np

    if values:
        return tuple(np.bincount(np.searchsorted(values, numbers), minlength=len(values)).tolist())
    if not edges:
        return ()
    places = np.searchsorted(edges, numbers, side="left")  # bins (low, high], as events have them
    return tuple(np.bincount(places, minlength=len(edges) + 1).tolist())


@dataclass(frozen=True, slots=True)
class Control:
    """A spiked control: a leak of known size in a known `place`, and how often it was caught.

    `place` is one of `PLACES`. The marked event has probability `mass` on the first dataset and `rarer` on the second;
    `loss` is the least parameter of the claim's form that allows it. `repeats` audits were made, fewer than asked where
    two failures had settled it already.
    """

    mass: Probability
    rarer: Probability
    loss: float
    caught: int
    repeats: int
    needed: int
    place: str = FAR

    @property
    def seen(self) -> bool:
        """Whether it was caught as often as it must be: 19 times of 20."""
        return self.caught >= self.needed


def by_place(controls: Sequence[Control]) -> dict[str, tuple[Control, ...]]:
    """The controls of each place, the smallest first: all that were missed, and the first that was seen."""
    places = dict.fromkeys(each.place for each in controls)
    return {place: tuple(each for each in controls if each.place == place) for place in places}


def smallest_seen(controls: Sequence[Control]) -> Control | None:
    """The smallest control of one place that was caught as often as it must be; None where none was."""
    return next((control for control in controls if control.seen), None)


LEAST = 1e-300
LEVEL = 1e-6  # the chance that a sound audit of any mechanism is stopped by any check
SERIAL = "serial dependence"
BETWEEN = "over-dispersion between shards"
ONE_OUTPUT = "every search run on both datasets gave one and the same output; a constant tells nothing of the data"
CURES = {
    "repeated streams": "draw from the rng argument or from the system's entropy, never from a generator that is "
    "seeded on import, copied to each worker or shared through a fork; or use n_jobs=1",
    "constant outputs": "draw fresh noise in every call: not from a cache, nor a seed that is made of the data",
    SERIAL: "draw fresh noise in every call, and keep nothing of one call for the next",
    "state between calls": "keep nothing of one dataset for the next call: make the mechanism's object anew each time",
    "drift inside a shard": "let no counter, budget or growing state change what a call does; make it anew in each run",
    "drift over shards": "let no counter, budget or growing state change what a call does; make it anew in each run",
    BETWEEN: "draw from the rng argument; let no worker keep a seed or a draw of its own",
}
CHECKS = tuple(CURES)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the experiment's health.

    Its p-value under independent runs (as log10, rounded up), the level it alarms at, what it saw. `finding` and `cure`
    are empty where there is no alarm.
    """

    name: str
    log10_p: Annotated[float, ("le", 0.0)]
    level: Probability
    finding: str = ""
    cure: str = ""

    @property
    def p_value(self) -> float:
        """The p-value, at least 1e-300."""
        return max(LEAST, 10.0**self.log10_p) if self.log10_p > -300.0 else LEAST

    @property
    def alarm(self) -> bool:
        """Whether the runs are not independent."""
        return self.p_value <= self.level


@dataclass(frozen=True, slots=True)
class Health:
    """All checks of the experiment's health, and notes.

    Notes are no failures.
    """

    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[Check, ...]:
        """The checks that alarm, the strongest first."""
        return tuple(sorted((check for check in self.checks if check.alarm), key=lambda check: check.log10_p))

    @property
    def sound(self) -> bool:
        """Whether no check alarms."""
        return not self.alarms

    def raise_if_unsound(self) -> "Health":
        """Itself; raises `UnsoundAudit` naming the checks that alarm, the worst with numbers and cure, in one line."""
        if self.sound:
            return self
        worst, *more = self.alarms
        also = f"; also {', '.join(check.name for check in more)}" if more else ""
        cures = dict.fromkeys(check.cure for check in (worst, *more[:1]))
        raise UnsoundAudit(
            f"{worst.name}: {worst.finding} (p-value {worst.p_value:.1e}, level {worst.level:.1e}){also}; "
            f"the runs depend on each other, so there is no verdict; {'; or '.join(cures)}"
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What kind of mistake the evidence fits, where to look and what usually mends it."""

    kind: str
    sentence: str
    look_at: str
    usual_mend: str

    @property
    def lines(self) -> tuple[str, str, str]:
        """The three sentences as reports print them."""
        return self.sentence, f"look at: {self.look_at}", f"what usually mends it: {self.usual_mend}"


LINE, LINES = 96, 3  # characters of outputs on one line; lines of longer outputs that a report shows


@dataclass(frozen=True, slots=True)
class Explanation:
    """What tells the datasets of a refutation apart: the cause, typical outputs of either dataset, the diagnosis.

    `first` and `second` are up to eight outputs inside the event, as text, spread over what the event looks at; of a
    dataset that has none inside, up to eight others. `hits` of `runs` search runs were inside it, on either dataset.
    All of it is empty where no outputs are kept. `account` is the whole account of the result, which it prints.
    """

    cause: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    hits: tuple[int, int]
    runs: tuple[int, int]
    diagnosis: Diagnosis | None
    account: str = ""

    def lines(self, most: int | None = None) -> tuple[str, ...]:
        """The outputs line by line: short ones on one line, of long ones the first `most` of either dataset."""
        if not all(self.runs):
            return ()
        width = len("second") if all(self.hits) else len("second, outside")
        rates = [f"{hits:,} of {runs:,}" for hits, runs in zip(self.hits, self.runs, strict=True)]
        lines = [f"inside the event were {rates[0]} search runs on the first dataset, {rates[1]} on the second"]
        for name, texts, hits in (("first", self.first, self.hits[0]), ("second", self.second, self.hits[1])):
            entries = [
                clean(text, LONGEST_DATA) + (f" ({n} of these)" if n > 1 else "") for text, n in Counter(texts).items()
            ]
            if not entries or sum(map(len, entries)) <= LINE:
                entries = [", ".join(entries)]
            shown, name = entries[:most], name if hits else f"{name}, outside"
            lines += [f"{name if j == 0 else '':<{width}} {text}" for j, text in enumerate(shown)]
            if len(shown) < len(entries):
                lines.append(
                    f"{'':<{width}} and {len(entries) - len(shown)} more: result.explain().{name.split(',')[0]}"
                )
        return tuple(lines)

    def __str__(self) -> str:
        return self.account
