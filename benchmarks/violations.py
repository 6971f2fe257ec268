"""The 13 privacy violations of twelve libraries (arXiv 2602.17454): what recorded noise says of them.

Each case calls its library as its users do, where it can be imported, else a twin: the shortest re-creation of the
faulty path in numpy. Leads come from replays of one pair; where there are none, an audit by fresh counts follows. The
mended twin, with the fault taken out, must not be led.

Which 13: the issues that the paper names (opacus 571, diffprivlib 105 and 106, smartnoise-sdk 622, dpmm 18, mbi 65) and
the kinds that its repository and artifact list (synthcity: size, zero noise, a weak score that is compared as it is;
MOSTLY AI: budget spent twice; dpmm: a sensitivity; NaN that passes a clip). smartnoise-sdk 621 is not here: that
odometer tells more than is spent. Where the sources do not name the line, `source` says "read from the code".
"""

from __future__ import annotations

import copy
import functools
import importlib
import importlib.machinery
import importlib.util
import logging
import math
import multiprocessing
import os
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import print_table
from dpaudit.recording.replays import analysed

Call = Callable[[Any, Any], Any]
ADD, REPLACE = dpaudit.Relation("add_or_remove_one"), dpaudit.Relation("replace_one")
ONE, SWAP = dpaudit.PureDP(1.0, relation=ADD), dpaudit.PureDP(1.0, relation=REPLACE)
GAUSSIAN = dpaudit.GaussianDP(1.0, relation=ADD)
RUNS, FEWEST, SEED = 200_000, 11, 0


@dataclass(frozen=True)
class Case:
    """A violation: how its library and its twins run, on a pair that shows it, and which kinds of lead name it."""

    name: str
    library: str  # as pip has it, with the version that shows it
    source: str
    twin: Call
    mended: Call
    pair: tuple[Any, Any]
    claim: dpaudit.Claim
    said: tuple[str, ...]
    wheel: Call | None = None
    needs: tuple[str, ...] = ()
    runs: int = RUNS  # of the audit of the wheel


def part(name: str, *absent: str) -> Any:
    """A module of a wheel without what its packages import beside it; `absent` modules, whose names are empty types."""
    names = name.split(".")
    found = importlib.machinery.PathFinder.find_spec(names[0])
    if found is None or not found.submodule_search_locations:
        raise ImportError(f"no package {names[0]}")
    root = Path(next(iter(found.submodule_search_locations)))
    for depth in range(1, len(names)):
        package = types.ModuleType(".".join(names[:depth]))
        package.__path__ = [str(root.joinpath(*names[1:depth]))]
        sys.modules.setdefault(package.__name__, package)
    for each in absent:
        module = types.ModuleType(each)
        for word in ("info", "debug", "enable_reproducible_results"):
            setattr(module, word, str)
        for word in ("DataLoader", "Distribution", "Plugin", "Schema", "Serializable"):
            setattr(module, word, type(word, (), {}))
        sys.modules[each] = module
    return importlib.import_module(name)


# --- opacus 1.6.0 -------------------------------------------------------------------------------------------------


def opacus_step(data: Any, rng: Any) -> Any:
    """The weight after one step of a training with every record in the batch."""
    import torch
    from opacus import PrivacyEngine

    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    x = torch.tensor(data, dtype=torch.float32).reshape(-1, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
    )
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
    return float(model._module.weight.detach())


def step(data: Any, rng: Any, size: int | None = None, known: bool = False) -> float:
    """The same step: gradients are clipped by their norm, and averaged over the expected size of a batch."""
    gradients = np.nan_to_num(data, nan=0.0) if known else np.array(data)
    clipped = gradients * np.minimum(1.0, 1.0 / (np.abs(gradients) + 1e-6))
    expected = size or int(len(data) * (1.0 / math.ceil(len(data) / 4)))
    return float(-(clipped.sum() + rng.normal(0.0, 1.0)) / expected)


# --- diffprivlib 0.6.6 --------------------------------------------------------------------------------------------


def diffprivlib_regression(data: Any, rng: Any) -> Any:
    from diffprivlib.models import LinearRegression

    x, y = np.array(data, float).T
    model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return model.fit(x[:, None], y).coef_


def regression(data: Any, rng: Any, ends: tuple[int, int] = (0, 0)) -> Any:
    """Noisy sums of yy, xy and xx; the sensitivity of the last looks at the lower bound twice."""
    x, y = np.array(data, float).T
    bounds = (0.0, 1.0)
    sensitivity = max(abs(bounds[ends[0]]), abs(bounds[ends[1]])) ** 2
    sums = (y @ y, 1.0), (x @ y, 1.0), (x @ x, sensitivity)
    return [value + rng.laplace(0.0, 3.0 * sensitivity) for value, sensitivity in sums]


