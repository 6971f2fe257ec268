"""Random mechanisms as source text, right ones and wrong ones alike: the sparse vector technique, noisy max, sums.

Which of them are private nobody knows when they are made: what is proved of one is confronted with exact losses.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.verify.proof import Adjacency

Pair = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]

SCALES = ("1 / eps", "2 / eps", "3 / eps", "4 / eps", "4 / (3 * eps)", "1 / (2 * eps)")
PER_TOP = ("c / eps", "2 * c / eps", "3 * c / eps", "4 * c / eps", "6 * c / eps", "8 * c / eps")
ADJACENCIES: tuple[Adjacency, ...] = ("all-differ", "all-differ", "all-differ", "one-differs", "up", "down")


@dataclass(frozen=True)
class Mechanism:
    """A random mechanism: its source, how neighbours differ, values of its parameters, pairs of answers to look at."""

    kind: str
    source: str
    adjacency: Adjacency
    parameters: dict[str, Fraction]
    pairs: tuple[Pair, ...]
    symbolic: bool  # whether a proof for all parameters and any number of answers is asked for first

    @property
    def answers(self) -> int:
        """How many answers the pairs have."""
        return len(self.pairs[0][0])


def mechanism(seed: int) -> Mechanism:
    """The mechanism of a seed."""
    numbers = random.Random(seed)
    kind = numbers.choices(("sparse", "largest", "sums", "two draws"), (10, 5, 4, 1))[0]
    adjacency = numbers.choice(ADJACENCIES)
    parameters = {"eps": numbers.choice([Fraction(1, 2), Fraction(1), Fraction(2)])}
    if kind == "sparse":
        source = _sparse(numbers, parameters)
    elif kind == "largest":
        source = _largest(numbers)
    elif kind == "sums":
        source = _sums(numbers)
    else:
        source = _two_draws(numbers, parameters)
    size = numbers.randint(1, 3)
    pairs = tuple(_pair(numbers, adjacency, size) for _ in range(3))
    return Mechanism(kind, source, adjacency, parameters, pairs, numbers.random() < 0.7)


def _sparse(numbers: random.Random, parameters: dict[str, Fraction]) -> str:
    """A threshold with or without noise, redrawn or not; answers with or without; tops that give away this or that."""
    halts = numbers.random() < 0.7
    some = (*SCALES, *PER_TOP) if halts else SCALES
    threshold = f"T + rng.laplace(scale={numbers.choice(some)})" if numbers.random() < 0.85 else "T"
    noisy = f"x + rng.laplace(scale={numbers.choice(some)})" if numbers.random() < 0.9 else "x"
    redraw = numbers.choice(["never", "never", "top", "each"])
    fresh = f"x + rng.laplace(scale={numbers.choice(some)})"
    given = numbers.choices(("True", "v - t", "v", fresh, "x - t", "x"), (8, 3, 2, 2, 1, 1))[0]
    low = numbers.choices(("None", fresh, "x"), (18, 1, 1))[0]
    if "x" in low and given == "True":
        given = "'top'"
    order = numbers.choice([">=", ">=", ">", "<"])
    by_place = numbers.random() < 0.2
    parameters["T"] = numbers.choice([Fraction(0), Fraction(1, 2)])
    if halts:
        parameters["c"] = Fraction(numbers.randint(1, 2))
    lines = ["assert eps > 0", *(["assert c >= 1"] if halts else [])]
    lines += ["out = {}" if by_place else "out = []", "count = 0", f"t = {threshold}", "for i, x in enumerate(q):"]
    lines += [f"    t = {threshold}"] if redraw == "each" else []
    lines += [f"    v = {noisy}", f"    if v {order} t:"]
    lines += [f"        out[i] = {given}" if by_place else f"        out.append({given})", "        count += 1"]
    lines += [f"        t = {threshold}"] if redraw == "top" else []
    lines += ["        if count >= c:", "            break"] if halts and numbers.random() < 0.5 else []
    lines += [] if by_place else ["    else:", f"        out.append({low})"]
    if halts and "break" not in "".join(lines):
        lines += [f"    if {'len(out)' if by_place else 'count'} >= c:", "        break"]
    return _function(f"q, rng, eps, T{', c' if halts else ''}", [*lines, "return out"])


def _largest(numbers: random.Random) -> str:
    """The index of the largest noisy answer, or its value, or both; with one mistake or another."""
    law = numbers.choices(("laplace", "exponential"), (4, 1))[0]
    noisy = f"rng.{law}(scale={numbers.choice(SCALES)})"
    released = numbers.choices(("winner", "best", "both", "fresh"), (6, 2, 1, 1))[0]
    order = numbers.choice([">", ">", ">=", "<"])
    if released != "fresh" and order in "><" and numbers.random() < 0.4:
        word = "max" if order == ">" else "min"
        result = {"winner": f"noisy.index({word}(noisy))", "best": f"{word}(noisy)"}
        result["both"] = f"{result['winner']}, {result['best']}"
        lines = ["assert eps > 0", f"noisy = [x + {noisy} for x in q]", f"return {result[released]}"]
        return _function("q, rng, eps", lines)
    lead = numbers.choices(("", " + 1", " - 1"), (8, 1, 1))[0]
    start = numbers.choices(("i == 0 or ", ""), (9, 1))[0]
    lines = ["assert eps > 0", "best = 0", "winner = 0", "for i in range(len(q)):", f"    y = q[i] + {noisy}"]
    lines += [f"    if {start}y {order} best{lead}:", "        winner = i", "        best = y"]
    fresh = f"winner, rng.laplace(scale={numbers.choice(SCALES)})"
    result = {"winner": "winner", "best": "best", "both": "winner, best", "fresh": fresh}
    return _function("q, rng, eps", [*lines, f"return {result[released]}"])


def _sums(numbers: random.Random) -> str:
    """Sums and prefix sums with noise, once, for each answer, or in blocks of two."""
    draw = f"rng.laplace(scale={numbers.choice(SCALES)})"
    lines = ["assert eps > 0", "s = 0", "out = []", "for i, x in enumerate(q):"]
    kind = numbers.choice(["once", "each", "prefixes", "kept", "blocks"])
    if kind == "blocks":
        end = numbers.choice([f" + {draw}", f" + {draw}", ""])
        lines.insert(2, "r = 0")
        start = numbers.choice(["0", "0", "s + x"])
        lines += ["    if (i + 1) % 2 == 0:", f"        r = s + x{end}", f"        s = {start}"]
        lines += ["    else:", f"        r = r + x + {draw}", "        s = s + x", "    out.append(r)"]
        return _function("q, rng, eps", [*lines, "return out"])
    step = numbers.choice(["s += x", "s += x", "s -= x", "s = x", "s += 2 * x", "s = s / 2 + x"])
    if kind == "each":
        lines += [f"    out.append({numbers.choice(['x', '2 * x', '-x', 'x / 2'])} + {draw})"]
    elif kind == "prefixes":
        lines += [f"    {step}", f"    out.append(s + {draw})"]
    elif kind == "kept":
        lines += [f"    s += x + {draw}", "    out.append(s)"]
    else:
        lines += [f"    {step}"]
        return _function("q, rng, eps", [*(line for line in lines if "out" not in line), f"return s + {draw}"])
    return _function("q, rng, eps", [*lines, "return out"])


def _two_draws(numbers: random.Random, parameters: dict[str, Fraction]) -> str:
    """Coarse noise first, fine noise where that does not decide; tops of two prices."""
    parameters |= {"T": Fraction(0), "c": Fraction(1)}
    coarse, fine = (numbers.choice(PER_TOP[2:]) for _ in range(2))
    far, dear, cheap = numbers.choice([1, 4]), numbers.choice([1, 2]), numbers.choice([1, 2])
    gap = numbers.choice(["a - t", "a - t", "True", "a"])
    lines = ["assert eps > 0", "assert c >= 1", f"t = T + rng.laplace(scale={numbers.choice(SCALES)})", "spent = 0"]
    lines += ["out = []", "for x in q:", f"    a = x + rng.laplace(scale={coarse})", f"    if a - t >= {far}:"]
    lines += [f"        out.append({gap})", f"        spent += {cheap}", "    else:"]
    lines += [f"        b = x + rng.laplace(scale={fine})", "        if b - t >= 0:"]
    lines += [f"            out.append({'True' if gap == 'True' else 'b - t'})", f"            spent += {dear}"]
    lines += [
        "        else:",
        "            out.append(None)",
        "    if spent > 2 * c - 2:",
        "        break",
        "return out",
    ]
    return _function("q, rng, eps, T, c", lines)


def _function(signature: str, lines: list[str]) -> str:
    return "\n".join([f"def f({signature}):", *(f"    {line}" for line in lines)]) + "\n"


def _pair(numbers: random.Random, adjacency: Adjacency, size: int) -> Pair:
    """Two neighbours: mostly blocks of equal answers that move as one, the worst there are for most mechanisms."""
    x, y = (Fraction(numbers.randint(-4, 4), 2) for _ in range(2))
    turn = numbers.randint(0, size)
    first = [x if place < turn else y for place in range(size)]
    if numbers.random() < 0.2:
        first = [Fraction(numbers.randint(-4, 4), 2) for _ in range(size)]
    steps = {"up": (0, 1), "down": (-1, 0)}.get(adjacency, (-1, 1))
    one, other = (Fraction(numbers.choice(steps)) for _ in range(2))
    moves = [one if place < turn else other for place in range(size)]
    if adjacency == "one-differs":
        chosen = numbers.randrange(size)
        moves = [Fraction(numbers.choice([-1, 1])) if place == chosen else Fraction(0) for place in range(size)]
    return tuple(first), tuple(answer + move for answer, move in zip(first, moves, strict=True))
