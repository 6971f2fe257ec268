"""A plain count: a loop over runs of a mechanism and two quantiles: it shares nothing with an audit but the mechanism.

`python -m audits.libraries.plain SPEC NAME PAIR FILE` counts the plain event of an audit on its pair of this number.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import AdjacentPair, AuditResult
from dpaudit.account.statements import at_delta
from dpaudit.base.numerals import bound
from dpaudit.claims import Claim
from dpaudit.mechanisms.importing import import_reference
from dpaudit.results.result import Finding
from dpaudit.spec.questions import read_spec

CONFIDENCE = 0.999
LEVEL = (1.0 - CONFIDENCE) / 4.0  # of each of four bounds
OWN_SEED = 0x706C61696E  # "plain": no run of an audit has it
BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Plain:
    """Hits and runs of a plain event on the two datasets; `error` where it could not be counted."""

    event: str = ""
    first: Sequence[int] = (0, 0)
    second: Sequence[int] = (0, 0)
    error: str = ""

    def breaks(self, claim: Claim) -> bool:
        """Whether the counts show more than the claim allows, by four Clopper-Pearson bounds and Bonferroni."""
        sides = (self.first, self.second), (self.second, self.first)
        return any(least(*p) > claim.max_probability(most(*q)) for p, q in sides)

    def against(self, result: AuditResult) -> list[str]:
        """What it has against what was found: a sentence, or none where the two agree."""
        finding = decisive(result)
        if self.error:
            return [f"the plain count could not be made: {self.error}"]
        if (shown := self.breaks(finding.claim)) == finding.certificate.refuted:
            return []
        words = "showed more than the audit found" if shown else "did not show what the audit found"
        return [f"the plain count {words}: {self.text(finding.claim)}"]

    def epsilon(self, delta: float) -> float:
        """The epsilon at this delta that the counts show, 0 for none."""
        misses = [(runs - hits, runs) for hits, runs in (self.first, self.second)]
        sides = (self.first, self.second), (self.second, self.first), misses, misses[::-1]
        return math.log(max(1.0, *((least(*p) - delta) / most(*q) for p, q in sides)))

    def text(self, claim: Claim) -> str:
        """The counts in words: the epsilon they show at the claim's delta, or for other claims whether it is more."""
        if self.error:
            return self.error
        (first, runs), (second, others) = self.first, self.second
        shown = f"{'' if self.breaks(claim) else 'no '}more than the claim allows"
        if claim.linear:
            epsilon = self.epsilon(claim.delta)
            shown = f"epsilon >= {bound(epsilon)}{at_delta(claim.delta)}" if epsilon else "nothing"
        return f"{first:,} of {runs:,} against {second:,} of {others:,}, which shows {shown}"


def decisive(result: AuditResult) -> Finding | AuditResult:
    """What the stamp of a result stands on: the result itself, or the finding on bits where only bits refute."""
    alone = result.representation_refuted and not result.refuted
    return result.representation if alone and result.representation is not None else result


def least(hits: int, runs: int, level: float = LEVEL) -> float:
    """The lower Clopper-Pearson bound on a probability.

    >>> round(least(10, 10, 0.05), 6) == round(0.05 ** 0.1, 6)
    True
    """
    from scipy.stats import beta

    return float(beta.ppf(level, hits, runs - hits + 1)) if hits else 0.0


def most(hits: int, runs: int, level: float = LEVEL) -> float:
    """The upper Clopper-Pearson bound on a probability."""
    return 1.0 - least(runs - hits, runs, level)


def one_by_one(batch: Any) -> Iterator[Any]:
    """The outputs of a batch one by one: of a tuple or dict of arrays, tuples or dicts.

    >>> list(one_by_one({"a": np.array([1, 2]), "b": np.array([3, 4])}))[1] == {"a": 2, "b": 4}
    True
    """
    if isinstance(batch, dict):
        return (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))
    return zip(*batch, strict=True) if isinstance(batch, tuple) else iter(batch)


def count(source: str, name: str, number: int) -> Plain:
    """The plain event of an audit on its pair of this number; an exception of a run is its output."""
    tables = tomllib.loads(Path(source).read_text("utf-8"))["audit"]
    record = next(table["record"] for table in tables if table["name"] == name)
    question = next(question for question in read_spec(source) if question.name == name)
    opened = question.mechanism.open()  # the mechanism first: it may lead the import path
    hit = import_reference(record["plain"], str(question.source.resolve().parent))
    every = [(each,) if isinstance(each, AdjacentPair) else each.resolve() for each in question.pairs]
    pair = [pair for pairs in every for pair in pairs][number]
    rng, runs = np.random.default_rng([OWN_SEED, question.seed]), record.get("plain_runs", 10_000)

    def outputs(data: Any) -> Iterator[Any]:
        for start in range(0, runs, 1 if opened.per_run else BATCH):
            if not opened.per_run:
                yield from one_by_one(opened.call(data, min(BATCH, runs - start), rng))
                continue
            try:
                output = opened.call(data, rng)
            except Exception as error:
                output = error
            yield output

    hits = [sum(bool(hit(each)) for each in outputs(data)) for data in (pair.first, pair.second)]
    return Plain(" ".join((hit.__doc__ or "").split()).rstrip("."), (hits[0], runs), (hits[1], runs))


if __name__ == "__main__":
    Path(sys.argv[4]).write_text(json.dumps(asdict(count(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
