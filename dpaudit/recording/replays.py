"""Replays of a mechanism on two datasets under equal draws, and what they tell: leads, and what proves nothing.

Both datasets meet the same draws, replay by replay, in a random order. In some replays every draw lies at an end of its
law: what does not change even then is touched by no draw. This runs where mechanisms run.
"""

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.claims import Claim
from dpaudit.data.data import private_copy
from dpaudit.errors import DpAuditError, Interrupted
from dpaudit.recording.fits import Fitter, Noise, features_of
from dpaudit.recording.losses import Moved, loss, parameter_of
from dpaudit.recording.outputs import WHOLE, Apart, apart, named, shown
from dpaudit.recording.patching import patched
from dpaudit.recording.sources import CHOICE, GENUINE, ORDER, Draw, How, Tape, generator, taped
from dpaudit.results.recorded import Difference, Drawn, Lead, NoiseRecord, Part

PLAIN = 16  # replays with draws as they fall
ENDS: tuple[How, ...] = ("low", "high", "mixed", "mixed", "mixed", "mixed")
RARE = 1e-290  # what is likelier than this at an end of every law does happen in these replays
SLACK = 1e-7  # relative: a loss no further above the claim is a rounding of it
MOST_SHOWN, FIRST_VALUES = 12, 3  # lines of a table; values of a draw in words
ELSEWHERE = "draws that are not recorded: two runs with the same draws differ on the same data"

Call = Callable[[Any, Any], Any]
Rows = list[tuple[Apart, Tape]]


@dataclass(slots=True, eq=False)
class Replays:
    """The replays of both datasets: outputs and tapes, the plain ones first; and what is not recorded, in words."""

    sides: tuple[Rows, Rows]
    unseen: dict[str, None] = field(default_factory=dict)
    runs: int = 0

    @property
    def ends(self) -> Bools:
        """Which replays have their draws at the ends of laws."""
        return np.array([tape.how != "plain" for _, tape in self.sides[0]])


def run_once(call: Call, data: Any, seed: int, how: How = "plain") -> tuple[Apart, Tape]:
    """One run on a copy of the data, in `patched`; what it raises is its output."""
    with taped(seed, how) as tape, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rng = generator(seed)
        before = repr(rng.bit_generator.state)
        try:
            output = call(private_copy(data), rng)
        except (Interrupted, DpAuditError):
            raise
        except BaseException as error:
            output = error
        if repr(rng.bit_generator.state) != before:
            tape.miss("bits of the generator that are taken without its calls")
    return apart(output), tape


def replayed(call: Call, first: Any, second: Any, seed: int) -> Replays:
    """All replays of both datasets, in a random order of sides, so that what changes with time looks like no side."""
    hows: list[How] = [*["plain"] * PLAIN, *ENDS]  # type: ignore[list-item]
    work = [(place, side) for place in range(len(hows)) for side in (0, 1)]
    order = GENUINE(np.random.SFC64([seed, 1])).permutation(len(work)).tolist()
    rows: dict[tuple[int, int], tuple[Apart, Tape]] = {}
    with patched():
        run_once(call, first, 0)  # which may import what draws
    with patched():
        for place, side in [work[each] for each in order]:
            rows[place, side] = run_once(call, (first, second)[side], 1_000 * seed + place, hows[place])
        again = [run_once(call, (first, second)[side], 1_000 * seed) for side in (0, 1)]
    found = Replays(tuple([rows[place, side] for place in range(len(hows))] for side in (0, 1)), runs=len(work) + 3)  # type: ignore[arg-type]
    for side, (output, tape) in enumerate(again):
        before, drawn = found.sides[side][0]
        if _different(output, before) or len(tape.draws) != len(drawn.draws):
            found.unseen[ELSEWHERE] = None
    for _, tape in (*found.sides[0], *found.sides[1]):
        found.unseen |= tape.unseen
    found.unseen |= dict.fromkeys(_constant(found.sides[0]) + _constant(found.sides[1]))
    return found


def _different(one: Apart, other: Apart) -> bool:
    same = one.facts == other.facts and one.numbers.keys() == other.numbers.keys()
    return not same or any(not np.array_equal(one.numbers[key], other.numbers[key], True) for key in one.numbers)


