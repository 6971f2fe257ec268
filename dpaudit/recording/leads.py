"""What replays of two datasets tell: leads, where the claim does not allow it, and what proves nothing."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Reals, Words
from dpaudit.claims import Claim, GaussianDP
from dpaudit.events.features import spell
from dpaudit.outputs.canonical import BEYOND, EXPONENT, NOT_A_NUMBER, SIGN, Failure, Outputs, Path, derived, is_metadata
from dpaudit.outputs.encode import encode_objects
from dpaudit.recording.fits import Fitter, NumberNoise, features_of
from dpaudit.recording.laws import CHOICE
from dpaudit.recording.losses import Moved, loss
from dpaudit.recording.sources import NoiseDraw
from dpaudit.results.recorded import Kind, Lead

WHOLE, ENDING, MOVES = "output", "how runs end", "noise"  # names of all of it; what came out where there is noise
HOW_NUMBERS_LOOK = frozenset({SIGN, BEYOND, EXPONENT})  # which tells no more than the number
SLACK, ROUGH = 1e-7, 1e-3  # relative: a loss no further above the claim is a rounding of it; or that of a ratio
UNHIDDEN = ("laplace", "discrete_laplace")  # laws whose loss far out is that of clipped and rounded outputs too
OFTEN = 0.3  # of what happened in 15 replays of a dataset, the least probability: else by a chance of 2e-8
CURVED = 1e-6  # how far rounding may take a point beyond the region of a curve
MOST_PARTS, LONGEST = 12, 60  # parts of one lead; characters of what came out
MOST_ODD = 16  # numbers that are tried as a ratio or a sum
FINITE = ("integers", CHOICE, "binomial")  # laws of few values, without a scale


def shown(value: Any) -> str:
    """A value for people, shortened."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


@dataclass(slots=True, eq=False)
class ReplayedOutputs:
    """What came out of all replays, in canonical form: a row for each place, a column for each replay.

    `words` are equal where what came out is; `raised` tells which replays ended in an exception.
    """

    paths: list[Path]
    values: Reals
    codes: Words
    words: Words
    raised: Bools
    outputs: Outputs

    @classmethod
    def of(cls, outputs: list[Any]) -> "ReplayedOutputs":
        """From what runs returned; what they raised is a `Failure`."""
        seen = encode_objects(outputs)
        paths = [path for path in seen.columns if not derived(path) and HOW_NUMBERS_LOOK.isdisjoint(path)]
        values = np.stack([np.asarray(seen.column(path).values, np.float64) for path in paths])
        codes = np.stack([seen.column(path).tokens for path in paths])
        words = np.where(codes == 0, (values + 0.0).view(np.uint64), codes)
        return cls(paths, values, codes, words, np.array([isinstance(each, Failure) for each in outputs]), seen)

    def text(self, place: int, replay: int) -> str:
        """What came out at a place, for people."""
        code = int(self.codes[place, replay])
        if code == NOT_A_NUMBER.code:
            return "nan"
        return (
            shown(float(self.values[place, replay]) + 0.0)
            if code == 0
            else shown(self.outputs.labels.get(code, "text"))
        )


@dataclass(slots=True)
class Findings:
    """What was found: leads, the names of parts that differ and prove nothing, and how all noise has moved.

    `loss` is that of the pair by noise alone, None where a part that changes is not understood.
    """

    leads: list[Lead] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    loss: float | None = None
    at_most: bool = False
    loose: bool = False  # draws that are in no noise were never at an end of their law

    def lead(
        self, kind: Kind, parts: Sequence[str], texts: Iterable[str], of: NumberNoise | None = None, **told: Any
    ) -> None:
        """One lead more."""
        first, second = texts
        place = ("", "", "") if of is None else (of.place, of.call, of.law)
        self.leads.append(Lead(kind, tuple(parts[:MOST_PARTS]), first, second, place[0], place[1], place[2], **told))


Sides = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]  # replays of each dataset, in one order


