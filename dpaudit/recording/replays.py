"""Replays of a mechanism on two datasets under equal draws, and the record of what they tell.

Both datasets meet the same draws, replay by replay, in a random order. In some replays every draw lies at an end of its
law: what does not change even then is touched by no draw. This runs where mechanisms run.
"""

import inspect
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.claims import Claim
from dpaudit.data.data import private_copy
from dpaudit.errors import DpAuditError, Interrupted, UnsoundAudit
from dpaudit.events.features import spell
from dpaudit.recording.laws import CHOICE, ORDER
from dpaudit.recording.leads import MOVES, ReplayedOutputs, Sides, findings, shown
from dpaudit.recording.losses import parameter_of
from dpaudit.recording.patching import patched
from dpaudit.recording.sources import GENUINE, How, NoiseDraw, Tape, generator, own_seed, taped
from dpaudit.results.recorded import Difference, Lead, NoiseCall, NoiseRecord, OutputPart
from dpaudit.running.guard import failure

HOWS: list[How] = ["plain" for _ in range(15)]
HOWS += ["low", "high", "mixed", "mixed", "mixed", "mixed"]
TWICE: tuple[tuple[int, How], ...] = ((0, "plain"), (1, "mixed"))
ENDS = np.array([how != "plain" for how in HOWS])
UNLIKELY, MOST_MORE = 1e-9, 250  # of a false lead by draws without an end, and runs that are made for it
RARE = 1e-290  # what is likelier than this at an end of every law does happen in these replays
MOST_SHOWN, FIRST_VALUES = 12, 3  # lines of a table; values of a draw in words
ELSEWHERE = "randomness from elsewhere: two runs with the same draws differ on the same data"
PLAIN = "return the plain values that are released"
REMEMBERS = "what it keeps from run to run: on the same data its first draws differ"

Call = Callable[[Any, Any], Any]


@dataclass(slots=True, eq=False)
class Replays:
    """The replays: what came out of all, those of each dataset by their places, their tapes, and how many runs it took.

    `unseen` are the sources of noise that are not recorded, in words.
    """

    table: ReplayedOutputs
    sides: Sides
    tapes: tuple[list[Tape], list[Tape]]
    unseen: list[str]
    runs: int


def run_once(call: Call, data: Any, seed: int, how: How = "plain") -> tuple[Any, Tape]:
    """One run on a copy of the data, where sources are patched; what it raises is its output."""
    with taped(seed, how) as tape, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rng = generator(seed)
        before = rng.bit_generator.state["state"]["state"].tobytes()
        try:
            output = call(private_copy(data), rng)
            if inspect.isawaitable(output) or inspect.isgenerator(output) or inspect.isasyncgen(output):
                kind = type(output).__name__
                raise UnsoundAudit(f"an output is a {kind}, of which nothing is known before it is asked for: {PLAIN}")
        except (Interrupted, DpAuditError):
            raise
        except BaseException as error:
            output = failure(error)
        if rng.bit_generator.state["state"]["state"].tobytes() != before and not tape.full:
            tape.miss("bits of the generator that are taken without its calls")
    return output, tape


def replayed(call: Call, first: Any, second: Any, seed: int) -> Replays:
    """All replays of both datasets, in a random order of sides, so that what changes with time looks like no side.

    At the end the first of each is made again: what is another then was drawn where nothing is recorded.
    """
    count = len(HOWS)
    order = GENUINE(np.random.SFC64([seed, 1])).permutation(2 * count).tolist()
    with patched():
        run_once(call, first, _seed(seed, len(HOWS)))  # which may import what draws
    with patched():
        rows = {
            each: run_once(call, (first, second)[each >= count], _seed(seed, each % count), HOWS[each % count])
            for each in order
        }
        again = [run_once(call, data, _seed(seed, 0)) for data in (first, second)]
    made = [rows[each] for each in range(2 * count)] + again
    table = ReplayedOutputs.of([output for output, _ in made])
    sides = np.arange(count), np.arange(count, 2 * count)
    tapes = [tape for _, tape in made[:count]], [tape for _, tape in made[count : 2 * count]]
    unseen = {words for _, tape in made for words in tape.unseen}
    for at, side in enumerate(sides):
        unseen |= set() if (table.words[:, side[0]] == table.words[:, 2 * count + at]).all() else {ELSEWHERE}
        unseen |= _stateful([tape.draws[:1] for tape in tapes[at]])
        unseen |= _constant([tape.draws for tape in tapes[at][: count - int(ENDS.sum())]])
    return Replays(table, sides, tapes, sorted(unseen), len(made) + 1)


