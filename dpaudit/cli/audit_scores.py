"""`dpaudit audit-scores`: bounds on epsilon from a file of membership-inference scores."""

from typing import Any

import click

from dpaudit.cli.options import check_writable, report_folder, show, stated_claim, writing
from dpaudit.errors import InvalidSpec


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
def command(
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