def findings(
    table: ReplayedOutputs,
    sides: Sides,
    draws: tuple[list[list[NoiseDraw]], list[list[NoiseDraw]]],
    ends: Bools,
    claim: Claim | None,
) -> Findings:
    """From the replays of both datasets, and what they drew; at `ends` draws are at the ends of their laws."""
    found = Findings()
    raised = [table.raised[rows] for rows in sides]
    words = [
        {table.text(table.paths.index(()), row) for row in rows[each]} for rows, each in zip(sides, raised, strict=True)
    ]
    always = [bool(each.all()) for each in raised]
    if any(always):
        if (always[0] != always[1] and not raised[always.index(False)].any()) or (all(always) and words[0] != words[1]):
            found.lead("raised", (WHOLE,), (min(each, default=MOVES) for each in words))
        return found
    if raised[0].sum() != raised[1].sum():
        found.differs.append(ENDING)
    alive = [rows[~each] for rows, each in zip(sides, raised, strict=True)]
    steady = [(table.words[:, rows] == table.words[:, rows[:1]]).all(axis=1) for rows in alive]
    of_kind = [(table.codes[:, rows] == table.codes[:, rows[:1]]).all(axis=1) for rows in alive]
    one, other = (rows[0] for rows in alive)
    same = steady[0] & steady[1]
    odd = of_kind[0] & of_kind[1] & (table.codes[:, one] != table.codes[:, other])  # a number there, and here none
    fixed = np.flatnonzero((same & (table.words[:, one] != table.words[:, other])) | odd)
    if len(fixed):
        named = sorted(fixed.tolist(), key=lambda at: is_metadata(table.paths[at]))
        texts = (table.text(named[0], rows[0]) if steady[k][named[0]] else MOVES for k, rows in enumerate(alive))
        found.lead("untouched", [spell(table.paths[at]) for at in named], texts)
    both = ~(raised[0] | raised[1])
    apart = (table.words[:, sides[0][both]] != table.words[:, sides[1][both]]).any(axis=1)
    places = np.flatnonzero(~same & ~odd & (apart | (table.codes == 0).any(axis=1)))
    with np.errstate(all="ignore"):
        noises = _noises(found, table, sides, draws, ends, places, steady)
        used = {element[:3] for pair in noises.values() for noise in pair for element in noise.elements}
        found.loose = not _loose(draws[0]) | _loose(draws[1]) <= used
        _judge(found, _own(found, noises), claim)
    led = {part for lead in found.leads for part in lead.parts}
    told = {word for part in (*noises, *led) for word in (part, part.partition(" of ")[2])}  # of a ratio its parts
    changes = {spell(table.paths[place]) for place in np.flatnonzero(~same)}
    found.loss = None if found.differs or changes - told else found.loss
    found.at_most |= found.loose
    moves = {ENDING, *(spell(table.paths[place]) for place in np.flatnonzero(apart))}
    found.differs = [name for name in found.differs if name in moves - led]
    return found


def _loose(tapes: Sequence[Sequence[NoiseDraw]]) -> set[tuple[str, str, int]]:
    """Draws of which something may come that no replay has shown: all but coins, whose ends are all there is.

    Coins too where they are made more or less often.
    """
    counts = [Counter((each.key, each.call) for each in draws) for draws in tapes]
    steady = {place for place in counts[0] if all(each[place] == counts[0][place] for each in counts)}
    every = [each for draws in tapes for each in draws]
    risky = [each for each in every if not (each.ended and each.coin and (each.key, each.call) in steady)]
    return {(each.key, each.call, each.number) for each in risky}


def _noises(
    found: Findings,
    table: ReplayedOutputs,
    sides: Sides,
    draws: tuple[list[list[NoiseDraw]], list[list[NoiseDraw]]],
    ends: Bools,
    places: npt.NDArray[np.intp],
    steady: Sequence[Bools],
) -> dict[str, tuple[NumberNoise, NumberNoise]]:
    """The noise of each place that moves and differs, on both datasets; a lead where one alone has noise."""
    fitters = [Fitter(features_of(tapes, ends), ends) for tapes in draws]
    numbers = [table.values[np.ix_(places, rows)].T for rows in sides]
    there = [((table.codes[np.ix_(places, rows)] == 0) | table.raised[rows]).T for rows in sides]
    fits = [fitter.fit(*each) for fitter, each in zip(fitters, zip(numbers, there, strict=True), strict=True)]
    noises: dict[str, tuple[NumberNoise, NumberNoise]] = {}
    for at, place in enumerate(places.tolist()):
        name, one, other = spell(table.paths[place]), fits[0][at], fits[1][at]
        fixed = [bool(each[place]) for each in steady]
        if any(fixed):
            noise = (one, other)[fixed.index(False)]
            if noise is None or noise.at_most:
                found.differs.append(name)
            else:
                first = (table.text(place, rows[0]) for rows in sides)
                texts = (text if still else MOVES for text, still in zip(first, fixed, strict=True))
                found.lead("law", (name,), texts, noise, loss=math.inf)
        elif one is not None and other is not None:
            noises[name] = one, other
        elif (choice := _choice(fitters, [table.words[place, rows] for rows in sides])) is not None:
            noises[name] = choice
        elif len(found.differs) < MOST_ODD and (more := _more(fitters, name, *(each[:, at] for each in numbers))):
            noises |= more
        else:
            found.differs.append(name)
    return noises


def _choice(fitters: Sequence[Fitter], words: Sequence[Words]) -> tuple[NumberNoise, NumberNoise] | None:
    """What tells which of several was chosen, by one draw, and that alone; None where some were never chosen."""
    ones, others = ([each for each in fitter.features if each.law == CHOICE and each.more] for fitter in fitters)
    for both in zip(ones, others, strict=False):
        chosen = np.concatenate([each.values[:, 0] for each in both]).tolist()
        pairs = set(zip(chosen, np.concatenate(words).tolist(), strict=True))
        possible = {place for each in both for place in np.flatnonzero(np.asarray(each.more[-1]) > 0.0).tolist()}
        if possible == set(chosen) and len(pairs) == len(possible) == len({word for _, word in pairs}):
            of = (fitter.noise(each, 0) for fitter, each in zip(fitters, both, strict=True))
            return next(of), next(of)
    return None


