"""The whole question of an audit, frozen and hashed: what changes the answer stands here, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from dpaudit import validate
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Description, Mechanism
from dpaudit.pairs import AdjacentPair, SealedPair

Pair = AdjacentPair | SealedPair

SMALLEST_SHARD, LARGEST_SHARD, SHARDS = 256, 1 << 18, 64
LARGE_AUDIT = 500_000  # runs from which a tenth of them finds the event; below it, a quarter does
FEWEST_RUNS, FEWEST_RUNS_A_PAIR = 200, 40


@dataclass(frozen=True, slots=True)
class AuditSpec:
    """What is asked: which claim of which mechanism, on which pairs, with how many runs and what confidence.

    `runs` caps all executions, both datasets, probing, search and certification together. `shard_runs` is the
    size of the parts that have a random stream each; `search_share` the part of the runs that looks for the
    event. `run_timeout_s` (seconds) bounds one run. Raises `InvalidSpec` naming the field that is wrong.
    """

    claim: Claim
    mechanism: Mechanism
    pairs: tuple[Pair, ...]
    runs: int = 1_000_000
    confidence: float = 0.999
    seed: int = 0
    name: str = ""
    stopping: Literal["fixed"] = "fixed"
    selector: Literal["penalised"] = "penalised"
    certifier: Literal["coin-flip"] = "coin-flip"
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
        for name, known in (("stopping", "fixed"), ("selector", "penalised"), ("certifier", "coin-flip")):
            if getattr(self, name) != known:
                raise InvalidSpec(f"{name} must be {known!r}, got {getattr(self, name)!r}")
        if self.run_timeout_s is not None:
            put("run_timeout_s", validate.positive("run_timeout_s", self.run_timeout_s))
        share = 0.1 if self.runs >= LARGE_AUDIT else 0.25
        put("search_share", validate.open_probability("search_share", self.search_share or share))
        size = (
            self.runs // SHARDS if self.shard_runs is None else validate.whole("shard_runs", self.shard_runs, least=1)
        )
        if self.shard_runs is None:
            size = min(LARGEST_SHARD, max(SMALLEST_SHARD, 1 << max(0, size.bit_length() - 1)))
        put("shard_runs", size)
        self._check_reach()
        if self.description is None:
            put("description", self.mechanism.describe())
        if not self.name:
            put("name", self.mechanism.name)

    def _check_reach(self) -> None:
        """Raises `InvalidSpec` where not even outputs that give the dataset away could refute the claim."""
        from dpaudit.certify import ceiling

        claim = self.claim.at_distance(min(getattr(pair, "distance", 1) for pair in self.pairs))
        epsilon = float(getattr(claim, claim.parameter))

        def enough(runs: int) -> bool:
            half = int(runs * (1.0 - (self.search_share or 0.0))) // 2
            return ceiling(half, half, claim.delta, self.confidence) > epsilon

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
            "search_share": self.search_share,
            "shard_runs": self.shard_runs,
            "run_timeout_s": self.run_timeout_s,
        }

    @property
    def hash(self) -> str:
        """A digest of the question (16 hex digits)."""
        return spec_hash(self.to_dict())


def spec_hash(spec: dict[str, Any]) -> str:
    """The digest of a spec in its stored form."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
