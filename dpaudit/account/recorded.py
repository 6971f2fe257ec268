"""A record of noise in words: leads with their place in the code, the pair, two replays side by side, what to do.

A lead is a suspicion, told with its assumption, and never a refutation; no lead says nothing for a claim.
"""

import json
import math
import shlex
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from statistics import NormalDist

import numpy as np

from dpaudit.account.first import SIDES, datasets, sentence
from dpaudit.account.repeat import call_of
from dpaudit.account.section import Account, Level, Table, Topic, account
from dpaudit.account.statements import at_delta
from dpaudit.base.numerals import counted, least_text
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.base.validate import exact
from dpaudit.certify import smallest_caught, suited
from dpaudit.certify.certifiers import MASSES
from dpaudit.claims import Claim, claim_from_dict
from dpaudit.options import OPTIONS
from dpaudit.results.recorded import Lead, NoiseRecord
from dpaudit.results.result import AuditResult

ASSUMED = "if these draws are its only randomness"
NO_VERDICT = (
    "This is no bound and no verdict: replays of a few runs, on one pair. Without a lead it says nothing for a claim."
)
PROVES_NOTHING = (
    "That proves nothing: sparse vector, rejection, subsampling, propose-test-release and the exponential mechanism "
    "draw by their data."
)
SCALED = "Look at what the noise is scaled to there: the sensitivity, a clip, a bound, a count that is taken as public."
LOOK = {
    "shift": SCALED,
    "law": SCALED,
    "untouched": "Add noise to it, or do not release it; where it is public, give both datasets the same.",
    "reused": "Draw noise of its own for each part: what is left when a draw cancels has none.",
    "raised": "Have both end alike: an exception is an output too.",
}
NOT_SEEN = "Audit it by counts: these see all randomness, whatever draws it."
SHOWN = "So many runs mostly show such a loss, and did not: ask whether these draws are its only randomness."
NOT_MADE = "Noise was not recorded: the process for it ended, or there was no time."
BORNE_OUT = "Counts of fresh runs refute the claim, without any assumption on its draws."
UNNAMED = "pair"
MOST = 8  # leads, and parts of an output, that are named
SIZES = tuple(lead * 10**power for power in range(3, 13) for lead in (1, 2, 5))  # runs that may show a lead
CONFIDENCE = OPTIONS["confidence"].default


@account.register
def _of_record(record: NoiseRecord, up_to: Level = Level.REVIEWER) -> Account:
    return Account.of("Recorded noise", "none", TOPICS, record, up_to, record.label)


def headline(record: NoiseRecord) -> str:
    """The one line of a record, with its pair where that has a name."""
    name = record.pair.get("name", UNNAMED)
    pair = "" if name == UNNAMED else f" ({clean(name)})"
    return f"{record.label}  {clean(record.mechanism)}{pair}: {found(record)}"


def found(record: NoiseRecord) -> str:
    """What a record tells, in a clause.

    >>> found(NoiseRecord("sum", {}, None, 0, 45, (), (), (), loss=2.0))
    'no lead; the pair loses epsilon 2, if these draws are its only randomness'
    """
    if (lead := record.worst) is not None:
        more = f"; and {counted(len(record.leads) - 1, 'more lead')}" if len(record.leads) > 1 else ""
        return f"LEAD, {_moved(record, lead)}, {ASSUMED}{more}"
    if record.unseen:
        return f"no lead, for not all noise was recorded: {clean(record.unseen[0], LONGEST_DATA)}"
    if record.loss is not None:
        return f"no lead; the pair loses {_loss(record, record.loss, record.at_most)}, {ASSUMED}"
    return f"no lead; {'what differs proves nothing' if _differs(record) else 'not all of it is understood'}"


def _moved(record: NoiseRecord, lead: Lead) -> str:
    """What a lead says, in a clause."""
    parts, one = _some(lead.parts), len(lead.parts) == 1
    law = lead.law.removeprefix("-").replace("laplace", "Laplace").replace("gumbel", "Gumbel")
    words = {
        "shift": f"the pair moves {parts} by {'at most ' * lead.at_most}{lead.shift or 0.0:.4g} scales of {law} noise",
        "law": f"the pair changes the law of the noise of {parts}",
        "untouched": f"no draw touches {parts}, and {'it differs' if one else 'they differ'}",
        "reused": f"one draw is in {parts}, and what they have in common differs",
        "raised": "one dataset alone ends in an exception",
    }[lead.kind]
    return words if lead.loss is None else f"{words}: {_loss(record, lead.loss, lead.at_most)}"


