"""Attacks on models: membership, differencing and reconstruction, without noise and against epsilon."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.attacking import CHEEMA, SARKAR, certain, measured
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.catalogue.attacks import allowed, identified
from dpaudit.catalogue.attacks.on_aggregates import joined_pull, last_pull, signed
from dpaudit.catalogue.releases.tables import fit, population

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
Records = Sequence[Sequence[float]]

SEED = 1
PEOPLE, FEATURES, WEIGHT, CANDIDATES = 12, 3, 0.5, 10  # of differencing and reconstruction
MEMBERS, COHORTS, THIN = (
    30,
    40,
    0.01,
)  # of membership: n, how many models, and a weight that lets a model learn by heart
MANY = (1, 2, 5, 10, 20, 40)
EPSILONS = np.geomspace(0.3, 300.0, 13)
MODELS = f"{SARKAR}, 'What about machine learning models?'"


def noisy(model: Floats, people: int, weight: float, epsilon: float, runs: int, rng: np.random.Generator) -> Floats:
    """A model with Laplace noise: a record moves it by 2 / (n weight), sqrt(d) times that in absolute values."""
    scale = 2.0 * math.sqrt(len(model)) / (people * weight * epsilon)
    return np.asarray(model + rng.laplace(scale=scale, size=(runs, len(model))))


def record_of(pulls: Floats) -> Floats:
    """The record behind label * features * anything positive, its first feature being 1: features, then label."""
    return np.column_stack([pulls / pulls[:, :1], np.sign(pulls[:, 0])])


# --- membership -----------------------------------------------------------------------------------------------


@functools.cache
def margins(features: int, epsilon: float = math.inf) -> Floats:
    """The margins label * <w, x> of everybody under all models: (model, cohort, person).

    Each model is fitted to the first n people of its cohort; the last n are strangers to it.
    """
    cohorts = [population(2 * MEMBERS, features, 1_000 * features + cohort) for cohort in range(COHORTS)]
    models = [fit(people[:MEMBERS], THIN) for people in cohorts]
    if epsilon < math.inf:
        rng = np.random.default_rng([SEED, features])
        models = [noisy(model, MEMBERS, THIN, epsilon, 1, rng)[0] for model in models]
    return np.asarray(np.array([signed(people) for people in cohorts]) @ np.array(models).T).transpose(2, 0, 1)


def scores(features: int, epsilon: float = math.inf, shadows: bool = False) -> Floats:
    """What is said for 'member', by cohort and person: the margin, which is as good as the loss.

    With shadow models: how far the margin lies above those under models of other cohorts, which are without the person,
    in their deviations (Carlini et al. 2022, Membership inference attacks from first principles).
    """
    every = margins(features, epsilon)
    own = np.array([every[cohort, cohort] for cohort in range(COHORTS)])
    if not shadows:
        return own
    others = [np.delete(every[:, cohort], cohort, axis=0) for cohort in range(COHORTS)]
    return np.array([(one - away.mean(axis=0)) / away.std(axis=0) for one, away in zip(own, others, strict=True)])


def advantage(features: int, epsilon: float = math.inf, shadows: bool = False) -> float:
    """Of a threshold for a score, chosen on half of the cohorts and measured on the others."""
    members, strangers = np.hsplit(scores(features, epsilon, shadows), 2)
    half = COHORTS // 2
    cuts = np.quantile(members[:half], np.linspace(0.02, 0.98, 49))
    gains = [np.mean(members[:half] > cut) - np.mean(strangers[:half] > cut) for cut in cuts]
    cut = cuts[int(np.argmax(gains))]
    return float(np.mean(members[half:] > cut) - np.mean(strangers[half:] > cut))


def check_membership() -> Truth:
    found = {features: advantage(features) for features in (1, 10, 40)}
    shadowed, private = advantage(40, shadows=True), advantage(40, 1.0, shadows=True)
    slack = 6.0 / math.sqrt(COHORTS * MEMBERS)  # six deviations of a difference of two rates, half of all people each
    right = found[40] > 0.4 > found[10] > found[1] and shadowed > found[40] and private < allowed(1.0) + slack
    words = ", ".join(f"{value:.2f} with {features}" for features, value in found.items())
    return Truth(
        "right" if right and certain("membership_in_a_model") else "wrong",
        f"Logistic regression of {MEMBERS} people: who calls those with a low loss members has an advantage of {words} "
        f"features ({COHORTS} models; the threshold is chosen on half of them); who compares the loss with that under "
        f"models of other people, of {shadowed:.2f} with 40. The more a model can fit, the more it says of those it "
        "was "
        f"fitted to. With noise for epsilon = 1 it is {private:.2f}, where {allowed(1.0):.2f} is allowed. Between two "
        f"worlds of which all else is known, {measured('membership_in_a_model')}.",
        {
            **{f"{features} features": value for features, value in found.items()},
            "with shadow models": shadowed,
            "with DP": private,
        },
    )


def draw_membership(axes: Axes) -> None:
    axes.plot(MANY, [advantage(each) for each in MANY], "o-", color="#a3262a", label="threshold for the loss")
    axes.plot(
        MANY, [advantage(each, shadows=True) for each in MANY], "^-", color="#5b6168", label="against shadow models"
    )
    axes.plot(
        MANY, [advantage(each, 1.0, True) for each in MANY], "s-", color="#2b5d8a", label="with noise, epsilon = 1"
    )
    axes.axhline(allowed(1.0), color="k", ls="--", label="allowed at epsilon = 1")
    axes.set_xscale("log")
    axes.set_xlabel("features of the model")
    axes.set_ylabel("advantage")
    axes.set_ylim(-0.1, 1.0)
    axes.legend(frameon=False)


def check_small_changes() -> Truth:
    """Twenty people; every one is replaced in turn."""
    everybody, rng = population(21, FEATURES, SEED), np.random.default_rng(SEED)
    people, other = everybody[:-1], everybody[-1]
    releases = {name: find(f"noisy_models.{name}") for name in ("exact", "labels_only")}
    shown, seen, furthest = (
        {name: entry.run(people, rng) for name, entry in releases.items()},
        dict.fromkeys(releases, 0),
        0.0,
    )
    for place in range(len(people)):
        changed = [*people[:place], other, *people[place + 1 :]]
        furthest = max(furthest, float(np.linalg.norm(fit(changed, WEIGHT) - fit(people, WEIGHT))))
        for name, entry in releases.items():
            seen[name] += entry.run(changed, rng) != shown[name]
    most = 2.0 / (len(people) * WEIGHT)
    right = seen["exact"] == len(people) and furthest <= most
    return Truth(
        "right" if right else "wrong",
        f"Small: with lambda = {WEIGHT:g} and {len(people)} people nobody's record moves the coefficients further than "
        f"2 / (n lambda) = {most:.2f} (here {furthest:.3f}). And each is seen: when a record is replaced, the exact "
        f"coefficients change for {seen['exact']} of {len(people)} people, and the answers "
        f"yes or no to 21 questions still for {seen['labels_only']}.",
        {**{name: float(value) for name, value in seen.items()}, "furthest": furthest, "most": most},
    )


# --- differencing and reconstruction --------------------------------------------------------------------------


@functools.cache
def worlds() -> tuple[Records, Records, Floats]:
    """The others, the candidates for one more record, and the model of each world: (candidate, feature)."""
    everybody = population(PEOPLE - 1 + CANDIDATES, FEATURES, 7)
    others, candidates = everybody[: PEOPLE - 1], everybody[PEOPLE - 1 :]
    return others, candidates, np.array([fit([*others, one], WEIGHT) for one in candidates])


@functools.cache
def found_out(attack: str, epsilon: float = math.inf, runs: int = 400) -> float:
    """How often the right one of ten candidates is named: the one whose label * features lie nearest in direction.

    "last" knows all other records and sees the model after; "joined" knows public records, and sees both models.
    """
    others, candidates, models = worlds()
    rng, right, public = np.random.default_rng(SEED), [], population(500, FEATURES, 8)
    before = fit(others, WEIGHT)
    directions = signed(candidates)
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    for place, model in enumerate(models):
        seen, first = np.tile(model, (runs, 1)), np.tile(before, (runs, 1))
        if epsilon < math.inf:
            share = epsilon if attack == "last" else epsilon / 2.0
            seen = noisy(model, PEOPLE, WEIGHT, share, runs, rng)
            first = noisy(before, PEOPLE - 1, WEIGHT, share, runs, rng)
        pulls = (
            last_pull(seen, others, WEIGHT)
            if attack == "last"
            else joined_pull(np.hstack([first, seen]), PEOPLE, WEIGHT, public)
        )
        right.append(np.mean((pulls @ directions.T).argmax(axis=1) == place))
    return float(np.mean(right))


def check_differencing() -> Truth:
    exact, private, most = found_out("joined"), found_out("joined", 1.0), identified(CANDIDATES, 1.0)
    others, candidates, models = worlds()
    before = fit(others, WEIGHT)
    pulls = joined_pull(
        np.hstack([np.tile(before, (len(models), 1)), models]), PEOPLE, WEIGHT, population(500, FEATURES, 8)
    )
    true = signed(candidates)
    cosines = np.sum(pulls * true, axis=1) / np.linalg.norm(pulls, axis=1) / np.linalg.norm(true, axis=1)
    heights = [float(each) for each, *_ in np.random.default_rng(SEED).integers(150, 200, (PEOPLE, 1))]
    mean = PEOPLE * np.mean(heights) - (PEOPLE - 1) * np.mean(heights[:-1]) - heights[-1]
    slack = 6.0 * 0.5 / math.sqrt(400 * CANDIDATES)
    right = exact > 0.8 and abs(mean) < 1e-9 and private <= most + slack and certain("model_differencing")
    return Truth(
        "right" if right else "wrong",
        "Of an average before and after somebody joins nothing is left to guess: n times the one less n - 1 times the "
        f"other is the value. Of a classifier before and after, with {PEOPLE} people, the difference points along the "
        f"features of who joined (cosine {float(np.median(cosines)):.4f} in the middle), and of {CANDIDATES} "
        "candidates "
        f"it names the right one in {exact:.0%}, from both models and public records of the same kind alone. With "
        "noise "
        f"for epsilon = 1 in both models together: {private:.0%}, where a blind guess has {1 / CANDIDATES:.0%} and "
        f"nobody more than e / (e + {CANDIDATES - 1}) = {most:.0%}.",
        {"named": exact, "with DP": private, "most": most, "cosine": float(np.median(cosines))},
    )


def least_squares_errors() -> tuple[float, float]:
    """Errors of a row from the sums of least squares, and of a label from the coefficients; all others are known."""
    rng = np.random.default_rng(SEED)
    x, y = np.column_stack([np.ones(PEOPLE), rng.normal(size=(PEOPLE, FEATURES))]), rng.normal(size=PEOPLE)
    squares, products = x.T @ x - x[:-1].T @ x[:-1], x.T @ y - x[:-1].T @ y[:-1]
    row = np.abs(np.append(squares[0], products[0]) - np.append(x[-1], y[-1])).max()
    label = x.T @ x @ np.linalg.lstsq(x, y, rcond=None)[0] - x[:-1].T @ y[:-1]  # her label * features, features known
    return float(row), float(abs(label[0] - y[-1]))


def check_reconstruction() -> Truth:
    others, candidates, models = worlds()
    guessed = record_of(last_pull(models, others, WEIGHT))
    off = float(np.abs(guessed - np.array(candidates)).max())
    exact, private, most = found_out("last"), found_out("last", 1.0), identified(CANDIDATES, 1.0)
    row, label = least_squares_errors()
    slack = 6.0 * 0.5 / math.sqrt(400 * CANDIDATES)
    right = max(off, row, label) < 1e-6 and exact == 1.0 and private <= most + slack and certain("model_reconstruction")
    return Truth(
        "right" if right else "wrong",
        "Who knows all records but one reads it from the exact coefficients: at the optimum the gradients cancel, so "
        "the "
        f"known ones leave that of the last, which is a multiple of its features and label (all {CANDIDATES} "
        "candidates "
        f"to {off:.0e}). The sums of least squares give its row away as well (to {row:.0e}), and the coefficients "
        "alone "
        f"the label of who has known features (to {label:.0e}). With noise for epsilon = 1 in the classifier the right "
        f"one of {CANDIDATES} is named in {private:.0%}; "
        f"nobody does so in more than e^epsilon / (e^epsilon + {CANDIDATES - 1}) = {most:.0%}. "
        f"Between two candidates {measured('model_reconstruction')}.",
        {"largest error": off, "row": row, "label": label, "named": exact, "with DP": private, "most": most},
    )


def draw_candidates(axes: Axes) -> None:
    for attack, mark, colour, label in (
        ("last", "o-", "#a3262a", "all other records known"),
        ("joined", "s-", "#2b5d8a", "before and after"),
    ):
        axes.plot(EPSILONS, [found_out(attack, e, 100) for e in EPSILONS], mark, color=colour, label=label)
    axes.plot(EPSILONS, [identified(CANDIDATES, e) for e in EPSILONS], "k--", label="most that epsilon allows")
    axes.axhline(1.0 / CANDIDATES, color="#5b6168", lw=0.8, label="a blind guess")
    axes.set_xscale("log")
    axes.set_xlabel("epsilon")
    axes.set_ylabel(f"the right one of {CANDIDATES} is named")
    axes.legend(frameon=False)


def first_layer(x: Floats, label: float, hidden: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The gradient of a network with one hidden layer on one record: in the first weights and in their constants."""
    inner, constants, outer = rng.normal(size=(hidden, len(x))), rng.normal(size=hidden), rng.normal(size=hidden)
    activity = np.tanh(inner @ x + constants)
    back = (outer @ activity - label) * outer * (1.0 - activity**2)
    return np.outer(back, x), back