def _more(fitters: Sequence[Fitter], name: str, *numbers: Reals) -> dict[str, tuple[NumberNoise, NumberNoise]] | None:
    """A number as a ratio of two noisy ones, or as a sum of several draws, on both datasets."""
    one, other = (fitter.ratio(y) for fitter, y in zip(fitters, numbers, strict=True))
    if one is not None and other is not None:
        parts = ("numerator", "denominator")
        return {f"the {part} of {name}": (one[k], other[k]) for k, part in enumerate(parts)}
    sums = [fitter.sum(y) for fitter, y in zip(fitters, numbers, strict=True)]
    return None if sums[0] is None or sums[1] is None else {name: (sums[0], sums[1])}


def _own(
    found: Findings, noises: Mapping[str, tuple[NumberNoise, NumberNoise]]
) -> dict[str, tuple[NumberNoise, NumberNoise]]:
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
            blur = max(1e-9, sum(each.blur for each in (*a, *b)))
            error = sum(each.error for each in (*a, *b)) * (1.0 + abs(factors[0]))
            error += blur * abs(factors[0]) * (abs(a[0].location) + abs(a[1].location))
            if not math.isclose(*factors, rel_tol=blur) or abs(rests[0] - rests[1]) > 2.0 * error:
                found.lead("reused", (first, name), map(shown, rests), b[0], loss=math.inf)
    return result


def _judge(found: Findings, noises: Mapping[str, tuple[NumberNoise, NumberNoise]], claim: Claim | None) -> None:
    """The loss of all numbers together, and a lead where it is above the claim."""
    moved: dict[str, Moved] = {}
    least: list[Moved] = []
    for name, (one, other) in noises.items():
        if one.law != other.law or (one.law in FINITE and one.slope != other.slope):
            found.differs.append(name)
            continue
        wide, gap, error = max(one.scale, other.scale), other.location - one.location, one.error + other.error
        same = abs(one.scale - other.scale) <= max(1e-9, one.blur + other.blur) * wide
        scale = (wide, wide) if same else (one.scale, other.scale)
        sure = abs(gap) > (0.0 if one.at_most else error)  # what does not move at all, does not
        most = gap + math.copysign(error if one.at_most else 0.0, gap) if sure else 0.0
        ends = one.location, one.location + most
        moved[name] = Moved(one.law, ends, scale, (one.more, other.more))
        near = one.location + math.copysign(max(abs(gap) - error, 0.0), gap)
        least.append(replace(moved[name], location=(one.location, near)))
    found.moved = list(moved.values())
    found.at_most = any(noise.at_most for name in moved for noise in noises[name])
    found.loss, sure_loss = loss(claim, found.moved), loss(claim, least, least=True)
    if claim is None or sure_loss is None:
        return
    allowed = claim.value or 0.0
    if claim.value is None:  # of a curve a loss is how far it goes beyond the region, and no parameter
        found.loss, sure_loss = None, sure_loss - CURVED
    if found.at_most and not (claim.pure and all(each.law in UNHIDDEN for each in found.moved if not each.same)):
        found.differs += [name for name in moved if not moved[name].same]  # of which less may be lost
        return
    if found.loose:  # the pair may differ in these draws alone, and seldom
        sure_loss = _diluted(claim, sure_loss)
    if sure_loss <= allowed * (1.0 + (ROUGH if found.at_most else SLACK)) + 1e-12:
        return
    name = max(moved, key=lambda each: (not moved[each].alike, moved[each].shift))
    worst, noise = moved[name], noises[name][0]
    names = [name, *(each for each in moved if each != name and not moved[each].same)]
    texts = (_law_text(worst, side, noises[name][side].error) for side in (0, 1))
    told = {"loss": found.loss, "at_most": found.at_most, "shift": worst.shift if worst.alike else None}
    found.lead("shift" if worst.alike else "law", names, texts, noise, **told)


def _diluted(claim: Claim, loss: float) -> float:
    """What is left of a loss where the data differ in so many runs as `OFTEN`, at the least; 0 where that is not known.

    Of an epsilon by the mixture of both laws (Balle, Barthe & Gaboardi 2018), of a divergence by its square.
    """
    if claim.linear:
        return math.log1p(OFTEN * math.expm1(min(loss, 700.0)))
    return 0.0 if claim.value is None else loss * (OFTEN if isinstance(claim, GaussianDP) else OFTEN**2)


def _law_text(of: Moved, side: int, error: float) -> str:
    """The law of a number on one dataset."""
    numbers = ", ".join(f"{p:.4g}" for p in np.ravel(of.more[side][-1])[:4]) if of.more[side] else ""
    if of.law == CHOICE:
        return f"a choice by p = {numbers}"
    place = 0.0 if abs(of.location[side]) <= error else of.location[side]
    return f"{shown(place)} + {of.law}{f' ({numbers})' if numbers else ''}, scale {shown(of.scale[side])}"
