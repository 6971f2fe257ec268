"""Every audit of `make lectures`, small: nothing raises, no claim that holds is refuted, no bound is above the truth.

A third of them, by night all, are certified on an event that a plain search chose on runs of its own; of four spec
files, by night of each, one is audited whole, of every second one a mechanism that this refutes, of the others one that
holds its claim. At a
confidence of 1 - 1e-9 each, one of them all is refuted by chance with a probability of 1e-6 at the most. The seeds are
fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import beta

import dpaudit
from dpaudit.catalogue import Entry
from dpaudit.certify import Binned, Certificate, CoinFlip, certify, smallest_caught, suited
from dpaudit.claims import Claim, claim_of_keys
from dpaudit.data import AdjacentPair
from tests.audits.test_specs import ALL, ROOT, entry_of, losses_of, pairs_of
from tests.cases import some

CONFIDENCE = 1.0 - 1e-9
LUCK = 1e-9  # that a power computation leaves to chance
RUNS = 2_000  # of each half: one to choose an event, one to certify it
WHOLE = 8 * RUNS  # of a whole audit, where the same event would do with a tenth
SETS, CUTS, COLUMNS = 32, 15, 8  # events that are tried: sets of outputs, places to cut a column, columns
LECTURES: dict[Path, list[dict[str, Any]]] = {}
for _path, _table in ALL:
    if _path.parent == ROOT / "lectures":
        LECTURES.setdefault(_path, []).append(_table)

WHOLE_FILES = some(sorted(LECTURES), 4)
Array = npt.NDArray[Any]
Event = tuple[int, Array]  # the number of a column, and what is in the event: outputs, or the ends of an interval


@dataclass(frozen=True)
class Small:
    """What a small audit found: its certificate, whether it had to refute, and whether each dataset has one output."""

    table: dict[str, Any]
    entry: Entry
    pairs: tuple[AdjacentPair, ...]
    claim: Claim
    certificate: Certificate
    must: bool
    constant: bool


def drawn(entry: Entry, pair: AdjacentPair, seed: int) -> tuple[list[Array], Array]:
    """Outputs as columns of numbers, the first the number of the whole output, and the side of each."""
    rng = np.random.default_rng(seed)
    likely = int(rng.binomial(RUNS, 0.5))
    parts = [entry.open().call(data, n, rng) for data, n in ((pair.first, likely), (pair.second, RUNS - likely))]
    rows: list[bytes] = []
    for part in parts:
        held, masked = np.ma.getdata(part), np.ma.getmaskarray(part)
        if held.dtype == object:
            rows += [repr(row).encode() for row in held]
        else:
            rows += [a + b for a, b in zip(cut(held), cut(masked), strict=True)]
    columns = [np.array([hash(row) for row in rows])]
    whole = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
    if whole.dtype.kind in "biuf":
        flat = np.ma.filled(whole.reshape(RUNS, -1).astype(float), np.nan)
        columns += list(flat.T[:COLUMNS])
    return columns, np.arange(RUNS) >= likely


def cut(rows: Array) -> list[bytes]:
    """Each row as its bytes."""
    whole = rows.tobytes()
    width = len(whole) // len(rows)
    return [whole[place : place + width] for place in range(0, len(whole), width)]


def events(columns: list[Array], sides: Array) -> Iterator[Event]:
    """Sets of outputs that lean to one side, and the ends of a column at some places to cut it."""
    both = [Counter(columns[0][sides == side].tolist()) for side in (False, True)]
    for one, other in (both, both[::-1]):
        leaning = sorted(one, key=lambda key: (-one[key] / (other[key] + 1.0), -one[key]))
        for number in {*range(1, SETS), sum(one[key] > other[key] + 3 for key in leaning)}:
            yield 0, np.array(leaning[:number], dtype=columns[0].dtype)
    for place, column in enumerate(columns[1:], start=1):
        known = column[np.isfinite(column)]
        for cut in np.unique(np.quantile(known, np.linspace(0.02, 0.98, CUTS))) if len(known) else ():
            yield place, np.array([-np.inf, cut])
            yield place, np.array([np.nextafter(cut, np.inf), np.inf])


def inside(columns: list[Array], event: Event) -> Array:
    """Which outputs are in an event."""
    place, held = event
    if place == 0:
        found: Array = np.isin(columns[0], held)
        return found
    return np.asarray((columns[place] >= held[0]) & (columns[place] <= held[1]))


def chances(hits: Array, runs: Array, luck: float) -> tuple[Array, Array]:
    """For each event (a row) lower and upper bounds on its probability on either side."""
    low = np.where(hits > 0, beta.ppf(luck, np.maximum(hits, 1), runs - hits + 1), 0.0)
    high = np.where(hits < runs, beta.ppf(1.0 - luck, hits + 1, np.maximum(runs - hits, 1)), 1.0)
    return low, high


def small(table: dict[str, Any]) -> Small:
    """An audit without the search of audits: an event chosen on some runs, certified on as many others."""
    entry = entry_of(table)
    pairs = pairs_of(table, entry)
    claim = claim_of_keys(table["claim"]) if "claim" in table else entry.claim()
    at = claim.at_distance(pairs[0].distance)
    columns, sides = drawn(entry, pairs[0], 1)
    tried = list(events(columns, sides))
    both = np.array([~sides, sides])
    held = (inside(columns, event) for event in tried)
    hits, runs = np.array([[np.count_nonzero(found & side) for side in both] for found in held]), both.sum(1)
    low, high = chances(hits, runs, 1e-3)
    values = np.array([at.least_parameter(high[:, 1 - p], low[:, p]) for p in (0, 1)])  # by the likelier side
    p, best = np.unravel_index(int(np.argmax(values)), values.shape)
    sure, rare = chances(hits[best], runs, LUCK)
    caught = None
    if sure[p] > 0.0:
        caught = smallest_caught(at, RUNS, sure[p], confidence=CONFIDENCE, certifier=suited(at), power=1.0 - LUCK)
    must = caught is not None and float(at.least_parameter(rare[[1 - p]], sure[[p]])[0]) > caught
    fresh, others = drawn(entry, pairs[0], 2)
    found = inside(fresh, tried[best])
    (h, n), (g, m) = (
        (int((found & side).sum()), int(side.sum())) for side in ((~others, others), (others, ~others))[p]
    )
    evidence = Binned((h, n - h), (g, m - g), n, m) if suited(at).name == "binned" else CoinFlip(h, g, n, m)
    made = certify(evidence, at, CONFIDENCE, certifier=suited(at))
    constant = all(len(set(columns[0][side].tolist())) == 1 for side in both)
    return Small(table, entry, pairs, claim, made, must, constant)


def is_within(lower: float, each: Small) -> bool:
    """Whether a bound is below the truth, where that is known."""
    if lower <= 0.0 or "claim" in each.table:
        return True
    losses = losses_of(each.table["name"])
    return None in losses or lower <= max(loss for loss in losses if loss is not None) * (1.0 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(LECTURES), ids=lambda path: path.stem)
def test_the_audits_of_a_file_say_nothing_untrue(path: Path) -> None:
    found = [small(table) for table in some(LECTURES[path], len(LECTURES[path]) // 3 + 1)]
    for each in found:
        assert each.table["expect"] == "refuted" or not each.certificate.refuted, each.table["name"]
        assert each.certificate.refuted or not each.must, each.table["name"]
        assert is_within(each.certificate.lower, each), each.table["name"]
    varied = [each for each in found if not each.constant]  # the audit of constants starts processes by the hundred
    broken = [each for each in varied if each.must and each.entry.broken]
    sound = [each for each in varied if not each.entry.broken and "claim" not in each.table]
    chosen = (broken, sound)[sorted(LECTURES).index(path) % 2][:1] or [*broken, *sound][:1]
    for each in chosen if path in WHOLE_FILES else ():
        result = dpaudit.audit(
            each.entry, pairs=each.pairs, claim=each.claim, runs=WHOLE, confidence=CONFIDENCE, n_jobs=1
        )
        assert result.certificate.refuted is each.entry.broken, each.table["name"]
        assert is_within(result.certificate.lower, each), each.table["name"]


def test_small_audits_see_many_mistakes() -> None:
    """So that the power computation above does not fall silent."""
    tables = LECTURES[ROOT / "lectures" / "releases_counts.toml"]
    assert any(small(table).must for table in tables if "exact" in table["name"])
