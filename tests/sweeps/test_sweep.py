"""Sweeps: the whole grid, each point a row, nothing lost, nothing taken for another point's answer."""

from __future__ import annotations

import csv
import functools
import importlib
import io
import itertools
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.catalogue import find
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP, Relation, RenyiDP
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.ledger.results import Ledger
from dpaudit.mechanisms import batched
from dpaudit.sweeps import Sweep, SweepInterrupted, sweep
from dpaudit.sweeps.grid import Grid, points
from dpaudit.sweeps.page import csv_text
from dpaudit.sweeps.rows import COLUMNS, REALS, columns
from tests.cases import for_each
from tests.report.hostile import NAMES

RUNS = 2_000
VARIES = ("time_s", "cpu_s", "from_ledger")  # between two equal audits
MORE = [0.5, 2.0]


def leak(data: Any, rng: np.random.Generator, times: float = 1.0) -> float:
    """Tells everything where `times` is above 0.25: no output of one dataset is one of the other."""
    return data * times + 0.125 * rng.integers(2)


def coin(data: Any, rng: np.random.Generator) -> int:
    """Tells nothing: a verdict against it has probability 0.001 over seeds, and the seeds here are fixed."""
    return int(rng.integers(2))


def hint(data: Any, rng: np.random.Generator, times: float = 0.5) -> int:
    """Tells the truth so often and guesses otherwise: an epsilon of log 3 at 0.5, of 0 at 0."""
    return int(data) if rng.random() < times else int(rng.integers(1, 3))


def spoils(data: list[int], rng: np.random.Generator) -> int:
    data.append(1)
    return int(rng.integers(2))


def both(data: list[int], rng: np.random.Generator) -> int:
    return data[0] + 10 * int(rng.integers(2))


def compared(rows: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in VARIES} for row in rows]


@pytest.fixture(scope="module")
def catalogue_sweep() -> Sweep:
    """Two claims of a mechanism, its broken twin, one with other parameters: two certifiers each."""
    mechanisms = [find("laplace"), find("laplace.half_noise"), find("gaussian_gdp")]
    asked: dict[str, Any] = {"runs": 20_000, "certifiers": [None, "binned"], "seeds": [1], "prove": True, "n_jobs": 1}
    return sweep(mechanisms, parameters={"epsilon": MORE}, **asked)


# --- the grid ----------------------------------------------------------------------------------------------------


def test_the_grid_is_whole_and_what_cannot_be_asked_is_a_row_that_says_why(catalogue_sweep: Sweep) -> None:
    rows, without = catalogue_sweep.rows, catalogue_sweep.without_verdict
    assert [row["point"] for row in rows] == list(range(1, 13))
    asked = [(row["mechanism"], row["parameters.epsilon"]) for row in rows]
    names = ("laplace", "laplace.half_noise", "gaussian_gdp")
    assert asked == [(name, epsilon) for name in names for epsilon in MORE for _ in range(2)]
    assert len(without) == 4 + 4  # of the Gaussian all, of the others those of the certifier for Renyi claims
    assert {row["error"].split(";")[0].split(",")[0] for row in without} == {
        "certifier 'binned' is for RenyiDP and ZeroConcentratedDP",
        "gaussian_gdp has no parameter 'epsilon'",
    }
    assert all(set(row) >= set(COLUMNS) for row in rows)
    assert catalogue_sweep.exit_code == 3
    lines = str(catalogue_sweep).splitlines()
    assert lines[0].startswith("12 points: 2 refuted, 2 not refuted, 8 without verdict")
    assert "laplace(epsilon=0.5): 0.5-DP not refuted, epsilon >= 0." in lines[1]
    assert "laplace.half_noise(epsilon=2.0): 2-DP REFUTED, epsilon >= " in lines[4]
    assert "Each of the 12 bounds is wrong with probability at most 0.001; all hold together with" in lines[5]
    assert "at least 0.988 " in lines[5]


