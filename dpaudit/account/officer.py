"""What a verdict means, whom a claim protects and what an audit leaves open, for a reader of no formulas."""

import hashlib
import math
from collections.abc import Mapping

from dpaudit.account.first import odds
from dpaudit.account.statements import (
    SHOWN_MASS,
    STILL_REFUTED,
    acceptance_line,
    delta_text,
    expected_text,
    limits,
    record_lines,
    trusted,
    unseen,
)
from dpaudit.base.numerals import bound, confidence_text, counted, least_text
from dpaudit.base.quoting import LONGEST_DATA, LONGEST_REASON, clean
from dpaudit.base.strict import spec_hash
from dpaudit.base.validate import exact
from dpaudit.certify import Binned
from dpaudit.claims import Relation, claim_from_dict
from dpaudit.claims.claim import FULL_DIGITS, LARGEST_LOSS
from dpaudit.results.display import Verdict
from dpaudit.results.observations import by_place, smallest_seen
from dpaudit.results.result import POWER, AuditResult, fingerprint
from dpaudit.results.suite import SuiteEntry

RARE = 10  # fewer hits hardly distinguish an event from chance

BEYOND = (
    "How the data were collected, who has access to them, and how a budget is kept over several releases were not "
    "looked at.",
    "No run can tell whether the datasets that count as neighbours are the right ones for the people in the data.",
)


def not_shown(result: AuditResult) -> tuple[str, ...]:
    """The limits that stand on every page one, whatever the verdict."""
    return (*limits(result), *_too_rare(result), *BEYOND)


def in_plain_words(result: AuditResult) -> tuple[str, ...]:
    """The verdict, the promise and the bound, for a reader of no formulas."""
    return (*_verdict(result), promise(result), *implied_promise(result), *_ratio(result))


def _verdict(result: AuditResult) -> tuple[str, ...]:
    near = "count as neighbours" if result.distance == 1 else "are several steps apart, as stated"
    if result.verdict is Verdict.REFUTED:
        where = f" if the datasets {near}:" if result.on_trust else f": on datasets that {near},"
        verb = "says" if result.distance == 1 else "implies for these"
        lines = [f"The claim is refuted{where} outputs give away more than it {verb}."]
    elif result.representation_refuted:
        lines = ["By the values of the outputs the claim is not refuted, which is no proof that it holds for them."]
    else:
        lines = ["The claim is not refuted: no violation was found. That is no proof that the claim holds."]
    if result.representation is not None and result.representation_refuted:
        level = confidence_text(result.representation.certificate.confidence)
        lines.insert(
            1 if result.verdict is Verdict.REFUTED else 0,
            "The claim is refuted by bits: the low bits of the floating-point outputs tell the datasets apart, and it "
            f"does not hold for the outputs as floats, with a confidence of its own, {level}.",
        )
    if unseen(result):
        lines.append(
            f"Outputs were not looked at whole: {unseen(result)}. Nothing is said of what was not looked at"
            f"{', nor of what such entries show together' if result.unpaired else ''}."
        )
    if result.on_trust:
        lines.insert(0, f"{trusted(result).capitalize()}: nothing here shows that the datasets {near}.")
    return tuple(lines)


def expectation(entry: SuiteEntry | None) -> tuple[str, ...]:
    """What the author of the spec expected, and whether a finding nobody expected is an accepted one."""
    if entry is None or entry.result is None:
        return ()
    expected = expected_text(entry)
    lines = [f"This is the verdict that the author of the spec expects: {expected}."]
    if not entry.foreseen:
        lines = [f"The author of the spec expected another verdict: {expected}."]
    if entry.covered and entry.accepted is not None:
        lines.append(f"This finding was reviewed. {acceptance_line(entry.accepted)}.")
        lines.append(STILL_REFUTED)
    if entry.error:
        lines.append(f"Something went wrong beside it: {clean(entry.error, LONGEST_REASON)}.")
    return tuple(lines)


def _ratio(result: AuditResult) -> tuple[str, ...]:
    """What the certified bound means as a ratio of probabilities."""
    certificate = result.certificate
    lower = certificate.epsilon_lower
    if lower is None or not 0.0 < lower <= LARGEST_LOSS:
        return ()
    times = ratio_text(math.exp(lower) * (1.0 - 1e-12))
    off = "" if certificate.delta <= 0.0 else f", after {delta_text(certificate.delta)} is taken off its probability"
    if isinstance(result.evidence, Binned) or result.blocks:  # a statement about several events together
        return (
            f"Found: some set of outputs is at least {times} times as probable with one dataset as with the "
            f"other{off}.",
        )
    side, other = result.witness.p_side, result.witness.q_side
    return (
        f"Found: a set of outputs, chosen before the runs that count, is at least {times} times as probable with the "
        f"{side} dataset as with the {other}{off}.",
    )


