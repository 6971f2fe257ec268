"""Writes the values that other tools give for fixed counts and scores into `oracle_values.json`.

Not a test, and nothing in the tests needs it. In an environment with jax-privacy 2.0.0, privacy-estimates 0.1.0.post1
and dp-accounting 0.6.0 (jax itself is not needed):

    PYTHONPATH=. python tests/scores/oracle_values.py path/to/jax_privacy/auditing.py
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

COUNTS = ((491, 456, 44, 9), (60, 20, 80, 40), (300, 30, 970, 700), (5, 0, 20, 15))  # tp, fp, tn, fn


def scores() -> tuple[np.ndarray, np.ndarray]:
    """Two samples with many ties, without a random generator that may change."""
    steps = np.arange(400)
    return (steps * 37 % 101) / 10.0 + 2.0, (steps * 53 % 97) / 10.0


def main(auditing: str) -> None:
    from privacy_estimates import compute_eps_lo, compute_eps_lo_hi
    from privacy_estimates.utils import AttackResults

    found = importlib.util.spec_from_file_location("auditing", auditing)
    assert found is not None
    assert found.loader is not None
    jax = importlib.util.module_from_spec(found)
    sys.modules["auditing"] = jax
    found.loader.exec_module(jax)

    estimates = []
    for tp, fp, tn, fn in COUNTS:
        table = AttackResults(TP=tp, FP=fp, TN=tn, FN=fn)
        for delta in (0.0, 0.01):
            row = {"counts": [tp, fp, tn, fn], "delta": delta}
            row["beta"] = [float(v) for v in compute_eps_lo_hi(table, delta, 0.1, "beta")]
            row["beta_one"] = float(compute_eps_lo(table, delta, 0.05, "beta"))
            row["beta"] = [v if np.isfinite(v) else "inf" for v in row["beta"]]
            estimates.append(row)

    inside, outside = scores()
    auditor = jax.CanaryScoreAuditor(inside, outside)
    at = jax.Explicit(6.05)
    canary = {
        "clopper_pearson": [
            float(auditor.epsilon_clopper_pearson(0.05, d, False, threshold_strategy=at)) for d in (0, 0.01)
        ],
        "one_run": [
            float(jax._epsilon_one_run(0, m, r, v, 0.05, d))
            for m, r, v, d in ((1000, 200, 170, 0.0), (1000, 200, 170, 1e-5), (5000, 100, 95, 1e-4))
        ],
        "one_run_fdp": [
            float(jax._epsilon_one_run_fdp(0.0, m, r, v, 0.05, 1e-5)) for m, r, v in ((1000, 200, 170), (500, 500, 400))
        ],
    }
    target = Path(__file__).with_suffix(".json")
    target.write_text(json.dumps({"estimates": estimates, "canary": canary}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
