"""The exact law of a mechanism on one dataset: a run for every path of its choices, and a check that they hold."""

import copy
import math
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.errors import DpAuditError, Interrupted, InvalidSpec, UnsoundAudit
from dpaudit.verify.deadline import left_s
from dpaudit.verify.replay.canonical import Form, canonical, raised
from dpaudit.verify.replay.choices import DIFFERS, Again, Choices, Draws, PastRun

Call = Callable[[Any, Any], Any]
Law = Mapping[Hashable, Fraction]
Beside = Callable[[Law, Law], Iterable[Sequence[Law]]]

KEPT, KEPT_DRAWS = 512, 40_000  # runs that are kept to be made again, and their draws, till half as many are
LEAST_AGAIN = 64  # runs that are made again, the same ones more than once where there are fewer
FAR = 30.0  # logarithm of how unlikely the frequency of an output is that shows another law
MOST_TEXT = 200  # characters of another's error in one of ours
ROOM = "dpaudit.verify.replay"
STAND_INS = ["'Choices'", "'Again'", "Choices.", "Again.", "Draws."]
for _name in ("Uniform", "Unbounded"):
    STAND_INS += [f"'{_name}'", f"type {_name}", f"from {_name}"]
ATOMS = (int, float, bool, str, bytes, complex, type(None), Fraction, np.number)


class Unfollowed:
    """The output of runs on one dataset that were not followed to their end: it may be any."""


@dataclass(frozen=True, slots=True)
class Walked:
    """The law of the output on one dataset, the number of paths behind it, and runs that are to be made again."""

    law: Law
    paths: int
    records: tuple[PastRun, ...]


