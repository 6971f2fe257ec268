"""`dpaudit bracket --explain`: a proof in lines that a person follows, or the case that refutes or is in the way."""

import contextlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from dpaudit.account.audit import evidence_lines
from dpaudit.verify.alignment.forms import NoProof, cost_text, number
from dpaudit.verify.alignment.paths import Follower
from dpaudit.verify.bracketing.coupling import COUPLING, dearest, in_words
from dpaudit.verify.coupled import Derivation
from dpaudit.verify.coupled.spent import Spending
from dpaudit.verify.language import nodes, read, text
from dpaudit.verify.language.facts import walks
from dpaudit.verify.language.source import place_of
from dpaudit.verify.proof import REACH, Proof, Shift

if TYPE_CHECKING:
    from dpaudit.verify.bracketing import Joined

Paths = Mapping[str, tuple[str, Mapping[str, nodes.Draw]]]  # by name: the conditions that lead there, and its draws


def explanation(joined: "Joined") -> Iterator[str]:
    """The proofs behind a bracket in words, the case in which a method stops, the event that shows a loss."""
    for proof in joined.proofs:
        yield from _aligned(proof) if isinstance(proof, Proof) else _coupled(proof)
    yield from (note for note in joined.notes if not (joined.proofs and note.startswith(COUPLING)))
    if joined.audit is not None and joined.audit.certificate.refuted:
        yield f"in runs: {joined.audit.witness.event}"
        yield from evidence_lines(joined.audit)


def _coupled(derivation: Derivation) -> Iterator[str]:
    """The steps of the way that spends most, each with what is spent so far."""
    way, spent = dearest(derivation), Spending()
    yield f"{derivation.function}: the dearest of {len(derivation.ways)} ways, in the case: {way.case}"
    for line, words, more in way.steps:
        spent += more
        yield f"  {place_of(derivation.source, line)}: {words}: {in_words(more)}; so far {in_words(spent)}"
    if way.chance is not None:
        yield f"  all of it where the record is drawn, which has the chance {float(way.chance):g}"
    if way.raised:
        yield f"  it raises {way.raised}, on both datasets"


def _aligned(proof: Proof) -> Iterator[str]:
    program = read(proof.source, name=proof.function)
    blocks: dict[nodes.Part, nodes.Block] = {"before": program.before, "loop": program.loop or ()}
    blocks["after"] = program.after
    paths = {name: (where, draws) for part, block in blocks.items() for name, where, draws in _paths(part, block)}
    yield f"{proof.function} ({proof.adjacency}): what the second run adds to its noise, to give the same output"
    yield from (_added(proof, shift, paths) for shift in proof.alignment.shifts)
    low, high = REACH[proof.adjacency]
    yield f"together at most {proof.cost}; d is how far the answer at hand moves, from {low} to {high}"


def _paths(part: nodes.Part, block: nodes.Block) -> Iterator[tuple[str, str, dict[str, nodes.Draw]]]:
    for walk in walks(block):
        met = [step for step in walk if isinstance(step, tuple)]
        draws = {step.target: step for step in walk if isinstance(step, nodes.Draw)}
        where = " and ".join(f"line {branch.line} is {str(truth).lower()}" for branch, truth in met)
        name = nodes.path_name(part, "".join("T" if truth else "F" for _, truth in met))
        yield name, where and f", where {where}", draws


def _added(proof: Proof, shift: Shift, paths: Paths) -> str:
    """What the second run adds to one draw, and the most that it costs."""
    where, draws = paths[shift.path]
    draw, kept = draws[shift.draw], {each.variable: each for each in proof.alignment.kept}
    still = {name: factor for name, factor in shift.differences.items() if kept[name].by is None}
    constant = shift.constant + sum(factor * kept[name].value for name, factor in still.items())
    others = {f"({name}' - {name})": factor for name, factor in shift.differences.items() if name not in still}
    terms = {"": constant, "d": shift.answer, **others}
    words = " + ".join(_times(factor, name) for name, factor in terms.items() if factor).replace("+ -", "- ") or "0"
    size = max(abs(constant + shift.answer * end) for end in REACH[proof.adjacency])
    size += sum(abs(factor) * kept[name].value for name, factor in shift.differences.items() if name not in still)
    cost = f"{size}/({text(draw.scale)})"
    with contextlib.suppress(NoProof):  # a scale of variables stays as it is written
        scale = Follower(proof.fixed).value(draw.scale, {}, draw.line).exact
        cost = cost if scale is None else cost_text(number(size) / scale)
    return f"  line {draw.line}{where}: {words}, which costs at most {cost}"


def _times(factor: Fraction, name: str) -> str:
    return f"{factor}{name and f'*{name}'}" if abs(factor) != 1 or not name else f"{'-' if factor < 0 else ''}{name}"