def diffprivlib_labels(data: Any, rng: Any) -> Any:
    from diffprivlib.models import LogisticRegression

    x, labels = np.array(data, float).T
    return LogisticRegression(epsilon=1.0, data_norm=1.0, max_iter=20).fit(x[:, None], labels.astype(int)).coef_


def labels(data: Any, rng: Any, known: Any = None) -> Any:
    """A noisy count for every label; which there are is read from the data."""
    seen = [int(label) for _, label in data]
    return {label: seen.count(label) + rng.laplace(0.0, 1.0) for label in known or np.unique(seen).tolist()}


def diffprivlib_mean(data: Any, rng: Any) -> Any:
    from diffprivlib import tools

    return tools.mean(np.array(data), epsilon=1.0, bounds=(0.0, 1.0))


def mean(data: Any, rng: Any, known: bool = False) -> float:
    """A mean between bounds; NaN is in none, and passes the clip."""
    values = np.nan_to_num(data, nan=0.0) if known else data
    value = float(np.mean(np.clip(values, 0.0, 1.0))) + rng.laplace(0.0, 1.0 / len(data))
    return value if math.isnan(value) else float(min(max(value, 0.0), 1.0))


# --- smartnoise-synth 1.0.5 ---------------------------------------------------------------------------------------


def smartnoise_covariance(data: Any, rng: Any) -> Any:
    import pandas as pd

    covariance = part("snsynth.models.dp_covariance").DPcovariance
    bounds = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0]})
    return covariance(len(data), ["a", "b"], bounds, 1.0).release(pd.DataFrame(data, columns=["a", "b"]))


def covariance(data: Any, rng: Any, clip: bool = False) -> Any:
    """Noisy covariances of what was clipped, or should have been; noise by the inverse of its distribution."""
    rows = np.clip(data, 0.0, 1.0) if clip else np.array(data, float)
    u = rng.uniform(size=3)
    noise = np.where(u < 0.5, np.log(2.0 * u), -np.log(2.0 - 2.0 * u))
    return (np.cov(rows.T)[np.tril_indices(2)] + 3.0 * 2.0 / len(rows) * noise).tolist()


# --- dpmm 0.1.9 ---------------------------------------------------------------------------------------------------


@functools.cache
def privbayes(name: str, **named: Any) -> Any:
    """A model that has seen no data: to find its noise takes most of a run."""
    from dpmm.models import priv_bayes

    return getattr(priv_bayes, name)(epsilon=1.0, delta=1e-5, n_iters=1, degree=2, n_jobs=1, **named)


def dpmm_domain(data: Any, rng: Any) -> Any:
    """The largest value in a small synthetic table."""
    import pandas as pd

    model = copy.deepcopy(privbayes("PrivBayesGM", compress=False))
    model.fit(pd.DataFrame(data, columns=["a", "b"]))
    return int(model.generate(2)["a"].max())


def domain(data: Any, rng: Any, size: int | None = None) -> Any:
    """A noisy histogram of the first column; how many values it has is read from the data."""
    values = [first for first, *_ in data]
    counts = np.bincount(values, minlength=size or max(values) + 1)
    return counts + rng.normal(0.0, 4.0, len(counts))


def dpmm_score(data: Any, rng: Any) -> Any:
    """The order in which attributes join the network, each with its parent."""
    import pandas as pd
    from dpmm.models.base.mbi import Dataset, Domain

    frame = pd.DataFrame(data, columns=["a", "b", "c"])
    model = privbayes("PrivBayes", prng=None)
    found = model.select(Dataset(frame, Domain(list(frame.columns), np.array([2, 2, 2]))))
    return " ".join("".join(clique) for clique in found)


def entropy(values: Any) -> float:
    p = np.unique(values, return_counts=True, axis=0)[1] / len(values)
    return float(-np.sum(p * np.log(p)))


def score(data: Any, rng: Any, normal: bool = True) -> Any:
    """The parent of one attribute by the exponential mechanism, whose sensitivity is that of a score in nats."""
    rows, n = np.array(data), len(data)
    scores = []
    for parent in (0, 2):
        parts = entropy(rows[:, parent]), entropy(rows[:, 1])
        value = sum(parts) - entropy(rows[:, [parent, 1]])
        scores.append(0.0 if normal and min(parts) == 0.0 else value / math.sqrt(math.prod(parts)) if normal else value)
    sensitivity = 2.0 / n * math.log((n + 1) / 2.0) + (1.0 - 1.0 / n) * math.log1p(2.0 / (n - 1))
    weights = np.exp((np.array(scores) - max(scores)) / (2.0 * sensitivity))
    return int(rng.choice(2, p=weights / weights.sum()))


# --- synthcity 0.2.12 ---------------------------------------------------------------------------------------------

