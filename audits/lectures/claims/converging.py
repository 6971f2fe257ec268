"""How fast gradient descent comes to the optimum, and from where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.statement import Statement, Truth

Floats = npt.NDArray[np.float64]
Gradient = Callable[[Floats], Floats]

STARTS = np.linspace(-1.0, 1.0, 52) * 0.9999  # none of them a whole number of steps from 0
WIDTH = 0.1  # of the parabola that rounds the corner of |theta|
HEIGHTS = (1.0, 0.0, -2.0, 0.25, 0.0)  # theta^4 - 2 theta^2 + theta / 4


def descended(gradient: Gradient, starts: Floats, rate: float, steps: int) -> Floats:
    """All models of gradient descent with a fixed learning rate; shape (steps + 1, starts)."""
    at = [starts]
    for _ in range(steps):
        at.append(at[-1] - rate * gradient(at[-1]))
    return np.asarray(at)


def needed(gradient: Gradient, rate: float, close: float, most: int) -> float:
    """The steps after which all that start within 1 of the optimum 0 are within `close`, and stay there.

    Infinite if more than `most` are needed.
    """
    far = np.flatnonzero((np.abs(descended(gradient, STARTS, rate, most)) > close).any(axis=1))
    return np.inf if far[-1] == most else float(far[-1] + 1)


def rounded(at: Floats) -> Floats:
    """The gradient of |theta| with its corner rounded to a parabola."""
    return np.clip(at / WIDTH, -1.0, 1.0)


def check_smoothness() -> Truth:
    """|theta| has a bounded gradient and a corner; rounded it is smooth as well; theta^4 / 4 is neither."""
    closes = (1e-2, 1e-3)
    corner = [needed(np.sign, close, close, 2_000) for close in closes]
    larger = [needed(np.sign, 1.5 * close, close, 2_000) for close in closes]
    smooth = [needed(rounded, WIDTH, close, 2_000) for close in closes]
    held = True
    for steps in (25, 100, 400):  # Nesterov 2004, sections 3.2.3 and 2.1.5: gradients of at most 1, starts within 1
        path = descended(np.sign, STARTS, steps**-0.5, steps)[:-1]
        held &= bool(np.abs(path).mean(axis=0).max() <= steps**-0.5)
        last = np.abs(descended(rounded, STARTS, WIDTH, steps)[-1])
        loss = np.where(last <= WIDTH, last**2 / (2.0 * WIDTH), last - WIDTH / 2.0)
        held &= bool(loss.max() <= 1.0 / (2.0 * WIDTH * steps))
    wild = np.abs(descended(lambda at: at**3, np.array([4.0, 5.0]), 0.1, 4)[-1])
    faster = max(smooth) < corner[0] < corner[1] < np.inf and min(larger) == np.inf
    return Truth(
        "right" if faster and held and wild[0] < 4.0 and wild[1] > 1e9 else "wrong",
        f"From anywhere within 1 of the optimum: |theta|, whose gradient is bounded (Lipschitz), takes {corner[0]:.0f} "
        f"steps to come within {closes[0]:g} of it and to stay there, and {corner[1]:.0f} steps for {closes[1]:g}; "
        "with a larger learning rate it never stays there, for its steps do not grow shorter. With the corner rounded "
        f"to a parabola of width {WIDTH:g} (smooth) it takes {smooth[0]:.0f} and {smooth[1]:.0f} steps. In general the "
        "errors after T steps are of order 1 / sqrt(T) with a bounded gradient and 1 / T with a smooth loss (Nesterov "
        "2004; both bounds kept here), and fall exponentially in T where it is strongly convex too, as in exercise "
        "5.3. theta^4 / 4 is neither: at the learning rate 0.1 it comes nearer from 4, and from 5 it runs away.",
        {"steps, Lipschitz": corner[0], "steps, closer": corner[1], "steps, smooth": smooth[0]},
    )


def check_start() -> Truth:
    """A polynomial with two minima from many starts; and the same for a convex one."""
    slope = np.polyder(np.poly1d(HEIGHTS))
    starts = np.linspace(-2.0, 2.0, 401)
    ends = descended(slope, starts, 0.02, 400)[-1]
    low, high = (float(np.median(ends[side])) for side in (ends < 0.0, ends > 0.0))
    two = bool(np.all(np.minimum(np.abs(ends - low), np.abs(ends - high)) < 1e-6))
    heights = np.polyval(HEIGHTS, [low, high])
    spread = float(np.ptp(descended(lambda at: 2.0 * at, starts, 0.02, 400)[-1]))
    lost = float(np.mean(ends > 0.0))
    return Truth(
        "right" if two and heights[0] < heights[1] and 0.0 < lost < 1.0 and spread < 1e-6 else "wrong",
        "Where the function has two minima it decides: from 401 starts between -2 and 2 gradient descent on theta^4 - "
        f"2 theta^2 + theta / 4 ends at {low:.3f}, the least value ({heights[0]:.3f}), or at {high:.3f} "
        f"({heights[1]:.3f}), the latter for {lost:.0%} of the starts. For theta^2, which is convex, all of them end "
        f"at the same point (to {spread:.0e}), and the start decides only how long it takes.",
        {"lower": float(heights[0]), "higher": float(heights[1]), "share of the higher": lost, "spread": spread},
    )


CONVERGING: tuple[Statement, ...] = (
    Statement(
        name="smooth-converges-faster",
        place="CS 208, notes 002, 'Goals', below exercise 3.2",
        says="Lipschitzness and smoothness of some convex functions help to converge faster.",
        verdict="right",
        how=("computed",),
        check=check_smoothness,
        quote=(
            "It is known that Lipschitzness and smoothness of some convex functions help the optimization problem to "
            "converge faster to the optimum value."
        ),
        context="It is beyond the scope of this section to discuss this topic.",
    ),
    Statement(
        name="the-start-of-descent",
        place="CS 208, notes 002, 'Non-private Gradient Descent'",
        says=r"Sometimes, the initial choice of $\hat{\theta}_0$ is very important.",
        verdict="right",
        how=("computed",),
        check=check_start,
        quote=r"Sometimes, the initial choice of $\hat{\theta}_0$ is very important.",
        context="We will consider gradient descent for convex loss functions.",
        reading="'Sometimes' is taken at its word: for convex losses, which follow, it is a matter of time only.",
    ),
)
