"""What an audit of scores says: estimates with their labels and assumptions, and a verdict only of certified ones."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.base.strict import by_fields
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim
from dpaudit.results.display import Displayed
from dpaudit.results.observations import Histogram
from dpaudit.scores import wording
from dpaudit.scores.counts import AttackCounts
from dpaudit.scores.estimate import CERTIFIED, Estimate

SCHEMA = "dpaudit.scores/1"
INTERVALS = ("lower", "upper", "two-sided")


@dataclass(frozen=True, slots=True, repr=False)
class ScoresResult(Displayed):
    """The answer of `audit_scores`: every method's estimate, and the verdict of the first certified one.

    `counts` are those of the scores that were judged; `roc` holds the corners (fpr, fnr) of the empirical trade-off,
    `band` upper limits of (fpr, fnr) at every threshold that hold together at `confidence` (many-run designs only).
    `histogram` is how the scores lie, `first` the members'; None where counts alone are known.
    """

    claim: Claim | None
    design: str
    assumption: str
    sizes: tuple[int, int]
    choice: str
    rule: Mapping[str, Any] | None
    counts: AttackCounts
    confidence: float
    interval: str
    seed: int
    estimates: tuple[Estimate, ...]
    roc: tuple[tuple[float, float], ...] = ()
    band: tuple[tuple[float, float], ...] = ()
    histogram: Histogram | None = None

    @property
    def deciding(self) -> Estimate | None:
        """The estimate that decides: the first certified one about epsilon; None where there is none."""
        return next((e for e in self.estimates if e.label == CERTIFIED and e.quantity == "epsilon"), None)

    @property
    def epsilon_lower(self) -> float | None:
        """The certified lower bound on epsilon at `delta`, of the deciding method."""
        return None if self.deciding is None else self.deciding.epsilon_lower

    @property
    def delta(self) -> float | None:
        """The delta that the certified bound is for."""
        return None if self.deciding is None else self.deciding.delta

    @property
    def p_value(self) -> float | None:
        """The p-value of the claim, of the deciding method."""
        return None if self.deciding is None else self.deciding.p_value

    @property
    def refuted(self) -> bool | None:
        """Whether the claim is refuted at `confidence`; None without a claim or without a certified estimate."""
        decided = self.deciding
        if self.claim is None or decided is None or decided.p_value is None:
            return None
        alpha = error_probability(self.confidence)
        return decided.p_value <= (alpha / 2.0 if self.interval == "two-sided" else alpha)

    def estimate(self, method: str) -> Estimate:
        """The first estimate of that method; raises `KeyError` where it was not asked for."""
        for found in self.estimates:
            if found.method == method:
                return found
        raise KeyError(method)

    def to_dict(self) -> dict[str, object]:
        """The result as plain values, as JSON holds it."""
        head = {
            "schema": SCHEMA,
            "claim": None if self.claim is None else self.claim.to_dict(),
            "refuted": self.refuted,
            "decided_by": None if self.deciding is None else self.deciding.method,
        }
        held = {**by_fields(self), "sizes": {"in": self.sizes[0], "out": self.sizes[1]}}
        return head | {"scores" if key == "sizes" else key: each for key, each in held.items() if key != "claim"}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the result as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        return Path(path)

    def __str__(self) -> str:
        meanings = wording.MEANINGS | {CERTIFIED: f"{self.assumption}; this line alone decides"}
        facts = [
            *wording.line_facts(self.estimates, meanings),
            ("scores", f"{self.sizes[0]:,} in, {self.sizes[1]:,} out; {self.choice}"),
            ("judged", wording.judged(self.counts, self.deciding)),
        ]
        if sum(each.label == CERTIFIED for each in self.estimates) > 1:
            facts.append(("several certified", "each holds at its confidence on its own; only the first decides"))
        if told := wording.apart(self.claim, self.deciding, self.refuted):
            facts.append(("the bound", told))
        return wording.laid_out(self.headline, facts)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.deciding is None:
            return "NO CERTIFICATE  only estimates without a guarantee were asked for"
        stamp = "CERTIFIED" if self.refuted is None else "REFUTED" if self.refuted else "NOT REFUTED"
        claim = "" if self.claim is None or self.refuted is None else str(self.claim)
        return wording.headline(stamp, claim, self.deciding, self.confidence)
