"""The adapters on the real libraries: every target of docs/how/adapters.md, opendp's claims, diffprivlib's streams.

    python audits/libraries/adapters.py --environments .environments

Each part runs in the environment of its library, with dpaudit from this checkout, and prints a row for each thing that
was looked at; the last line counts them, and the exit code is 1 where one is not as it should be. Verdicts of so few
runs say that the adapter works, and little about the library.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dpaudit
from dpaudit import adapters
from dpaudit.claims import Claim, claim_from_dict

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how" / "adapters.md"
ENVIRONMENTS = {  # of what a block of the page says that it needs
    "opendp": "opendp-0.16.0",
    "diffprivlib": "diffprivlib-0.6.6",
    "pure-ldp": "pure-ldp-1.2.0",
    "dp-accounting": "dp-accounting-0.6.0",
    "autodp": "autodp-0.2.3.1",
    "python-dp": "python-dp-1.1.5",
    "torch": "torch-2.13.0+cpu",
    "jax": "jax-privacy-2.0.0",
}
Row = tuple[bool, str, str]  # as it should be, what was looked at, what was found


def blocks() -> dict[str, str]:
    """The blocks of the page by the library that they need."""
    page = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r'^```python title="not run by the tests: it needs ([^"]+)"\n(.*?)^```$', page, re.M | re.S))


def targets(library: str) -> Iterator[Row]:
    """Runs a block of the page as it stands; a row for each of its targets."""
    asked, text, results = dpaudit.audit, blocks()[library], []

    def audit(*args: Any, **keywords: Any) -> dpaudit.AuditResult:
        results.append(asked(*args, **{"n_jobs": 1, **keywords}))
        return results[-1]

    dpaudit.audit = audit  # type: ignore[assignment]
    names = re.findall(r"^# target: (.*)$", text, re.M)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "block.py")  # a file, for a report quotes the source of what was audited
        source.write_text(text, encoding="utf-8")
        runpy.run_path(str(source))
    assert len(names) == len(results), f"{len(names)} targets of {library} made {len(results)} results"
    for name, result in zip(names, results, strict=True):
        found = f"{result.verdict.value}, {result.epsilon_lower:.2f} of {claim_from_dict(result.spec['claim'])}"
        yield True, f"{library}: {name}", found


# --- opendp: the claim is the map --------------------------------------------------------------------------------


def approximate(allowed: Any) -> Claim:
    """Of a pair (epsilon, delta); with delta 0 it is pure."""
    epsilon, delta = map(float, allowed)
    return dpaudit.ApproximateDP(epsilon, delta) if delta else dpaudit.PureDP(epsilon)


def concentrated(allowed: Any) -> Claim:
    """Of rho, alone or with a delta that is 0."""
    rho, delta = allowed if isinstance(allowed, tuple) else (allowed, 0.0)
    assert delta == 0.0
    return dpaudit.ZeroConcentratedDP(rho)


def measurements() -> dict[str, tuple[Callable[[], Any], Any, Any, Callable[[Any], Claim]]]:
    """By name: what makes a measurement, d_in, a pair at this distance, and the claim that its map stands for."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    pure = dpaudit.PureDP
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    votes = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    two = dp.vector_domain(dp.atom_domain(T=int), 2)
    keyed = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l01inf_distance(whole[1])

    def laplace() -> Any:
        return dp.m.make_laplace(*whole, scale=1.5)

    def gaussian() -> Any:
        return dp.m.make_gaussian(*whole, scale=1.5)

    def fixed() -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian()), 1e-6)

    def query() -> Any:
        unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
        context = dp.Context.compositor(data=[1], privacy_unit=unit, privacy_loss=loss, split_evenly_over=2)
        return context.query().count().laplace()

    return {
        "Laplace of an integer": (laplace, 1, (0, 1), pure),
        "Laplace of an integer, d_in = 3": (laplace, 3, (0, 3), pure),
        "Laplace of a float": (lambda: dp.m.make_laplace(*real, scale=1.5), 1.0, (0.0, 1.0), pure),
        "Laplace of a vector, L1": (
            lambda: dp.m.make_laplace(two, dp.l1_distance(T=int), scale=1.5),
            2,
            ([0, 0], [1, 1]),
            pure,
        ),
        "truncated geometric": (lambda: dp.m.make_geometric(*whole, scale=1.0, bounds=(0, 3)), 1, (0, 1), pure),
        "Gaussian of a float": (lambda: dp.m.make_gaussian(*real, scale=1.5), 1.0, (0.0, 1.0), concentrated),
        "discrete Gaussian, L2": (
            lambda: dp.m.make_gaussian(two, dp.l2_distance(T=float), scale=1.5),
            2.0,
            ([0, 0], [1, 1]),
            concentrated,
        ),
        "randomized response, bool": (lambda: dp.m.make_randomized_response_bool(0.75), 1, (True, False), pure),
        "randomized response, words": (lambda: dp.m.make_randomized_response(["a", "b"], 0.75), 1, ("a", "b"), pure),
        "noisy max": (
            lambda: dp.m.make_noisy_max(*votes, dp.max_divergence(), scale=2.0),
            1,
            ([0, 0], [1, 0]),
            pure,
        ),
        "noisy max, zCDP": (
            lambda: dp.m.make_noisy_max(*votes, dp.zero_concentrated_divergence(), scale=2.0),
            1,
            ([0, 0], [1, 0]),
            concentrated,
        ),
        "quantile": (
            lambda: dp.m.make_private_quantile(*rows, dp.max_divergence(), [0, 5, 9], 0.5, 2.0),
            1,
            ([9], [9, 0]),
            pure,
        ),
        "count of rows": (lambda: rows >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0), 1, ([7], [7, 7]), pure),
        "count of rows, d_in = 2": (
            lambda: rows >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0),
            2,
            ([7, 7], [7, 8]),
            pure,
        ),
        "query of a Context": (query, 1, ([7], [7, 7]), pure),
        "Approximate of Laplace": (lambda: dp.c.make_approximate(laplace()), 1, (0, 1), approximate),
        "Approximate of Gaussian": (lambda: dp.c.make_approximate(gaussian()), 1, (0, 1), concentrated),
        "Gaussian at a fixed delta": (fixed, 1, (0, 1), approximate),
        "canonical noise": (
            lambda: dp.m.make_canonical_noise(*real, d_in=1.0, d_out=(1.0, 1e-6)),
            1.0,
            (0.0, 1.0),
            approximate,
        ),
        "Laplace with a threshold": (
            lambda: dp.m.make_laplace_threshold(*keyed, scale=2.0, threshold=10),
            (1, 1, 1),
            ({"a": 3}, {"a": 3, "b": 1}),
            approximate,
        ),
        "Laplace as zCDP": (lambda: dp.c.make_pureDP_to_zCDP(laplace()), 1, (0, 1), concentrated),
    }


