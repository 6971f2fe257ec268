"""`dpaudit bracket` and `check-proof`: both sides of a privacy loss, and stored proofs checked independently."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from dpaudit.account import templates
from dpaudit.base import validate
from dpaudit.base.files import writing
from dpaudit.base.quoting import clean
from dpaudit.cli.commands import BracketCommand, CheckProofCommand
from dpaudit.cli.options import check_writable, from_json, one_line, say, show
from dpaudit.errors import InvalidSpec, at

if TYPE_CHECKING:
    from dpaudit.verify.bracketing import Joined

OPEN = 3
LONGEST = 2_000  # characters of a line


def bracket_command(call: BracketCommand) -> int:
    from dpaudit.cli.catalogue import find
    from dpaudit.data import AdjacentPair
    from dpaudit.execution.engine import Engine
    from dpaudit.results.bounds import BracketVerdict
    from dpaudit.verify.bracketing import Wanted, run_bracket, target_named, target_of

    if call.save is not None:
        check_writable("--save", call.save)
    wanted = Wanted(
        claim=_claim(call.claim, call.delta),
        pair=None if call.pair is None else AdjacentPair.of(from_json("--pair", call.pair, "[[0, 0], [1, -1]]")),
        adjacency=call.adjacency,
        answers=call.answers,
        runs=validate.whole("--runs", call.runs, least=0),
        confidence=validate.open_probability("--confidence", call.confidence),
        seed=validate.whole("--seed", call.seed, least=0),
        max_time_s=validate.positive("--max-time", call.max_time),
    )
    if sys.stderr.isatty():
        say("reading the source, looking for a proof, then auditing")
    with Engine(call.jobs, supervised=True) as engine:
        given = parameters(call.params)
        own = ":" in call.target
        target = target_named(call.target, given, os.getcwd()) if own else target_of(find(call.target), given)
        joined = run_bracket(target, wanted, engine)
    if call.as_json:
        click.echo(json.dumps(joined.bracket.to_dict(), indent=1))
    else:
        lines = str(joined.bracket).splitlines()
        if call.explain:
            from dpaudit.verify.bracketing.explained import explanation

            lines += explanation(joined)
        show("\n".join(clean(line, LONGEST) for line in lines))
    if call.save is not None:
        _save(joined, call.save)
    return {BracketVerdict.REFUTED: 1, BracketVerdict.OPEN: OPEN}.get(joined.bracket.verdict, 0)


def _claim(claim: str | None, delta: float) -> Any:
    from dpaudit.claims import claim_of, claim_of_keys

    if claim is None:
        if delta:
            raise InvalidSpec("--delta needs --claim, the epsilon")
        return None
    try:
        epsilon = float(claim)
    except ValueError:
        if delta:
            raise InvalidSpec("--delta goes with a number as --claim, not with another") from None
        if not claim.lstrip().startswith("{"):
            return claim
        with at("--claim"):
            return claim_of_keys(from_json("--claim", claim, '{"mu": 1.0}'))
    return claim_of(epsilon, delta or 0.0)


def parameters(given: tuple[str, ...]) -> dict[str, Any]:
    """The values of --param. Raises `InvalidSpec` for what is no NAME=VALUE, or is given twice."""
    values: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name.isidentifier() and equals):
            raise InvalidSpec(f"--param reads NAME=VALUE, got {each!r}")
        if name in values:
            raise InvalidSpec(f"--param {name} must be given once")
        values[name] = from_json(f"--param {name}", value, "1.5")
    return values


def _save(joined: "Joined", path: str) -> None:
    """One file for each proof; those of two ways are named after their adjacency."""
    from dpaudit.verify.stored import save

    if not joined.proofs:
        lacks = [each for each in joined.bracket.reasons if "the extra [" in each]
        say(f"no proof was made: {'; '.join(lacks)}" if lacks else "no proof to save")
        return
    for proof in joined.proofs:
        stem, suffix = os.path.splitext(path)
        name = path if len(joined.proofs) == 1 else f"{stem}-{proof.adjacency}{suffix}"
        with writing("--save", name):
            save(proof, name)
        say(f"proof: {name}")


def check_proof_command(call: CheckProofCommand) -> int:
    from dpaudit.verify.bracketing import checked
    from dpaudit.verify.proof import Proof
    from dpaudit.verify.stored import load

    proof = load(call.certificate)
    found = checked(proof)
    lines = [f"accepted: {found.statement}"]
    if found.claim is not None:
        lines.append(f"claim     {found.claim}: {templates.KEPT[bool(found.keeps_claim)]}")
    lines.append(f"for       {found.scope}")
    lines.append(f"assumed   {'; '.join(found.assumptions)}")
    parts = "obligations" if isinstance(proof, Proof) else "cases with what they spend"
    lines.append(f"shown     {len(found.obligations)} {parts}:")
    lines += [f"          {obligation}" for obligation in found.obligations]
    for line in lines:
        show(line[:10] + one_line(line[10:]))
    return 3 if found.keeps_claim is False else 0
