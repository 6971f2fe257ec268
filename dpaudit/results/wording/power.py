"""What an audit could have seen: its power, its ceiling, and the controls that back them."""

from __future__ import annotations

import math

from dpaudit.certify import Binned
from dpaudit.certify.power import MASSES
from dpaudit.results.audited import POWER, Audited
from dpaudit.results.beside import Control, smallest_seen
from dpaudit.results.wording.numerals import counted, exact, least_text, up
from dpaudit.results.wording.statements import at_delta, unseen

KNOWN = "for an event that is known"  # the search has to find one


def could_see(result: Audited) -> tuple[str, ...]:
    """What an audit of this size could have certified, and the losses it would have refuted."""
    name = result.claim.parameter
    if result.evidence.runs == 0:
        return ("the bets refuted the claim before any run was counted for a fixed bound",)
    most, where = f"epsilon {up(result.ceiling, 2)}", at_delta(result.certificate.delta)
    if result.certificate.epsilon_lower is None:  # bins bound the claim's own parameter
        most, where = f"{name} {up(result.ceiling, 2)}", result.claim.where
    lines = [f"at most {most}{where}: with all hits on one side no more can be certified"]
    caught = {mass: result.least_caught(mass) for mass in MASSES}
    seen = [f"{least_text(least)} at {exact(mass)}" for mass, least in caught.items() if least is not None]
    blind = [exact(mass) for mass, least in caught.items() if least is None]
    if seen:
        known = f"refuted with power {exact(POWER)}, {KNOWN}"
        lines.append(f"{known}: a true {name} from here on, by the probability of the event")
        lines.append("; ".join(seen))
    if blind:
        lines.append(f"nothing is caught on an event of probability {_either(blind)}")
    if result.unseen or result.unpaired:
        lines.append(f"no power is claimed for what was left out: {unseen(result)}")
    return (*lines, *_of_witness(result), *_demanded(result))


def _of_witness(result: Audited) -> tuple[str, ...]:
    e = result.evidence
    if isinstance(e, Binned) or not e.runs_p or not e.hits_p:
        return ()
    mass, line = e.hits_p / e.runs_p, result.witness.tangent
    least = result.least_caught(mass, delta=None if line is None else line.offset)
    if least is None or least == math.inf:
        return ()
    return (f"on an event as probable as the witness ({mass:.3g}): {result.claim.parameter} from {least_text(least)}",)


def _demanded(result: Audited) -> tuple[str, ...]:
    if result.power_reached is None:
        return ()
    wanted = ", ".join(f"{key} {exact(value)}" for key, value in result.spec["detect"].items())
    reached = "reached" if result.power_reached else "NOT reached: give more runs"
    return (f"the power that the spec demands ({wanted}), {KNOWN}, was {reached}",)


def control_lines(result: Audited) -> tuple[str, ...]:
    """What became of the spiked controls; empty where there were none."""
    if not result.controls:
        return ()
    repeats = result.spec["controls"]
    smallest = smallest_seen(result.controls)
    missed = [control for control in result.controls if not control.seen]
    lines = []
    if smallest is not None:
        lines.append(f"caught: {_control(result, smallest)}")
    lines += [f"missed: {_control(result, control)}" for control in missed]
    if smallest is None:
        needed = result.controls[-1].needed
        lines.append(f"no control was caught in {needed} of {counted(repeats, 'audit')}: give more runs")
    lines.append(
        "a control is the mechanism with a leak put into it: an output far away, or a word, as telling as stated"
    )
    lines.append("it shows what search and certification together see of leaks of this kind, and of no other")
    return tuple(lines)


def _control(result: Audited, control: Control) -> str:
    loss = f"{result.claim.parameter} {control.loss:.4g}"
    given_up = "" if control.seen or control.repeats == result.spec["controls"] else ", then given up"
    return (
        f"a leak of {loss} on an event of probability {exact(control.mass)}, "
        f"in {control.caught} of {counted(control.repeats, 'audit')}{given_up}"
    )


def _either(words: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
