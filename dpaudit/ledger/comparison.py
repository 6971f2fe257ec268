"""Two records of audits compared: what is new, gone or has another question, and what rose beyond noise.

Noise is how far a bound may move by chance alone: docs/statistics/comparison.md says what that means and what was
measured. What the old event S loses (the least parameter of the claim whose region holds its rates) has an upper limit
U from exact Clopper-Pearson limits. The bound rose beyond noise where the new one, L, is above U; where the new event
is not S, above U and a margin for what the old search may have missed (`PRUDENCE`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.account.change import ORDER, Change, Comparison, Half, Kind, RunNoise
from dpaudit.base.strict import spec_hash, stored
from dpaudit.base.validate import error_probability
from dpaudit.certify import Binned, CoinFlip
from dpaudit.certify.binned import ORDERS
from dpaudit.certify.binomial import SLACK, lower_limit, upper_limit
from dpaudit.certify.evidence import Evidence
from dpaudit.claims import Claim
from dpaudit.errors import DpAuditError
from dpaudit.ledger.results import subject_text
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, Finding, screening_share, subject

MECHANISM = ("reference", "parameters", "kind", "takes_rng")  # of the question; its digest is its source
NAME, SUBJECT, REFERENCE, DATASETS, SETTINGS = range(5)  # what an audit is known by
Parts = tuple[str | None, ...]
Again = Callable[[AuditResult], AuditResult]  # what the witness of a result has on fresh runs of today's code
BOTH = (True, False)  # audits with a verdict, and those without
PRUDENCE = 1e-4  # 3.7 deviations: more than any search of ours takes off what it saw of one event among many
Limits = tuple[float, float, float, float]  # of p, then of q: lower, upper, lower, upper
NOT_ASKED = frozenset({"name", "mechanism", "pairs", "seed"})


def compare(
    old: Sequence[Half],
    new: Sequence[Half],
    *,
    old_label: str = "old",
    new_label: str = "new",
    again: Again | None = None,
) -> Comparison:
    """What became of every audit, the gravest changes first; `again` gives an old event fresh runs of today's code."""
    changes = [change_of(before, after, again) for before, after in matched(old, new)]
    changes.sort(key=lambda change: ORDER.index(change.kind))
    return Comparison(old_label, new_label, tuple(changes))


def matched(old: Sequence[Half], new: Sequence[Half]) -> list[tuple[Half | None, Half | None]]:
    """The audits of both sides by name, mechanism, claim and datasets; by fewer of these where one has changed.

    Audits that agree in everything are taken in their order. A part alone decides only where it names one audit on
    either side: a result is never compared with one that may be of another audit.
    """
    left, right = ({at: (half, _parts(half)) for at, half in enumerate(side)} for side in (old, new))
    pairs: list[tuple[Half | None, Half | None]] = []
    rounds: tuple[tuple[tuple[int, ...], bool, tuple[bool, ...], tuple[bool, ...]], ...] = (
        ((NAME, SUBJECT, DATASETS, SETTINGS), False, BOTH, BOTH),
        ((NAME, SUBJECT, DATASETS), False, BOTH, BOTH),
        ((NAME, SUBJECT), True, BOTH, BOTH),
        ((NAME, REFERENCE), True, BOTH, BOTH),
        ((NAME,), True, BOTH, BOTH),
        ((SUBJECT, DATASETS), True, BOTH, BOTH),
        # which of several audits of one name lost its verdict may not be known: that one of them did is
        ((NAME,), False, (True,), (False,)),
        ((NAME,), False, (False,), (True,)),
        ((NAME,), False, (False,), (False,)),
    )
    for key, alone, with_verdict, against in rounds:
        before_by, after_by = _grouped(left, key, with_verdict), _grouped(right, key, against)
        for value, theirs in after_by.items():
            ours = before_by.get(value, [])
            if ours and not (alone and len(ours) + len(theirs) > 2):
                pairs += [(left.pop(one)[0], right.pop(other)[0]) for one, other in zip(ours, theirs, strict=False)]
    return [*pairs, *((half, None) for half, _ in left.values()), *((None, half) for half, _ in right.values())]