def opendp() -> Iterator[Row]:
    """The claim of each measurement against its map, and a short audit, which must not refute."""
    for name, (make, d_in, pair, form) in measurements().items():
        adapted = adapters.opendp(make, d_in)
        made = make()
        allowed = (made.resolve() if hasattr(made, "resolve") else made).map(d_in)
        meant, claim = form(allowed), adapted.claim
        result = dpaudit.audit(adapted, pair=pair, runs=2_000, confidence=0.9999, n_jobs=1)
        held = claim.with_relation(None) == meant and result.verdict is dpaudit.Verdict.NOT_REFUTED
        yield (
            held,
            f"opendp: {name}",
            f"map({d_in}) = {allowed}; claim {claim}, {claim.relation}; {result.verdict.value}",
        )


# --- diffprivlib: one seed, one answer ---------------------------------------------------------------------------


def things() -> dict[str, tuple[Any, dict[str, Any], tuple[Any, Any], int]]:
    """By name: a mechanism, a tool or a model of diffprivlib with its keywords, a pair, and how many runs."""
    from diffprivlib import mechanisms, models, tools

    step: dict[str, Any] = {"epsilon": 1.0, "sensitivity": 1}
    within = {**step, "lower": 0, "upper": 3}
    delta = {**step, "delta": 0.05}
    number, entire = (0.0, 1.0), (0, 1)
    found: dict[str, tuple[Any, dict[str, Any], tuple[Any, Any], int]] = {
        name: (getattr(mechanisms, name), keywords, pair, 2_000)
        for name, keywords, pair in (
            ("Laplace", step, number),
            ("LaplaceTruncated", within, number),
            ("LaplaceFolded", within, number),
            ("LaplaceBoundedDomain", within, number),
            ("LaplaceBoundedNoise", delta, number),
            ("Geometric", step, entire),
            ("GeometricTruncated", within, entire),
            ("GeometricFolded", within, entire),
            ("Gaussian", delta, number),
            ("GaussianAnalytic", delta, number),
            ("GaussianDiscrete", delta, entire),
            ("Snapping", {**within, "upper": 3.0}, number),
            ("Staircase", step, number),
            ("Uniform", {"delta": 0.05, "sensitivity": 1}, number),
            ("Binary", {"epsilon": 1.0, "value0": "a", "value1": "b"}, ("a", "b")),
            (
                "ExponentialCategorical",
                {"epsilon": 1.0, "utility_list": [("a", "b", 1), ("a", "c", 1), ("b", "c", 1)]},
                ("a", "b"),
            ),
            ("ExponentialHierarchical", {"epsilon": 1.0, "hierarchy": [["a"], ["b", "c"]]}, ("a", "b")),
        )
    }
    rows = [0.0] * 9, [0.0] * 8 + [1.0]
    bounds: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 1)}
    for name in ("mean", "var", "std", "sum", "nanmean", "nanvar", "nanstd", "nansum", "median"):
        found[name] = getattr(tools, name), bounds, rows, 1_000
    found["quantile"] = tools.quantile, {**bounds, "quant": 0.3}, rows, 1_000
    found["count_nonzero"] = tools.count_nonzero, {"epsilon": 1.0}, rows, 1_000
    found["histogram"] = tools.histogram, {"epsilon": 1.0, "bins": 3, "range": (0, 1)}, rows, 1_000
    table = [[0.0, 0.2, 0], [0.1, 0.9, 0], [0.2, 0.4, 0], [0.9, 0.1, 1], [0.8, 0.7, 1], [1.0, 0.5, 1]]
    labelled = table, [*table[:-1], [1.0, 0.5, 0]]
    without = [row[:2] for row in table], [*(row[:2] for row in table[:-1]), [0.0, 0.0]]
    known = {**bounds, "bounds": ([0, 0], [1, 1])}
    norm = {"epsilon": 1.0, "data_norm": 2.0}
    for name, keywords, pair in (
        ("GaussianNB", known, labelled),
        ("KMeans", {**known, "n_clusters": 2}, without),
        ("StandardScaler", known, without),
        ("PCA", {**known, **norm, "n_components": 1}, without),
        ("LogisticRegression", norm, labelled),
        ("LinearRegression", {"epsilon": 1.0, "bounds_X": ([0, 0], [1, 1]), "bounds_y": (0, 1)}, labelled),
        ("DecisionTreeClassifier", {**known, "classes": [0, 1], "max_depth": 2}, labelled),
        ("RandomForestClassifier", {**known, "classes": [0, 1], "max_depth": 2, "n_estimators": 2}, labelled),
    ):
        found[name] = getattr(models, name), keywords, pair, 300
    return found


