"""The page about scores of an attack: three lines that are never mixed, what was done, pictures, and what was not."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.certify.certificate import error_probability
from dpaudit.claims import Claim, claim_of
from dpaudit.report.figures import Drawing, attack
from dpaudit.results.beside import Histogram
from dpaudit.results.files import write_text
from dpaudit.results.strict_json import text_of
from dpaudit.results.wording.numerals import exact, p_text
from dpaudit.results.wording.sections import Section
from dpaudit.results.wording.statements import NOT_PRIVATE
from dpaudit.scores.estimate import CERTIFIED, ESTIMATE, INDEPENDENT, Estimate
from dpaudit.scores.wording import OWN, apart, by, further, on_lines, said
from dpaudit.version import __version__

KINDS = {CERTIFIED: "certified", INDEPENDENT: "given", ESTIMATE: "estimate"}
LOGARITHMIC = "Both axes are logarithmic: attacks that are seldom wrong stand on the left."
LARGEST = 700.0  # of an exponent
NEVER_MIXED = "A figure stands on the line of what it rests on. Only the first line decides a verdict."


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a page says: `tone` is `refuted`, `kept` or `none`, `stem` the name of its files, `record` its JSON.

    `of` is what the statements are about where that is not a whole run.
    """

    kind: str
    stem: str
    title: str
    stamp: str
    tone: str
    short: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    meanings: Mapping[str, str]
    parts: tuple[Section, ...]
    not_tested: Section
    drawings: tuple[Drawing, ...]
    repeat: tuple[str, ...]
    record: dict[str, Any]
    of: str = ""

    @property
    def lines(self) -> list[tuple[str, list[str], list[tuple[str, str]], list[str]]]:
        """For each line: its name, what it rests on, its statements with their methods, and all that they assume."""
        found = on_lines(self.estimates)
        return [
            (
                line,
                [f"Rests on {self.meanings[line]}.", *map(sentence, further(held, found.get(CERTIFIED, ())))],
                [(said(each), by(each, self.of)) for each in held],
                [f"{each.method}: {each.assumption}" for each in held],
            )
            for line, held in found.items()
        ]