def change_of(old: Half | None, new: Half | None, again: Again | None = None) -> Change:
    """What became of one audit."""
    if old is None or new is None:
        return Change(old, new, (Kind.NEW if old is None else Kind.GONE,))
    if new.result is None:
        return Change(old, new, (Kind.NEITHER if old.result is None else Kind.LOST,))
    if old.result is None:
        return Change(old, new, (Kind.REFUTED, Kind.FOUND) if new.result.refuted else (Kind.FOUND,))
    was, now = old.result, new.result
    same, asked = _counts(was) == _counts(now), question(was, now)
    became = {
        Kind.REFUTED: (was.verdict, now.verdict) == (Verdict.NOT_REFUTED, Verdict.REFUTED),
        Kind.CLEARED: (was.verdict, now.verdict) == (Verdict.REFUTED, Verdict.NOT_REFUTED),
        Kind.BITS: now.representation_refuted and not was.representation_refuted,
        Kind.QUESTION: asked,
        Kind.SOURCE: source_changed(was, now),
    }
    kinds = [kind for kind, so in became.items() if so]
    chance: RunNoise | None = None
    if not asked and not same:
        chance = noise(was, now)
        if again is not None:
            chance = _run_again(was, chance, again)
        if chance.grew or (chance.threshold is not None and now.certificate.lower > chance.threshold):
            kinds.append(Kind.ROSE)
        back = noise(now, was).threshold
        if back is not None and was.certificate.lower > back:
            kinds.append(Kind.FELL)
    if not kinds:
        kinds.append(Kind.SAME if same else Kind.NOISE)
    # equal questions and seeds of a mechanism that draws from its rng alone give equal counts, if no clock cuts them
    repeats = all(each.reproducible and not each.cut_short for each in (was, now))
    hidden = not same and repeats and spec_hash(was.spec) == spec_hash(now.spec)
    return Change(old, new, tuple(sorted(kinds, key=ORDER.index)), asked, chance, hidden)


def question(old: AuditResult, new: AuditResult) -> tuple[str, ...]:
    """The parts of the question that differ; neither name nor seed nor the source of the mechanism is one."""
    changed = [f"mechanism {key}" for key in MECHANISM if _of(old, key) != _of(new, key)]
    if _data(old) != _data(new):
        changed.append("pairs")
    keys = dict.fromkeys([*old.spec, *new.spec])
    return (*changed, *(key for key in keys if key not in NOT_ASKED and old.spec.get(key) != new.spec.get(key)))


def source_changed(old: AuditResult, new: AuditResult) -> bool | None:
    """Whether the source of the mechanism changed; None where one of the two is not known."""
    first, second = old.spec["mechanism"]["digest"], new.spec["mechanism"]["digest"]
    return None if first is None or second is None else bool(first != second)


def _run_again(old: AuditResult, chance: RunNoise, again: Again) -> RunNoise:
    """The old event counted on fresh runs is the same event, frozen before them: its bound needs no margin."""
    try:
        fresh = again(old)
    except DpAuditError as error:
        return replace(chance, not_again=str(error))
    rerun = noise(old, fresh)
    if rerun.threshold is None:
        return replace(chance, not_again=rerun.why_not)
    return replace(chance, again=fresh.certificate.lower, limit=rerun.threshold)


def _counts(result: AuditResult) -> Any:
    return stored((result.witness, result.evidence, result.blocks, result.others))


def _of(result: AuditResult, key: str) -> Any:
    mechanism = result.spec["mechanism"]
    return mechanism[key] or mechanism["name"] if key == "reference" else mechanism[key]


def _data(result: AuditResult) -> list[Any]:
    return [(pair["distance"], pair["first"]["digest"], pair["second"]["digest"]) for pair in result.spec["pairs"]]


def _parts(half: Half) -> Parts:
    """What an audit is known by, in the order of `NAME` to `SETTINGS`; without a result by its name alone."""
    if half.result is None:
        return half.name, None, None, None, None
    spec, reference = half.result.spec, str(_of(half.result, "reference"))
    settings = repr(sorted((key, repr(value)) for key, value in spec.items() if key not in NOT_ASKED))
    return half.name, subject_text(subject(spec)), reference, repr(_data(half.result)), settings


def _grouped(
    side: dict[int, tuple[Half, Parts]], key: tuple[int, ...], with_verdict: tuple[bool, ...]
) -> dict[Parts, list[int]]:
    groups: dict[Parts, list[int]] = {}
    for at, (half, parts) in side.items():
        value = tuple(parts[part] for part in key)
        if (half.result is not None) in with_verdict and None not in value:
            groups.setdefault(value, []).append(at)
    return groups