def test_a_row_holds_what_the_audit_says_and_truth_and_proof_where_they_are_known(catalogue_sweep: Sweep) -> None:
    row = catalogue_sweep.rows[2]
    entry = find("laplace").with_parameters({"epsilon": 2.0})
    result = dpaudit.audit(entry, pair=entry.pair, claim=entry.claim(), runs=20_000, seed=row["seed"], n_jobs=1)
    told = (result.certificate.lower, result.certificate.p_value, result.runs_used)
    assert (row["lower"], row["p_value"], row["runs_used"]) == told
    assert (row["verdict"], row["certifier"], row["runs"]) == ("NOT_REFUTED", "coin-flip", 20_000)
    assert (row["form"], row["claimed"], row["claimed_epsilon"], row["delta"]) == ("PureDP", 2.0, 2.0, 0.0)
    assert row["runs_to_refute"] is None
    sound, broken = catalogue_sweep.rows[0], catalogue_sweep.rows[4]
    assert (sound["true_epsilon"], sound["proved"], sound["broken"]) == (0.5, 0.5, False)
    assert sound["exact_epsilon"] == pytest.approx(0.5, rel=1e-9)
    assert (broken["true_epsilon"], broken["claimed"], broken["broken"]) == (1.0, 0.5, True)
    assert broken["proved"] is None or broken["proved"] >= 1.0  # never the claim of what is broken
    assert broken["verdict"] == "REFUTED"  # its p-value at these runs and this seed is below 1e-6
    assert broken["p_value"] < 1e-6
    assert broken["runs_to_refute"] == broken["runs_used"]


def test_a_loss_in_another_parameter_is_told_at_the_delta_of_the_certificate() -> None:
    entry = find("gaussian_gdp")
    (row,) = sweep(entry, parameters={"mu": 1.5}, runs=20_000, prove=True, n_jobs=1).rows
    assert row["exact_epsilon"] is None  # the one that is enclosed, infinity, is that at delta 0
    assert (row["parameter"], row["claimed"], row["true_loss"]) == ("mu", 1.5, 1.5)
    assert 0.0 < row["delta"] < 1.0
    assert row["claimed_epsilon"] == GaussianDP(1.5).epsilon_at(row["delta"]) == row["true_epsilon"]
    assert row["epsilon_lower"] <= row["true_epsilon"]  # fails with probability 0.001 over seeds; this one is fixed
    (row,) = sweep(entry, claim=ApproximateDP(1.0, 0.1), runs=20_000, n_jobs=1).rows
    assert row["true_loss"] is None  # the formula is one of mu, the claim is not


def test_claims_and_pairs_may_depend_on_the_parameters() -> None:
    found = sweep(
        hint,
        parameters={"times": np.array([0.25, 0.5])},
        claim=lambda times: PureDP(4.0 * times, Relation.REPLACE_ONE),
        pairs=[(1, 2), lambda **given: AdjacentPair(1, 1 + 4 * given["times"], name="far")],
        runs=RUNS,
        n_jobs=1,
    )
    asked = [(row["claimed"], row["pair"]) for row in found.rows]
    assert asked == list(itertools.product((1.0, 2.0), ("pair 1", "far")))
    assert found.exit_code == 0


def test_each_mechanism_may_have_a_claim_and_a_pair_of_its_own_and_tables_are_joined() -> None:
    asked: dict[str, Any] = {"runs": RUNS, "n_jobs": 1, "progress": False}
    claims, pairs = {"hint": "4*times", "leak": lambda times: times}, {"hint": (1, 2), "leak": (3, 4)}
    own = sweep([hint, leak], parameters={"times": [0.25, 0.5]}, claim=claims, pair=pairs, **asked)
    assert [row["claimed"] for row in own.rows] == [1.0, 2.0, 0.25, 0.5]
    both = sum([own, sweep(["laplace", "dpaudit.catalogue.additive:geometric"], **asked)])
    assert [row["mechanism"] for row in both.rows] == ["hint", "hint", "leak", "leak", "laplace", "geometric"]
    assert [row["point"] for row in both.rows] == [*range(1, 7)]
    with pytest.raises(InvalidSpec, match=r'by name: Sweep.of\({"DP-SGD": result}\)$'):
        own + 1  # type: ignore[operator]


def test_a_broken_point_leaves_the_others_alone() -> None:
    def fails() -> Any:
        raise KeyError("nothing here")

    found = sweep([both, spoils, coin], pairs=[([1], [2]), fails], claim=1.0, runs=RUNS, n_jobs=1)
    assert [row["verdict"] for row in found.rows] == ["REFUTED", None, None, None, "NOT_REFUTED", None]
    assert [row["mechanism"] for row in found.rows] == ["both", "both", "spoils", "spoils", "coin", "coin"]
    assert "KeyError" in found.rows[1]["error"]
    assert "changed" in found.rows[2]["error"]


