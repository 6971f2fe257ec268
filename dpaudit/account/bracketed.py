"""A bracket in words: its verdict, both halves with what they hold for, and why a method gave nothing."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from dpaudit.account.section import Account, Level, Section, account
from dpaudit.base.numerals import wrong
from dpaudit.base.quoting import visible
from dpaudit.claims import ApproximateDP, Claim, PureDP
from dpaudit.results.bounds import EXACT, Arithmetic, Bracket, BracketVerdict, Label, LowerBound, UpperBound, hair_above

DIGITS = 6
MOST = 10  # lines of the first page below the headline
NOTHING = "nothing from"
TONES = {BracketVerdict.REFUTED: "refuted", BracketVerdict.PROVED: "kept"}
TINY = 1e-14  # relative: a bound this near to a short decimal is printed as it, such as 0.30000000000000004
AUDIT_CONTRADICTS = (
    "the lower bound exceeds the upper one: either the audit erred, which its confidence allows once in many audits, "
    "or the code that ran is not the program that was bounded"
)
BOUNDS_CONTRADICT = (
    "the lower bound exceeds the upper one: one of the bounds is wrong, or they are not of the same program and inputs"
)
BESIDE = "beside a contradiction"
MADE_UP = 'the pair "made up: '
LIKE_THESE = "; its records are made up: if the data hold none like them, let the code see to it, by a clip say"
ONE_WAY = "one way alone, from the first dataset to the second: of neighbours both ways it says nothing"


@account.register
def _of_bracket(bracket: Bracket, up_to: Level = Level.REVIEWER) -> Account:
    """The whole bracket: a headline, then a line for each half and each reason, those that decide first."""
    told = facts(bracket)
    first = [each for each in told if each[0] != NOTHING][:MOST]
    sections = [Section("verdict", Level.HEADLINE, (headline(bracket),))]
    for title, line in told:
        level = Level.PAGE_ONE if (title, line) in first or len(told) <= MOST else Level.DETAIL
        if level <= up_to:
            sections.append(Section(title, level, (line,)))
    left = len(told) > MOST and up_to < Level.DETAIL
    tone = TONES.get(bracket.verdict, "none")
    return Account("Bounds of a privacy loss", tone, tuple(sections), not left, bracket.verdict.value)


def headline(bracket: Bracket) -> str:
    """The one line of a bracket.

    >>> from dpaudit.claims import PureDP
    >>> headline(Bracket("sparse", PureDP(1.0)))
    'OPEN  sparse: nothing is known of epsilon, claimed 1'
    """
    claim = bracket.claim  # of pure and approximate DP the epsilon, of other forms all of it
    promise = f"{claim.epsilon:.12g}" if isinstance(claim, PureDP | ApproximateDP) else claim
    claimed = "" if claim is None else f", claimed {promise}"
    way = "" if bracket.one_way is None else f" (one way: {bracket.one_way})"
    return visible(f"{bracket.verdict.value}  {bracket.name}: {ends_text(bracket)}{claimed}{way}")


def facts(bracket: Bracket) -> list[tuple[str, str]]:
    """What there is to say of a bracket, each with its title."""
    parts = [("meaning", meaning(bracket))]
    if bracket.lower is not None:
        where = "" if bracket.claim is None else bracket.claim.where
        parts.append(("lower", lower_text(bracket.lower, where) + mark(bracket, bracket.lower)))
    for each in bracket.uppers:
        title = "exact" if is_exact(each) else "lower" if from_below(each) else "upper"
        parts.append((title, upper_text(each) + mark(bracket, each)))
    parts += [(NOTHING, reason) for reason in bracket.reasons]
    if bracket.contradictory:
        parts.append(("beware", contradiction(bracket)))
    return [(title, visible(line)) for title, line in parts]


def sentences(bracket: Bracket) -> tuple[str, ...]:
    """The bracket as sentences of a report that already states the verdict, the bound and the claim of the audit."""
    lines = [f"{bracket.verdict.value}: {ends_text(bracket)}; {meaning(bracket)}"]
    lines += [upper_text(each) + mark(bracket, each) for each in bracket.uppers]
    return (*lines, contradiction(bracket)) if bracket.contradictory else tuple(lines)


def contradiction(bracket: Bracket) -> str:
    """The possible causes where a lower bound exceeds an upper one."""
    audited = all(isinstance(low, LowerBound) for low, _ in bracket.contradictions)
    return AUDIT_CONTRADICTS if audited else BOUNDS_CONTRADICT


def mark(bracket: Bracket, bound: LowerBound | UpperBound) -> str:
    """What the line of a bound ends with where two of the bracket contradict each other; else nothing."""
    words = dict.fromkeys(
        word
        for pair in bracket.contradictions
        for each, word in zip(pair, ("exceeds an upper bound", "exceeded by a lower bound"), strict=True)
        if each is bound
    )
    return f"; {' and '.join(words) or BESIDE}" if bracket.contradictory else ""


def ends_text(bracket: Bracket) -> str:
    """What epsilon or the own parameter lies between, rounded outwards: `epsilon in [0.98, 1] at delta 1e-06`."""
    (low, high), own = bracket.ends, bracket.own_ends
    of = "epsilon" if bracket.upper is None or bracket.for_all_inputs else "epsilon of one pair"
    where = f" at delta {bracket.delta:g}" if bracket.delta else ""
    if own is not None and bracket.claim is not None:
        (low, high), of, where = own, bracket.claim.parameter, bracket.claim.where
    if low > hair_above(high):
        return f"{of} >= {at_least(low)} and yet <= {at_most(high)}{where}"
    where += f", {BESIDE}" if bracket.contradictory else ""
    if low == high == math.inf:
        return f"{of} is infinite{where}"
    if high == math.inf:
        least = None if bracket.lower is None else bracket.lower.lower
        if not low and least and bracket.claim is not None:
            return f"{bracket.claim.parameter} >= {at_least(least)}{bracket.claim.where}"
        return f"epsilon >= {at_least(low)}{where}" if low else "nothing is known of epsilon"
    if at_least(low) == at_most(high):
        return f"{of} = {at_most(high)}{where}"
    return f"{of} in [{at_least(low)}, {at_most(high)}]{where}" if low else f"{of} <= {at_most(high)}{where}"


def meaning(bracket: Bracket) -> str:
    """What the verdict rests on."""
    if bracket.verdict is BracketVerdict.REFUTED:
        by = " and ".join(dict.fromkeys(map(_refuter, bracket.refuting)))
        made_up = all(MADE_UP in each.scope for each in bracket.refuting)
        return f"the claim is false, by {by}{LIKE_THESE if made_up else ''}"
    if bracket.verdict is BracketVerdict.PROVED and bracket.proving is not None:
        way = "" if bracket.one_way is None else f"; {ONE_WAY}"
        return f"the claim holds for {bracket.proving.scope}{way}"
    if bracket.verdict is BracketVerdict.PINNED:
        return "the bounds on epsilon are within 1 % of each other"
    if bracket.upper is not None and not bracket.for_all_inputs:
        if bracket.agree:
            return "both bounds agree within 1 % on this one pair; of other pairs they say nothing"
        return "these are bounds on one pair; of other pairs they say nothing"
    if bracket.upper is not None and not (bracket.claim is None or bracket.of_epsilon or bracket.own_ends):
        return "these are bounds on epsilon; the claim is of another form, and open"
    if bracket.agree:
        return "the bounds on epsilon are within 1 % of each other, but that from above is no proof"
    if bracket.claim is None:
        return "the bounds leave the loss open" if bracket.uppers or bracket.lower else "there is no bound"
    return "neither refuted nor proved: the claim is open"


def _refuter(bound: LowerBound | UpperBound) -> str:
    if isinstance(bound, LowerBound):
        return f"the audit ({wrong(bound.confidence)})"
    return f"the exact loss of {'one pair' if bound.label is Label.EXACT_PAIR else bound.scope} ({bound.source})"


def lower_text(bound: LowerBound, of_own: str = "") -> str:
    """The certified bound, its confidence and its pair; `of_own`: where one in the claim's own parameter is stated."""
    own = "" if bound.lower is None else f"{bound.parameter} >= {at_least(bound.lower)}{of_own}"
    where = f" at delta {bound.delta:g}" if bound.delta else ""
    of_epsilon = f"epsilon >= {at_least(bound.epsilon_lower)}{where}{own and f' ({own})'}"
    return (
        f"{of_epsilon if bound.epsilon_lower or not own else own} ({wrong(bound.confidence)}); statistical, for one "
        f"pair: {bound.scope}; {bound.source}"
    )


