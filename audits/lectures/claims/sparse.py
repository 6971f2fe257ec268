"""The sparse vector technique."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audits.lectures.claims.sparse_composed import AGAIN, COMPOSED
from audits.lectures.claims.statement import Figure, Statement, Truth, Verdict
from dpaudit import BracketVerdict, bracket
from dpaudit.catalogue import find

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASSI = "Bassi 2019, notes 001"
ABOVE, SPARSE = f"{BASSI}, 'Detour: AboveThreshold algorithm'", f"{BASSI}, 'Sparse vector mechanism'"
PROCEDURE = f"{BASSI}, 'Sparse vector mechanism (cont.)'"
SEED = 0  # of thresholds at random
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
    by_tops = {c: loss("sparse", *repeated(9, c), epsilon=float(c), c=c) for c in (1, 2, 3)}
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
    losses = {(c, n): loss("sparse", *repeated(n // c - 1, c), c=c) for c, n in ((2, 8), (2, 24), (3, 24))}
    kept = loss("sparse.threshold_kept", *witness(14, 2), c=2)
    return Truth(
        of_bound(max(losses.values()), 1.0),
        f"At epsilon = 1 the exact loss is {losses[2, 8]:.4f} for c = 2 and 8 answers, {losses[2, 24]:.4f} for c = 2 "
        f"and 24, and {losses[3, 24]:.4f} for c = 3 and 24. The new threshold noise after each top is not what saves "
        f"it: kept, with this noise, it loses less ({kept:.3f} for c = 2 and 16 answers).",
        {"c = 2, 24 answers": losses[2, 24], "c = 3, 24 answers": losses[3, 24], "kept": kept},
    )


def check_values() -> Truth:
    """Tops cost what is promised; numbers too, if they have noise of their own that is paid for."""
    tops = {c: loss("sparse", *repeated(11, c), c=c) for c in (1, 2)}
    compared = {n: loss("sparse.value_released", [0.0] * n, [1.0] * n, c=1) for n in (4, 8, 16)}
    fresh = loss("numeric_sparse", *witness(14, 2), c=2)
    return Truth(
        of_bound(max(tops.values()), 1.0),
        f"Tops alone lose {tops[1]:.4f} and {tops[2]:.4f} at epsilon = 1 and c = 1, 2. Numbers are another matter. If "
        f"the noisy answer that was compared is given away, n answers lose {compared[16] / 16:.2f} n epsilon "
        f"({compared[4]:.2f} for 4, {compared[16]:.2f} for 16 at c = 1): there is no bound. A number needs a draw of "
        f"its own, paid for beside the comparison: so divided, two numbers and 16 answers lose {fresh:.3f}.",
        {"tops, c = 2": tops[2], "4 answers": compared[4], "16 answers": compared[16], "fresh noise": fresh},
    )


def halting_as_printed(bottoms: int, c: int) -> float:
    """The loss at epsilon = 1 with so many bottoms before each top: its epochs share no noise, so c + 1 add up."""
    return (c + 1) * loss("above_threshold", *witness(bottoms), epsilon=1.0 / c)


def check_halting() -> Truth:
    cases = (1, 2), (1, 4), (2, 3)  # tops paid for, bottoms before each
    printed = {(c, n): loss("sparse.printed_halt", *repeated(n, c + 1), c=c) for c, n in cases}
    meant = max(loss("sparse", *repeated(n, c + 1), c=c) for c, n in cases)
    far = {c: halting_as_printed(24, c) for c in (1, 2, 3)}
    two = find("sparse.printed_halt").with_parameters({"c": 2})
    proved = bracket(two, 3.0 / 2.0, pair=([1.0], [2.0]), runs=0).verdict is BracketVerdict.PROVED  # for all answers
    worst = max(*printed.values(), *far.values())
    return Truth(
        of_bound(worst, 1.0),
        "Word for word the line waits for the top after the c-th, so c + 1 of them are answered, and each costs up to "
        f"epsilon / c. At epsilon = 1 and c = 1 the exact loss is {printed[1, 2]:.3f} with 2 bottoms before each top "
        f"and {printed[1, 4]:.3f} with 4; at c = 2 it is {printed[2, 3]:.3f} with 3. With 24 it is {far[1]:.4f}, "
        f"{far[2]:.4f} and {far[3]:.4f} for c = 1, 2, 3: it tends to (c + 1) / c. That c = 2 never exceeds 3/2 is "
        f"{'proved' if proved else 'not proved'} from the source. As the comment has it the loss is at most 1 "
        f"({meant:.3f} on the same answers).",
        {"c = 1": far[1], "c = 2": far[2], "c = 3": far[3], "as the comment": meant},
    )


def draw_halting(axes: Axes) -> None:
    lengths = (1, 2, 3, 4, 6, 8, 11, 15, 20)
    for c, color, mark in ((1, "tab:blue", "o"), (2, "tab:orange", "s"), (3, "tab:green", "^")):
        found = [halting_as_printed(n, c) for n in lengths]
        axes.plot(lengths, found, color=color, marker=mark, markersize=4, label=f"as printed, c = {c}")
        axes.axhline((c + 1) / c, color=color, linewidth=0.7, linestyle=":")
    meant = [2 * loss("above_threshold", *witness(n), epsilon=1 / 2) for n in lengths]
    axes.plot(lengths, meant, color="tab:gray", marker="x", markersize=4, label="as the comment, c = 2")
    axes.set_xlabel("bottoms before each top")
    axes.set_ylabel("exact loss at epsilon = 1")
    axes.legend(fontsize="small")


def check_thresholds() -> Truth:
    rng = np.random.default_rng(SEED)
    losses = []
    for c in (1, 2):
        for _ in range(20):
            thresholds, gaps, moves = rng.integers(-50, 50, 6), rng.integers(-3, 4, 6), rng.choice([-1, 1], 6)
            pair = (thresholds + gaps).tolist(), (thresholds + gaps + moves).tolist()
            losses.append(loss("sparse_thresholds", *pair, thresholds=thresholds.tolist(), c=c))
    steps = [10.0 * place for place in range(16)]
    pair = ([t + x for t, x in zip(steps, side, strict=True)] for side in witness(15))
    tight = loss("sparse_thresholds", *pair, thresholds=steps, c=1)
    own = loss("sparse_thresholds.noise_of_its_own", [t - 2 for t in steps], [t - 1 for t in steps], thresholds=steps)
    data = loss(
        "sparse_thresholds.from_the_data", [0.0] * 10, [1.0, -1.0] * 5, thresholds=[-1.0, 30.0] * 4 + [-1.0, 0.0]
    )
    return Truth(
        of_bound(max(*losses, tight), 1.0),
        f"An answer less its threshold moves as the answer does, by at most 1. With 16 thresholds the loss is "
        f"{tight:.4f} at epsilon = 1, as with a single one; on {len(losses)} pairs with thresholds at random it is at "
        f"most {max(losses):.3f}. The thresholds share one draw of noise: with a draw for each, 16 bottoms lose "
        f"{own:.3f}. And they are fixed in advance, as the notes say: where each is the exact answer before it, ten "
        f"answers lose {data:.3f}.",
        {"16 thresholds": tight, "a draw for each": own, "from the data": data},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="Privacy degrades only with the number of tops",
        place=SPARSE,
        says="if only tops are reported, the privacy loss grows with their number and not with that of all queries",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_tops_only,
        audits=(
            "AboveThreshold without threshold noise",
            "AboveThreshold with new threshold noise for each answer",
            "AboveThreshold without a halt",
            "Sparse without a cut-off",
        ),
        quote="If we only report when the answer to a query exceeds the threshold, we can show that privacy degrades "
        "only with the number of answered queries, rather than with the total.",
        context="We add noise to query values and compare the results to T.",
        reading="A query is answered if a top is reported for it. The slide speaks of noise on the answers only; the "
        "algorithm that follows has noise on the threshold too, and is what is meant.",
    ),
    Statement(
        name="Each query may have its own threshold",
        place=SPARSE,
        says=r"thresholds $T_1, T_2, \dots$ fixed in advance, one for each query, do as well as a single one",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_thresholds,
        audits=(
            "AboveThreshold with a threshold for each answer",
            "Sparse with a threshold for each answer",
            "Sparse with a threshold for each answer, each with noise of its own",
            "Sparse with thresholds from the data",
        ),
        quote="There is a single threshold $T$ fixed in advance but it is possible for each query to have its own "
        "threshold.",
        reading="The thresholds are public and fixed in advance, as the single one is, and share its draw of noise.",
    ),
    Statement(
        name="The noisy values above the threshold may be released",
        place=SPARSE,
        says=r"noise is added, what is above the threshold is released, and $c$ such releases end the algorithm",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_values,
        audits=(
            "Sparse with the noisy value released",
            "Lyu's algorithm 3: the compared value released",
            "Numeric Sparse",
            "Sparse with gaps",
        ),
        quote="We expect a small number $c$ of noisy values to exceed the threshold, and we only release the noisy "
        "values above the threshold.",
        context="The algorithm stops after releasing $c$ values. ... The following is a special case with c = 1 "
        r"released values. ... output $a_i = \top$",
        reading="To release a value is read as the algorithms of the notes do it: they output that it is above the "
        "threshold, and no number. Of numbers the sentence would be wrong: there is no bound.",
    ),
    Statement(
        name="AboveThreshold is epsilon-DP",
        place=ABOVE,
        says=r"with $\mathrm{Lap}(2/\varepsilon)$ on the threshold, $\mathrm{Lap}(4/\varepsilon)$ on the answers and a "
        r"halt at the first top: $(\varepsilon, 0)$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_above_threshold,
        audits=("AboveThreshold", "AboveThreshold with half the noise", "AboveThreshold without query noise"),
        quote=r"The AboveThreshold algorithm is $(\varepsilon, 0)$ -differentially private.",
        context="The following is a special case with c = 1 released values.",
        reading=r"The scales, printed as 2/2 and 4/c where a sign was lost, are read as $2/\varepsilon$ and "
        r"$4/\varepsilon$.",
    ),
    Statement(
        name="Half of epsilon for the rounds before, half for the present one",
        place=ABOVE,
        says="two mechanisms: a 1-sensitive query for the previous rounds, a 2-sensitive one for this round",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_parts,
        audits=("AboveThreshold", "Lyu's algorithm 7 without the factor 2"),
        quote="The proof looks like the composition of two DP mechanisms: one hiding the effect of previous rounds (a "
        "1-sensitivity query) and one hiding the effect of the present round (a 2-sensitivity query).",
        context=r"The parameters of the Laplacian noises of $\hat{T}$ and $\nu_i$ are selected such that the "
        "composition produces a $\\varepsilon$ -DP mechanism.",
    ),
    Statement(
        name="c runs of AboveThreshold are c epsilon-DP",
        place=AGAIN,
        says=r"$c$ runs of AboveThreshold, each $\varepsilon$-DP, are $(c \varepsilon, 0)$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_composed,
        audits=("Sparse with the noise of one AboveThreshold",),
        quote=r"Since each instance of AboveThreshold is $\varepsilon$-DP, the composition results apply: ... we may "
        r"obtain a $(c\varepsilon, 0)$ -DP mechanism",
        context="The algorithm halts after AboveThreshold has been restarted $c$ times.",
        reading=r"The first start is counted among the $c$: there are $c$ runs.",
    ),
    COMPOSED[0],
    Statement(
        name="Sparse with sigma = 2 c / epsilon is epsilon-DP",
        place=f"{PROCEDURE}, delta = 0",
        says=r"with $\sigma = 2 c/\varepsilon$, $\mathrm{Lap}(\sigma)$ on the threshold, anew after each top, and "
        r"$\mathrm{Lap}(2\sigma)$ on the answers, Sparse is $\varepsilon$-DP",
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
        quote=r"if $\delta = 0$ then $\sigma \leftarrow 2\frac{c}{c}$ ... $\hat{T}_0 \leftarrow T + "
        r"\mathsf{Lap}(\sigma)$ ... $\nu_i \leftarrow Lap(2\sigma)$ if $f_i(D) + \nu_i \geq \hat{T}_{count}$ then",
        context=r"halt $\triangleright$ Halt if we have produced $c$ positive results",
        reading=r"The denominator is read as $\varepsilon$, and the algorithm halts as the comment beside its last "
        "line has it. That it is then private is not said in a sentence: it is what its parameters stand for.",
    ),
    Statement(
        name="The halting line of Sparse, as printed",
        place=PROCEDURE,
        says=r"Sparse halts if count $> c$",
        verdict="wrong",
        how=("derived", "computed", "audited"),
        check=check_halting,
        audits=("Sparse with the halting line as printed", "Sparse"),
        figure=Figure(
            "The exact loss of Sparse with the line as printed, at the noise for c tops, by the bottoms before each "
            "top. The dotted lines are (c + 1) / c.",
            draw_halting,
        ),
        quote="if count > c then",
        context=r"halt $\triangleright$ Halt if we have produced $c$ positive results",
        hangs_on=r"$\geq$ for the $>$ of the line, and nothing is wrong: slides that are read off a picture lose such "
        r"a sign easily, and the comment beside it says what $\geq$ does.",
        reading=r"The comment says what is meant, and Sparse is judged by it above. Here the line is taken word for "
        r"word; what it needs is $\geq$. The line is the same where $\delta > 0$.",
    ),
    COMPOSED[1],
)
