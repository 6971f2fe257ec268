"""What replays of two datasets tell: leads, where the claim does not allow it, and what proves nothing."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.claims import Claim
from dpaudit.recording.fits import Fitter, Noise, features_of
from dpaudit.recording.losses import Moved, loss
from dpaudit.recording.outputs import WHOLE, Apart, named, shown
from dpaudit.recording.sources import Draw
from dpaudit.results.recorded import Kind, Lead

SLACK = 1e-7  # relative: a loss no further above the claim is a rounding of it
MOST_PARTS = 12  # of one lead
FINITE = ("integers", "choice", "binomial")  # laws of few values, without a scale
Rows = Sequence[tuple[Apart, list[Draw]]]  # of one dataset, a row a replay


@dataclass(slots=True)
class Findings:
    """What was found: leads, the names of parts that differ and prove nothing, and how all noise has moved.

    `loss` is that of the pair by noise alone, None where it is not known of a part.
    """

    leads: list[Lead] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    loss: float | None = None
    at_most: bool = False

    def lead(
        self, kind: Kind, parts: Sequence[str], texts: Iterable[str], of: Noise | None = None, **told: Any
    ) -> None:
        """One lead more."""
        first, second = texts
        place = {} if of is None else {"place": of.place, "call": of.call, "law": of.law}
        self.leads.append(Lead(kind, tuple(parts[:MOST_PARTS]), first, second, **place, **told))


def findings(sides: tuple[Rows, Rows], ends: Bools, claim: Claim | None) -> Findings:
    """From the replays of both datasets, `ends` of which have draws at the ends of their laws."""
    found = Findings()
    if _ended(found, sides):
        _facts(found, sides)
        with np.errstate(all="ignore"):
            _judge(found, _own(found, _noises(found, sides, ends)), claim)
    return found


def _ended(found: Findings, sides: tuple[Rows, Rows]) -> bool:
    """Whether both datasets gave values; a lead where one alone does in every replay."""
    raised = [[output.facts[WHOLE] for output, _ in rows if output.raised] for rows in sides]
    always = [len(each) == len(rows) for each, rows in zip(raised, sides, strict=True)]
    kinds = [set(each) for each in raised]
    if sum(always) == 1 and not raised[always.index(False)] or all(always) and kinds[0] != kinds[1]:
        found.lead("raised", (WHOLE,), (shown(min(each, default="a value")) for each in kinds))
    elif len(raised[0]) != len(raised[1]):
        found.differs.append(WHOLE)
    return not any(always)


def _facts(found: Findings, sides: tuple[Rows, Rows]) -> None:
    """Types, keys, lengths and text: a lead where each dataset has its own in every replay."""
    apart: list[tuple[str, list[str]]] = []
    for key in dict.fromkeys(key for rows in sides for output, _ in rows for key in output.facts if key != WHOLE):
        values = [[output.facts.get(key, "absent") for output, _ in rows if not output.raised] for rows in sides]
        if all(len(set(each)) == 1 for each in values):
            apart += [(key, [shown(each[0]) for each in values])] if values[0][0] != values[1][0] else []
        elif values[0] != values[1]:
            found.differs.append(key)
    if apart:
        found.lead("untouched", [key for key, _ in apart], apart[0][1])


def _noises(found: Findings, sides: tuple[Rows, Rows], ends: Bools) -> dict[str, tuple[Noise, Noise]]:
    """The noise of every number that moves, on both datasets; leads where a number does not move and differs."""
    fitters = [Fitter(features_of([draws for _, draws in rows], ends), ends) for rows in sides]
    rough = max(output.roughness for rows in sides for output, _ in rows)
    fixed: list[tuple[str, list[str]]] = []
    noises: dict[str, tuple[Noise, Noise]] = {}
    for key in dict.fromkeys(key for rows in sides for output, _ in rows for key in output.numbers):
        one, other = (_block(rows, key) for rows in sides)
        if one is None or other is None or one[0].shape != other[0].shape:
            continue  # of which lengths and keys tell
        fits = [fitter.fit(*block, rough) for fitter, block in zip(fitters, (one, other), strict=True)]
        for place in range(one[0].shape[1]):
            name, y = named(key, place, one[0].shape[1]), (one[0][:, place], other[0][:, place])
            there = [each[[key in output.numbers for output, _ in rows]] for each, rows in zip(y, sides, strict=True)]
            steady = [bool(np.all((each == each[:1]) | (np.isnan(each) & np.isnan(each[:1])))) for each in there]
            noise = fits[0][place], fits[1][place]
            if all(steady):
                same = np.array_equal(there[0][:1], there[1][:1], equal_nan=True)
                fixed += [] if same else [(name, [shown(float(each[0])) for each in there])]
            elif any(steady):
                _exact(found, name, there, steady, noise[steady.index(False)])
            elif noise[0] is not None and noise[1] is not None:
                noises[name] = noise[0], noise[1]
            elif more := _more(fitters, name, y):
                noises |= more
            else:
                found.differs += [] if np.array_equal(*y, equal_nan=True) else [name]
    if fixed:
        found.lead("untouched", [name for name, _ in fixed], fixed[0][1])
    return noises


def _block(rows: Rows, key: str) -> tuple[Reals, Bools] | None:
    """The numbers of a part in all replays, and where they were there; None where their count changes."""
    sizes = {output.numbers[key].size for output, _ in rows if key in output.numbers}
    if len(sizes) != 1:
        return None
    nothing = np.full(min(sizes), math.nan)
    numbers = np.stack([output.numbers.get(key, nothing) for output, _ in rows])
    there = np.array([key in output.numbers or output.raised for output, _ in rows])
    return numbers, np.repeat(there[:, None], min(sizes), axis=1)


def _exact(found: Findings, name: str, y: Sequence[Reals], steady: Sequence[bool], noise: Noise | None) -> None:
    """One dataset has noise there, and the other has none."""
    if noise is None or noise.at_most:
        found.differs.append(name)
        return
    texts = (shown(float(each[0])) if fixed else "noise" for each, fixed in zip(y, steady, strict=True))
    found.lead("law", (name,), texts, noise, loss=math.inf)


def _more(fitters: Sequence[Fitter], name: str, y: tuple[Reals, Reals]) -> dict[str, tuple[Noise, Noise]] | None:
    """A number as a ratio of two noisy ones, or as a sum of several draws, on both datasets."""
    one, other = (fitter.ratio(numbers) for fitter, numbers in zip(fitters, y, strict=True))
    if one is not None and other is not None:
        parts = ("numerator", "denominator")
        return {f"the {part} of {name}": (one[k], other[k]) for k, part in enumerate(parts)}
    one_, other_ = (fitter.sum(numbers) for fitter, numbers in zip(fitters, y, strict=True))
    return None if one_ is None or other_ is None else {name: (one_, other_)}


def _own(found: Findings, noises: Mapping[str, tuple[Noise, Noise]]) -> dict[str, tuple[Noise, Noise]]:
    """Numbers with noise of their own: of several that share a draw, all but one go.

    What they have in common no draw touches: a lead where that differs.
    """
    owners: dict[Any, dict[str, None]] = defaultdict(dict)
    for name, both in noises.items():
        for side, noise in enumerate(both):
            for element in noise.elements:
                owners[side, element][name] = None
    result = dict(noises)
    for names in owners.values():
        first, *others = [name for name in names if name in result] or [""]
        for name in others:
            a, b = result[first], result.pop(name)
            single = all(len(each.elements) == 1 and not each.at_most for each in (*a, *b))
            if not single or any(a[side].elements != b[side].elements for side in (0, 1)):
                found.differs.append(name)
                continue
            factors = [b[side].slope / a[side].slope for side in (0, 1)]
            rests = [b[side].location - factors[side] * a[side].location for side in (0, 1)]
            error = sum(each.error for each in (*a, *b)) * (1.0 + abs(factors[0]))
            if not math.isclose(*factors, rel_tol=1e-9) or abs(rests[0] - rests[1]) > 2.0 * error:
                found.lead("reused", (first, name), map(shown, rests), b[0], loss=math.inf)
    return result


def _judge(found: Findings, noises: Mapping[str, tuple[Noise, Noise]], claim: Claim | None) -> None:
    """The loss of all numbers together, and a lead where it is above the claim."""
    moved: dict[str, Moved] = {}
    least: list[Moved] = []
    for name, (one, other) in noises.items():
        if one.law != other.law or one.law in FINITE and one.slope != other.slope:
            found.differs.append(name)
            continue
        wide, gap, error = max(one.scale, other.scale), other.location - one.location, one.error + other.error
        same = abs(one.scale - other.scale) <= max(1e-9, one.blur + other.blur) * wide
        scale = (wide, wide) if same else (one.scale, other.scale)
        ends = one.location, other.location if abs(gap) > error else one.location
        moved[name] = Moved(one.law, ends, scale, (one.more, other.more))
        sure = one.location + math.copysign(max(abs(gap) - error, 0.0), gap)
        least.append(replace(moved[name], location=(one.location, sure)))
    found.moved = list(moved.values())
    found.at_most |= any(noise.at_most for name in moved for noise in noises[name])
    found.loss, sure_loss = loss(claim, found.moved), loss(claim, least)
    if claim is None or found.loss is None or sure_loss is None:
        return
    allowed = claim.epsilon_at(claim.delta) if claim.value is None else claim.value
    if sure_loss <= allowed * (1.0 + SLACK) + 1e-12:
        return
    name = max(moved, key=lambda each: (not moved[each].alike, moved[each].shift))
    worst, noise = moved[name], noises[name][0]
    names = [name, *(each for each in moved if each != name and not moved[each].same)]
    texts = (f"{shown(a)} + {worst.law}, scale {shown(b)}" for a, b in zip(worst.location, worst.scale, strict=True))
    told = {"loss": found.loss, "at_most": found.at_most, "shift": worst.shift if worst.alike else None}
    found.lead("shift" if worst.alike else "law", names, texts, noise, **told)
