"""Values of dp-accounting, Google's library, written to frozen_losses.json beside this file.

Run it in an environment of its own, where this package need not be:

    python3 -m venv /tmp/oracle
    /tmp/oracle/bin/pip install dp-accounting
    /tmp/oracle/bin/python tests/catalogue/freeze_losses.py

Privacy loss distributions are discretised twice, at `INTERVAL`: pessimistically, by connecting the dots, and
optimistically, so that what is true lies between the two. Both may be off by what Fourier transforms round.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

INTERVAL = 1e-4
DELTAS = (1e-9, 1e-6, 1e-3)


def subsampled() -> list[dict[str, float]]:
    def law(noise: float, rate: float, *, pessimistic: bool) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_gaussian_mechanism(noise, sampling_prob=rate, **bounded(pessimistic))

    asked = ((1.0, 0.01, 1000), (2.0, 0.1, 100), (0.7, 0.05, 10), (1.0, 0.5, 4), (4.0, 0.2, 500))
    return [row for noise, rate, steps in asked for row in both(law, steps, noise=noise, rate=rate)]


def laplace() -> list[dict[str, float]]:
    def law(epsilon: float, *, pessimistic: bool) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_laplace_mechanism(1.0 / epsilon, **bounded(pessimistic))

    asked = ((0.1, 100), (1.0, 5), (0.5, 40), (2.0, 2))
    return [row for epsilon, steps in asked for row in both(law, steps, epsilon=epsilon)]


def bounded(pessimistic: bool) -> dict[str, Any]:
    return {
        "value_discretization_interval": INTERVAL,
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
    }


def both(law: Callable[..., Any], steps: int, **given: float) -> list[dict[str, float]]:
    high, low = (law(**given, pessimistic=pessimistic).self_compose(steps) for pessimistic in (True, False))
    return [
        {
            **given,
            "steps": steps,
            "delta": delta,
            "high": float(high.get_epsilon_for_delta(delta)),
            "low": float(low.get_epsilon_for_delta(delta)),
        }
        for delta in DELTAS
    ]


def main() -> None:
    parts = (subsampled, laplace)
    values: dict[str, Any] = {"version": importlib.metadata.version("dp-accounting"), "interval": INTERVAL}
    values |= {part.__name__: part() for part in parts}
    target = Path(__file__).with_name("frozen_losses.json")
    target.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {target.name}: {sum(len(values[part.__name__]) for part in parts)} values")


if __name__ == "__main__":
    main()
