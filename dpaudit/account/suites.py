"""Sentences about several audits at one suite confidence, and about findings that somebody answers for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from shlex import quote

from dpaudit.account.audit import AUDIT, OR_ELSE, of_facts, tone
from dpaudit.account.diagnosis import BITS, diagnosis
from dpaudit.account.first import AuditFacts, cause
from dpaudit.account.recorded import a_lead
from dpaudit.account.section import Account, Level, Section, Table, Topic, account
from dpaudit.account.statements import (
    LIMITS,
    STILL_REFUTED,
    acceptance_line,
    believed,
    bound_lines,
    certified,
    claimed,
    expected_text,
    headline,
    not_looked_at,
    not_private,
    representation_lines,
    stamp,
    supposed,
    trusted,
    unseen,
    until_text,
)
from dpaudit.base.numerals import confidence_text, counted, least_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, LONGEST_REASON, clean
from dpaudit.base.validate import error_probability
from dpaudit.certify.certifiers import MASSES
from dpaudit.results.display import Verdict
from dpaudit.results.result import fingerprint
from dpaudit.results.suite import Acceptance, Reviewed, SuiteEntry, SuiteResult


def suite_line(entry: SuiteEntry, brief: bool = False) -> str:
    """One audit of a suite on one line: whether it went as its author expects, what came out, and why.

    `brief`: without the reasons, in a line of a terminal where its name is short.
    """
    result, name = entry.result, clean(entry.name)
    if result is None:
        return f"no verdict   {' ' * 13}{name}" if brief else f"no verdict   {name}: {why(entry)}"
    expected = "accepted     " if entry.covered else "as expected  " if entry.as_expected else "UNEXPECTED   "
    line = f"{expected}{stamp(result):<11}  {name}: "
    if brief:
        mark = "; a lead by recorded noise" * result.led
        return f"{line}{certified(result)}, claimed {claimed(result)}{trusted(result)}{supposed(result)}{mark}"
    line += "; ".join(bound_lines(result)) + f", expected {expected_text(entry)}" * (not entry.foreseen)
    line += f"; {reason}" if (reason := cause(result)) else ""
    if entry.covered and entry.accepted is not None:
        line += f", {until_text(entry.accepted)}: {clean(entry.accepted.reason, LONGEST_DATA)}"
    line += "; without the power that the spec demands" * (result.power_reached is False)
    line += f"; {marked}" if (marked := a_lead(result)) else ""
    return f"{line}; {clean(entry.error, LONGEST_REASON)}" if entry.error else line


def action_lines(suite: SuiteResult) -> tuple[str, ...]:
    """The lines of what needs action, in the order in which somebody should look."""
    return tuple(flat(suite_line(each)) for place in in_order(suite) if needs_action(each := suite.entries[place]))


def suite_about(suite: SuiteResult) -> str:
    """What the audits are about, when they were made, of which commit, and by which dpaudit; what is known of it."""
    days, commits, versions = (of_all(suite, key) for key in ("started", "commit", "version"))
    commits = [f"commit {each[:12]}{'-dirty' * each.endswith('-dirty')}" for each in commits]
    made = [" and ".join(each[:2]) + " and others" * (len(each) > 2) for each in (commits, versions) if each]
    span = " to ".join(dict.fromkeys((*days[:1], *days[-1:])))
    return "; ".join(filter(None, (clean(f"{suite.product} {suite.version}".strip()), span, *made)))


def of_all(suite: SuiteResult, key: str) -> list[str]:
    """What a key of the provenance says of the audits, each once: days, commits, versions of dpaudit."""
    known = (str(each.provenance.get(key) or "") for each in suite.results)
    texts = {"started": "{:.10}", "version": "dpaudit {:.20}"}
    return sorted({texts.get(key, "{}").format(clean(each)) for each in known if each})


def suite_headline(suite: SuiteResult) -> str:
    """The one line of a suite: how many of its audits need action, and what they say."""
    return tally(
        len(suite.entries),
        action=sum(map(needs_action, suite.entries)),
        refuted=sum(each.verdict is Verdict.REFUTED for each in suite.results),
        unrefuted=sum(each.verdict is Verdict.NOT_REFUTED for each in suite.results),
        odd=sum(not entry.as_expected for entry in suite.entries if entry.result is not None),
        covered=sum(entry.covered for entry in suite.entries),
        bits=sum(each.representation_refuted for each in suite.results),
        weak=sum(each.power_reached is False for each in suite.results),
        leads=sum(each.led for each in suite.results),
        expired=sum(each.expired for each in suite.reviewed),
    )


def tally(audits: int, *, refuted: int, unrefuted: int, action: int | None = None, **more: int) -> str:
    """So many audits in one line: those that need action where it is known, their verdicts, and how many `more` are.

    These are `odd`, which nobody expected, `covered` by an acceptance, `expired` acceptances, `weak` in power,
    findings on `bits`, and `leads` of recorded noise.

    >>> tally(12, action=2, refuted=6, unrefuted=6, odd=2)
    '2 of 12 audits need action: 6 refuted, 6 not refuted, 0 without verdict; 2 verdicts not as expected'
    """
    odd, covered, expired, weak, bits = (more.get(key, 0) for key in ("odd", "covered", "expired", "weak", "bits"))
    head = counted(audits, "audit")
    if action:
        head = f"{action} of {head} need{'s' * (action == 1)} action"
    elif action == 0 and audits and not expired:
        head += ", none needs action"
    head += f", {counted(expired, 'acceptance')} expired" if expired else ""
    text = f"{refuted} refuted, {unrefuted} not refuted, {audits - refuted - unrefuted} without verdict"
    if refuted + unrefuted:
        known = f"every verdict as expected{' or accepted' * bool(covered)}"
        text += f"; {counted(odd, 'verdict')} not as expected" if odd else f"; {known}"
        text += f", {counted(bits, 'finding')} on bits" if bits else ""
        text += f", {counted(covered, 'accepted finding')}" if covered else ""
        text += f", {weak} without the power demanded" if weak else ""
        text += f", {counted(leads, 'lead')} by recorded noise" if (leads := more.get("leads", 0)) else ""
    return f"{head}: {text}"


def suite_question(suite: SuiteResult) -> tuple[str, ...]:
    """How many audits a suite has, and what its confidence means."""
    if not suite.entries:
        return ("Nothing was asked: there are no audits.",)
    error = p_text(error_probability(suite.confidence))
    return (
        f"{counted(len(suite.entries), 'audit')} at suite confidence {confidence_text(suite.confidence)}: where every "
        f"claim holds, the suite refutes one of them with probability at most {error}.",
        "An audit's verdict and bound follow from its own part of that probability; its Holm-adjusted p-value counts "
        "all audits.",
    )


def reviewed_line(reviewed: Reviewed) -> str:
    """What became of an acceptance in a suite: in force, expired, or without a finding."""
    line = acceptance_line(reviewed.acceptance)
    if reviewed.expired:
        return f"EXPIRED      {line}; review it again, or repair what it excuses"
    if not reviewed.matched:
        return f"not found    {line}; no finding of these audits matches: remove it if they are all that it is about"
    return f"accepted     {line}"


def reviewed_lines(reviewed: Sequence[Reviewed]) -> tuple[str, ...]:
    """All accepted findings of a suite, those that expired first; nothing where none are kept."""
    if not reviewed:
        return ()
    over = sum(each.expired for each in reviewed)
    head = f"{counted(len(reviewed), 'accepted finding')}, {over} expired. {STILL_REFUTED}"
    return head, *(reviewed_line(each) for each in sorted(reviewed, key=lambda each: not each.expired))


def accepted_text(acceptance: Acceptance, path: object, before: Acceptance | None) -> str:
    """What `dpaudit accept` has done."""
    was = "" if before is None else f"; before, it was {until_text(before)}"
    return f"{acceptance_line(acceptance)}\nwritten to {clean(path, LONGEST_DATA)}{was}"


# --- the account of a suite, and of an audit in it ---

AUDITS = "Audits of differential privacy claims"
ACTION = "needs action"
BROKEN = "known to be broken: do not rely on these"
HEAD = ("audit", "verdict", "why", "certified", "claimed", "p-value (Holm)")
NO_FILE = "--dpaudit-report DIR writes the whole account"
MOST_ODD, MOST_CURES = 2, 2  # audits that need action, and things to do, on the first page of twelve lines
MOST_NAMED = 3  # audits that a thing to do names
BESIDE_PAGE = (OR_ELSE, "evidence")  # that a failing test tells too
NOTHING_AUDITED = ("Nothing was audited.", "Name specs that hold audits; check --only and --tag.")
KINDS = REFUTED_ODD, MISSING, MISSED_BITS, NO_RESULT, WEAK, LED, BESIDE, BITS_ODD, ACCEPTED, KNOWN, KNOWN_BITS, KEPT = (
    "REFUTED, not expected",  # in the order in which somebody should look
    "not refuted, though a violation is known",
    "known finding on bits missed",
    "no verdict",
    "without the power demanded",
    "a lead by recorded noise",
    "something went wrong beside it",
    "REFUTED by bits",
    "REFUTED, accepted",
    "REFUTED, as expected",
    "REFUTED by bits, as expected",
    "not refuted, as expected",
)


def kind_of(entry: SuiteEntry) -> str:
    """What an entry is, of `KINDS`."""
    result = entry.result
    if result is None:
        return NO_RESULT
    if not entry.as_expected:
        return REFUTED_ODD if result.refuted else MISSED_BITS if entry.bits else MISSING
    if result.power_reached is False:
        return WEAK
    if result.led and result.exit_code == 1:
        return LED
    if entry.error or entry.exit_code:
        return BESIDE
    if entry.covered:
        return ACCEPTED
    if result.refuted:
        return KNOWN
    return KNOWN_BITS if entry.bits else BITS_ODD if result.representation_refuted else KEPT


def ending(entry: SuiteEntry) -> str:
    """The same with what somebody should know of it: bits, a condition, a last day."""
    what, result = kind_of(entry), entry.result
    if result is not None and result.refuted:
        what += "; by bits too" * result.representation_refuted + supposed(result)
    if entry.covered and entry.accepted is not None:
        what += f" until {entry.accepted.until.isoformat()}"
    return what


def why(entry: SuiteEntry) -> str:
    """In a phrase what lies behind it: the cause of a refutation, who answers for it, what went wrong."""
    result, error = entry.result, clean(entry.error or "", LONGEST_REASON)
    if result is None:
        return error or "no reason was recorded"
    reason = clean(entry.accepted.reason, LONGEST_DATA) if entry.covered and entry.accepted is not None else ""
    found, least = cause(result), (result.least_found(MASSES[0]) if result.evidence.runs else None) or math.inf
    caught = f"caught at best from {result.claim.parameter} {least_text(least)} on; " if least < math.inf else ""
    tried = "" if found else f"{caught}{counted(len(result.spec['pairs']), 'pair')} tried"
    bits = bound_lines(result)[0] if result.representation_refuted and not result.refuted else ""
    trust = f"if {believed(result)}" if result.on_trust and not bits else ""
    error = "; ".join(filter(None, (a_lead(result), error)))
    return "; ".join(filter(None, (found, tried, bits, reason, trust, unseen(result), error)))


def needs_action(entry: SuiteEntry) -> bool:
    """Whether somebody has to do something: no verdict or another than expected, bits that leak, too little power."""
    bits = entry.result is not None and entry.result.representation_refuted and not entry.bits
    return bits or KINDS.index(kind_of(entry)) < KINDS.index(ACCEPTED)


def group_of(entry: SuiteEntry) -> str:
    """Under which head of a table it stands."""
    if needs_action(entry):
        return ACTION
    return "accepted" if entry.covered else BROKEN if kind_of(entry) in (KNOWN, KNOWN_BITS) else "as expected"


def in_order(suite: SuiteResult) -> list[int]:
    """The places of the audits in the order in which somebody should look, then in that of the suite."""
    keys = [(not needs_action(each), KINDS.index(kind_of(each))) for each in suite.entries]
    return sorted(range(len(keys)), key=keys.__getitem__)


@account.register
def told(entry: SuiteEntry, up_to: Level = Level.REVIEWER, record: str | None = None) -> Account:
    """The account of an audit, with what the author of its spec expects; `record` is the file of its result."""
    if entry.result is None:
        sections = (Section("verdict", Level.HEADLINE, (flat(suite_line(entry)),)),)
        return Account(AUDIT, tone(None), sections, stamp="no verdict")
    return of_facts(AuditFacts(entry.result, entry, record), up_to)


def assertion(entry: SuiteEntry, record: str | None = None) -> str:
    """The message of a test that fails for this audit; `record` is the file of its result, where one was written."""
    whole = told(entry, Level.DETAIL, record or "")
    shown = tuple(each for each in whole.sections if each.level <= Level.PAGE_ONE or each.key in BESIDE_PAGE)
    more = NO_FILE if record is None else f"dpaudit report {quote(clean(record, len(record)))} --format txt"
    _, *lines = replace(whole, sections=shown, whole=len(shown) == len(whole.sections)).lines(more)
    word = whole.stamp
    if entry.result is not None and not entry.result.refuted:
        word = "NOT FOUND" if not entry.as_expected else "LEAD" if kind_of(entry) == LED else "TOO LITTLE POWER"
    return "\n".join((f"{word}  {whole.rest}", *lines))


@account.register
def _of_suite(suite: SuiteResult, up_to: Level = Level.REVIEWER) -> Account:
    title = clean(suite.name) or (f"Audits of {clean(suite.product)}" if suite.product else AUDITS)
    return Account.of(title, "none", SUITE_TOPICS, suite, up_to)


def audits_table(suite: SuiteResult) -> Table:
    """One row an audit, what needs action first: how it ended and why, what was certified against what was claimed."""
    adjusted = suite.holm()
    rows = tuple(row_of(suite.entries[place], adjusted[place]) for place in in_order(suite))
    return Table("All audits", HEAD, rows, frozenset({4, 5}))


def row_of(entry: SuiteEntry, p_value: float | None = None) -> tuple[str, ...]:
    """One row of that table."""
    result, p = entry.result, "" if p_value is None else p_text(p_value)
    bounds = ("", "") if result is None else (certified(result), claimed(result))
    return clean(entry.name), ending(entry), why(entry), *bounds, p


def cures(suite: SuiteResult) -> tuple[tuple[str, str], ...]:
    """What to do about each kind of finding that nobody answers for: the kind with names, and its cure."""
    every = [each for each in reported(suite) if each.accepted is None and each.rule.level != NOTE]
    rules = {each.rule.id: each.rule for each in every if suite.entries or each.rule is not NO_VERDICT}
    cured = [(_of_which(suite, rules[name], every), rules[name].help) for name in sorted(rules)]
    return (*([] if suite.entries else [NOTHING_AUDITED]), *cured)


def _of_which(suite: SuiteResult, rule: "FindingRule", every: Sequence["Reported"]) -> str:
    """The kind of finding in short, with the names of the first audits that it is about where there are several."""
    numbers = [each.entry for each in every if each.rule is rule and each.entry is not None]
    if len(suite.entries) < 2 or not numbers:
        return rule.short
    names = [clean(suite.entries[number].name) for number in numbers[:MOST_NAMED]]
    more = [f"{len(numbers) - MOST_NAMED:,} more"] if len(numbers) > MOST_NAMED else []
    return f"{rule.short.removesuffix('.')} ({', '.join([*names, *more])})."


def _to_act(suite: SuiteResult) -> tuple[str, ...]:
    return _first(action_lines(suite), MOST_ODD, "more audit", f": {names_in(suite, ACTION, MOST_ODD)}")


def _to_do(suite: SuiteResult) -> tuple[str, ...]:
    lines = tuple(" ".join(each) for each in cures(suite))
    return _first(lines, MOST_CURES, "more thing", " to do") or not_private(*suite.results)


def _first(lines: tuple[str, ...], most: int, what: str, more: str = "") -> tuple[str, ...]:
    """The first lines, and how many more there are."""
    left = len(lines) - most
    return *lines[:most], *([f"and {counted(left, what)}{more}"] if left > 0 else ())


def names_in(suite: SuiteResult, group: str, first: int = 0) -> str:
    """The names of the audits of a group, from one of them on."""
    names = [clean(each.name) for place in in_order(suite) if group_of(each := suite.entries[place]) == group]
    return clean(", ".join(names[first:]), LONGEST_REASON)


def _every(suite: SuiteResult) -> tuple[str, ...]:
    """A line for each audit, with its adjusted p-value."""
    adjusted = ["" if each is None else f"; Holm-adjusted p-value {p_text(each)}" for each in suite.holm()]
    return tuple(f"{suite_line(suite.entries[place])}{adjusted[place]}" for place in in_order(suite))


SUITE_TOPICS: tuple[Topic[SuiteResult], ...] = (
    Topic("verdicts", Level.HEADLINE, lambda suite: (suite_headline(suite),)),
    Topic("about", Level.PAGE_ONE, lambda suite: filter(None, (suite_about(suite),))),
    Topic("asked", Level.PAGE_ONE, lambda suite: suite_question(suite)[:1]),
    Topic(ACTION, Level.PAGE_ONE, _to_act),
    Topic("accepted", Level.PAGE_ONE, lambda suite: reviewed_lines(suite.reviewed)[:1]),
    Topic("what to do", Level.PAGE_ONE, _to_do),
    Topic("not looked at", Level.PAGE_ONE, lambda suite: (not_looked_at(*suite.results),)),
    Topic("what it means", Level.DETAIL, lambda suite: suite_question(suite)[1:]),
    Topic("what else to do", Level.DETAIL, lambda suite: map(" ".join, cures(suite)[MOST_CURES:])),
    Topic("every audit", Level.DETAIL, _every, audits_table),
    Topic("accepted findings", Level.DETAIL, lambda suite: reviewed_lines(suite.reviewed)[1:]),
    Topic("not private", Level.DETAIL, lambda suite: not_private(*suite.results)),
    Topic("not shown", Level.DETAIL, lambda suite: LIMITS),
)

# --- findings by rule, and what somebody is told of each ---

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A kind of finding: its id, its level (`ERROR`, `WARNING` or `NOTE`), one line, what to do."""

    id: str
    name: str
    level: str
    short: str
    help: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding of a rule: its sentence, the number of its entry in the suite, its fingerprint, who accepted it."""

    rule: FindingRule
    sentence: str
    entry: int | None = None
    fingerprint: str | None = None
    accepted: Reviewed | None = None

    @property
    def justification(self) -> str:
        """Who answers for it, until when and why; empty where nobody does."""
        return "" if self.accepted is None else acceptance_line(self.accepted.acceptance)


REFUTED = FindingRule(
    "DPA001",
    "ClaimRefuted",
    ERROR,
    "The claim is refuted.",
    "Repair the mechanism as its page says, state the claim that it keeps, or accept it until a day (dpaudit accept).",
)
REPRESENTATION = FindingRule(
    "DPA002",
    "RepresentationFinding",
    WARNING,
    "The bits of floating-point outputs tell the datasets apart.",
    "Release integers from discrete noise, or round to a power-of-two grid that is not finer than the noise's scale.",
)
NO_VERDICT = FindingRule(
    "DPA003",
    "NoVerdict",
    ERROR,
    "The audit ended without a verdict.",
    "Remove the reason and audit again. Never count an audit without a verdict as one that found nothing.",
)
MISSED = FindingRule(
    "DPA004",
    "KnownViolationNotFound",
    ERROR,
    "A known violation was not found.",
    "Give the audit more runs or a better pair. Where the mechanism was repaired, expect not-refuted from now on.",
)
POWERLESS = FindingRule(
    "DPA005",
    "PowerNotReached",
    ERROR,
    "The audit did not have the power that its spec demands.",
    "Give it more runs; dpaudit plan says how many.",
)
EXPIRED = FindingRule(
    "DPA006",
    "AcceptanceExpired",
    ERROR,
    "An accepted finding has expired.",
    "Review the finding again with dpaudit accept, or repair what it excuses and remove it from the file.",
)
UNMATCHED = FindingRule(
    "DPA007",
    "AcceptedFindingNotFound",
    NOTE,
    "An accepted finding is not among the findings of these audits.",
    "Remove it from the file if these audits are all that it is about.",
)
BROKEN_REPORT = FindingRule(
    "DPA008",
    "ErrorBesideVerdict",
    ERROR,
    "Something went wrong beside the audit.",
    "Remove the reason and write the report again: dpaudit report.",
)
SUSPECTED = FindingRule(
    "DPA009",
    "RecordedLead",
    ERROR,
    "Recorded noise has a lead, which the counts have not borne out.",
    "Look at the place that it names. Repair it, or audit its pair with more runs: a lead is no verdict.",
)
RULES = (REFUTED, REPRESENTATION, NO_VERDICT, MISSED, POWERLESS, EXPIRED, UNMATCHED, BROKEN_REPORT, SUSPECTED)

EXIT_CODES = {
    0: "every audit finished, and every verdict is as expected",
    1: "a verdict is not as expected, an accepted finding has expired, or there is a lead and leads is fail",
    2: "bad usage or spec, or a file that could not be read or written",
    3: "an audit has no verdict",
    4: "an audit did not have the power that its spec demands",
    5: "nothing was audited",
    70: "an internal error",
    130: "interrupted",
}


def reported(suite: SuiteResult) -> tuple[Reported, ...]:
    """Every finding of a suite, in the order of its audits, the accepted findings that need a look at the end.

    A known violation that was found as expected, and a claim that was not refuted, are no findings.
    """
    findings: list[Reported] = []
    if not suite.entries:  # else a gate would open where nothing was looked at
        findings.append(Reported(NO_VERDICT, f"{suite_question(suite)[0]} {EXIT_CODES[suite.exit_code].capitalize()}."))
    for number, entry in enumerate(suite.entries):
        findings += _of_entry(entry, number, suite.reviewed)
    for each in suite.reviewed:
        if each.expired or not each.matched:
            rule = EXPIRED if each.expired else UNMATCHED
            findings.append(Reported(rule, flat(reviewed_line(each)), fingerprint=each.acceptance.fingerprint))
    return tuple(findings)


def _of_entry(entry: SuiteEntry, number: int, reviewed: Sequence[Reviewed]) -> list[Reported]:
    result, line = entry.result, flat(suite_line(entry))
    if result is None:
        return [Reported(NO_VERDICT, line, number)]
    findings = []
    if not entry.foreseen:
        rule = REFUTED if result.refuted else MISSED
        # what was not refuted has the witness that this seed happened on, and no fingerprint of a finding
        mine = fingerprint(result) if rule is REFUTED else None
        text = "; ".join((line, *(of.lines if rule is REFUTED and (of := diagnosis(result)) else ())))
        acceptance = entry.accepted if entry.covered else None  # a missed violation cannot be accepted
        review = (
            None
            if acceptance is None
            else _in_force(reviewed, acceptance.fingerprint) or Reviewed(acceptance, False, True)
        )
        findings.append(Reported(rule, text, number, mine, review))
    if result.representation_refuted and not (entry.bits and entry.foreseen):
        mine = fingerprint(result, representation=True)
        text = "; ".join((f"{clean(result.name)}: {representation_lines(result)[0]}", *BITS.lines))
        findings.append(Reported(REPRESENTATION, text, number, mine, _in_force(reviewed, mine)))
    if result.power_reached is False:
        findings.append(Reported(POWERLESS, line, number))
    if kind_of(entry) == LED:
        findings.append(Reported(SUSPECTED, line, number))
    elif entry.error or (entry.exit_code and result.power_reached is not False):
        what = entry.error or EXIT_CODES.get(entry.exit_code, f"exit code {entry.exit_code}")
        findings.append(Reported(BROKEN_REPORT, f"{flat(headline(result))}; {clean(what, LONGEST_REASON)}", number))
    return findings


def flat(line: str) -> str:
    """A line without the spaces that make columns."""
    return " ".join(line.split())


def _in_force(reviewed: Sequence[Reviewed], mine: str) -> Reviewed | None:
    return next((each for each in reviewed if each.acceptance.fingerprint == mine and not each.expired), None)
