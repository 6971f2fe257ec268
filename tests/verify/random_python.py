"""Random programs that do in Python what a reader may overlook, and the losses that Python's own runs of them show.

They raise on some of the data alone, hold dead code, set keys twice, bind names late, keep their accounts in doubles,
compare parameters with literals, and add one draw to a whole vector. The judge of their losses is Python itself: it
runs each program on noise that is restricted to whole numbers. A proof by alignment holds for each value of the noise
by itself, and so for this noise too.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.programs import function_of
from tests.verify.random_programs import Mechanism, mechanism

LEAST, MOST = 1e-7, 12_000  # the probability of a run that is still made, and how many are
Law = dict[Any, float]


@dataclass(frozen=True)
class Hostile:
    """A random program: what it does, how neighbours differ, its parameters, a pair, and a claim to be tried."""

    kind: str
    function: Callable[..., Any]
    source: str
    parameters: dict[str, Any]
    pair: tuple[Any, Any]
    claim: float
    adjacency: str


def hostile(seed: int) -> Hostile:
    """The program of a seed."""
    numbers = random.Random(seed)
    kind = numbers.choice(sorted(KINDS))
    adjacency = "all-differ"
    parameters: dict[str, Any] = {"eps": numbers.choice([1.0, 2.0, 4.0]), "N": numbers.choice([0, 1, 1, 2])}
    first = [numbers.choice([-1.0, 0.0, 0.0, 1.0, 2.0]) for _ in range(SIZES.get(kind, numbers.choice([1, 2, 2])))]
    second = [answer + numbers.choice([-1.0, 1.0]) for answer in first]
    pair: tuple[Any, Any] = (first, second)
    if kind == "dead code":
        lines, drawn = _with_dead_code(numbers, parameters, seed)
        adjacency = "monotone" if drawn.adjacency in ("up", "down") else drawn.adjacency
        differing = [each for each in drawn.pairs if each[0] != each[1]] or [((Fraction(0),), (Fraction(1),))]
        pair = tuple([float(answer) for answer in answers] for answers in differing[0])  # type: ignore[assignment]
    else:
        lines = [f"def f(q, rng, eps, N{numbers.choice(['', ': int'])}):"]
        lines += ["    assert N >= 1"] if parameters["N"] and numbers.random() < 0.5 else []
        lines += [f"    {line}" for line in KINDS[kind](numbers, parameters)]
    least = numbers.choice([0, 0, 1])
    helpers = [text.replace("LEAST", str(least)) for name, text in HELPERS.items() if f"{name}(" in "\n".join(lines)]
    source = "\n".join([*lines, "", *helpers])
    if kind in ("a release", "literals"):
        pair = first[0], second[0]
    elif kind == "a vector":
        pair = np.array([0.0, 0.0]), np.array([1.0, -1.0])
    return Hostile(kind, function_of(source, "f"), source, parameters, pair, parameters["eps"], adjacency)


# --- the programs: lines of a body ------------------------------------------------------------------------------


def _unused(numbers: random.Random, parameters: dict[str, Any], here: str) -> str:
    """A condition that nobody needs; some raise, and where depends on the data (`here`)."""
    eps = parameters["eps"]
    tests = [f"{here} > 0 and 1 / (eps - {numbers.choice([eps, eps + 1])}) > 0", f"{here} > 0 and late > 0"]
    tests += [f"0 < {here} < 1 / N", f"{here} > 0 or {here} / N > 0", f"{here} > 0 and {here} / (N + 1) > 0"]
    tests += [f"{here} > 0 and eps > 0", f"{here} > 0 or {here} < -3 * N", f"not {here} / eps > 0", f"0 < {here} < 1"]
    return numbers.choice(tests)


def _dead(
    numbers: random.Random, parameters: dict[str, Any], here: str, index: str | None, *, branches: bool = False
) -> list[str]:
    """Lines of no use, of which some raise for some of the data; `branches` on the data, which few proofs allow."""
    if numbers.random() < 0.5 and not branches:
        return [f"high = {_unused(numbers, parameters, here)}"]
    inner = [
        f"z = 1 / (eps - {parameters['eps']})",
        "z = late + 1",
        "z = 1 / N",
        "z = eps / (N + 1)",
        f"z = 2 * {here}",
    ]
    inner += [f"z = {index} % N", f"z = {index} // (N + 1)", f"z = {index} % (N * N)"] if index else []
    test = f"{here} > 0" if branches else numbers.choice([f"{index or 'eps'} > 0", "eps > 1", "N > 0"])
    late = [f"if {test}:", "    late = 0", *numbers.choice([["z = late"], ["high = late > 0"], ["z = 1"]])]
    return late if numbers.random() < 0.2 else [f"if {test}:", f"    {numbers.choice(inner)}"]


def _release(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    dead, late = _dead(numbers, parameters, "q", None), numbers.choice([["late = 1"], []])
    noise = ["y = q + rng.laplace(scale=1 / eps)"]
    orders = [[*dead, *noise, *late], [*noise, *dead, *late], [*late, *dead, *noise], [*late, *noise, *dead]]
    lines = numbers.choice(orders)
    return [*lines, numbers.choice(["return y", "return y, eps", "return y > 0", "return y"])]


def _winner(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    dead = _dead(numbers, parameters, "x", "i", branches=numbers.random() < 0.2)
    if numbers.random() < 0.1:
        dead = ["if x > 0:", "    d = 1", f"log.append({numbers.choice(['d', 'i', 'x', '1 / N'])})"]
    body = ["y = x + rng.laplace(scale=2 / eps)", "if i == 0 or y > best:", "    winner = i", "    best = y"]
    body = [*dead, *body] if numbers.random() < 0.9 else [*body, *dead]
    late = numbers.choice([["late = 1"], [], []])
    lines = ["best = 0", "winner = 0", "log = []", *late, "for i, x in enumerate(q):"]
    return [*lines, *(f"    {line}" for line in body), "return winner"]


def _sparse(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    dead = _dead(numbers, parameters, numbers.choice(["x", "v"]), "i")
    late = numbers.choice([["late = 1"], [], []])
    lines = ["out = []", *late, "t = rng.laplace(scale=2 / eps)", "for i, x in enumerate(q):"]
    body = ["v = x + rng.laplace(scale=4 / eps)", *dead, "if v >= t:", "    out.append(True)", "    break"]
    if numbers.random() < 0.2:
        body.insert(-1, "    late = 1")
    body += ["else:", "    out.append(None)"]
    ends = [["return out"]] * 5 + [["z = late", "return out"], ["return out, late"]]
    return [*lines, *(f"    {line}" for line in body), *numbers.choice(ends)]


def _counts(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    """Outputs by place, perhaps set twice, under a limit on how many there are."""
    limit = numbers.choice([1, 2, 3])
    sets = ["out[i] = True"] * numbers.choice([1, limit, limit])
    if numbers.random() < 0.3:
        sets = ["out[i] = True", "if v > 1:", "    out[i] = True"]
    v = f"v = x + rng.laplace(scale={numbers.choice([1, 2, 3])} / eps)"
    body = [v, "s = s + v", *sets] if numbers.random() < 0.6 else [v, "if v >= t:", *(f"    {each}" for each in sets)]
    start = ["out = {}", *(["s = 0"] if "s = s + v" in body else ["t = rng.laplace(scale=2 / eps)"])]
    lines = [*start, "for i, x in enumerate(q):", *(f"    {each}" for each in body)]
    return [*lines, f"    if len(out) >= {limit}:", "        break", f"return {'s' if 's = 0' in start else 'out'}"]


def _accounts(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    """A budget in doubles: how many answers it buys is what the proof must know."""
    start = numbers.choice(["0", "0.0", "0.1", "0.3", "0.7"])
    step = numbers.choice(["0.1", "0.2", "0.3", "0.7", "0.25", "1"])
    limit = str(Decimal(start) + numbers.choice([1, 2, 3]) * Decimal(step))
    if numbers.random() < 0.2:
        start, step, limit = numbers.choice([("0", "eps / 3", "eps"), ("1e16", "1", "1e16"), ("0", "0.1 * eps", "N")])
    least = numbers.choice(["spent >= {}", "spent > {}", "{} - spent <= 0", "not spent < {}"]).format(limit)
    change = numbers.choice(["spent += {}", "spent = spent + {}", "spent = 3 * spent + {}"]).format(step)
    noisy = f"out.append(x + rng.laplace(scale={numbers.choice([1, 2])} / eps))"
    if numbers.random() < 0.2:
        start, least, change = limit, f"spent {numbers.choice(['<=', '<'])} {start}", f"spent -= {step}"
    body = [noisy, change, f"if {least}:", "    break"]
    if numbers.random() < 0.3:
        other = numbers.choice(["    out.append(x)", "    break", "    out.append(None)"])
        body = [change, f"if {least}:", other, "else:", f"    {noisy}"]
    return ["out = []", f"spent = {start}", "for x in q:", *(f"    {each}" for each in body), "return out"]


def _with_dead_code(numbers: random.Random, parameters: dict[str, Any], seed: int) -> tuple[list[str], Mechanism]:
    """One of the other random mechanisms, with lines of no use somewhere in its loop."""
    drawn = mechanism(seed)
    parameters |= {name: float(value) for name, value in drawn.parameters.items()}
    head, *lines = drawn.source.splitlines()
    inside = [place for place, line in enumerate(lines) if line.startswith("        ") and "else:" not in line]
    if inside:
        place = numbers.choice(inside)
        space = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        here = "x" if "for i, x" in drawn.source else "q[i]" if "for i in" in drawn.source else "eps"
        lines[place:place] = [space + each for each in _dead(numbers, parameters, here, "i" if here != "eps" else None)]
    return [head.replace("):", ", N):"), *lines], drawn


def _literals(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    """A parameter beside the literal that it was given as."""
    value = numbers.choice([0.1, 0.3, 0.7, 1.1, 0.5])
    parameters["eps"] = numbers.choice([value, value, math.nextafter(value, 0), 2 * value])
    test = numbers.choice(["eps {} {}", "{1} {0} eps", "3 * eps {} {}"])
    test = test.format(numbers.choice(["<=", "<", ">=", ">", "=="]), value)
    one = "y = q + rng.laplace(scale=1 / eps)"
    other = numbers.choice(["y = q + rng.laplace(scale=1)", "y = q", "y = 0"])
    one, other = (one, other) if numbers.random() < 0.7 else (other, one)
    return [f"if {test}:", f"    {one}", "else:", f"    {other}", "return y"]


def _cancelling(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    """Numbers that cancel but for rounding decide what is given out."""
    some = numbers.choice(["0.1", "1", "0.7", "1e16", "eps / 3"])
    tests = [f"(v + {some}) - v >= {some}", f"x + {some} > x", f"(x + {some}) - {some} == x"]
    tests += [f"(v + {some}) - {some} == v", f"w - v >= {some}", "v >= 0"]
    test = numbers.choice(tests)
    other = numbers.choice(["out.append(x)", "out.append(True)"])
    body = ["v = x + rng.laplace(scale=1 / eps)", f"w = v + {some}", f"if {test}:", "    out.append(None)"]
    body += ["else:", f"    {other}"]
    return ["out = []", "for x in q:", *(f"    {each}" for each in body), "return out"]


HELPERS = {
    "noisy": "def noisy(x, rng, b):\n    return x + rng.laplace(scale=b)\n",
    "above": "def above(x, t, rng, b=2):\n    y = x + rng.laplace(0, b)\n    return y >= t\n",
    "clip": "def clip(x, low, high):\n    if x < low: return low\n    if x > high: return high\n    return x\n",
    "checked": "def checked(b, x):\n    if b <= LEAST:\n        raise ValueError\n    return b\n",
}


def _spelled(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    """The same in the spellings of authors: several returns, continue, guards, countdowns, starts, helper functions."""
    scale = numbers.choice(["1 / eps", "2 / eps", "4 / eps", "checked(2 / eps, x)", "4 * N / eps"])
    guard = numbers.choice(["eps <= 0", "N < 1", "3 * eps > 9 * N", "x > 1", "eps / N > 2"])
    dead = [f"if {guard}:", "    raise ValueError"] if numbers.random() < 0.3 else []
    dead = [*dead, *_dead(numbers, parameters, "x", "i")] if numbers.random() < 0.2 else dead
    if numbers.random() < 0.4:
        order, start = numbers.choice([(">", "-inf"), (">", "-inf"), ("<", "inf"), (">=", "-inf"), ("<", "-inf")])
        start = numbers.choice(["None", f"float('{start}')"])
        test = f"best is None or y {order} best" if start == "None" else f"y {order} best"
        value = numbers.choice(["x", "x", "x", "clip(x, 0, 1)"])
        noise = numbers.choice([f"noisy({value}, rng, {scale})", f"{value} + rng.laplace(scale={scale})"])
        body = [f"y = {noise}", f"if {test}:", f"    best, winner = y, {numbers.choice(['i', 'i', 'i', 'x'])}"]
        body = [*dead, *body] if numbers.random() < 0.8 else [*body, *dead]
        lines = [f"best = {start}", f"winner = {numbers.choice(['None', '0'])}", "for i, x in enumerate(q):"]
        end = numbers.choice(["return winner"] * 5 + ["return best", "return winner, clip(best, 0, 1)"])
        return [*lines, *(f"    {line}" for line in body), end]
    test = numbers.choice(
        [f"above(x, t, rng, {scale})", f"noisy(x, rng, b={scale}) > t", f"x + rng.laplace(scale={scale}) >= t"]
    )
    if numbers.random() < 0.4:
        found = numbers.choice(["i", "True", "i, x", "i, N", "x", "i, rng.laplace(scale=1 / eps)"])
        end = numbers.choice([["return None"], [], ["if t > 0:", "    return 'high'"], ["return False"]])
        body = [*dead, f"if {test}:", f"    return {found}"]
    else:
        body = [*dead, f"if not {test}:", numbers.choice(["    out.append(None)", "    out += [None]"]), "    continue"]
        out = numbers.choice(["True", "True", "x", "noisy(x, rng, 2 / eps)", "left"])
        more = [f"out.append({out})", "left -= 1"]
        stop = numbers.choice([["if left == 0:", "    return out"], ["if left <= 0:", "    break"], []])
        body = [*stop, *body, *more] if numbers.random() < 0.3 else [*body, *more, *stop]
        end = ["return out"]
    start = ["t = rng.laplace(scale=2 / eps)", "out = []", f"left = {numbers.choice(['N', '1', '2'])}"]
    lines = [line for line in start if "out" in " ".join(body) or "out" not in line]
    return [*lines, "for i, x in enumerate(q):", *(f"    {line}" for line in body), *end]


def _vector(numbers: random.Random, parameters: dict[str, Any]) -> list[str]:
    scale = numbers.choice(["1 / eps", "2 / eps"])
    bodies = [[f"return q + rng.laplace(scale={scale})"]]
    return numbers.choice([*bodies, [f"y = 2 * q + rng.laplace(scale={scale})", "return y / 2"]])


KINDS: dict[str, Callable[[random.Random, dict[str, Any]], list[str]]] = {
    "a release": _release,
    "a winner": _winner,
    "sparse": _sparse,
    "counts": _counts,
    "accounts": _accounts,
    "literals": _literals,
    "cancelling": _cancelling,
    "spelled": _spelled,
    "a vector": _vector,
    "dead code": _vector,  # of another generator's
}
SIZES = {"accounts": 4, "counts": 3}  # how many answers; 1 or 2 of the others


# --- the judge ---------------------------------------------------------------------------------------------------


class Lattice:
    """Noise of whole numbers, given out value by value: `path` says which, and grows by 0 where it ends."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path, self.made, self.weight = path, 0, 1.0
        self.further: list[tuple[float, tuple[int, ...]]] = []

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return loc + self._drawn(scale, two_sided=True)

    def exponential(self, scale: Any = 1.0) -> Any:
        return self._drawn(scale, two_sided=False)

    def _drawn(self, scale: Any, *, two_sided: bool) -> float:
        if not scale >= 0:
            raise ValueError("scale < 0")
        ratio = math.exp(-1 / scale) if scale else 0.0
        self.weight *= (1 - ratio) / (1 + ratio) if two_sided else 1 - ratio
        if self.made == len(self.path):
            value, likely = 1, self.weight * ratio
            while likely > LEAST:
                for each in (value, -value)[: 1 + two_sided]:
                    self.further.append((likely, (*self.path, each)))
                value, likely = value + 1, likely * ratio
            self.path = (*self.path, 0)
        value = self.path[self.made]
        self.made += 1
        self.weight *= ratio ** abs(value)
        return float(value)


