"""The whole question of an audit, frozen: what changes the answer; and its plan, which leaves nothing open."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from dpaudit.adapters.adapted import OwnClaim
from dpaudit.base import validate
from dpaudit.base.strict import spec_hash
from dpaudit.certify import Certifier, certifier_named, suited
from dpaudit.certify.certificate import divided
from dpaudit.claims import Claim, HalfPlane, Relation, claim_from_dict
from dpaudit.claims.rounding import ratio
from dpaudit.data import AdjacentPair, SealedPair
from dpaudit.data.patterns import Example
from dpaudit.errors import InvalidSpec
from dpaudit.events import Partition
from dpaudit.execution.journal import digests_of
from dpaudit.mechanisms import Description, Mechanism
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.options import OPTIONS, STORED, WHERE, Detect, Options
from dpaudit.results.bounds import UpperBound
from dpaudit.results.certification import Witness, rest
from dpaudit.search.grouping import PartitionProposal
from dpaudit.search.look import SEARCH_SHARE
from dpaudit.search.selection import Proposal

Pair = AdjacentPair | SealedPair

SMALLEST_SHARD, LARGEST_SHARD, SHARDS = 256, 1 << 18, 64  # larger where there were more than `MOST_SHARDS`
MANY_RUNS, RUN_BY_RUN, MOST_SHARDS = 10_000_000, 1 << 15, 1 << 14  # of more runs, which may take a millisecond each
CALLS, FEWEST_SHARDS = 8, 16  # of a fixed size that a shard should have, one in nine being thrown away then
LARGE_AUDIT, LEARNING_SHARE = 500_000, 0.1  # runs from which anytime audits learn with a smaller part
FEWEST_RUNS_A_PAIR = 40


@dataclass(frozen=True, slots=True)
class Question(Options):
    """What is asked: which claim of which mechanism, on which pairs, with which options.

    `dpaudit.options` says what each option means. `shard_runs` is the size of the parts that have a random stream each.

    A claim that only the mechanism knows, and pairs that a worker makes (`resolve`), are settled by the plan.
    `description` is what a door knows of the mechanism; None: it is described where mechanisms may run. `upper` is
    known from elsewhere, `record` what people filled in; `example` is the dataset that pairs were made of, in which
    recorded noise looks for worse ones, `assumed` the relation where none was stated. Raises `InvalidSpec` naming the
    option that is wrong.
    """

    claim: Claim | OwnClaim
    mechanism: Mechanism
    pairs: tuple[Any, ...]
    name: str = field(default="", kw_only=True)
    description: Description | None = field(default=None, kw_only=True)
    upper: UpperBound | None = field(default=None, kw_only=True)
    record: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    assumed: Relation | None = field(default=None, kw_only=True)
    example: Example | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))
        Options.__post_init__(self)
        if not isinstance(self.name, str):
            raise InvalidSpec(f"name must be a text, got {self.name!r}")
        if self.detect is not None and not isinstance(self.claim, OwnClaim):
            wanted, known = self.detect.parameter, self.claim.parameter
            if wanted != known:
                raise InvalidSpec(f"detect: the parameter of {self.claim} is {known}, got {wanted!r}")

    @property
    def where(self) -> dict[str, Any]:
        """Where it runs, as an `Engine` takes it."""
        return {name: getattr(self, name) for name in WHERE}

    @property
    def settle(self) -> Callable[..., Any] | None:
        """What finds claim and pairs where the mechanism may be opened; None where a door has found them."""
        return None

    def resolved(self) -> "Plan":
        """The plan of the question."""
        return plan(self)

    @property
    def level(self) -> float:
        """The confidence of one certificate: the question's, its error probability divided by `certify_pairs`."""
        return divided(self.confidence, self.certify_pairs)

    @property
    def fixed_level(self) -> float:
        """The confidence of a fixed bound: `level`, or what the bets of an anytime audit leave of the question's."""
        return self.level if self.stopping == "fixed" else rest(self.confidence, self.sequential_share)

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values, as results store and hash it."""
        asked = self.resolved()
        own = {
            "name": asked.name,
            "claim": asked.claim.to_dict(),
            "mechanism": asked.description.to_dict(),
            "pairs": [pair.record() for pair in asked.pairs],
        }
        return own | {
            name: _plain(getattr(asked, name))
            for name, each in STORED.items()
            if each.stored and not (each.stored.when_set and getattr(asked, name) == each.default)
        }

    @property
    def hash(self) -> str:
        """A digest of the question (16 hex digits)."""
        return spec_hash(self.to_dict())

    def identity(self) -> dict[str, Any]:
        """What decides the answer, beside the mechanism, as it is known before anything is opened: for journals."""
        answering = {name: getattr(self, name) for name, each in OPTIONS.items() if each.answers}
        pairs = [digests_of(pair) if hasattr(pair, "record") else _fields(pair) for pair in self.pairs]
        return {"name": self.name, "claim": self.claim.to_dict(), **answering, "pairs": pairs}


@dataclass(frozen=True, slots=True)
class Plan(Question):
    """A question with nothing left open, which is what the stages take; `plan` makes it."""

    claim: Claim
    pairs: tuple[Pair, ...]
    runs: int = field(kw_only=True)
    certifier: Certifier = field(kw_only=True)
    shard_runs: int = field(kw_only=True)
    description: Description = field(kw_only=True)
    leading: int = field(default=-1, kw_only=True)  # the pair that recorded noise suspects; -1: none

    def __post_init__(self) -> None:
        Question.__post_init__(self)
        if not self.pairs:
            raise InvalidSpec("an audit needs at least one pair of datasets, got none")
        validate.whole("runs", self.runs, least=FEWEST_RUNS_A_PAIR * len(self.pairs))
        if self.certify_pairs > len(self.pairs):
            raise InvalidSpec(
                f"certify_pairs must be at most the number of pairs, {len(self.pairs)}, got {self.certify_pairs}"
            )
        if self.user is not None and self.claim.relation is not Relation.ADD_OR_REMOVE_USER:
            raise InvalidSpec(f"user = {self.user!r} is for relation 'add_or_remove_user': state that relation")
        self._check_together()
        self._check_reach()

    def resolved(self) -> "Plan":
        """Itself."""
        return self

    def claim_at(self, pair: int) -> Claim:
        """What the claim says of the datasets of a pair, which may be several steps apart."""
        return self.claim.at_distance(self.pairs[pair].distance)

    @property
    def least_shard(self) -> int:
        """Runs of a shard of which a call has a fixed size, as some calls make them; 0 of others."""
        return min(self.shard_runs, CALLS * _call(self.description))

    def _check_together(self) -> None:
        """Raises `InvalidSpec` for settings that contradict each other or the claim."""
        name, single = self.certifier.name, self.certifier.single
        if not self.certifier.fits(self.claim):
            raise InvalidSpec(f"certifier {name!r} is for {self.certifier.forms}, got the claim {self.claim}")
        if self.stopping == "fixed":
            return
        if single is not self.certifier:
            raise InvalidSpec(f"stopping 'anytime' bets on one event: give certifier {single.name!r}, got {name!r}")
        if self.representation:
            raise InvalidSpec(
                "stopping 'anytime' does not look at bits: give representation = false, or stopping 'fixed'"
            )
        if self.certify_pairs > 1:
            raise InvalidSpec(f"stopping 'anytime' certifies one pair, got certify_pairs = {self.certify_pairs}")

    def _check_reach(self) -> None:
        """Raises `InvalidSpec` where not even outputs that give the dataset away could refute the claim."""
        claim = self.claim.at_distance(min(pair.distance for pair in self.pairs))

        def enough(runs: int) -> bool:
            half = int(runs * (1.0 - (self.search_share or SEARCH_SHARE)) / self.certify_pairs) // 2
            return self.certifier.at(claim).refutable(half, half, claim, self.fixed_level)

        if enough(self.runs):
            return
        needed = next((self.runs << doubling for doubling in range(1, 40) if enough(self.runs << doubling)), None)
        cure = "no number of runs can" if needed is None else f"give at least {needed:,}, or a lower confidence"
        text = f"runs = {self.runs:,} can never refute {claim} at confidence {self.confidence:g}; {cure}"
        raise InvalidSpec(f"{text}; dpaudit.look(...), or dpaudit plan --look, tells what they see, without a verdict")


def plan(
    question: Question,
    description: Description | None = None,
    pairs: tuple[Pair, ...] | None = None,
    runs: int | None = None,
) -> Plan:
    """What is settled before anything runs: claim, pairs, runs, certifier, shares and the size of shards.

    `description` is of the mechanism with the claim that it settles, `pairs` are the resolved ones, and `runs` those
    that a probe chose; what is None is the question's own. Raises `InvalidSpec` naming what is wrong.
    """
    described = description or question.description or question.mechanism.describe()
    planned: int = runs or question.runs or OPTIONS["runs"].default
    claim: Any = question.claim if described.claim is None else claim_from_dict(described.claim)
    anytime = question.stopping == "anytime"
    large = anytime and planned >= LARGE_AUDIT
    size = 1 << max(0, (planned // SHARDS).bit_length() - 1)
    size = max(size, min(CALLS * _call(described), planned // FEWEST_SHARDS))
    most = RUN_BY_RUN if planned > MANY_RUNS and described.kind.startswith(("per-run", ADAPTED)) else LARGEST_SHARD
    most = max(most, most // 8 * -(-8 * planned // (MOST_SHARDS * most)))
    filled = {
        "claim": claim,
        "pairs": question.pairs if pairs is None else pairs,
        "runs": planned,
        "certifier": certifier_named(question.certifier or suited(claim, question.stopping)),
        "search_share": question.search_share or (LEARNING_SHARE if large else SEARCH_SHARE if anytime else None),
        "shard_runs": question.shard_runs or min(most, max(SMALLEST_SHARD, size)),
        "description": described,
        "name": question.name or question.mechanism.name,
    }
    return Plan(**{each.name: getattr(question, each.name) for each in fields(Question)} | filled)


def _call(description: Description) -> int:
    """The size of every call of a batched mechanism, of whose runs not all count; 0 where it is free."""
    call = description.parameters.get("size") if description.kind == "batched" else None
    return call if isinstance(call, int) else 0


def _plain(value: Any) -> Any:
    """A value of an option as results store it."""
    return value.name if isinstance(value, Certifier) else value.to_dict() if isinstance(value, Detect) else value


def _fields(value: Any) -> dict[str, Any]:
    """What a pair that is still to be made is known by: all but the folder where it is."""
    known = fields(value) if is_dataclass(value) else ()
    return {each.name: getattr(value, each.name) for each in known if each.name != "folder"}


def frozen(spec: Plan, pair: int, best: Proposal | PartitionProposal, selector: str) -> Witness:
    """The witness of a pair; its `selector` says what proposed it, and of which family it is."""
    tangent = None if isinstance(best.event, Partition) else tangent_at(spec.claim_at(pair), best.delta)
    return Witness(pair, best.event, best.p_side, f"{selector}: {best.family}", round(best.score, 6), tangent)


def tangent_at(claim: Claim, delta: float) -> HalfPlane:
    """The half-plane through (0, delta) that the claim implies."""
    return HalfPlane(ratio(claim.epsilon_at(delta)), delta)
