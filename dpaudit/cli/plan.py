"""`dpaudit plan` and `validate`: what a spec says, what its audits would spend and could see, before any run."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from dpaudit.account import templates
from dpaudit.account.statements import SPREAD, caught
from dpaudit.adapters.adapted import OwnClaim
from dpaudit.auditing import Runner
from dpaudit.auditing.controls import most_runs
from dpaudit.auditing.probing import time_of_a_run
from dpaudit.auditing.question import Plan
from dpaudit.auditing.search_stage import budget
from dpaudit.base.numerals import confidence_text, counted, duration, up
from dpaudit.base.quoting import clean
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import smallest_caught
from dpaudit.claims import Claim
from dpaudit.cli.commands import PlanCommand, ValidateCommand
from dpaudit.cli.options import chosen_questions, layers, nothing_to_audit, read_all, show
from dpaudit.errors import InvalidSpec, at
from dpaudit.execution.engine import Engine
from dpaudit.results.result import POWER
from dpaudit.running.worker import Probe
from dpaudit.search.look import ends
from dpaudit.spec.questions import SpecQuestion, shared

COSTED = tuple(10**power for power in range(6, 13))  # runs
FINER = tuple(lead * 10**power for power in range(3, 12) for lead in (1, 2, 5))  # that may give a power


def plan_command(call: PlanCommand) -> int:
    prices = {"--core-hour": call.core_hour, "--gpu-hour": call.gpu_hour}
    for name, price in prices.items():
        if price is not None and not (call.probe and 0.0 <= price < math.inf):
            raise InvalidSpec(f"{name}: give --probe and a price of at least 0, got {price:g}")
    if call.freeze is not None:
        from dpaudit.cli.shards import freeze

        if call.probe or call.look:
            raise click.UsageError("--freeze and --probe, --look: give one of the three")
        return freeze(call, Path(call.freeze))
    if call.parts is not None:
        raise click.UsageError("--parts is for --freeze")
    chosen, together = shared(chosen_questions(call.paths, layers(call, call.look), call.tags, call.only))
    if call.look:
        from dpaudit.api.look import look_at

        for question in chosen:
            show(str(look_at(question, call.jobs)))
        return 0
    show(f"{len(chosen)} audit{'' if len(chosen) == 1 else 's'} at suite confidence {confidence_text(together)}")
    for question in map(_with_claim, chosen):
        show("\n" + "\n".join(_page(question)))
        if call.probe:
            show("\n".join(_time(question, call)))
    show(f"\n{SPREAD}")
    return 0


def _with_claim(question: SpecQuestion) -> SpecQuestion:
    """The question with claim and pairs of the mechanism itself, where the spec states no claim."""
    if not isinstance(question.claim, OwnClaim):
        return question
    question.check_requirements()
    with at(question.place), Engine(1, supervised=True) as engine:
        planned = Runner(engine).plan(question)
    return replace(question, claim=planned.claim, pairs=planned.pairs)


def _reaches(spec: Plan, runs: int) -> bool:
    """Whether the power that is demanded is within reach of so many runs."""
    assert spec.detect is not None
    with suppress(InvalidSpec):  # too few to refute the claim at all
        least = _least(replace(spec, runs=runs))(spec.detect.mass)
        return least is not None and least <= spec.detect.value
    return False


def _page(question: SpecQuestion) -> list[str]:
    relation = "no relation stated" if question.claim.relation is None else question.claim.relation.value
    relation += "" if question.user is None else f" by {question.user!r}"
    expected = "bits" if question.bits else question.expect.value.lower().replace("_", "-")
    lines = [
        f"{clean(question.name)} ({question.source})",
        f"  claim       {question.claim}, {relation}; expected {expected}",
        f"  mechanism   {clean(question.mechanism.name)}",
        f"  pairs       {', '.join(clean(pair.name) for pair in question.pairs)}",
        *(f"              {clean(pair.name)}: {clean(pair.reason)}" for pair in question.pairs if pair.reason),
        f"  confidence  {confidence_text(question.confidence)}, seed {question.seed}",
    ]
    if question.max_time_s is not None:
        most = "" if question.runs is None else f", at most {question.runs:,}"
        fit = templates.FITTED.format(limit=question.max_time_s, most=most)
        return [*lines, f"  runs        {fit}"]
    return [*lines, *_spending(question)]


def _time(question: SpecQuestion, call: PlanCommand) -> list[str]:
    """About how long the audit takes, by a moment of runs in a process of their own, and what more would cost."""
    if question.max_time_s is not None:
        return [f"  time        {question.max_time_s:g} s, as the spec asks"]
    with Engine(call.jobs, supervised=True) as engine:
        spec = Runner(engine).plan(question)
        probe = time_of_a_run(spec, spec.pairs, engine)
        runs = spec.runs + (most_runs(spec, spec.controls) if spec.controls else 0)
        about, workers = "at most" if spec.controls else "about", counted(engine.n_jobs, "worker")
        time = f"{about} {duration(runs * probe.run_s / engine.n_jobs)} with {workers}, {probe.run_s:.2g} s a run"
    return [f"  time        {time}", *_costs(spec, probe, call)]


def _costs(spec: Plan, probe: Probe, call: PlanCommand) -> list[str]:
    """Hours and, where it is known what one costs, the price of these and more runs, and of the power demanded."""
    unit, price = ("GPU", call.gpu_hour) if probe.accelerated else ("core", call.core_hour)
    rows = dict.fromkeys(COSTED, "")
    if spec.detect is not None and (enough := next(filter(partial(_reaches, spec), FINER), None)) is not None:
        rows[enough] = "  for the power demanded"
    lines = []
    for runs, why in sorted(rows.items()):
        hours = runs * probe.run_s / 3600.0
        cost = "" if price is None else f"{hours * price:>14,.2f}"
        told = f"{hours:,.0f}" if hours >= 100.0 else f"{hours:.2g}"
        lines.append(f"{runs:>31,}{told:>14}{cost}{why}")
    head = f"  cost        {'runs':>17}{f'{unit}-hours':>14}" + ("" if price is None else f"{'price':>14}")
    return [head, *lines]


def _spending(question: SpecQuestion) -> list[str]:
    """The stages at their sizes, and what the certifying runs could show of the widest claim among the pairs."""
    spec = question.outline()
    parts = budget(spec)
    anytime = spec.stopping == "anytime"
    words = templates.STAGES[anytime]
    each = f" for each of {spec.certify_pairs} pairs" if spec.certify_pairs > 1 else ""
    stages = [f"{parts.searching:,} {words[0]}", f"{parts.certifying:,} {words[1]}{each}"]
    if parts.screening:
        stages.insert(0, f"{parts.screening:,} to choose a pair")
    size = spec.shard_runs
    claim = spec.claim.at_distance(max(pair.distance for pair in question.pairs))
    lines = [
        f"  runs        {spec.runs:,}: {', '.join(stages)}",
        templates.SHARDS.format(size=size, many=-(-parts.certifying // size)),
        f"  certifier   {spec.certifier.at(claim).name}" + (f", of {spec.certify_pairs} pairs (Holm)" if each else ""),
    ]
    if anytime:
        wealth = 1.0 / (spec.sequential_share * error_probability(spec.confidence))
        part = f"a part {spec.sequential_share:g} of the error probability"
        lines.append(templates.STOPPING.format(wealth=wealth, part=part))
    if spec.controls:
        more = most_runs(spec, spec.controls)
        lines.append(templates.CONTROLS.format(repeats=spec.controls, more=more))
    return [*lines, *_power(spec, claim, parts.certifying)]


def _least(spec: Plan) -> Callable[[float], float | None]:
    """What the runs of a plan find and certify: the smallest value that is caught, by how often a leak shows."""
    parts, claim = budget(spec), spec.claim.at_distance(max(pair.distance for pair in spec.pairs))
    certifier, pool = spec.certifier.at(claim), parts.searching + parts.certifying
    # an open share ends as soon as more search is not worth its runs
    searching = parts.searching if spec.search_share or certifier.bins else int(next(ends(pool)) * pool)
    runs, level = parts.certifying, spec.fixed_level
    return partial(
        smallest_caught, claim, runs, confidence=level, certifier=certifier, power=POWER, searching=searching
    )


def _power(spec: Plan, claim: Claim, runs: int) -> list[str]:
    """What these runs can find and certify: by how often a leak shows, the ceiling, the power demanded."""
    name, least = claim.parameter, _least(spec)
    table = caught(name, least, "")
    most = spec.certifier.at(claim).perfect_bound(claim, runs // 2, spec.fixed_level)
    lines = [templates.CATCHES.format(what=table.title), *(f"              {line}" for line in table.lines)]
    lines.append(templates.CEILING.format(name=name, most=up(most, 2)))
    if spec.detect is not None:
        value = least(spec.detect.mass)
        reached = value is not None and value <= spec.detect.value
        answer = "within reach" if reached else "OUT OF REACH (exit code 4): give more runs"
        lines.append(f"  demanded    {name} {exact(spec.detect.value)} at {exact(spec.detect.mass)}: {answer}")
    return lines


def validate_command(call: ValidateCommand) -> int:
    if call.schema is not None:
        from dpaudit.results import stored
        from dpaudit.spec import tables

        makers = {"spec": tables.json_schema, "result": stored.json_schema, "suite": stored.suite_schema}
        click.echo(json.dumps(makers[call.schema](), indent=1))
        return 0
    if not call.paths:
        raise click.UsageError("Missing argument 'PATH...'.")

    def show_count(path: Path, questions: Sequence[SpecQuestion]) -> None:
        asked = sum(isinstance(question.claim, OwnClaim) for question in questions)
        left = templates.OWN_CLAIM.format(asked=asked) if asked else ""
        click.echo(f"{path}: {len(questions)} audit{'' if len(questions) == 1 else 's'}{left}")

    if not read_all(call.paths, layers(call), show_count):
        raise nothing_to_audit(call.paths, (), 0)
    return 0
