"""The rules beside composition: post-processing, groups, replaced records, and what the definitions say."""

from __future__ import annotations

import numpy as np

from audits.lectures.claims.statement import Statement, Truth, Verdict
from dpaudit.catalogue import find
from dpaudit.claims import ApproximateDP, PureDP
from dpaudit.losses.composing import responses
from dpaudit.losses.distribution import epsilon_of

BASSI, SARKAR = "Bassi 2019, notes 001", "Sarkar, notes 003"
SEED, DRAWS = 5, 400


def exact(name: str, first: object, second: object) -> float:
    """The exact loss of a pair, as the catalogue knows it."""
    loss = find(name).true_epsilon(first, second)
    assert loss is not None
    return loss


# --- post-processing ------------------------------------------------------------------------------------------


def check_processing() -> Truth:
    """Random outputs through random channels: the epsilon at three deltas, before and after."""
    rng = np.random.default_rng(SEED)
    worst, kept = 0.0, 0.0
    for _ in range(DRAWS):
        p, q = rng.dirichlet(np.ones(6), 2)
        channel = rng.dirichlet(np.full(4, 0.2), 6)
        for delta in (0.0, 0.01, 0.1):
            before = epsilon_of(p, q, delta)
            worst = max(worst, epsilon_of(p @ channel, q @ channel, delta) / before if before > 0.0 else 0.0)
            kept = max(kept, epsilon_of(p[::-1], q[::-1], delta) / before if before > 0.0 else 0.0)
    again = exact("nonnegative_count.drawn_again", 1, 0)
    verdict: Verdict = "wrong" if worst > 1.0 + 1e-9 else "right and tight" if kept > 0.99 else "right and loose"
    return Truth(
        verdict,
        f"{DRAWS} random channels behind random outputs raise the epsilon nowhere, at deltas of 0, 0.01 and 0.1 "
        f"(largest ratio {worst:.3f}), and a map that can be undone keeps it ({kept:.3f}). It is no longer "
        "post-processing where the step looks at the data: a count drawn again until it is not negative loses "
        f"{again:.3f} for a claim of 1.",
        {"largest ratio": worst, "a map that can be undone": kept, "drawn again": again},
    )


# --- groups and replaced records ------------------------------------------------------------------------------


def check_groups() -> Truth:
    ratios = {k: exact("laplace", 10, 10 - k) / PureDP(1.0).at_distance(k).epsilon for k in range(1, 11)}
    short = exact("group_count.noise_of_one_person", [2, 1, 3, 3], [2, 1, 3])
    verdict: Verdict = "wrong" if max(ratios.values()) > 1.0 + 1e-9 else "right and loose"
    return Truth(
        "right and tight" if verdict != "wrong" and min(ratios.values()) > 0.99 else verdict,
        f"Reached by a count with Lap(1 / epsilon): k epsilon is what it loses (ratio {min(ratios.values()):.6f} for "
        "k up to 10). So a claim for households cannot be had for the noise of one person: with households of three "
        f"it loses {short:.0f} epsilon.",
        {"least ratio": min(ratios.values()), "households of three": short},
    )


def check_replacement() -> Truth:
    histogram = exact("replaced_histogram.noise_for_removal", [0, 0, 1, 2], [0, 1, 1, 2])
    removed = exact("replaced_histogram.noise_for_removal", [0, 0, 1, 2], [0, 1, 2])
    count = exact("replaced_histogram.one_bin", [0, 0, 1, 2], [0, 1, 1, 2])
    delta = 0.01
    approximate = ApproximateDP(1.0, delta).at_distance(2)
    verdict: Verdict = "wrong" if max(histogram, count) > 2.0 * removed + 1e-9 else "right and loose"
    return Truth(
        "right and tight" if verdict != "wrong" and histogram > 1.98 * removed else verdict,
        f"An upper bound, and reached: a histogram loses {removed:.0f} epsilon where a record goes and {histogram:.0f} "
        f"where one is replaced. But a single count loses {count:.0f} epsilon both ways, so 2 epsilon is no equality. "
        f"With a delta it is (2 epsilon, (1 + e^epsilon) delta): {approximate.delta / delta:.3f} delta at epsilon = 1. "
        "The converse does not hold at any factor: the exact number of records hides every value (replace-one: 0) and "
        "no presence (remove-one: infinite).",
        {"histogram": histogram, "single count": count, "delta, times": approximate.delta / delta},
    )