def write(account: Account, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes the JSON, the figures as SVG, the page in Markdown and in HTML; returns their paths, the page's last."""
    where, stem = Path(folder), account.stem
    where.mkdir(parents=True, exist_ok=True)
    paths = [write_text(where / f"{stem}.json", text_of(account.record))]
    paths += [each.save(where / f"{stem}-{each.name}.svg") for each in account.drawings]
    paths.append(write_text(where / f"{stem}.md", markdown(account)))
    return [*paths, write_text(where / f"{stem}.html", html(account))]


def html(account: Account) -> str:
    """The page as HTML that needs no other file."""
    from dpaudit.report.html.templating import render

    return render("account.html", account=account, never_mixed=NEVER_MIXED, kinds=KINDS, version=__version__)


def markdown(account: Account) -> str:
    """The page as Markdown; the figures are the files beside it."""
    from dpaudit.report.markdown import escape, fenced, listed, page

    blocks = [[f"# {escape(account.title)}"], [f"**{escape(account.stamp)}**"], listed(account.short)]
    blocks += [["## Three lines, never mixed"], [escape(NEVER_MIXED)]]
    for line, rests, statements, assumed in account.lines:
        told = [f"{statement} ({method})" for statement, method in statements]
        blocks += [[f"### {escape(line)}"], listed(told), *([escape(each)] for each in rests), listed(assumed)]
    blocks += [[f"## {account.not_tested.title}"], listed(account.not_tested.lines)]
    for part in account.parts:
        blocks += [[f"## {escape(part.title)}"], listed(part.lines)]
    blocks += [["## Figures"]] if account.drawings else []
    for each in account.drawings:
        file = f"{account.stem}-{each.name}.svg"
        blocks += [[f"### {escape(each.title)}"], [escape(each.description)], [f"![{escape(each.title)}]({file})"]]
    if account.repeat:
        blocks += [["## How to repeat it"], fenced(account.repeat)]
    return page(*blocks)


def pictures(
    *,
    claim: Claim | None,
    confidence: float,
    decided: Estimate | None,
    histogram: Histogram | None,
    roc: attack.Rates,
    band: attack.Rates,
    band_line: str,
    of: str,
    about: str,
    e_values: Sequence[float] = (),
) -> tuple[Drawing, ...]:
    """The figures that there are numbers for.

    `of` is what has a score ("canaries"), `about` a sentence on where the scores come from, `band_line` the line that
    the band stands on.
    """
    drawn: list[Drawing] = []
    if histogram is not None:
        groups = f"{histogram.runs_first:,} {of} in", f"{histogram.runs_second:,} {of} out"
        text = f"How the scores of both groups lie: {groups[0]}, {groups[1]}. {about} To look at: it proves nothing."
        drawn.append(attack.scores(histogram, groups, of, text))
        if roc:
            sizes = max(1, histogram.runs_first), max(1, histogram.runs_second)
            bound = None if decided is None else promise_at(claim, decided)
            limits = f"limits at {exact(confidence)}, {band_line}"
            text = rates_text(claim, bound is not None, bool(band), confidence, band_line)
            drawn.append(attack.error_rates(roc, band, limits, claim, bound, sizes, text))
            drawn.append(attack.error_rates(roc, band, limits, claim, bound, sizes, LOGARITHMIC, log=True))
    if len(e_values) > 1:
        drawn.append(attack.evidence(e_values, error_probability(confidence)))
    return tuple(drawn)


def rates_text(claim: Claim | None, certified: bool, band: bool, confidence: float, band_line: str) -> str:
    """What the picture of error rates shows, and what each of its lines rests on."""
    at = f"with confidence {exact(confidence)}"
    told = {
        "For every threshold, the share of those that were in and of those that were out that it calls in. The solid "
        "line joins the best corners of these same scores: an estimate, chosen on them.": True,
        "The claim allows the shaded region.": claim is not None,
        "The dashed line bounds what a promise at the certified bound allows: "
        f"{at}, a promise of that form that holds allows all of it, whatever the solid line does.": certified,
        f"The true curve lies above the dotted stairs, at all thresholds together, {at}; this stands on the line: "
        f"{band_line}.": band,
    }
    return " ".join(words for words, holds in told.items() if holds)


def promise_at(claim: Claim | None, decided: Estimate) -> Claim | None:
    """The promise at the certified bound, in the claim's own parameter where there is a bound on that."""
    own = None if claim is None else decided.detail.get(f"{claim.parameter}{OWN}")
    if claim is not None and own and claim.parameter != "epsilon":
        return claim.with_value(own) if 0.0 < own < LARGEST else None
    lower = decided.epsilon_lower
    return claim_of(lower, decided.delta or 0.0) if lower is not None and 0.0 < lower < LARGEST else None


def short(
    claim: Claim | None, about: str, decided: Estimate | None, confidence: float, refuted: bool | None, promised_by: str
) -> tuple[str, ...]:
    """The verdict in sentences: what was claimed, what is certified, and what that means for the claim."""
    lines: list[str] = []
    if refuted:
        lines.append(f"{promised_by}, at this confidence, does not keep its claim.")
        lines.append("What to do: mend it or promise less, and audit it again.")
    lines += [f"Claimed: {about}."] if about else []
    if decided is None:
        return (*lines, "Nothing is certified: only estimates without a guarantee were made.")
    lines.append(f"Certified: {said(decided)}, with confidence {exact(confidence)}.")
    if refuted and decided.p_value is not None:
        chance = f"with probability at most {p_text(decided.p_value)}"
        lines.append(f"Were the claim true, evidence as strong as this would come up {chance}.")
    elif refuted is False:
        lines.append(NOT_PRIVATE)
    told = apart(claim, decided, refuted)
    return (*lines, f"The bound is {told}.") if told else tuple(lines)


def sentence(words: str) -> str:
    """A clause of somebody's as a sentence.

    >>> sentence("the loader")
    'The loader.'
    """
    told = words.strip()
    return f"{told[:1].upper()}{told[1:]}{'' if told.endswith(('.', '!', '?')) else '.'}" if told else ""