def upper_text(bound: UpperBound) -> str:
    """A bound with its label, scope, arithmetic and source."""
    return f"{bound_text(bound)}; {_LABELS[bound.label]} {bound.scope}; {_KINDS[bound.arithmetic]}; {bound.source}"


def bound_text(bound: UpperBound) -> str:
    """A bound at its delta, after what it shows in another form: `mu <= 0.5; epsilon <= 2.3 at delta 1e-06`."""
    where = f" at delta {bound.delta:g}" if bound.delta else ""
    if from_below(bound):
        text = f"epsilon >= {at_least(bound.epsilon_lower or 0.0)}{where}"
    elif bound.epsilon_upper == math.inf and bound.epsilon_lower != math.inf:
        text = "no finite bound"
    elif is_exact(bound):
        text = f"epsilon {'is' if bound.epsilon_upper == math.inf else '='} {nearest(bound.epsilon_upper)}{where}"
    else:
        text = f"epsilon <= {at_most(bound.epsilon_upper)}{where}"
    return text if bound.shows is None or bound.shows.linear else f"{shown_text(bound.shows)}; {text}"


def shown_text(claim: Claim) -> str:
    """A claim that is shown, as a bound on its parameter.

    >>> from dpaudit.claims import RenyiDP
    >>> shown_text(RenyiDP(2.0, 0.25))
    'epsilon <= 0.25 at order 2'
    """
    return str(claim) if claim.value is None else f"{claim.parameter} <= {at_most(claim.value)}{claim.where}"