def _constant(rows: Rows) -> list[str]:
    """Draws of a law without end that are the same in every replay: their generator does not depend on ours."""
    plain = [tape.draws for _, tape in rows[:PLAIN]]
    texts = [
        f"a generator that the mechanism seeds itself ({each.place})"
        for place, each in enumerate(plain[0])
        if each.law in ("laplace", "normal", "uniform", "exponential", "gumbel", "logistic")
        and each.values.size
        and np.all(np.asarray(each.scale) != 0.0)
        and all(len(draws) > place and np.array_equal(draws[place].values, each.values) for draws in plain[1:])
    ]
    return texts


# --- what they tell ----------------------------------------------------------------------------------------------


def analysed(
    call: Call, first: Any, second: Any, *, claim: Claim | None, distance: int = 1, seed: int = 0
) -> NoiseRecord:
    """What recorded noise tells of a mechanism on two datasets, from about 47 runs of `call(data, rng)` here.

    `claim` is the promise for one step, None where there is none; the name of the mechanism and the pair stay empty.
    """
    replays = replayed(call, first, second, seed)
    allowed = None if claim is None else claim.at_distance(distance)
    facts = _facts(replays)
    with np.errstate(all="ignore"):
        numbers = _Numbers(replays, allowed)
    leads = [*facts.leads, *numbers.leads] if not replays.unseen else []
    value = None if allowed is None else allowed.value
    if allowed is not None and allowed.max_probability(RARE) > 0.5:
        leads = [each for each in leads if each.kind in ("shift", "law")]
    known = not numbers.unknown and not facts.varies and not replays.unseen
    total = math.inf if any(each.kind not in ("shift", "law") for each in leads) else numbers.loss
    return NoiseRecord(
        mechanism="",
        pair={},
        claim=None if claim is None else claim.to_dict(),
        seed=seed,
        runs=replays.runs,
        draws=drawn(replays),
        parts=came(replays),
        leads=tuple(leads),
        differs=tuple(dict.fromkeys([*facts.varies, *numbers.unknown]))[:MOST_SHOWN],
        unseen=tuple(sorted(replays.unseen)),
        allowed=value,
        parameter=parameter_of(allowed, numbers.moved),
        loss=total if known else None,
        at_most=numbers.at_most,
    )


def glanced(call: Call, first: Any, second: Any, *, seed: int = 0) -> float:
    """How far two runs under equal draws are apart, in units of the noise of the widest draw; infinite where a number
    does not move while no draw was made, or lengths, keys, types or ends of runs differ.

    Two runs, in `patched`: to rank pairs, and no lead.
    """
    (one, tape), (other, _) = (run_once(call, data, 1_000 * seed) for data in (first, second))
    if one.facts != other.facts or one.numbers.keys() != other.numbers.keys():
        return math.inf
    scales = [float(np.max(np.abs(each.scale), initial=0.0)) for each in tape.draws if each.law and each.values.size]
    wide = max([scale for scale in scales if math.isfinite(scale)], default=0.0)
    apart_by = 0.0
    for key, numbers in one.numbers.items():
        if numbers.shape != other.numbers[key].shape:
            return math.inf
        gap = np.abs(numbers - other.numbers[key])
        same = (numbers == other.numbers[key]) | (np.isnan(numbers) & np.isnan(other.numbers[key]))
        apart_by += float(np.sum(np.where(same, 0.0, np.where(np.isfinite(gap), gap, math.inf))))
    return 0.0 if apart_by == 0.0 else math.inf if wide == 0.0 else apart_by / wide


@dataclass(slots=True)
class _Facts:
    leads: list[Lead] = field(default_factory=list)
    varies: list[str] = field(default_factory=list)


def _facts(replays: Replays) -> _Facts:
    """Types, keys, lengths, text and exceptions: a lead where each dataset has its own in every replay."""
    found = _Facts()
    raised = [{output.facts[WHOLE] for output, _ in rows if output.raised} for rows in replays.sides]
    alive = [[output for output, _ in rows if not output.raised] for rows in replays.sides]
    if bool(alive[0]) != bool(alive[1]):
        texts = [_one(raised[side]) if not alive[side] else "a value" for side in (0, 1)]
        both = [side for side in (0, 1) if alive[side] and len(alive[side]) < len(replays.sides[side])]
        if not both:
            found.leads.append(Lead("raised", (WHOLE,), *texts))
        else:
            found.varies.append(WHOLE)
        return found
    if not alive[0]:
        if raised[0] != raised[1] and len(raised[0]) == len(raised[1]) == 1:
            found.leads.append(Lead("raised", (WHOLE,), *(_one(each) for each in raised)))
        return found
    if any(len(alive[side]) < len(replays.sides[side]) for side in (0, 1)):
        found.varies += [WHOLE] if len(alive[0]) != len(alive[1]) else []
    keys = dict.fromkeys(key for rows in alive for output in rows for key in output.facts)
    apart_: list[tuple[str, str, str]] = []
    for key in keys:
        values = [{output.facts.get(key, "absent") for output in rows} for rows in alive]
        if values[0] == values[1] and len(values[0]) == 1:
            continue
        if len(values[0]) == len(values[1]) == 1:
            apart_.append((key, _one(values[0]), _one(values[1])))
        else:
            plain = [[output.facts.get(key) for output, _ in rows[:PLAIN]] for rows in replays.sides]
            found.varies += [key] if plain[0] != plain[1] else []
    if apart_:
        found.leads.append(Lead("untouched", tuple(key for key, *_ in apart_[:MOST_SHOWN]), *apart_[0][1:]))
    return found


