"""From one definition to another."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.additive_normal import quadrature
from audits.lectures.claims.definitions import tail
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP, to_approximate, to_zcdp
from dpaudit.losses.composing import responses
from dpaudit.losses.distribution import largest_log_ratio, log_ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

CHEEMA = "Cheema & Huszár, notes 004"
ZCDP = f"{CHEEMA}, 'Zero concentrated DP'"
SEED, CLOSE, BLUE = 5, 1e-9, "#2b5d8a"
ORDERS = 1.0 + np.geomspace(1e-4, 1e4, 400)


def divergences(p: Floats, q: Floats, orders: Floats = ORDERS) -> Floats:
    """The Rényi divergences of p from q at these orders, in nats; both are positive."""
    terms = np.outer(orders, np.log(p)) + np.outer(1.0 - orders, np.log(q))
    return np.asarray(np.logaddexp.reduce(terms, axis=1) / (orders - 1.0))


def concentrated(p: Floats, q: Floats) -> float:
    """The least rho of (0, rho)-zCDP for this pair, in both orders."""
    return float(max((divergences(*both) / ORDERS).max() for both in ((p, q), (q, p))))


def normal_tail(t: float, rho: float) -> float:
    """Pr(privacy loss > rho + t) of normal noise: the loss is N(rho, 2 rho)."""
    return math.erfc(t / (2.0 * math.sqrt(rho))) / 2.0


# --- strict DP ------------------------------------------------------------------------------------------------


def check_never_above() -> Truth:
    """All sets of six outcomes, at epsilons just above and just below the largest loss of random pairs."""
    rng = np.random.default_rng(SEED)
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=6)))[1:]
    agree, off = True, 0.0
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(6), 2)
        largest = largest_log_ratio(p, q)
        for epsilon, kept in ((largest * 1.001, True), (largest * 0.999, False)):
            by_sets = bool(np.all(sets @ p <= np.exp(epsilon) * (sets @ q)))
            by_sets = by_sets and bool(np.all(sets @ q <= np.exp(epsilon) * (sets @ p)))
            agree = agree and by_sets == (tail(p, q, epsilon) == 0.0) == kept
        far = np.array([1e6])
        off = max(off, abs(max(divergences(p, q, far)[0], divergences(q, p, far)[0]) - largest))
    return Truth(
        "right" if agree and off < 1e-4 else "wrong",
        "It is the definition by sets of outcomes in other words, and so is the bound on the divergence of infinite "
        "order: on 200 random pairs, at an epsilon a thousandth above the largest loss and one as far below, the loss "
        "exceeds epsilon with probability 0 just where all 63 sets keep e^epsilon, and the divergence of order 1e6 is "
        f"the largest loss to {off:.0e}. With a delta the two part: see (epsilon, delta)-DP as a tail.",
        {"off": off},
    )


# --- zero-concentrated DP -------------------------------------------------------------------------------------


def check_decay() -> Truth:
    """Pr(loss > rho + t) <= e^(-t^2 / (4 rho)): random laws, normal noise; and what such a tail gives back."""
    rng, worst = np.random.default_rng(SEED), 0.0
    for _ in range(60):
        p, q = rng.dirichlet(np.full(8, 3.0), 2)
        rho, losses = concentrated(p, q), log_ratios(p, q)
        for t in np.linspace(0.0, 2.0, 9) * math.sqrt(rho):
            worst = max(worst, float(p[losses > rho + t].sum()) * math.exp(t**2 / (4.0 * rho)))
    rho = 0.5
    powers = {t: -math.log(normal_tail(t, rho)) / (t**2 / (4.0 * rho)) for t in (2.0, 5.0, 20.0)}
    s = np.geomspace(1e-4, 1e3, 2_000)  # a = 1 + s; E e^(s loss) of a loss with just this tail above rho
    normal = np.array([1.0 - math.erfc(x * math.sqrt(rho)) / 2.0 for x in s])
    log_moment = s * rho + np.logaddexp(0.0, np.log(s * 2.0 * math.sqrt(math.pi * rho) * normal) + s**2 * rho)
    back = float(np.max(log_moment / s - rho * (1.0 + s)))
    right = worst <= 1.0 + CLOSE and powers[20.0] < 1.05 and back <= math.sqrt(math.pi * rho) + CLOSE
    return Truth(
        "right" if right else "wrong",
        r"$(\xi, \rho)$-zCDP means $\Pr[\lambda > \xi + \rho + t] \leq e^{-t^2 / (4 \rho)}$ (Bun & Steinke 2016): 60 "
        f"random pairs keep it (at most {worst:.2f} of the bound), and normal noise has this rate: at rho = 0.5 its "
        f"exact tail is the bound to the power {powers[2.0]:.2f}, {powers[5.0]:.2f} and {powers[20.0]:.2f} at t = 2, 5 "
        r"and 20. And back: a loss with just such a tail is $(\sqrt{\pi \rho}, \rho)$-zCDP, with a $\xi$ of "
        f"{back:.2f} at rho = 0.5. So the two say the same up to this constant.",
        {"random": worst, **{f"power at {t:g}": power for t, power in powers.items()}, "xi of the way back": back},
    )


def draw_decay(axes: Axes) -> None:
    rho, at = 0.5, np.linspace(0.0, 6.0, 80)
    p, q = responses(1, 1.0)
    losses, own = log_ratios(p[2:], q[2:]), concentrated(p[2:], q[2:])
    axes.semilogy(at, [math.exp(-((x - rho) ** 2) / (4.0 * rho)) if x > rho else 1.0 for x in at], "k--", label="bound")
    axes.semilogy(at, [normal_tail(float(x) - rho, rho) for x in at], "-", color=BLUE, label="normal noise, exact")
    steps = [float(p[2:][losses > x].sum()) for x in at]
    axes.semilogy(at, np.maximum(steps, 1e-9), ":", color=BLUE, label=f"epsilon = 1, rho = {own:.2f}")
    axes.set_ylim(1e-8, 2.0)
    axes.set_xlabel("privacy loss")
    axes.set_ylabel("probability to exceed it")
    axes.legend(frameon=False)


def check_conversions() -> Truth:
    """Pure DP to zCDP and zCDP to (epsilon, delta)-DP, each by the formula and at its best; and none back."""
    best = {epsilon: concentrated(*(side[2:] for side in responses(1, epsilon))) for epsilon in (0.1, 1.0, 4.0)}
    limit = max(abs(best[e] / (e * math.tanh(e / 2.0)) - 1.0) for e in best)
    formula = {epsilon: to_zcdp(PureDP(epsilon)).rho for epsilon in best}
    claim, delta = ZeroConcentratedDP(rho=0.5), 1e-5
    simple, orders = (to_approximate(claim, delta, way=way).epsilon for way in ("simple", "orders"))
    normal = GaussianDP(1.0).epsilon_at(delta)
    one = RenyiDP(order=5.0, epsilon=2.5)  # rho a at a = 5
    alone = [to_approximate(one, delta, way=way).epsilon for way in ("simple", "region")]
    printed = 0.5 + 2.0 * math.sqrt(0.5 * math.log(1.0 / delta))
    leak = [float(divergences(np.array([d + 1e-300, 1.0 - d]), np.array([1e-300, 1.0 - 1e-300]))[-1]) for d in (1e-9,)]
    right = all(best[e] <= formula[e] for e in best) and limit < 1e-3 and abs(printed - simple) < 1e-6
    right = right and normal <= orders <= simple and leak[0] > 100.0
    return Truth(
        "right" if right else "wrong",
        f"epsilon-DP is epsilon^2 / 2-zCDP; the least rho is epsilon tanh(epsilon / 2), {best[1.0]:.4f} at epsilon = 1 "
        f"where the formula gives {formula[1.0]:.1f}, and {best[4.0]:.2f} for {formula[4.0]:.0f} at 4. rho-zCDP is "
        f"(rho + 2 sqrt(rho ln(1 / delta)), delta)-DP: {printed:.3f} at rho = 0.5 and delta = 1e-5; by the best order "
        f"of the Rényi divergence (Canonne, Kamath & Steinke 2020) {orders:.3f}, and normal noise of that rho needs "
        f"{normal:.3f}, so the rest is the price of the detour. A bound on one order alone, 2.5 at order 5, gives "
        f"{alone[0]:.3f} by the formula (Mironov 2017) and {alone[1]:.3f} at best. There is no way back from a delta: "
        "a leak with probability 1e-9 is (0, 1e-9)-DP and keeps no rho.",
        {"rho at 1": best[1.0], "simple": printed, "by orders": orders, "normal noise": normal},
    )


def draw_conversions(axes: Axes) -> None:
    claim, deltas = ZeroConcentratedDP(rho=0.5), np.geomspace(1e-10, 0.1, 40)
    for way, style, label in (("simple", "k--", "rho + 2 sqrt(rho ln(1 / delta))"), ("orders", "k:", "the best order")):
        axes.semilogx(deltas, [to_approximate(claim, float(d), way=way).epsilon for d in deltas], style, label=label)
    exact = [GaussianDP(1.0).epsilon_at(float(d)) for d in deltas]
    axes.semilogx(deltas, exact, "-", color=BLUE, label="normal noise, exact")
    axes.set_xlabel("delta")
    axes.set_ylabel("epsilon")
    axes.legend(frameon=False)


def check_groups() -> Truth:
    """Groups of k under zCDP: rho k^2; geometric noise, normal noise, and the way over (epsilon, delta)."""
    at = np.exp(-np.abs(np.arange(-60, 62)))
    rho = concentrated(*_shifted(at, 1))
    ratios = {k: concentrated(*_shifted(at, k)) / rho for k in (2, 5, 10)}
    k, delta, one = 10, 1e-6, 0.05
    zcdp = ZeroConcentratedDP(rho=one).at_distance(k).epsilon_at(delta)
    exact = GaussianDP(math.sqrt(2.0 * one)).at_distance(k).epsilon_at(delta)
    over = _by_the_group_rule(one, k, delta)
    normal = max(abs(quadrature(order, k * math.sqrt(2.0 * one)) / order / one - k**2) for order in (1.5, 4.0))
    right = all(ratio <= size**2 + CLOSE for size, ratio in ratios.items()) and normal < 1e-4 and exact <= zcdp < over
    return Truth(
        "right" if right else "wrong",
        "A group of k has k^2 rho (Bun & Steinke 2016, proposition 1.9): normal noise has just that, and geometric "
        f"noise stays below ({ratios[2]:.2f}, {ratios[5]:.1f} and {ratios[10]:.1f} times rho for k = 2, 5 and 10). At "
        f"rho = 0.05 and delta = 1e-6 a group of ten has epsilon = {zcdp:.1f} (exact for normal noise: {exact:.1f}). "
        "Who first takes (epsilon, delta)-DP of one person and then the group rule, k epsilon and delta (e^(k epsilon) "
        f"- 1) / (e^epsilon - 1), comes to epsilon = {over:.1f} at best.",
        {**{f"geometric, {size}": ratio for size, ratio in ratios.items()}, "zCDP": zcdp, "group rule": over},
    )


def _by_the_group_rule(rho: float, k: int, delta: float) -> float:
    """The epsilon of k people at a delta, from the largest delta of one person that the group rule takes there."""
    low, high = -120.0, math.log(delta)
    for _ in range(40):
        middle = (low + high) / 2.0
        one = ApproximateDP(ZeroConcentratedDP(rho=rho).epsilon_at(math.exp(middle)), math.exp(middle))
        low, high = (middle, high) if one.at_distance(k).delta_at(k * one.epsilon) <= delta else (low, middle)
    return k * ZeroConcentratedDP(rho=rho).epsilon_at(math.exp(low))


def _shifted(weights: Floats, k: int) -> tuple[Floats, Floats]:
    """A law on the integers and the same moved by k, on the places that both have."""
    first, second = weights[k:], weights[:-k]
    return first / first.sum(), second / second.sum()


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="loss-never-above-epsilon",
        place=f"{CHEEMA}, 'epsilon differential privacy'",
        says=r"$\epsilon$-DP: for every adjacent pair $\Pr[\lambda \leq \epsilon] = 1$; in other words "
        r"$D_\infty \leq \epsilon$",
        verdict="right",
        how=("derived", "computed"),
        check=check_never_above,
        quote=r"A function $\phi$ is $\epsilon$ differentially private if for every adjacent pair $x, x'$ "
        r"$\Pr[\lambda(x||x') \leq \epsilon] = 1$ ... Strict $\varepsilon$-DP: $D_{\infty}(P||P') \leq \varepsilon$ "
        r"for every $x, x'$ adjacent.",
    ),
    Statement(
        name="zcdp-decay",
        place=ZCDP,
        says=r"zCDP characterises the decay of the privacy loss $\lambda$",
        verdict="right",
        how=("derived", "computed"),
        check=check_decay,
        figure=Figure(
            "The probability that the privacy loss exceeds a value, for normal noise with rho = 0.5 and for randomised "
            "response with epsilon = 1, which never exceeds 1; and the bound that rho = 0.5 gives.",
            draw_decay,
        ),
        quote=r"More generally, zCDP characterises the decay of $\lambda$",
        context=r"$D_\alpha(P||P') \leq \xi + \rho\alpha$",
        reading=r"Up to the constant $\xi$, which the definition leaves free.",
    ),
    Statement(
        name="zcdp-conversions",
        place=ZCDP,
        says="There are conversions between DP and zCDP",
        verdict="right",
        how=("derived", "computed"),
        check=check_conversions,
        figure=Figure(
            "The epsilon that rho = 0.5 implies at a delta, by two conversions, and that of normal noise with this "
            "rho.",
            draw_conversions,
        ),
        quote="There are conversions between the two forms",
        context=r"Clearly, $(\varepsilon, 0)$-zCDP $\iff \varepsilon$-DP",
        reading=r"The two forms are $\varepsilon$-DP, or $(\varepsilon, \delta)$-DP, and zCDP; with a $\delta$ there "
        "is one direction only.",
    ),
    Statement(
        name="zcdp-groups",
        place=ZCDP,
        says="zCDP yields nice analyses of group privacy",
        verdict="right",
        how=("derived", "computed"),
        check=check_groups,
        quote="zCDP yields nice analyses of the Gaussian mechanism and group privacy",
    ),
)
