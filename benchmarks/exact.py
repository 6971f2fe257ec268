"""Exact losses of the sparse vector family and of noisy max: what `verify` computes against the values on record.

`found` is computed here: the worst pair of a search up to a size of answers (an exact loss, so at most the truth), the
loss at a pair that is known to be the worst, or the least bound that is proved.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from benchmarks.tables import print_table

DIGITS = 4  # of the values on record
SIZES, QUICK = (1, 2, 4, 8, 16, 32), 8  # numbers of answers, and the most of a quick look
NEAR, WIDE, FAR = 2, 11, 20  # sizes of answers
INFINITE = math.inf
HALF = Fraction(1, 2)
TOPS, GAPS = range(-FAR, FAR + 1, 5), range(0, 2 * FAR + 1, 10)
SHORT = Fraction(1, 10**6)  # an interval of gaps: its ratio is that of the densities, to so many digits


@dataclass(frozen=True)
class Variant:
    """A variant of the sparse vector technique: the two scales as formulas in eps and c ("0": no noise)."""

    name: str
    threshold: str
    answers: str
    halts: bool = True
    redraws: bool = False
    output: str = "True"

    @property
    def source(self) -> str:
        """The variant as a function."""
        draw = "" if self.threshold == "0" else f" + rng.laplace(scale={self.threshold})"
        noise = "" if self.answers == "0" else f" + rng.laplace(scale={self.answers})"
        lines = [
            f"def sparse(q, rng, eps, T{', c' if self.halts else ''}):",
            "    assert eps > 0",
            *(["    assert c >= 1"] if self.halts else []),
            f"    t = T{draw}",
            "    count = 0",
            "    out = []",
            "    for x in q:",
            f"        v = x{noise}",
            "        if v >= t:",
            f"            out.append({self.output})",
            "            count += 1",
            *([f"            t = T{draw}"] if self.redraws else []),
            *(["            if count >= c:", "                break"] if self.halts else []),
            "        else:",
            "            out.append(None)",
            "    return out",
        ]
        return "\n".join(lines) + "\n"

    @property
    def program(self) -> Any:
        """The variant as it is read."""
        from dpaudit.verify.language import read

        return read(self.source)

    def parameters(self, eps: Fraction | int, c: int) -> dict[str, Fraction]:
        """Values of its parameters."""
        return {"eps": Fraction(eps), "T": Fraction(0)} | ({"c": Fraction(c)} if self.halts else {})


ALG_1 = Variant("Alg 1", "2 / eps", "4 * c / eps")
ALG_2 = Variant("Alg 2 (redraws)", "2 * c / eps", "4 * c / eps", redraws=True)
ALG_3 = Variant("Alg 3 (noisy answers)", "2 / eps", "2 * c / eps", output="v")
ALG_4 = Variant("Alg 4 (Lee-Clifton)", "4 / eps", "4 / (3 * eps)")
ALG_5 = Variant("Alg 5 (no query noise)", "2 / eps", "0", halts=False)
ALG_6 = Variant("Alg 6 (Chen)", "2 / eps", "2 / eps", halts=False)
NO_CUT_OFF = Variant("Alg 1 without cut-off", "2 / eps", "4 / eps", halts=False)
NO_THRESHOLD = Variant("no threshold noise", "0", "4 * c / eps")
HALF_NOISE = Variant("half noise", "1 / eps", "2 * c / eps")
NOT_SCALED = Variant("query noise not scaled by c", "2 / eps", "4 / eps")
GAP = Variant("gap", "2 / eps", "4 * c / eps", output="v - t")

Finder = Callable[[Variant, int, Fraction, int], float]  # the loss at n answers, eps, c


@dataclass(frozen=True)
class Row:
    """A row on record: what is computed, at which eps and c, and the values by number of answers (`sizes`)."""

    variant: Variant
    kind: str
    find: Finder
    values: Sequence[float]
    sizes: Sequence[int] = SIZES
    eps: Fraction = Fraction(1)
    c: int = 1
    all_n: float | None = None


@dataclass
class Tally:
    """How many values agree with those on record, and which do not."""

    agreeing: int = 0
    differing: list[str] = field(default_factory=list)

    def cell(self, where: str, found: float, known: float, digits: int = DIGITS) -> str:
        """`found (known)`, and DIFFERS where they are not the same to the digits on record."""
        agrees = found == known or abs(found - known) <= 0.5000001 * 10.0**-digits
        self.agreeing += agrees
        if not agrees:
            self.differing.append(f"{where}: {_number(found, digits)}, on record {_number(known, digits)}")
        return f"{_number(found, digits)} ({_number(known, digits)}){'' if agrees else ' DIFFERS'}"


def near(variant: Variant, answers: int, eps: Fraction, c: int) -> float:
    """The largest exact loss found with answers of size at most 2."""
    return _worst(variant, answers, eps, c, NEAR)


def proved(variant: Variant, answers: int | None, eps: Fraction, c: int) -> float:
    """What is proved of a variant: the least bound, infinite where there is none."""
    return float(least_bound(variant.source, "all-differ", variant.parameters(eps, c), answers))


def least_bound(source: Any, adjacency: Any, parameters: dict[str, Fraction], answers: int | None) -> Fraction | float:
    """The least of what an alignment shows, as the checker has it, and a coupling of so many answers."""
    from dpaudit.errors import DpAuditError
    from dpaudit.verify.alignment import Unproved, prove
    from dpaudit.verify.checker import check, epsilon
    from dpaudit.verify.coupled import derive
    from dpaudit.verify.language import read
    from dpaudit.verify.language.source import source_of

    program, bounds = read(source), [INFINITE]
    whole = {name: parameters[name] for name in program.integers}
    for fixed in (None, whole):
        proof = prove(program, adjacency, fixed=fixed)
        if not isinstance(proof, Unproved):
            check(proof)
            bounds.append(epsilon(proof, parameters))
    plain = {name: int(value) if value.denominator == 1 else value for name, value in parameters.items()}
    with contextlib.suppress(DpAuditError):
        found = derive(source_of(source, program.name), adjacency, plain, data="an array", answers=answers)
        bounds.append(found.epsilon_at(0.0))
    return min(bounds)


def tail(variant: Variant, answers: int, eps: Fraction, c: int) -> float:
    """0, ..., 0 against 1, ..., 1: bottoms, then a noisy answer of at most 0."""
    from dpaudit.verify.witnesses.outputs import at_most

    return _at(variant, [0] * answers, [1] * answers, eps, c, [None] * (answers - 1) + [at_most(0)])


def bottoms(variant: Variant, answers: int, eps: Fraction, c: int) -> float:
    """0, ..., 0 against 1, ..., 1: bottoms only."""
    return _at(variant, [0] * answers, [1] * answers, eps, c, [None] * answers)


def crossed(variant: Variant, answers: int, eps: Fraction, c: int) -> float:
    """0, ..., 0, 1 against 1, 0, ..., 0: bottoms, then a top; -1 against 0 where there is one answer."""
    if answers == 1:
        return _at(variant, [-1], [0], eps, c)
    rest = [0] * (answers - 2)
    return _at(variant, [0, *rest, 1], [1, *rest, 0], eps, c, [None] * (answers - 1) + [True])


def gaps(variant: Variant, answers: int, eps: Fraction, c: int) -> float:
    """Bottoms at 20 that rise, then a top that falls and gives away a gap, over a grid of tops and gaps."""
    from dpaudit.verify.witnesses.outputs import Values

    found = []
    for top in TOPS:
        for gap in GAPS:
            first = [FAR] * (answers - 1) + [top]
            second = [FAR + 1] * (answers - 1) + [top - 1]
            event = [None] * (answers - 1) + [Values(Fraction(gap), gap + SHORT)]
            found.append(_at(variant, first, second, eps, c, event))
    return max(found)


def _worst(variant: Variant, answers: int, eps: Fraction, c: int, most: int) -> float:
    from dpaudit.verify.witnesses import worst_pair

    return worst_pair(variant.program, "all-differ", answers, variant.parameters(eps, c), most).loss.lower


def _at(
    variant: Variant, first: list[int], second: list[int], eps: Fraction, c: int, event: list[Any] | None = None
) -> float:
    from dpaudit.verify.witnesses import pair_loss

    outputs = None if event is None else [event]
    return pair_loss(variant.program, first, second, variant.parameters(eps, c), outputs).loss.lower


_SMALL = (1, 2, 4, 8, 16)
_FROM_TWO = (2, 4, 8, 16, 32)
ROWS = (
    Row(ALG_1, "near", near, (0.1979, 0.4567, 0.8072, 0.9900, 1.0, 1.0)),
    Row(ALG_1, "all", proved, (0.25, 0.5, 1, 1, 1, 1), all_n=1),
    Row(ALG_2, "near", near, (0.1979, 0.4567, 0.8072, 0.9900, 1.0, 1.0), all_n=1),
    Row(ALG_3, "exact", tail, (0.5, 1, 2, 4, 8, 16), all_n=INFINITE),
    Row(ALG_4, "near", near, (0.2220, 1.2997, 1.7374, 1.75, 1.75, 1.75)),
    Row(ALG_4, "all", proved, (1.5, 1.75, 1.75, 1.75, 1.75), _FROM_TWO, all_n=1.75),
    Row(ALG_5, "exact", crossed, (0.5, *[INFINITE] * 5), all_n=INFINITE),
    Row(ALG_6, "near", near, (0.3177, 0.9050, 1.8556, 3.8000, 7.7449, 15.695)),
    Row(ALG_6, "all", proved, (0.5, 1, 2, 4, 8, 16), all_n=INFINITE),
    Row(NO_CUT_OFF, "near", near, (0.1979, 0.4567, 0.9268, 1.8859, 3.8368, 7.7843), all_n=INFINITE),
    Row(NO_THRESHOLD, "exact", bottoms, (0.25, 0.5, 1, 2, 4, 8), all_n=INFINITE),
    Row(HALF_NOISE, "near", near, (0.4320, 0.9595, 1.7023, 1.9950, 2.0, 2.0), all_n=2),
    Row(GAP, "far", gaps, (0.25, 0.5, 0.9588, 1.0, 1.0), _SMALL, all_n=1),
    Row(ALG_1, "near", near, (0.2336, 0.4698, 0.8344, 0.9968, 1.0), _FROM_TWO, c=2, all_n=1),
    Row(ALG_2, "near", near, (0.1846, 0.4351, 0.7713, 0.9789, 0.9999), _FROM_TWO, c=2, all_n=1),
    Row(ALG_4, "near", near, (1.2997, 2.7282, 3.2493, 3.25, 3.25), _FROM_TWO, c=2, all_n=3.25),
    Row(NOT_SCALED, "near", near, (0.4567, 0.9268, 1.4399, 1.4999, 1.5), _FROM_TWO, c=2, all_n=1.5),
    Row(NO_THRESHOLD, "exact", bottoms, (0.25, 0.5, 1, 2, 4), _FROM_TWO, c=2, all_n=INFINITE),
    Row(HALF_NOISE, "near", near, (0.4842, 0.9715, 1.7353, 1.9984, 2.0), _FROM_TWO, c=2, all_n=2),
    Row(ALG_1, "near", near, (0.0923, 0.2175, 0.3857, 0.4895, 0.5), _SMALL, HALF),
    Row(ALG_1, "near", near, (0.4320, 0.9595, 1.7023, 1.9950, 2.0), _SMALL, Fraction(2)),
    Row(ALG_4, "near", near, (0.1043, 0.6067, 0.8570, 0.8749, 0.8750), _SMALL, HALF),
    Row(ALG_4, "near", near, (0.4734, 2.7757, 3.4957, 3.5, 3.5), _SMALL, Fraction(2)),
    Row(ALG_6, "near", near, (0.1446, 0.4253, 0.8811, 1.8259, 3.7645), _SMALL, HALF),
    Row(ALG_6, "near", near, (0.7123, 1.9153, 3.8769, 7.8374, 15.802), _SMALL, Fraction(2)),
)
KINDS = {
    "near": f"size at most {NEAR}",
    "all": "all answers, proved",
    "exact": "known worst pair",
    "far": f"size at most {FAR}, then moved",
}

NOISY_MAX = """\
def noisy_max(q, rng, eps):
    assert eps > 0
    best = 0
    winner = 0
    for i in range(len(q)):
        y = q[i] + rng.laplace(scale=SCALE / eps)
        if i == 0 or y > best:
            best = y
            winner = i
    return winner
