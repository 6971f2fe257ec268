"""Adapters, on fakes with the shape of the libraries; the real ones run in `audits/libraries/adapters.py`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import adapters
from dpaudit.mechanisms.protocol import Known, is_known
from tests.cases import for_each

CONTROL = {"runs": 4_000, "confidence": 1 - 1e-6, "n_jobs": 1}  # a sound mechanism is refuted once in a million


OF_ITS_OWN = np.random.default_rng()  # opendp's noise comes from no generator of ours


@dataclass
class Measured:
    """A measurement as opendp's looks from outside."""

    input_metric: object = "AbsoluteDistance(i32)"
    output_measure: object = "MaxDivergence"
    value: Any = None
    input_domain: Any = field(default_factory=lambda: SimpleNamespace(member=lambda value: value is not None))

    def __call__(self, arg: Any) -> Any:
        return arg + OF_ITS_OWN.geometric(0.5) - OF_ITS_OWN.geometric(0.5)

    def map(self, d_in: Any) -> Any:
        return math.log(2.0) * d_in if self.value is None else self.value


CURVE = SimpleNamespace(epsilon=lambda delta: -math.log(delta))


@for_each(
    "measure, value, claim",
    [
        ("MaxDivergence", 1.5, dpaudit.PureDP(1.5)),
        ("MaxDivergence(f64)", 1.5, dpaudit.PureDP(1.5)),
        ("Approximate(MaxDivergence)", (1.0, 1e-6), dpaudit.ApproximateDP(1.0, 1e-6)),
        ("FixedSmoothedMaxDivergence(f64)", (1.0, 1e-6), dpaudit.ApproximateDP(1.0, 1e-6)),
        ("ZeroConcentratedDivergence", 0.5, dpaudit.ZeroConcentratedDP(0.5)),
        ("Approximate(ZeroConcentratedDivergence)", (0.5, 0.0), dpaudit.ZeroConcentratedDP(0.5)),
    ],
)
def test_the_claim_of_opendp_is_its_map(measure: str, value: Any, claim: Any) -> None:
    assert adapters.opendp(lambda: Measured(output_measure=measure, value=value)).claim == claim


def test_curves_of_opendp_are_never_made_stronger() -> None:
    zero_concentrated = dpaudit.ZeroConcentratedDP(0.5).epsilon_at
    for measure, value, own, more in (
        ("SmoothedMaxDivergence", CURVE, CURVE.epsilon, 0.0),
        ("Approximate(SmoothedMaxDivergence)", (CURVE, 1e-3), CURVE.epsilon, 1e-3),
        ("Approximate(ZeroConcentratedDivergence)", (0.5, 1e-3), zero_concentrated, 1e-3),
    ):
        claim: Any = adapters.opendp(lambda m=measure, v=value: Measured(output_measure=m, value=v)).claim
        deltas = [10.0**-k for k in range(1, 13)]
        assert all(
            delta > d + more >= 0 and epsilon == own(d) for (epsilon, delta), d in zip(claim.curve, deltas, strict=True)
        )


@for_each(
    "metric, d_in, near, far, relation",
    [
        ("AbsoluteDistance(f64)", 1.0, (0.5, 1.5), (0.0, 1.5), None),
        ("L1Distance(f64)", 1.0, ([0.0, 0.5], [0.5, 0.0]), ([0.0, 1.0], [0.5, 0.0]), None),
        ("L2Distance(f64)", 5.0, ([0.0, 4.0], [3.0, 0.0]), ([0.0, 4.5], [3.0, 0.0]), None),
        ("SymmetricDistance()", 1, ([1, 2], [2]), ([1, 2], [2, 3]), "add_or_remove_one"),
        ("SymmetricDistance()", 2, ([1, 2], [2, 3]), ([1, 2], [3, 4]), "replace_one"),
        ("InsertDeleteDistance()", 1, ([1, 2, 3], [1, 3]), ([1, 2], [2, 1]), "add_or_remove_one"),
        ("ChangeOneDistance()", 1, ([1, 2], [3, 1]), ([1, 2], [3, 4]), "replace_one"),
        ("HammingDistance()", 1, ([1, 2], [1, 3]), ([1, 2], [2, 1]), "replace_one"),
        ("DiscreteDistance()", 1, (True, False), (None, False), "local"),
    ],
)
def test_pairs_are_held_to_metric_and_domain_of_opendp(
    metric: str, d_in: Any, near: Any, far: Any, relation: str | None
) -> None:
    adapted = adapters.opendp(lambda: Measured(input_metric=metric), d_in)
    assert adapted.claim.relation is dpaudit.Relation.of(relation)
    adapted.checked(dpaudit.AdjacentPair(*near)).check(adapted.claim.relation)
    with pytest.raises(dpaudit.InvalidSpec, match=r"d_in|input|not in"):
        adapted.checked(dpaudit.AdjacentPair(*far))


