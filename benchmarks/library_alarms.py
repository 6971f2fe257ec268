"""False alarms on real libraries: eight sound controls, each audited at 200 seeds and confidence .95.

A sound control may be refuted at 5 % of the seeds, by its values or its bits. The most that chance allows is the
binomial quantile that is exceeded with probability 1e-6: 27 of 200, and 125 of all 1,600.

Each runs in the environment of its library; `make audit-libraries` makes them, and what is missing has no row.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scipy import stats

from benchmarks.tables import print_table

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES, ENVIRONMENTS = ROOT / "audits" / "libraries", ROOT / ".environments"
SEEDS, CONFIDENCE, RUNS, LUCK = 200, 0.95, 10_000, 1e-6
CONTROLS = {  # written down before they were run: one of each library, as near its claim as the library has one
    "pure_ldp/pure-ldp-1.2.0.toml": "pure-ldp 1.2.0, DEClient",
    "multi_freq_ldpy/multi-freq-ldpy-0.2.5.toml": "multi-freq-ldpy 0.2.5, GRR_Client",
    "ldp_toolbox/ldp-toolbox-0.1.3.toml": "ldp-toolbox 0.1.3, GeneralizedRandomizedResponse",
    "numpy/numpy-2.4.6.toml": "numpy 2.4.6, Laplace snapped to whole numbers",
    "diffprivlib/diffprivlib-0.6.6.toml": "diffprivlib 0.6.6, Geometric",
    "opendp/opendp-0.16.0.toml": "opendp 0.16.0, randomized response",
    "python_dp/python_dp.toml": "python-dp 1.1.5, Count",
    "tmlt_core/tmlt.core-0.20.0.toml": "tmlt.core 0.20.0, AddGeometricNoise",
}


def alarms(path: str, seeds: int) -> int:
    """At how many of the seeds the control of this file is refuted, in this environment."""
    import dpaudit
    from dpaudit.auditing import Runner
    from dpaudit.execution.engine import Engine
    from dpaudit.spec.questions import Layers, read_spec

    warnings.simplefilter("ignore")
    found = 0
    with Engine(1, None) as engine:
        for seed in range(seeds):
            layers = Layers({"runs": RUNS, "confidence": CONFIDENCE, "seed": seed})
            (question,) = (each for each in read_spec(LIBRARIES / path, layers) if each.name == CONTROLS[path])
            result = Runner(engine).run(question)
            found += result.verdict is dpaudit.Verdict.REFUTED or result.representation_refuted
    return found


def most(audits: int) -> int:
    """More false alarms than these, of so many audits, are no chance."""
    return int(stats.binom.isf(LUCK, audits, 1.0 - CONFIDENCE))


def run(quick: bool) -> None:
    """Prints the table, two environments at a time; `quick` takes a tenth of the seeds."""
    seeds = SEEDS // 10 if quick else SEEDS

    def ask(path: str) -> int | None:
        python = ENVIRONMENTS / CONTROLS[path].partition(",")[0].replace(" ", "-") / "bin" / "python"
        if not python.exists():
            return None
        command = [str(python), "-m", "benchmarks.library_alarms", path, str(seeds)]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=-1, check=True)
        return int(done.stdout.split()[-1])

    with ThreadPoolExecutor(2) as pool:
        counts = {CONTROLS[path]: found for path, found in zip(CONTROLS, pool.map(ask, CONTROLS), strict=True)}
    held = {name: found for name, found in counts.items() if found is not None}
    rows = [(name, f"{found}", f"{seeds}", f"{most(seeds)}") for name, found in held.items()]
    total, audits = sum(held.values()), seeds * len(held)
    met = total <= most(audits) and all(found <= most(seeds) for found in held.values())
    rows.append(("together", f"{total}", f"{audits:,}", f"{most(audits)}"))
    title = f"Sound controls refuted at confidence {CONFIDENCE}: {'within chance' if met else 'MORE THAN CHANCE'}"
    print_table(title, ("control", "refuted", "audits", "at most"), rows)


if __name__ == "__main__":
    print(alarms(sys.argv[1], int(sys.argv[2])))