def _loss(record: NoiseRecord, loss: float, at_most: bool) -> str:
    """A loss in the parameter of the claim, with what is claimed."""
    number = least_text(loss) if at_most else f"{loss:.4g}"
    if record.leads and record.allowed is not None and number == f"{record.allowed:.4g}":
        number = f"{loss:.9g}"  # just above it
    text = f"{record.parameter} infinite" if loss == math.inf else f"{record.parameter} {'at most ' * at_most}{number}"
    where = at_delta(_claim(record).delta) if record.claim and record.parameter == "epsilon" else ""
    return f"{text}{where}" + ("" if record.allowed is None else f", claimed {exact(record.allowed)}")


def _claim(record: NoiseRecord) -> Claim:
    """What is claimed of the pair."""
    return claim_from_dict(record.claim or {}).at_distance(int(record.pair.get("distance", 1)))


def _some(words: Sequence[str]) -> str:
    """The first of several words, and how many more there are."""
    more = f" and {len(words) - MOST:,} more" if len(words) > MOST else ""
    return f"{', '.join(clean(each) for each in words[:MOST])}{more}"


def _leads(record: NoiseRecord) -> tuple[str, ...]:
    """Each lead with its place in the code, and what the replays show there."""
    return tuple(f"{sentence(_moved(record, each))}{_shown(each)}" for each in record.leads[:MOST])


def _shown(lead: Lead) -> str:
    where = f" At {clean(lead.place, LONGEST_DATA)}: {clean(lead.call, LONGEST_DATA)}." if lead.place else ""
    first, second = clean(lead.first, LONGEST_DATA), clean(lead.second, LONGEST_DATA)
    return f"{where} {sentence(f'{first} on the first dataset, {second} on the second')}" if first or second else where


def _differs(record: NoiseRecord) -> tuple[str, ...]:
    """What differs under equal draws where no lead tells it, and that it proves nothing."""
    draws = [f"{' and '.join(each.differs)} of {each.call} at {each.place}" for each in record.draws if each.differs]
    lines = [f"Draws differ: {_some(draws)}."] if draws and not record.leads else []
    lines += [f"Parts differ under equal draws: {_some(record.differs)}."] if record.differs else []
    return (*lines, PROVES_NOTHING) if lines and not record.unseen else ()


def _to_do(record: NoiseRecord) -> tuple[str, ...]:
    if record.worst is None:
        return (NOT_SEEN,) if record.unseen else ()
    return LOOK[record.worst.kind], f"Audit this pair: counts need no assumption. {takes(record)}".rstrip()


def takes(record: NoiseRecord, confidence: float = CONFIDENCE, made: int = 0) -> str:
    """What counts need to show the worst lead, where `made` runs did not; empty where nobody can say."""
    if (runs := needed(record, confidence)) is None:
        return ""
    it_takes = f"At confidence {exact(confidence)} it takes about {runs:,} runs to refute the claim by counts, at best."
    return SHOWN if made >= runs else it_takes


