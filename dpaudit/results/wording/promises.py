"""What a claim promises and to whom, in plain words: one account for each form and each relation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpaudit.claims import Relation
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import bound, exact

LARGEST_LOSS = 700.0  # e to a larger power is no float
FULL_DIGITS = 1e9  # from here on a ratio is told as a power of ten
NEIGHBOUR = "its neighbour"

UNITS: Mapping[str, tuple[str, ...]] = {
    Relation.ADD_OR_REMOVE_ONE.value: (
        "One entry of the dataset: neighbours are the dataset with it and the dataset without it.",
        "That somebody takes part at all is within the promise; how many entries there are may not be taken as known.",
    ),
    Relation.REPLACE_ONE.value: (
        "One entry of the dataset: neighbours are the dataset with it and the dataset with another in its place.",
        "What an entry says is within the promise; how many entries there are counts as known to everybody.",
    ),
    Relation.REPLACE_SPECIAL.value: (
        "One entry of the dataset: neighbours are the dataset with it and the one with a neutral entry in its place.",
        "How the neutral entry is treated is part of the mechanism, and of what the claim means.",
    ),
    Relation.LOCAL.value: (
        "One record, of the person who hands it over: neighbours are any two records, for each is randomised before "
        "it is handed over.",
        "Nobody who collects the records is trusted with them (the local model).",
    ),
}
NO_UNIT = "Not recorded: the claim states no relation, so neighbours are the two datasets of each pair that was run."
WHOSE = (
    "Whether an entry is a person, a household, a device or an event is not recorded; where one person has several "
    "entries, the promise for one entry does not cover that person."
)
WHOSE_RECORD = (
    "How many records a person hands over is not recorded; the promise for one record does not cover several of them."
)


def promise(result: AuditResult) -> str:
    """What the claim promises for neighbours, by its form."""
    stated = result.spec["claim"]
    return f"The claim is {short_claim(stated)}. It promises: {_PROMISES[str(stated['form'])](stated)}."


def implied_promise(result: AuditResult) -> tuple[str, ...]:
    """What the claim implies for datasets several steps apart, which is what their bound is held against."""
    if result.distance == 1:
        return ()
    implied = {key: _short(value) for key, value in result.claim.to_dict().items()}
    return (
        f"For datasets {result.distance:,} steps apart that comes to {short_claim(implied)}: "
        f"{_PROMISES[str(implied['form'])](implied, 'the other')}.",
    )


def _short(value: Any) -> Any:
    """A number without the last digits of a product: 0.3 for three times 0.1."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def short_claim(stated: Mapping[str, Any]) -> str:
    """What is claimed: `epsilon 1 and delta 1e-06`, `mu 0.5`. Of a curve only its name is told.

    >>> short_claim({"form": "ApproximateDP", "epsilon": 1.0, "delta": 1e-6, "relation": None})
    'epsilon 1 and delta 1e-06'
    """
    form = str(stated["form"])
    if form == "RenyiDP":
        return f"epsilon {exact(stated['epsilon'])} at order {exact(stated['order'])}"
    values = [f"{key} {exact(value)}" for key, value in stated.items() if isinstance(value, float)]
    return _CURVES.get(form) or " and ".join(each for each in values if each != "xi 0")


_CURVES = {"TradeOffDP": "a trade-off curve", "PrivacyProfile": "a privacy profile, delta as a function of epsilon"}


def unit(result: AuditResult) -> tuple[str, ...]:
    """Whom or what the claim protects, by its relation; what it does not say is said to be unknown."""
    relation = result.spec["claim"]["relation"]
    lines = [*UNITS[relation]] if relation else [NO_UNIT]
    if result.distance > 1:
        lines.append(f"The bound is about datasets {result.distance:,} steps apart: a group of so many entries.")
    return (*lines, WHOSE_RECORD if relation == Relation.LOCAL.value else WHOSE)


def ratio_text(times: float) -> str:
    """How many times as probable: three digits, rounded down.

    >>> ratio_text(6.8549), ratio_text(116.24), ratio_text(59_874.1)
    ('6.85', '116', '59,800')
    """
    if times < 100.0:
        return bound(times)
    if times >= FULL_DIGITS:
        return f"10^{math.floor(math.log10(times)):,}"
    whole = math.floor(times)
    step = 10 ** (len(str(whole)) - 3)
    return f"{whole // step * step:,}"


def _about(epsilon: float) -> str:
    """`about 2.72 times`, for an epsilon above 0."""
    if epsilon > LARGEST_LOSS:
        return f"about e to the {exact(epsilon)} times"
    times = math.exp(epsilon)
    return f"about {times:.3g} times" if times < 1_000.0 else f"about {_rounded(times)} times"


def _rounded(times: float) -> str:
    power = math.floor(math.log10(times))
    return f"{round(times / 10.0 ** (power - 2)) * 10 ** (power - 2):,}" if times < FULL_DIGITS else f"10^{power:,}"


def _pure(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    if stated["epsilon"] <= 0.0:
        return f"whatever comes out is exactly as probable with one dataset as with {other}"
    return f"whatever comes out is at most {_about(stated['epsilon'])} as probable with one dataset as with {other}"


def _approximate(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    times = "" if stated["epsilon"] <= 0.0 else f"{_about(stated['epsilon'])} "
    return (
        f"the probability of any set of outputs with one dataset is at most {times}that with {other}, "
        f"plus {exact(stated['delta'])}"
    )


def _gaussian(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    return (
        f"from an output, one dataset and {other} are no easier to tell apart than two normal distributions of "
        f"standard deviation 1 whose means are {exact(stated['mu'])} apart"
    )


def _renyi(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    return (
        f"the Rényi divergence of order {exact(stated['order'])} between the outputs of one dataset and of {other} is "
        f"at most {exact(stated['epsilon'])}; that is an average over outputs, of which rare ones may be worse"
    )


def _concentrated(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    more = f" plus {exact(stated['xi'])}" if stated.get("xi") else ""
    return (
        f"the Rényi divergence of every order above 1 between the outputs of one dataset and of {other} is at most "
        f"{exact(stated['rho'])} times the order{more}; those are averages over outputs, of which rare ones may be "
        "worse"
    )


def _trade_off(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    return (
        f"who guesses from an output whether one dataset or {other} was used errs at least as often, in either way of "
        "erring, as the curve says"
    )


def _profile(stated: Mapping[str, Any], other: str = NEIGHBOUR) -> str:
    return (
        "for each epsilon, the probability of any set of outputs with one dataset is at most e to the epsilon times "
        f"that with {other}, plus the delta of the curve"
    )


_PROMISES = {
    "PureDP": _pure,
    "ApproximateDP": _approximate,
    "GaussianDP": _gaussian,
    "RenyiDP": _renyi,
    "ZeroConcentratedDP": _concentrated,
    "TradeOffDP": _trade_off,
    "PrivacyProfile": _profile,
}
