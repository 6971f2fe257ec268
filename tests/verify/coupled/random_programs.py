"""Random mechanisms over answers and records as source text, right ones and wrong ones alike; and mutants of them.

Which of them are private nobody knows when they are made: what is proved of one is confronted with laws. What they are
made of stands in `random_programs.txt`.
"""

from __future__ import annotations

import functools
import linecache
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

NUMBERS = {True: (-3, -2, -1, 0, 0, 1, 1, 2, 3, 7), False: (-3, -1.5, -0.5, 0.0, 0.25, 0.5, 1.0, 1.75, 2.0, 6.5)}
KEYS = {"pairs": (0, 1, 2), "rows": ("a", "b", "c")}
ADD, REPLACE, USER = "add_or_remove_one", "replace_one", "add_or_remove_user"
ADJACENCIES = {
    "one": ("one-differs", "all-differ", "up", "down"),
    "list": ("one-differs", "all-differ"),
    "users": (USER,),
    "owned": (USER,),
    **dict.fromkeys(("numbers", "pairs", "rows", "keyed"), (ADD, REPLACE)),
}
WITHIN = {  # what is clipped, and the key, where one entry of the data is x
    "one": {"x": "data"},
    "owned": {"x": "x[2]"},
    "rows": {"x": "x['n']", "key": "x['k']"},
    "pairs": {"x": "x[1]", "key": "x[0]"},
    "keyed": {"x": "x[1]", "key": "x[0]"},
}
POOLS = ("number", "bins", "groups", "draw", "noisy", "public", "output")
FILLED_BY = {"noisy": "release"}
MUTATIONS = ("half the scale", "no noise", "one draw for all", "twice as sensitive")
HEAD = """import math
import numpy as np


def bounded(value, low=0, high=1):
    return min(max(value, low), high)


def noisy(value, scale, rng):
    return value + rng.laplace(scale=scale)


"""


@dataclass(frozen=True)
class Mechanism:
    """A random mechanism: its source, of which kind its data are, how neighbours differ; `whole`: all numbers are."""

    mode: str
    source: str
    adjacency: str
    answers: int | None
    whole: bool

    @property
    def function(self) -> Callable[..., Any]:
        """The function f."""
        file = f"<mechanism {hash(self.source)}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(keepends=True), file)
        scope: dict[str, Any] = {}
        exec(compile(self.source, file, "exec", dont_inherit=True), scope)
        return scope["f"]  # type: ignore[no-any-return]

    def pair(self, numbers: random.Random) -> tuple[Any, Any]:
        """Two small datasets that are neighbours; where these have an order, as they stand."""

        def value() -> Any:
            return numbers.choice(NUMBERS[self.whole])

        def record() -> Any:
            if self.mode == "rows":
                return {"k": numbers.choice("abcz"), "n": value()}
            return value() if self.mode == "numbers" else (numbers.choice((0, 1, 2, 5)), value())

        if self.mode in ("one", "list"):
            first = [value() for _ in range(self.answers or 1)]
            moves = {"up": (1, 0), "down": (-1, 0)}.get(self.adjacency, (1, -1, 0))
            moved = [each + numbers.choice(moves) for each in first]
            place = numbers.randrange(len(first))
            if self.adjacency == "one-differs":
                moved = [*first[:place], first[place] + numbers.choice((1, -1)), *first[place + 1 :]]
            return (first, moved) if self.mode == "list" else (first[0], moved[0])
        if self.mode == "users":
            users = {user: [value() for _ in range(numbers.randint(0, 3))] for user in range(numbers.randint(0, 2))}
            return users, {**users, 9: [value() for _ in range(numbers.randint(0, 4))]}
        if self.mode == "owned":
            rows = [
                (user, numbers.choice((0, 1, 5)), value())
                for user in numbers.choices((1, 2, 9), k=numbers.randint(1, 5))
            ]
            return [row for row in rows if row[0] != 9], rows
        before, after = ([record() for _ in range(numbers.choice((0, 0, 1, 2)))] for _ in range(2))
        second = [record()] if self.adjacency == REPLACE else []
        return [*before, record(), *after], [*before, *second, *after]


@functools.cache
def grammar(*kinds: str) -> dict[str, list[str]]:
    """The alternatives of each word and pool for data and numbers of these kinds."""
    found: dict[str, list[str]] = {}
    parts = re.split(r"^##(#?) (.*)\n", Path(__file__).with_suffix(".txt").read_text(), flags=re.MULTILINE)[1:]
    for statements, heading, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        word, of, times = (each.strip() for each in f"{heading} | | ".split("|")[:3])
        if not of or set(of.split()) & set(kinds):
            given = text.strip("\n").split("\n\n" if statements else "\n")
            found.setdefault(word, []).extend(given * int(times or 1))
    return found


