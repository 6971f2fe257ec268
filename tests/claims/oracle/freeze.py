"""Values of dp-accounting, Google's library, written to dp_accounting.json beside this file.

Run it in an environment of its own, where this package need not be:

    python3 -m venv /tmp/oracle
    /tmp/oracle/bin/pip install dp-accounting
    /tmp/oracle/bin/python tests/claims/oracle/freeze.py

Privacy loss distributions are discretised pessimistically, at `INTERVAL`: such an epsilon is at most INTERVAL times
the number of composed mechanisms too large, and never too small.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

INTERVAL = 1e-4
DELTAS = (1e-12, 1e-8, 1e-5, 1e-3, 0.05)
ORDERS = tuple(1.0 + x / 10.0 for x in range(1, 100)) + tuple(range(11, 64))


def gaussian() -> list[dict[str, float]]:
    """The exact profile: epsilon at delta, and delta at epsilon."""
    from dp_accounting.pld import privacy_loss_mechanism

    rows = []
    for mu in (0.01, 0.268, 1.0, 3.0, 10.0):
        loss = privacy_loss_mechanism.GaussianPrivacyLoss(standard_deviation=1.0 / mu)
        rows += [{"mu": mu, "epsilon": e, "delta": float(loss.get_delta_for_epsilon(e))} for e in (0.1, 1.0, 4.0)]
    return rows


def gaussian_epsilon() -> list[dict[str, float]]:
    """The discretised distribution of one Gaussian mechanism, and of sixteen."""
    from dp_accounting.pld import privacy_loss_distribution

    rows = []
    for mu, times in ((0.268, 1), (1.0, 1), (0.25, 16)):
        composed = privacy_loss_distribution.from_gaussian_mechanism(
            1.0 / mu, value_discretization_interval=INTERVAL
        ).self_compose(times)
        for delta in DELTAS[1:]:
            epsilon = float(composed.get_epsilon_for_delta(delta))
            rows += [{"mu": mu, "times": times, "delta": delta, "epsilon": epsilon}]
    return rows


def optimal() -> list[dict[str, float]]:
    """The k-fold composition of the extremal (epsilon, delta) pair."""
    from dp_accounting.pld import common, privacy_loss_distribution

    rows = []
    for epsilon, own, times in ((0.1, 0.0, 100), (1.0, 0.0, 5), (0.5, 1e-6, 10), (0.05, 1e-4, 33), (2.0, 0.01, 2)):
        parameters = common.DifferentialPrivacyParameters(epsilon, own)
        composed = privacy_loss_distribution.from_privacy_parameters(
            parameters, value_discretization_interval=INTERVAL
        ).self_compose(times)
        for delta in (1e-5, 1e-3, 0.05):
            found = float(composed.get_epsilon_for_delta(delta))
            if found < float("inf"):
                rows.append({"of": epsilon, "own": own, "times": times, "delta": delta, "epsilon": found})
    return rows


def renyi() -> list[dict[str, float]]:
    """Conversion of the Rényi divergences of a Gaussian mechanism, rho times the order, at many orders."""
    from dp_accounting.rdp import rdp_privacy_accountant

    rows = []
    for rho in (0.001, 0.05, 0.5, 5.0):
        for delta in DELTAS[:-1]:
            found = rdp_privacy_accountant.compute_epsilon(ORDERS, [rho * order for order in ORDERS], delta)
            rows.append({"rho": rho, "delta": delta, "epsilon": float(found[0]), "order": float(found[1])})
    return rows


def renyi_order() -> list[dict[str, float]]:
    """Conversion at one order."""
    from dp_accounting.rdp import rdp_privacy_accountant

    rows = []
    for order, level in ((2.0, 0.5), (8.0, 1.0), (1.5, 0.1), (32.0, 0.25)):
        for delta in DELTAS[:-1]:
            found = rdp_privacy_accountant.compute_epsilon([order], [level], delta)
            rows.append({"order": order, "level": level, "delta": delta, "epsilon": float(found[0])})
    return rows


def sampled() -> list[dict[str, float]]:
    """Laplace noise on a Poisson sample, for adding or removing one record."""
    from dp_accounting.pld import privacy_loss_distribution

    rows = []
    for loss, rate in ((1.0, 0.5), (1.0, 0.01), (3.0, 0.1)):
        found = privacy_loss_distribution.from_laplace_mechanism(
            1.0 / loss, value_discretization_interval=INTERVAL, sampling_prob=rate
        )
        for epsilon in (0.001, 0.005, 0.05, 0.2):
            delta = float(found.get_delta_for_epsilon(epsilon))
            rows.append({"loss": loss, "rate": rate, "epsilon": epsilon, "delta": delta})
    return rows


def composed_renyi() -> list[dict[str, float]]:
    """The accountant for several Gaussian mechanisms."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import rdp_privacy_accountant

    accountant = rdp_privacy_accountant.RdpAccountant(list(ORDERS))
    for sigma, times in ((2.0, 3), (5.0, 10)):
        accountant.compose(dp_event.GaussianDpEvent(sigma), times)
    return [{"delta": delta, "epsilon": float(accountant.get_epsilon(delta))} for delta in DELTAS[:-1]]


def main() -> None:
    parts = (gaussian, gaussian_epsilon, optimal, renyi, renyi_order, sampled, composed_renyi)
    values: dict[str, Any] = {"version": importlib.metadata.version("dp-accounting"), "interval": INTERVAL}
    values |= {part.__name__: part() for part in parts}
    target = Path(__file__).with_name("dp_accounting.json")
    target.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {target.name}: {sum(len(values[part.__name__]) for part in parts)} values")


if __name__ == "__main__":
    main()