def spent_text(epsilon: float, mu: float, delta: float) -> str:
    """What a step of a proof spends, or several.

    >>> spent_text(0.5, 0.0, 0.0), spent_text(0.0, 0.25, 1e-6)
    ('epsilon 0.5', 'mu 0.25 and delta 1e-06')
    """
    spent = {"epsilon": epsilon, "mu": mu, "delta": delta}
    return " and ".join(f"{name} {at_most(value)}" for name, value in spent.items() if value) or "nothing"


_LABELS = {
    Label.PROVED: "proved, for",
    Label.EXACT_FINITE: "exact-finite, for",
    Label.EXACT_PAIR: "exact-pair, for one pair:",
    Label.NUMERIC_UPPER: "numeric-upper, no proof, for",
}
_KINDS = {
    Arithmetic.RATIONAL: "exact rational arithmetic",
    Arithmetic.BALLS: "enclosed in balls",
    Arithmetic.REALS: "over the real numbers",
    Arithmetic.FLOATS: "in floats, not enclosed",
}


def from_below(bound: UpperBound) -> bool:
    """Whether nothing but its lower end is known, as of an exact loss whose integrals did not close from above."""
    return bound.epsilon_upper == math.inf and bool(bound.epsilon_lower) and bound.epsilon_lower != math.inf


def is_exact(bound: UpperBound) -> bool:
    """Whether the two ends of an exact loss are equal to all printed digits."""
    low, high = bound.epsilon_lower, bound.epsilon_upper
    return bound.label in EXACT and low is not None and (low == high or high - low <= 1e-9 * high < math.inf)


def at_least(value: float) -> str:
    """A lower bound, rounded down.

    >>> at_least(1.2345678), at_least(1.0)
    ('1.23456', '1')
    """
    return _rounded(value, ROUND_FLOOR)


def at_most(value: float) -> str:
    """An upper bound, rounded up.

    >>> at_most(1.2345678), at_most(0.1 * 3)
    ('1.23457', '0.3')
    """
    return _rounded(value, ROUND_CEILING)


def nearest(value: float) -> str:
    """An exact number, rounded to ten digits.

    >>> nearest(1.5000000000000018)
    '1.5'
    """
    return _rounded(value, ROUND_HALF_EVEN, 10)


def _rounded(value: float, rounding: str, digits: int = DIGITS) -> str:
    if math.isinf(value):
        return "infinity"
    short = float(f"{value:.{digits}g}")
    if abs(short - value) <= TINY * abs(value):
        return f"{short:.{digits}g}"
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))):.{digits}g}"
