"""How statements from scores are told: on three lines that are never mixed, each with what it assumes. Pure functions.

Lower ends are rounded down, upper ends up.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence

from dpaudit.base.numerals import p_text
from dpaudit.base.quoting import clean
from dpaudit.claims import Claim
from dpaudit.scores.counts import AttackCounts
from dpaudit.scores.estimate import CERTIFIED, COMPOSED, ESTIMATE, INDEPENDENT, LINES, Estimate, number_text

MEANINGS = {
    CERTIFIED: "its design alone, and no model of the scores; this line alone decides",
    INDEPENDENT: "canaries answered independently, assumed and not shown; never decides",
    ESTIMATE: "a model of the scores, or nothing: a figure without a guarantee; never decides",
}
COLUMN, WIDTH = 28, 120  # of the titles, and of a line
OWN = "_lower"  # how the detail of an estimate names a bound on the claim's own parameter
LONGEST = 600  # characters of a user's text on the terminal

APART = "a statement of its own at this confidence; here the test of the claim is the sharper one"

Facts = Sequence[tuple[str, str]]


def said(each: Estimate) -> str:
    """What an estimate says: bounds on the claim's own parameter and on its quantity, or the plain figure.

    >>> said(Estimate(method="m", label=CERTIFIED, quantity="epsilon", lower=1.23456, delta=1e-5, assumption=""))
    'epsilon >= 1.2345 at delta 1e-05'
    """
    ends = [(name, ">=", number_text(value)) for name, value in own_bounds(each).items()]
    if each.lower is not None:
        ends.append((each.quantity, ">=", number_text(each.lower)))
    if each.upper is not None:
        upper = f"{math.ceil(each.upper * 1e4) / 1e4:.4f}" if math.isfinite(each.upper) else "infinity"
        ends.append((each.quantity, "<=", upper))
    if each.line != ESTIMATE:  # no figure without a guarantee stands beside a bound that has one
        told = ", ".join(map(" ".join, ends))
    elif each.value is None and ends:
        told = f"in its model {', '.join(map(' '.join, ends))}"
    else:
        held = " and ".join(f"{sign} {end}" for _, sign, end in ends)
        told = f"{each.quantity} about {number_text(each.value)}" + (f", in its model {held}" if ends else "")
    return told + ("" if not each.delta else f" at delta {each.delta:g}")


def own_bounds(each: Estimate) -> dict[str, float]:
    """Lower bounds on parameters other than the quantity, where they rest on no more than the line says."""
    found = {key.removesuffix(OWN): end for key, end in each.detail.items() if key.endswith(OWN)}
    return {name: end for name, end in found.items() if each.line != ESTIMATE and "_" not in name != each.quantity}


def by(each: Estimate, of: str = "") -> str:
    """What it is about, where not a run: `of`; the method; the kind of statement, where the line does not say it."""
    if each.label == COMPOSED:
        return f"a run of {each.detail['steps']:,} steps, {each.label}"
    return ", ".join(filter(None, (of, each.method, "" if each.label in LINES else each.label)))


def on_lines(estimates: Iterable[Estimate]) -> dict[str, list[Estimate]]:
    """The estimates by line, in the order of the lines; those without any, and what was said before, are left out."""
    found: dict[str, list[Estimate]] = {line: [] for line in LINES}
    for each in estimates:
        if not any(f"{said(each)}, " in said(other) for other in found[each.line]):  # a part of what is said already
            found[each.line].append(each)
    return {line: each for line, each in found.items() if each}


def further(held: Sequence[Estimate], certified: Iterable[Estimate]) -> list[str]:
    """What statements of a line assume beyond its first one; and where one that assumes more says less."""
    known = {(each.quantity, each.delta): each.lower or 0.0 for each in certified if each.label == CERTIFIED}
    first = held[0].assumption
    return [
        f"{each.method} assumes more: {each.assumption.removeprefix(first).lstrip('.;: ')}"
        for each in held[1:]
        if each.line == CERTIFIED and each.assumption != first
    ] + [
        f"{each.method} is a test of its own and shows less here than what is certified, which holds with them too"
        for each in held
        if each.line == INDEPENDENT and (each.lower or 0.0) < known.get((each.quantity, each.delta), 0.0)
    ]


def line_facts(estimates: Iterable[Estimate], meanings: dict[str, str], of: str = "") -> Facts:
    """For each line its statements, and below them what it rests on; `of` is what they are about, if not a run."""
    found = on_lines(estimates)
    return [
        (line if k == 0 else "", told)
        for line, held in found.items()
        for k, told in enumerate(
            [
                *(f"{said(each)} ({by(each, of)})" for each in held),
                f"rests on: {meanings[line]}",
                *further(held, found.get(CERTIFIED, ())),
            ]
        )
    ]


def laid_out(headline: str, facts: Facts) -> str:
    """A headline and facts in two columns, long ones broken; every text made harmless."""
    lines = [clean(headline, LONGEST)]
    for title, text in facts:
        wrapped = textwrap.wrap(clean(text, LONGEST), WIDTH - COLUMN - 2, break_on_hyphens=False) or [""]
        lines += [f"  {'' if k else title:<{COLUMN}}{part}".rstrip() for k, part in enumerate(wrapped)]
    return "\n".join(lines)


def headline(stamp: str, claim: str, decided: Estimate | None, confidence: float) -> str:
    """The verdict, the claim, and what decided."""
    about = f"claim {claim}: " if claim else ""
    if decided is None:
        return f"{stamp}  {about}nothing is certified"
    p = "" if decided.p_value is None else f"p-value {p_text(decided.p_value)}, "
    several = " each" if own_bounds(decided) else ""  # at one error probability, not together
    return f"{stamp}  {about}{p}{said(decided)} with confidence {confidence:g}{several} ({decided.method})"


def apart(claim: Claim | None, decided: Estimate | None, refuted: bool | None) -> str:
    """A word on a claim that is refuted by a test of its own, where the bound beside it is no larger than the claim."""
    if claim is None or decided is None or not refuted:
        return ""
    own = own_bounds(decided).get(claim.parameter)
    lower, promised = (own, claim.value) if own else (decided.lower, claim.epsilon_at(decided.delta or 0.0))
    return "" if lower is None or promised is None or lower > promised else APART


def judged(counts: AttackCounts | None, decided: Estimate | None) -> str:
    """What was counted for the estimate that decides: right guesses, their weights, or the cells of a rule."""
    told = {} if decided is None else decided.detail
    if isinstance(told.get("right"), int):
        return f"{told['right']:,} of {told['guesses']:,} guesses are right"
    if "weights" in told:
        total = sum(w * n for w, n in zip(told["weights"], told["counts"], strict=True))
        return f"{told['won']:,} of a weight of {total:,} is right, in {sum(told['counts']):,} guesses"
    if counts is None:
        return ""
    return f"tp {counts.tp:,} of {counts.members:,} members, fp {counts.fp:,} of {counts.others:,} non-members"
