"""What the audit could have seen: the least loss it refutes, by the probability of the event that shows it."""

import math

from dpaudit.certify import Binned
from dpaudit.certify.power import MASSES
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, Scale, padded
from dpaudit.results.audited import POWER
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import decimals, exact, up
from dpaudit.results.wording.power import FOUND, KNOWN, SIMPLE

TITLE = "What the audit could have seen"
COLUMNS = ("probability of the event", "least true value that is refuted")


def power(result: AuditResult) -> Drawing | None:
    """The curve of the least parameter that is caught; None where no certifying run was counted."""
    if not (result.evidence.runs_p and result.evidence.runs_q):
        return None
    whose, where = (FOUND, f"{FOUND}, {SIMPLE}") if result.searching_runs else (KNOWN, KNOWN)
    caught = {mass: result.least_found(mass) for mass in MASSES}
    known = {mass: least for mass, least in caught.items() if least is not None and math.isfinite(least)}
    if not known:
        return None
    name, promised = result.claim.parameter, result.claim.promised(result.certificate.delta)
    keys: list[Key] = [
        ("line", "first", f"a true {name} from here on is refuted, with power {exact(POWER)}, {whose}"),
        ("dash", "claim", f"claimed {name}"),
    ]
    mass = 0.0 if isinstance(result.evidence, Binned) else result.evidence.hits_p / result.evidence.runs_p
    shown = [*known.values(), promised, 1e-9]
    if mass:
        keys.append(("diamond", "certified", "the witness, at what it certified"))
        shown.append(result.certificate.lower)
    y = Scale(0.0, 1.1 * max(filter(math.isfinite, shown)))
    panel = Panel(keys, padded([*MASSES, mass], log=True, share=0.04), y)
    panel.frame("probability of the event on the likelier dataset", name)
    if math.isfinite(promised):
        panel.level(promised, "claim", "dash")
    curve = panel.at(list(known), list(known.values()))
    panel.line(curve, colour="first")
    panel.marks(curve, colour="first")
    if mass:
        panel.marks(panel.at(mass, min(result.certificate.lower, y.high)), colour="certified", shape="D", size=7.0)
    rows = [
        (exact(mass), "nothing is" if least is None else f"{name} {up(least, decimals(least, 3))}" if least else "0")
        for mass, least in caught.items()
    ]
    text = (
        f"The least true {name} that an audit of this size refutes with power {exact(POWER)}, by the probability of "
        f"the event that shows it, {where}: the rarer the event, the larger a loss must be to be seen."
    )
    if len(known) < len(MASSES):
        text += " On events rarer than where the line begins, no loss is refuted with that power."
    return Drawing.of(panel, "power", TITLE, text, COLUMNS, rows)