@for_each("value", [np.arange(2), math.nan, object()], nightly=[{1, 2}, [math.inf]])
def test_parameters_that_no_result_can_hold_are_rows_that_say_so(value: Any) -> None:
    found = sweep(hint, parameters=[{"times": value}, {"times": 0.5}], pair=(1, 2), claim=2.0, runs=RUNS, n_jobs=1)
    assert [row["verdict"] for row in found.rows] == [None, "NOT_REFUTED"]
    assert found.rows[0]["error"].startswith("parameters.times")


def test_what_cannot_be_printed_and_an_internal_error_are_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    def fails() -> Any:
        raise Mute

    told = sweep(coin, parameters=[{}, {"times": Mute()}], pair=fails, claim=1.0, runs=RUNS, n_jobs=1)
    assert "Mute: no message" in told.rows[0]["error"]
    assert told.rows[1]["error"].endswith("for others")

    def breaks(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr("dpaudit.auditing.runner.run_audit", breaks)
    (row,) = sweep(leak, pair=(1, 2), claim=1.0, runs=RUNS, n_jobs=1).rows
    assert row["error"] == "internal error: ZeroDivisionError: of our own"


@for_each(
    ("options", "said"),
    [
        ({"runs": []}, "runs must hold at least one"),
        ({"seeds": [0, 1, 0]}, "seeds holds the same value twice, 0"),
        ({"certifiers": "coin"}, "certifiers must be one of"),
        ({"parameters": 3}, "parameters must be a mapping"),
        ({"parameters": {"times": []}}, "parameters.times must hold at least one"),
        ({"parameters": [{"times": 1.0}, {"times": 1.0}]}, "parameters holds the same value twice"),
        ({"seeds": range(1_000), "runs": range(1_000, 1_101)}, "at most 100,000 points, got 101,000"),
        ({"seeds": itertools.count()}, "at most 100,000 points"),
        ({"parameters": {name: range(10_000) for name in "abc"}}, "at most 100,000 points, got 1,000,000,000,000"),
        ({"pairs": [(1, 2)]}, "pair or pairs"),
        ({"claims": [1.0]}, "claim or claims"),
        ({"mechanisms": ["laplce"]}, "no entry 'laplce'; did you mean 'laplace'"),
        ({"mechanisms": ["laplace", "nowhere:f"]}, "'nowhere:f': there is no module 'nowhere'; install"),
        ({"mechanisms": "dpaudit.catalogue.nowhere:f"}, "no module 'dpaudit.catalogue.nowhere'; `dpaudit catalogue`"),
        ({"claim": {"leek": 1.0}}, "claims: there is no mechanism 'leek'; did you mean 'leak'"),
        ({"claim": {}}, "leak: an audit needs a claim, such as"),
        ({"pair": None}, "leak: an audit needs two datasets"),
        ({"claim": "2*time", "parameters": {"times": 1.0}}, r"'2\*time' needs a parameter 'time'; .*: times"),
        ({"parameters": {"leak": {"times": [1.0]}}}, "two sweeps and join them with"),
        ({"claim": lambda given: given}, r"TypeError.*'given'; it is called with those parameters.*, of: none"),
    ],
)
def test_a_grid_that_is_wrong_in_itself_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSpec, match=said):
        sweep(**{"mechanisms": leak, "pair": (1, 2), "claim": 1.0, "runs": RUNS, **options})


def test_every_axis_multiplies() -> None:
    options = {"runs": (1_000, 2_000), "certifier": (None, "unconditional"), "seed": (0, 1, 2)}
    claims, pairs = (PureDP(1.0), RenyiDP(2.0, 1.0), GaussianDP(1.0)), (AdjacentPair(1, 2), AdjacentPair(1, 3))
    grid = Grid((leak, coin), ({}, {"times": 2.0}), claims, pairs, {**options, "stopping": ("fixed", "anytime")})
    found = list(points(grid))
    assert len(found) == grid.size == 2 * 2 * 3 * 2 * 2 * 2 * 2 * 3
    assert [point.number for point in found] == list(range(1, grid.size + 1))
    assert all(point.error is None for point in found)  # a parameter that `coin` lacks is found where mechanisms run
    keys = {(p.name, str(p.parameters), str(p.claim), str(p.pair), *p.options.values()) for p in found}
    assert len(keys) == grid.size
    assert {point.name for point in found} == {"leak", "coin"}