class Writer:
    """Writes the body of a function, statement by statement, over data of a mode."""

    def __init__(self, numbers: random.Random, mode: str, answers: int | None, whole: bool) -> None:
        kinds = [mode, *([] if whole else ["parts"]), *(["gaussian"] if numbers.random() < 0.12 else [])]
        self.numbers, self.mode, self.answers, self.grammar = numbers, mode, answers, grammar(*kinds)
        self.lines, self.indent, self.named = list[str](), 1, 0
        self.pools: dict[str, list[str]] = {pool: [] for pool in POOLS}

    def filled(self, text: str) -> str:
        """A template with its words replaced; a name of a pool is the same wherever its word stands in it."""
        chosen: dict[str, str] = {}

        def one(match: re.Match[str]) -> str:
            word = match[2]
            if word in chosen:
                return chosen[word]
            found = WITHIN.get(self.mode, {"x": "x"}).get(word)
            if word == "place":
                found = str(self.numbers.randrange(self.answers or 1))
            elif word.rstrip("2") in self.pools:
                found = chosen[word] = self.name(word.rstrip("2"))
            elif found is None:
                found = self.filled(self.numbers.choice(self.grammar[word]))
            return match[1] + found.replace("\n", "\n" + match[1])

        return re.sub(r"((?:^ +)?)\{(\w+)\}", one, text, flags=re.MULTILINE)

    def name(self, pool: str) -> str:
        """A name of a pool, to which one is added where it is empty, and at times."""
        if not self.pools[pool] or (pool in POOLS[:3] and self.numbers.random() < 0.3):
            self.statement(pool)
        return self.numbers.choice(self.pools[pool])

    def statement(self, pool: str, word: str = "") -> None:
        """Writes one of the statements under a word, and puts its new name into a pool."""
        text = self.filled(self.numbers.choice(self.grammar[word or FILLED_BY.get(pool, pool)]))
        self.named += 1
        name = f"{pool[0]}{self.named}"
        self.lines += ["    " * self.indent + line for line in text.replace("@", name).split("\n")]
        self.pools[pool].append(name)

    def some(self, depth: int = 0) -> None:
        """Writes one statement, or a branch with some in it."""
        kinds = (("noisy", ""), ("output", ""), ("noisy", "after"), ("number", "joined"), None)
        kind = self.numbers.choices(kinds, (40, 20, 15, 10, 15 if depth < 2 else 0))[0]
        if kind is None:
            self.branch(depth)
        else:
            self.statement(*kind)

    def branch(self, depth: int) -> None:
        """Writes `if` with a block on one way or on both, which give one name a value."""
        self.named += 1
        name, test = f"b{self.named}", self.filled("{test}")
        self.lines.append("    " * self.indent + f"{name} = 0")
        for head in (f"if {test}:", "else:")[: self.numbers.choice((1, 2))]:
            self.lines.append("    " * self.indent + head)
            kept = {pool: list(names) for pool, names in self.pools.items()}
            self.indent += 1
            self.some(depth + 1)
            given = self.name("noisy")
            self.lines.append("    " * self.indent + f"{name} = {given}")
            self.indent -= 1
            self.pools = kept
        self.pools["noisy"].append(name)


def mechanism(seed: int) -> Mechanism:
    """The mechanism of a seed."""
    numbers = random.Random(seed)
    mode = numbers.choices(list(ADJACENCIES), (2, 4, 2, 1, 4, 4, 2, 2))[0]
    answers, whole = numbers.randint(1, 3) if mode == "list" else None, numbers.random() < 0.85
    writer = Writer(numbers, mode, answers, whole)
    for _ in range(numbers.choice((1, 1, 2, 2, 3))):
        writer.some()
    given = [*writer.pools["output"] * 2, *writer.pools["noisy"]] or [writer.name("noisy")]
    out = numbers.sample(given, min(len(given), numbers.choice((1, 1, 2))))
    if numbers.random() < 0.04:
        out.append(writer.name("number"))  # without noise
    keys = f"KEYS = {KEYS[mode]}\n\n\n" if mode in KEYS else ""
    body = "\n".join([*writer.lines, f"    return {', '.join(out)}"])
    source = f"{HEAD}{keys}def f(data, rng):\n{body}\n"
    return Mechanism(mode, source, numbers.choice(ADJACENCIES[mode]), answers, whole)


def mutant(given: Mechanism, mutation: str) -> Mechanism | None:
    """The mechanism with one of `MUTATIONS`; None where there is nothing to change."""
    head, body = given.source.split("def f(")
    draws = re.findall(r"rng\.laplace\((?:scale=|0, )[\d.]+\)", body)
    if mutation == "twice as sensitive":
        body = body.replace("+= ", "+= 2 * ").replace("= sum(", "= 2 * sum(")
    elif mutation == "one draw for all" and len(draws) > 1:
        body = body.replace(":\n", f":\n    shared = {draws[0]}\n", 1)
        for draw in draws:
            body = body.replace(f"+ {draw}", "+ shared")
    elif mutation in MUTATIONS[:2] and draws:
        half = re.sub(r"[\d.]+(?=\)$)", lambda found: str(float(found[0]) / 2), draws[0])
        body = body.replace(draws[0], "0" if mutation == "no noise" else half, 1)
    source = f"{head}def f({body}"
    return replace(given, source=source) if source != given.source else None
