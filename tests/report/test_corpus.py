"""The corpus of outputs: each result is printed in every format, saved and read back."""

from __future__ import annotations

import datetime
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from benchmarks import channels
from dpaudit import report
from dpaudit.results.display import Verdict
from dpaudit.results.suite import SuiteEntry, SuiteResult, joint_confidence
from tests.processes import hostile

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
Mechanism = Callable[[Any, Any], Any]
EVERY = 120  # of the channels, whose outputs are tried one by one in tests/sampling
INF = math.inf


def with_zone(zone: str) -> Any:
    return time.struct_time((2026, 1, 1, 0, 0, 0, 3, 1, 0), {"tm_zone": zone})


def behind(base: Any) -> Any:
    return np.concatenate([[1.0], [float(base)]])[:1]


SILENT: dict[str, Callable[[int], Any]] = {  # what a type keeps beyond its value; many tell nothing, none may break
    "subnormal": lambda bit: 5e-324 * (1 + bit),
    "numpy text with a trailing NUL": lambda bit: np.str_("a\0" if bit else "a"),
    "empty arrays of two shapes": lambda bit: np.zeros((0, 3 + bit)),
    "base of an array": behind,
    "zone of a time": lambda bit: with_zone("UTC" if bit else "CET"),
    "hidden fields of a stat": lambda bit: os.stat_result(range(10), {"st_atime": float(bit)}),
    "byte of a bool": lambda bit: np.array([1 + bit], np.uint8).view(np.bool_),
    "padding of a structure": lambda bit: np.zeros(2, np.dtype([("a", "i1"), ("b", "<f8")], align=True)),
    "complex of long doubles": lambda bit: np.clongdouble(1) + np.clongdouble(bit) * np.finfo(np.longdouble).eps,
    "keys of two zeros": lambda bit: {-0.0 if bit else 0.0: 1},
    "payload of a NaN": lambda bit: np.array([0x7FF8000000000000 + bit], np.uint64).view(np.float64)[0],
    "unit of a NaT": lambda bit: np.datetime64("NaT", "s" if bit else "D"),
    "zone of a date": lambda bit: datetime.datetime(
        2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), f"z{bit}")
    ),
    "metadata of a dtype": lambda bit: np.zeros(1, np.dtype("f8", metadata={"bit": bit})),
    "order of a set": lambda bit: {0, 8} if bit else {8, 0},
    "unused categories": lambda bit: pd.Categorical(["a"], categories=["a", "b"] if bit else ["a"]),
    "ordered categories": lambda bit: pd.Categorical(["a"], ordered=bool(bit)),
    "frequency of an index": lambda bit: pd.DatetimeIndex(["2026-01-01"], freq="D" if bit else None),
    "flags of a frame": lambda bit: pd.DataFrame({"a": [1.0]}).set_flags(allows_duplicate_labels=not bit),
}
UNLIKE: dict[str, Any] = {  # outputs of two unlike numbers, nearly always the same
    "two numbers": (32.0, 64.0),
    "two booleans": [True, False],
    "a list in a dict": {"a": [1, 0]},
    "one and nothing": [1, 0],
}


def of_silent(make: Callable[[int], Any]) -> Mechanism:
    return lambda data, rng: make(data if rng.random() < 0.95 else 1 - data)


def of_hostile(fails: Mechanism) -> Mechanism:
    return lambda data, rng: fails(data if rng.random() < 0.95 else 1 - data, rng)


def of_unlike(output: Any) -> Mechanism:
    return lambda data, rng: output if rng.random() < 0.999 else [1.0 + data, 1.0 + data]


def either(data: Any, rng: Any) -> Any:
    """An infinity in half of the runs, or a word, or a number."""
    draw = rng.random()
    return f"w{int(draw * 60)}" if draw < 0.3 else rng.laplace() + (data if draw > 0.6 else 0.0)


def some(data: Any, rng: Any) -> Any:
    return rng.laplace(), [rng.normal(), data]


def added(data: Any, rng: Any) -> Any:
    return data + rng.laplace()


def mean(rows: Any, rng: Any) -> Any:
    return sum(rows) / max(len(rows), 1) + rng.laplace(scale=100.0 / max(len(rows), 1))


