"""Kinds of mistakes that a refutation may show: for each, what to look at and what usually mends it."""

from dpaudit.results.observations import Diagnosis

ADVICE = {  # by kind: what to look at, what usually mends it
    "constant output": (
        "where the noise is drawn: a fixed seed, noise that is computed and not added, or code that draws none",
        "draw fresh noise in every call, from the generator that the call is given or an unseeded one, and return it",
    ),
    "constant on one dataset": (
        "the branch that answers without noise: no or few rows, one value, an early return, a default",
        "add the same noise on every path, that of empty and degenerate data too",
    ),
    "answer without noise": (
        "when the noise is left out: a probability, a cache, a retry, a limit that is read off the data",
        "add noise in every run; where outputs are clipped, clip them to limits that are fixed beforehand",
    ),
    "number of records": (
        "where the number of records enters: len(rows), the mean, the scale of the noise, the length of the output",
        "release it with noise of its own; divide by a number that is public or noisy, in the scale of the noise too",
    ),
    "infinity": (
        "what a single value can do: nothing limits it before sums, means and scales are computed of it",
        "clip what a record adds to limits that are fixed beforehand, NaN too (it passes min, max and most clips), "
        "or leave out what is beyond",
    ),
    "failure": (
        "the code that fails, or returns None or NaN, and which data bring a run there",
        "let both datasets end alike: check what is public (types, columns, limits) and never values or their number, "
        "and give a noisy answer where data are few",
    ),
    "message": (
        "the text of the exception: what it is formatted with",
        "raise with a constant message, or answer with noise; whoever sees the message sees the data in it",
    ),
    "keys": (
        "where the keys come from: groups, categories or columns that occur in the data",
        "fix the keys beforehand, or release a key only where its noisy count passes a threshold, which costs a delta; "
        "a threshold that is there already is too low for the delta of the claim",
    ),
    "length": (
        "the loop that fills the output: over records, groups or categories of the data",
        "give the output a fixed length, or choose it with noise; noise that is there already is too small",
    ),
    "type": (
        "branches, rounding and library calls that give another type for some data",
        "convert what is returned to one type, in one place, whatever the data are",
    ),
    "order": (
        "what the output is filled from: the order of records, groups or a sort without noise",
        "sort what is returned in an order that does not depend on the data",
    ),
    "support": (
        "where the answers come from: a list, a range or limits that are read off the data, or a step without noise",
        "choose among answers that are fixed beforehand, each of them possible whatever the data are",
    ),
    "probabilities": (
        "how the probabilities follow from epsilon: the chance of a true answer, the weights of the candidates "
        "(epsilon times utility, over twice its sensitivity), the noise on what is compared, or codes and ranks that "
        "one record changes for all (by order of appearance)",
        "compute them from the claimed epsilon, or state the claim that they keep",
    ),
    "shared noise": (
        "whether each entry draws noise of its own",
        "draw a number for each entry, rng.laplace(size=n) and not rng.laplace()",
    ),
    "scale": (
        "what the scale of the noise is computed from: the range, the spread, the largest value or the sensitivity of "
        "the data at hand",
        "compute it from public limits; where it must follow the data, use smooth sensitivity or pay for the estimate",
    ),
    "location": (
        "the sensitivity on this pair: limits that are not enforced (clipping), the unit of the noise, scale and "
        "variance mixed up, epsilon spent several times",
        "more noise, or tighter limits on what a record adds: the noise must be scaled to the most that one record can "
        "change, and nothing may change more; or state the claim that this noise keeps",
    ),
    "bounded noise": (
        "the law of the noise: uniform, clipped or cut off, or limits that move with the answer",
        "use noise without ends (Laplace, Gaussian, geometric), or claim a delta that covers what lies beyond them",
    ),
    "tail": (
        "the law of the noise and the delta of the claim: Gaussian noise keeps no claim whose delta is 0",
        "Laplace noise of scale sensitivity / epsilon; or a claim with a delta (larger than now), and the Gaussian "
        "noise it asks for",
    ),
    "bits of floats": (
        "the last line that adds noise: a sum is rounded to the floats near the sum, so which last bits can occur "
        "depends on the answer (Mironov 2012)",
        "release integers from discrete noise, or snap the output to a fixed power-of-two grid not finer than the "
        "scale of the noise; this says nothing about the calibration of the noise",
    ),
}


def made(kind: str, sentence: str, look_at: str = "") -> Diagnosis:
    """The diagnosis of a kind, with where to look in this case if that is known."""
    return Diagnosis(kind, sentence, look_at or ADVICE[kind][0], ADVICE[kind][1])