CORE = ("dataloader", "distribution", "plugin", "schema", "serializable")
ABSENT = ("synthcity.logger", "synthcity.utils.reproducibility", *(f"synthcity.plugins.core.{name}" for name in CORE))


def synthcity_network(data: Any, rng: Any, K: int, edges: bool = False) -> Any:  # noqa: N803  as the library has it
    import pandas as pd

    model = part("synthcity.plugins.privacy.plugin_privbayes", *ABSENT).PrivBayes(epsilon=1.0, K=K)
    model.fit(pd.DataFrame(data, columns=["a", "b"]))
    if edges:
        return len(model.network.edges)
    return {each.variable: each.get_values().ravel().tolist() for each in model.network.get_cpds()}


def network(data: Any, rng: Any, K: int, edges: bool = False, sound: bool = False) -> Any:  # noqa: N803
    """Noisy counts of the root, and whether the parent that was chosen is kept, by a score as it is."""
    rows = np.array(data)
    parts = entropy(rows[:, 0]), entropy(rows[:, 1])
    weak = not sound and min(parts) == 0.0
    if edges:
        return {"root": "ab"[int(rng.choice(2))], "edges": 0 if weak else 1}
    scale = 2.0 / 0.5 if sound else 2.0 * (2 - K) / (len(rows) * 0.5)
    return np.bincount(rows[:, 0], minlength=2) + rng.laplace(0.0, scale, 2)


# --- mbi before December 2025, mostlyai-engine 2.7.3 --------------------------------------------------------------


def jam(data: Any, rng: Any, sensitivity: float = 2.0) -> Any:
    """One selection of JAM: a marginal and whether it is measured, or taken from public data."""
    public, model, scores = (np.array([4, 0]), np.array([0, 4])), (np.array([2, 2]), np.array([4, 0])), {}
    for place, name in enumerate("ab"):
        counts = np.bincount([row[place] for row in data], minlength=2)
        error = np.abs(counts - model[place]).sum()
        scores[name, "private"] = error - 3.0
        scores[name, "public"] = error - np.abs(counts - public[place]).sum()
    weights = np.exp((np.array(list(scores.values())) + 20.0 * np.array([0, 1, 0, 0])) / (2.0 * sensitivity))
    return list(scores)[int(rng.choice(4, p=weights / weights.sum()))]


def numeric(data: Any, rng: Any, spent: float = 1.0) -> Any:
    """What is made of a numeric column: a histogram and counts, each with the whole budget."""
    bins, counts = np.bincount(np.log2(data).astype(int), minlength=8), np.bincount(data, minlength=8)[:8]
    bounds = bins + rng.laplace(0.0, 1.0 / spent, 8)
    return {"bounds": bounds, "categories": counts + rng.laplace(0.0, 1.0 / spent, 8)}


# --- the cases ----------------------------------------------------------------------------------------------------