def walk_paths(call: Call, data: Any, choices: Choices, left: int, *, sure: bool = True) -> Walked:
    """Runs `call(data, choices)` for every path of its choices, at most `left` of them; each run gets its own data.

    To be `sure`, runs with draws of random() that are not kept to be made again are made again at once.
    """
    fresh = copier(data)
    totals: dict[int, dict[Hashable, int]] = {}
    records: list[PastRun] = []
    paths, stride, draws, lost = 0, 1, 0, Unfollowed()
    while True:
        left_s()
        if paths >= left:
            done = float(choices.covered())
            share = f"{done:.2g} of one dataset's choices" if done > 0.0 else "hardly any of one dataset's choices"
            raise InvalidSpec(
                f"more paths than most_paths allows: {paths:,} of them cover {share}; raise most_paths, or draw fewer "
                "values, or from fewer of them"
            )
        choices.begin()
        output = outcome(call, fresh(), choices.face, choices)
        choices.end()
        output = lost if choices.is_lost else output
        numerator, denominator = choices.mass()
        total = totals.setdefault(denominator, {})
        total[output] = total.get(output, 0) + numerator
        if paths % stride == 0 and not choices.is_lost:
            records.append(choices.record(output))
            draws += len(records[-1].picked)
            stride = 2 ** max(len(records) // KEPT, draws // KEPT_DRAWS)
        elif sure and choices.uniforms and not choices.is_lost:
            _make_again(call, fresh(), choices.record(output), last=paths % 2 == 1)
        paths += 1
        if not choices.advance():
            return Walked(_law(totals), paths, tuple(records))


def confirm(call: Call, data: Any, records: tuple[PastRun, ...]) -> None:
    """Makes past runs again, the last one first; raises `UnsoundAudit` where one of them goes differently."""
    fresh = copier(data)
    rounds = -(-LEAST_AGAIN // max(1, len(records)))
    for turn in range(rounds):
        for place, past in enumerate(reversed(records)):
            _make_again(call, fresh(), past, last=(turn + place) % 2 == 1)


def _make_again(call: Call, data: Any, past: PastRun, *, last: bool) -> None:
    left_s()
    again = Again(past, last=last)
    output = outcome(call, data, again.face, again)
    again.end()
    if output != past.output:
        raise UnsoundAudit(DIFFERS)


def confirm_with(
    rng: Any, call: Call, data: Any, law: Law, runs: int, beside: Beside = lambda law, seen: [(law, seen)]
) -> None:
    """Makes runs with a true generator; raises `UnsoundAudit` where their outputs are not those of the law.

    `beside` puts a law and what was seen side by side. By Chernoff's bound a run of such a frequency has a probability
    below 1e-12.
    """
    fresh = copier(data)
    counts = Counter[Hashable]()
    for _ in range(runs):
        left_s()
        counts[outcome(call, fresh(), rng)] += 1
    for known, seen in beside(law, {output: Fraction(count, runs) for output, count in counts.items()}):
        if not seen.keys() <= known.keys():
            raise UnsoundAudit(DIFFERS)
        for output, p in known.items():
            share = float(seen.get(output, 0))
            if runs * (_term(share, p) + _term(1.0 - share, 1 - p)) > FAR:
                raise UnsoundAudit(DIFFERS)


def _term(share: float, p: Fraction) -> float:
    return share * math.log(share / max(float(p), 1e-300)) if share else 0.0


def outcome(call: Call, data: Any, rng: Any, source: Draws | None = None, form: Form = canonical) -> Any:
    """The canonical form of one run's output, or another; what the mechanism raises is an output too.

    `source` is what stands in for `rng`, None where that is a generator itself.
    """
    try:
        output = call(data, rng)
    except (DpAuditError, Interrupted, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        if source is not None and source.is_lost:
            return None
        if source is not None and source.error is None and _of_ours(error):
            text = " ".join(str(error).split())[:MOST_TEXT]
            raise InvalidSpec(f"the stand-in for rng cannot do what the mechanism asks of it: {text}") from None
        return raised(error)
    return form(output)


def _of_ours(error: BaseException) -> bool:
    """Whether an error comes from what stands in for the generator or its numbers, and would not come from those."""
    text, trace, module = str(error), error.__traceback__, ""
    if ROOM in text or isinstance(error, TypeError | AttributeError) and any(name in text for name in STAND_INS):
        return True
    while trace is not None:
        module, trace = str(trace.tb_frame.f_globals.get("__name__", "")), trace.tb_next
    return module.startswith(ROOM) and module != __name__


def copier(data: Any) -> Callable[[], Any]:
    """Makes a copy of the dataset for each run, so that a run that spoils its data spoils no other.

    >>> copy_of = copier([1, 2])
    >>> copy_of() == [1, 2], copy_of() is copy_of()
    (True, False)
    """
    if _is_fixed(data):
        return lambda: data
    if type(data) in (list, dict, set) and all(map(_is_fixed, data.values() if type(data) is dict else data)):
        original = data.copy()
        return lambda: original.copy()
    if type(data) is np.ndarray and data.dtype != object:
        array = data.copy()
        return lambda: array.copy()
    copied: dict[int, Any] = {}
    whole = copy.deepcopy(data, copied)
    own = getattr(object, "__eq__", None)
    if any(getattr(type(each), "__eq__", None) is own for each in copied.get(id(copied), ())):  # it has a copy
        raise InvalidSpec("the data hold objects that equal no copy of them: give them __eq__, or use values")
    return lambda: copy.deepcopy(whole)


def _is_fixed(data: Any) -> bool:
    return isinstance(data, ATOMS) or type(data) in (tuple, frozenset) and all(map(_is_fixed, data))


def _law(totals: Mapping[int, Mapping[Hashable, int]]) -> Law:
    law: dict[Hashable, Fraction] = {}
    for denominator, numerators in totals.items():
        for output, numerator in numerators.items():
            share = Fraction(numerator, denominator)
            law[output] = law[output] + share if output in law else share
    if sum(law.values()) != 1:
        raise UnsoundAudit("the probabilities of all paths do not add up to 1: a run made choices of another run")
    return law
