"""What an audit will be able to see, before any run."""

from __future__ import annotations

from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.certify import smallest_caught
from dpaudit.certify.power import MASSES
from dpaudit.claims import Claim
from dpaudit.results.audited import POWER
from dpaudit.results.wording.numerals import exact, least_text, up


def planned_power(claim: Claim, runs: int, level: float, spec: ResolvedSpec) -> list[str]:
    """What so many certifying runs will see: a line for each event probability, the ceiling, the power demanded."""
    certifier = spec.certifier.at(claim)
    lines = []
    for mass in MASSES:
        least = smallest_caught(claim, runs, mass, confidence=level, certifier=certifier, power=POWER)
        told = "nothing" if least is None else f"{claim.parameter} from {least_text(least)}"
        lines.append(f"{mass:<8g}  {told}")
    most = certifier.perfect_bound(claim, runs // 2, level)
    lines.append(f"ceiling   {claim.parameter} {up(most, 2)}, with every hit on one side")
    if spec.detect is not None:
        least = smallest_caught(claim, runs, spec.detect.mass, confidence=level, certifier=certifier, power=POWER)
        reached = least is not None and least <= spec.detect.value
        wanted = f"{claim.parameter} {exact(spec.detect.value)} at {exact(spec.detect.mass)}"
        answer = "within reach" if reached else "OUT OF REACH (exit code 4): give more runs"
        lines.append(f"demanded  {wanted}: {answer}")
    return lines
