"""The whole question of an audit, frozen and hashed: what changes the answer stands here, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dpaudit import validate
from dpaudit.certify import suited
from dpaudit.certify.certificate import divided
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Description, Mechanism
from dpaudit.pairs import AdjacentPair, SealedPair
from dpaudit.results.question import spec_hash

Pair = AdjacentPair | SealedPair

SMALLEST_SHARD, LARGEST_SHARD, SHARDS = 256, 1 << 18, 64
SEARCH_SHARE = 0.25
LARGE_AUDIT, LEARNING_SHARE = 500_000, 0.1  # runs from which anytime audits learn with a smaller part
FEWEST_RUNS, FEWEST_RUNS_A_PAIR = 200, 40


STOPPING, SELECTORS = ("fixed", "anytime"), ("penalised",)
CERTIFIERS = ("coin-flip", "unconditional", "binned")


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
    def of(cls, given: Any) -> Detect | None:
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
    event. `run_timeout_s` (seconds) bounds one run.

    `stopping` "anytime" bets block by block and stops when the claim is refuted: `sequential_share` of the error
    probability is the e-process's, the rest is for the fixed bound on the runs that are left. `certifier` None
    becomes the one that suits the claim, before anything runs. `certify_pairs` witnesses are certified, each at an
    equal part of the error probability. `representation` adds the family of floating-point bits. `detect` is a
    power that the audit must have, `controls` how often each spiked control is repeated (0: none are run).

    Raises `InvalidSpec` naming the field that is wrong.
    """

    claim: Claim
    mechanism: Mechanism
    pairs: tuple[Pair, ...]
    runs: int = 1_000_000
    confidence: float = 0.999
    seed: int = 0
    name: str = ""
    stopping: Literal["fixed", "anytime"] = "fixed"
    selector: Literal["penalised"] = "penalised"
    certifier: Literal["coin-flip", "unconditional", "binned"] | None = None
    sequential_share: float = 0.2
    certify_pairs: int = 1
    representation: bool = False
    detect: Detect | None = None
    controls: int = 0
    search_share: float | None = None
    shard_runs: int | None = None
    run_timeout_s: float | None = None
    description: Description | None = field(default=None)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("pairs", tuple(self.pairs))
        put("runs", validate.whole("runs", self.runs, least=max(FEWEST_RUNS, FEWEST_RUNS_A_PAIR * len(self.pairs))))
        put("confidence", validate.open_probability("confidence", self.confidence))
        put("seed", validate.whole("seed", self.seed, least=0))
        if not self.pairs:
            raise InvalidSpec("an audit needs at least one pair of datasets, got none")
        put("certifier", self.certifier or suited(self.claim, self.stopping))
        validate.one_of("stopping", self.stopping, STOPPING)
        validate.one_of("selector", self.selector, SELECTORS)
        validate.one_of("certifier", self.certifier, CERTIFIERS)
        self._check_together()
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
        share = LEARNING_SHARE if self.stopping == "anytime" and self.runs >= LARGE_AUDIT else SEARCH_SHARE
        put("search_share", validate.open_probability("search_share", self.search_share or share))
        size = (
            self.runs // SHARDS if self.shard_runs is None else validate.whole("shard_runs", self.shard_runs, least=1)
        )
        if self.shard_runs is None:
            size = min(LARGEST_SHARD, max(SMALLEST_SHARD, 1 << max(0, size.bit_length() - 1)))
        put("shard_runs", size)
        put("detect", Detect.of(self.detect))
        if self.detect is not None and self.detect.parameter != self.claim.parameter:
            found, known = self.detect.parameter, self.claim.parameter
            raise InvalidSpec(f"detect: the parameter of {self.claim} is {known}, got {found!r}")
        self._check_reach()
        if self.description is None:
            put("description", self.mechanism.describe())
        if not self.name:
            put("name", self.mechanism.name)

    def _check_together(self) -> None:
        """Raises `InvalidSpec` for settings that contradict each other or the claim."""
        if self.certifier == "binned" and not hasattr(self.claim, "order") and not hasattr(self.claim, "rho"):
            raise InvalidSpec(f"certifier 'binned' is for RenyiDP and ZeroConcentratedDP, got the claim {self.claim}")
        if self.stopping == "anytime" and self.certifier == "binned":
            raise InvalidSpec("stopping 'anytime' bets on one event: give certifier 'unconditional', got 'binned'")
        if self.stopping == "anytime" and self.representation:
            raise InvalidSpec(
                "stopping 'anytime' does not look at bits: give representation = false, or stopping 'fixed'"
            )
        if self.stopping == "anytime" and self.certify_pairs > 1:
            raise InvalidSpec(f"stopping 'anytime' certifies one pair, got certify_pairs = {self.certify_pairs}")

    @property
    def level(self) -> float:
        """The confidence of one certificate: the spec's, its error probability divided by `certify_pairs`."""
        return divided(self.confidence, self.certify_pairs)

    def _check_reach(self) -> None:
        """Raises `InvalidSpec` where not even outputs that give the dataset away could refute the claim."""
        from dpaudit.results.certification import refutable

        claim = self.claim.at_distance(min(getattr(pair, "distance", 1) for pair in self.pairs))
        share = 1.0 - (self.search_share or 0.0)
        level = (
            self.level if self.stopping == "fixed" else divided(self.confidence, 1.0 / (1.0 - self.sequential_share))
        )

        def enough(runs: int) -> bool:
            half = int(runs * share / self.certify_pairs) // 2
            return refutable(half, half, claim, level, certifier=str(self.certifier))

        if enough(self.runs):
            return
        needed = next((self.runs << doubling for doubling in range(1, 40) if enough(self.runs << doubling)), None)
        cure = "no number of runs can" if needed is None else f"give at least {needed:,}, or a lower confidence"
        raise InvalidSpec(f"runs = {self.runs:,} can never refute {claim} at confidence {self.confidence:g}; {cure}")

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values, as results store and hash it."""
        assert self.description is not None
        return {
            "name": self.name,
            "claim": self.claim.to_dict(),
            "mechanism": self.description.to_dict(),
            "pairs": [pair.record() for pair in self.pairs],
            "runs": self.runs,
            "confidence": self.confidence,
            "seed": self.seed,
            "stopping": self.stopping,
            "selector": self.selector,
            "certifier": self.certifier,
            "sequential_share": self.sequential_share,
            "certify_pairs": self.certify_pairs,
            "representation": self.representation,
            "detect": None if self.detect is None else self.detect.to_dict(),
            "controls": self.controls,
            "search_share": self.search_share,
            "shard_runs": self.shard_runs,
            "run_timeout_s": self.run_timeout_s,
        }

    @property
    def hash(self) -> str:
        """A digest of the question (16 hex digits)."""
        return spec_hash(self.to_dict())
