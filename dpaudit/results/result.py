"""The result of an audit, stored as JSON and checkable from its integers for as long as it is kept.

Contract: everything but `provenance` is a function of spec and seed (for a mechanism that draws only from the
rng it is given); `provenance` holds all that may differ between two equal audits. A verdict is derived. The fingerprint
of a finding is the same in two results that found the same.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self, cast

from dpaudit.base.arrays import Bools
from dpaudit.base.files import write_text
from dpaudit.base.presenter import presented
from dpaudit.base.strict import JsonObject, Written, by_fields, content_digest, spec_hash, stored, text_of
from dpaudit.base.validate import AtLeastOne, NotNegative
from dpaudit.certify import Binned, Certificate, certifier_named, smallest_caught
from dpaudit.certify.certificate import divided, holm
from dpaudit.certify.cross_check import two_interval_epsilon
from dpaudit.certify.sequential import Block, Milestones
from dpaudit.claims import Claim, GaussianDP
from dpaudit.errors import ClaimRefuted, MissingRequirement
from dpaudit.mechanisms.importing import is_own
from dpaudit.results.bounds import Bracket, LowerBound, UpperBound
from dpaudit.results.certification import AuditEvidence, Witness, anytime_certificate, ceiling_of, certificate_of, rest
from dpaudit.results.display import Displayed, Verdict
from dpaudit.results.observations import Control, Diagnosis, Ending, Explanation, Explored, Health, Histogram, Typical
from dpaudit.results.recorded import NoiseRecord

SCHEMA: Final = "dpaudit.result/1"
MODEL_DELTA = 1e-5
POWER = 0.95  # of the smallest loss that an audit is said to catch
CROSS_CHECK = "two-interval Clopper-Pearson"
TRUSTED = ("answers", "neutral", "one value")  # the datasets are neighbours if they are that
Adjacency = Annotated[  # what shows that two datasets are neighbours
    str,
    (
        "pattern",
        r"^(records|rows|entries|any two|answers|neutral|one value|users"
        r"|\d+ (records|rows|entries|users) leave and \d+ come)$",
    ),
]


@dataclass(frozen=True, slots=True)
class Finding(Written):
    """A further witness with its counts and certificate.

    The counts are those of its fresh runs, the certificate is of the claim at the witness's distance.
    """

    claim: Claim
    witness: Witness
    evidence: AuditEvidence
    certificate: Certificate
    _KEYS: ClassVar = ("witness", "evidence", "certificate")  # of its stored form

    @property
    def sides(self) -> dict[str, tuple[Any, int]]:
        """Hits of the event (of a partition: counts bin by bin) and runs, of the first dataset and of the second."""
        e, side = self.evidence, self.witness.p_side
        hits = (e.counts_p, e.counts_q) if isinstance(e, Binned) else (e.hits_p, e.hits_q)
        return dict(sorted({side: (hits[0], e.runs_p), self.witness.q_side: (hits[1], e.runs_q)}.items()))


@dataclass(frozen=True, slots=True)
class Units:
    """The second bound of a refutation whose runs may share noise, by calls or processes.

    `again` has for each finding that refutes the counts of one run in each of many calls, or fresh processes; empty
    where there were none. `processes` is how many made the certifying runs; 0 where the unit is the call.
    """

    processes: int
    again: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Illustration:
    """What is there to look at and never evidence: outputs of search runs, and counts on their way.

    `trail` holds the counts after growing parts of the certifying runs; only the last, of all, is certified. `endings`
    is empty where all search runs gave a value, and `typical` holds outputs where a claim is refuted.
    """

    histogram: Histogram | None = None
    trail: tuple[AuditEvidence, ...] = ()
    endings: tuple[Ending, ...] = ()
    typical: Typical | None = None


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Displayed):
    """What was asked, what was found, and the arithmetic between them; the reference has its attributes in groups.

    `witness` with `evidence` and `certificate` is the finding that decides. `others` are further ones, each at the same
    part of the error probability: the least p-value stands first. `plain` is the best event that people can read, on
    the same runs; `representation` the finding on floating-point bits, with a level of its own; `units` the second
    bound of a refutation whose runs may share noise, else None. `upper` is known from elsewhere and changes nothing.

    `adjacency` says for each pair what shows that its datasets are neighbours, or how they differ where that is more
    than stated; None: taken on trust. `unseen` entries of an output were not looked at, and `unpaired` ones never
    together with others, the most of any output; `unread` names parts in which no event was looked for, or is empty.
    `ceiling` is the bound that all hits on one side would have given. `blocks` are those of an anytime audit,
    `milestones` of one with `max_time_s`. `illustration` is only to look at. `recorded` is what recorded noise told
    before the audit, with `leads`: the records that have a lead, the worst first, or one. It decides no verdict.
    """

    spec: JsonObject
    claim: Claim
    witness: Witness
    evidence: AuditEvidence
    certificate: Certificate
    runs_used: AtLeastOne
    explored: tuple[Explored, ...]
    ceiling: NotNegative
    reproducible: bool
    health: Health
    blocks: tuple[Block, ...] = ()
    others: tuple[Finding, ...] = ()
    representation: Finding | None = None
    controls: tuple[Control, ...] = ()
    upper: UpperBound | None = None
    adjacency: tuple[Adjacency | None, ...] = ()
    unseen: int = 0
    unpaired: int = 0
    unread: str = ""
    milestones: Milestones | None = None
    plain: Finding | None = None
    units: Units | None = None
    illustration: Illustration = Illustration()
    recorded: tuple[NoiseRecord, ...] = ()
    provenance: JsonObject = field(default_factory=dict)

    schema: ClassVar[Literal["dpaudit.result/1"]] = SCHEMA
    _KEYS: ClassVar = (  # of its stored form, in their order
        *("schema", "spec", "verdict", "witness", "evidence", "certificate", "cross_check", "others", "blocks"),
        *("representation", "health", "controls", "model_based", "runs_used", "explored", "ceiling", "upper"),
        *("histogram", "trail", "reproducible", "adjacency", "unseen", "unpaired", "unread", "endings", "milestones"),
        *("typical", "plain", "units", "diagnosis", "recorded", "provenance"),
    )
    _PARTS: ClassVar = ("illustration",)
    _LATER: ClassVar = (  # keys that older files lack
        *("histogram", "trail", "adjacency", "unseen", "unpaired", "unread", "endings", "milestones", "typical"),
        *("plain", "units", "diagnosis", "recorded"),
    )
    # left out where empty
    _SPARSE: ClassVar = ("unread", "milestones", "typical", "plain", "units", "diagnosis", "recorded")

    @property
    def main(self) -> Finding:
        """The finding that decides: the witness with its counts and certificate."""
        return Finding(self.claim, self.witness, self.evidence, self.certificate)

    @property
    def certifying_runs(self) -> int:
        """The runs of all certified witnesses, those of bets apart."""
        return sum(each.evidence.runs for each in (self.main, *self.others))

    @property
    def pair(self) -> JsonObject:
        """The pair of the witness, in its stored form."""
        return dict(self.spec["pairs"][self.witness.pair])

    @property
    def name(self) -> str:
        """The name of the audit."""
        return str(self.spec["name"])

    @property
    def verdict(self) -> Verdict:
        """REFUTED where the p-value is at most 1 - confidence, otherwise NOT_REFUTED."""
        return Verdict.REFUTED if self.refuted else Verdict.NOT_REFUTED

    @property
    def refuted(self) -> bool:
        """Whether the verdict is REFUTED; what the bits of floats say is `representation_refuted`."""
        return self.certificate.refuted

    @property
    def condition(self) -> str:
        """What a refutation supposes: `if the runs of a call are independent`; nothing where it stands without that."""
        units, refuted = self.units, self.refuted or self.representation_refuted
        if units is None or not refuted or (units.again and all(each.certificate.refuted for each in units.again)):
            return ""
        if not units.processes:
            return "if the runs of a call are independent"
        return f"if the runs of a process are independent ({units.processes} used)"

    @property
    def p_value(self) -> float:
        """At most this is the probability of such counts where the claim holds."""
        return self.certificate.p_value

    @property
    def epsilon_lower(self) -> float | None:
        """The certified lower bound on the true epsilon of the pair, at `certificate.delta`; None for a Rényi bound."""
        return self.certificate.epsilon_lower

    @property
    def mu_lower(self) -> float | None:
        """The certified lower bound on mu, of the pair's datasets as they are; None for other claims."""
        return self.certificate.lower if self.claim.parameter == "mu" else None

    @property
    def rho_lower(self) -> float | None:
        """The certified lower bound on rho, of the pair's datasets as they are; None for other claims."""
        return self.certificate.lower if self.claim.parameter == "rho" else None

    @property
    def on_trust(self) -> bool:
        """Whether something has to be believed for the datasets of the witness to count as neighbours."""
        return self.further_apart != "" or self.shown in (None, *TRUSTED)

    @property
    def shown(self) -> str | None:
        """What shows that the datasets of the witness count as neighbours; None where nothing does."""
        return next(iter(self.adjacency[self.witness.pair :]), None)

    @property
    def further_apart(self) -> str:
        """How the datasets of the witness differ, if by more than is stated: `2 rows leave and 0 come`; else empty."""
        return self.shown if self.shown and self.shown.endswith(" come") else ""

    @property
    def power_reached(self) -> bool | None:
        """Whether the audit had the power that `detect` demands; None where it demands none, or bets refuted before."""
        return reached(self, self.least_found)

    @property
    def led(self) -> bool:
        """Whether recorded noise left a lead that the counts have not borne out: a suspicion, and no verdict."""
        return not self.refuted and any(each.leads for each in self.recorded)

    @property
    def exit_code(self) -> int:
        """The code apart from the verdict: 1 for a lead where `leads` is "fail", 4 for too little power, else 0."""
        if self.led and self.spec.get("leads") == "fail":
            return 1
        return 4 if self.power_reached is False else 0

    def least_caught(self, mass: float, *, delta: float | None = None, searching: int | None = None) -> float | None:
        """The same as `least_found` where one knows beforehand which outputs show the loss.

        `delta` is the one frozen with the event; None: the one that search would freeze for it. `searching` counts in
        a search of so many runs.
        """
        certifier = certifier_named(self.certifier).of(self.evidence)
        how: Any = {"confidence": self.level, "certifier": certifier, "delta": delta, "searching": searching}
        return smallest_caught(self.claim, self.evidence.runs, mass, power=POWER, **how)

    def least_found(self, mass: float) -> float | None:
        """The smallest loss that this audit catches, 19 times in 20, if it shows in a part `mass` of the runs.

        The loss is a parameter of the claim's form that one value, or one end of a range, shows; the search for it is
        counted in. None: nothing is caught.
        """
        return self.least_caught(mass, searching=self.searching_runs or None)

    @property
    def searching_runs(self) -> int:
        """The runs that looked for one witness: of each pair that was kept, what the dropped ones took left out."""
        bets = sum(block.evidence.runs for block in self.blocks)
        dropped = sum(each.runs for each in self.explored if each.what == "pair" and each.status != "kept")
        left = self.runs_used - self.certifying_runs - bets - dropped
        return max(0, left) // int(self.spec["certify_pairs"])

    @property
    def certifier(self) -> str:
        """The certifier that the spec named, or that the form of the claim chose, before the runs."""
        return str(self.spec["certifier"])

    @property
    def level(self) -> float:
        """The confidence of the fixed bound: what `certify_pairs`, or bets, and earlier milestones leave of it."""
        anytime = self.spec["stopping"] == "anytime"
        whole = rest(self.spec["confidence"], self.spec["sequential_share"]) if anytime else self.certificate.confidence
        return divided(whole, 1.0 / part_of(self, self.evidence))

    @property
    def holm(self) -> tuple[float, ...]:
        """The Holm-adjusted p-values of the certified witnesses, `witness` first, then `others`."""
        return holm([self.certificate.p_value, *(finding.certificate.p_value for finding in self.others)])

    @property
    def distance(self) -> int:
        """How many steps apart the datasets of the witness's pair are."""
        return int(self.pair["distance"])

    @property
    def cut_short(self) -> bool:
        """Whether a clock watched over it: a repetition without it draws other parts of the runs, and other counts."""
        return self.milestones is not None or any(entry.what == "time" for entry in self.explored)

    @property
    def bracket(self) -> Bracket | None:
        """The certified bound beside `upper`; None where no upper bound holds for the pair of the witness."""
        if self.upper is None or (self.distance > 1 and self.upper.holds_for_all_inputs):
            return None
        # `claim` is what the claim implies at the distance of the pair
        return Bracket(self.name, self.claim, self.lower_bound, (self.upper,))

    @property
    def lower_bound(self) -> LowerBound | None:
        """What the certificate says of epsilon at its delta, or of the claim's own parameter; None where of neither."""
        certificate, parameter = self.certificate, self.claim.parameter
        own = certificate.lower if certificate.epsilon_lower is None or parameter != "epsilon" else None
        if certificate.epsilon_lower is None and own is None:
            return None
        pair, confidence = f'the pair "{self.pair["name"]}"', float(self.spec["confidence"])
        known = (certificate.epsilon_lower or 0.0, certificate.delta or 0.0, confidence, pair, certificate.method)
        return LowerBound(*known, certificate.refuted, parameter, own)

    @property
    def representation_refuted(self) -> bool:
        """Whether the bits of floating-point outputs refute the claim: a finding of its own, apart from `verdict`."""
        return self.representation is not None and self.representation.certificate.refuted

    @property
    def model_based(self) -> JsonObject | None:
        """What a GaussianDP bound would mean for epsilon at delta 1e-5 under a model: never a bound, never decisive."""
        if self.mu_lower is None or not self.mu_lower > 0.0:
            return None
        epsilon = GaussianDP(self.mu_lower).epsilon_at(MODEL_DELTA)
        return {"model": "the two output distributions are Gaussian", "delta": MODEL_DELTA, "epsilon": epsilon}

    @property
    def stopped_early(self) -> bool:
        """Whether an anytime audit refuted the claim before its runs were spent."""
        return self.spec["stopping"] == "anytime" and self.evidence.runs == 0

    @property
    def cross_check(self) -> float | None:
        """The looser bound of two intervals, by statsmodels; None for a Rényi bound, or where it does not load."""
        found = crossed(self)
        return found if isinstance(found, float) else None

    def to_dict(self) -> JsonObject:
        """The result as plain values in the schema `dpaudit.result/1`; infinity is the string "inf".

        The digest of it all stands in its provenance, which nobody then changes by mistake.
        """
        check = None if (found := self.cross_check) is None else {"method": CROSS_CHECK, "epsilon_lower": stored(found)}
        whole = by_fields(self, spec={**self.spec, "hash": spec_hash(self.spec)}, cross_check=check)
        return {**whole, "provenance": {**whole["provenance"], "digest": content_digest(whole)}}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the result as JSON, whole or not at all, and returns the path."""
        return write_text(path, self.to_json())

    def to_json(self) -> str:
        """The result as JSON text, ASCII only, so that no hidden character stands in it."""
        return text_of(self.to_dict())

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What kind of mistake a refutation fits, where to look, what usually mends it; None where no kind fits."""
        return cast(Diagnosis | None, presented().diagnosis(self))

    def contains(self, outputs: Any) -> Bools:
        """Which outputs are in the event of the witness: `Witness.contains`."""
        return self.witness.contains(outputs)

    def explain(self) -> Explanation:
        """The whole account when printed; of a refutation with up to eight typical outputs of either dataset."""
        return cast(Explanation, presented().explanation(self))

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self), presented().beyond(self))
        return self