def _seed(seed: int, replay: int) -> int:
    return 1_000 * seed + replay


def _stateful(firsts: Sequence[Sequence[NoiseDraw]]) -> set[str]:
    """Whether the first draws on one dataset are not all by one call and law: the data alone decide those."""
    told = {repr([(each.key, each.call, each.law, each.loc, each.scale) for each in draws]) for draws in firsts}
    return {REMEMBERS} if len(told) > 1 else set()


def _constant(plain: Sequence[Sequence[NoiseDraw]]) -> set[str]:
    """Draws of a continuous law that are the same in every replay: their generator does not depend on ours."""
    laws = ("laplace", "normal", "uniform", "exponential", "gumbel", "logistic")
    return {
        own_seed(each.place)
        for place, each in enumerate(plain[0])
        if each.law in laws and each.values.size and np.all(np.asarray(each.scale) != 0.0)
        if all(len(draws) > place and np.array_equal(draws[place].values, each.values) for draws in plain[1:])
    }


def analysed(
    call: Call, first: Any, second: Any, *, claim: Claim | None, distance: int = 1, seed: int = 0
) -> NoiseRecord:
    """What recorded noise tells of a mechanism on two datasets, from 45 runs of `call(data, rng)` in this process.

    `claim` is the promise for one step, None where there is none; the name of the mechanism and the pair stay empty.
    """
    replays = replayed(call, first, second, seed)
    allowed = None if claim is None else claim.at_distance(distance)
    one, other = ([tape.draws for tape in tapes] for tapes in replays.tapes)
    found = findings(replays.table, replays.sides, (one, other), ENDS, allowed)
    leads, more = ([] if replays.unseen else found.leads), 0
    if found.loose and any(map(constant, leads)):
        more = chances(allowed)
        further: list[tuple[int, int, How]] = [(seed, len(HOWS) + place, "plain") for place in range(more)]
        if not holds(call, (first, second), leads, further):
            found.differs += [part for each in leads if constant(each) for part in each.parts]
            leads = [each for each in leads if not constant(each)]
    if allowed is not None and allowed.max_probability(RARE) > 0.5:
        leads = [each for each in leads if not constant(each)]
    total = math.inf if any(each.loss == math.inf or constant(each) for each in leads) else found.loss
    return NoiseRecord(
        mechanism="",
        pair={},
        claim=None if claim is None else claim.to_dict(),
        seed=seed,
        runs=replays.runs + 2 * more,
        draws=drawn(one[0], other[0]),
        parts=came(replays),
        leads=tuple(leads),
        differs=tuple(dict.fromkeys(found.differs))[:MOST_SHOWN],
        unseen=tuple(replays.unseen),
        allowed=None if allowed is None else allowed.value,
        parameter=parameter_of(allowed, found.moved),
        loss=None if found.differs or replays.unseen else total,
        at_most=found.at_most,
    )


def confirmed(call: Call, first: Any, second: Any, record: NoiseRecord, *, seed: int = 0) -> NoiseRecord:
    """The record, without leads where what no draw touched is something else in this process, which must be a new one.

    What a mechanism keeps from run to run looks like a number that no draw touches, but is not always the same number.
    Two runs of either dataset, by draws of another seed.
    """
    work = [(seed, place, how) for place, how in TWICE]
    record = replace(record, runs=record.runs + 2 * len(work))
    if holds(call, (first, second), record.leads, work):
        return record
    return replace(record, leads=(), loss=None, unseen=tuple(sorted({*record.unseen, REMEMBERS})))


def holds(call: Call, data: tuple[Any, Any], leads: Sequence[Lead], work: Sequence[tuple[int, int, How]]) -> bool:
    """Whether what leads say is the same in every run is so in some more of either dataset; False where none are."""
    if not work:
        return False
    with patched():
        made = [run_once(call, each, _seed(seed, place), how)[0] for each in data for seed, place, how in work]
    table = ReplayedOutputs.of(made)
    places = {spell(path): place for place, path in enumerate(table.paths)}
    return all(
        lead.parts[0] in places and table.text(places[lead.parts[0]], row) == text
        for lead in leads
        for row, text in enumerate([*[lead.first] * len(work), *[lead.second] * len(work)])
        if constant(lead) and text != MOVES
    )


