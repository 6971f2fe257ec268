"""The sparse vector technique."""

from __future__ import annotations

import math

from audits.lectures.claims.statement import Statement, Truth, Verdict
from dpaudit.catalogue import find
from dpaudit.claims import PureDP, compose_optimal

ABOVE, SPARSE = "Bassi 2019, notes 001, 'Detour: AboveThreshold algorithm'", "Bassi 2019, notes 001, 'Sparse vector'"
TIGHT = 0.99  # of what is promised: a loss beyond this part of it calls the promise tight


def witness(bottoms: int, tops: int = 1) -> tuple[list[float], list[float]]:
    """Answers above the threshold go up and those below go down: bottoms first, then tops."""
    return [1.0] * bottoms + [-1.0] * tops, [2.0] * bottoms + [-2.0] * tops


def loss(name: str, first: list[float], second: list[float], **parameters: object) -> float:
    found = find(name).true_epsilon(first, second, parameters)
    assert found is not None
    return found


def of_bound(found: float, promised: float) -> Verdict:
    """The verdict on a promise, from the largest loss found: `promised` is proved, or exceeded here."""
    if found > promised * (1.0 + 1e-9):
        return "wrong"
    return "right and tight" if found > TIGHT * promised else "right and loose"


def check_above_threshold() -> Truth:
    losses = {n: loss("above_threshold", *witness(n - 1)) for n in (1, 2, 4, 8, 16)}
    return Truth(
        of_bound(max(losses.values()), 1.0),
        f"At epsilon = 1 the exact loss is {losses[2]:.3f} with 2 answers, {losses[4]:.3f} with 4, {losses[8]:.4f} "
        f"with 8 and {losses[16]:.4f} with 16: bottoms at answers that go up from 1 to 2, then a top at one that "
        "goes down.",
        {f"{n} answers": value for n, value in losses.items()},
    )


def check_parts() -> Truth:
    bottoms = loss("above_threshold", [1.0] * 24, [2.0] * 24)
    both = loss("above_threshold", *witness(24))
    parts = of_bound(bottoms, 0.5), of_bound(both - bottoms, 0.5 * (1.0 + 1e-3))
    return Truth(
        "wrong" if "wrong" in parts else "right and tight" if set(parts) == {"right and tight"} else "right and loose",
        f"At epsilon = 1, 24 bottoms (told as below) lose {bottoms:.4f} together, and the top after many of them "
        f"{both - bottoms:.4f} more: one half hides the rounds before (the threshold, which moves by 1, with "
        "Lap(2)), the other half this round (answer against threshold, which move by 2, with Lap(4)).",
        {"bottoms": bottoms, "bottoms and top": both},
    )


def check_tops_only() -> Truth:
    shared = {n: loss("above_threshold", *witness(n - 1)) for n in (8, 16, 32)}
    own = {n: loss("above_threshold.no_threshold_noise", [0.0] * n, [1.0] * n) for n in (8, 16, 32)}
    by_tops = {c: loss("sparse", *repeated(11, c), epsilon=float(c), c=c) for c in (1, 2, 3)}
    worst = max(*shared.values(), *(value / c for c, value in by_tops.items()))
    return Truth(
        of_bound(worst, 1.0),
        f"With one top the loss is {shared[8]:.3f}, {shared[16]:.3f} and {shared[32]:.3f} for 8, 16 and 32 answers, "
        f"and c tops lose {by_tops[1]:.3f}, {by_tops[2]:.3f}, {by_tops[3]:.3f} for c = 1, 2, 3 at the same noise. It "
        f"is the noise on the threshold that does it: without it 8, 16 and 32 bottoms lose {own[8]:.0f}, "
        f"{own[16]:.0f} and {own[32]:.0f}.",
        {"32 answers": shared[32], "32 bottoms, exact threshold": own[32], "three tops": by_tops[3]},
    )


def repeated(bottoms: int, epochs: int) -> tuple[list[float], list[float]]:
    first, second = witness(bottoms)
    return first * epochs, second * epochs