def could_have_seen(result: AuditResult) -> tuple[str, ...]:
    """The loss that would have been refuted where the outputs that show it are neither rare nor frequent, in a line."""
    if result.evidence.runs == 0:
        return ("The audit stopped once the claim was refuted, before the runs that would have told its power.",)
    least, once = result.least_found(SHOWN_MASS), f"once in {round(1 / SHOWN_MASS):,} runs"
    if least is None or least == math.inf:
        return (f"The runs were few: no loss is refuted with probability {exact(POWER)} by outputs that come {once}.",)
    missed = [place for place, each in by_place(result.controls).items() if smallest_seen(each) is None]
    controls = (
        f" Leaks that were put in were not caught, at any size tried, here: {'; '.join(missed)}." if missed else ""
    )
    return (
        f"A true {result.claim.parameter} of {least_text(least)} or more, where one output or one end of a range shows "
        f"it and comes {once}: that is refuted with probability {exact(POWER)}, at least.{controls}",
    )


def _too_rare(result: AuditResult) -> tuple[str, ...]:
    runs = result.evidence.runs
    if not runs:
        return ()
    rare = RARE / (runs / 2)
    if rare >= 1.0:
        return ("The runs were too few for any but the plainest violation.",)
    return (
        f"Outputs rarer than about {odds(rare)} runs were too rare to be seen in {counted(runs, 'certifying run')}.",
    )


def record(result: AuditResult) -> tuple[str, ...]:
    """What people filled in, and by what the code, the question, the finding and the file of it all are known."""
    lines = [*record_lines(result)]
    if commit := result.provenance.get("commit"):
        shown = clean(str(commit).removesuffix("-dirty"))
        dirty = ", with changes that were not committed" if str(commit).endswith("-dirty") else ""
        lines.append(f"The commit is {shown}{dirty or ', with nothing uncommitted beside it'}.")
    lines.append(
        f"The question has the hash {spec_hash(result.spec)}, the finding the fingerprint {fingerprint(result)}."
    )
    lines.append(f"The record, the JSON file that this version writes, has the SHA-256 digest {record_digest(result)}.")
    return (*lines, "A digest shows a change only to somebody who keeps it elsewhere.")


def record_digest(result: AuditResult) -> str:
    """The SHA-256 digest of the file that `AuditResult.save` writes, as `sha256sum` prints it."""
    return hashlib.sha256(result.to_json().encode()).hexdigest()


# --- what a claim promises and to whom, in plain words: one account for each form and each relation -----------


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
    Relation.ADD_OR_REMOVE_USER.value: (
        "One user with all of their entries: neighbours are the dataset with them and the dataset without any of them.",
        "That somebody takes part at all, and with how many entries, is within the promise; how many users and entries "
        "there are may not be taken as known.",
    ),
}
NO_UNIT = "The claim states no relation: which datasets count as neighbours is not known here."
WHOSE = "Where one person has several entries, the promise for one entry does not cover that person."
WHOSE_USER = "Where one person is several users, as by several accounts, the promise for one does not cover them all."
WHOSE_RECORD = "Where a person hands over several records, the promise for one record does not cover them all."
WHOSE_OF = {Relation.LOCAL.value: WHOSE_RECORD, Relation.ADD_OR_REMOVE_USER.value: WHOSE_USER}


def promise(result: AuditResult) -> str:
    """What the claim promises for neighbours, by its form."""
    claim = claim_from_dict(result.spec["claim"])
    return f"The claim is {claim.short}. It promises: {claim.promise('its neighbour')}."


def implied_promise(result: AuditResult) -> tuple[str, ...]:
    """What the claim implies for datasets several steps apart, which is what their bound is held against."""
    if result.distance == 1:
        return ()
    # without the last digits of a product: 0.3 for three times 0.1
    stored = {k: float(f"{v:.12g}") if isinstance(v, float) else v for k, v in result.claim.to_dict().items()}
    implied = claim_from_dict(stored)
    apart = f"For datasets {result.distance:,} steps apart that comes to"
    return (f"{apart} {implied.short}: {implied.promise('the other')}.",)


def unit(result: AuditResult) -> tuple[str, ...]:
    """Whom or what the claim protects, by its relation; what it does not say is said to be unknown."""
    relation = result.spec["claim"]["relation"]
    lines = [*UNITS[relation]] if relation else [NO_UNIT]
    one, members = ("user", "users") if relation == Relation.ADD_OR_REMOVE_USER.value else ("entry", "entries")
    if given := result.provenance.get("record", {}).get("unit"):
        lines.append(f"One {one} stands for: {clean(given, LONGEST_DATA)}.")
    if result.distance > 1:
        lines.append(f"The bound is about datasets {result.distance:,} steps apart: a group of so many {members}.")
    return (*lines, WHOSE_OF.get(relation, WHOSE))


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