def audits() -> dict[str, tuple[Any, dict[str, Any]]]:
    bits = {"pair": (0, 1)}
    found: dict[str, tuple[Any, dict[str, Any]]] = {name: (of_silent(make), bits) for name, make in SILENT.items()}
    found |= {name: (of_unlike(output), bits) for name, output in UNLIKE.items()}
    names = [*channels.CHANNELS, *channels.RAISED, *channels.BATCHES][::EVERY]
    found |= {name: (channels.mechanisms(name)["leak"], bits) for name in names}
    for each in (hostile.raises, hostile.raises_unprintable, hostile.stops_iteration):
        found[each.__name__] = of_hostile(each), bits
    for end in (INF, -INF, math.nan):
        found[f"sum {end}"] = added, {"pair": (0.0, end)}
    found["half of an infinity"] = either, {"pair": (0.0, INF)}
    found["list with an infinity"] = some, {"pair": (0.0, INF)}
    found["mean of data"] = mean, {"data": [30, 40, 50], "seed": 2}
    found["bets on an infinity"] = added, {"pair": (0.0, INF), "stopping": "anytime"}
    found["bins of an infinity"] = added, {"pair": (0.0, INF), "claim": dpaudit.RenyiDP(order=2.0, epsilon=1.0)}
    found["bits of an infinity"] = added, {"pair": (0.0, INF), "representation": True}
    return found


@pytest.fixture(scope="module")
def suite() -> SuiteResult:
    entries = []
    for name, (mechanism, asked) in audits().items():
        claim = {} if "claim" in asked else {"epsilon": 1.0}
        call = {"runs": 600, "seed": 1, "n_jobs": 1, "isolation": "none", "progress": False, **claim, **asked}
        try:
            found = dpaudit.audit(mechanism, name=name, **call)
        except dpaudit.UnsoundAudit as error:
            entries.append(SuiteEntry(name, Verdict.NOT_REFUTED, error=str(error), exit_code=3))
        else:
            entries.append(SuiteEntry(name, found.verdict, found, exit_code=found.exit_code))
    entries.append(
        SuiteEntry("no verdict", Verdict.NOT_REFUTED, error=f"a worker died, {'why ' * 150}in the end", exit_code=3)
    )
    return SuiteResult(tuple(entries), joint_confidence([each.result for each in entries if each.result]))


def test_each_result_is_read_back_and_tells_the_same(suite: SuiteResult, tmp_path: Path) -> None:
    assert len(suite.results) > 30
    for result in suite.results:
        again = dpaudit.load(result.save(tmp_path / "result.json"))
        assert again.to_json() == result.to_json(), result.name
        assert (str(again), repr(again)) == (str(result), repr(result))
        assert str(again.explain()) == str(result.explain())
        assert dpaudit.recheck(again).to_json() == again.to_json()


def test_all_together_stand_in_every_format_and_are_read_back(suite: SuiteResult, tmp_path: Path) -> None:
    report.write_suite(suite, tmp_path, report.FORMATS)
    again = dpaudit.load_suite(tmp_path / "suite.json")
    assert [entry.name for entry in again.entries] == [entry.name for entry in suite.entries]
    assert json.loads((tmp_path / "suite.json").read_text()) == json.loads(report.render(again, report.FORMATS["json"]))
    files = {name: (tmp_path / made.file).read_text().replace("\\", "") for name, made in report.FORMATS.items()}
    for name in ("html", "md", "txt", "junit", "csv", "json"):
        assert all(f"{entry.name.split()[0]}" in files[name] for entry in suite.entries), name
    for name in ("html", "md", "txt", "junit", "sarif", "json", "summary"):  # a reason is told whole
        assert "a worker died, why why" in files[name], name
        assert "why why in the end" in files[name], name


def test_what_tells_the_datasets_apart_is_found_in_outputs_as_they_are(suite: SuiteResult) -> None:
    """`contains` takes outputs as mechanisms give them: those of the likelier dataset come more often."""
    found = {result.name: result for result in suite.results if result.refuted}
    for name, make in SILENT.items():
        if name in found:
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