def noise(old: AuditResult, new: AuditResult) -> RunNoise:
    """What chance explains between two results of the same question."""
    error = error_probability(old.level)
    blank = RunNoise(error)
    if old.distance != new.distance:
        return replace(blank, why_not="the witnesses are of pairs at different distances")
    if not all(each.evidence.runs for each in (old, new)):
        return replace(blank, why_not="bets refuted the claim before any run was counted for a fixed bound")
    if old.claim.value is None and new.certificate.delta < old.certificate.delta:
        return replace(blank, why_not="the new bound holds at a smaller delta, where every epsilon is larger")
    every = (old.main, *old.others)
    before = [each for each in every if old.spec["pairs"][each.witness.pair]["distance"] == old.distance]
    limits = [loss_upper(each.evidence, each.claim, each.certificate.delta, error) for each in before]
    if any(limit is None for limit in limits):
        return replace(blank, why_not="the counts give no upper limit for a claim of this form")
    chance = RunNoise(error, max(limit for limit in limits if limit is not None))
    chance = replace(chance, new_upper=loss_upper(new.evidence, new.claim, new.certificate.delta, error))
    event = new.main
    near = [each for each in before if same_place(each, event)]
    share = max((overlap(each, event) for each in near), default=0.0)
    if share >= 1.0:
        return chance
    runs = searched(old, new.witness.pair)
    if not runs:
        return replace(chance, old_upper=None, why_not="the old search did not look at the pair of the new event")
    if isinstance(new.evidence, Binned) or any(isinstance(each.evidence, Binned) for each in before):
        return replace(chance, margin=math.inf, elsewhere="another place")
    luck, doubt = _missed(event, runs, error)
    if near:  # what both hold strays alike, and the event that was found was doubted too
        doubts = [_missed(each, runs, error)[1] for each in near]
        return replace(chance, margin=luck * math.sqrt(1.0 - share) + max(0.0, doubt - min(doubts)))
    another = all(each.witness.pair != new.witness.pair for each in before)
    return replace(chance, margin=luck + doubt, elsewhere="another pair" if another else "another place")


def loss_upper(evidence: Evidence, claim: Claim, delta: float, error: float) -> float | None:
    """The upper limit of what the counted event loses, in the claim's parameter, wrong with probability `error`.

    For a claim without a parameter of its own, an epsilon at `delta`. None for bins of a claim that has no orders.

    >>> from dpaudit.claims import PureDP
    >>> round(loss_upper(CoinFlip(900, 100, 1000, 1000), PureDP(1.0), 0.0, 0.05), 3)
    2.379
    """
    if isinstance(evidence, Binned):
        return _bins_upper(evidence, claim, error)
    if isinstance(evidence, CoinFlip) and _is_ratio(claim, delta):
        # of all hits, the share of side P is p / (p + q) for all p and q: one limit at the whole error
        share = lower_limit(evidence.hits_q, evidence.hits_p + evidence.hits_q, error)
        return math.inf if share <= 0.0 else max(0.0, math.log1p(-share) - math.log(share)) * (1.0 + SLACK)
    _, p, q, _ = _rates(evidence, error)
    return _loss(claim, delta, q, p)


def same_place(one: Finding, other: Finding) -> bool:
    """Whether two events are of the same place: pair, side, feature without its learned numbers, shared values."""
    if (one.witness.pair, one.witness.p_side) != (other.witness.pair, other.witness.p_side):
        return False
    first, second = one.witness.event.to_dict(), other.witness.event.to_dict()
    if _shape(first["feature"]) != _shape(second["feature"]):
        return False
    if "bins" in first or "bins" in second:
        return True  # the bins of a feature part all of its values
    tokens = [{(token["label"], token["code"]) for token in each["tokens"]} for each in (first, second)]
    spans = [[(float(low), float(high)) for low, high in each["intervals"]] for each in (first, second)]
    return bool(tokens[0] & tokens[1]) or any(_meet(one, other) for one in spans[0] for other in spans[1])


def overlap(one: Finding, other: Finding) -> float:
    """The share of the runs of two events that both hold, as far as their rates show: 0 at different places.

    Of one event inside the other it is the ratio of their rates, the lesser of both sides; 1 for bins, which hold all.
    """
    if not same_place(one, other):
        return 0.0
    first, second = one.evidence, other.evidence
    events = one.witness.event.to_dict(), other.witness.event.to_dict()
    if events[0] == events[1] or isinstance(first, Binned) or isinstance(second, Binned):
        return 1.0
    if events[0]["feature"] != events[1]["feature"]:
        return 0.0  # learned numbers differ: their rates do not show how many runs both hold
    pairs = zip(_observed(first), _observed(second), strict=True)
    return min(min(a, b) / max(a, b) if max(a, b) > 0.0 else 1.0 for a, b in pairs)


def searched(result: AuditResult, pair: int) -> int:
    """How many search runs an audit gave to a pair; 0 where it did not search it."""
    spec = result.spec
    if pair >= len(spec["pairs"]):
        return 0
    pairs = spec["certify_pairs"]
    if pair == result.witness.pair:
        screened = screening_share(len(spec["pairs"]), pairs)
        share = spec["search_share"] or 1.0  # open: as many as were run
        planned = int(share * (1.0 - screened) * spec["runs"])
        # fewer than planned where that is enough
        spent = result.runs_used - result.certifying_runs - int(screened * spec["runs"])
        return max(0, min(planned, spent)) // max(1, int(pairs))
    name = spec["pairs"][pair]["name"]
    return max((each.runs for each in result.explored if each.what == "pair" and each.name == name), default=0)


