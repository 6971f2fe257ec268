"""`dpaudit verify` and `check`: both sides of a mechanism's privacy loss, and stored proofs checked independently."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.options import check_writable, one_line, say, show, writing
from dpaudit.errors import InvalidSpec, at

if TYPE_CHECKING:
    from dpaudit.verify.bracketing import Joined

OPEN = 3
LONGEST = 2_000  # characters of a line


@click.command("verify")
@click.argument("target", metavar="TARGET")
@click.option("--claim", metavar="EPS", help="The claim: a number, or a formula in the parameters such as 2*eps.")
@click.option("--delta", type=float, default=0.0, metavar="D", help="With a number as the claim: (EPS, D)-DP.")
@click.option("--adjacency", metavar="WORD", help="all-differ, one-differs, monotone, or one way: up, down.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter; may be repeated.")
@click.option("--answers", type=int, metavar="N", help="Number of query answers, where no proof is for any number.")
@click.option("--pair", metavar="JSON", help="Two datasets: '[[0, 0], [1, -1]]'; left out: the worst that is found.")
@click.option("--runs", type=float, default=1_000_000, metavar="N", help="Executions of the audit; 0: none.")
@click.option("--max-time", type=float, default=60.0, metavar="S", help="Seconds that all of it may take.")
@click.option("--confidence", type=float, default=0.999, metavar="C", help="Confidence of the audit.")
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the audit.")
@click.option("--jobs", type=int, default=-1, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--save", metavar="CERT", help="Write the proof to a file that `dpaudit check` reads.")
@click.option("--json", "as_json", is_flag=True, help="Print the bracket as JSON.")
def verify_command(
    target: str,
    claim: str | None,
    delta: float,
    adjacency: str | None,
    params: tuple[str, ...],
    answers: int | None,
    pair: str | None,
    runs: float,
    max_time: float,
    confidence: float,
    seed: int,
    jobs: int,
    save: str | None,
    as_json: bool,
) -> int:
    """Bound a mechanism from both sides: TARGET is an entry of the catalogue, or module:function.

    Reads its source, compares it with what runs once it is imported, looks for a proof and for exact losses, and
    audits it; it is imported in processes of its own. Exit codes: 0 proved or pinned, 1 refuted, 3 open; a loss
    that is known of one pair alone is open.
    """
    from dpaudit.base import validate
    from dpaudit.base.quoting import clean
    from dpaudit.cli.catalogue import named
    from dpaudit.data import AdjacentPair
    from dpaudit.execution.engine import Engine
    from dpaudit.results.bounds import BracketVerdict
    from dpaudit.verify.bracketing import Wanted, run_bracket, target_named, target_of

    if save is not None:
        check_writable("--save", save)
    wanted = Wanted(
        claim=_claim(claim, delta),
        pair=None if pair is None else AdjacentPair.of(_json("--pair", pair)),
        adjacency=adjacency,
        answers=answers,
        runs=validate.whole("--runs", runs, least=0),
        confidence=validate.open_probability("--confidence", confidence),
        seed=validate.whole("--seed", seed, least=0),
        max_time_s=validate.positive("--max-time", max_time),
    )
    if sys.stderr.isatty():
        say("reading the source, looking for a proof, then auditing")
    with Engine(jobs, supervised=True) as engine:
        given = _parameters(params)
        mechanism = target_named(target, given, os.getcwd()) if ":" in target else target_of(named(target), given)
        joined = run_bracket(mechanism, wanted, engine)
    lines = (clean(line, LONGEST) for line in str(joined.bracket).splitlines())
    (click.echo if as_json else show)(json.dumps(joined.bracket.to_dict(), indent=1) if as_json else "\n".join(lines))
    if save is not None:
        _save(joined, save)
    return {BracketVerdict.REFUTED: 1, BracketVerdict.OPEN: OPEN}.get(joined.bracket.verdict, 0)


def _claim(claim: str | None, delta: float) -> Any:
    from dpaudit.claims import claim_of

    if claim is None:
        if delta:
            raise InvalidSpec("--delta needs --claim, the epsilon")
        return None
    try:
        epsilon = float(claim)
    except ValueError:
        if delta:
            raise InvalidSpec("--delta goes with a number as --claim, not with a formula") from None
        return claim
    return claim_of(epsilon, delta or 0.0)


def _parameters(given: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name.isidentifier() and equals):
            raise InvalidSpec(f"--param reads NAME=VALUE, got {each!r}")
        if name in values:
            raise InvalidSpec(f"--param {name} must be given once")
        values[name] = _json(f"--param {name}", value)
    return values


def _json(option: str, text: str) -> Any:
    from dpaudit.base.strict import parsed

    cure = "give JSON such as 1.5 or [[0, 0], [1, -1]]"
    with at(option):
        return parsed(text, cure=cure, not_json=cure)


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


@click.command("check")
@click.argument("certificate", type=click.Path(), metavar="CERT")
def check_command(certificate: str) -> int:
    """Check the proof in CERT and say what it shows, for which inputs, and which obligations were discharged.

    The program is read from the certificate, never run. Exit codes: 0 accepted, 1 rejected, 2 not a proof at all. An
    accepted proof bounds the loss by its cost; where that is above the claim the claim is open, and the code 3.
    """
    from dpaudit.verify.checker import check
    from dpaudit.verify.stored import load

    checked = check(load(certificate))
    lines = [f"accepted: {checked.statement}"]
    if checked.claim is not None:
        keeps = "the claim holds" if checked.keeps_claim else "the cost is above it for some parameters of the scope"
        lines.append(f"claim     {checked.claim}: {keeps}")
    lines.append(f"for       {checked.scope}")
    lines.append(f"assumed   {'; '.join(checked.assumptions)}")
    lines.append(f"shown     {len(checked.obligations)} obligations:")
    lines += [f"          {obligation}" for obligation in checked.obligations]
    for line in lines:
        show(line[:10] + one_line(line[10:]))
    return 3 if checked.keeps_claim is False else 0