def test_an_audit_takes_the_claim_of_opendp_or_the_one_given_and_a_halved_map_is_refuted() -> None:
    sound = dpaudit.audit(adapters.opendp(Measured), pair=(0, 1), **CONTROL)  # type: ignore[arg-type]
    assert sound.verdict is dpaudit.Verdict.NOT_REFUTED
    assert sound.spec["claim"]["epsilon"] == math.log(2.0)
    assert sound.spec["pairs"][0]["sensitivity"] == 1.0
    broken = adapters.opendp(lambda: Measured(value=math.log(2.0) / 4))
    assert dpaudit.audit(broken, pair=(0, 1), **CONTROL).verdict is dpaudit.Verdict.REFUTED  # type: ignore[arg-type]
    silent = adapters.opendp(lambda: Measured(output_measure="RenyiDivergence"))
    given = dpaudit.audit(silent, pair=(0, 1), epsilon=1.0, **{**CONTROL, "runs": 1_000})  # type: ignore[arg-type]
    assert given.verdict is dpaudit.Verdict.NOT_REFUTED


@for_each(
    "make, words",
    [
        (lambda: adapters.opendp(Measured()), "give the function that makes it"),
        (lambda: adapters.opendp(lambda: 3).claim, "must return a Measurement"),
        (lambda: adapters.opendp(lambda: Measured(output_measure="RenyiDivergence")).claim, "no claim form"),
        (lambda: adapters.opendp(3), "takes a function"),  # type: ignore[arg-type]
        (lambda: adapters.diffprivlib(Laplace(epsilon=1.0)), "give the class"),
        (lambda: dpaudit.audit(adapters.diffprivlib(Model), pair=(0, 1)), "needs a claim, and Model states none"),
        (lambda: adapters.estimator(Model).open().call(([[1.0]], [0]), np.random.default_rng(1)), "a table of rows"),
        (lambda: adapters.local(Model, [1]), "at least two values"),
        (lambda: dpaudit.audit(adapters.opendp(Measured), pairs=iter([(0, 2)])), "more than d_in = 1 apart"),
        (lambda: dpaudit.audit(adapters.opendp(Measured), epsilon=1.0), "an audit needs datasets"),
    ],
)
def test_bad_input_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(dpaudit.InvalidSpec, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_whether_a_mechanism_is_known_evaluates_none_of_its_properties() -> None:
    def refuse(self: object) -> None:
        raise dpaudit.InvalidSpec("not asked for")

    names = {name for name in dir(Known) if not name.startswith("_")} - {"true_loss"}
    assert "claim" in names
    assert not is_known(type("Silent", (), dict.fromkeys(names, property(refuse)))())


class Laplace:
    """A mechanism as those of diffprivlib are."""

    def __init__(self, *, epsilon: float, random_state: Any = None) -> None:
        self.epsilon, self._rng = epsilon, random_state

    def randomise(self, value: float) -> float:
        return float(value + self._rng.laplace(scale=1.0 / self.epsilon))


class Model:
    def __init__(self, *, scale: float = 1.0, random_state: Any = None) -> None:
        self.scale, self.random_state = scale, random_state

    def fit(self, X: Any, y: Any) -> Model:  # noqa: N803
        self.sums_ = np.array([X[y == label].sum(axis=0) for label in (0, 1)])
        self.sums_ = self.sums_ + self.random_state.laplace(scale=self.scale, size=self.sums_.shape)
        self.trees_ = [print]
        return self


def test_diffprivlib_draws_from_the_stream_of_the_audit_and_claims_what_it_promises() -> None:
    adapted = adapters.diffprivlib(Laplace, epsilon=1.0)
    result = dpaudit.audit(adapted, pair=(0.0, 1.0), **CONTROL)  # type: ignore[arg-type]
    assert result.reproducible
    assert result.verdict is dpaudit.Verdict.NOT_REFUTED
    assert result.spec["claim"] == dpaudit.PureDP(1.0).to_dict()
    assert "random_state from rng" in result.spec["mechanism"]["name"]
    again = dpaudit.audit(adapted, pair=(0.0, 1.0), **CONTROL)  # type: ignore[arg-type]
    assert again.evidence == result.evidence

    def mean(data: Any, epsilon: float = 1.0, bounds: Any = None, random_state: Any = None) -> float:
        return float(np.mean(data))

    assert adapters.diffprivlib(mean).claim is None  # it takes the bounds from the data
    assert adapters.diffprivlib(mean, bounds=(0, 1)).claim == dpaudit.PureDP(1.0)


def test_an_estimator_shows_all_that_it_learned_and_names_the_rest() -> None:
    rng = np.random.default_rng(3)
    call = adapters.estimator(Model, label=-1, scale=0.0).open().call
    value = call([[1.0, 2.0, 0], [3.0, 4.0, 1]], rng)
    assert value == {"sums_": [[1.0, 2.0], [3.0, 4.0]], "not shown": ["trees_[0]: builtin_function_or_method"]}
    assert call({"X": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}, rng) == value  # type: ignore[comparison-overlap]


def test_local_finds_the_worst_pair_of_values() -> None:
    def report(value: int, rng: np.random.Generator) -> int:
        keeps = 0.9 if value == 3 else 0.5
        return value if rng.random() < keeps else int(rng.integers(5))

    adapted = adapters.local(report, range(5), epsilon=math.log(0.6 / 0.1))
    assert len(adapted.pairs) == 10
    result = dpaudit.audit(adapted, **{**CONTROL, "runs": 20_000})  # type: ignore[arg-type]
    assert result.verdict is dpaudit.Verdict.REFUTED
    assert "3" in result.spec["pairs"][result.witness.pair]["name"]


def test_an_accountant_is_never_made_stronger() -> None:
    class Distribution:
        def get_delta_for_epsilon(self, epsilon: float) -> float:
            return max(0.0, 0.9 - epsilon)

    claim: Any = adapters.dp_accounting(Distribution())
    assert claim.relation is dpaudit.Relation.ADD_OR_REMOVE_ONE
    assert all(delta > max(0.0, 0.9 - epsilon) for epsilon, delta in claim.curve)

    optimistic: Any = Distribution()
    optimistic._pmf_remove = SimpleNamespace(_pessimistic_estimate=False)
    accountant = SimpleNamespace(neighboring_relation=SimpleNamespace(name="REPLACE_ONE"), composed=[])
    accountant.supports = lambda event: True
    with pytest.raises(dpaudit.InvalidSpec, match="promises nothing"):
        adapters.dp_accounting(optimistic)
    with pytest.raises(dpaudit.InvalidSpec, match="made for REPLACE_ONE, not for ADD_OR_REMOVE_ONE"):
        adapters.dp_accounting("an event", accountant=accountant)
    for relation in ("local", "add_or_remove_user"):
        with pytest.raises(
            dpaudit.InvalidSpec, match=rf"dp-accounting knows no relation '{relation}': .* claim.with_relation"
        ):
            adapters.dp_accounting("an event", relation, accountant=accountant)
        assert adapters.dp_accounting(Distribution(), relation).relation is dpaudit.Relation.of(relation)


def test_each_target_of_the_page_takes_five_lines_at_most() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how" / "adapters.md").read_text(encoding="utf-8")
    blocks = [text for text in re.findall(r"^```python[^\n]*\n(.*?)^```$", page, re.M | re.S) if "# target" in text]
    targets = [part for text in blocks for part in re.split(r"^# target.*\n", text, flags=re.M)[1:]]
    for part in targets:
        lines = [line for line in part.splitlines() if line.strip() and not line.startswith(("import ", "from "))]
        assert len(lines) <= 5, part
    assert len(targets) == 12
