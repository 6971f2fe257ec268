"""The whole question of an audit, frozen and hashed: what changes the answer stands here, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from dpaudit.base import validate
from dpaudit.base.strict import spec_hash
from dpaudit.certify import Certifier, certifier_named, suited
from dpaudit.certify.certificate import divided
from dpaudit.claims import Claim, HalfPlane
from dpaudit.claims.rounding import ratio
from dpaudit.data import AdjacentPair, SealedPair
from dpaudit.errors import InvalidSpec
from dpaudit.events import Partition
from dpaudit.mechanisms import Description, Mechanism
from dpaudit.results.certification import Witness, rest
from dpaudit.search.grouping import PartitionProposal
from dpaudit.search.look import SEARCH_SHARE
from dpaudit.search.selection import Proposal

Pair = AdjacentPair | SealedPair

SMALLEST_SHARD, LARGEST_SHARD, SHARDS = 256, 1 << 18, 64  # larger than the largest beyond 128 * SHARDS of them
CALLS, FEWEST_SHARDS = 8, 16  # of a fixed size that a shard should have, one in nine being thrown away then
LARGE_AUDIT, LEARNING_SHARE = 500_000, 0.1  # runs from which anytime audits learn with a smaller part
FEWEST_RUNS, FEWEST_RUNS_A_PAIR = 200, 40
MOST_RUNS = 10**15  # a million a second for thirty years; exact tails of more are slow
STOPPING = ("fixed", "anytime")
SELECTOR = "penalised"  # what proposes events: one way, whose name results keep
STORED = (  # in this order
    *("name", "claim", "mechanism", "pairs", "runs", "confidence", "seed", "stopping", "selector", "certifier"),
    *("sequential_share", "certify_pairs", "representation", "detect", "controls", "search_share", "shard_runs"),
    "run_timeout_s",
)


@dataclass(frozen=True, slots=True)
class Detect:
    """The power that an audit must have: a loss of `value` on an event of probability `mass`, caught with 0.95.

    `parameter` is the claim's own ("epsilon", "mu", ...), `mass` in (0, 1].

    >>> Detect.of({"epsilon": 1.2, "mass": 0.01})
    Detect(parameter='epsilon', value=1.2, mass=0.01)
    """

    parameter: str
    value: float
    mass: float

    @classmethod
    def of(cls, given: Any) -> "Detect | None":
        """From the form of a spec, `{epsilon = 1.2, mass = 0.01}`; None stays None. Raises `InvalidSpec`."""
        if given is None or isinstance(given, Detect):
            return given
        keys = [key for key in given if key != "mass"] if isinstance(given, Mapping) else []
        if len(keys) != 1 or "mass" not in given:
            raise InvalidSpec(f"detect must read {{epsilon = 1.2, mass = 0.01}}, got {given!r}")
        mass = validate.positive("detect.mass", given["mass"])
        if mass > 1.0:
            raise InvalidSpec(f"detect.mass must lie above 0 and be at most 1, got {mass:g}")
        return cls(str(keys[0]), validate.positive(f"detect.{keys[0]}", given[keys[0]]), mass)

    def to_dict(self) -> dict[str, float]:
        """As specs and results write it."""
        return {self.parameter: self.value, "mass": self.mass}


@dataclass(frozen=True, slots=True)
class AuditSpec:
    """What is asked: which claim of which mechanism, on which pairs, with how many runs and what confidence.

    `runs` caps all executions, both datasets, probing, search and certification together. `shard_runs` is the
    size of the parts that have a random stream each; `search_share` the part of the runs that looks for the
    event (None: as much as is worth the certifying runs it costs, of bets a quarter or less). `run_timeout_s`
    (seconds) bounds one run.

    `stopping` "anytime" bets block by block and stops when the claim is refuted: `sequential_share` of the error
    probability is the e-process's, the rest is for the fixed bound on the runs that are left. `certifier` None
    is the one that suits the claim. `certify_pairs` witnesses are certified, each at an
    equal part of the error probability. `representation` adds the family of floating-point bits. `detect` is a
    power that the audit must have, `controls` how often each spiked control is repeated (0: none are run).

    What is None, or an empty name, is filled in by `resolved`, before anything runs. Raises `InvalidSpec` naming the
    field that is wrong.
    """

    claim: Claim
    mechanism: Mechanism
    pairs: tuple[Pair, ...]
    runs: int = 1_000_000
    confidence: float = 0.999
    seed: int = 0
    name: str = ""
    stopping: Literal["fixed", "anytime"] = "fixed"
    certifier: str | Certifier | None = None
    sequential_share: float = 0.2
    certify_pairs: int = 1
    representation: bool = False
    detect: Detect | None = None
    controls: int = 0
    search_share: float | None = None
    shard_runs: int | None = None
    run_timeout_s: float | None = None
    description: Description | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("pairs", tuple(self.pairs))
        put("runs", validate.whole("runs", self.runs, least=max(FEWEST_RUNS, FEWEST_RUNS_A_PAIR * len(self.pairs))))
        if self.runs > MOST_RUNS:
            raise InvalidSpec(f"runs must be at most {MOST_RUNS:,}, got {self.runs:,}")
        put("confidence", validate.open_probability("confidence", self.confidence))
        put("seed", validate.whole("seed", self.seed, least=0))
        if not isinstance(self.name, str):
            raise InvalidSpec(f"name must be a text, got {self.name!r}")
        if not self.pairs:
            raise InvalidSpec("an audit needs at least one pair of datasets, got none")
        validate.one_of("stopping", self.stopping, STOPPING)
        put("sequential_share", validate.open_probability("sequential_share", self.sequential_share))
        put("certify_pairs", validate.whole("certify_pairs", self.certify_pairs, least=1))
        if not isinstance(self.representation, bool):
            raise InvalidSpec(f"representation must be True or False, got {self.representation!r}")
        put("controls", validate.whole("controls", self.controls, least=0))
        if self.certify_pairs > len(self.pairs):
            raise InvalidSpec(
                f"certify_pairs must be at most the number of pairs, {len(self.pairs)}, got {self.certify_pairs}"
            )
        if self.run_timeout_s is not None:
            put("run_timeout_s", validate.positive("run_timeout_s", self.run_timeout_s))
        if self.search_share:
            put("search_share", validate.open_probability("search_share", self.search_share))
        if self.shard_runs is not None:
            put("shard_runs", validate.whole("shard_runs", self.shard_runs, least=1))
        put("detect", Detect.of(self.detect))
        if self.detect is not None and self.detect.parameter != self.claim.parameter:
            wanted, known = self.detect.parameter, self.claim.parameter
            raise InvalidSpec(f"detect: the parameter of {self.claim} is {known}, got {wanted!r}")
        self.resolved()

    def resolved(self) -> "ResolvedSpec":
        """The same question with nothing left open."""
        anytime = self.stopping == "anytime"
        large = anytime and self.runs >= LARGE_AUDIT
        description = self.description or self.mechanism.describe()
        call = (
            description.parameters.get("size") if description.kind == "batched" else None
        )  # runs of each; not all count
        size = 1 << max(0, (self.runs // SHARDS).bit_length() - 1)
        size = max(size, min(CALLS * call, self.runs // FEWEST_SHARDS)) if isinstance(call, int) else size
        filled = {
            "certifier": certifier_named(self.certifier) if self.certifier else suited(self.claim, self.stopping),
            "search_share": self.search_share or (LEARNING_SHARE if large else SEARCH_SHARE if anytime else None),
            "shard_runs": self.shard_runs or min(max(LARGEST_SHARD, size // 128), max(SMALLEST_SHARD, size)),
            "description": description,
            "name": self.name or self.mechanism.name,
        }
        return ResolvedSpec(**{field.name: getattr(self, field.name) for field in fields(self)} | filled)

    @property
    def level(self) -> float:
        """The confidence of one certificate: the spec's, its error probability divided by `certify_pairs`."""
        return divided(self.confidence, self.certify_pairs)

    @property
    def fixed_level(self) -> float:
        """The confidence of a fixed bound: `level`, or what the bets of an anytime audit leave of the spec's."""
        return self.level if self.stopping == "fixed" else rest(self.confidence, self.sequential_share)

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values, as results store and hash it."""
        spec = self.resolved()
        mechanism = {
            "claim": spec.claim.to_dict(),
            "mechanism": spec.description.to_dict(),
            "pairs": [pair.record() for pair in spec.pairs],
            "selector": SELECTOR,
            "certifier": spec.certifier.name,
            "detect": None if spec.detect is None else spec.detect.to_dict(),
        }
        return {key: mechanism[key] if key in mechanism else getattr(spec, key) for key in STORED}

    @property
    def hash(self) -> str:
        """A digest of the question (16 hex digits)."""
        return spec_hash(self.to_dict())


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpec(AuditSpec):
    """A spec with everything filled in, which is what the stages take."""

    name: str
    certifier: Certifier
    shard_runs: int
    description: Description

    def __post_init__(self) -> None:
        AuditSpec.__post_init__(self)
        self._check_together()
        self._check_reach()

    def resolved(self) -> "ResolvedSpec":
        """Itself."""
        return self

    def claim_at(self, pair: int) -> Claim:
        """What the claim says of the datasets of a pair, which may be several steps apart."""
        return self.claim.at_distance(self.pairs[pair].distance)

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


def frozen(spec: ResolvedSpec, pair: int, best: Proposal | PartitionProposal, selector: str) -> Witness:
    """The witness of a pair; its `selector` says what proposed it, and of which family it is."""
    tangent = None if isinstance(best.event, Partition) else tangent_at(spec.claim_at(pair), best.delta)
    return Witness(pair, best.event, best.p_side, f"{selector}: {best.family}", round(best.score, 6), tangent)


def tangent_at(claim: Claim, delta: float) -> HalfPlane:
    """The half-plane through (0, delta) that the claim implies."""
    return HalfPlane(ratio(claim.epsilon_at(delta)), delta)
