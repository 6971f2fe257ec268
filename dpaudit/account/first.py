"""What a reader who has to act needs first, in plain words: what was found on which datasets, what to do, how sure."""

from collections import Counter
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from dpaudit.account.cause import cause, words_of
from dpaudit.account.diagnosis import diagnosis
from dpaudit.account.statements import NOT_PRIVATE, certified, claimed, confidence, supposed, unseen, without
from dpaudit.base.numerals import PERCENT_FROM, confidence_text, counted, portion
from dpaudit.base.quoting import TABLE, clean, data_text, literal, plain_text
from dpaudit.base.validate import error_probability
from dpaudit.certify import Binned
from dpaudit.results.audited import Audited
from dpaudit.results.bounds import BracketVerdict
from dpaudit.results.observations import ONE_OUTPUT, Explanation
from dpaudit.results.verdict import Verdict

FOUND, DO, SURE = "What was found", "What to do", "How sure it is"
SIDES = ("first", "second")
WHOLE = tuple(f"{side} dataset" for side in SIDES)
ENTRIES = {"records": ("record", "records"), "rows": ("row", "rows"), "answers": ("answer", "answers")}
MOST_ENTRIES, LONGEST_ENTRY = 3, 40  # that are named where two datasets differ
LONGEST_SIDE = 22  # characters of the name of a dataset in a key


SEEDED = "Where the data seed the noise, or none is drawn, other datasets may differ in every run: audit more pairs."


def finding_lines(result: Audited) -> tuple[str, ...]:
    """The pair in words, and the event: of a refutation its cause, else what came nearest to one."""
    reason, kind = cause(result), diagnosis(result)
    if reason:
        return differ(result), f"It shows as: {reason}.", *([] if kind is None else [sentence(kind.sentence)])
    e, event = result.evidence, words_of(result.witness.event, result)
    best = f"What told them apart best, and not surely by more than the claim allows: {event}"
    if isinstance(e, Binned) or not (e.runs_p and e.runs_q):
        return differ(result), f"{best}."
    rates = (
        f"{portion(hits, runs)}{'' if runs < PERCENT_FROM else ' of the'} runs on the {side}"
        for side, (hits, runs) in result.main.sides.items()
    )
    return differ(result), f"{best}, in {' and '.join(rates)}."


def to_do(result: Audited, *, known: bool = False, missed: bool = False, until: str = "") -> tuple[str, ...]:
    """What somebody has to do now.

    `known`: the author of the spec expects the violation; `missed`: expects one that was not found; `until`: the last
    day on which the finding is accepted.
    """
    kind = diagnosis(result)
    mend = [] if kind is None else [sentence(line) for line in kind.lines[1:]]
    if until:
        return (
            f"Nothing until {until}: somebody answers for this finding until then. Fix the mechanism and audit it "
            "again before that day, or have the finding reviewed anew.",
            *mend,
        )
    if known:
        found_again = "Nothing new: the violation is known, and this audit watches that it is found."
        return f"{found_again} Nobody should rely on the claim.", *mend
    if result.verdict is Verdict.REFUTED or result.representation_refuted:
        trust = "First make sure that these datasets count as neighbours: if they do not, the claim is not refuted."
        return (
            *([trust] if result.on_trust else []),
            "Fix the mechanism and audit it again.",
            *mend,
            *without(result),
            f"Or promise less, by a claim that can be proved: here {in_words(certified(result))}."
            if result.verdict is Verdict.REFUTED
            else "Or claim nothing for the outputs as floats.",
            "Or accept the finding until a day, and answer for it: dpaudit accept RESULT.json --reason ... --until ... "
            "(it stays refuted).",
        )
    lines = ["Nothing: this audit is no reason to change the mechanism or the claim."]
    if ONE_OUTPUT in result.health.notes:
        lines = [f"Look where the noise is drawn: {ONE_OUTPUT.partition(';')[0]}. {SEEDED}"]
    if missed:
        lines = [
            "Find out why a violation that is known was not found: give more runs, or a pair on which it shows. If it "
            "was mended, expect not-refuted from now on."
        ]
    elif result.power_reached is False:
        lines = ["Give it more runs: the power that was demanded was not reached; dpaudit plan says how many."]
    lines += [f"Audit what this one did not look at: {unseen(result)}."] if unseen(result) else []
    if result.bracket is None or result.bracket.verdict is not BracketVerdict.PROVED:
        lines.append(f"Whoever relies on the claim needs a proof of it. {NOT_PRIVATE}")
    return tuple(lines)


def sure(result: Audited) -> tuple[str, ...]:
    """What is certified, and how often an audit like this one is wrong."""
    level = confidence(result)
    statements = 1 if result.representation is None else 2  # that on bits has a level of its own
    steps = f" for datasets {result.distance:,} steps apart" if result.distance > 1 else ""
    return (
        f"The true {in_words(certified(result))}, with confidence {confidence_text(level)}; claimed is "
        f"{claimed(result)}{steps}.",
        f"Where a mechanism keeps its claim, an audit like this one refutes it by bad luck with a chance of at most "
        f"{odds(min(1.0, statements * error_probability(level)))}{supposed(result)}.",
    )


