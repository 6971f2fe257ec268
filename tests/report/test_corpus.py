"""Odd outputs of every kind: each result is printed in every format, saved and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from benchmarks import channels
from dpaudit import report
from dpaudit.results.display import Verdict
from dpaudit.results.stored import loads
from dpaudit.results.suite import SuiteEntry, SuiteResult, joint_confidence
from tests.cases import some
from tests.outputs.test_channels import QUICK
from tests.processes import hostile

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
Mechanism = Callable[[Any, Any], Any]
INF, RUNS = math.inf, 600
SILENT = some(QUICK, 8)  # what a type keeps beyond its value; many tell nothing, none may break
UNLIKE: dict[str, Any] = {  # outputs of two unlike numbers, nearly always the same
    "two numbers": (32.0, 64.0),
    "two booleans": [True, False],
    "a list in a dict": {"a": [1, 0]},
    "one and nothing": [1, 0],
}


def of_hostile(fails: Mechanism) -> Mechanism:
    return lambda data, rng: fails(data if rng.random() < 0.95 else 1 - data, rng)


def of_unlike(output: Any) -> Mechanism:
    return lambda data, rng: output if rng.random() < 0.999 else [1.0 + data, 1.0 + data]


def either(data: Any, rng: Any) -> Any:
    """An infinity in half of the runs, or a word, or a number."""
    draw = rng.random()
    return f"w{int(draw * 60)}" if draw < 0.3 else rng.laplace() + (data if draw > 0.6 else 0.0)


def listed(data: Any, rng: Any) -> Any:
    return rng.laplace(), [rng.normal(), data]


def added(data: Any, rng: Any) -> Any:
    return data + rng.laplace()


def mean(rows: Any, rng: Any) -> Any:
    return sum(rows) / max(len(rows), 1) + rng.laplace(scale=100.0 / max(len(rows), 1))


def audits() -> dict[str, tuple[Any, dict[str, Any]]]:
    bits, infinite = {"pair": (0, 1)}, {"pair": (0.0, INF)}
    names = [*SILENT, *some(channels.RAISED, 2), *some(channels.BATCHES, 2)]
    return {
        **{name: (channels.mechanisms(name)["leak"], bits) for name in names},
        **{name: (of_unlike(output), bits) for name, output in UNLIKE.items()},
        **{act: (of_hostile(hostile.Second(act)), bits) for act in ("raises", "exits", "raises what does not print")},
        **{f"sum {end}": (added, {"pair": (0.0, end)}) for end in (INF, -INF, math.nan)},
        "half of an infinity": (either, infinite),
        "list with an infinity": (listed, infinite),
        "mean of data": (mean, {"data": [30, 40, 50], "seed": 2}),
        "bets on an infinity": (added, {**infinite, "stopping": "anytime"}),
        "bins of an infinity": (added, {**infinite, "claim": dpaudit.RenyiDP(order=2.0, epsilon=1.0)}),
        "bits of an infinity": (added, {**infinite, "representation": True}),
    }


@pytest.fixture(scope="module")
def suite() -> SuiteResult:
    """The audits; what is looked at in fresh processes before a refutation is not what is tried here."""
    entries = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaudit.auditing.audit.looked_again", lambda session, probe, refuted: (probe, 0))
        patch.setattr("dpaudit.auditing.audit.compare_twins", lambda *_, **__: None)
        for name, (mechanism, asked) in audits().items():
            claim = {} if "claim" in asked else {"epsilon": 1.0}
            call = {"runs": RUNS, "seed": 1, "n_jobs": 1, "isolation": "none", "progress": False, **claim, **asked}
            try:
                found = dpaudit.audit(mechanism, name=name, **call)
            except dpaudit.UnsoundAudit as error:
                entries.append(SuiteEntry(name, Verdict.NOT_REFUTED, error=str(error), exit_code=3))
            else:
                entries.append(SuiteEntry(name, found.verdict, found, exit_code=found.exit_code))
    lost = f"a worker died, {'why ' * 150}in the end"
    entries.append(SuiteEntry("no verdict", Verdict.NOT_REFUTED, error=lost, exit_code=3))
    return SuiteResult(tuple(entries), joint_confidence([each.result for each in entries if each.result]))


def test_each_result_is_read_back_and_tells_the_same(suite: SuiteResult) -> None:
    assert len(suite.results) > 18
    for result in suite.results:
        again = loads(result.to_json())
        assert again.to_json() == result.to_json(), result.name
        assert repr(again) == repr(result)
        assert str(again.explain()) == str(result.explain())
        assert dpaudit.recheck(again).to_json() == again.to_json()


def test_all_together_stand_in_every_format_and_are_read_back(suite: SuiteResult, tmp_path: Path) -> None:
    report.write_suite(suite, tmp_path, report.FORMATS)
    again = dpaudit.load_suite(tmp_path / "suite.json")
    assert [entry.name for entry in again.entries] == [entry.name for entry in suite.entries]
    assert json.loads((tmp_path / "suite.json").read_text()) == json.loads(report.render(again, report.FORMATS["json"]))
    files = {name: (tmp_path / made.file).read_text().replace("\\", "") for name, made in report.FORMATS.items()}
    files["long"] = (tmp_path / "report-long.md").read_text().replace("\\", "")
    for name in ("html", "long", "txt", "junit", "csv", "json"):
        assert all(f"{entry.name.split()[0]}" in files[name] for entry in suite.entries), name
    for name in ("html", "md", "long", "txt", "junit", "sarif", "json"):  # a reason is told whole
        assert "a worker died, why why" in files[name], name
        assert "why why in the end" in files[name], name


def test_what_tells_the_datasets_apart_is_found_in_outputs_as_they_are(suite: SuiteResult) -> None:
    """`contains` takes outputs as mechanisms give them: those of the likelier dataset come more often."""
    found = {result.name: result for result in suite.results if result.refuted}
    for name in found.keys() & set(SILENT):
        make = channels.CHANNELS[name]
        inside = found[name].contains([make(0), make(1), make(0)]).tolist()
        likelier = found[name].witness.p_side
        assert inside == [likelier == "first", likelier == "second", inside[0]], name
    rng = np.random.default_rng(5)
    result = found["sum inf"]
    hits = [result.contains([added(data, rng) for _ in range(200)]).mean() for data in (0.0, INF)]
    assert min(hits) < 0.1
    assert max(hits) == 1.0
    assert result.contains(np.array([0.0, INF])).tolist() == result.witness.contains([0.0, INF]).tolist()
    assert result.contains([]).tolist() == []
    for wrong in (INF, "text", (1.0, 2.0), np.array(1.0)):
        with pytest.raises(dpaudit.InvalidSpec, match="contains takes a list of outputs"):
            result.contains(wrong)