LEAST_SHARE, LARGEST_SHARE = 0.15, 0.6
A_PAIR = 0.01  # what it costs to screen a pair, in units of what it costs to certify one


def screening_share(pairs: int, keep: int = 1) -> float:
    """The part of all runs that compares pairs: none where all are kept, then 0.15 to 0.6.

    It grows as K / (K + 100) with the number K of pairs. Screening a pair well enough takes some hundreds of runs,
    and certifying a loss slightly above the claim some ten thousands: the two are in proportion to that.

    >>> [screening_share(pairs) for pairs in (1, 2, 25, 100, 1000)]
    [0.0, 0.15, 0.2, 0.5, 0.6]
    """
    if pairs <= keep:
        return 0.0
    return min(LARGEST_SHARE, max(LEAST_SHARE, A_PAIR * pairs / (A_PAIR * pairs + 1.0)))


AGAIN = "dpaudit.recheck(result, mechanism, fresh=True)  # of the result with seed {}, whose witness this is"
ALONE_WORDS = "called for one run at a time"
ALONE = {"stopping": "fixed", "certify_pairs": 1, "representation": False, "detect": None, "controls": 0}


def recompute(result: AuditResult) -> Certificate:
    """The certificate again, from the counts (and the blocks), the claim and the confidence of a result alone."""
    spec, certifier = result.spec, certifier_named(result.certifier)
    if spec["stopping"] == "anytime":
        share, confidence, part = spec["sequential_share"], spec["confidence"], part_of(result, result.evidence)
        counted = result.blocks, result.witness, result.evidence, result.claim
        return anytime_certificate(*counted, confidence, certifier, share=share, part=part)
    return recompute_finding(result, result.main, spec["certify_pairs"])


