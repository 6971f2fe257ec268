"""The analyst in the loop: queries chosen by the answers so far, their privacy and their accuracy."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims import bounds
from audits.lectures.claims.adaptive_example import place
from audits.lectures.claims.holdout import EPOCH, holdouts
from audits.lectures.claims.simulations import VOTES, Holdout, followed
from audits.lectures.claims.sparse import of_bound
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.catalogue.adaptive.subsets import ANALYSTS, Readings
from dpaudit.claims import PureDP, compose_optimal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
Records = list[list[float]]

FEATURES, TAU, BUDGET, SIGMA, SEED = 201, 0.25, 4, 0.0017, 1
SIZES = {100: 12, 200: 12, 400: 12, 800: 8, 3_200: 4, 48_000: 2}  # of both sets, with how many runs there are
ASKED = FEATURES + len(VOTES)


def threshold_at(n: int) -> float:
    """Wide enough for features that nobody chose: their averages differ by 0.7 / sqrt(n) in both sets."""
    return 0.05 + (2.5 / math.sqrt(n) if n < 48_000 else 0.0)


@functools.cache
def interactions() -> dict[int, list[dict[str, Floats]]]:
    """By the size of the sets, how far the answers of each run are off."""
    rng = np.random.default_rng(SEED)
    return {
        n: [followed(n, Holdout(n, FEATURES, FEATURES, threshold_at(n), SIGMA, BUDGET), rng) for _ in range(runs)]
        for n, runs in SIZES.items()
    }


def off(n: int, name: str) -> float:
    """The share of the runs in which some answer is more than tau off."""
    return float(np.mean([np.max(np.abs(run[name])) > TAU for run in interactions()[n]]))


# --- the checks -----------------------------------------------------------------------------------------------


def follower(features: int) -> tuple[Records, Records]:
    """Four records, of which one comes to agree with its label in all features: their counts rise, the vote falls."""
    agrees = [1.0] * (features + 1)
    return [*[agrees] * 3, [0.0] * features + [1.0]], [agrees] * 4


def fixed_sequences(pair: tuple[Records, Records], name: str, halts: int) -> float:
    """The largest loss of Sparse at epsilon = 1 on a sequence of queries that the analyst can come to ask."""
    analyst, largest = ANALYSTS[name], 0.0
    for bits in itertools.product((0, 1), repeat=analyst.many(pair[0])):
        if sum(bits) > halts:
            continue
        readings: Readings = ()
        answers: list[list[float]] = [[], []]
        for bit in bits:
            for told, data in zip(answers, pair, strict=True):
                told.append(sum(map(analyst.asks(readings), data)))
            readings = (*readings, analyst.read(bool(bit), bit))
        loss = find("sparse").true_epsilon(*answers, {"threshold": 2.0, "c": halts})
        largest = max(largest, loss or 0.0)
    return largest


def check_sparse() -> Truth:
    entry = find("adaptive_sparse")
    losses = {k: float(entry.true_loss(*follower(k)) or 0.0) for k in (2, 4, 8, 16)}
    rng = np.random.default_rng(SEED)
    over, cost = 0.0, -math.inf
    for name in ("follows", "repeats"):
        for c in (1, 2):
            data = rng.integers(0, 2, (4, 4 if name == "follows" else 8)).astype(float)
            pair = data.tolist(), [*data[:-1].tolist(), (1.0 - data[-1]).tolist()]
            found = float(entry.true_loss(*pair, {"analyst": name, "threshold": 2.0, "c": c}) or 0.0)
            over, cost = max(over, found), max(cost, found - fixed_sequences(pair, name, c))
    verdict = of_bound(max(losses.values()), 1.0) if over <= 1.0 and cost <= 1e-9 else "wrong"
    again = find("adaptive_sparse.no_threshold_noise")
    repeated = again.true_loss([[0.0] * 8, [1.0] * 8], [[1.0] * 8] * 2, {"analyst": "repeats", "threshold": 1.0})
    return Truth(
        verdict,
        "What is asked next follows from the tops and bottoms so far, so a transcript is one of a fixed sequence of "
        "queries, and its loss at most that of the worst sequence (no excess over all that two analysts can come to "
        f"ask, at c = 1 and 2). An analyst who asks of k features and then for the vote of those kept reaches it: "
        f"{losses[4]:.4f} at k = 4, {losses[16]:.4f} at k = 16, of epsilon = 1. Without threshold noise one who asks "
        f"the same eight times over learns {repeated:.2f}.",
        {"excess of adaptivity": cost, **{f"k = {k}": loss for k, loss in losses.items()}},
    )


def check_laplace() -> Truth:
    entry, single = find("adaptive_laplace"), find("adaptive_laplace.columns_as_disjoint")
    pair, epsilon = entry.default_pair, float(entry.values()["epsilon"])
    whole, queries = float(entry.true_loss(*pair) or 0.0), len(pair[0][0])
    summed = float(single.true_loss(*pair) or 0.0) / epsilon
    k, each, delta = 10_000, 0.0002, 1e-6
    root = compose_optimal(PureDP(each), k).epsilon_at(delta) / (each * math.sqrt(k))
    four = compose_optimal(PureDP(each), 4 * k).epsilon_at(delta) / (each * math.sqrt(4 * k))
    proportional = math.isclose(whole, epsilon) and math.isclose(summed, queries)
    return Truth(
        "right and tight" if proportional and abs(four / root - 1.0) < 0.1 else "wrong",
        f"An analyst who asks of three features, each for epsilon, and then for the vote of those that seem to agree, "
        f"can learn {summed:.4f} epsilon from the {queries} answers: the losses of adaptively chosen queries add up, "
        f"and are reached. With {queries} times the noise it is {whole / epsilon:.4f} epsilon. At delta = {delta:g} "
        f"many small ones cost a multiple of sqrt(k) epsilon instead: {root:.2f} of it for k = {k:,} at epsilon = "
        f"{each:g}, {four:.2f} for four times as many.",
        {"summed": summed, "whole": whole / epsilon, "over the root": root},
    )


def check_interaction() -> Truth:
    rest = [[1, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    followed_by = [[*map(float, record), 1.0] for record in [*rest, [1, 1, 1, 1], [1, 1, 1, 0]]]
    numbers = [[each / 10.0] for each in (1, 2, 3, 3, 4, 5, 7, 8, 9)]
    trained = [[0.0, 0.0, 0.0, 1.0, 1.0]] * 2 + [
        [0.0] * 4 + [1.0],
        [0.0, 1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 1.0, 1.0],
    ]
    asked: dict[str, tuple[tuple[Records, Records], dict[str, object]]] = {
        "in order": (holdouts(EPOCH), {}),
        "repeats": (([[1.0] * 8] * 5 + [[0.0] * 8] * 5, [[1.0] * 8] * 6 + [[0.0] * 8] * 4), {}),
        "follows": (([*followed_by, [0.0] * 4 + [1.0]], [*followed_by, [1.0] * 5]), {"trained": trained}),
        "bisects": (
            ([*numbers, [0.05]], [*numbers, [0.95]]),
            {"trained": [[0.7], [0.8], [0.9], [0.9], [0.9]], "threshold": 0.1},
        ),
    }
    losses = {
        name: float(find("thresholdout").true_loss(*pair, {"analyst": name, "budget": 1, **given}) or 0.0)
        for name, (pair, given) in asked.items()
    }
    exact = find("thresholdout.exact_value").true_loss(*asked["follows"][0], {"analyst": "follows", "trained": trained})
    return Truth(
        of_bound(max(losses.values()), 1.0) if exact == math.inf else "wrong",
        "The whole interaction is what is private: all answers, and with them all that was asked. Where an analyst "
        "reads an answer as one of finitely many things its exact loss is the worst of its transcripts: at B = 1 and "
        f"2 B / (sigma n) = 1 it is {losses['follows']:.3f} for one who asks of four features and then for the vote of "
        f"those kept, {losses['bisects']:.3f} for one who looks for a median, {losses['repeats']:.3f} for one who "
        f"asks the same until the holdout set answers, and {losses['in order']:.4f} for twelve queries below the "
        "threshold and one above, chosen in advance. Without noise on the values it has no bound.",
        losses,
    )


def check_dependent() -> Truth:
    """A query chosen by the answers of an exact holdout set, and the same query on fresh data."""
    runs = interactions()[400]
    fixed = np.concatenate([np.abs(run["direct"][:FEATURES]) for run in runs])
    chosen = np.array([run["direct"][FEATURES] for run in runs])
    union = ASKED * bounds.hoeffding(400, 0.15)
    beyond = float(np.mean(chosen > 0.15))
    right = float(np.max(fixed)) < 0.15 and beyond == 1.0 and union < 1e-5
    return Truth(
        "right" if right else "wrong",
        f"{len(runs)} times, 400 records with {FEATURES} features that say nothing of the label: each feature's "
        f"agreement on the sample is {np.mean(fixed):.3f} off on average, and none is more than {np.max(fixed):.2f} "
        f"off. The vote of all of them, each turned the way the sample leans, is {np.mean(chosen):.2f} off on the same "
        f"sample. Had these {ASKED} queries been known in advance, one of them would be 0.15 off with probability "
        f"{union:.0e} at most (Hoeffding's bound for each, added up); chosen, it was so every time.",
        {"fixed": float(np.mean(fixed)), "chosen": float(np.mean(chosen)), "union bound": union},
    )


def check_multiple_testing() -> Truth:
    from scipy.stats import binom

    n, tau, share = 400, 0.1, 0.0
    one = float(binom.sf(math.floor(n * (0.5 + tau) + 1e-9), n, 0.5)) * 2.0
    for queries in (1, 10, 100):
        exact = -math.expm1(queries * math.log1p(-one))
        share = max(share, exact / (queries * bounds.hoeffding(n, tau)))
    m = 100
    independent, bound = -math.expm1(m * math.log1p(-one)), m * bounds.hoeffding(n, tau)
    return Truth(
        "right" if 0.0 < share <= 1.0 else "wrong",
        f"The chances of m hypotheses add up at most: m 2 exp(-2 n tau^2). For {m} independent ones on n = {n} fair "
        "bits, one is more than "
        f"{tau:g} off with probability {independent:.4f}, and the bound is {bound:.4f}: m costs no more than ln m in "
        "n tau^2.",
        {"independent": independent, "bound": bound},
    )


def check_accuracy() -> Truth:
    large = max(SIZES)
    told = {n: bounds.thresholdout_failure(n, ASKED, BUDGET, threshold_at(n), SIGMA, TAU) for n in SIZES}
    direct, private = ({n: off(n, name) for n in SIZES} for name in ("direct", "Thresholdout"))
    answers = [np.abs(run["Thresholdout"]) for runs in interactions().values() for run in runs]
    worst = max(float(np.max(np.abs(run["Thresholdout"]))) for n in SIZES if n >= 400 for run in interactions()[n])
    whole = sum(len(each) == ASKED for each in answers)
    epsilon = 2.0 * BUDGET / (SIGMA * large)
    holds = all(private[n] <= told[n] for n in SIZES) and told[large] < 0.05 and direct[100] == 1.0 and worst < TAU
    return Truth(
        ("right and tight" if private[large] > 0.9 * told[large] else "right and loose") if holds else "wrong",
        "The guarantee, put together from the slides: epsilon = 2 B / (sigma n), the corollary for each of m queries, "
        f"and the tails of the noises. With m = {ASKED}, B = {BUDGET}, sigma = {SIGMA:g} and T = "
        f"{threshold_at(large):g} some answer is more than tau = {TAU:g} off with probability {told[large]:.3f} at "
        f"most at n = {large:,} holdout records, and less at more (epsilon = {epsilon:.3f}). Measured (at smaller n "
        f"with T = 0.05 + 2.5 / sqrt(n)) on an analyst who asks of {FEATURES} useless features and then three votes of "
        f"those it likes best: some answer was more than tau off in {private[100]:.0%} of the interactions at n = 100 "
        f"(asked directly, in {direct[100]:.0%}), in {private[200]:.0%} at n = 200 ({direct[200]:.0%}), and in none "
        f"at the larger n tried, from 400 on, where the largest error of all answers was {worst:.2f}; {whole} of "
        f"{len(answers)} "
        "interactions came to their end within the budget. The theorem of Dwork et al. (2015, holdout reuse), which is "
        "put together likewise, has T = 3 tau / 4 and sigma = tau / (96 ln(4 m / beta)), here "
        f"{TAU / (96.0 * math.log(4.0 * ASKED / 0.05)):.5f} at beta = 0.05: less noise, so more records.",
        {"bound": told[large], "worst": worst, "direct at 100": direct[100], "epsilon": epsilon},
    )


def draw_accuracy(axes: Axes) -> None:
    sizes = np.unique(np.geomspace(100, 400_000, 60).astype(int))
    told = [bounds.thresholdout_failure(int(n), ASKED, BUDGET, 0.05, SIGMA, TAU) for n in sizes]
    axes.semilogx(sizes, told, "k--", label="bound for Thresholdout")
    axes.semilogx([*SIZES], [off(n, "direct") for n in SIZES], "o-", color="#a3262a", label="asked directly")
    axes.semilogx([*SIZES], [off(n, "Thresholdout") for n in SIZES], "s-", color="#2b5d8a", label="Thresholdout")
    axes.set_xlabel("records of the holdout set")
    axes.set_ylabel(f"runs with an answer more than {TAU:g} off")
    axes.legend(frameon=False)


ANALYST = (
    Statement(
        name="multiple-testing",
        place=place("'The problem of generalization in data analysis'"),
        says="hypotheses that are known in advance: multiple testing is easy to account for",
        quote=(
            "If the set of all tested hypotheses is known and independent of the holdout set, then it is easy to "
            "account for such multiple testing."
        ),
        verdict="right",
        how=("derived", "computed"),
        check=check_multiple_testing,
    ),
    Statement(
        name="chosen-queries-not-close",
        place=place("'Model description (cont.)'"),
        says=r"chosen adaptively, $\phi$ depends on the data, and $\mathcal{E}_S[\phi]$ may be far from "
        r"$\mathcal{P}[\phi]$",
        quote=(
            "The random dataset S and the randomly selected function φ might not be independent in an adaptive setting"
        ),
        context=(
            "such approach does not apply if the estimates or hypotheses tested on the holdout are chosen adaptively"
        ),
        verdict="right",
        how=("computed",),
        check=check_dependent,
    ),
    Statement(
        name="adaptive-laplace-answers",
        place=place("'Sparse vector mechanism'"),
        says="the Laplace mechanism answers adaptively chosen queries, and their losses add up as those of fixed ones",
        quote="The Laplace mechanism can be used to answer adaptively chosen low-sensitivity queries.",
        context=("The privacy loss increases proportionally with the number of queries answered (or its square root)"),
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_laplace,
        audits=(
            "Features chosen by noisy agreements, then their vote",
            "Features chosen as if they were disjoint",
            "The exact accuracy of a vote",
        ),
    ),
    Statement(
        name="adaptive-sparse",
        place=place("'Sparse vector mechanism'"),
        says="Sparse answers queries of sensitivity 1 which may be chosen adaptively",
        quote="There are *m* total number of sensitivity-1 queries, which may be chosen adaptively.",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_sparse,
        audits=(
            "Sparse, with an analyst who follows its answers",
            "Sparse without threshold noise, asked the same again and again",
            "Sparse without a halt, with an analyst who follows its answers",
        ),
    ),
    Statement(
        name="thresholdout-interaction",
        place=place("'Reusable holdout'"),
        says=r"Thresholdout is DP whatever statistical queries $\phi: \mathcal{X} \to [0, 1]$ are chosen adaptively",
        quote=(
            "we present one differentially private algorithm to answer adaptively chosen statistical queries on a "
            "holdout set: the Thresholdout algorithm"
        ),
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_interaction,
        audits=(
            "Thresholdout, with an analyst who follows its answers",
            "Thresholdout, with an analyst who bisects",
            "Thresholdout with exact comparisons, with an analyst who follows its answers",
            "Thresholdout with exact values, with an analyst who follows its answers",
            "Thresholdout without a count of its budget, asked again at each answer",
        ),
    ),
    Statement(
        name="thresholdout-accuracy",
        place=place("'Reusable holdout'"),
        says=r"its answers estimate $\mathcal{P}[\phi]$: more than $\tau$ off with a small probability only",
        quote=(
            r"The algorithm accepts any statistical query $\phi : \mathcal{X} \to [0, 1]$ and its goal is to provide "
            r"an estimate of $\mathcal{P}[\phi]$ using a holdout set for validation."
        ),
        context="with rigorous generalization guarantees",
        reading="The slides do not write the guarantee down: here it is put together from their parts.",
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_accuracy,
        figure=Figure(
            "An analyst asks of 201 useless features, then for three votes of those that it likes best: how often some "
            "answer is more than 0.25 off. Asked directly, a small holdout set is overfitted; Thresholdout stays right "
            "long before its bound (dashed) says so.",
            draw_accuracy,
        ),
    ),
)