def needed(record: NoiseRecord, confidence: float) -> int | None:
    """The least of `SIZES` runs that show the worst lead, 19 times in 20, by the best of a few events, as if known."""
    lead = record.worst
    if lead is None or record.claim is None or _claim(record).value is None:
        return None
    claim, loss, normal = _claim(record), lead.weight, NormalDist()
    shift = loss if record.parameter == ("mu" if lead.law == "normal" else "epsilon") else lead.shift or 0.0
    half = 0.5 * math.exp(
        -shift / 2.0
    )  # half lines of Laplace noise that is moved so: from its middle, and from between
    events = [(0.5, (0.5 - claim.delta) * math.exp(-shift)), (1.0 - half, half)]
    if lead.law == "normal":
        masses = (*MASSES, normal.cdf(shift / 2.0))
        events = [(mass, normal.cdf(normal.inv_cdf(mass) - shift)) for mass in masses if mass < 1.0]
    points = [(mass, float(claim.least_parameter(np.array([q]), np.array([mass]))[0])) for mass, q in events]

    def caught(runs: int) -> bool:
        how = partial(smallest_caught, claim, 3 * runs // 4, confidence=confidence, certifier=suited(claim))
        return any((least := how(mass)) is not None and least <= shown for mass, shown in points)

    place = bisect_left(SIZES, True, key=caught)
    return SIZES[place] if place < len(SIZES) else None


def _audit(record: NoiseRecord) -> tuple[str, ...]:
    """The audit of the pair as a command, where all of it can be typed, and in Python."""
    if not (record.claim and record.pair and record.description):
        return ()
    claim, told, values = claim_from_dict(record.claim), record.description, [record.pair[s]["value"] for s in SIDES]
    runs = max(OPTIONS["runs"].default, 2 * (needed(record, CONFIDENCE) or 0))
    asked = {"stopping": "fixed", "certifier": suited(claim).name, "seed": record.seed, "runs": runs}
    call = call_of({"mechanism": told, "pairs": [record.pair], "claim": record.claim, **asked})
    if None in values or "{" in (typed := json.dumps(values)) or len(typed) > LONGEST_DATA or not told["reference"]:
        return call
    keys = {key: getattr(claim, each.name) for key, each in type(claim).spec_fields().items()}
    options = {
        "--pair": typed,
        "--claim": json.dumps(keys),
        "--relation": record.claim["relation"],
        "--runs": str(runs),
    }
    words = [word for name, value in options.items() if value for word in (name, value)]
    words += [word for key, value in told["parameters"].items() for word in ("--param", f"{key}={json.dumps(value)}")]
    return (shlex.join(["dpaudit", "audit", told["reference"], *words]), *call)


def drawn(record: NoiseRecord) -> Table | None:
    """What was drawn in the two replays, side by side."""
    rows = [(each.place, each.call, each.first, each.second, ", ".join(each.differs)) for each in record.draws]
    return _table("What was drawn", ("place", "call", "first dataset", "second dataset", "differs in"), rows)


def out(record: NoiseRecord) -> Table | None:
    """What came out of the two replays, side by side."""
    rows = [(each.name, each.first, each.second) for each in record.parts]
    return _table("What came out", ("part", "first dataset", "second dataset"), rows)


def _table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, head, tuple(tuple(map(clean, row)) for row in rows))


def of_audit(result: AuditResult) -> tuple[str, ...]:
    """What was recorded before an audit, and what became of each lead."""
    if not result.recorded:
        return (NOT_MADE,) if result.spec.get("leads") else ()
    record, *others = result.recorded
    shown = f'{sentence(found(record))} The pair is "{clean(record.pair["name"])}".'
    if record.worst is None:
        return (shown,)
    after = BORNE_OUT if result.refuted else takes(record, result.spec["confidence"], result.runs_used)
    more = f" There are leads on further pairs: {_some([each.pair['name'] for each in others])}." if others else ""
    return shown + _shown(record.worst), f"{after}{more}".strip()


def a_lead(result: AuditResult) -> str:
    """The mark of an audit with a lead that its counts have not borne out; else nothing."""
    return f"recorded noise: {found(result.recorded[0])}" if result.led else ""


TOPICS: tuple[Topic[NoiseRecord], ...] = (
    Topic("recorded", Level.HEADLINE, lambda record: (headline(record),)),
    Topic("what was found", Level.PAGE_ONE, _leads),
    Topic("datasets", Level.PAGE_ONE, lambda record: (datasets(record.pair, "Two datasets were replayed"),)),
    Topic("what was drawn", Level.PAGE_ONE, table=drawn),
    Topic("what came out", Level.PAGE_ONE, table=out),
    Topic("what differs", Level.PAGE_ONE, _differs),
    Topic("not recorded", Level.PAGE_ONE, lambda record: [clean(each, LONGEST_DATA) for each in record.unseen]),
    Topic("what to do", Level.PAGE_ONE, _to_do),
    Topic("what it does not show", Level.PAGE_ONE, lambda record: (NO_VERDICT,)),
    Topic("audit", Level.PAGE_ONE, code=_audit),
    Topic("how it was made", Level.DETAIL, lambda record: (f"{counted(record.runs, 'run')}, seed {record.seed}",)),
)
