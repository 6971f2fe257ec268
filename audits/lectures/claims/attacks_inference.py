"""Membership inference and reconstruction, without noise and against epsilon."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.attacking import SARKAR
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue.attacks import achieves, allowed, find
from dpaudit.catalogue.attacks.on_aggregates import homer_advantage, member_score, people
from dpaudit.catalogue.attacks.on_tables import Decoder, least_squares, linear_program, release
from dpaudit.catalogue.releases.counts import noise_of
from dpaudit.catalogue.releases.tables import most_queries_of_one
from dpaudit.losses.distribution import gaussian_mu

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

SEED = 1
PATIENTS, VARIANTS, DELTA = 40, 400, 0.01
BITS, COUNTS = 24, 72
EPSILONS = np.geomspace(0.1, 10.0, 25)
TOTALS = np.array([1.0, 3.0, 10.0, 30.0, 60.0, 100.0, 200.0, 400.0])


# --- membership -----------------------------------------------------------------------------------------------


def homer_with_noise(epsilon: float) -> float:
    """The advantage of the inner product test over random cohorts, on averages with the noise of the claim."""
    sigma = noise_of(PATIENTS, VARIANTS, epsilon, DELTA)
    spread = math.sqrt(((PATIENTS - 0.5) + (PATIENTS * sigma) ** 2) / VARIANTS)
    return math.erf(0.5 / spread / math.sqrt(2.0))


@functools.cache
def simulated_homer(cohorts: int = 4_000) -> float:
    """The same on exact averages, simulated: in each cohort a member and a stranger."""
    rng = np.random.default_rng(SEED)
    rows = people(2 * cohorts, VARIANTS, rng).reshape(2, cohorts, VARIANTS)
    rest = 2.0 * rng.binomial(PATIENTS - 1, 0.5, (cohorts, VARIANTS)) - (PATIENTS - 1)
    averages = (rest + rows[0]) / PATIENTS
    scores = [np.array([member_score(one, mean) for one, mean in zip(each, averages, strict=True)]) for each in rows]
    return float(np.mean(scores[0] > 0.5 / PATIENTS) - np.mean(scores[1] > 0.5 / PATIENTS))


def check_membership() -> Truth:
    seen, told = simulated_homer(), homer_advantage(PATIENTS, VARIANTS)
    few = homer_advantage(PATIENTS, 10)
    noisy = homer_with_noise(1.0)
    listed = find("membership_in_an_average")
    known = achieves(listed, listed.without, 100, SEED).advantage
    right = seen > 0.8 and abs(seen - told) < 0.04 and noisy < allowed(1.0, DELTA)
    return Truth(
        "right" if right else "wrong",
        f"The averages of {VARIANTS} yes/no attributes over {PATIENTS} people tell a member from a stranger with an "
        f"advantage of {seen:.2f} (simulated; {told:.2f} by the normal law), those of 10 attributes with {few:.2f}: "
        "each of d attributes leans 1 / n towards a member, together d / n against a spread of sqrt(d / n). With "
        f"normal noise at epsilon = 1 and delta = {DELTA} the advantage is {noisy:.2f}, where "
        f"{allowed(1.0, DELTA):.2f} is allowed. That is over people drawn at random. Between the two worlds of the "
        "list of attacks, where all else is fixed, exact averages always give the same answer, and the advantage is "
        f"{known:.3f}.",
        {"simulated": seen, "by formula": told, "ten attributes": few, "with DP": noisy, "two fixed worlds": known},
    )


def draw_membership(axes: Axes) -> None:
    shifts = [gaussian_mu(epsilon, DELTA) for epsilon in EPSILONS]
    best = [math.erf(mu / 2.0 / math.sqrt(2.0)) for mu in shifts]
    axes.plot(EPSILONS, [allowed(epsilon, DELTA) for epsilon in EPSILONS], "k--", label="allowed")
    axes.plot(EPSILONS, best, color="#a3262a", label="best test, worst two worlds")
    axes.plot(
        EPSILONS, [homer_with_noise(epsilon) for epsilon in EPSILONS], "-.", color="#2b5d8a", label="inner product"
    )
    axes.axhline(homer_advantage(PATIENTS, VARIANTS), color="#5b6168", lw=0.8, label="inner product, no noise")
    axes.set_xscale("log")
    axes.set_xlabel(f"epsilon, at delta = {DELTA}")
    axes.set_ylabel("advantage")
    axes.set_ylim(0.0, 1.4)
    axes.legend(frameon=False, ncols=2, loc="upper left")


# --- reconstruction -------------------------------------------------------------------------------------------


@functools.cache
def recovered(decoder: Decoder, epsilon: float, secrets: int) -> float:
    """The fraction of bits found, over random secrets of fair bits; the noise is that of the claim."""
    rng = np.random.default_rng(SEED)
    call = release(BITS, COUNTS, epsilon).open().call
    hidden = rng.integers(0, 2, (secrets, BITS))
    counts = np.concatenate([call(secret.tolist(), 1, rng) for secret in hidden])
    return float(np.mean(decoder(counts, BITS) == (hidden == 1)))


@functools.cache
def recovered_from(twin: str, decoder: Decoder, secrets: int) -> float:
    """The same from a release without DP."""
    rng = np.random.default_rng(SEED)
    call = release(BITS, COUNTS).twins[twin].with_parameters({"queries": COUNTS}).open().call
    hidden = rng.integers(0, 2, (secrets, BITS))
    counts = np.concatenate([np.asarray(call(secret.tolist(), 1, rng), float) for secret in hidden])
    return float(np.mean(decoder(counts, BITS) == (hidden == 1)))


def most_bits(epsilon: float) -> float:
    """The largest expected fraction of fair bits that anybody finds from an epsilon-DP release: e^eps / (1 + e^eps)."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def check_reconstruction() -> Truth:
    exact = {name: recovered_from("exact", decoder, 20) for name, decoder in DECODERS.items()}
    bounded = {name: recovered_from("bounded_noise", decoder, 20) for name, decoder in DECODERS.items()}
    private = recovered(least_squares, 1.0, 2_000)
    off = 6.0 * 0.5 / math.sqrt(2_000 * BITS) * 3.0  # the bits of one secret share their noise
    right = min(exact.values()) == 1.0 and private < most_bits(1.0) + off
    b = most_queries_of_one(BITS, COUNTS)
    return Truth(
        "right" if right else "wrong",
        f"From {COUNTS} exact counts over random subsets of {BITS} people both decoders find "
        f"{min(exact.values()):.0%} of the secret bits; from counts that are off by up to 1, least squares finds "
        f"{bounded['least squares']:.0%} and the linear program {bounded['linear program']:.0%}. With epsilon = 1 for "
        f"all counts together (Laplace noise of scale {b}, as one person is in {b} counts) least squares finds "
        f"{private:.0%}, where a coin finds 50% and nobody can expect more than e^epsilon / (1 + e^epsilon) = "
        f"{most_bits(1.0):.0%}.",
        {**{f"exact, {name}": value for name, value in exact.items()}, "with DP": private, "most": most_bits(1.0)},
    )


