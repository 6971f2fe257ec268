"""Certificates with one thing changed, by kind of change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpaudit.verify.proof import Alignment, Potential, Proof


def mutants(proof: Proof) -> Iterator[tuple[str, Proof]]:
    """Every change that these rules make to a proof, with its name."""
    for place, alignment in enumerate(proof.alignments):
        for name, changed in _alignments(alignment):
            others = (*proof.alignments[:place], changed, *proof.alignments[place + 1 :])
            yield f"alignment {place}: {name}", replace(proof, alignments=others)
    for place, case in enumerate(proof.cases):
        smaller = replace(case, cost=f"({case.cost})*99/100")
        cases = (*proof.cases[:place], smaller, *proof.cases[place + 1 :])
        yield f"case {place} costs less", replace(proof, cases=cases)
        if len(proof.cases) > 1:
            without = (*proof.cases[:place], *proof.cases[place + 1 :])
            yield f"case {place} left out", replace(proof, cases=without)
    yield "the cost is less", replace(proof, cost=f"({proof.cost})*99/100")
    yield "no cases", replace(proof, cases=())


def _alignments(alignment: Alignment) -> Iterator[tuple[str, Alignment]]:
    for place, shift in enumerate(alignment.shifts):
        where = f"{shift.path} {shift.draw}"
        rest = (*alignment.shifts[:place], *alignment.shifts[place + 1 :])
        yield f"{where} left out", replace(alignment, shifts=rest)
        changes: dict[str, Any] = {
            "more": {"constant": shift.constant + Fraction(1, 2)},
            "less": {"constant": shift.constant - Fraction(1, 2)},
            "the answer more": {"answer": shift.answer + Fraction(1, 2)},
            "the answer less": {"answer": shift.answer - Fraction(1, 2)},
            "turned round": {
                "constant": -shift.constant,
                "answer": -shift.answer,
                "differences": {name: -value for name, value in shift.differences.items()},
            },
        }
        if place in (0, len(alignment.shifts) - 1):  # names are looked at for all shifts in one place
            changes |= {"of no such draw": {"draw": "draw_9"}, "on no such path": {"path": "loop:TTTTT"}}
            yield f"{where} twice", replace(alignment, shifts=(*alignment.shifts, shift))
        if shift.differences:
            changes["without differences"] = {"differences": {}}
        for name, change in changes.items():
            yield f"{where} {name}", replace(alignment, shifts=(*rest, replace(shift, **change)))
    for place, kept in enumerate(alignment.kept):
        rest_kept = (*alignment.kept[:place], *alignment.kept[place + 1 :])
        other = replace(kept, value=kept.value + 1, by=None)
        yield f"{kept.variable} kept at more", replace(alignment, kept=(*rest_kept, other))
        if kept.by is not None:
            half = replace(kept, value=kept.value / 2)
            yield f"{kept.variable} kept at half", replace(alignment, kept=(*rest_kept, half))
            yield f"{kept.variable} not kept", replace(alignment, kept=rest_kept)
    for place, bound in enumerate(alignment.bounds):
        rest_bounds = (*alignment.bounds[:place], *alignment.bounds[place + 1 :])
        yield f"{bound} not as bound", replace(alignment, bounds=rest_bounds)
        yield f"{bound} of one less", replace(alignment, bounds=(*rest_bounds, f"{bound} - 1"))
        yield "a contradiction as bound", replace(alignment, bounds=(*alignment.bounds, "1 <= 0"))
    for phase in alignment.phases:
        for text in ("best' - best <= 2", "1 <= 2", "best' - best == 2", "1 <= 0"):
            phases = {**alignment.phases, phase: text}
            yield f"{phase}: {text}", replace(alignment, phases=phases)
    if alignment.potential is not None:
        for name, potential in _potentials(alignment.potential):
            yield f"potential {name}", replace(alignment, potential=potential)


def _potentials(potential: Potential) -> Iterator[tuple[str, Potential | None]]:
    yield "left out", None
    if potential.start != "0":
        yield "starts lower", replace(potential, start=f"({potential.start})*99/100")
        yield "starts at 0", replace(potential, start="0")
    yield "starts higher", replace(potential, start=f"{potential.start} + eps/100")
    yield "starts below 0", replace(potential, start=f"{potential.start} - 3*eps")
    for name, text in potential.counters.items():
        for factor in ("99/100", "101/100", "0"):
            counters = {**potential.counters, name: f"({text})*{factor}"}
            yield f"{factor} per {name}", replace(potential, counters=counters)
    if potential.used != "0":
        yield "less for used", replace(potential, used=f"({potential.used})*99/100")
        yield "more for used", replace(potential, used=f"({potential.used})*101/100")
    for name, text in potential.held.items():
        yield f"less held by {name}", replace(potential, held={name: f"({text})*99/100"})
        yield f"more held by {name}", replace(potential, held={name: f"({text})*101/100"})
        yield f"none held by {name}", replace(potential, held={})