# --- the definitions ------------------------------------------------------------------------------------------


def check_zero_sets() -> Truth:
    delta = 1e-6
    pure = [responses(k, epsilon) for k, epsilon in ((1, 0.1), (4, 1.0), (20, 2.0))]
    agree = all(bool(np.all((first > 0.0) == (second > 0.0))) for first, second in pure)
    first, second = responses(1, 1.0, delta)
    lost = float(first[(first > 0.0) & (second == 0.0)].sum())
    verdict: Verdict = "right" if agree and lost > 0.0 else "right and loose" if agree else "wrong"
    return Truth(
        verdict,
        "If one side is 0 and the other is not, no finite epsilon bounds the ratio; and so on from neighbour to "
        f"neighbour, for any two databases. It needs delta = 0: with delta = {delta:g} a response may give the bit "
        f"away with probability {lost:.1e}, an output that the other bit never has.",
        {"at delta 1e-6": lost},
    )


RULES: tuple[Statement, ...] = (
    Statement(
        "post-processing",
        f"{BASSI}, 'Post-processing'",
        r"$f \circ \mathcal{M}$ is $(\varepsilon, \delta)$-DP where $\mathcal{M}$ is, for any randomised f",
        "right and tight",
        ("derived", "computed", "audited"),
        check_processing,
        (
            "a noisy count, zero in place of the negative",
            "a noisy count, rounded, and small ones suppressed",
            "a noisy count, drawn again until it is not negative",
            "a noisy count, rounded towards the truth",
            "a noisy count, suppressed by the true one",
        ),
        quote=(
            r"Let $f : R \to R'$ be an arbitrary randomized mapping. Then $f \circ \mathcal{M} : "
            r"\mathbb{N}^{|\mathcal{X}|} \to R'$ is $(\varepsilon, \delta)$-DP."
        ),
    ),
    Statement(
        "group-privacy",
        f"{SARKAR}, 'What about privacy other than one person?'",
        r"an $\varepsilon$-DP algorithm is $k\varepsilon$-DP for any group of size k",
        "right and tight",
        ("derived", "computed", "audited"),
        check_groups,
        (
            "group privacy: a noisy count, three people leave",
            "group privacy: a noisy count of half the noise, three people leave",
            "a count that protects one person, claimed for households",
        ),
        quote=r"Show that an $\epsilon$-DP algorithm is $k\epsilon$-DP for any group of size k",
    ),
    Statement(
        "replace-one",
        f"{SARKAR}, 'Hiding values'",
        r"$\varepsilon$-DP for presence gives $2\varepsilon$-DP where x is replaced by any $x'$",
        "right and tight",
        ("derived", "computed", "audited"),
        check_replacement,
        (
            "a histogram that hides the value",
            "a histogram with the noise of remove-one, claimed for replace-one",
            "one count with the noise of remove-one, claimed for replace-one",
        ),
        quote=r"Thus, there is a $2\epsilon$-DP in $x$ being substituted with any arbitrary $x'$",
    ),
    Statement(
        "zero-sets",
        f"{BASSI}, 'Definition and properties of DP (cont.)'",
        (
            r"if $\delta = 0$: $\Pr\{\mathcal{M}(x) \in S\} = 0$ if and only if $\Pr\{\mathcal{M}(y) \in S\} = "
            "0$"
        ),
        "right",
        ("derived", "computed"),
        check_zero_sets,
        quote=(
            r"Moreover, $\Pr{\{\mathcal{M}(x) \in \mathcal{S}\}} = 0 \iff \Pr{\{\mathcal{M}(y) \in "
            r"\mathcal{S}\}} = 0.$"
        ),
        context=r"If $\delta = 0$ we see that",
    ),
)
