"""What an audit could have seen: its power, its ceiling, and the controls that back them."""

import math
from collections.abc import Callable, Sequence

from dpaudit.account.statements import at_delta, unseen
from dpaudit.base.numerals import counted, least_text, up
from dpaudit.base.quoting import line, standing
from dpaudit.base.validate import exact
from dpaudit.certify import Binned
from dpaudit.certify.power import MASSES, narrowest
from dpaudit.results.audited import POWER, Audited
from dpaudit.results.observations import Control, by_place, smallest_seen

KNOWN = "for an event that is known"  # the search has to find one
FOUND = "search counted in"
SIMPLE = "where one value, or one end of a range, shows it"  # the kinds of leak that the figure was measured for
OTHERS = "leaks that only several entries, or many values, show together are not in this figure"


@standing(line)
def could_see(result: Audited) -> tuple[str, ...]:
    """What an audit of this size could have certified, and the losses it would have refuted."""
    name = result.claim.parameter
    if result.evidence.runs == 0:
        return ("the bets refuted the claim before any run was counted for a fixed bound",)
    most, where = f"epsilon {up(result.ceiling, 2)}", at_delta(result.certificate.delta)
    if result.certificate.epsilon_lower is None:  # bins bound the claim's own parameter
        most, where = f"{name} {up(result.ceiling, 2)}", result.claim.where
    lines = [f"at most {most}{where}: with all hits on one side no more can be certified"]
    known, blind = _by_mass(result.least_caught)
    if result.searching_runs:
        found, missed = _by_mass(result.least_found)
        if found:
            lines.append(f"refuted with power {exact(POWER)}, {FOUND}, {SIMPLE}: a true {name} from here on")
            lines.append(f"by its probability: {found}")
            narrow = float(up(narrowest(result.searching_runs), 3))
            so = f"so from probability {exact(narrow)} on, where entries are 64 or fewer"
            lines.append(f"of a narrow range inside the numbers {so}, and not otherwise")
        if missed:
            lines.append(f"no power is stated for what search has to find at probability {_either(missed)}")
    if known:
        lines.append(f"{KNOWN}, refuted with power {exact(POWER)} by the certifying runs alone: {known}")
    if blind:
        lines.append(f"nothing is caught on an event of probability {_either(blind)}")
    if result.searching_runs:
        lines.append(OTHERS + ("" if result.controls else "; controls = 20 measures what is seen in this mechanism"))
    if unseen(result):
        lines.append(f"no power is claimed for what was left out: {unseen(result)}")
    return (*lines, *_of_witness(result), *_demanded(result))


def _by_mass(least: Callable[[float], float | None]) -> tuple[str, list[str]]:
    """The least parameters by the probability of the event, and the probabilities that have none."""
    found = {mass: least(mass) for mass in MASSES}
    told = [f"{least_text(value)} at {exact(mass)}" for mass, value in found.items() if value is not None]
    return "; ".join(told), [exact(mass) for mass, value in found.items() if value is None]


def _of_witness(result: Audited) -> tuple[str, ...]:
    e = result.evidence
    if isinstance(e, Binned) or not e.runs_p or not e.hits_p:
        return ()
    mass, line = e.hits_p / e.runs_p, result.witness.tangent
    least = result.least_caught(mass, delta=None if line is None else line.offset)
    if least is None or least == math.inf:
        return ()
    once = f"on an event as probable as the witness ({mass:.3g}), once known"
    return (f"{once}: {result.claim.parameter} from {least_text(least)}",)


def _demanded(result: Audited) -> tuple[str, ...]:
    if result.power_reached is None:
        return ()
    wanted = ", ".join(f"{key} {exact(value)}" for key, value in result.spec["detect"].items())
    reached = "reached" if result.power_reached else "NOT reached: give more runs"
    return (f"the power that the spec demands ({wanted}), {FOUND}, was {reached}",)


def control_lines(result: Audited) -> tuple[str, ...]:
    """What became of the spiked controls; empty where there were none."""
    if not result.controls:
        return ()
    places = by_place(result.controls)
    lines = [_of_place(result, place, controls) for place, controls in places.items()]
    if not any(map(smallest_seen, places.values())):
        lines.append("no control was caught: give more runs")
    lines.append("a control is the mechanism with a leak put into it, as telling as stated, in the place named")
    lines.append("it shows what search and certification together see of leaks of this kind, and of no other")
    return tuple(lines)


def _of_place(result: Audited, place: str, controls: Sequence[Control]) -> str:
    smallest, first = smallest_seen(controls), min(each.mass for each in result.controls)
    missed = [
        f"{exact(each.mass)} (caught in {each.caught} of {counted(each.repeats, 'audit')})"
        for each in controls
        if not each.seen
    ]
    if smallest is None:
        loss = f"{result.claim.parameter} {controls[-1].loss:.4g}"
        return f"{place}: NOT CAUGHT at any probability, a leak of {loss} missed at {_either(missed)}"
    loss = f"{result.claim.parameter} {smallest.loss:.4g}"
    caught = f"in {smallest.caught} of {counted(smallest.repeats, 'audit')}"
    told = f"{place}: caught, a leak of {loss} on an event of probability {exact(smallest.mass)}, {caught}"
    if missed:
        return f"{told}; missed at {_either(missed)}"
    return told if smallest.mass == first else f"{told}; rarer ones were not tried"


def _either(words: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