def sentence(words: str) -> str:
    """A clause as a sentence.

    >>> sentence("look at: the noise")
    'Look at: the noise.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def in_words(statement: str) -> str:
    """A bound without signs of mathematics: `epsilon is at least 1.96`."""
    return statement.replace(" >= ", " is at least ", 1).replace(" > ", " is more than ", 1)


def odds(error: float) -> str:
    """An error probability as odds, rounded so that they are never too good.

    >>> odds(0.001), odds(7.6e-4), odds(0.3)
    ('1 in 1,000', '1 in 1,310', '1 in 3')
    """
    whole = 1 / Decimal(repr(float(error)))
    places = max(0, whole.adjusted() - 2)
    return f"1 in {int(whole.scaleb(-places).quantize(Decimal(1), rounding=ROUND_FLOOR).scaleb(places)):,}"


def differ(result: Audited) -> str:
    """The two datasets of the witness in a sentence: how large they are, and in what they differ.

    >>> from tests.golden import example
    >>> differ(example.result())
    "Two datasets were compared: the first has 9 records, the second 8; only the first has 'a' once more."
    """
    pair, texts, lists, _, entries = _pair(result)
    head = "Two datasets were compared"
    if len(result.spec["pairs"]) > 1:
        head += f', the pair "{clean(pair["name"])}" of {len(result.spec["pairs"]):,}'
    if None in lists:
        return f"{head}: the first is {texts[0]}, the second {texts[1]}."
    counts = [Counter(each or ()) for each in lists]
    more = [_named(counts[0] - counts[1], counts[1]), _named(counts[1] - counts[0], counts[0])]
    sizes = [len(each or ()) for each in lists]
    if sizes[0] != sizes[1] and all(each is not None for each in more):
        differences = [f"only the {side} has {each}" for side, each in zip(SIDES, more, strict=True) if each]
        size = f"the first has {counted(sizes[0], *entries)}, the second {sizes[1]:,}"
        return f"{head}: {size}; {' and '.join(differences)}."
    if sizes[0] == sizes[1] > 2 and all(more) and counts[0] != counts[1]:
        return f"{head}, of {counted(sizes[0], *entries)}: where the first has {more[0]}, the second has {more[1]}."
    return f"{head}: the first is {texts[0]}, the second {texts[1]}."


def names(result: Audited) -> tuple[str, str]:
    """What tells the datasets of the witness apart, short enough for a key.

    >>> from tests.golden import example
    >>> names(example.result())
    ('9 records', '8 records')
    """
    _, texts, lists, values, entries = _pair(result)
    if None not in lists and len(lists[0] or ()) != len(lists[1] or ()):
        return counted(len(lists[0] or ()), *entries), counted(len(lists[1] or ()), *entries)
    if None in values or texts[0] == texts[1] or max(map(len, texts)) > LONGEST_SIDE:
        return WHOLE[0], WHOLE[1]
    return f"data {texts[0]}", f"data {texts[1]}"


def _pair(result: Audited) -> tuple[dict[str, Any], list[str], list[list[str] | None], list[Any], tuple[str, str]]:
    """The pair, its datasets as text, as lists of entries and as values; and what an entry is called."""
    pair, entries = result.pair, ENTRIES.get(result.shown or "", ("entry", "entries"))
    values = [plain_text(pair[side]["value"]) for side in SIDES]
    return pair, [data_text(pair[side]) for side in SIDES], list(map(_entries, values)), values, entries


def _entries(value: Any) -> list[str] | None:
    """The entries of a dataset as text, of a table of columns its rows; None of what is no collection."""
    if isinstance(value, dict) and value.keys() >= TABLE:
        return [literal(row[0] if len(row) == 1 else tuple(row)) for row in value["rows"]]
    if isinstance(value, dict) and value and all(isinstance(each, list) for each in value.values()):
        columns = [*value.values()]
        if len({len(each) for each in columns}) == 1:
            return [literal(dict(zip(value, row, strict=True))) for row in zip(*columns, strict=True)]
    if isinstance(value, dict):
        return [f"{key!r}: {literal(each)}" for key, each in value.items()]
    return [literal(each) for each in value] if isinstance(value, list) else None


def _named(more: Counter[str], other: Counter[str]) -> str | None:
    """The few entries that one dataset has and the other lacks; None where they are many or long."""
    if more.total() > MOST_ENTRIES or any(len(each) > LONGEST_ENTRY for each in more):
        return None
    times = ("", "once", "twice", "three times")
    return " and ".join(
        clean(each) + (f" {times[count]} more" if other[each] else "" if count == 1 else f" {times[count]}")
        for each, count in more.items()
    )


def explanation(result: Audited) -> Explanation:
    """The explanation of a result, from what is stored in it: the same after it was saved and loaded.

    >>> from tests.golden import example
    >>> print(explanation(example.result()).lines()[1])
    first  9.51, 9.62, 9.84, 10.4
    """
    typical = result.typical
    inside, hits, runs = (((), ()), (0, 0), (0, 0)) if typical is None else (typical.inside, typical.hits, typical.runs)
    return Explanation(cause(result), *inside, hits, runs, diagnosis(result))