def _one(values: Iterable[str]) -> str:
    return shown(min(values, default=""))


@dataclass(slots=True)
class _Numbers:
    """The numbers of the outputs: their noise on both datasets, and the leads that follow."""

    replays: Replays
    claim: Claim | None
    leads: list[Lead] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    loss: float | None = None
    at_most: bool = False

    def __post_init__(self) -> None:
        sides = self.replays.sides
        ends = self.replays.ends
        fitters = [Fitter(features_of([tape.draws for _, tape in rows[:PLAIN]]), ends) for rows in sides]
        fitters = [
            Fitter(features_of([tape.draws for _, tape in rows]) or fitters[side].features, ends)
            for side, rows in enumerate(sides)
        ]
        keys = dict.fromkeys(key for rows in sides for output, _ in rows for key in output.numbers)
        fixed: list[tuple[str, str, str]] = []
        noises: dict[str, list[Noise]] = {}
        ratios: list[tuple[str, tuple[Noise, Noise], tuple[Noise, Noise]]] = []
        free: list[tuple[str, Reals, Reals]] = []
        for key in keys:
            blocks = [_block(rows, key) for rows in sides]
            if blocks[0] is None or blocks[1] is None or blocks[0][0].shape != blocks[1][0].shape:
                continue  # which lengths and keys tell
            rough = max(output.roughness for rows in sides for output, _ in rows)
            size = blocks[0][0].shape[1]
            fits = [fitter.fit(*block, rough) for fitter, block in zip(fitters, blocks, strict=True)]
            for place in range(size):
                name = named(key, place, size)
                y = [block[0][:, place][block[1][:, place]] for block in blocks]
                steady = [len(each) > 0 and _steady(each) for each in y]
                if all(steady):
                    if not _equal(y[0][0], y[1][0]):
                        fixed.append((name, shown(float(y[0][0])), shown(float(y[1][0]))))
                    continue
                one, other = fits[0][place], fits[1][place]
                if one is not None and other is not None:
                    noises[name] = [one, other]
                elif any(steady) and (one or other):
                    self._exact(name, y, steady, one or other)
                else:
                    free.append((name, *(block[0][:, place] for block in blocks)))
        for name, a, b in free:
            pair = [fitter.ratio(y, 2.0**-52) for fitter, y in zip(fitters, (a, b), strict=True)]
            if pair[0] is not None and pair[1] is not None:
                ratios.append((name, pair[0], pair[1]))
            elif (sums := self._sum(fitters, a, b)) is not None:
                noises[name] = sums
            else:
                self.unknown += [name] if not np.array_equal(a, b, equal_nan=True) else [f"{name} "]
        if fixed:
            self.leads.append(Lead("untouched", tuple(name for name, *_ in fixed[:MOST_SHOWN]), *fixed[0][1:]))
        for name, *both in ratios:
            for place, part in enumerate(("numerator", "denominator")):
                noises[f"the {part} of {name}"] = [both[0][place], both[1][place]]
        self._judge(self._apart(noises))
        self.unknown = [name for name in self.unknown if not name.endswith(" ")]

    def _exact(self, name: str, y: Sequence[Reals], steady: Sequence[bool], noise: Noise | None) -> None:
        """One dataset has noise there and the other has none."""
        assert noise is not None
        if noise.at_most:
            self.unknown.append(name)
            return
        texts = [shown(float(each[0])) if fixed else "noise" for each, fixed in zip(y, steady, strict=True)]
        self.leads.append(Lead("law", (name,), *texts, noise.place, noise.call, noise.law, None, math.inf))

    def _sum(self, fitters: Sequence[Fitter], *both: Reals) -> list[Noise] | None:
        """A sum of several normal draws is one; of others, the widest alone is known to be noise."""
        found: list[Noise] = []
        for fitter, y in zip(fitters, both, strict=True):
            used = fitter.sums(y)
            if used is None:
                return None
            terms = [(c, of, at) for c, of, at in used.values()]
            z = sum(c * of.values[:, at] for c, of, at in terms)
            f = float(np.median((y - z)[:PLAIN]))
            loc = f + sum(c * float(of.loc[at]) for c, of, at in terms)
            normal = all(of.law == "normal" for _, of, _ in terms)
            sizes = [abs(c) * float(of.scale[at]) for c, of, at in terms]
            widest = int(np.argmax(sizes))
            c, of, _ = terms[widest]
            scale = math.hypot(*sizes) if normal else sizes[widest]
            elements = tuple(of.elements[at][0] for _, of, at in terms)
            error = 1e-9 * float(np.max(np.abs(y[:PLAIN])) + sum(sizes))
            found.append(Noise(of.law, loc, scale, error, of.more, elements, c, of.place, of.call, at_most=not normal))
        return found

    def _apart(self, noises: dict[str, list[Noise]]) -> dict[str, list[Noise]]:
        """The numbers whose noise is their own: of several that share a draw all but one go."""
        owners: dict[Any, list[str]] = defaultdict(list)
        for name, both in noises.items():
            for side, noise in enumerate(both):
                for element in noise.elements:
                    owners[side, element].append(name)
        result = dict(noises)
        for shared in [names for names in owners.values() if len(names) > 1]:
            first, *others = [name for name in dict.fromkeys(shared) if name in result] or [""]
            for name in others:
                a, b = result[first], result[name]
                del result[name]
                if any(len(each.elements) > 1 or each.at_most for each in (*a, *b)) or any(
                    a[side].elements != b[side].elements for side in (0, 1)
                ):
                    self.unknown.append(name)
                    continue
                rests = [b[side].location - b[side].slope / a[side].slope * a[side].location for side in (0, 1)]
                same = math.isclose(b[0].slope / a[0].slope, b[1].slope / a[1].slope, rel_tol=1e-9)
                error = sum(each.error for each in (*a, *b)) * (1.0 + abs(b[0].slope / a[0].slope))
                if not same or abs(rests[0] - rests[1]) > 2.0 * error:
                    texts = (shown(rest) for rest in rests)
                    self.leads.append(
                        Lead("reused", (first, name), *texts, b[0].place, b[0].call, b[0].law, None, math.inf)
                    )
        return result

    def _judge(self, noises: dict[str, list[Noise]]) -> None:
        """The loss of all numbers together, and a lead where it is above the claim."""
        moved, least = {}, []
        for name, (one, other) in noises.items():
            scales = one.scale, other.scale
            close = abs(scales[0] - scales[1]) <= max(1e-9, one.blur + other.blur) * max(scales)
            scale = (max(scales),) * 2 if close else scales
            laws = {one.law, other.law}
            more = one.more, other.more
            if len(laws) > 1:
                self.unknown.append(name)
                continue
            gap, error = abs(one.location - other.location), one.error + other.error
            moved[name] = Moved(
                one.law, (one.location, other.location) if gap > error else (one.location,) * 2, scale, more
            )
            if moved[name].law in ("integers", CHOICE, "binomial") and one.slope != other.slope:
                del moved[name]
                self.unknown.append(name)
                continue
            sign = math.copysign(max(gap - error, 0.0), other.location - one.location)
            least.append(replace(moved[name], location=(one.location, one.location + sign)))
        self.moved = list(moved.values())
        self.at_most = any(noise.at_most for name in moved for noise in noises[name])
        self.loss = loss(self.claim, self.moved)
        sure = loss(self.claim, least)
        if not self.moved or self.loss is None or sure is None or self.claim is None:
            return
        allowed = self.claim.value
        if allowed is None:
            allowed = self.claim.epsilon_at(self.claim.delta)
        if sure <= allowed * (1.0 + SLACK) + 1e-12:
            return
        name = max(
            moved,
            key=lambda each: (not moved[each].same, moved[each].shift, moved[each].scale[0] != moved[each].scale[1]),
        )
        worst, noise = moved[name], noises[name][0]
        names = [name, *(each for each in moved if each != name and not moved[each].same)]
        same = worst.scale[0] == worst.scale[1] and repr(worst.more[0]) == repr(worst.more[1])
        texts = [
            f"{shown(location)} + {law}, scale {shown(scale)}"
            for location, scale, law in zip(worst.location, worst.scale, (worst.law,) * 2, strict=True)
        ]
        told = worst.shift if same else None
        self.leads.append(
            Lead(
                "shift" if same else "law",
                tuple(names[:MOST_SHOWN]),
                *texts,
                noise.place,
                noise.call,
                noise.law,
                told,
                self.loss,
                self.at_most,
            )
        )