def chances(claim: Claim | None) -> int:
    """Runs of either dataset after which, by a chance of `UNLIKELY`, each has always given what the other never has.

    None where that takes more than `MOST_MORE`. With P(a) = p on one, the other gives another than a with at most
    1 - q, where q is the least that the claim allows.
    """
    if claim is None:
        return MOST_MORE // 2
    q = np.linspace(0.0, 1.0, 1_001)
    p = np.array([claim.max_probability(float(each)) for each in q])
    often = float(np.max(np.minimum(p, 1.0) * (1.0 - q)))
    runs = math.ceil(math.log(UNLIKELY) / math.log(often)) if 0.0 < often < 1.0 else MOST_MORE + 1
    return runs if runs <= MOST_MORE else 0


def constant(lead: Lead) -> bool:
    """Whether a lead says that something is the same in every run."""
    return lead.kind in ("untouched", "raised") or MOVES in (lead.first, lead.second)


def glanced(call: Call, first: Any, second: Any, *, seed: int = 0) -> float:
    """How far two runs under equal draws are apart, in units of the widest draw; infinite where anything but numbers
    differs, or numbers do where no draw was made.

    Two runs, where sources are patched: to rank pairs, and no lead.
    """
    (one, tape), (other, _) = (run_once(call, data, _seed(seed, 0)) for data in (first, second))
    table = ReplayedOutputs.of([one, other])
    if (table.codes[:, 0] != table.codes[:, 1]).any():
        return math.inf
    scales = [float(np.max(np.abs(each.scale), initial=0.0)) for each in tape.draws if each.law and each.values.size]
    gap = np.where(table.codes[:, 0] == 0, table.values[:, 0] - table.values[:, 1], 0.0)
    apart = float(np.abs(gap[table.words[:, 0] != table.words[:, 1]]).sum())
    wide = max((scale for scale in scales if math.isfinite(scale)), default=0.0)
    return 0.0 if apart == 0.0 else math.inf if wide == 0.0 or math.isnan(apart) else apart / wide


# --- both replays side by side -----------------------------------------------------------------------------------


def drawn(first: Sequence[NoiseDraw], second: Sequence[NoiseDraw]) -> tuple[NoiseCall, ...]:
    """The calls that drew in one replay of both datasets, those that differ before the others."""
    orders = [[(each.place, each.call) for each in draws] for draws in (first, second)]
    swapped = Counter(orders[0]) == Counter(orders[1]) and orders[0] != orders[1]
    rows = []
    for key in dict.fromkeys([*orders[0], *orders[1]]):
        both = [[each for each in draws if (each.place, each.call) == key] for draws in (first, second)]
        pairs = list(zip(*both, strict=False))
        tests: dict[Difference, bool] = {
            "number": len(both[0]) != len(both[1]),
            "law": any(one.law != other.law or repr(one.more) != repr(other.more) for one, other in pairs),
            "shape": any(one.shape != other.shape for one, other in pairs),
            "scale": any(one.shape == other.shape and np.any(one.scale != other.scale) for one, other in pairs),
            "order": swapped,
        }
        differs = tuple(name for name, holds in tests.items() if holds)
        rows.append(NoiseCall(*key, _drawn(both[0]), _drawn(both[1]), differs))
    return tuple(sorted(rows, key=lambda each: not each.differs)[:MOST_SHOWN])


def _drawn(draws: Sequence[NoiseDraw]) -> str:
    if not draws:
        return ""
    first, size = draws[0], draws[0].values.size
    scale = ""
    with suppress(TypeError, ValueError, IndexError):
        scale = f", scale {shown(float(np.asarray(first.scale).flat[0]))}"
    law = first.law.replace("_", " ") + (scale if first.law not in (ORDER, CHOICE, "integers", "") else "")
    values = ", ".join(shown(float(each)) for each in first.values[:FIRST_VALUES]) + ", ..." * (size > FIRST_VALUES)
    times = f"{len(draws)} times " if len(draws) > 1 else ""
    return f"{times}{law or 'a law of its own'}{f' ({size} values)' if size > 1 else ''}: {values}"


def came(replays: Replays) -> tuple[OutputPart, ...]:
    """What came out of one replay of both datasets, what differs before the rest."""
    table, (one, other) = replays.table, (side[0] for side in replays.sides)
    same = table.words[:, one] == table.words[:, other]
    order = np.argsort(same, kind="stable")[:MOST_SHOWN].tolist()
    return tuple(OutputPart(spell(table.paths[at]), table.text(at, one), table.text(at, other)) for at in order)
