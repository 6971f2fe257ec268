"""Power, stated against measured: known leaks put into mechanisms, each place of them, each mass, each number of runs.

`python -m benchmarks.controls` prints a row for each: the loss that a report states as found with power 0.95, and how
many audits of a mechanism with just that leak refuted the claim. `--audits 20 --runs 20000` makes it smaller.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit import AdjacentPair, PureDP, Verdict, batched
from dpaudit.auditing.audit import run_stages
from dpaudit.auditing.controls import glanced, marks_of, spiked_with
from dpaudit.auditing.question import Plan, Question
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.spiked import LeakMark

CLAIM, CONFIDENCE, WIDE = PureDP(1.0), 0.999, 50.0
MASSES, RUNS, AUDITS = (0.5, 0.1, 0.01, 1e-3, 3e-4), (20_000, 200_000), 100


def _number(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + WIDE * rng.standard_normal(runs)


def _vector(data: float, runs: int, rng: np.random.Generator, entries: int = 10) -> Any:
    return data + WIDE * rng.standard_normal((runs, entries))


def _wide(data: float, runs: int, rng: np.random.Generator) -> Any:
    return _vector(data, runs, rng, 300)


def _count(data: float, runs: int, rng: np.random.Generator) -> Any:
    return np.rint(data + 4.0 * rng.standard_normal(runs)).astype(np.int64)


def _json(data: float, runs: int, rng: np.random.Generator) -> Any:
    return [f'{{"count": {each:.6f}, "kind": "noisy"}}' for each in _number(data, runs, rng).tolist()]


def _word(data: float, runs: int, rng: np.random.Generator) -> Any:
    words = np.array([f"word {number}" for number in range(100)])
    return words[(rng.random(runs) ** 2 * 100.0).astype(np.intp)].tolist()


def _either(data: float, runs: int, rng: np.random.Generator) -> Any:
    return rng.random(runs) < 0.5


HOSTS = {
    "number": _number,
    "vector of 10": _vector,
    "vector of 300": _wide,
    "count": _count,
    "JSON text": _json,
    "one of 100 words": _word,
    "two outcomes": _either,
}


def cases(names: list[str], runs: int, engine: Engine) -> Iterator[tuple[str, Plan, str, LeakMark]]:
    """Each host with each place of a leak that it has."""
    for name in names:
        spec = a_spec(batched(HOSTS[name]), runs)
        for place, mark in marks_of(glanced(spec, engine)).items():
            yield name, spec, place, mark


def a_spec(mechanism: Mechanism, runs: int) -> Plan:
    """The audit of a host."""
    return Question(CLAIM, mechanism, (AdjacentPair(1.0, 0.0),), runs=runs, confidence=CONFIDENCE).resolved()


def refuted(spec: Plan, mark: LeakMark, mass: float, loss: float, audits: int, engine: Engine) -> int:
    """How many audits refute the claim of the host with a leak of this loss and mass."""
    spiked = spiked_with(spec, mass, mass * float(np.exp(-loss)), mark)
    found = [run_stages(replace(spiked, seed=7_000 + seed), engine).verdict for seed in range(audits)]
    return found.count(Verdict.REFUTED)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", nargs="+", default=list(HOSTS), choices=list(HOSTS))
    parser.add_argument("--runs", nargs="+", type=int, default=list(RUNS))
    parser.add_argument("--masses", nargs="+", type=float, default=list(MASSES))
    parser.add_argument("--audits", type=int, default=AUDITS)
    asked = parser.parse_args()
    print(f"{'mechanism':<18}{'place':<36}{'runs':>9}{'mass':>9}{'epsilon':>9}  refuted, 0.95 stated")
    with Engine(n_jobs=1) as engine:
        for runs in asked.runs:
            for name, spec, place, mark in cases(asked.hosts, runs, engine):
                made = run_stages(spec, engine)  # of the mechanism as it is: its report states the power
                for mass in asked.masses:
                    loss = made.least_found(mass)
                    told = "" if loss is None else refuted(spec, mark, mass, loss, asked.audits, engine)
                    shown = "nothing" if loss is None else f"{loss:.3f}"
                    print(f"{name:<18}{place:<36}{runs:>9,}{mass:>9g}{shown:>9}  {told}", flush=True)


if __name__ == "__main__":
    main()