def law_in_python(function: Callable[..., Any], data: Any, parameters: Mapping[str, Any]) -> Law:
    """The outputs with their probabilities, exceptions among them; what is missing to 1 was not run."""
    found: Law = defaultdict(float)
    paths: list[tuple[float, tuple[int, ...]]] = [(-1.0, ())]
    for _ in range(MOST):
        if not paths:
            break
        rng = Lattice(heapq.heappop(paths)[1])  # the likeliest that is left
        try:
            output = _plain(function(data, rng, **parameters))
        except Exception as error:
            output = ("raises", type(error).__name__)
        found[output] += rng.weight
        for weight, path in rng.further:
            heapq.heappush(paths, (-weight, path))
    return found


def _plain(output: Any) -> Any:
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return tuple(_plain(each) for each in output)
    if isinstance(output, dict):
        return tuple((_plain(key), _plain(value)) for key, value in output.items())
    return (type(output).__name__, output) if isinstance(output, bool) else output


def loss_between(function: Callable[..., Any], pair: tuple[Any, Any], parameters: Mapping[str, Any]) -> float:
    """The loss of a pair that Python's runs show for certain: what was not run counts for the other side."""
    first, second = (law_in_python(function, data, parameters) for data in pair)
    return max(_one_way(first, second), _one_way(second, first))


def _one_way(ours: Law, theirs: Law) -> float:
    unseen = max(1e-12, 1 - sum(theirs.values()))
    return max(0.0, *(math.log(likely / (theirs.get(output, 0.0) + unseen)) for output, likely in ours.items()))
