"""What a failing test says: the finding in at most 25 lines, in the order in which one acts on it."""

import shlex

from dpaudit.account.diagnosis import diagnosis
from dpaudit.account.findings import bet_lines, ending_lines, meaning
from dpaudit.account.power import could_see
from dpaudit.account.repeating import repeat
from dpaudit.account.sections import evidence_lines, leaning
from dpaudit.account.statements import confidence, statement, verdict_text
from dpaudit.base.numerals import p_text
from dpaudit.base.quoting import LONGEST_DATA, clean, data_text, line, standing
from dpaudit.base.validate import error_probability, exact
from dpaudit.events import Partition
from dpaudit.results.result import AuditResult

LONGEST = 25  # lines of a message
PROVE = "state a claim that you can prove: the true loss is no smaller than the bound above"  # where no kind fits


def refuted_lines(result: AuditResult, record: str | None = None) -> tuple[str, ...]:
    """The message of a test whose claim was refuted; `record` is the file of the result, where one was written."""
    told = diagnosis(result)
    error = p_text(error_probability(confidence(result)))
    accept = ""
    if record is not None:
        accept = f", or dpaudit accept {shlex.quote(clean(record, len(record)))} --reason ... --until ..."
    return _told(
        result,
        f"{verdict_text(result.verdict)}  {_mechanism(result)}: {statement(result)}",
        *_finding(result),
        f"a mechanism that keeps its claim is refuted with probability at most {error}",
        "what to do:",
        *(f"  {line}" for line in ((PROVE,) if told is None else told.lines)),
        f"  or say that the violation is known: audit(..., expect='refuted'){accept}",
    )


def missed_lines(result: AuditResult) -> tuple[str, ...]:
    """The message of a test that knows of a violation which its audit did not find."""
    return _told(
        result,
        f"NOT FOUND  {_mechanism(result)}: a violation that this test expects; {statement(result)}",
        *_finding(result),
        *could_see(result)[:3],
        "what to do: give more runs, or a pair on which the violation shows; or it is gone: leave out expect",
    )


def weak_lines(result: AuditResult) -> tuple[str, ...]:
    """The message of a test whose audit did not have the power that it demands."""
    wanted = ", ".join(f"{key} {exact(value)}" for key, value in result.spec["detect"].items())
    head = f"TOO LITTLE POWER  {_mechanism(result)}: detect demands {wanted}; {statement(result)}"
    return _told(result, head, *could_see(result), "what to do: give more runs, or demand less")


def _mechanism(result: AuditResult) -> str:
    """The mechanism without the test that it was made in, which stands above the message already."""
    return clean(str(result.spec["mechanism"]["name"]).removeprefix(f"{result.name}: "))


@standing(line)
def _finding(result: AuditResult) -> tuple[str, ...]:
    pair, witness = result.pair, result.witness
    what = "partition" if isinstance(witness.event, Partition) else "event"
    return (
        f"{what}: {clean(witness.event, LONGEST_DATA)}{meaning(result)} {leaning(result)}",
        f"  first   {data_text(pair['first'])}",
        f"  second  {data_text(pair['second'])}",
        *(f"  {line}" for line in ending_lines(result)),
        "counts, of fresh runs after the event was chosen:",
        *(f"  {line}" for line in (*evidence_lines(result)[:2], *bet_lines(result))),
    )


def _told(result: AuditResult, *lines: str) -> tuple[str, ...]:
    """The message: these lines, and how to repeat the audit."""
    if not result.reproducible:
        note = "repeat, with other counts, for the mechanism draws randomness of its own:"
    elif result.cut_short:
        note = "repeat, with other counts, for the repetition is made without max_time_s:"
    else:
        note = "repeat, with the same counts:"
    lines += (note, *(f"  {line}" for line in repeat(result)))
    return lines if len(lines) <= LONGEST else (*lines[: LONGEST - 1], "  ...")
