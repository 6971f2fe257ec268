"""`dpaudit audit-scores` and `audit-training`: bounds from scores of membership inference, stored or of canaries."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.options import check_writable, report_folder, say, show, stated_claim, typed_again, writing
from dpaudit.errors import InvalidSpec

SAY_EVERY_S = 5.0
QUIET_S = 30.0  # without a message, after which a training says that it goes on


@click.command("audit-scores")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--epsilon", type=float, metavar="E", help="The claimed epsilon; with --delta, (epsilon, delta)-DP.")
@click.option("--claim", "claim_json", metavar="JSON", help='Any claim: \'{"form": "GaussianDP", "mu": 1.0}\'.')
@click.option("--delta", type=float, metavar="D", help="The delta at which epsilon is bounded; 0 by default.")
@click.option("--confidence", type=float, default=0.95, show_default=True, metavar="C")
@click.option("--method", "methods", multiple=True, metavar="NAME", help="A method, or all; the certified by default.")
@click.option("--design", default="many-run", show_default=True, help="many-run, or one-run (fair coins).")
@click.option("--threshold", metavar="T", help="A threshold known before the scores, or all (each paid for).")
@click.option("--split", type=float, metavar="PART", help="Part of the scores that chooses the threshold; 0.25.")
@click.option("--splits", type=int, metavar="N", help="Median over N splits.")
@click.option("--guesses", type=int, nargs=2, metavar="IN OUT", help="Numbers of guesses, fixed before (one-run).")
@click.option("--event", help="in, out or both: the guesses that a given threshold compares.")
@click.option("--interval", default="lower", show_default=True, help="lower, upper or two-sided.")
@click.option("--bootstrap", metavar="KIND", help="percentile, bc or bca: intervals for point estimates.")
@click.option("--fpr", type=float, multiple=True, metavar="R", help="Where tpr-at-fpr looks.")
@click.option("--min-count", type=int, default=50, show_default=True, metavar="N", help="For raw-counts.")
@click.option("--prevalence", type=float, metavar="P", help="For max-accuracy: the part that are members.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Draws the split.")
@click.option("--score", metavar="NAME", help="CSV column of the scores.")
@click.option("--member", metavar="NAME", help="CSV column that is 1 for members.")
@click.option("--in", "inside", metavar="NAME", help="Column or array of the members' scores.")
@click.option("--out", "outside", metavar="NAME", help="Column or array of the others' scores.")
@click.option("--json", "json_path", type=click.Path(), metavar="OUT", help="Write the result as JSON.")
@click.option(
    "--plot", "plot_path", type=click.Path(), metavar="OUT.svg", help="Draw the ROC of the attack (svg, png)."
)
@click.option("--report", metavar="FOLDER", help="Write a page about the result there, its figures and its JSON.")
def audit_scores_command(
    file: str,
    claim_json: str | None,
    methods: tuple[str, ...],
    threshold: str | None,
    guesses: tuple[int, int] | None,
    fpr: tuple[float, ...],
    score: str | None,
    member: str | None,
    inside: str | None,
    outside: str | None,
    json_path: str | None,
    plot_path: str | None,
    report: str | None,
    **options: Any,
) -> int:
    """Certify a lower bound on epsilon from the membership scores in FILE (.csv, .json, .npy, .npz).

    CSV: columns score and member, or in and out. JSON: {"in": [...], "out": [...]}, or counts {"tp", "fp", "tn", "fn"}.
    Ends with 1 where the claim is refuted, with 2 for input that cannot be used.
    """
    from dpaudit.scores import audit_scores
    from dpaudit.scores.files import read_scores

    if plot_path:
        check_writable("--plot", plot_path)
    folder = None if report is None else report_folder(report)
    loaded = read_scores(file, score=score, member=member, inside=inside, outside=outside)
    if fpr:
        options["fpr"] = fpr
    result = audit_scores(
        loaded.in_scores,
        loaded.out_scores,
        counts=loaded.counts,
        claim=stated_claim(claim_json),
        methods=None if not methods else "all" if methods == ("all",) else methods,
        threshold=_threshold(threshold),
        guesses=guesses or None,
        **options,  # named as there
    )
    if json_path:
        with writing("--json", json_path):
            result.save(json_path)
    show(str(result))
    if plot_path or folder is not None:
        from dpaudit.report.account import write_page

        if plot_path:
            with writing("--plot", plot_path):
                result.plot("roc").save(plot_path)
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
def audit_training_command(
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
    from dpaudit.training.coins import plan_of, supervised

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
