"""The account of scores: three lines that are never mixed, each with what it rests on, and what was not tested."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dpaudit.account import Account, Level, Section, account
from dpaudit.account.statements import NOT_PRIVATE
from dpaudit.base.numerals import counted, p_text
from dpaudit.base.quoting import clean
from dpaudit.claims import Claim
from dpaudit.scores.result import (
    CERTIFIED,
    LESS,
    MEANINGS,
    Estimate,
    ScoresResult,
    apart,
    by,
    further,
    judged,
    on_lines,
    shows_less,
    statement,
)

NEVER_MIXED = "A figure stands on the line of what it rests on. Only the first line decides a verdict."
NEVER = "never decides"
MOST_STATEMENTS = 6  # on the first page, which has twelve lines
NOT_TESTED = (
    "Where the scores come from: they were taken as they are, and the design as it was said to be.",
    "Attacks other than the one that made these scores, other data, and other trainings than those it looked at.",
    "A lower bound never shows that a claim holds.",
)
LONGEST = 2_000  # characters of a line, which may quote a user's text
TONES = {True: "refuted", False: "kept", None: "none"}


def sentence(words: str) -> str:
    """A clause of somebody's as a sentence.

    >>> sentence("the loader")
    'The loader.'
    """
    text = words.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


def line_sections(
    estimates: Iterable[Estimate],
    meanings: Mapping[str, str],
    of: str = "",
    most: int = MOST_STATEMENTS,
    known: str = "",
) -> list[Section]:
    """For each line its statements, and further down what it rests on; `of` is what they are about, if not a run.

    At most `most` statements stand on the first page, one of each line at least; the others below it. `known` is an
    assumption that stands elsewhere.
    """
    groups = on_lines(estimates)
    certified, room = groups.get(CERTIFIED, []), most - len(groups)
    shown = []
    for line, group in groups.items():
        rows = [f"{statement(each)} ({by(each, of)}){limits(each, certified)}" for each in group]
        first, further_rows = rows[: room + 1], rows[room + 1 :]
        first[-1] += f"; {len(further_rows)} more in the whole account" if further_rows else ""
        room -= len(first) - 1
        shown.append(Section(line, Level.PAGE_ONE, tuple(first)))
        shown.append(Section(f"{line}, further", Level.DETAIL, tuple(further_rows)))
    for line, group in groups.items():
        rests = (f"Rests on {meanings[line]}.", *map(sentence, further(group)))
        assumed = (f"{each.method}: {each.assumption}" for each in group if each.assumption != known)
        shown.append(Section(f"{line}, its basis", Level.DETAIL, (*rests, *assumed)))
    return [*shown, Section("never mixed", Level.DETAIL, (NEVER_MIXED,))]


def limits(each: Estimate, certified: Iterable[Estimate]) -> str:
    """What a statement that decides nothing says of itself, and why where it assumes more and shows less."""
    if each.line == CERTIFIED:
        return ""
    return f"{LESS if shows_less(each, certified) else ''}; {NEVER}"


def to_do(refuted: bool | None, decided: Estimate | None, promised_by: str) -> Section:
    """What somebody has to do, and what the verdict does not say."""
    lines: tuple[str, ...] = ()
    if refuted:
        lines = (f"{promised_by} does not keep its claim: mend it or state a weaker claim, and audit it again.",)
    elif decided is None:
        lines = ("Nothing is certified: only estimates without a guarantee were made.",)
    elif refuted is False:
        lines = (NOT_PRIVATE,)
    return Section("what to do", Level.PAGE_ONE, lines)


def sure(claim: Claim | None, decided: Estimate | None, refuted: bool | None, confidence: float) -> Section:
    """The confidence, the p-value, and a word on a smaller bound."""
    if decided is None:
        return Section("how sure it is", Level.DETAIL)
    p = "" if decided.p_value is None else f" P-value at most {p_text(decided.p_value)}."
    return Section("how sure it is", Level.DETAIL, (f"Confidence {confidence:g}.{p}", *apart(claim, decided, refuted)))


def _short(text: str) -> str:
    return clean(text, LONGEST)


def assembled(kind: str, tone: str, headline: str, sections: Sequence[Section], up_to: Level) -> Account:
    """The account of these sections, the headline before them and those of the first page first."""
    told = [
        replace(each, lines=tuple(map(_short, each.lines)), code=tuple(map(_short, each.code)))
        for each in sections
        if each.lines or each.code
    ]
    first = Section("verdict", Level.HEADLINE, (headline,))
    stamp = headline.partition("  ")[0]
    return Account(kind, tone, (first, *sorted(told, key=lambda each: each.level)), stamp=stamp).up_to(up_to)


@account.register
def _of_scores(result: ScoresResult, up_to: Level = Level.REVIEWER) -> Account:
    decided = result.deciding
    certified = sum(each.line == CERTIFIED for each in result.estimates)
    several = f"{counted(certified, 'certified statement')}; each holds on its own, and only the first decides."
    counts = judged(result.counts, decided)
    sections = [
        *line_sections(result.estimates, MEANINGS, result.of, known=result.assumption),
        Section("design", Level.PAGE_ONE, (f"{result.design}: {result.assumption}.",)),
        Section("judged", Level.PAGE_ONE, (f"{counts}.",)),
        to_do(result.refuted, decided, "What was attacked"),
        Section("not tested", Level.PAGE_ONE, (" ".join(NOT_TESTED),)),
        sure(result.claim, decided, result.refuted, result.confidence),
        Section("statements", Level.DETAIL, (several,) if certified > 1 else ()),
        Section(
            "scores",
            Level.DETAIL,
            (f"{result.sizes[0]:,} in, {result.sizes[1]:,} out.", f"{result.choice.capitalize()}."),
        ),
    ]
    return assembled("Audit of membership scores", TONES[result.refuted], result.headline, sections, up_to)
