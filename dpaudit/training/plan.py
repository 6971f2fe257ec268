"""The whole question of an audit of training, checked before anything is trained; what a call of `train` is."""

from dataclasses import dataclass, replace
from typing import Any, Self

from dpaudit.base import validate
from dpaudit.base.strict import by_fields, content_digest
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Description
from dpaudit.scores.audit import stated_claim
from dpaudit.scores.question import curved

LEAST_MANY = 50  # trainings of one canary: with fewer, one side may have none to compare
CALL = 1_000  # trainings of one canary that one call makes, and one file keeps
USUAL_DELTA = 1e-5  # at which the epsilon of a claim without a delta of its own is told
ONE, FEW, STEPS, MANY = "one", "few", "steps", "many"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What is asked: `claim` of the run, or of one of `steps` steps; `delta` is where epsilon is told.

    A call is one training, or up to `CALL` of them where each has one canary alone. `tossed` is the digest of the
    training for which the seed tosses coins: another version of it gets others (`of`).
    """

    claim: Claim
    delta: float
    canaries: int
    trainings: int
    steps: int | None
    compose: int | None
    confidence: float
    seed: int
    sample_rate: float = 1.0
    exact: bool = False
    underpowered: bool = False
    tossed: str = ""

    def __post_init__(self) -> None:
        if self.steps is None and (self.compose is not None or self.sample_rate != 1.0):
            raise InvalidSpec("compose and sample_rate are for an audit of one step: give steps=..., or leave them out")
        for name, least in (("canaries", 1), ("trainings", 1), ("steps", 1), ("compose", 1), ("seed", 0)):
            if (value := getattr(self, name)) is not None or name not in ("steps", "compose"):
                object.__setattr__(self, name, validate.whole(name, value, least=least))
        object.__setattr__(self, "compose", self.compose or self.steps)
        if self.design == MANY:
            validate.whole("trainings of one canary each", self.trainings, least=LEAST_MANY)
        validate.open_probability("confidence", self.confidence)
        validate.probability("delta", self.delta)
        validate.positive("sample_rate", validate.probability("sample_rate", self.sample_rate))

    def of(self, train: Description) -> Self:
        """The same about this training, whose source and parameters go into the seed of its coins and its noise."""
        return replace(self, tossed=content_digest([train.digest or train.name, train.parameters]))

    @property
    def design(self) -> str:
        """How trainings become evidence: one of `ONE`, `FEW`, `STEPS`, `MANY`."""
        if self.steps is not None:
            return STEPS
        if self.trainings == 1:
            return ONE
        return MANY if self.canaries == 1 else FEW

    @property
    def alpha(self) -> float:
        """The error probability of the verdict."""
        return error_probability(self.confidence)

    @property
    def calls(self) -> int:
        """How often `train` is called, if it is not stopped before."""
        return -(-self.trainings // CALL) if self.design == MANY else self.trainings

    def trainings_in(self, call: int) -> int:
        """How many trainings a call makes."""
        return min(CALL, self.trainings - call * CALL) if self.design == MANY else 1

    def shape(self, call: int) -> tuple[int, int]:
        """The shape of a call's coins and scores: steps or trainings, by canaries."""
        return self.steps or self.trainings_in(call), self.canaries

    def digest(self, train: Description) -> str:
        """What two audits share whose trainings may go into one result."""
        asked = by_fields(self) | {"exact": None, "underpowered": None}
        if self.design in (FEW, STEPS):  # their evidence may be prolonged at any time
            asked["trainings"] = None
        return content_digest([asked, train.reference, train.digest, train.parameters])


def plan_of(claim: Claim | None, epsilon: float | None, delta: float | None, **asked: Any) -> TrainingPlan:
    """The plan of these words, which are those of `audit_training`. Raises `InvalidSpec` for wrong ones."""
    stated, words = stated_claim(claim, epsilon, delta)
    if stated is None:
        raise InvalidSpec("an audit needs a claim: epsilon=... (--epsilon), or claim=dpaudit.GaussianDP(mu=...) (--mu)")
    return TrainingPlan(claim=stated, delta=USUAL_DELTA if delta is None and curved(stated) else words, **asked)