def recompute_finding(result: AuditResult, finding: Finding, witnesses: int) -> Certificate:
    """The certificate, computed again, of one of `witnesses` that share the confidence; that on bits is alone."""
    level = divided(result.spec["confidence"], witnesses)
    certifier, part = certifier_named(result.certifier), part_of(result, finding.evidence)
    return certificate_of(finding.witness, finding.evidence, finding.claim, level, certifier, part=part)


def part_of(result: AuditResult, evidence: AuditEvidence) -> float:
    """The part of the error probability that these counts have: that of their milestone, or all of it."""
    return 1.0 if result.milestones is None else result.milestones.part(evidence.runs)


def crossed(result: AuditResult) -> float | str | None:
    """The cross-check, or in words why it could not be made; None where there is none."""
    if isinstance(result.evidence, Binned):
        return None
    level = divided(result.certificate.confidence, 1.0 / part_of(result, result.evidence))
    try:
        return two_interval_epsilon(result.evidence, result.certificate.delta, level)
    except MissingRequirement as error:
        return str(error)


def reached(result: AuditResult, least_of: Callable[[float], float | None]) -> bool | None:
    """Whether the power that the spec demands is reached, where `least_of` a probability is what an audit catches."""
    if result.spec["detect"] is None or result.stopped_early:
        return None
    wanted = dict(result.spec["detect"])
    least = least_of(wanted.pop("mass"))
    return least is not None and bool(least <= next(iter(wanted.values())))