def check_composed() -> Truth:
    one = loss("above_threshold", *witness(9))
    ratios = {c: loss("sparse", *repeated(9, c), epsilon=float(c), c=c) / (c * one) for c in (2, 3)}
    worst = max(ratios.values()) * one
    return Truth(
        of_bound(worst, 1.0),
        f"The epochs share no noise, so their losses add up: 2 and 3 epochs of 10 answers lose {ratios[2]:.4f} and "
        f"{ratios[3]:.4f} of 2 and 3 times the loss of one, {one:.4f} epsilon.",
        {"one epoch": one, "three epochs, of three times one": ratios[3]},
    )


def check_pure() -> Truth:
    losses = {(c, n): loss("sparse", *repeated(n // c - 1, c), c=c) for c, n in ((1, 16), (2, 8), (2, 24), (3, 30))}
    kept = loss("sparse.threshold_kept", *witness(14, 2), c=2)
    return Truth(
        of_bound(max(losses.values()), 1.0),
        f"At epsilon = 1 the exact loss is {losses[2, 8]:.4f} for c = 2 and 8 answers, {losses[2, 24]:.4f} for c = 2 "
        f"and 24, and {losses[3, 30]:.4f} for c = 3 and 30. The new threshold noise after each top is not what saves "
        f"it: kept, with this noise, it loses less ({kept:.3f} for c = 2 and 16 answers).",
        {"c = 2, 24 answers": losses[2, 24], "c = 3, 30 answers": losses[3, 30], "kept": kept},
    )


def per_epoch(epsilon: float, c: int, delta: float) -> float:
    """The epsilon of an epoch at the notes' noise: 2 / sigma."""
    return epsilon / math.sqrt(2.0 * c * math.log(1.0 / delta))


def advanced(epsilon: float, c: int, delta: float) -> float:
    """What advanced composition gives for c of them: the notes' own formula, at delta."""
    each = per_epoch(epsilon, c, delta)
    return math.sqrt(2.0 * c * math.log(1.0 / delta)) * each + c * each * math.expm1(each)


def excess(epsilon: float, c: int, delta: float) -> float:
    """The least delta that composition can give for c epochs, in units of the delta promised."""
    return compose_optimal(PureDP(per_epoch(epsilon, c, delta)), c).delta_at(epsilon) / delta


def largest_saved(c: int, delta: float) -> float:
    """The epsilon up to which optimal composition gives what is promised."""
    low, high = 1.0, 20.0
    for _ in range(12):
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle, c, delta) <= 1.0 else (low, middle)
    return low


def check_approximate() -> Truth:
    argued = {(e, d): advanced(e, 1_000, d) for e, d in ((1.0, 1e-2), (5.0, 1e-6))}
    saved = {delta: largest_saved(1_000, delta) for delta in (1e-2, 1e-6)}
    beyond = {(e, d): excess(e, 1_000, d) for e, d in ((8.0, 1e-2), (20.0, 1e-6))}
    follows = all(value <= e for (e, _), value in argued.items())
    optimal = all(value <= 1.0 for value in beyond.values())
    never = excess(1.0, 1_000, 1e-2) > 1.0  # not even where it is moderate
    verdict: Verdict = "wrong" if never else "right and loose" if follows and optimal else "not provable as argued"
    return Truth(
        verdict,
        f"The formula of advanced composition gives more than the epsilon promised, always: {argued[1.0, 1e-2]:.3f} "
        f"for 1 (delta = 0.01) and {argued[5.0, 1e-6]:.3f} for 5 (delta = 1e-6), at c = 1000; its last term was left "
        f"out. The best composition of c epochs saves the promise up to epsilon = {saved[1e-2]:.2f} at delta = 0.01 "
        f"and {saved[1e-6]:.2f} at 1e-6. Beyond that it exceeds delta: {beyond[8.0, 1e-2]:.1f} times at epsilon = 8, "
        f"delta = 0.01, and {beyond[20.0, 1e-6]:.0f} times at epsilon = 20, delta = 1e-6.",
        {"formula at 1": argued[1.0, 1e-2], "saved up to, delta 0.01": saved[1e-2], "excess at 8": beyond[8.0, 1e-2]},
    )


def check_values() -> Truth:
    """Values cost what is promised, and no more, only if they have noise of their own that is paid for."""
    compared = {n: loss("sparse.value_released", [0.0] * n, [1.0] * n, c=1) for n in (4, 8, 16)}
    fresh = loss("numeric_sparse", *witness(14, 2), c=2)
    rate = compared[16] / 16
    verdict: Verdict = "wrong" if compared[16] > 1.0 else of_bound(compared[16], 1.0)
    return Truth(
        verdict,
        f"If the noisy answer that was compared is released, n answers lose {rate:.2f} n epsilon ({compared[8]:.2f} "
        f"for 8, {compared[16]:.2f} for 16 at c = 1): there is no bound. The pseudo-code releases tops only, and "
        "that is right. A value needs a draw of its own, paid for beside the comparison: so divided, two values and "
        f"16 answers lose {fresh:.3f}.",
        {"4 answers": compared[4], "16 answers": compared[16], "fresh noise": fresh},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="AboveThreshold is epsilon-DP",
        place=ABOVE,
        says="threshold + Lap(2/epsilon), answers + Lap(4/epsilon), halt at the first top: (epsilon, 0)-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_above_threshold,
        audits=("AboveThreshold", "AboveThreshold with half the noise", "AboveThreshold without query noise"),
    ),
    Statement(
        name="Half of epsilon for the rounds before, half for the present one",
        place=ABOVE,
        says="two mechanisms: a 1-sensitive query for the previous rounds, a 2-sensitive one for this round",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_parts,
        audits=("AboveThreshold", "Lyu's algorithm 7 without the factor 2"),
    ),
    Statement(
        name="Privacy degrades only with the number of tops",
        place=SPARSE,
        says="if only tops are reported, the loss grows with the tops and not with all queries",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_tops_only,
        audits=(
            "AboveThreshold without threshold noise",
            "AboveThreshold with new threshold noise for each answer",
            "AboveThreshold without a halt",
            "Sparse without a cut-off",
        ),
    ),
    Statement(
        name="c runs of AboveThreshold are c epsilon-DP",
        place="Bassi 2019, notes 001, 'Sparse vector mechanism (again)'",
        says="restarted c times, each epsilon-DP: (c epsilon, 0)-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_composed,
        audits=("Sparse with the noise of one AboveThreshold",),
    ),
    Statement(
        name="Sparse with sigma = 2 c / epsilon is epsilon-DP",
        place="Bassi 2019, notes 001, 'Sparse vector mechanism (cont.)', delta = 0",
        says="sigma = 2 c/epsilon, threshold + Lap(sigma), anew after each top, answers + Lap(2 sigma)",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_pure,
        audits=(
            "Sparse",
            "Sparse with the threshold kept after a top",
            "Sparse with query noise that forgets c",
            "Sparse without threshold noise",
            "Sparse without query noise",
        ),
    ),
    Statement(
        name="Sparse with the noise of advanced composition is (epsilon, delta)-DP",
        place="Bassi 2019, notes 001, 'Sparse vector mechanism (cont.)', delta > 0",
        says="sigma = 2 sqrt(2 c ln(1/delta)) / epsilon",
        verdict="not provable as argued",
        how=("derived", "computed"),
        check=check_approximate,
        audits=("Sparse as approximate DP", "Sparse as approximate DP, without query noise"),
    ),
    Statement(
        name="The noisy values above the threshold may be released",
        place=SPARSE,
        says="noise is added, the noisy values above the threshold are released, and c of them end the algorithm",
        verdict="wrong",
        how=("derived", "computed", "audited"),
        check=check_values,
        audits=(
            "Sparse with the noisy value released",
            "Lyu's algorithm 3: the compared value released",
            "Numeric Sparse",
            "Sparse with gaps",
        ),
    ),
)