def check_gradient() -> Truth:
    """Thirty records whose gradients are exact; then one of ten whose gradient is cut and has noise."""
    rng = np.random.default_rng(SEED)
    off, private, most = 0.0, 0, identified(CANDIDATES, 1.0)
    for _ in range(30):
        x = rng.normal(size=8)
        weights, constants = first_layer(x, 1.0, 5, rng)
        off = max(off, float(np.abs(weights[0] / constants[0] - x).max()))
    runs = 2_000
    for _ in range(runs):  # one record a step: its gradient cut to length 1, with Laplace noise in each coordinate
        crowd = rng.normal(size=(CANDIDATES, 8))
        gradient = first_layer(crowd[0], 1.0, 1, rng)[0][0]
        cut = gradient / max(1.0, float(np.linalg.norm(gradient)))
        seen = cut + rng.laplace(scale=2.0 * math.sqrt(8.0), size=8)
        private += int(np.abs(crowd @ seen / np.linalg.norm(crowd, axis=1)).argmax() == 0)
    rate = private / runs
    right = off < 1e-6 and rate <= most + 3.0 / math.sqrt(runs)
    return Truth(
        "right" if right else "wrong",
        "They are different: with federated learning the data stay where they are, and the gradients travel. From the "
        "gradient of one record in the first layer of a network, divided by that of the layer's constants, the record "
        "is "
        f"read off to {off:.0e} (30 records, a hidden layer of five). Encryption hides it on the way and not from who "
        f"may read the sum. With the gradient cut to length 1 and noise for epsilon = 1 the right one of {CANDIDATES} "
        f"records is named in {rate:.0%}, where {most:.0%} is allowed: DP complements both.",
        {"largest error": off, "with DP": rate, "most": most},
    )