"""
MONOTONE, GENERAL = ((1, 0), (0, 1)), ((1, -1), (-1, 1))  # how one answer moves, and how the others do
MAXIMA = (  # noise in units of 1 / eps, moves, values by number of answers, supremum
    (1, "monotone", (0.9765, 1.0, 1.0, 1.0), 1.0),
    (1, "general", (1.9535, 2.0, 2.0, 2.0), 2.0),
    (2, "general", (0.9555, 1.0, 1.0, 1.0), 1.0),
    (2, "monotone", (0.4775, 0.5, 0.5, 0.5), 0.5),
)
MAXIMUM_SIZES = (2, 3, 5, 10)
MOST_GAP = 40

NOTE = (
    "Alg 2 with c = 2 and two answers: 0.1846 on record is the loss of two tops; a bottom and then a top, one epoch, "
    "lose 0.2175, as in Alg 1 at eps = 1/2. With fewer than 8 answers for each top the exact losses reach the proved "
    "ones only as the answers grow."
)


def run(quick: bool) -> None:
    """Prints the tables; `quick` takes at most 8 answers, and in the last one at most 16 and eps = 1."""
    started, tally = time.process_time(), Tally()
    sizes = tuple(size for size in SIZES if not quick or size <= QUICK)
    header = ("variant", "c", "eps", "answers", *(f"n = {size}" for size in sizes), "any n, proved")
    print_table("Exact: the sparse vector family, found (on record)", header, (_row(r, sizes, tally) for r in ROWS))
    header = ("noise", "moves", *(f"n = {size}" for size in MAXIMUM_SIZES), "any n, proved")
    print_table("Exact: report noisy max, eps = 1, found (on record)", header, _maxima(tally))
    print_table("Exact: single values", ("what", "found (on record)"), _singles(tally))
    header = ("variant", "eps", "c", "n", "proved", f"exact, size at most {WIDE}", "proved is above by")
    rows, late = [], []
    for row, percent in _proved_and_exact(quick):
        rows.append(row)
        if percent > 1.0 and int(row[3]) >= 8 * int(row[2]):
            late.append(" ".join(row[:4]))
    print_table("Exact: proofs against exact losses", header, rows)
    print(f"\nagree with the record: {tally.agreeing}; differ: " + ("; ".join(tally.differing) or "none"))
    print(NOTE)
    print("proved more than 1 % above the exact loss at n >= 8 c: " + ("; ".join(late) or "none"))
    print(f"{time.process_time() - started:.0f} s of CPU")


def _row(row: Row, sizes: Iterable[int], tally: Tally) -> tuple[str, ...]:
    known = dict(zip(row.sizes, row.values, strict=True))
    title = f"{row.variant.name}, c = {row.c}, eps = {row.eps}, {KINDS[row.kind]}"
    cells = []
    for size in sizes:
        if size not in known:
            cells.append("")
            continue
        digits = 3 if row.kind == "near" and known[size] >= 10 else DIGITS  # five digits are on record
        found = row.find(row.variant, size, row.eps, row.c)
        cells.append(tally.cell(f"{title}, n = {size}", found, known[size], digits))
    last = ""
    if row.all_n is not None:
        last = tally.cell(f"{title}, any n", proved(row.variant, None, row.eps, row.c), row.all_n)
    return (row.variant.name, str(row.c), str(row.eps), KINDS[row.kind], *cells, last)


def _maxima(tally: Tally) -> Iterable[tuple[str, ...]]:
    from dpaudit.verify.language import read

    for scale, moves, values, supremum in MAXIMA:
        program = read(NOISY_MAX.replace("SCALE", str(scale)))
        where = f"noisy max, Lap({scale}), {moves}"
        cells = [
            tally.cell(f"{where}, n = {size}", _largest_maximum(program, moves, size), value)
            for size, value in zip(MAXIMUM_SIZES, values, strict=True)
        ]
        ways = ("up", "down") if moves == "monotone" else ("all-differ",)
        found = max(float(least_bound(program.source, way, {"eps": Fraction(1)}, None)) for way in ways)
        yield (f"Lap({scale}/eps)", moves, *cells, tally.cell(f"{where}, any n", found, supremum))


def _largest_maximum(program: Any, moves: str, size: int) -> float:
    """Over how far one answer is from the others, up to 40, and which way they move."""
    from dpaudit.verify.witnesses import pair_loss

    found = []
    for gap in (-MOST_GAP, MOST_GAP):
        for own, others in MONOTONE if moves == "monotone" else GENERAL:
            first = [0] + [gap] * (size - 1)
            second = [own] + [gap + others] * (size - 1)
            found.append(pair_loss(program, first, second, {"eps": 1}).loss.lower)
    return max(found)


def _singles(tally: Tally) -> Iterable[tuple[str, ...]]:
    """Noisy max from equal answers, with Lap(1/eps); deltas; Alg 5's impossible output."""
    from dpaudit.verify.language import read
    from dpaudit.verify.witnesses import pair_delta, pair_loss

    program = read(NOISY_MAX.replace("SCALE", "1"))
    for size, winner, known in ((2, 0, 0.5477), (2, 1, 1.3069), (10, 0, 1.6072)):
        found = pair_loss(program, [0] * size, [1] + [-1] * (size - 1), {"eps": 1}, [[winner]]).loss.lower
        what = f"noisy max, Lap(1/eps), 0 against (+1, -1, ...), n = {size}, winner {winner}"
        yield what, tally.cell(what, found, known)
    for variant, pair, eps, known, digits in (
        (ALG_1, ([0] * 7 + [1], [1] * 7 + [0]), HALF, 0.005225556522, 12),
        (ALG_6, ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4), Fraction(1), 0.08871765646, 11),
    ):
        delta = pair_delta(variant.program, *pair, variant.parameters(1, 1), eps).middle
        what = f"delta of {variant.name} at eps {eps}, {tuple(pair[0])} against {tuple(pair[1])}"
        yield what, tally.cell(what, delta, known, digits)
    worst = pair_loss(ALG_5.program, [0, 1], [1, 0], ALG_5.parameters(1, 1)).worst
    what = "Alg 5, (0, 1) against (1, 0), output (None, True): probability"
    yield what, tally.cell(what, worst.likelier.middle, 0.196735, 6)
    what = "the same under (1, 0)"
    yield what, tally.cell(what, worst.rarer.upper, 0.0, 6)


