"""What the study was expected to show, set before its runs, and whether its records show it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from audits.literature.published import PUBLISHED, of
from audits.literature.record import CONFIDENCE, PEERS, Record
from audits.literature.table import Table

BUDGET, FULL = 25_000_000, 250_000_000  # executions of a row, all pairs and the search included
ABOVE = {BUDGET: 14, FULL: 17}  # at least so many rows above DP-Sniper's better bound, of those that have one
STATDP, MISSED = "StatDP's mechanisms", "MISSED"
PART = 0.9  # of the best event's bound, both at expected counts
SECONDS = 360.0  # of CPU, for the twenty with two published bounds of DP-Sniper
STUDY = 1_800.0  # for all, other groups included


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation: what it says, what was found, and whether that is met."""

    words: str
    found: str
    met: bool


def compared(record: Record) -> bool | None:
    """Whether the bound at 0.90 is above DP-Sniper's better one and is not above the truth; None where there is none.

    This is the rule of counting wherever the two are held against each other.
    """
    best = of(record.name).best
    if best is None:
        return None
    return record.main.bound(PEERS) > best.epsilon and not record.main.above_the_truth(PEERS)


def comparable(records: Sequence[Record]) -> list[Record]:
    """The rows that DP-Sniper was run on with both of its classifiers."""
    return [each for each in records if of(each.name).logistic is not None and of(each.name).network is not None]


def expectations(
    records: Sequence[Record], groups: Sequence[Table] = (), seconds: float | None = None
) -> Iterator[Expectation]:
    """The expectations that these can be held to; none for audits of another size. `seconds` are of the whole study."""
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
    parts = {each.name: each.main.expected_part for each in records}
    far = [f"{name} ({down(part, 3)})" for name, part in parts.items() if part is not None and part < PART]
    unknown = [name for name, part in parts.items() if part is None]
    wanted = f"the event's bound at least {PART:g} of the best event's, both at expected counts"
    open_ = f"; not known for {', '.join(unknown)}" if unknown else ""
    yield Expectation(wanted, f"{'all but ' if far else 'all'}{', '.join(far)}{open_}", not far and not unknown)
    if complete and size == BUDGET:
        spent = sum(each.main.cpu_s for each in rows)
        wanted = f"the {len(rows)} audits in at most {SECONDS:.0f} s of CPU"
        yield Expectation(wanted, f"{up(spent, 0)} s", spent <= SECONDS)
    for table in groups:
        if table.title == STATDP:
            missed = [row[0] for row in table.rows if row[-1] == MISSED]
            yield Expectation(f"{STATDP}: every claim as expected", f"missed: {_listed(missed)}", not missed)
    if seconds is not None and size == BUDGET:
        yield Expectation(f"the study in at most {STUDY:.0f} s", f"{up(seconds, 0)} s", seconds <= STUDY)


def comparable_names() -> list[str]:
    """The names of the rows that DP-Sniper was run on with both classifiers.

    >>> len(comparable_names())
    20
    """
    return [each.name for each in PUBLISHED if each.logistic is not None and each.network is not None]


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
