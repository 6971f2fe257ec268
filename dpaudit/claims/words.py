"""Numbers in the words of a claim."""

import math

LARGEST_LOSS = 700.0  # e to a larger power is no float
FULL_DIGITS = 1e9  # from here on a ratio is told as a power of ten


def exact(value: float) -> str:
    """A number as the user gave it: the shortest decimal that names the float.

    >>> exact(1.0), exact(1e-06)
    ('1', '1e-06')
    """
    return "inf" if value == math.inf else repr(float(value)).removesuffix(".0")


def times(epsilon: float) -> str:
    """How many times as probable an epsilon above 0 allows.

    >>> times(1.0), times(1e4)
    ('about 2.72 times', 'about e to the 10000 times')
    """
    if epsilon > LARGEST_LOSS:
        return f"about e to the {exact(epsilon)} times"
    ratio = math.exp(epsilon)
    if ratio < 1_000.0:
        return f"about {ratio:.3g} times"
    power = math.floor(math.log10(ratio))
    whole = f"{round(ratio / 10.0 ** (power - 2)) * 10 ** (power - 2):,}" if ratio < FULL_DIGITS else f"10^{power:,}"
    return f"about {whole} times"
