"""Random functions with loops without a last round, as source."""

from __future__ import annotations

import numpy as np

NAMES = ("a", "b", "k", "m")


class Author:
    """Writes one function after the other."""

    def __init__(self, seed: int) -> None:
        self.rng, self.helpers = np.random.default_rng(seed), list[str]()

    def one_of(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def name(self) -> str:
        return self.one_of(*NAMES)

    def number(self) -> str:
        x, y = self.name(), self.name()
        return self.one_of(x, f"{x} + {y}", f"{x} - {y}", f"{x} % 3", f"-{x}", f"2 * {x} + 1", "1", "0", f"min({x}, 2)")

    def coin(self) -> str:
        return self.one_of(
            "rng.random() < 0.25",
            "rng.integers(3) == 0",
            "rng.random() >= 0.75",
            "0.25 > rng.random()",
            "rng.integers(0, 4) < 1",
        )

    def test(self) -> str:
        x = self.name()
        return self.one_of(self.coin(), self.coin(), f"{x} > 1", f"{x} % 2 == 0", f"{x} == 0", f"{x} != {self.name()}")

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        kind = int(self.rng.integers(12))
        if kind < 4:
            return [self.one_of(f"{self.name()} += 1", f"{self.name()} -= 2", "k = k + 1", "m += 1", "k += 1")]
        if kind < 6:
            return [f"{self.name()} = {self.number()}"]
        if kind == 6 and self.helpers:
            return [f"{self.name()} = {self.one_of(*self.helpers)}({self.name()}, rng)"]
        if kind == 7 and in_loop:
            return [f"if {self.test()}:", "    " + self.one_of("break", "continue", f"return {self.number()}")]
        if kind in (8, 9) and depth > 0:
            return self.loop(depth - 1)
        if kind == 10:
            return [f"{self.name()} = int(rng.integers(2))"]
        if depth <= 0:
            return [f"{self.name()} += 1"]
        return [f"if {self.test()}:", *self.block(depth, in_loop), "else:", *self.block(depth, in_loop)]

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines = [line for _ in range(int(self.rng.integers(1, 3))) for line in self.statement(depth - 1, in_loop)]
        return ["    " + line for line in lines]

    def loop(self, depth: int) -> list[str]:
        body = self.block(depth, True)
        if self.rng.random() < 0.25:
            return [self.one_of("for a in range(2):", "for _ in (1, 2):", "for b in [0, 2]:"), *body]
        if self.rng.random() < 0.5:
            return [f"while {self.coin()}:", *body]
        return ["while True:", f"    if not ({self.coin()}):", "        break", *body]

    def function(self, name: str, end: str) -> str:
        lines = ["a = x % 2", "b = x", "k = 0", "m = 0"]
        for _ in range(int(self.rng.integers(1, 3))):
            lines += self.statement(1, False)
            lines += self.loop(2)
        lines.append(end)
        return "\n".join([f"def {name}(x, rng):", *("    " + line for line in lines)])

    def module(self) -> str:
        """A function `program`, and maybe one that it calls."""
        texts = []
        if self.rng.random() < 0.5:
            texts.append(self.function("helper", f"return {self.number()}"))
            self.helpers.append("helper")
        texts.append(
            self.function("program", self.one_of("return k", "return x + k", "return a, k, m", "return k - m"))
        )
        return "\n\n\n".join(texts) + "\n"
