"""The specs under audits/: each reads, each reference leads somewhere, each expectation is what theory says."""

from __future__ import annotations

import ast
import math
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import dpaudit
from dpaudit.catalogue import Entry, entries
from dpaudit.certify import smallest_caught, suited
from dpaudit.claims import Claim, GaussianDP
from dpaudit.data import AdjacentPair, stock_pairs
from dpaudit.losses.comparisons import below, density, halting, panels, winning
from dpaudit.mechanisms.importing import import_reference
from dpaudit.spec.questions import read_spec
from dpaudit.spec.reading import find_specs
from tests.cases import for_each

ROOT = Path(__file__).parents[2] / "audits"
SPECS = sorted(find_specs([ROOT]))
CATALOGUE = "dpaudit.catalogue."


def tables(*paths: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in paths:
        yield from ((path, table) for table in tomllib.loads(path.read_text(encoding="utf-8"))["audit"])


def reference_of(table: dict[str, Any]) -> str:
    """What an audit runs, `module:function`; of a command `python module.py function`."""
    mechanism = table["mechanism"]
    if isinstance(mechanism, str):
        return mechanism
    _, file, name = mechanism["command"]
    return f"{Path(file).stem}:{name}"


ALL = list(tables(*SPECS))
NAMES = [table["name"] for _, table in ALL]
CORE = {table["name"]: table for _, table in ALL if "core" in table["tags"]}
OWN = [(path, table) for path, table in ALL if reference_of(table).startswith(CATALOGUE) and "claim" not in table]
CURVES = [
    table
    for _, table in ALL
    if reference_of(table).startswith(CATALOGUE) and set(table.get("claim", {})) & {"mu", "rho", "order"}
]
LIBRARIES = [(path, table) for path, table in ALL if path.is_relative_to(ROOT / "libraries")]
LEAST = 1.15  # times its claim: what a broken mechanism loses at the least on the pair that is audited


def entry_of(table: dict[str, Any]) -> Entry:
    entry: Entry = import_reference(table["mechanism"])
    return entry.with_parameters(table.get("parameters", {}))


def pairs_of(table: dict[str, Any], entry: Entry) -> tuple[AdjacentPair, ...]:
    """The pairs of an audit that writes them down or names a pattern; else the entry's own."""
    if "pattern" in table:
        return stock_pairs(table["pattern"], **table["pattern_parameters"])
    written = table.get("pairs", [table["pair"]] if "pair" in table else [])
    return tuple(AdjacentPair(**pair) for pair in written) or (entry.pair,)


@cache
def losses_of(name: str) -> tuple[float | None, ...]:
    """The exact losses of the pairs of an audit of the catalogue."""
    (table,) = (table for _, table in ALL if table["name"] == name)
    entry = entry_of(table)
    return tuple(entry.true_loss(pair.first, pair.second) for pair in pairs_of(table, entry))


@for_each("path", SPECS, ids=lambda path: path.name)
def test_a_spec_reads_and_its_names_are_its_own(path: Path) -> None:
    questions = read_spec(path)
    assert [question.name for question in questions] == [table["name"] for _, table in tables(path)]
    assert all(question.tags for question in questions)


def test_names_and_core_audits() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {name for name, table in CORE.items() if table["expect"] == "refuted"} == set(SHOWN_BY)
    assert len(CORE) >= 19
    assert sum(table["runs"] for table in CORE.values()) <= 30_000_000


def test_every_mechanism_of_the_catalogue_is_audited_with_the_lectures_or_as_training() -> None:
    rooms = ROOT / "lectures", ROOT / "training"
    audited = {table["mechanism"] for path, table in ALL if path.parent in rooms}
    catalogue = {each.reference for entry in entries() for each in (entry, *entry.twins.values())}
    missing = sorted(catalogue - audited)
    assert not missing, f"audit them in audits/lectures/: {', '.join(missing)}"
    assert all("lectures" in table["tags"] for path, table in ALL if path.is_relative_to(ROOT / "lectures"))


def is_as_it_stands(table: dict[str, Any]) -> bool:
    """Whether an audit is of an entry's own pair and parameters, whose loss `tests/catalogue/test_entries.py` holds."""
    entry, (first, *others) = entry_of(table), pairs_of(table, entry_of(table))
    own = import_reference(table["mechanism"])
    return not others and (first.first, first.second) == own.default_pair and entry.values() == own.values()


def test_a_catalogue_audit_expects_the_verdict_of_its_entry() -> None:
    assert not [table["name"] for _, table in OWN if table["expect"] != entry_of(table).expect]


OTHERS = [(path, table) for path, table in OWN if not is_as_it_stands(table) and path.stem != "benchmark"]
THEMSELVES = [(path, table) for path, table in OWN if is_as_it_stands(table)]


@for_each(("path", "table"), [*OTHERS, *THEMSELVES[::8]], nightly=THEMSELVES)
def test_a_catalogue_audit_has_the_loss_that_it_states(path: Path, table: dict[str, Any]) -> None:
    """The published benchmark has a test of its own, `literature/test_benchmark_rows.py`."""
    entry = entry_of(table)
    claim = entry.claim().at_distance(pairs_of(table, entry)[0].distance)
    known = [loss for loss in losses_of(table["name"]) if loss is not None]
    if not known:
        return
    loss, promised = max(known), claim.promised(claim.delta)
    assert loss >= LEAST * promised if entry.broken else loss <= promised * (1 + 1e-9)
    block = path.read_text(encoding="utf-8").partition(f'name = "{table["name"]}"')[2].partition("[[audit]]")[0]
    stated = re.search(r"# exact loss (\d+(?:\.\d+)?)", block)
    if stated is not None and math.isfinite(loss):
        assert loss == pytest.approx(float(stated[1]), abs=5.1e-5)


@for_each("table", CURVES, ids=[table["name"] for table in CURVES])
def test_a_gaussian_audit_expects_what_its_sigma_says(table: dict[str, Any]) -> None:
    """The exact mu of the pair is the shift over sigma (Dong, Roth & Su 2022, theorem 2.7)."""
    assert table["mechanism"].endswith(":gaussian")
    given, pair, claim = table["parameters"], table["pair"], table["claim"]
    sigma = given["sensitivity"] * math.sqrt(2.0 * math.log(1.25 / given["delta"])) / given["epsilon"]
    mu, steps = abs(pair["first"] - pair["second"]) / sigma, pair.get("distance", 1)
    promised = {"mu": steps * claim.get("mu", 0.0), "rho": steps**2 * claim.get("rho", 0.0)}
    kept = {
        "mu": mu <= promised["mu"],
        "rho": mu**2 / 2.0 <= promised["rho"],
        "order": claim.get("order", 0.0) * mu**2 / 2.0 <= claim.get("epsilon", 0.0),
    }
    (form,) = set(claim) & set(kept)
    assert table["expect"] == ("not-refuted" if kept[form] else "refuted")


@for_each(("path", "table"), LIBRARIES, ids=[table["name"] for _, table in LIBRARIES])
def test_a_library_audit_names_a_function_beside_it(path: Path, table: dict[str, Any]) -> None:
    """Read, not imported: the library need not be installed where the tests run."""
    module, name = reference_of(table).split(":")
    tree = ast.parse((path.parent / f"{module}.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    values = {name.id for target in assigned for name in ast.walk(target) if isinstance(name, ast.Name)}
    assert name in functions | values
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(each is not None and each.startswith("dpaudit") for each in imported), (
        "public names only: dpaudit.NAME"
    )
    environment = tomllib.loads(path.read_text(encoding="utf-8")).get("environment")
    if environment is None:
        pinned = (path.parent / "requirements.txt").read_text(encoding="utf-8")
        assert all("==" in line for line in pinned.splitlines())
        assert table["requires"]
    else:
        assert "==" in environment["requirements"][0]


# --- power: a broken mechanism that is not refuted would be a failed suite, so each has an event that shows it --------


def half_noise() -> tuple[float, float]:
    """The count above 10."""
    return 0.5, math.exp(-2) / 2


def chances(law: Callable[[Any], Any], place: int, *pair: list[float]) -> tuple[float, float]:
    """How likely an outcome is on either side."""
    first, second = (float(law(np.array(answers, float))[place]) for answers in pair)
    return first, second


def value_released() -> tuple[float, float]:
    """Nine bottoms, then a top of value 1 or less."""

    def chance(answers: list[int]) -> float:
        _, nodes, weights = panels([0.0, 1.0, *answers], 1.0, 6.0)
        top = below(1.0 - answers[9], 2.0) - below(nodes - answers[9], 2.0)
        bottoms = np.prod([below(nodes - answer, 2.0) for answer in answers[:9]], axis=0)
        return float(np.sum(weights * density(nodes, 1.0) * bottoms * np.where(nodes < 1.0, top, 0.0)))

    return chance([-1] * 9 + [0]), chance([0] * 9 + [-1])


SHOWN_BY: dict[str, Callable[[], tuple[float, float]]] = {
    "noisy count, half the noise": half_noise,
    "noisy count, half the noise, stopped as soon as it is clear": half_noise,
    "noisy count, uniform noise on [0, 5]": lambda: (0.2, 0.0),  # above 14, which nine people never give
    # above 10: one half, against its tail from 2
    "Gaussian noise, 5 % less than GDP needs, eight steps apart": lambda: (0.5, float(ndtr(-8.0 / 6.215))),
    # the count of those that the person is not in comes out on top
    "Report Noisy Max, half the noise": lambda: chances(lambda q: winning(q, 0.5), 4, [0] * 5, [1, 1, 1, 1, 0]),
    # ten bottoms; and a bottom, then a top
    "Sparse without threshold noise": lambda: chances(lambda q: halting(q, 0.0, 0.0, 4.0), 10, [-1] * 10, [0] * 10),
    "Sparse without query noise": lambda: chances(lambda q: halting(q, 0.0, 4.0, 0.0), 1, [0, 1, 0, 1], [1, 0, 1, 0]),
    "Sparse with the noisy value released": value_released,
}


@for_each("name", SHOWN_BY)
def test_a_broken_mechanism_of_the_core_is_caught_with_power_to_spare(name: str) -> None:
    """At the share of a suite confidence of 0.99, with power 0.99999, on half of the runs: search may miss the best."""
    likelier, rarer = SHOWN_BY[name]()
    table = CORE[name]
    runs = table["runs"]
    claim: Claim = entry_of(table).claim()
    if "mu" in table.get("claim", {}):
        claim = GaussianDP(table["claim"]["mu"]).at_distance(table["pair"]["distance"])
    confidence = 1 - 0.01 / len(CORE)
    least = smallest_caught(claim, runs // 2, likelier, confidence=confidence, certifier=suited(claim), power=0.99999)
    assert least is not None
    assert rarer == 0.0 or claim.least_parameter(np.array([rarer]), np.array([likelier]))[0] > least


@pytest.mark.long
@for_each(
    "name", ["the same seed in every step", "divided by the expected batch size"], nightly=["NaN passes the clip"]
)
def test_a_mistake_without_a_finite_loss_is_found_and_a_harmless_change_is_not(name: str) -> None:
    """Audits of private training with 0.5 % of their runs, at a confidence of 1 - 1e-9."""
    (table,) = (table for _, table in ALL if table["name"] == f"Private training, {name}")
    entry, (pair,) = entry_of(table), pairs_of(table, entry_of(table))
    runs = table["runs"] // 200
    result = dpaudit.audit(entry, pair=pair, claim=entry.claim(), runs=runs, confidence=1 - 1e-9, n_jobs=1)
    assert result.certificate.refuted is entry.broken
