"""Sentences about a sweep: what was asked, what came out, and what its table does not say."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.base.numerals import confidence_text, counted, p_text
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.base.validate import error_probability
from dpaudit.report.figures.study import certified_text, is_beyond, is_refuted, together
from dpaudit.sweeps.rows import parameters_of

MOST_REASONS = 6  # that a page lists, the most frequent first
MOST_NAMED = 12  # points of a table whose first page has a line for each
JOINT = 0.95  # what all bounds together would have, where nothing can be said of them as they are
Fields = Mapping[str, Any]

READING = (
    "A certified value is a lower bound on the loss of the one pair that was audited: the loss is at least that, with "
    "the confidence of its row. It is no estimate, and a small one is no sign of a small loss.",
    "An exact value is the loss of that pair by the catalogue's formula; a proved one is an upper bound for all "
    "inputs, and stands only where a proof was found and checked. A claim may be true and neither refuted nor proved "
    "here.",
    "Claimed, exact and proved values of a point are epsilons at the same delta, that of its row; a certified value is "
    "one of the parameter that it names, the claim's own.",
    '"Refuted, alone" is refuted at its own confidence, and not together with the others (Holm); "above exact" marks a '
    "bound above the exact loss: it is wrong, as a few by chance may be.",
)
NOT_SHOWN = (
    "Not refuted means that these runs on this pair show nothing against the claim; it does not mean that the claim "
    "holds.",
    "No two points share a run, and what is wrong with one says nothing about another.",
    "A gap between certified and exact values is the price of finite runs and of the event that was found; it says "
    "nothing about the mechanism.",
)


def sweep_headline(rows: Sequence[Fields]) -> str:
    """The one line of a sweep."""
    done = [row for row in rows if row["verdict"] is not None]
    refuted = sum(map(is_refuted, done))
    kept, without = len(done) - refuted, len(rows) - len(done)
    return f"{counted(len(rows), 'point')}: {refuted} refuted, {kept} not refuted, {without} without verdict"


def sweep_lines(rows: Sequence[Fields], repeated: int = 0) -> tuple[str, ...]:
    """What holds of a sweep in a few lines: each of few points, error probability, why points have no verdict."""
    done = [row for row in rows if row["verdict"] is not None]
    lines = []
    if taken := sum(bool(row["from_ledger"]) for row in rows):
        lines.append(f"{counted(taken, 'result')} taken from the ledger, for the same questions, sources and versions")
    if repeated:
        lines.append(f"{counted(repeated, 'row')} left out: the same answer, of the same runs, as another row")
    lines += [sweep_row(row) for row in done if len(rows) <= MOST_NAMED]
    return (*lines, *([chance(rows)] if done else []), *without_verdict(rows))


def chance(rows: Sequence[Fields]) -> str:
    """What the confidence of the points means for all of them together, and which bounds are known to be wrong."""
    done = [row for row in rows if row["confidence"] is not None]  # those without verdict too: outputs may decide that
    alphas = [error_probability(float(row["confidence"])) for row in done]
    each, wrong = max(alphas), float(f"{math.fsum(alphas):.12g}")  # 0.15, not 0.15000000000000002
    if len(done) == 1:
        return f"The bound is wrong with probability at most {p_text(each)}."
    told = [f"Each of the {len(done):,} bounds is wrong with probability at most {p_text(each)}"]
    if wrong < 1.0:
        told[0] += f"; all hold together with confidence at least {confidence_text(1.0 - wrong)} (Bonferroni)."
    else:
        one = (1.0 - JOINT) / len(done)
        digits = math.ceil(-math.log10(one)) + 2
        told[0] += f": expect at most {math.ceil(wrong * 10.0) / 10.0:,g} wrong ones."
        told.append(
            f"With confidence={1.0 - math.floor(one * 10.0**digits) / 10.0**digits:.{digits}g} a point, all would hold "
            f"together with {JOINT:g}."
        )
        if refuted := sum(map(is_refuted, done)):
            holds = f"{sum(together(done)):,} of the {refuted:,} refutations hold together"
            told.append(f"{holds}, with confidence {confidence_text(1.0 - each)} (Holm).")
    if above := sum(map(is_beyond, done)):
        told.append(f"Above the exact loss: {counted(above, 'bound')}, wrong as a few by chance may be.")
    return " ".join(told)


def without_verdict(rows: Sequence[Fields]) -> tuple[str, ...]:
    """Why points have no verdict, the most frequent reason first."""
    reasons: dict[str, list[str]] = {}
    for name, _, reason in (sweep_row(row).partition(": no verdict: ") for row in rows if row["verdict"] is None):
        reasons.setdefault(reason, []).append(name)
    first = sorted(reasons.items(), key=lambda each: -len(each[1]))[:MOST_REASONS]
    lines = [
        f"without verdict, {points[0] if len(points) == 1 else counted(len(points), 'point')}: {reason}"
        for reason, points in first
    ]
    more = len(reasons) - MOST_REASONS
    return (*lines, f"and {counted(more, 'more reason')}") if more > 0 else tuple(lines)


def sweep_row(row: Fields) -> str:
    """One point on one line."""
    name = clean(row["mechanism"])
    given = ", ".join(f"{key}={clean(value)}" for key, value in parameters_of(row).items())
    what = f"{name}({given})" if given else name
    if row["verdict"] is None:
        return f"{what}: no verdict: {clean(row['error'] or 'no reason was recorded', LONGEST_DATA)}"
    # trainings and scores are no runs
    spent = f" on {row['runs_used']:,} runs" if row["runs"] and row["runs_used"] else ""
    verdict = "REFUTED" if is_refuted(row) else "not refuted"
    return f"{what}: {row['claim']} {verdict}, {certified_text(row)}{spent}"