def diffprivlib() -> Iterator[Row]:
    """Each thing audited twice at one seed, with 1 and with 2 workers: witness and evidence must be the same."""
    for name, (thing, keywords, pair, runs) in things().items():
        label = -1 if isinstance(pair[0], list) and isinstance(pair[0][0], list) and len(pair[0][0]) == 3 else None
        adapted = adapters.diffprivlib(thing, label=label, **keywords)
        claim = None if "epsilon" in keywords else dpaudit.ApproximateDP(0.0, keywords["delta"])
        one, two = (
            dpaudit.audit(adapted, pair=pair, claim=claim, runs=runs, confidence=0.95, seed=1, n_jobs=jobs)
            for jobs in (1, 2)
        )
        same = one.witness == two.witness and one.evidence == two.evidence and one.reproducible and two.reproducible
        found = f"{'equal' if same else 'DIFFERENT'} with 1 and 2 workers, reproducible {one.reproducible}"
        yield same, f"diffprivlib: {name}", f"{found}; {one.verdict.value}, {one.epsilon_lower:.2f}"


# --- all of them ---------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "opendp claims": ("opendp", opendp),
    "diffprivlib streams": ("diffprivlib", diffprivlib),
}


def here(part: str) -> int:
    """Runs one part in this environment."""
    warnings.simplefilter("ignore")
    find = PARTS[part][1] if part in PARTS else lambda: targets(part)
    status, began = 0, time.process_time()
    for held, name, found in find():
        print("\t".join(("ok" if held else "NOT AS IT SHOULD BE", name, found)), flush=True)
        status = status if held else 1
    print(f"# {part}: {time.process_time() - began:.0f} CPU s in this process", file=sys.stderr)
    return status


def main() -> int:
    """Runs every part in its environment and counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, default=ROOT / ".environments")
    parser.add_argument("--only", action="append", help="a part by name; may be repeated")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        return here(asked.here)
    status, rows = 0, 0
    for part in asked.only or [*blocks(), *PARTS]:
        python = (
            asked.environments.resolve() / ENVIRONMENTS[PARTS[part][0] if part in PARTS else part] / "bin" / "python"
        )
        command = [str(python), __file__, "--here", part]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)
        print(done.stdout, end="", flush=True)
        rows, status = rows + len(done.stdout.splitlines()), status or done.returncode
    print(f"{rows} rows, {'all as they should be' if status == 0 else 'NOT ALL as they should be'}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