def _proved_and_exact(quick: bool) -> Iterable[tuple[tuple[str, ...], float]]:
    """A row for each case with its gap in percent; `quick` takes 8 and 16 answers at eps 1."""
    for variant in (ALG_1, ALG_2, ALG_4, ALG_6, HALF_NOISE, NO_THRESHOLD):
        for c in (1, 2, 3) if variant.halts else (1,):
            for size in (8, 16) if quick else (8, 16, 32):
                for eps in (Fraction(1),) if quick else (HALF, Fraction(1), Fraction(2)):
                    upper, exact = proved(variant, size, eps, c), _worst(variant, size, eps, c, WIDE)
                    yield _compared(variant.name, eps, c, size, upper, exact)
    for size in (8,) if quick else (8, 16, 32):
        exact = crossed(ALG_5, size, Fraction(1), 1)
        yield _compared(ALG_5.name, Fraction(1), 1, size, proved(ALG_5, size, Fraction(1), 1), exact)
        exact = tail(ALG_3, size, Fraction(1), 1)
        yield _compared(ALG_3.name, Fraction(1), 1, size, proved(ALG_3, size, Fraction(1), 1), exact)


def _compared(name: str, eps: Fraction, c: int, size: int, upper: float, exact: float) -> tuple[tuple[str, ...], float]:
    percent = 0.0 if upper == exact else 100.0 * (upper - exact) / exact
    wrong = "" if exact <= upper * (1.0 + 1e-12) else " BELOW THE EXACT LOSS"
    cells = (name, str(eps), str(c), str(size), _number(upper), _number(exact, 6), f"{percent:.3f} %{wrong}")
    return cells, percent


def _number(value: float, digits: int = DIGITS) -> str:
    return "infinite" if value == INFINITE else f"{value:.{digits}f}"