def _block(rows: Rows, key: str) -> tuple[Reals, Bools] | None:
    """The numbers of a part in all replays, and where they were there; None where their count changes."""
    sizes = {output.numbers[key].size for output, _ in rows if key in output.numbers}
    if len(sizes) != 1:
        return None
    (size,) = sizes
    nothing = np.full(size, math.nan)
    numbers = np.stack([output.numbers.get(key, nothing) for output, _ in rows])
    there = np.array([key in output.numbers for output, _ in rows])
    return numbers, np.repeat(there[:, None], size, axis=1)


def _steady(y: Reals) -> bool:
    return bool(np.all((y == y[0]) | (np.isnan(y) & np.isnan(y[0]))))


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


# --- both replays side by side -----------------------------------------------------------------------------------


def drawn(replays: Replays) -> tuple[Drawn, ...]:
    """The calls that drew in the first replay, on both datasets, in their order."""
    sides = [rows[0][1].draws for rows in replays.sides]
    places = dict.fromkeys((each.place, each.call) for draws in sides for each in draws)
    orders = [[(each.place, each.call) for each in draws] for draws in sides]
    rows = []
    for key in places:
        both = [[each for each in draws if (each.place, each.call) == key] for draws in sides]
        differs: list[Difference] = []
        if len(both[0]) != len(both[1]):
            differs.append("number")
        for one, other in zip(*both, strict=False):
            differs += ["law"] if one.law != other.law or repr(one.more) != repr(other.more) else []
            differs += ["shape"] if one.shape != other.shape else []
            differs += ["scale"] if one.shape == other.shape and not np.array_equal(one.scale, other.scale) else []
        if Counter(orders[0]) == Counter(orders[1]) and orders[0] != orders[1]:
            differs.append("order")
        rows.append(Drawn(*key, *(_drawn(each) for each in both), tuple(dict.fromkeys(differs))))
    return tuple(sorted(rows, key=lambda each: not each.differs)[:MOST_SHOWN])