ON_MODELS = (
    Statement(
        "model-membership",
        MODELS,
        "Small changes of the data change the model a little, and that may reveal what is in the data",
        "right",
        ("derived", "computed", "audited"),
        check_small_changes,
        (
            "a classifier before and after, exact",
            "yes or no from a classifier before and after",
            "a classifier before and after, with noise",
        ),
        quote=r"Small changes in D cause small changes in $\boldsymbol{w}$ which may reveal information about what is "
        r"in "
        "the data",
        context=r"Also a form of aggregate function (vector) computation ... $\mathbf{w} = f(D)$",
    ),
    Statement(
        "classifier-membership",
        MODELS,
        "Models are susceptible to membership inference",
        "right",
        ("computed", "audited"),
        check_membership,
        ("a classifier before and after, exact", "a classifier before and after, with noise"),
        Figure(
            f"Membership in a classifier of {MEMBERS} people by a threshold for the loss: the more features, the more "
            "is "
            "said of members; with noise for epsilon = 1 nearly nothing.",
            draw_membership,
        ),
        quote="Susceptible to ... Membership inference",
    ),
    Statement(
        "model-differencing",
        MODELS,
        "Models are susceptible to differencing, as an average is before and after an employee joins",
        "right",
        ("derived", "computed", "audited"),
        check_differencing,
        ("a classifier before and after, exact", "a classifier before and after, with noise"),
        quote="Datasets with and without an individual. E.g. average before and after employee joins ... Susceptible "
        "to "
        "... Differencing attacks",
    ),
    Statement(
        "model-reconstruction",
        MODELS,
        "Models are susceptible to data reconstruction",
        "right",
        ("derived", "computed", "audited"),
        check_reconstruction,
        ("a classifier before and after, exact", "a classifier before and after, with noise"),
        Figure(
            f"One of {CANDIDATES} candidates is the last record of a classifier of {PEOPLE} people: how often the "
            "right "
            "one is named, against the epsilon of all that is released. The bound holds for whatever anybody computes.",
            draw_candidates,
        ),
        quote="Susceptible to ... Data reconstruction attacks",
    ),
    Statement(
        "gradients-travel",
        f"{CHEEMA}, 'Why bother?'",
        "Federated learning does something different from DP: the data stay, and gradients travel",
        "right",
        ("derived", "computed"),
        check_gradient,
        quote="Computational security and federated learning do different, *complementary* things",
    ),
)
