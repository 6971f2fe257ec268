"""What shows that a statement is tight: which number of its check reaches what is promised, and what that is.

Without such a number a statement that holds is called right, and nothing is said of what more might be true.
"""

from __future__ import annotations

from collections.abc import Mapping

ENOUGH = 0.99  # of what is promised
TIGHT: Mapping[str, tuple[str, float | str]] = {  # by the name of the statement; a text is another number of the check
    "unlikely-for-small-delta": ("reached", 1.0),
    "no-disadvantage": ("reached", 1.0),
    "almost-equally-likely": ("loss at 1", 1.0),
    "histogram-of-smokers": ("loss", 1.0),
    "laplace-count": ("loss", 1.0),
    "laplace-vector": ("loss", 1.0),
    "laplace-average": ("loss", 1.0),
    "laplace-density-display": ("quotient", 1.0),
    "laplace-theorem-2.6": ("exceeded at 0.05", 0.05),
    "laplace-average-accuracy": ("share beyond", 0.05),
    "sensitivity-of-averages": ("replaced", "bound"),
    "sensitivity-of-counts": ("three counts", 3.0),
    "distortion-of-a-count": ("epsilon 1", 1.0),
    "distortion-of-m-counts": ("simulated", 20.0),
    "gaussian-zcdp": ("rho at order 20", 0.5),
    "noisy-max-counts": ("three counts", 1.0),
    "noisy-max-against-all-counts": ("loss of all counts", 10.0),
    "exponential-mechanism": ("a thousand", 1.0),
    "exponential-mechanism-learning": ("a thousand", 1.0),
    "exponential-mechanism-utility": ("a thousand", 1.0),
    "Privacy degrades only with the number of tops": ("32 answers", 1.0),
    "Each query may have its own threshold": ("16 thresholds", 1.0),
    "The noisy values above the threshold may be released": ("fresh noise", 1.0),
    "AboveThreshold is epsilon-DP": ("16 answers", 1.0),
    "Half of epsilon for the rounds before, half for the present one": ("bottoms and top", 1.0),
    "c runs of AboveThreshold are c epsilon-DP": ("one epoch", 1.0),
    "Sparse with sigma = 2 c / epsilon is epsilon-DP": ("c = 2, 24 answers", 1.0),
    "composition-of-k": ("fixed, k = 100", 1.0),
    "composition-of-two": ("two responses", 1.0),
    "composition-of-approximate": ("ratio, k = 100, delta = 1e-06", 1.0),
    "adaptive-composition": ("largest", 1.0),
    "total-privacy-loss": ("pure", 10.0),
    "one-in-10000": ("loss", 1.0),
    "post-processing": ("a map that can be undone", 1.0),
    "group-privacy": ("least ratio", 1.0),
    "replace-one": ("histogram", 2.0),
    "cannot-be-sure": ("randomised response", "allowed"),
    "each query is a 1/m-sensitive average": ("largest", 0.25),
    "the error of one private answer": ("missed", 0.05),
    "K answers at epsilon / K each": ("divided", 1.0),
    "whatever the learner does with the answers": ("threshold, hypothesis", 1.0),
    "noise on the sufficient statistics": ("split", 1.0),
    "dp-gd-clipping-and-noise": ("with both", "claimed"),
    "dp-sgd-as-drawn": ("one step, reached", "one step, holds"),
    "example-variance": ("exact", "told"),
    "example-disjoint": ("disjoint", 1.0),
    "adaptive-laplace-answers": ("summed", 4.0),
    "adaptive-sparse": ("k = 16", 1.0),
    "thresholdout-interaction": ("in order", 1.0),
    "max-information-conditional": ("largest ratio", 1.0),
    "max-information-mutual": ("reached", 1.0),
    "max-information-over-datasets": ("eta = 1e-06", "two datasets"),
    "max-information-post-processing": ("kept where it can be undone", 1.0),
    "max-information-composition": ("reached", 1.0),
    "max-information-usefulness": ("reached", 1.0),
    "max-information-pure": ("bits, eta = 1e-08", 1.0),
    "Thresholdout is (2 B / (sigma n))-DP": ("B = 1", 1.0),
    "Sparse at rate 2 sigma and values at rate sigma cost B / (sigma n) each": ("value", 0.5),
    "The distance of holdout and training average is 1/n-sensitive": ("largest move, times n", 1.0),
}


def reached(name: str, numbers: Mapping[str, float]) -> float | None:
    """The part of what a statement promises that the numbers of its check reach; None where no number is for that.

    >>> reached("replace-one", {"histogram": 1.99}), reached("larger-variance", {})
    (0.995, None)
    """
    if name not in TIGHT:
        return None
    number, promised = TIGHT[name]
    return numbers[number] / (numbers[promised] if isinstance(promised, str) else promised)