def _rates(evidence: Any, error: float) -> Limits:
    """Limits of both rates, each at half the error probability."""
    half = error / 2.0
    x, y, n, m = evidence.hits_p, evidence.hits_q, evidence.runs_p, evidence.runs_q
    return lower_limit(x, n, half), upper_limit(x, n, half), lower_limit(y, m, half), upper_limit(y, m, half)


def _loss(claim: Claim, delta: float, q: float, p: float) -> float:
    """The loss at rates (q, p), rounded up."""
    if p <= q:
        return 0.0
    if claim.value is not None:
        loss = float(claim.least_parameter(np.asarray(q), np.asarray(p)))
    elif p <= delta:
        loss = 0.0
    else:
        loss = math.inf if q <= 0.0 else math.log((p - delta) / q)
    return max(0.0, loss) * (1.0 + SLACK)


def _bins_upper(evidence: Binned, claim: Claim, error: float) -> float | None:
    """Every bin, and what no bin holds, at an equal share of the error probability, as bad as it may be."""
    rest_p, rest_q = evidence.runs_p - sum(evidence.counts_p), evidence.runs_q - sum(evidence.counts_q)
    cells = [*zip(evidence.counts_p, evidence.counts_q, strict=True), (rest_p, rest_q)]
    limits = [_rates(CoinFlip(x, y, evidence.runs_p, evidence.runs_q), error / len(cells)) for x, y in cells]
    orders = claim.orders(ORDERS)
    return max(0.0, *(claim.at_divergence(a, _divergence(limits, a)) for a in orders)) if orders else None


def _divergence(limits: list[Limits], order: float) -> float:
    logs = []
    for _, p, q, _ in limits:
        if q <= 0.0:
            return math.inf
        logs.append(order * math.log(p) + (1.0 - order) * math.log(q))
    top = max(logs)
    return max(0.0, top + math.log(math.fsum(math.exp(each - top) for each in logs))) / (order - 1.0)


def _missed(event: Finding, runs: int, error: float) -> tuple[float, float]:
    """What a search of this many runs may see less of an event's certified loss: by bad luck, and by doubt of its luck.

    The event was chosen on other runs than those of that search, so on these it is one fixed event: with probability
    1 - `error` they give it no fewer hits, and on the other side no more, than the limits of what the certified rates
    lead to. Of these the search believes a lower limit, wrong with probability `PRUDENCE`.
    """
    claim, delta, half = event.claim, event.certificate.delta, max(1, runs // 2)

    def lowered(rates: tuple[float, float], error: float) -> tuple[float, float]:
        hits = round(rates[0] * half), round(rates[1] * half)
        return _lowered(CoinFlip(*hits, half, half), claim, delta, error)

    unlucky = lowered(_lowered(event.evidence, claim, delta, error), error)
    seen, believed = (_loss(claim, delta, q, p) for p, q in (unlucky, lowered(unlucky, PRUDENCE)))
    return max(0.0, event.certificate.lower - seen), seen - believed


def _lowered(evidence: Any, claim: Claim, delta: float, error: float) -> tuple[float, float]:
    """The rates of P and of Q at which the counted event loses as little as the counts allow."""
    if not _is_ratio(claim, delta):
        p, _, _, q = _rates(evidence, error)
        return p, q
    share = lower_limit(evidence.hits_p, max(1, evidence.hits_p + evidence.hits_q), error)
    both = sum(_observed(evidence))
    return both * share, min(1.0, both * (1.0 - share))


def _is_ratio(claim: Claim, delta: float) -> bool:
    """Whether the loss of an event is the logarithm of the ratio of its rates."""
    return delta == 0.0 and claim.parameter == "epsilon" and not claim.orders()


def _observed(evidence: Any) -> tuple[float, float]:
    return evidence.hits_p / max(1, evidence.runs_p), evidence.hits_q / max(1, evidence.runs_q)


def _meet(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two intervals share more than an end, or one of them is a single value in the other."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return low < high or (low == high and (one[0] == one[1] or other[0] == other[1]))


def _shape(feature: Any) -> Any:
    """A stored feature without the numbers that every search learns again."""
    if isinstance(feature, dict):
        parts = {key: _shape(value) for key, value in feature.items() if key not in ("edges", "weights", "tokens")}
        return tuple(sorted((key, value) for key, value in parts.items() if value is not None))
    if isinstance(feature, list):
        return tuple(_shape(each) for each in feature)
    return None if isinstance(feature, float) else feature
