"""Numbers as a report prints them, rounded towards safety: lower bounds down, p-values and detectable epsilons up."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

from dpaudit.base.validate import error_probability, exact

LONGEST_LEVEL = 10  # characters of a level that is printed as it is
PERCENT_FROM = 100  # runs; of fewer, a percentage would suggest more than was observed
SMALLEST_P = 1e-300  # a p-value below this is printed as this


def down(value: float, digits: int) -> str:
    """The number rounded down to `digits` decimals; for lower bounds.

    A float is read as the shortest decimal that names it, the one that a stored result holds.

    >>> down(1.98765, 3)
    '1.987'
    """
    return _rounded(value, digits, ROUND_FLOOR)


def up(value: float, digits: int) -> str:
    """The number rounded up to `digits` decimals; for statements of the form "at most".

    >>> up(1.98765, 3)
    '1.988'
    """
    return _rounded(value, digits, ROUND_CEILING)


def bound(value: float, *, digits: int = 3, above: float | None = None) -> str:
    """A lower bound for reading: rounded down to `digits` significant digits, or one decimal fewer from 1 on.

    Where the bound exceeds `above`, as many digits are added as it takes to show it.

    >>> bound(1.9627), bound(0.0123456), bound(1.00004, above=1.0)
    ('1.96', '0.0123', '1.00004')
    """
    if value == math.inf:
        return "inf"
    if value <= 0.0:
        return "0"
    places = decimals(value, digits)
    if above is not None and value > above:
        while Decimal(down(value, places)) <= Decimal(repr(float(above))):
            places += 1
    return down(value, places)


def p_text(p: float) -> str:
    """A p-value for reading, two significant digits, rounded up; never shown as 0.

    >>> p_text(0.01234), p_text(3.21e-9), p_text(0.0)
    ('0.013', '3.3e-9', '1e-300')
    """
    if p < SMALLEST_P:
        return "1e-300"
    if p >= 1.0:
        return "1"
    places = decimals(p, 2)
    rounded = Decimal(up(p, places))
    if rounded >= Decimal("0.001"):
        return _trimmed(f"{rounded:f}")
    mantissa, _, power = f"{rounded:.1e}".partition("e")
    return f"{_trimmed(mantissa)}e{int(power)}"


def least_text(value: float) -> str:
    """The least loss that is caught: three significant digits, rounded up.

    >>> least_text(1.2345), least_text(0.0), least_text(math.inf)
    ('1.24', '0', 'inf')
    """
    return up(value, decimals(value, 3)) if 0.0 < value < math.inf else exact(value)


def level_text(level: float) -> str:
    """What a p-value is held against: as it is where that is short, otherwise six digits, rounded down.

    >>> level_text(0.001), level_text(0.001 / 3)
    ('0.001', '0.000333333')
    """
    text = exact(level)
    if len(text) <= LONGEST_LEVEL:
        return text
    mantissa, _, power = text.partition("e")
    return f"{down(float(mantissa), 5)}e{power}" if power else down(level, decimals(level, 6))


def confidence_text(confidence: float) -> str:
    """A confidence for reading: its distance from 1 keeps three digits, rounded so that confidence goes down.

    >>> confidence_text(0.999), confidence_text(1 - 0.01 / 13)
    ('0.999', '0.99923')
    """
    alpha = error_probability(confidence)
    return _trimmed(str(1 - Decimal(up(alpha, 2 - _exponent(alpha)))))


def odds(error: float) -> str:
    """An error probability as odds, rounded so that they are never too good.

    >>> odds(0.001), odds(7.6e-4), odds(0.3)
    ('1 in 1,000', '1 in 1,310', '1 in 3')
    """
    whole = 1 / Decimal(repr(float(error)))
    places = max(0, whole.adjusted() - 2)
    return f"1 in {int(whole.scaleb(-places).quantize(Decimal(1), rounding=ROUND_FLOOR).scaleb(places)):,}"


def wrong(confidence: float) -> str:
    """How often a statement of this confidence is wrong, for reading beside it.

    >>> wrong(0.999), wrong(1 - 0.001 / 12)
    ('wrong in at most 1 of 1,000 such audits', 'wrong in at most 1 of 12,000 such audits')
    """
    return f"wrong in at most {odds(error_probability(confidence)).replace(' in ', ' of ')} such audits"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    with localcontext() as context:
        context.prec = 400  # a float has at most 309 digits before the point
        rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), rounding=rounding)
        return f"{rounded + 0:f}"  # adding 0 turns -0 into 0


def _exponent(value: float) -> int:
    return Decimal(repr(float(value))).adjusted()


def decimals(value: float, digits: int) -> int:
    """The decimals that show this many significant digits, and one digit fewer from 1 on."""
    return max(digits - 1, digits - 1 - _exponent(value))


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: `1 run`, `2,000 runs`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(hits: int, runs: int) -> str:
    """A rate that is 0 or 100 % only where none or all of the runs are meant.

    >>> percent(0, 7), percent(7, 7), percent(1, 3), percent(99_999, 100_000), percent(1, 3_000)
    ('0 %', '100 %', '33 %', '99.99 %', '0.033 %')
    """
    if hits in (0, runs):
        return "100 %" if hits else "0 %"
    share = min(100.0 * hits / runs, 99.99)
    return f"{share:.2g} %" if share < 99.0 else f"{share:.4g} %"


def portion(hits: int, runs: int) -> str:
    """A rate; of few runs, for which a share would say too much, the counts.

    >>> portion(4, 4), portion(400, 400)
    ('4 of 4', '100 %')
    """
    return percent(hits, runs) if runs >= PERCENT_FROM else f"{hits:,} of {runs:,}"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.42), duration(75.0), duration(25_000.0)
    ('0.4 s', '1 min 15 s', '6 h 56 min')
    """
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes = int(seconds) // 60
    return f"{minutes} min {int(seconds) % 60} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
