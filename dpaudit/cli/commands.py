"""What each command is given: its arguments and options, in the order of its help, and its help.

They stand in groups, in the order in which users need them; the first sentence of each fits the list of commands in 80
columns. What a command does is the function of its name in its `home`, a module that loads when it is called.
"""

from dataclasses import dataclass
from typing import Literal

import click

from dpaudit.cli.options import ONE, POINTS, CommandLine, argument, asked, option
from dpaudit.report import FORMATS

JOBS = "Workers; -1, the default, for all processors."
TAG = "Only audits with this tag; may be repeated."
ONLY = "Only the audit of this name; may be repeated."
EPSILON = "The claimed epsilon; with --delta, (epsilon, delta)-DP."
CLAIM = 'Any claim: \'{"form": "GaussianDP", "mu": 1.0}\'.'


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReportOptions:
    """What is told of audits, and where it is kept."""

    report: str | None = option("Write each result as JSON, and a report of all, into DIR.", "DIR")
    formats: str | None = option("Formats of the report: json,md,html by default.", "NAME,...", flag="--format")
    jobs: int | None = option(JOBS, "N")
    ledger: str | None = option("Record results and shards here; .dpaudit/ledger.sqlite by default.", "FILE")
    no_ledger: bool = option("Record nothing: a run that is killed is lost.")
    accepted: str | None = option("Accepted findings; dpaudit-accepted.toml where there is one.", "FILE")
    no_progress: bool = option("Say nothing while the audits run.")
    verbose: bool = option("Print the first page of each audit, not a line.")
    quiet: bool = option("Print the closing line only; implies --no-progress.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FunctionOptions:
    """A function with its datasets and its claim."""

    function: str = argument("MODULE:FUNCTION")
    data: str | None = option("One example dataset: JSON, or the MODULE:FUNCTION that returns it.", "JSON")
    pair: str | None = option("Two neighbours: '[FIRST, SECOND]', or the MODULE:FUNCTION that returns them.", "JSON")
    epsilon: float | None = option(EPSILON, "E")
    delta: float | None = option("The claimed delta.", "D")
    claim: str | None = option("Any other claim, as in a spec: '{\"mu\": 1.0}'.", "JSON")
    relation: str | None = option("Who is a neighbour; with --data add_or_remove_one by default.", "WORD")
    params: tuple[str, ...] = option("A keyword of the function; may be repeated.", "NAME=VALUE", flag="--param")


class AuditCommand(CommandLine, FunctionOptions, group="Audits"):
    """Audit one function, without a spec file.

    MODULE:FUNCTION is imported from this folder or from where it is installed, and called as f(data, rng). Neighbours
    are made of --data, or are the two of --pair. Exit codes: 1 refuted, 0 not refuted, which is no proof.
    """

    runs: float | None = asked(about=ONE)
    confidence: float | None = asked("C", ONE)
    seed: int | None = asked(about=ONE)
    leads: str | None = asked("WORD")
    isolation: str | None = asked("MODE")
    report: str | None = option("Write the result and its page into DIR.", "DIR")
    jobs: int | None = option(JOBS, "N")
    no_progress: bool = option("Say nothing while it runs.")


class RunCommand(CommandLine, ReportOptions, group="Audits", home="suite"):
    """Run the audits of spec files.

    Of a folder all of them. An option wins over the spec, the spec over [tool.dpaudit] in ./pyproject.toml. A run that
    was killed or interrupted goes on with --resume: nothing is lost, and nothing is counted twice.
    """

    paths: tuple[str, ...] = argument("PATH...", required=True)
    confidence: float | None = asked("C")
    seed: int | None = asked()
    runs: float | None = asked()
    controls: int | None = asked()
    leads: str | None = asked("WORD")
    backend: str | None = asked("NAME")
    scheduler: str | None = asked("ADDRESS")
    isolation: str | None = asked("MODE")
    tags: tuple[str, ...] = option(TAG, "WORD", flag="--tag")
    only: tuple[str, ...] = option(ONLY, "NAME")
    resume: bool = option("Go on with the newest run of these specs that was not finished.")


class RecordCommand(CommandLine, FunctionOptions, group="Audits"):
    """Record noise, and tell what looks wrong.

    TARGET is MODULE:FUNCTION, called as f(data, rng), or a spec, whose audits are all looked at. A pair takes some 45
    runs; both datasets meet the same draws. What that tells is a lead and no verdict. Exit codes: 0, or with --leads
    fail 1 for a lead; 3 where not all noise could be recorded.
    """

    function: str = argument("TARGET")
    seed: int | None = asked(about=ONE)
    leads: Literal["tell", "fail"] = option("What a lead is for the exit code: fail for 1.", shown="tell")
    isolation: str | None = asked("MODE")
    as_json: bool = option("Print the records as JSON.", flag="--json")
    report: str | None = option("Write each record and its page into DIR.", "DIR")


class PlanCommand(CommandLine, group="Audits"):
    """Show what `run` would do, and what it could catch.

    Claims, pairs, runs of each stage, and the smallest epsilon that would be caught. No mechanism is imported or run,
    but with --probe or --look, or where its claim is not in the spec.
    """

    paths: tuple[str, ...] = argument("SPEC...", required=True)
    confidence: float | None = asked("C")
    seed: int | None = asked()
    runs: float | None = asked()
    tags: tuple[str, ...] = option(TAG, "WORD", flag="--tag")
    only: tuple[str, ...] = option(ONLY, "NAME")
    controls: int | None = asked()
    probe: bool = option(
        "Run each mechanism for a moment, and tell how long its audit takes, and what more would cost."
    )
    look: bool = option("Run each mechanism, and tell what a few runs show: no verdict.")
    jobs: int = option("Workers that the time is for; -1 for all processors.", "N", default=-1)
    core_hour: float | None = option("The price of an hour of one core, for --probe.", "PRICE")
    gpu_hour: float | None = option("The price of an hour of an accelerator, where one is at work.", "PRICE")
    freeze: str | None = option("Search now, and write what is left into PLAN, for `shard` and `merge`.", "FILE")
    parts: int | None = option("How many parts `shard` may count; with --freeze.", "N")


class ShardCommand(CommandLine, group="Audits", home="shards"):
    """Count one part of a frozen plan.

    PLAN is what `dpaudit plan SPEC --freeze PLAN --parts N` wrote; the spec and its mechanism are here as they were
    there. Parts are counted in any order, on any machines, which know nothing of each other.
    """

    plan: str = argument("PLAN", type=click.Path())
    part: str = option("Which part, from 1/N to N/N.", "K/N", required=True)
    out: str = option("The folder of the counts.", "DIR", required=True)
    key: str | None = option("A private key in PEM, which signs the part.", "FILE")
    jobs: int = option(JOBS, "N", default=-1)
    no_progress: bool = option("Say nothing while it counts.")


class MergeCommand(CommandLine, ReportOptions, group="Audits", home="shards"):
    """Make the results of a frozen plan from its parts.

    COUNTS are the parts, or folders of them. The result is that of one machine. Where a part is missing, doubled, not
    of this plan or of other code, there is none: exit code 2; 1 where a signature or a recheck does not hold.
    """

    plan: str = argument("PLAN", type=click.Path())
    counts: tuple[str, ...] = argument("COUNTS...", required=True)
    key: str | None = option("The public key that every part must be signed with.", "FILE")
    recheck: int | None = option("Run N shards again, chosen now, and compare.", "N")


class ValidateCommand(CommandLine, group="Audits", home="plan"):
    """Check spec files without running them.

    Of a folder all of them. A mechanism is imported only where a stored proof is given, in another process.
    """

    paths: tuple[str, ...] = argument("PATH...")
    schema: Literal["spec", "result", "suite"] | None = option("Print the JSON Schema of a file format instead.")


class RecheckCommand(CommandLine, group="Results"):
    """Check a stored result, or repeat it on new runs.

    Bound and verdict are computed again from the counts; with --fresh the event is counted on new runs (a result of a
    Python call needs a function of a module in this folder). With --ledger: was a recorded result changed, taken out or
    put in? Exit codes, worst first: 2 numbers that contradict each other, or a broken chain; 1 another verdict on new
    runs, or a wrong signature; 3 no verdict; 0.
    """

    results: tuple[str, ...] = argument("[RESULT.json]...", type=click.Path())
    fresh: bool = option("Count the event again, on new runs of the mechanism.")
    seed: int | None = option("Seed of the fresh runs; the stored one plus 1 by default.", "N")
    jobs: int = option("Workers for the fresh runs; -1 for all processors.", "N", default=-1)
    no_progress: bool = option("Say nothing while the fresh runs are made.")
    key: str | None = option("The public key that RESULT.json must be signed with, in the file beside it.", "FILE")
    ledger: str | None = option("Check the chain of this ledger, and that RESULT.json is in it.", "FILE")
    head: str | None = option("A head of the ledger that you wrote down: is it still in the chain?", "ROWS:HASH")


class ReportCommand(CommandLine, group="Results"):
    """Write stored results in other formats.

    RESULT is a result, a suite.json, or the folder of a report; of a folder its suite.json, or else all results.
    Without a suite, no violation is taken as expected. A result of audit-training is printed, or becomes a page in
    --output. Numbers that contradict each other are refused (2), and a file that was read is never written over. Of
    several audits md is a comment of 30 lines; in a folder report-long.md, which has all, stands beside it.
    """

    results: tuple[str, ...] = argument("RESULT...", required=True)
    formats: str = option(f"One or more of {', '.join(FORMATS)}.", "NAME[,NAME...]", flag="--format", shown="txt")
    output: str | None = option("A file, or a folder for several formats and html; by default standard output.", "PATH")


class HistoryCommand(CommandLine, group="Results"):
    """List the recorded results of a mechanism.

    MECHANISM is the name of an audit, MODULE:FUNCTION or a fingerprint. More runs or a lower confidence give a higher
    bound: compare rows of the same question.
    """

    mechanism: str = argument("MECHANISM")
    ledger: str | None = option("The ledger; by default that of [tool.dpaudit], or .dpaudit/ledger.sqlite.", "FILE")
    figure: str | None = option("Draw the bound over time into a .svg, .png or .pdf file.", "FILE")
    form: Literal["table", "csv", "json"] = option("How the results are printed.", flag="--format", shown="table")


class CompareCommand(CommandLine, group="Results", home="history"):
    """Say what changed between two results or reports.

    OLD and NEW are each a result, a suite, the folder of a report, a ledger, or a commit in a ledger. A regression is a
    claim that became refuted, a bound that rose beyond noise, or a verdict that is missing. --rerun counts old events
    on new runs, which shows smaller rises. Ends with 5 where no audit is in both, unless --fail-on never.
    """

    old: str = argument("OLD")
    new: str = argument("NEW")
    fail_on: Literal["regression", "any", "never"] = option(
        "Which changes beyond noise end with 1.", shown="regression"
    )
    ledger: str | None = option("Where commits are looked up; by default as in dpaudit history.", "FILE")
    rerun: bool = option("Count the old events again, on new runs of the code that is here.")
    jobs: int = option("Workers for --rerun; -1 for all processors.", "N", default=-1)


class AcceptCommand(CommandLine, group="Results", home="history"):
    """Accept a finding, for a reason and until a day.

    FINDING is the file of a refuted result, or a fingerprint in the ledger. Findings with the same fingerprint
    (mechanism, claim, class of pair and event) stay refuted in every report, and fail again when the day is over.
    """

    finding: str = argument("FINDING")
    reason: str = option("Why it is accepted, for people to read.", "TEXT", required=True)
    until: str = option("The last day, such as 2026-03-01.", "DATE", required=True)
    accepted: str | None = option("The file; by default that of [tool.dpaudit], or dpaudit-accepted.toml.", "FILE")
    ledger: str | None = option("Where fingerprints are looked up; by default as in dpaudit history.", "FILE")


class AttestCommand(CommandLine, group="Results", home="recheck"):
    """Sign results, or check a signature.

    RESULT is a result, a suite.json or the folder of a report. The attestation is an in-toto statement in a DSSE
    envelope: digest, question, counts, verdict and environment of each file. It is added to those that --output holds.
    The password of an encrypted key is asked for, or read from DPAUDIT_KEY_PASSWORD. Exit codes: 0 signed, or the
    signature holds; 1 it does not; 2 a file is not what it should be, or contradicts its own counts.
    """

    results: tuple[str, ...] = argument("RESULT...", required=True)
    key: str = option("A key in PEM: the private one to sign, the public one to --verify.", "FILE", required=True)
    attestation: str | None = option("Sign nothing: check this attestation.", "FILE", flag="--verify")
    output: str | None = option("Where the attestation goes; by default RESULT.intoto.jsonl.", "FILE")
    ledger: str | None = option("Sign the head of this ledger too, or check that it is still in the chain.", "FILE")


class BracketCommand(CommandLine, group="Upper bounds and proofs"):
    """Bound a mechanism from above and below.

    TARGET is an entry of the catalogue, or MODULE:FUNCTION. Its source is read, proofs and exact losses are looked
    for, and it is audited, in processes of its own. Exit codes: 0 proved or pinned, 1 refuted, 3 open, as where the
    loss of one pair alone is known.
    """

    target: str = argument("TARGET")
    claim: str | None = option(
        "The claim: a number, a formula in the parameters such as 2*eps, or any other, as in a spec: '{\"mu\": 1.0}'.",
        "EPS",
    )
    delta: float = option("With a number as the claim: (EPS, D)-DP.", "D", default=0.0)
    adjacency: str | None = option(
        "Of answers: all-differ, one-differs, monotone, or one way: up, down. Of records: add_or_remove_one, "
        "replace_one, add_or_remove_user.",
        "WORD",
    )
    params: tuple[str, ...] = option("A parameter; may be repeated.", "NAME=VALUE", flag="--param")
    answers: int | None = option("Number of query answers, where no proof holds for any number.", "N")
    pair: str | None = option("Two datasets: '[[0, 0], [1, -1]]'; by default the worst that is found.", "JSON")
    runs: float = option("Runs of the audit; 0 for none.", "N", default=1_000_000)
    max_time: float = option("Seconds for all of it.", "S", default=60.0)
    confidence: float = option("Confidence of the audit.", "C", default=0.999)
    seed: int = option("Seed of the audit.", "N", default=0)
    jobs: int = option(JOBS, "N", default=-1)
    explain: bool = option("Say how: the steps of the proof with what each costs, or the case that is in the way.")
    save: str | None = option("Write the proof to a file that `dpaudit check-proof` reads.", "CERT")
    as_json: bool = option("Print the bracket as JSON.", flag="--json")


class CheckProofCommand(CommandLine, group="Upper bounds and proofs", home="bracket"):
    """Check a stored proof and say what it shows.

    It says for which inputs the proof holds, and what was checked. The program is read from CERT and never run. Exit
    codes: 0 accepted, 1 rejected, 2 no proof at all, 3 accepted, but its bound is above the claim.
    """

    certificate: str = argument("CERT", type=click.Path())


class SweepCommand(CommandLine, group="Research"):
    """Audit a grid of mechanisms, claims and runs.

    The grids are the [sweep] tables of a spec file. Ends with 0 where every point has a verdict, refuted or not, and
    with 3 where one has none. Points that the ledger holds are not run again: an interrupted sweep goes on.
    """

    spec: str = argument("SPEC")
    report: str | None = option("Write the table (CSV), its figures and a page about them into DIR.", "DIR")
    runs: float | None = asked(about=POINTS)
    seed: int | None = asked(about=POINTS)
    confidence: float | None = asked("C", POINTS)
    jobs: int | None = option(JOBS, "N")
    backend: str | None = asked("NAME")
    scheduler: str | None = asked("ADDRESS")
    isolation: str | None = asked("MODE")
    ledger: str | None = option("Record results here, and take those that it holds already.", "FILE")
    no_ledger: bool = option("Record nothing, and run every point.")
    no_progress: bool = option("Say nothing while the points run.")
    quiet: bool = option("Print the closing lines only; implies --no-progress.")


class CatalogueCommand(CommandLine, group="Research"):
    """List mechanisms of the literature, with mistakes.

    By topic, each with its broken twins. NAME describes one of them; with WORDs, those that have every one of them in
    name, title, topic, formula, claim or verdict.
    """

    words: tuple[str, ...] = argument("[NAME | WORD...]")


class AuditScoresCommand(CommandLine, group="Private training", home="scores"):
    """Bound epsilon by the scores of an attack.

    FILE (.csv, .json, .npy, .npz) has the membership scores. CSV: columns score and member, or in and out. JSON:
    {"in": [...], "out": [...]}, or counts {"tp", "fp", "tn", "fn"}. Exit codes: 1 refuted, 2 unusable input, 0.
    """

    file: str = argument("FILE")
    epsilon: float | None = option(EPSILON, "E")
    claim_json: str | None = option(CLAIM, "JSON", flag="--claim")
    delta: float | None = option("The delta at which epsilon is bounded; 0 by default.", "D")
    confidence: float = option(metavar="C", shown=0.95)
    methods: tuple[str, ...] = option(
        "A method, or all; may be repeated. Certified by default.", "NAME", flag="--method"
    )
    design: str = option("many-run, or one-run (fair coins).", shown="many-run")
    threshold: str | None = option("A threshold fixed before the scores, or all (each is paid for).", "T")
    split: float | None = option("Part of the scores that chooses the threshold; 0.25 by default.", "PART")
    splits: int | None = option("Median over N splits.", "N")
    guesses: tuple[int, int] | None = option("Numbers of guesses, fixed before (one-run).", "IN OUT", nargs=2, type=int)
    event: str | None = option("in, out or both: the guesses that a given threshold compares.")
    interval: str = option("lower, upper or two-sided.", shown="lower")
    seed: int = option("Seed of the split.", "N", shown=0)
    score: str | None = option("CSV column of the scores.", "NAME")
    member: str | None = option("CSV column that is 1 for members.", "NAME")
    inside: str | None = option("Column or array of the members' scores.", "NAME", flag="--in")
    outside: str | None = option("Column or array of the others' scores.", "NAME", flag="--out")
    json_path: str | None = option("Write the result as JSON.", "OUT", flag="--json", type=click.Path())
    plot_path: str | None = option("Draw the ROC (.svg, .png, .pdf).", "OUT", flag="--plot", type=click.Path())
    report: str | None = option("Write the page of the result, its figures and its JSON into DIR.", "DIR")


class AuditTrainingCommand(CommandLine, group="Private training", home="scores"):
    """Bound the loss of a training, with canaries in it.

    MODULE:FUNCTION is called as f(included, rng), each training in a process of its own. Exit codes: 1 refuted, 0 not
    refuted, 3 a training broke or its scores say nothing, 2 a question that cannot be asked.
    """

    reference: str = argument("MODULE:FUNCTION")
    canaries: int = option("Canaries of one training.", "N", required=True)
    trainings: int = option("Trainings, at most.", "K", shown=1)
    steps: int | None = option("Audit the claim of one step: T steps a training.", "T")
    compose: int | None = option("Steps of a whole run; those of --steps by default.", "T")
    sample_rate: float = option("Rate at which canaries join a step.", "Q", default=1.0)
    mu: float | None = option("The claimed mu of Gaussian differential privacy.", "M")
    epsilon: float | None = option(EPSILON, "E")
    delta: float | None = option("The delta at which epsilon is bounded.", "D")
    claim_json: str | None = option(CLAIM, "JSON", flag="--claim")
    confidence: float = option(metavar="C", shown=0.95)
    seed: int = option("Seed of the coins, and of the rng of the function.", "N", shown=0)
    inserted: str = option("What the canaries are, for the report.", "WORDS", default="")
    not_tested: tuple[str, ...] = option("What is left out, for the report; may be repeated.", "WORDS")
    exact: bool = option("Allow scores that tell every coin, as of a training without noise.")
    underpowered: bool = option("Go on although not even perfect scores could refute the claim.")
    report: str | None = option("Keep every training in DIR, and write the report there.", "DIR")
    resume: bool = option("Go on with the trainings that --report keeps.")
    limit_s: float | None = option("Seconds that one training may take.", "S", flag="--timeout")
    jobs: int = option("Trainings at a time.", "N", shown=1)
    no_progress: bool = option("Say nothing while it trains.")


class CalibrateCommand(CommandLine, group="For developers of dpaudit"):
    """Measure the rate of false refutations.

    Mechanisms whose loss is exactly their claim are audited again and again, and the refutations counted: a line for
    each claim form and certifier, with the rate at confidence 0.95, its exact interval, and how much of the best
    possible bound is certified. Ends with 1 where a rate is too high for chance (one in a million a line).
    """

    full: bool = option("2,000 audits a line, as before a release, not 200.")
    repeats: int | None = option("So many audits a line.", "N")
    runs: int | None = option("Runs of each audit.", "N")
    forms: tuple[str, ...] = option("Only lines of this claim form; may be repeated.", "NAME", flag="--form")
    seed: int = option("Seed of the first audit of a line.", "N", shown=0)
    jobs: int = option(JOBS, "N", default=-1)
    output: str | None = option("Write the lines as JSON too.", "FILE", flag="--json")


EVERY = tuple(CommandLine.__subclasses__())
