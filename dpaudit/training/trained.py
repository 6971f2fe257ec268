"""What an audit of private training found: the estimates on their lines, and the verdict that follows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit.certify.certificate import error_probability
from dpaudit.claims import Claim
from dpaudit.results.beside import Histogram
from dpaudit.results.verdict import Verdict
from dpaudit.scores.dependence import Dependence
from dpaudit.scores.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Everything that `audit_training` found; all but `provenance` is a function of the question and its seed.

    `trainings` is how many were allowed, `trainings_used` how many were run. `steps` is None where the claim is about
    the whole run, and the number of steps where it is about one step; `compose` steps are then composed, each
    of a sample of ours at `sample_rate`. `lines` are
    the estimates; the first certified one decides. `e_values` is the evidence against the claim after each training,
    where trainings are combined: refuted at 1 / (1 - confidence). `roc` holds the corners (fpr, fnr) of the scores'
    trade-off, `band` upper limits of (fpr, fnr) that hold together at `confidence`: certified where every training has
    one canary. `repeat` are lines that ask the same again. `provenance` may differ between two equal audits.
    """

    claim: Claim
    delta: float
    confidence: float
    seed: int
    canaries: int
    trainings: int
    trainings_used: int
    steps: int | None = None
    compose: int | None = None
    sample_rate: float = 1.0
    inserted: str = ""
    not_tested: tuple[str, ...] = ()
    lines: tuple[Estimate, ...] = ()
    dependence: Dependence | None = None
    e_values: tuple[float, ...] = ()
    histogram: Histogram | None = None
    roc: tuple[tuple[float, float], ...] = ()
    band: tuple[tuple[float, float], ...] = ()
    repeat: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def deciding(self) -> Estimate | None:
        """The estimate that decides: the first certified one with a p-value."""
        return next((each for each in self.on_line("certified") if each.p_value is not None), None)

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at `confidence`."""
        return self.p_value is not None and self.p_value <= error_probability(self.confidence)

    @property
    def p_value(self) -> float | None:
        """The p-value of the claim, of the deciding estimate."""
        return None if self.deciding is None else self.deciding.p_value

    @property
    def verdict(self) -> Verdict:
        """REFUTED or NOT_REFUTED; the second never means that the training is private."""
        return Verdict.REFUTED if self.refuted else Verdict.NOT_REFUTED

    @property
    def epsilon_lower(self) -> float | None:
        """The certified lower bound on epsilon at `delta`: of one step where the audit is of the step."""
        return None if self.deciding is None else self.deciding.epsilon_lower

    def on_line(self, line: str) -> tuple[Estimate, ...]:
        """The estimates of one of the three lines, in their order."""
        return tuple(each for each in self.lines if each.line == line)
