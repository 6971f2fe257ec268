"""What upper bounds cost: proofs and their check, refutations, brackets, rigorous integrals, exact replay.

CPU times of one process, import excluded. Each proof, check, refutation and bracket is timed once, as a user meets it.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.programs import FAMILY, RIGHT, WRONG
from benchmarks.tables import print_table

ENGINES = (
    *(f"dpaudit.verify.{room}" for room in ("alignment", "checker", "integrals", "replay", "witnesses")),
    "cvc5",
    "flint",
    "z3",
)
BITS, QUICK_BITS = 20, 14  # of replay: 2^20 paths, 2^14
GIVEN = {"eps": 1, "N": 1, "T": 0, "M": 2}  # where a wrong program is refuted; a smart sum needs T = 1
RADIUS = 1e-12  # the largest relative radius of an event's probability
Row = tuple[str, ...]


def run(quick: bool) -> None:
    """Prints one line for each piece of work, with its goal; `quick` replays less."""
    for engine in ENGINES:
        import_module(engine)
    replayed = _replayed(QUICK_BITS if quick else BITS)
    rows = [*_proofs(), *_refutations(), *_brackets(), *_probabilities(), *_pairs(32 if quick else 128), replayed]
    print_table("Verify: CPU seconds", ("work", "seconds", "goal", "", "found"), rows)
    missed = [row[0] for row in rows if row[3] == "MISSED"]
    print("\nmissed: " + ("; ".join(missed) or "none"))


def _proofs() -> list[Row]:
    from dpaudit.verify.alignment import Unproved, prove
    from dpaudit.verify.checker import certified, check
    from dpaudit.verify.language import read
    from dpaudit.verify.stored import to_dict

    rows = []
    for case in RIGHT.values():
        name, claim = f"`{case.name}`", case.claim
        proof, seconds = _timed(lambda case=case: prove(read(case.function), case.adjacency, claim=case.claim))
        if isinstance(proof, Unproved):
            continue  # a coupling proves it: see its bracket
        rows.append(_row(f"proof of {name}", seconds, 2.0, True, f"cost {proof.cost}"))
        size = len(json.dumps(to_dict(proof)))
        proof, seconds = _timed(lambda proof=proof: certified(proof))
        more = len(json.dumps(to_dict(proof))) - size
        rows.append(_row(f"its certificate {name}", seconds, None, True, f"{size:,} bytes and {more:,} more"))
        checked, seconds = _timed(lambda proof=proof: check(proof))
        kept = "keeps" if checked.keeps_claim else "DOES NOT KEEP"
        rows.append(_row(f"its check {name}", seconds, None, bool(checked.keeps_claim), f"{kept} {claim}"))
    return rows


def _refutations() -> list[Row]:
    from dpaudit.verify.language import read
    from dpaudit.verify.witnesses import worst_pair

    def refuted(program: Any, adjacency: str, claim: int, given: Any) -> Any:
        worst = (worst_pair(program, adjacency, size, given) for size in range(1, 6))
        return next((each for each in worst if each.loss.lower > claim), None)

    rows = []
    for case in WRONG.values():
        program, epsilon = read(case.function), 2 if case.claim.startswith("2") else 1
        given = {**GIVEN, "T": 1} if "M" in program.parameters else GIVEN
        parameters = {name: Fraction(given[name]) for name in program.parameters}
        found, seconds = _timed(lambda p=program, a=case.adjacency, e=epsilon, g=parameters: refuted(p, a, e, g))
        words = "not refuted" if found is None else f"loss {found.loss.lower:.6g} > {epsilon}"
        rows.append(_row(f"refutation of `{case.name}`", seconds, 5.0, found is not None, words))
    return rows


def _brackets() -> list[Row]:
    """Proof or reason, its check, the search of the worst pair and its loss, a refutation: all but runs."""
    from dpaudit import bracket

    rows = []
    for case in (*RIGHT.values(), *WRONG.values()):
        names = inspect.signature(case.function).parameters
        values = {**GIVEN, "eps": 1.0, "T": 1 if "M" in names else 0}
        given = {name: value for name, value in values.items() if name in names}
        ask = partial(bracket, case.function, case.claim, adjacency=case.adjacency, parameters=given, runs=0)
        found, seconds = _timed(ask)
        right = found.verdict.value == ("PROVED" if case.right else "REFUTED")
        words = f"{found.verdict.value}, epsilon in [{found.ends[0]:.6g}, {found.ends[1]:.6g}]"
        rows.append(_row(f"bracket of `{case.name}`", seconds, 2.0, right, words))
    return rows


def _pairs(count: int) -> list[Row]:
    """All outputs of so many distinct answers and of their neighbours; beside it one of them alone, on both."""
    from dpaudit.verify.integrals import log_ratio, probability
    from dpaudit.verify.language import read
    from dpaudit.verify.witnesses import pair_loss
    from dpaudit.verify.witnesses.outcomes import Outcomes

    rows = []
    first = [Fraction(7 * place % count, 3) for place in range(count)]
    second = [answer + (-1) ** (place + 1) for place, answer in enumerate(first)]
    for name, case, goal in (("AboveThreshold", FAMILY["lyu_1"], 2.0), ("noisy max", RIGHT["c1_noisy_max"], 5.0)):
        program = read(case.function)
        parameters = {
            name: Fraction(value) for name, value in (("eps", 1), ("T", 0), ("c", 1)) if name in program.parameters
        }
        loss, seconds = _timed(partial(pair_loss, program, first, second, parameters))
        drawn = [Outcomes(program, each, parameters).drawn(loss.worst.event) for each in (first, second)]
        events = [event for parts in drawn for _, event in parts]
        balls, alone = _timed(lambda events=events: [probability(event) for event in events])
        ratio = log_ratio(*balls)
        right = loss.exact and min(abs(each - loss.loss.upper) for each in (ratio.upper, -ratio.lower)) < 1e-12
        found = f"loss {loss.loss.upper:.10g}; its event alone {alone:.4f} s"
        rows.append(_row(f"pair of {count} distinct answers, {name}", seconds, goal, right, found))
    return rows


def _probabilities() -> list[Row]:
    """Bottoms for all but the last of n distinct answers: the least of some repetitions, as it is computed often."""
    from dpaudit.verify.integrals import Between, Line, Slice, probability

    rows = []
    for count, repetitions, goal in ((8, 50, 0.004), (32, 5, 0.25)):
        lines = [(Line(1, -Fraction(7 * place % count, 3)),) for place in range(count)]
        below = [Between("laplace", Fraction(4), (), line) for line in lines[:-1]]
        draws = (*below, Between("laplace", Fraction(4), lines[-1], ()))
        event = ((Slice("laplace", Fraction(2), None, None, draws),),)
        timed = [_timed(lambda event=event: probability(event)) for _ in range(repetitions)]
        ball, seconds = timed[0][0], min(each for _, each in timed)
        radius = float(ball.rad() / ball.mid())
        found = f"{float(ball.mid()):.12g}, relative radius {radius:.1e}"
        rows.append(_row(f"event of {count} distinct answers", seconds, goal, radius <= RADIUS, found))
    return rows


def _replayed(bits: int) -> Row:
    """One dataset's paths: those of 2^bits choices; its neighbour draws nothing."""
    from dpaudit.verify.replay import replay

    def counted(data: int, rng: Any) -> int:
        return int(sum(rng.integers(2) for _ in range(bits))) if data else 0

    losses, seconds = _timed(lambda: replay(counted, [0, 1], "all", most_paths=2 << bits))
    right = losses.paths == 2**bits + 1 and losses.laws[1][0] == Fraction(1, 2**bits)
    return _row(f"replay of {bits} fair bits", seconds, 100.0, right, f"{losses.paths:,} paths")


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


def _row(work: str, seconds: float, goal: float | None, right: bool, found: str) -> Row:
    verdict = "MISSED" if not right or (goal is not None and seconds > goal) else "met" if goal is not None else ""
    return work, f"{seconds:.4f}", "" if goal is None else f"{goal:g}", verdict, found
