"""`dpaudit plan`: what an audit would spend and could see, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dpaudit.cli.options import nothing_to_audit, tagged, wishes
from dpaudit.cli.words import say

if TYPE_CHECKING:
    from dpaudit.spec_file import Question


@click.command("plan")
@click.argument("paths", nargs=-1, required=True, metavar="SPEC...")
@click.option("--confidence", type=float, metavar="C", help="Confidence of all audits together.")
@click.option("--runs", type=float, metavar="N", help="Executions to spend on each audit.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only audits with this tag; may be repeated.")
def command(paths: tuple[str, ...], confidence: float | None, runs: float | None, tags: tuple[str, ...]) -> int:
    """Show what `run` would do: claims, pairs, runs of each stage, and the smallest epsilon it would catch.

    Imports no mechanism and runs none.
    """
    from dpaudit.auditing.numerals import confidence_text
    from dpaudit.spec_file import find_specs, read_spec
    from dpaudit.spec_file.suite import shared

    wished = wishes(runs=runs, confidence=confidence)
    questions = [question for path in find_specs(paths) for question in read_spec(path, wished)]
    chosen, together = shared(tagged(questions, tags))
    if not chosen:
        say(nothing_to_audit(paths, tags, len(questions)))
        return 5
    click.echo(f"{len(chosen)} audit{'' if len(chosen) == 1 else 's'} at suite confidence {confidence_text(together)}")
    for question in chosen:
        click.echo("\n" + "\n".join(_page(question)))
    return 0


def _page(question: Question) -> list[str]:
    from dpaudit.auditing.numerals import confidence_text
    from dpaudit.auditing.quoting import clean

    relation = "no relation stated" if question.claim.relation is None else question.claim.relation.value
    lines = [
        f"{clean(question.name)} ({question.source})",
        f"  claim       {question.claim}, {relation}; expected {question.expect.value.lower().replace('_', '-')}",
        f"  mechanism   {clean(question.mechanism.name)}",
        f"  pairs       {', '.join(clean(pair.name) for pair in question.pairs)}",
        f"  confidence  {confidence_text(question.confidence)}, seed {question.seed}",
    ]
    if question.runs is None:
        return [*lines, f"  runs        as many as fit into {question.max_time_s:g} s, chosen by a probe when it runs"]
    return [*lines, *_spending(question)]


def _spending(question: Question) -> list[str]:
    """The stages at their sizes, and what the certifying runs could show of the widest claim among the pairs."""
    from dpaudit.auditing.numerals import up
    from dpaudit.auditing.search import screening_share
    from dpaudit.auditing.wording import POWER
    from dpaudit.certify import ceiling, smallest_epsilon_caught
    from dpaudit.certify.power import MASSES

    spec = question.outline()
    screening = int(screening_share(len(spec.pairs)) * spec.runs)
    searching = int((spec.search_share or 0.0) * spec.runs)
    certifying = spec.runs - screening - searching  # the probe takes some hundreds of them at the most
    stages = [f"{searching:,} to search", f"{certifying:,} to certify"]
    if screening:
        stages.insert(0, f"{screening:,} to choose a pair")
    size = spec.shard_runs or certifying
    claim = question.claim.at_distance(max(getattr(pair, "distance", 1) for pair in question.pairs))
    most = ceiling(certifying // 2, certifying - certifying // 2, claim.delta, question.confidence)
    lines = [
        f"  runs        {spec.runs:,}: {', '.join(stages)}",
        f"  shards      of {size:,} runs, {-(-certifying // size):,} of them certifying",
        f"  ceiling     epsilon {up(most, 2)}, with every hit on one side",
        f"  catches     with power {POWER:g}, on an event of known probability:",
    ]
    for mass in MASSES:
        least = smallest_epsilon_caught(claim, certifying, mass, confidence=question.confidence, power=POWER)
        lines.append(f"    {mass:<8g}  " + ("nothing" if least is None else f"epsilon from {up(least, 3)}"))
    return lines
