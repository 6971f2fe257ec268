"""Fourteen mistakes in one private training and three harmless changes: verdict, and how much of the loss is certified.

The audits are those of twins.toml, which `python -m dpaudit run audits/training/twins.toml` runs too, at seeds 0, 1, 2.
A mistake is to be refuted within 60 CPU seconds, at 0.8 of its exact epsilon where that is finite and at least 1.
Nothing but numpy is needed: the environment is any one.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path

import dpaudit
from audits.training.table import Row, timed
from dpaudit.catalogue import find

ENVIRONMENT = "opacus"
SPEC = Path(__file__).with_suffix(".toml")
SEEDS = (0, 1, 2)
SHARE, LEAST, MOST_S = 0.8, 1.0, 60.0


def rows() -> Iterator[Row]:
    for table in tomllib.loads(SPEC.read_text(encoding="utf-8"))["audit"]:
        entry = find(table["mechanism"].partition(":")[2]).with_parameters(table["parameters"])
        pair = dpaudit.AdjacentPair(**table["pair"])
        exact = entry.true_loss(pair.first, pair.second) or 0.0
        for seed in SEEDS:
            result, cpu_s = timed(
                lambda entry=entry, pair=pair, runs=table["runs"], seed=seed: dpaudit.audit(  # type: ignore[misc]
                    entry, pair=pair, claim=entry.claim(), runs=runs, seed=seed, n_jobs=1
                )
            )
            verdict = result.verdict.value.lower().replace(" ", "-").replace("_", "-")
            lower = result.epsilon_lower or 0.0
            enough = lower <= exact and (not LEAST <= exact < math.inf or lower >= SHARE * exact)
            share = f", {lower / exact:.2f} of it" if exact < math.inf else ""
            yield Row(
                name=f"{entry.name.partition('.')[2] or 'as it should be'}, seed {seed}",
                anchor=f"{table['expect']}; claim {entry.claim().promised(0.01):.3f}, exact {exact:.3f}",
                found=f"{verdict}, certified {lower:.3f}{share}",
                as_expected=verdict == table["expect"] and enough and cpu_s <= MOST_S,
                cpu_s=cpu_s,
            )
