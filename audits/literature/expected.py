"""What the study was expected to show, set before its runs, and whether its records show it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from audits.literature.published import PUBLISHED, of
from audits.literature.record import CONFIDENCE, PEERS, Record

BUDGET, FULL = 25_000_000, 250_000_000  # executions of a row, all pairs and the search included
ABOVE = {BUDGET: 12, FULL: 17}  # at least so many rows above DP-Sniper's better bound, of those that have one
LEAST = {  # bounds at confidence 0.90
    "NoisyHist2": 9.6,
    "NoisyMax4": 1.5,
    "SVT5": 11.0,
    "PrefixSum": 0.90,
    "SVT6": 0.32,
    "SVT3": 0.23,
    "LaplaceParallel": 0.045,
}
DISCRETE, OTHERS, INFINITE = 0.95, 0.90, 0.7  # parts of the best event's bound; what may be missing to it at no end
SECONDS = 600.0  # for the twenty with two published bounds of DP-Sniper


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation: what it says, what was found, and whether that is met."""

    words: str
    found: str
    met: bool


def compared(record: Record) -> bool | None:
    """Whether the bound at 0.90 is above DP-Sniper's better one; None where there is none."""
    best = of(record.name).best
    return None if best is None else record.main.bound(PEERS) > best.epsilon


def comparable(records: Sequence[Record]) -> list[Record]:
    """The rows that DP-Sniper was run on with both of its classifiers."""
    return [each for each in records if of(each.name).logistic is not None and of(each.name).network is not None]


def close(record: Record) -> bool | None:
    """Whether the bound comes as close to the best event's as expected; None where that is not known."""
    found = record.main
    if found.part is None or found.oracle_all is None or record.exact is None:
        return None
    if math.isinf(record.exact):
        return found.oracle_all - found.bound() <= INFINITE
    return found.part >= (DISCRETE if record.discrete else OTHERS)


def expectations(records: Sequence[Record]) -> Iterator[Expectation]:
    """The expectations that these records can be held to; none for audits of another size."""
    sizes = {each.main.asked for each in records}
    if sizes not in ({BUDGET}, {FULL}):
        return
    (size,) = sizes
    wrong = [each.name for each in records if each.main.above_the_truth()]
    yield Expectation(f"no bound at {CONFIDENCE:g} above the exact loss of its pair", _listed(wrong), not wrong)
    most = max(each.main.executions for each in records)
    yield Expectation(f"at most {size:,} executions a mechanism, all pairs included", f"{most:,}", most <= size)
    rows = comparable(records)
    complete = len(rows) == len(comparable_names())
    if complete:
        above = sum(bool(compared(each)) for each in rows)
        wanted = f"at least {ABOVE[size]} of {len(rows)} above DP-Sniper's better bound at {PEERS:.2f}"
        yield Expectation(wanted, str(above), above >= ABOVE[size])
    for record in records:
        if record.name in LEAST:
            bound = record.main.bound(PEERS)
            wanted = f"{record.name}: at least {LEAST[record.name]:g} at {PEERS:.2f}"
            yield Expectation(wanted, down(bound), bound >= LEAST[record.name])
    far = [f"{each.name} ({reached(each)})" for each in records if close(each) is False]
    unknown = [each.name for each in records if close(each) is None]
    wanted = (
        f"of the best event's bound at least {DISCRETE:g} for discrete outputs, {OTHERS:g} for others, and within "
        f"{INFINITE:g} of it where the loss is infinite"
    )
    open_ = f"; no best event is known for {', '.join(unknown)}" if unknown else ""
    yield Expectation(wanted, f"{'all but ' if far else 'all'}{', '.join(far)}{open_}", not far)
    if complete and size == BUDGET:
        seconds = sum(each.main.wall_s for each in rows)
        yield Expectation(f"the {len(rows)} audits in at most {SECONDS:.0f} s", f"{seconds:.0f} s", seconds <= SECONDS)


def comparable_names() -> list[str]:
    """The names of the rows that DP-Sniper was run on with both classifiers.

    >>> len(comparable_names())
    20
    """
    return [each.name for each in PUBLISHED if each.logistic is not None and each.network is not None]


def reached(record: Record) -> str:
    """How close a bound comes to the best event's: the part, or what is missing where the loss is infinite.

    A dash where the law is not known.
    """
    found = record.main
    if found.part is None or found.oracle_all is None or record.exact is None:
        return "-"
    if math.isinf(record.exact):
        missing = round(found.oracle_all - found.bound(), 9)
        return f"{down(-missing, 2)} more" if missing < 0.0 else f"{up(missing, 2)} less"
    return down(found.part, 3)


def down(value: float, digits: int | None = None) -> str:
    """A number rounded down, the safe way for a bound: to four decimals below 1, and three from there on.

    >>> down(0.09679), down(9.8888), down(0.0)
    ('0.0967', '9.888', '0')
    """
    from decimal import ROUND_FLOOR, Decimal

    if value == 0.0 or math.isinf(value):
        return "∞" if value else "0"
    places = (3 if value >= 1.0 else 4) if digits is None else digits
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR):f}"


def up(value: float, digits: int) -> str:
    """A number rounded up, the safe way for a cost or for what is missing.

    >>> up(1.01, 1), up(0.71, 2), up(2.0, 0)
    ('1.1', '0.71', '2')
    """
    from decimal import ROUND_CEILING, Decimal

    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING):,f}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"
