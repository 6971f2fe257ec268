"""`dpaudit audit-scores` and `audit-training`: bounds from scores of membership inference, stored or of canaries."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import click

from dpaudit.base import validate
from dpaudit.base.files import report_folder, writing
from dpaudit.cli.commands import AuditScoresCommand, AuditTrainingCommand
from dpaudit.cli.options import check_writable, say, show, stated_claim, typed_again
from dpaudit.errors import InvalidSpec

SAY_EVERY_S = 5.0
QUIET_S = 30.0  # without a message, after which a training says that it goes on


def audit_scores_command(call: AuditScoresCommand) -> int:
    from dpaudit.scores import audit_scores
    from dpaudit.scores.designs import design_of
    from dpaudit.scores.files import read_scores

    if call.plot_path:
        check_writable("--plot", call.plot_path)
    folder = report_folder("--report", call.report)
    loaded = read_scores(call.file, score=call.score, member=call.member, inside=call.inside, outside=call.outside)
    own = {"threshold": _threshold(call.threshold), "guesses": call.guesses or None}
    own |= {"split": call.split, "splits": call.splits, "event": call.event}
    design = design_of(call.design, **{name: value for name, value in own.items() if value is not None})
    methods = None if not call.methods else "all" if call.methods == ("all",) else call.methods
    given = call.keywords_of(audit_scores) | {"methods": methods, "design": design}
    result = audit_scores(
        loaded.in_scores,
        loaded.out_scores,
        counts=loaded.counts,
        claim=stated_claim(call.claim_json),
        **given,
    )
    if call.json_path:
        with writing("--json", call.json_path):
            result.save(call.json_path)
    show(str(result))
    if call.plot_path or folder is not None:
        from dpaudit.report import write_page

        if call.plot_path:
            with writing("--plot", call.plot_path):
                result.plot("roc").save(call.plot_path)
        if folder is not None:
            with writing("--report", str(folder)):
                click.echo(f"report: {write_page(result, folder)[-1]}")
    return 1 if result.refuted else 0


def _threshold(text: str | None) -> float | str | None:
    if text is None or text == "all":
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidSpec(f"--threshold must be a number or all, got {text!r}") from None


def audit_training_command(call: AuditTrainingCommand) -> int:
    from dpaudit.execution.engine import Engine
    from dpaudit.mechanisms import Imported
    from dpaudit.training.audit import NEVER_TESTED, TrainingProgress, run_plan
    from dpaudit.training.coins import TrainingPlan, plan_of, supervised

    claim = stated_claim(call.claim_json, call.mu)
    plan = plan_of(claim, call.epsilon, **call.keywords_of(TrainingPlan))
    mechanism = Imported(call.reference, folder=str(Path.cwd()))
    many = validate.whole("--jobs", call.jobs, least=1)
    limit = float("inf") if call.limit_s is None else validate.positive("--timeout", call.limit_s)
    if call.resume and call.report is None:
        raise InvalidSpec("--resume needs --report DIR, which keeps the trainings")
    folder = report_folder("--report", call.report)
    with Engine(1, supervised=True) as engine:
        described, _ = engine.describe(mechanism, ())
        parts = {} if folder is None else engine.made_of(mechanism)
    plan = plan.of(described)
    repeat = typed_again(without=("resume", "report"))
    began = last_s = time.monotonic()
    over = threading.Event()

    def stir() -> None:
        while not over.wait(QUIET_S):
            if time.monotonic() - last_s >= QUIET_S:
                say(f"it trains, {time.monotonic() - began:,.0f} s so far; what train prints is not shown")

    def tell(progress: TrainingProgress) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= SAY_EVERY_S:
            last_s = time.monotonic()
            say(str(progress))

    if not call.no_progress:
        threading.Thread(target=stir, daemon=True).start()
    try:
        result = run_plan(
            plan,
            supervised(mechanism, plan, many, limit),
            described,
            {"inserted": call.inserted, "not_tested": (*call.not_tested, *NEVER_TESTED), "repeat": (repeat,)},
            None if folder is None else folder / "trainings",
            parts,
            resume=call.resume,
            progress=None if call.no_progress else tell,
        )
    finally:
        over.set()
    result = replace(result, provenance={**result.provenance, "cpu_s": None})  # it was spent in other processes
    show(str(result))
    if folder is not None:
        click.echo(f"report: {result.write_report(folder)[-1]}")
    return 1 if result.refuted else 0