DECODERS: dict[str, Decoder] = {"least squares": least_squares, "linear program": linear_program}


def draw_reconstruction(axes: Axes) -> None:
    axes.plot(TOTALS, [recovered(least_squares, e, 400) for e in TOTALS], "o-", color="#a3262a", label="least squares")
    axes.plot(TOTALS, [recovered(linear_program, e, 15) for e in TOTALS], "s-", color="#2b5d8a", label="linear program")
    axes.plot(TOTALS, [most_bits(e) for e in TOTALS], "k--", label="most that epsilon allows")
    axes.axhline(0.5, color="#5b6168", lw=0.8, label="a coin")
    axes.set_xscale("log")
    axes.set_xlabel(f"epsilon of {COUNTS} counts together")
    axes.set_ylabel("fraction of the bits found")
    axes.legend(frameon=False)


INFERENCE = (
    Statement(
        "membership",
        f"{SARKAR}, 'Aggregate functions'",
        "From an aggregate one can find whether a known person is in the dataset",
        "right",
        ("computed", "audited"),
        check_membership,
        (
            "average of six attributes, exact",
            "average of six attributes, with the noise of one",
            "average of six attributes, with normal noise",
        ),
        Figure(
            f"Membership in an average of {VARIANTS} attributes over {PATIENTS} people: the advantage of the inner "
            "product test and of the best test, with normal noise calibrated to epsilon, below what epsilon allows.",
            draw_membership,
        ),
        quote="Membership inference attacks ... Find if a known person was present in the dataset",
    ),
    Statement(
        "reconstruction",
        f"{SARKAR}, 'Aggregate functions'",
        "Parts of the dataset can be worked out from aggregates",
        "right",
        ("computed", "audited"),
        check_reconstruction,
        (
            "counts over six subsets, exact",
            "counts over six subsets, each with the noise of one",
            "counts over six subsets, with noise for all",
        ),
        Figure(
            f"Reconstruction of {BITS} secret bits from {COUNTS} noisy counts: the fraction found by each decoder, "
            "against the epsilon of all counts together. Epsilon bounds what anybody can find, whatever they compute.",
            draw_reconstruction,
        ),
        quote="Data reconstruction attack ... Deduce part of the dataset from aggregate",
    ),
)
