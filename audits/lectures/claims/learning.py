"""Learning: the private PAC learner, regularised regression, and regression from statistics."""

from __future__ import annotations

from audits.lectures.claims import learning_classes, learning_parities, learning_queries, learning_universe
from audits.lectures.claims.regressions import REGRESSION
from audits.lectures.claims.statement import Statement

HAGHTALAB = "Haghtalab 2020, notes 000"
PROOF = f"{HAGHTALAB}, proof of theorem 3.2"

STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "a sample polynomial in 1/beta",
        f"{HAGHTALAB}, definition 3.1",
        r"a private PAC learner uses at most $\mathrm{poly}(1/\alpha, 1/\beta, 1/\varepsilon)$ samples, and as the "
        "class is large",
        "right and loose",
        ("computed",),
        learning_queries.check_polynomial,
        quote=(
            r"with probability at least $1 - \beta$, $\mathcal{A}$ outputs a hypothesis $h \in \mathcal{H}$ using at "
            r"most $\operatorname{poly}(\frac{1}{\alpha}, \frac{1}{\beta}, \frac{1}{\epsilon}, \operatorname{rep. of } "
            r"\mathcal{H})$ samples such that $\operatorname{err}_{\mathcal{D}}(h) \leq \alpha$"
        ),
        reading="A polynomial in 1/beta is usual: a definition may ask for less than can be had, and this one does.",
    ),
    Statement(
        "what statistical queries cannot learn",
        f"{HAGHTALAB}, theorem 3.2",
        "Is, the other way round, whatever is efficiently learnable with privacy learnable by statistical queries?",
        "question or trap",
        ("derived", "computed"),
        learning_parities.check_parities,
        quote=(
            r"Any $\mathcal{H}$ that is efficiently learnable in the statistical query model is also efficiently *PAC* "
            r"learnable with $\epsilon$-differentially privacy."
        ),
        reading="The notes do not say so: the theorem says that privacy follows, and is judged below.",
    ),
    Statement(
        "the sample of the private PAC learner",
        f"{HAGHTALAB}, theorem 3.2",
        r"with K queries of tolerance $\tau$, $m = O\left(\frac{K}{\varepsilon\tau}\ln\frac{K}{\beta} + "
        r"\frac{1}{\tau^2}\ln\frac{K}{\beta}\right)$ samples suffice",
        "right and loose",
        ("derived", "computed"),
        learning_classes.check_sample,
        ("PAC learner of a threshold", "PAC learner of a conjunction", "PAC learner of a decision list"),
        learning_classes.SAMPLE,
        quote=(
            r"Any $\mathcal{H}$ that is efficiently learnable in the statistical query model is also efficiently *PAC* "
            r"learnable with $\epsilon$-differentially privacy. ... K queries of tolerance at least $\tau$ , then m "
            r"samples suffice to "
            r"$\epsilon$-privately PAC learn $\mathcal{H}$ , where $m \in \mathcal{O}\left(\frac{K}{\epsilon\tau}"
            r"\ln\left(\frac{K}{\beta}\right) + \frac{1}{\tau^2}\ln\left(\frac{K}{\beta}\right)\right).$"
        ),
        reading="An O(.) with constants of ours: half of the tolerance and of beta for the noise, half for the sample; "
        "and queries fixed before the sample, as in the proof. What learners that choose them need is measured.",
    ),
    Statement(
        "each query is a 1/m-sensitive average",
        f"{PROOF}, equations (3) and (4)",
        r"$\Delta f_i \leq 1/m$ for the average of a query over m records",
        "right and tight",
        ("derived", "computed"),
        learning_queries.check_sensitivity,
        quote=(
            r"The main idea is that sensitivity of statistical queries is small. ... $\forall i \in [K], \Delta f_i = "
            r"\max_{\text{adjacent } S_1, S_2} \frac{1}{m} \left| \left(\sum_{x \in S_1} \psi_i \left(x, h^*(x) "
            r"\right) - \sum_{x \in S_2} \psi_i \left(x, h^*(x) \right) \right) \right| \le \frac{1}{m}$"
        ),
        reading="Queries with values in [0, 1], as is usual; sets of one size m, of which one element is another one.",
    ),
    Statement(
        "K answers at epsilon / K each",
        PROOF,
        r"$\mathrm{Lap}(K / (\varepsilon m))$ on each of K queries is $\varepsilon / K$ for each",
        "right and tight",
        ("derived", "audited"),
        learning_queries.check_privacy,
        ("three statistical queries", "statistical queries, budget not divided"),
        quote=(
            r"We will compute each $f_i$ and given set S, we will release Lap $(S, f_i(\cdot), \frac{K}{\epsilon "
            r"m})$. By the privacy guarantees on the Laplace mechanism, we know this is $\frac{\epsilon}{K}$"
            "-differentially private."
        ),
        reading="The third argument is the scale of the noise, though definition 2.5 has epsilon in that place.",
    ),
    Statement(
        "whatever the learner does with the answers",
        f"{PROOF}; theorem 3.3",
        r"any computation that depends on the K private answers is $\varepsilon$-DP as a whole",
        "right and tight",
        ("derived", "audited"),
        learning_queries.check_any_computation,
        (
            "PAC learner of a threshold",
            "PAC learner of a threshold, half the noise",
            "PAC learner, asked until clear",
            "PAC learner, only the last query charged",
            "PAC learner, training error released",
            "PAC learner of a conjunction",
            "PAC learner of a conjunction, half the noise",
            "PAC learner of a halfspace",
            "PAC learner of a halfspace, half the noise",
            "PAC learner of a decision list",
            "all answers of a PAC learner of conjunctions",
            "all answers of a PAC learner of conjunctions, budget not divided",
        ),
        quote=(
            "By the composition theorem for differential privacy, we know that any computation that depends on these k "
            r"mechanisms will yield a $\epsilon$-differentially private mechanism overall."
        ),
        reading="Composition of queries chosen one after the other, which the sum of the epsilons covers as well.",
    ),
    Statement(
        "the error of one private answer",
        PROOF,
        r"with probability $1 - \beta$ the noise on one answer is at most $\frac{K}{\varepsilon m}\ln\frac{1}{\beta}$",
        "right and tight",
        ("derived",),
        learning_queries.check_one_answer,
        quote=(
            r"for every $f_i$ and every S, we know that with probability at least $1 - \beta$, the error in "
            r"approximating $f_i(S)$ is at most $\frac{K}{\epsilon m} \ln \left(\frac{1}{\beta}\right)$."
        ),
    ),
    Statement(
        "ln(1/beta) for all queries",
        PROOF,
        r"with $m \geq \frac{2K}{\varepsilon\tau}\ln\frac{1}{\beta}$ the noise is at most $\tau / 2$ with probability "
        r"$1 - \beta$",
        "not provable as argued",
        ("derived", "computed"),
        learning_queries.check_all_answers,
        quote=(
            r"If the number of samples m is at least $O\left(\frac{2K}{\epsilon \tau} \ln \left(\frac{1}{\beta}\right)"
            r"\right)$, then with probability at least $1 - \beta$, the error is at most $\frac{\tau}{2}$."
        ),
        reading=(
            "Of one query it is right. The learner needs all K answers at once, so the proof lacks a union over them; "
            "the theorem itself has it, ln(K/beta)."
        ),
    ),
    Statement(
        "the sample behind the averages",
        f"{PROOF}, equation (3)",
        r"with $m = O\left(\frac{1}{\tau^2}\ln\frac{K}{\beta}\right)$ every average is within $\tau / 2$ of its "
        "expectation",
        "right",
        ("derived", "computed"),
        learning_queries.check_sample,
        quote=(
            r"Further, as we have seen last lecture, if the number of samples m is at least $O\left(\frac{1}{\tau^2} "
            r"\ln \left(\frac{K}{\beta}\right)\right)$, then $|f_i(S) - \mathbb{E}_{x \in \mathcal{D}} \left[\psi_i(x, "
            r"h^*(x))\right]| \leq \frac{\tau}{2}$."
        ),
        context=(
            r"Assume that we used statistical queries $ψ_1, \ldots, ψ_K$ of tolerance $\tau$ for learning "
            r"$\mathcal{H}$."
        ),
        reading="With probability 1 - beta, constants of ours in the O(.), and queries fixed before the sample.",
    ),
    Statement(
        "tau/2 after the triangle inequality",
        f"{PROOF}, last line",
        r"with probability $1 - \beta$ the noisy answer is within $\tau / 2$ of the true expectation",
        "not provable as argued",
        ("derived", "computed"),
        learning_queries.check_triangle,
        quote=(
            r"If m is at least both of these amounts, then by triangle inequality we have that with probability at "
            r"least $1 - \beta$, $|\text{Lap}\left(S, f_i(\cdot), \frac{K}{\epsilon m}\right) - \mathbb{E}_{x \in "
            r"\mathcal{D}} \left[\psi_i(x, h^*(x))\right]| \leq \frac{\tau}{2}$."
        ),
        context=r"If the number of samples m is at least $O\left(\frac{2K}{\epsilon \tau} \ln "
        r"\left(\frac{1}{\beta}\right)\right)$",
    ),
    Statement(
        "learning on a finite universe",
        "CS 208, notes 002, theorem 4.1",
        "what is learnable on a finite universe is learnable with DP, with n larger by the log of its size at most",
        "right",
        ("derived", "computed"),
        learning_universe.check_universe,
        figure=learning_universe.UNIVERSE,
        quote=(
            "*Anything learnable non-privately on a finite data universe is also learnable with DP (with larger n , "
            "which is at most logarithmic in the size of the data universe).*"
        ),
        reading="Larger by a factor of the logarithm, up to constants and to the VC dimension of the class.",
    ),
    *REGRESSION,
)
