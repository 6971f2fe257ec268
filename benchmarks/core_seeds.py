"""The core audits, each alone at fresh seeds: where one does not end as its spec expects, and how near it came.

`python -m benchmarks.core_seeds --store FILE` asks what `make audit` asks, an audit and a seed after the other, and
keeps a line of each in FILE: stopped, it goes on there. A line counts for the same code of dpaudit and the same
question alone. `--only NAME` takes some audits, `--seeds 4711,10001:10101` other seeds, `--lectures` the confidence of
`make lectures`. What is refuted with `--runs 200000` already needs no more of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.tables import print_table
from dpaudit import AuditResult
from dpaudit.auditing import Runner
from dpaudit.execution.engine import Engine
from dpaudit.spec.questions import Layers, SpecQuestion, read_spec, shared
from dpaudit.spec.reading import find_specs

ROOT = Path(__file__).resolve().parents[1]
REFUTED, OTHERS = range(10_001, 10_101), range(10_001, 10_011)  # written here before anybody looked
HEADER = ("audit", "expected", "seeds", "as expected", "claim", "bounds", "largest p-value", "CPU, s", "not at")


def core(*, lectures: bool, runs: int | None = None) -> list[SpecQuestion]:
    """The core audits, each at the share of the confidence that it has in its suite."""
    given = {"confidence": 0.9999 if lectures else None, "runs": runs}
    folder, layers = ROOT / "audits", Layers({name: value for name, value in given.items() if value is not None})
    files = find_specs([folder / "lectures" if lectures else folder])
    every = [each for path in files for each in read_spec(path, layers) if lectures or "core" in each.tags]
    return [each for each in shared(tuple(every))[0] if "core" in each.tags]


def answered(question: SpecQuestion) -> tuple[AuditResult, float]:
    """The result of one audit, and the CPU seconds that it took."""
    began = time.process_time()
    with Engine(1, None) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = Runner(engine).run(question)
    return result, time.process_time() - began


def lines(store: Path, questions: Sequence[SpecQuestion], seeds: Sequence[int] | None) -> Iterator[dict[str, Any]]:
    """What each audit found at each seed, from the store where it is there, and into it where it is not."""
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted((ROOT / "dpaudit").rglob("*.py")))).hexdigest()
    store.touch()
    kept = {line["of"]: line for line in map(json.loads, store.read_text(encoding="utf-8").splitlines())}
    for question in questions:
        question.check_requirements()
        expected = question.expect.value
        for seed in seeds or (REFUTED if expected == "REFUTED" else OTHERS):
            posed = replace(question, seed=seed)
            of = hashlib.sha256(f"{code} {posed!r}".encode()).hexdigest()
            if of not in kept:
                result, spent = answered(posed)
                kept[of] = {
                    "of": of,
                    "audit": question.name,
                    "seed": seed,
                    "expected": expected,
                    "verdict": result.verdict.value,
                    "claim": str(result.claim),
                    "lower": f"{result.certificate.lower:.6g}",
                    "p_value": result.certificate.p_value,
                    "event": str(result.witness.event),
                    "evidence": str(result.evidence),
                    "cpu_s": round(spent, 2),
                }
                with store.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(kept[of], ensure_ascii=False) + "\n")
            yield kept[of]


def row(given: Collection[dict[str, Any]]) -> tuple[str, ...]:
    """The lines of one audit as a row."""
    first, bounds = next(iter(given)), sorted(float(line["lower"]) for line in given)
    missed = [f"{line['seed']} ({line['lower']})" for line in given if line["verdict"] != line["expected"]]
    return (
        first["audit"],
        first["expected"],
        f"{len(given)}",
        f"{len(given) - len(missed)}",
        first["claim"],
        f"{bounds[0]:.3g} to {bounds[-1]:.3g}",
        f"{max(line['p_value'] for line in given):.2g}",
        f"{sum(line['cpu_s'] for line in given) / len(given):.1f}",
        ", ".join(missed) or "none",
    )


def show(store: Path, questions: Sequence[SpecQuestion], seeds: Sequence[int] | None) -> bool:
    """Prints the table; whether every audit ended as expected at every seed."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines(store, questions, seeds):
        found.setdefault(line["audit"], []).append(line)
    print_table("Core audits at fresh seeds, each alone", HEADER, map(row, found.values()))
    return all(line["verdict"] == line["expected"] for given in found.values() for line in given)


def main() -> int:
    """The command; 1 where an audit did not end as expected."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core_seeds", description=__doc__)
    parser.add_argument("--store", type=Path, required=True, help="the file of lines, made where it is not there")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--seeds", metavar="SEED,FIRST:BEYOND")
    parser.add_argument("--lectures", action="store_true")
    parser.add_argument("--runs", type=int, metavar="N", help="of each audit, instead of those of its spec")
    given = parser.parse_args()
    spans = [] if given.seeds is None else [part.partition(":") for part in given.seeds.split(",")]
    seeds = [seed for first, _, beyond in spans for seed in range(int(first), int(beyond or int(first) + 1))]
    asked = [
        each for each in core(lectures=given.lectures, runs=given.runs) if not given.only or each.name in given.only
    ]
    return 0 if show(given.store, asked, seeds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