def went_alone(result: AuditResult) -> bool:
    """Whether the audit gave a batched mechanism a call for each run, because a call for many had raised."""
    return any(entry.status.startswith(ALONE_WORDS) for entry in result.explored)


def repeated(result: AuditResult, evidence: AuditEvidence, health: Health, *, seed: int) -> AuditResult:
    """The result that the same witness has on fresh runs: a fixed audit of that witness alone, at the confidence."""
    spec = {**result.spec, **ALONE, "seed": seed}
    confidence, certifier = spec["confidence"], certifier_named(result.certifier)
    kind, ours = spec["mechanism"]["kind"], is_own(spec["mechanism"]["reference"] or "")
    # no second bound was made of what was not refuted
    unlooked = Units(0) if kind in ("batched", "command") and not (ours or result.refuted) else None
    return replace(
        result,
        spec=spec,
        evidence=evidence,
        certificate=certificate_of(result.witness, evidence, result.claim, confidence, certifier),
        ceiling=ceiling_of(result.witness, evidence, result.claim, confidence, certifier),
        runs_used=evidence.runs,
        illustration=replace(result.illustration, trail=()),
        health=health,
        blocks=(),
        others=(),
        representation=None,
        plain=None,
        recorded=(),
        units=result.units or unlooked,
        controls=(),
        milestones=None,
        provenance={**result.provenance, "command": AGAIN.format(result.spec["seed"])},
    )


