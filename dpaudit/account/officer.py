"""What a verdict means, whom a claim protects and what an audit leaves open, for a reader of no formulas."""

import hashlib
import math
from collections.abc import Mapping

from dpaudit.account.first import AuditFacts, sentence
from dpaudit.account.statements import (
    STILL_REFUTED,
    UNSURE,
    acceptance_line,
    believed,
    delta_text,
    expected_text,
    kinds_tried,
    record_lines,
    unseen,
)
from dpaudit.base.numerals import bound, counted, odds
from dpaudit.base.quoting import LONGEST_DATA, LONGEST_REASON, clean
from dpaudit.base.strict import spec_hash
from dpaudit.certify import Binned
from dpaudit.claims import Relation, claim_from_dict
from dpaudit.claims.claim import FULL_DIGITS, LARGEST_LOSS
from dpaudit.results.bounds import BracketVerdict
from dpaudit.results.observations import by_place, smallest_seen
from dpaudit.results.provenance import RECORD
from dpaudit.results.result import AuditResult, fingerprint
from dpaudit.results.suite import SuiteEntry

DECIDED = ("owner", "unit", "releases", "source")  # of the record, without which nobody decides on a release
RARE = 10  # fewer hits hardly distinguish an event from chance

ENOUGH = "It would have caught what the table says, and may have missed what is smaller or rarer."
BEYOND = (
    "How the data were collected, who has access to them, and how a budget is kept over several releases were not "
    "looked at.",
    "No run can tell whether the datasets that count as neighbours are the right ones for the people in the data.",
    "Audits of the same claim that were made elsewhere, or made and thrown away, are not known; dpaudit history lists "
    "those of a ledger.",
)


def in_plain_words(result: AuditResult) -> tuple[str, ...]:
    """The promise and the bound, for a reader of no formulas."""
    bits: tuple[str, ...] = ()
    if result.representation_refuted:
        bits = ("The low bits of the floating-point outputs break the claim: it does not hold for outputs as floats.",)
    return (promise(result), *implied_promise(result), *bits, *_ratio(result))


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
    several = isinstance(result.evidence, Binned) or result.blocks  # events that the statement is about together
    side, other = ("one", "other") if several else (f"the {result.witness.p_side}", result.witness.q_side)
    how = f"{times} times as probable with {side} dataset as with the {other}{off}"
    return (f"Found: outputs that are at least {how}.",)


def before(result: AuditResult) -> tuple[str, ...]:
    """What whoever relies on the claim has to ask: who is protected, whether the pairs are the worst, what was seen."""
    tried, hand = kinds_tried(result), "" if result.provenance.get("reasons") else ", given by hand"
    of = f" made of the given data: {tried}" if tried else f"{hand}; ask for hard cases (data=): outliers, NaN"
    of = f"Tried: {counted(len(result.spec['pairs']), 'pair')}{of}. Other data may lose more."
    lines = [f"Who is protected? {' '.join(unit(result))}", f"Are these the worst neighbours? {of}"]
    if not result.evidence.runs:
        return tuple(lines)
    missed = [place for place, each in by_place(result.controls).items() if smallest_seen(each) is None]
    more = f" Leaks that were put in were not caught, at any size tried, here: {'; '.join(missed)}." if missed else ""
    return (*lines, f"Could it have seen enough? {ENOUGH}{more}")


def missing(facts: AuditFacts) -> tuple[str, ...]:
    """What somebody who has to decide on a claim that is not refuted does not have, in one line."""
    result, table = facts.result, facts.seen
    given = result.provenance.get("record", {})
    left = [] if result.spec["claim"]["relation"] else ["a relation, which says who counts as a neighbour"]
    left += [f"a check that {believed(result)}"] if result.on_trust and not left else []
    left += ["the parts of outputs that the first line names"] if unseen(result) else []
    if result.bracket is None or result.bracket.verdict is not BracketVerdict.PROVED:
        left.append("a proof of the claim (dpaudit bracket)")
    if names := [RECORD[key] for key in DECIDED if key not in given]:
        left.append(f"in the record: {', '.join(names)}")
    if table is not None and table.rows[-1][1:] == (UNSURE,):
        left.append(f"enough runs to catch leaks that show in 1 of {table.rows[-1][0]}")
    return (sentence("; ".join(left)),) if left else ()


def too_rare(result: AuditResult) -> tuple[str, ...]:
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


UNITS: Mapping[str | None, str] = {
    Relation.ADD_OR_REMOVE_ONE.value: "One record, added or removed; so the number of records is protected too.",
    Relation.REPLACE_ONE.value: "What one record says; the number of records counts as public.",
    Relation.REPLACE_SPECIAL.value: "One record, replaced by a neutral one, which the mechanism defines.",
    Relation.LOCAL.value: "One record, randomised before it is handed over: nobody who collects it is trusted.",
    Relation.ADD_OR_REMOVE_USER.value: "One user with all of their records, added or removed; so the numbers of users "
    "and records are protected too.",
    None: "You did not say who counts as a neighbour (relation = ...). If these two datasets are not neighbours, this "
    "result says nothing.",
}
WHOSE = "Whether anybody has several records was not checked; whoever has is not covered."
WHOSE_USER = "A person who is several users, as by several accounts, is not covered."
WHOSE_RECORD = "A person who hands over several records is not covered for all of them."
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
    """Whom or what the claim protects, by its relation, and what is not known of it."""
    relation = result.spec["claim"]["relation"]
    lines, one = [UNITS[relation]], "user" if relation == Relation.ADD_OR_REMOVE_USER.value else "record"
    if given := result.provenance.get("record", {}).get("unit"):
        lines.append(f"One {one} stands for: {clean(given, LONGEST_DATA)}.")
    if result.distance > 1:
        lines.append(f"The bound is about {result.distance:,} steps: a group of so many {one}s.")
    if relation and result.on_trust:
        lines.append(f"Not checked: that {believed(result)}.")
    return (*lines, WHOSE_OF.get(relation, WHOSE)) if relation else tuple(lines)


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