def test_trainings_and_scores_are_rows_and_no_estimate_is_a_bound() -> None:
    inside, outside = (np.random.default_rng(3).normal(shift, size=400) for shift in (1.5, 0.0))
    scores = dpaudit.audit_scores(inside, outside, epsilon=0.1, methods=["clopper-pearson", "gaussian-fit"])

    def train(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return included + rng.normal(0.0, 0.5, included.size)

    trained = dpaudit.audit_training(train, canaries=300, epsilon=1.0, delta=1e-5, trainings=1)
    found = Sweep.of({"model": scores, "DP-SGD": trained})
    assert [row["verdict"] for row in found.rows] == ["REFUTED", trained.verdict.value]
    model, sgd = found.rows
    assert (model["claimed"], model["epsilon_lower"], model["p_value"]) == (0.1, scores.epsilon_lower, scores.p_value)
    assert model["estimate"] > model["epsilon_lower"]
    assert (sgd["claimed_epsilon"], sgd["epsilon_lower"], sgd["runs_used"]) == (1.0, trained.epsilon_lower, 1)
    assert sgd["delta"] == 1e-5
    both = found + Sweep.of({"again": scores})
    assert [row["mechanism"] for row in both.rows] == ["model", "DP-SGD", "again"]
    assert "estimate, not certified" in both.plot().svg
    assert both.columns.index("estimate") == both.columns.index("pair") - 1
    assert "estimate" in str(both.explain())
    with pytest.raises(InvalidSpec, match="what this figure shows: runs and a verdict on a claim that is known"):
        both.plot("power_curves")


# --- the ledger --------------------------------------------------------------------------------------------------


def test_results_are_kept_as_they_come_and_a_sweep_goes_on_from_there(tmp_path: Path) -> None:
    file, seen = tmp_path / "ledger.sqlite", []
    laplace = find("laplace")
    asked: dict[str, Any] = {"parameters": {"epsilon": [0.5, 1.0, 2.0]}, "runs": RUNS, "n_jobs": 1}

    def stops(row: dict[str, Any]) -> None:
        with Ledger(file) as ledger:
            seen.append((row["point"], len(ledger.results())))
        if row["point"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted, match=r"2 of 3 points done.*goes on from there") as stopped:
        sweep(laplace, **asked, ledger=file, progress=stops)
    assert len(stopped.value.sweep.rows) == 2  # what was done is at hand without a ledger too
    assert seen == [(1, 1), (2, 2)]  # recorded before its row is shown, and that before the next point begins
    heard: list[Any] = []
    whole = sweep(laplace, **asked, ledger=file, record=heard.append)
    assert [row["from_ledger"] for row in whole.rows] == [True, True, False]
    assert [result.spec["mechanism"]["parameters"]["epsilon"] for result in heard] == [2.0]
    assert compared(whole.rows) == compared(sweep(laplace, **asked).rows)
    assert "2 results taken from the ledger" in str(whole)
    wider = sweep(laplace, **{**asked, "seeds": [0, 7]}, ledger=file)
    assert [row["from_ledger"] for row in wider.rows] == [True, False] * 3
    assert len({row["spec_hash"] for row in wider.rows}) == 6


def test_a_function_whose_source_does_not_say_what_it_does_is_always_run(tmp_path: Path) -> None:
    def made(times: float) -> Callable[..., float]:
        return lambda data, rng: hint(data, rng, times)

    file = tmp_path / "ledger.sqlite"
    asked: dict[str, Any] = {"pair": (1, 2), "claim": 2.0, "runs": RUNS, "ledger": file, "n_jobs": 1}
    for tells in (0.5, 0.0):
        for mechanism in (made(tells), functools.partial(hint, times=tells), batched(_Scaled(tells))):
            (row,) = sweep(mechanism, **asked).rows
            assert (row["epsilon_lower"] > 0.5, row["from_ledger"]) == (tells == 0.5, False)


class _Scaled:
    """A callable with a state of its own."""

    def __init__(self, times: float) -> None:
        self.times = times

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        return np.where(rng.random(runs) < self.times, data, rng.integers(1, 3, size=runs))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of one's own, and another, in another folder, that it reads."""
    (tmp_path / "else").mkdir()
    _written(tmp_path / "else" / "swept_far.py", "TIMES = 0.5\n\n\ndef often():\n    return TIMES\n")
    text = "    return data if rng.random() < swept_far.often() else int(rng.integers(1, 3))\n"
    _written(tmp_path / "swept_here.py", f"import swept_far\n\n\ndef hint(data, rng):\n{text}")
    for folder in (tmp_path / "else", tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    yield tmp_path
    _forget()


def _written(file: Path, text: str) -> None:
    """As if written before this process began."""
    file.write_text(text)
    os.utime(file, (1e9, 1e9))
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)


def _forget() -> None:
    for name in ("swept_here", "swept_far"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


def test_what_was_changed_in_sources_or_in_memory_is_run_again(module: Path) -> None:
    """Also where the change is in a module of another folder, which the mechanism's own source does not show."""
    asked: dict[str, Any] = {"pair": (1, 2), "claim": 2.0, "runs": RUNS, "ledger": module / "l.sqlite", "n_jobs": 1}

    def told(mechanism: Any = "swept_here:hint") -> tuple[bool, bool]:
        (row,) = sweep(mechanism, **asked).rows
        return row["epsilon_lower"] > 0.5, row["from_ledger"]

    far = module / "else" / "swept_far.py"
    text = far.read_text()
    for change, found in ((text, (True, False)), (text, (True, True)), (text.replace("0.5", "0"), (False, False))):
        _written(far, change)
        _forget()
        assert told() == found
    _written(far, text)
    _forget()
    import swept_far  # type: ignore[import-not-found]
    import swept_here  # type: ignore[import-not-found]

    own = swept_far.often
    for value, often, found in (
        (0.5, own, (True, True)),
        (0.0, own, (False, False)),
        (0.5, lambda: 0.0, (False, False)),
        (0.5, own, (True, True)),
    ):
        swept_far.TIMES, swept_far.often = value, often
        assert told(swept_here.hint) == found
    (module / "swept_here.py").write_text("# edited, and not loaded again\n" + (module / "swept_here.py").read_text())
    assert [told()[1] for _ in range(2)] == [
        False,
        False,
    ]  # nothing tells whether the old or the new one ran


# --- the table ---------------------------------------------------------------------------------------------------


def test_the_table_comes_back_from_csv_as_it_was(catalogue_sweep: Sweep, tmp_path: Path) -> None:
    with catalogue_sweep.to_csv(tmp_path / "table.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == list(catalogue_sweep.columns)
    for read, row in zip(found, catalogue_sweep.rows, strict=True):
        for name in ("lower", "p_value", "true_epsilon", "proved", "time_s"):
            assert (read[name] == "" and row[name] is None) or float(read[name]) == row[name]
    frame = catalogue_sweep.to_frame()
    assert list(frame.columns) == list(catalogue_sweep.columns)
    assert frame["epsilon_lower"].notna().sum() == 4
    frame = Sweep(catalogue_sweep.without_verdict).to_frame()
    assert {str(frame[name].dtype) for name in REALS} == {"float64"}  # also where no number is known


def test_no_two_points_share_a_stream(catalogue_sweep: Sweep) -> None:
    """Neither those of one sweep nor functions of one name; a point keeps its seed in whatever sweep it stands."""
    rows = [row for row in catalogue_sweep.rows if row["verdict"] is not None]
    assert len({row["seed"] for row in rows}) == len(rows)
    assert {row["base_seed"] for row in catalogue_sweep.rows} == {1}
    again = sweep(find("laplace"), parameters={"epsilon": 2.0}, runs=20_000, seeds=[0, 1], n_jobs=1).rows
    assert again[0]["seed"] != again[1]["seed"] == catalogue_sweep.rows[2]["seed"] < 2**52
    twins = [lambda data, rng: rng.random(), lambda data, rng: rng.random()]
    first, second = sweep(twins, pair=(1, 2), claim=1.0, runs=RUNS, n_jobs=1).rows
    assert second["seed"] == first["seed"] + 1
    joined = catalogue_sweep + catalogue_sweep
    assert [row for row in joined.rows if row["verdict"] is not None] == rows
    assert joined.repeated == len(rows)
    assert f"{len(rows)} rows left out: the same answer" in str(joined)
    both = catalogue_sweep + Sweep((first,))
    assert [row["point"] for row in both.rows] == list(range(1, 14))
    other = {**first, "parameters.times": 0.5}
    assert columns((*rows, other)).index("parameters.times") == columns(rows).index("pair")
    with pytest.raises(InvalidSpec, match=r", \d+, and is another audit: sweep one of them with other seeds=...$"):
        catalogue_sweep + Sweep(tuple({**row, "fingerprint": "another"} for row in rows))


def test_the_table_is_parquet_with_its_types(catalogue_sweep: Sweep, tmp_path: Path) -> None:
    try:
        import pyarrow.parquet as parquet  # type: ignore[import-not-found]
    except ImportError:
        said = r"^Parquet needs pyarrow or polars.*; the extra \[parquet\] has it: python3"
        with pytest.raises(MissingRequirement, match=said):
            catalogue_sweep.to_parquet(tmp_path / "table.parquet")
        return
    table = parquet.read_table(catalogue_sweep.to_parquet(tmp_path / "table.parquet"))
    assert table.column_names == list(catalogue_sweep.columns)
    for name in table.column_names:
        assert table[name].to_pylist() == [row.get(name) for row in catalogue_sweep.rows]
    kinds = {field.name: str(field.type) for field in table.schema}
    assert (kinds["lower"], kinds["runs"], kinds["broken"], kinds["error"]) == ("double", "int64", "bool", "string")


def test_no_cell_is_a_formula_or_leaves_its_place() -> None:
    names = (*NAMES, "=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", '"', "a,b", "a\nb")
    rows = [{"mechanism": name, "parameters.x": name, "lower": -0.5, "upper": math.inf} for name in names]
    whole = list(csv.reader(io.StringIO(csv_text(rows))))
    assert {len(line) for line in whole} == {len(COLUMNS) + 1}
    shown = [whole[0].index(name) for name in ("mechanism", "parameters.x", "lower", "upper")]
    read = [[line[place] for place in shown] for line in whole]
    assert len(read) == len(names) + 1
    for line in read[1:]:
        assert not line[0].lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))
        assert line[0].isprintable()
        assert line[2:] == ["-0.5", "inf"]


def test_no_name_breaks_out_of_the_page(catalogue_sweep: Sweep, tmp_path: Path) -> None:
    """Names, parameters, claims and errors of a user's own, through the table, the figures and both pages."""
    asked = catalogue_sweep.rows[:4]
    rows = [
        {**row, "mechanism": name, "pair": name, "claim": name, "parameters.x": name, "error": name if odd else None}
        for odd, (row, name) in enumerate(zip(asked * len(NAMES), NAMES, strict=False))
    ]
    rows += [{**row, "verdict": None, "error": row["mechanism"]} for row in rows]
    Sweep(tuple(rows), "</title><script>x</script>").write(tmp_path)
    page = (tmp_path / "sweep.html").read_text(encoding="utf-8")
    text = (tmp_path / "sweep.md").read_text(encoding="utf-8")
    for written in (page, text, (tmp_path / "claimed-against-certified.svg").read_text(encoding="utf-8")):
        assert "<script" not in written
        assert "<b" not in written.replace("<body", "")
        assert all(each.isprintable() or each == "\n" for each in written)
    assert "onclick=x>" not in page
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1, table


def test_the_page_of_many_points_stays_small_and_has_each_number_once(catalogue_sweep: Sweep, tmp_path: Path) -> None:
    asked = [row for row in catalogue_sweep.rows if row["verdict"] is not None]
    rows = tuple({**row, "point": number} for number, row in enumerate(asked * 50, start=1))
    Sweep(rows).write(tmp_path)
    page = (tmp_path / "sweep.html").read_text(encoding="utf-8")
    assert len(page) < 40_000 + 450 * len(rows)  # of which a table and a figure for each would take twice as much
    assert page.count("<tbody>") == 3  # mechanism by mechanism, all points, the columns of the table
    assert "The same at every point: runs 20,000, " in page
