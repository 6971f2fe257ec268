"""`dpaudit audit-training`: canaries into the training code of a module, and what its scores certify."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.options import report_folder, say, show, stated_claim, typed_again
from dpaudit.errors import InvalidSpec

SAY_EVERY_S = 5.0
QUIET_S = 30.0  # after which a training that goes on says so


@click.command("audit-training")
@click.argument("reference", metavar="MODULE:FUNCTION")
@click.option("--canaries", type=int, required=True, metavar="N", help="Canaries of one training.")
@click.option("--trainings", type=int, default=1, show_default=True, metavar="K", help="Trainings, at most.")
@click.option("--steps", type=int, metavar="T", help="Audit the claim of one step: T steps a training.")
@click.option("--compose", type=int, metavar="T", help="Steps that are composed to a run; those of --steps by default.")
@click.option("--sample-rate", type=float, default=1.0, metavar="Q", help="At which train lets canaries join a step.")
@click.option("--mu", type=float, metavar="M", help="The claimed mu of Gaussian differential privacy.")
@click.option("--epsilon", type=float, metavar="E", help="The claimed epsilon; with --delta, (epsilon, delta)-DP.")
@click.option("--delta", type=float, metavar="D", help="The delta at which epsilon is bounded.")
@click.option("--claim", "claim_json", metavar="JSON", help='Any claim: \'{"form": "GaussianDP", "mu": 1.0}\'.')
@click.option("--confidence", type=float, default=0.95, show_default=True, metavar="C")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Draws coins, and for train.")
@click.option("--inserted", default="", metavar="WORDS", help="What the canaries are, for the report.")
@click.option("--not-tested", multiple=True, metavar="WORDS", help="What is left out, for the report; may be repeated.")
@click.option("--exact", is_flag=True, help="Scores that tell every coin are meant: a training without noise.")
@click.option("--underpowered", is_flag=True, help="Go on where not even perfect scores could refute the claim.")
@click.option("--report", metavar="FOLDER", help="Keep every training there, and write the report.")
@click.option("--resume", is_flag=True, help="Go on with the trainings that --report keeps.")
@click.option("--timeout", "limit_s", type=float, metavar="S", help="Seconds that one training may take.")
@click.option("--jobs", type=int, default=1, show_default=True, metavar="N", help="Trainings at a time.")
@click.option("--no-progress", is_flag=True, help="Say nothing while it trains.")
def command(
    reference: str,
    claim_json: str | None,
    mu: float | None,
    inserted: str,
    not_tested: tuple[str, ...],
    report: str | None,
    resume: bool,
    limit_s: float | None,
    jobs: int,
    no_progress: bool,
    **asked: Any,
) -> int:
    """Train with canaries in, and certify a lower bound on the loss of MODULE:FUNCTION, called as f(included, rng).

    Each training runs in a process of its own. Ends with 1 where the claim is refuted, with 0 where it is not, with 3
    where a training breaks or its scores say nothing, and with 2 for a question that cannot be asked.
    """
    from dpaudit.base import validate
    from dpaudit.execution.engine import Engine
    from dpaudit.mechanisms import Imported
    from dpaudit.training.audit import NEVER_TESTED, TrainingProgress, run_plan
    from dpaudit.training.coins import supervised
    from dpaudit.training.plan import plan_of

    plan = plan_of(stated_claim(claim_json, mu), **asked)  # named as there
    mechanism = Imported(reference, folder=str(Path.cwd()))
    many = validate.whole("--jobs", jobs, least=1)
    limit = float("inf") if limit_s is None else validate.positive("--timeout", limit_s)
    if resume and report is None:
        raise InvalidSpec("--resume needs --report FOLDER, which keeps the trainings")
    folder = None if report is None else report_folder(report)
    with Engine(1, supervised=True) as engine:
        described, _ = engine.describe(mechanism, ())
        parts = {} if folder is None else engine.made_of(mechanism)
    plan = plan.of(described)
    repeat = typed_again(without=("resume", "report"))
    began = said = time.monotonic()
    over = threading.Event()

    def stir() -> None:
        while not over.wait(QUIET_S):
            if time.monotonic() - said >= QUIET_S:
                say(f"it trains, {time.monotonic() - began:,.0f} s so far; what train prints is not shown")

    def tell(progress: TrainingProgress) -> None:
        nonlocal said
        if time.monotonic() - said >= SAY_EVERY_S:
            said = time.monotonic()
            say(str(progress))

    if not no_progress:
        threading.Thread(target=stir, daemon=True).start()
    try:
        result = run_plan(
            plan,
            supervised(mechanism, plan, many, limit),
            described,
            {"inserted": inserted, "not_tested": (*not_tested, *NEVER_TESTED), "repeat": (repeat,)},
            None if folder is None else folder / "trainings",
            parts,
            resume=resume,
            progress=None if no_progress else tell,
        )
    finally:
        over.set()
    result = replace(result, provenance={**result.provenance, "cpu_s": None})  # it was spent in other processes
    show(str(result))
    if folder is not None:
        click.echo(f"report: {result.write_report(folder)[-1]}")
    return 1 if result.refuted else 0