FAILURES = ("raised ", "timed out", "nan", "None", "absent")
BITS = ("lowest-bit", "first-bit", "trailing-zeros", "part", "on-grid", "bit-score")


def fingerprint(result: AuditResult, *, representation: bool = False) -> str:
    """The fingerprint of a result's finding: 16 hex digits. With `representation`, that of the finding on bits.

    Mechanism, claim, class of pair and class of event, and no digits: neither runs nor seed, confidence, threshold or
    dataset stand in it, so that a finding keeps its fingerprint from run to run.
    """
    return content_digest(identity(result, representation=representation))[:16]


def identity(result: AuditResult, *, representation: bool = False) -> JsonObject:
    """What the fingerprint is made of."""
    finding = result.representation if representation else None
    witness = result.witness if finding is None else finding.witness
    # how the datasets differ: the relation of the claim and the distance, not the data
    apart = {"relation": result.spec["claim"]["relation"], "distance": result.spec["pairs"][witness.pair]["distance"]}
    parts = {"subject": subject(result.spec), "pair": apart, "event": event_class(witness)}
    mechanism = result.spec["mechanism"]
    if mechanism["reference"] is None and not mechanism["parameters"]:
        parts["audit"] = result.name  # closures of one name may be anything: only the audit tells them apart
    return parts


def subject(spec: JsonObject) -> JsonObject:
    """Mechanism and claim: what a history follows through the versions of its source."""
    mechanism = spec["mechanism"]
    return {
        "mechanism": mechanism["reference"] or mechanism["name"],
        "parameters": mechanism["parameters"],
        "claim": spec["claim"],
    }


def event_class(witness: Witness) -> str:
    """The family of an event: "representation" (bits of floats), "failure" (exceptions, None, NaN) or "calibration"."""
    stored = witness.event.to_dict()
    if stored["feature"]["kind"] in BITS:
        return "representation"
    parts = stored.get("bins", [stored])
    labels = [token["label"] for part in parts for token in part["tokens"]]
    numbers = any(part["intervals"] for part in parts)
    failures = bool(labels) and all(label.startswith(FAILURES) for label in labels)
    return "failure" if failures and not numbers else "calibration"
