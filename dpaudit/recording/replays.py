"""Replays of a mechanism on two datasets under equal draws, and what they tell: leads, and what proves nothing.

Both datasets meet the same draws, replay by replay, in a random order. In some replays every draw lies at an end of its
law: what does not change even then is touched by no draw. This runs where mechanisms run.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools
from dpaudit.claims import Claim
from dpaudit.data.data import private_copy
from dpaudit.errors import DpAuditError, Interrupted
from dpaudit.recording.leads import findings
from dpaudit.recording.losses import parameter_of
from dpaudit.recording.outputs import WHOLE, Apart, apart, shown
from dpaudit.recording.patching import patched
from dpaudit.recording.sources import CHOICE, GENUINE, ORDER, Draw, How, Tape, generator, taped
from dpaudit.results.recorded import Difference, Drawn, NoiseRecord, Part

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
    one, other = ([rows[place, side] for place in range(len(hows))] for side in (0, 1))
    found = Replays((one, other), runs=len(work) + 3)
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
    one, other = ([(output, tape.draws) for output, tape in rows] for rows in replays.sides)
    found = findings((one, other), replays.ends, allowed)
    leads = [] if replays.unseen else found.leads
    if allowed is not None and allowed.max_probability(RARE) > 0.5:
        leads = [each for each in leads if each.kind in ("shift", "law")]
    total = math.inf if any(each.kind not in ("shift", "law") for each in leads) else found.loss
    return NoiseRecord(
        mechanism="",
        pair={},
        claim=None if claim is None else claim.to_dict(),
        seed=seed,
        runs=replays.runs,
        draws=drawn(replays),
        parts=came(replays),
        leads=tuple(leads),
        differs=tuple(dict.fromkeys(found.differs))[:MOST_SHOWN],
        unseen=tuple(sorted(replays.unseen)),
        allowed=None if allowed is None else allowed.value,
        parameter=parameter_of(allowed, found.moved),
        loss=None if found.differs or replays.unseen else total,
        at_most=found.at_most,
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
        rows.append(Drawn(*key, _drawn(both[0]), _drawn(both[1]), tuple(dict.fromkeys(differs))))
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