def _drawn(draws: Sequence[Draw]) -> str:
    if not draws:
        return ""
    first = draws[0]
    scale, law = np.asarray(first.scale), first.law or "unknown law"
    with suppress(TypeError, ValueError):
        if first.law not in ("", ORDER, CHOICE, "integers"):
            law += f", scale {shown(float(scale.flat[0]))}" if scale.size else ""
    values = ", ".join(shown(float(each)) for each in first.values[:FIRST_VALUES])
    dots = ", ..." if first.values.size > FIRST_VALUES else ""
    times = f"{len(draws)} times " if len(draws) > 1 else ""
    size = f" ({first.values.size} values)" if first.values.size > 1 else ""
    return f"{times}{law}{size}: {values}{dots}"


def came(replays: Replays) -> tuple[Part, ...]:
    """What came out in the first replay on both datasets, what differs first."""
    one, other = (rows[0][0] for rows in replays.sides)
    rows: list[tuple[bool, Part]] = []
    for key in dict.fromkeys([*one.numbers, *other.numbers]):
        both = [each.numbers.get(key) for each in (one, other)]
        texts = [
            "absent"
            if each is None
            else ", ".join(shown(float(v)) for v in each[:FIRST_VALUES]) + (", ..." if each.size > FIRST_VALUES else "")
            for each in both
        ]
        same = both[0] is not None and both[1] is not None and np.array_equal(both[0], both[1], equal_nan=True)
        rows.append((same, Part(key, *texts)))
    for key in dict.fromkeys([*one.facts, *other.facts]):
        texts = [shown(each.facts.get(key, "absent")) for each in (one, other)]
        if texts[0] != texts[1] or key == WHOLE:
            rows.append((texts[0] == texts[1], Part(key, *texts)))
    return tuple(part for _, part in sorted(rows, key=lambda row: row[0])[:MOST_SHOWN])