# fmt: off
ZEROS = [(0, 0, 0)] * 2_000
TABLE = [(0, 0), (1, 1)] * 8
POINTS = [(0.2, 0.8), (0.6, 0.4)] * 5
GROUPS, RARE = [(0.5, 0), (-0.5, 1)] * 6, [(0, 0)] * 15
CASES = (
    Case("size of the data divides", "opacus 1.6.0", "issue 571", step, partial(step, size=2),
         ([1.0] * 2, [1.0]), GAUSSIAN, ("law",), opacus_step, ("opacus",), 10_000),
    Case("NaN passes the clip", "opacus 1.6.0", "artifact", step, partial(step, known=True),
         ([1.0] * 4, [1.0] * 3 + [math.nan]), dpaudit.GaussianDP(2.0, relation=REPLACE), ("untouched", "law"),
         opacus_step, ("opacus",), 2_000),
    Case("sensitivity by one bound twice", "diffprivlib 0.6.6", "issue 105", regression,
         partial(regression, ends=(0, 1)), ([(1, 0), (1, 0)], [(0, 0), (1, 0)]), SWAP, ("untouched", "law"),
         diffprivlib_regression, ("diffprivlib",), 10_000),
    Case("labels are read from the data", "diffprivlib 0.6.6", "issue 106", labels, partial(labels, known=(0, 1, 2)),
         ([*GROUPS, (0.1, 2)], GROUPS), ONE, ("untouched",), diffprivlib_labels, ("diffprivlib",), 2_000),
    Case("NaN passes the clip", "diffprivlib 0.6.6", "artifact", mean, partial(mean, known=True),
         ([0.5] * 4, [0.5] * 3 + [math.nan]), SWAP, ("untouched", "law"), diffprivlib_mean, ("diffprivlib",), 10_000),
    Case("what was clipped is not summed", "smartnoise-synth 1.0.5", "issue 622", covariance,
         partial(covariance, clip=True), (POINTS, [*POINTS[1:], (90.0, 90.0)]), SWAP, ("shift",),
         smartnoise_covariance, ("snsynth", "pandas"), 2_000),
    Case("domain is read from the data", "dpmm 0.1.9", "issue 18", domain, partial(domain, size=4),
         ([*TABLE, (3, 0)], TABLE), dpaudit.ApproximateDP(1.0, 1e-5, relation=ADD), ("untouched",),
         dpmm_domain, ("dpmm", "opendp"), 1_000),
    Case("sensitivity of another score", "dpmm 0.1.9", "read from the code", score, partial(score, normal=False),
         (ZEROS, [*ZEROS[1:], (1, 1, 0)]), SWAP, ("law",), dpmm_score, ("dpmm", "opendp"), 2_000),
    Case("size of the data scales the noise", "synthcity 0.2.12", "artifact", partial(network, K=1),
         partial(network, K=1, sound=True), (TABLE, TABLE[1:]), ONE, ("law", "shift"),
         partial(synthcity_network, K=1), ("synthcity", "pgmpy"), 300),
    Case("no noise where K is the width", "synthcity 0.2.12", "artifact", partial(network, K=2),
         partial(network, K=2, sound=True), (TABLE, TABLE[1:]), ONE, ("untouched",),
         partial(synthcity_network, K=2), ("synthcity", "pgmpy"), 300),
    Case("a weak score is compared as it is", "synthcity 0.2.12", "artifact", partial(network, K=1, edges=True),
         partial(network, K=1, edges=True, sound=True), ([*RARE, (1, 1)], [*RARE, (1, 0)]), SWAP, ("untouched",),
         partial(synthcity_network, K=1, edges=True), ("synthcity", "pgmpy"), 300),
    Case("sensitivity of a difference", "mbi at 576a637", "issue 65", jam, partial(jam, sensitivity=4.0),
         ([(0, 0), (0, 0), (1, 1), (1, 1)], [(0, 0), (0, 0), (0, 0), (1, 1)]), SWAP, ("law",)),
    Case("the budget is spent twice", "mostlyai-engine 2.7.3", "artifact", numeric, partial(numeric, spent=0.5),
         ([1, 2, 5] * 4, [1, 2, 5] * 3 + [1, 2]), ONE, ("shift",)),
)
# fmt: on


def looked_at(call: Call, case: Case, runs: int, pipe: Any) -> None:
    """In a process of its own: leads, or an audit where there are none and `runs` is not 0."""
    warnings.simplefilter("ignore")
    logging.disable()
    os.environ["TQDM_DISABLE"] = "1"
    call(case.pair[0], np.random.default_rng(SEED))  # imports its library
    record = analysed(call, *case.pair, claim=case.claim, seed=SEED)
    words = [f"{lead.kind} {lead.first} / {lead.second}" for lead in record.leads]
    if record.leads or not runs:
        named = any(lead.kind in case.said for lead in record.leads)
        pipe.send(("led" if named else "led by another kind" if record.leads else "silent", "; ".join(words)))
        return
    why = "; ".join([*record.unseen, *(f"not understood: {name}" for name in record.differs)])
    result = dpaudit.audit(call, pair=case.pair, claim=case.claim, runs=runs, n_jobs=1, seed=SEED, progress=False)
    pipe.send(("refuted" if result.verdict is dpaudit.Verdict.REFUTED else "missed", why))


def asked(call: Call, case: Case, runs: int) -> tuple[str, str]:
    """What `looked_at` sends from a forked child."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=looked_at, args=(call, case, runs, there))
    child.start()
    there.close()
    try:
        return here.recv()  # type: ignore[no-any-return]
    except EOFError:
        return "missed", "its process ended"
    finally:
        child.join()


def run(quick: bool) -> None:
    """Prints the table; exits with 1 where fewer than 11 of 13 are found, or a mended twin is led."""
    rows, found, false = [], 0, 0
    for case in CASES:
        here = case.wheel if case.wheel and all(importlib.util.find_spec(each) for each in case.needs) else None
        verdict, words = asked(here or case.twin, case, min(case.runs if here else RUNS, RUNS // 10 if quick else RUNS))
        mended, _ = asked(case.mended, case, 0)
        found += verdict.startswith(("led", "refuted"))
        false += mended != "silent"
        rows.append((case.name, case.library, case.source, "wheel" if here else "twin", verdict, words, mended))
        print(*rows[-1], sep="; ", file=sys.stderr, flush=True)
    title = f"Violations of libraries: {found} of {len(CASES)} led or refuted, {false} mended twins led"
    print_table(title, ("violation", "library", "source", "run as", "outcome", "what was said", "mended twin"), rows)
    if found < FEWEST or false:
        raise SystemExit(1)


if __name__ == "__main__":
    run("--quick" in sys.argv)
