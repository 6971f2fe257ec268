"""Random programs in the spellings of authors: helper functions, several returns, continue, guards, countdowns, starts.

Few are mechanisms: what counts is that Python runs them as they are read, if they are read at all. Names may lack a
value, numbers divide by 0, guards raise for some parameters and for some data, code may be dead.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence

HELPERS = {
    "noisy": "def noisy(x, r, b=2):\n    scale = b / 2\n    return x + r.laplace(scale=scale)\n",
    "clip": "def clip(x, low, high=2):\n    if x < low: return low\n    if x > high: return high\n    return x\n",
    "above": "def above(x, t, rng, eps):\n    y = x + rng.laplace(0, 2 / eps)\n    return y >= t\n",
    "valid": "def valid(x):\n    if x < 0:\n        raise ValueError\n",
    "checked": "def checked(b):\n    valid(b)\n    if b <= 0:\n        raise ValueError('b')\n    return HALF * b\n",
    "twice": "def twice(x, f=1):\n    y = clip(x, f)\n    y = y + f\n    return y * 2\n",
    "drawn": "def drawn(rng, x, t):\n    if x > t: return rng.laplace(scale=1) + x\n    return rng.exponential(1)\n",
    "within": "def within(x, low, high):\n    return low <= x and not x > high\n",
    "odd": "def odd(q, i=0):\n    return q[i]\n",
    "size": "def size(out):\n    return len(out)\n",
    "added": "def added(best, flag):\n    return best + flag\n",
    "picked": "def picked(i, x):\n    if i:\n        return x\n    return i\n",
    "none": "def none(x, eps=None):\n    if eps is None:\n        raise ValueError\n    return eps + x\n",
    "may": "def may(x, flag):\n    if flag:\n        return x\n",
    "same": "def same(x, flag):\n    if flag:\n        return x\n    return -x\n",
}
USERS = {"clip": "twice", "valid": "checked"}  # functions that others call
NAMES = ("a", "b", "k")


class Author:
    """Writes programs, each from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.index: str | None = None
        self.looped = False
        self.listed = self.random.random() < 0.5
        self.left = self.random.choice([None, None, "N", "N", "3", "2", "eps"])
        self.known = ["eps"]

    def program(self) -> str:
        """The text of a program f(q, rng, eps, N), with the functions that it calls."""
        self.looped = self.random.random() < 0.8
        self.left = self.left if self.looped else None
        lines = self.some(["assert N >= 1", self.guard()], 0.2)
        lines += self.some(["if len(q) == 0:\n    raise ValueError"], 0.2 * self.looped)
        if not self.looped:
            self.known.append("q")
        for name in NAMES:
            if self.random.random() < 0.97:
                lines.append(f"{name} = {self.random.choice(['0', '0', '1', self.number()])}")
            self.known.append(name)
        lines += ["out = []"] if self.listed else []
        lines += [f"left = {self.left}"] if self.left else []
        if self.looped:
            lines += self.loop()
        lines += self.block(1, inner=False) if self.random.random() < 0.3 else []
        lines += self.ends()
        head = f"def f({self.random.choice(['q, rng, eps, N', 'q, eps, N, *, rng', 'q, eps, N, rng=None'])}):"
        body = textwrap.indent("\n".join(lines), "    ")
        used = [name for name in HELPERS if f"{name}(" in body or f"{USERS.get(name)}(" in body]
        rest = "\n".join(HELPERS[name] for name in used) + ("HALF = 0.5\n" if "checked" in used else "")
        return f"{head}\n{body}\n\n{rest}"

    def some(self, lines: Sequence[str], share: float) -> list[str]:
        return [line for line in lines if self.random.random() < share]

    def guard(self) -> str:
        test = self.random.choice(["eps <= 0", "N < 1", "eps > 3 * N", "not 0 < eps <= 8", "N - 1 < 0", "2 / eps < 0"])
        return f"if {test}:\n    raise ValueError('no')"

    def loop(self) -> list[str]:
        kind = self.random.choice(["x", "i, x", "i", "while"])
        self.index = None if kind == "x" else "i"
        self.known += {"x": ["x"], "i, x": ["i", "x"], "i": ["i", "q[i]"], "while": ["i", "q[i]"]}[kind]
        body = self.search() if self.random.random() < 0.3 else []
        body = [*self.block(2), *body] if self.random.random() < 0.6 or not body else [*body, *self.block(2)]
        if self.left and self.random.random() < 0.8:
            body += [
                f"if {self.condition()}:\n    left -= 1",
                *self.some(["if left == 0:\n    break", "if left <= 0:\n    break"], 0.5),
            ]
        start = self.starts if body and hasattr(self, "starts") else []
        if kind == "while":
            guard = self.random.choice(["", "", " and k < 2", " and left > 0"])
            return [*start, "i = 0", f"while i < len(q){guard}:", *self.inside([*body, "i += 1"])]
        over = {"x": "q", "i, x": "enumerate(q)", "i": "range(len(q))"}[kind]
        self.known = [name for name in self.known if name not in ("i", "q[i]", "x")] if kind == "while" else self.known
        return [*start, f"for {kind} in {over}:", *self.inside(body)]

    def search(self) -> list[str]:
        """A search for the largest or the smallest answer, right or wrong."""
        order, infinite = self.random.choice([(">", "-inf"), (">", "-inf"), ("<", "inf"), (">=", "inf"), ("<", "-inf")])
        word = self.random.choice(["None", f"float('{infinite}')", f"-float('{infinite.lstrip('-')}')", "0"])
        self.starts = [f"best = {word}", f"winner = {self.random.choice(['None', 'None', '0', '-1'])}"]
        if self.random.random() < 0.4:
            self.starts = [f"best, winner = {word}, {self.starts[1].partition('= ')[2]}"]
        answer = "x" if "x" in self.known else "q[i]"
        test = f"y {order} best" if word != "None" or self.random.random() < 0.1 else f"best is None or y {order} best"
        test = self.random.choice([test, test, test, f"best {'<' if order[0] == '>' else '>'} y", f"y > 0 and {test}"])
        then = [f"winner = {self.index or 'k'}", "best = y"]
        then = self.random.choice(
            [then, then, then[::-1], [f"best, winner = y, {self.index or 'k'}"], then[:1], then[1:]]
        )
        self.known += ["best", "winner"]
        noisy = self.random.choice([f"{answer} + rng.laplace(scale=2 / eps)", f"noisy({answer}, rng, 4 / eps)"])
        return [
            *self.some(["if a > 1:\n    continue", "if b > 5:\n    break", "a = best"], 0.05),
            f"y = {noisy}",
            f"if {test}:",
            *self.inside(then),
        ]

    def inside(self, lines: Sequence[str]) -> list[str]:
        return textwrap.indent("\n".join(lines or ["pass"]), "    ").splitlines()

    def block(self, depth: int, inner: bool = True) -> list[str]:
        """A few statements; `inner` where they stand in the loop."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, inner)
        return lines

    def statement(self, depth: int, inner: bool) -> list[str]:
        choice = self.random.random()
        if depth and choice < 0.35:
            lines = [f"if {self.condition()}:", *self.inside(self.block(depth - 1, inner))]
            jump = self.jump() if inner else [f"return {self.returned()}"]
            if self.random.random() < 0.35:
                lines += self.inside(jump)
            if self.random.random() < 0.4:
                lines += ["else:", *self.inside(self.block(depth - 1, inner))]
            return lines
        if choice < 0.5 and self.listed:
            one = self.output()
            return [
                self.random.choice(
                    [f"out.append({one})", f"out.append({one})", f"out += [{one}]", f"out += [{one}, None]"]
                )
            ]
        name = self.random.choice(NAMES)
        if choice < 0.6:
            return [
                self.random.choice(
                    [f"{name} += {self.condition()}", f"k += int({self.condition()})", f"{name} -= 1", "k += 1"]
                )
            ]
        if choice < 0.65:
            return [self.random.choice([self.guard(), f"valid({self.atom()})", "valid(eps)", f"noisy({name}, rng)"])]
        if choice < 0.7:
            one, other = self.random.sample(NAMES, 2)
            return [
                self.random.choice(
                    [f"{one}, {other} = {other}, 1", f"{one}, {other} = 1, {self.number()}", f"{one} = {other} = 2"]
                )
            ]
        if choice < 0.75:
            return [f"t = {self.condition()}", f"if t:\n    {name} = {self.number()}"]
        return [f"{name} = {self.number()}"]

    def jump(self) -> list[str]:
        return [self.random.choice(["continue", "continue", "break", f"return {self.returned()}"])]

    def returned(self) -> str:
        some = ["None", "None", "'low'", "True", self.number(), f"{self.number()}, {self.number()}"]
        return self.random.choice(["out"] * 60 * self.listed + some)

    def ends(self) -> list[str]:
        if self.random.random() < 0.04:
            return []
        self.known = [name for name in self.known if name not in ("x", "i", "q[i]")]
        more = ["winner"] * 5 * ("winner" in self.known) + ["left"] * bool(self.left)
        given = self.random.choice(["out"] * 12 * self.listed + more + [self.returned(), self.condition(), "a, b"])
        if self.random.random() < 0.15:
            return [f"if {self.condition()}:\n    return {self.returned()}", f"return {given}"]
        return [f"return {given}"]

    def output(self) -> str:
        return self.random.choice([self.number(), self.number(), "None", "None", "True", f"{self.condition()}"])

    def condition(self) -> str:
        one, other = self.atom(), self.atom()
        tests = [
            f"{self.number()} > {other}",
            f"{one} <= {other}",
            f"above({one}, {other}, rng, eps)",
            f"within({one}, 0, {other})",
        ]
        tests += [f"{one} > 0 and {other} < 2", f"not {one} > 1", f"0 <= {one} < 2"]
        return self.random.choice([*tests, *tests, *tests, f"{one} > 1 or {self.number()} > 0"])

    def atom(self) -> str:
        return self.random.choice(
            [*self.known, *self.known, "0", "1", "N", "a", "1.5"] + ["left"] * 2 * bool(self.left)
        )

    def number(self) -> str:
        one, other = self.atom(), self.atom()
        forms = [
            one,
            one,
            f"{one} + {other}",
            f"{one} - {other}",
            f"2 * {one}",
            f"{one} / 2",
            "rng.laplace(scale=1 / eps)",
        ]
        forms += [f"{one} + rng.laplace(0, 2 / eps)", f"noisy({one}, rng)", f"noisy({one}, rng, b=checked(4 / eps))"]
        forms += forms
        forms += [
            f"clip({one}, {other})",
            f"clip(x={one}, low=0)",
            f"twice({one})",
            f"drawn(rng, {one}, {other})",
            "1 / (N - 1)",
        ]
        forms += [
            f"same({one}, {other} > 0)",
            f"rng.exponential(checked(eps)) + {one}",
            f"clip(noisy({one}, rng), 0) + drawn(rng, 0, {other})",
        ]
        forms += [
            f"odd({one}, {other})",
            "odd(q, i)",
            "size(out)",
            f"may({one}, {other} > 0)",
            f"valid({one})",
            f"added({one}, {other} > 0)",
            f"picked({one}, {other})",
            f"none({one}, {other})",
        ]
        return self.random.choice(forms)


def spelled(seed: int) -> str:
    """The program of a seed, as text."""
    return Author(seed).program()
