"""What each command is given: its arguments and options, in the order of its help, and its help.

They stand in groups, in the order in which users need them; the first sentence of each fits the list of commands in 80
columns. What a command does is the function of its name in its `home`, a module that loads when it is called.
"""

from typing import Literal

import click

from dpaudit.cli.options import ONE, POINTS, CommandLine, argument, asked, option
from dpaudit.report import FORMATS


class AuditCommand(CommandLine, group="Audits"):
    """Audit one function, without a spec file.

    MODULE:FUNCTION is imported from this folder, or from where it is installed, and called as f(data, rng). Neighbours
    are made of one example dataset (--data), or are the two of --pair. Ends with 1 where the claim is refuted, with 0
    where it is not: that is no proof that it holds.
    """

    function: str = argument("MODULE:FUNCTION")
    data: str | None = option("One dataset, as JSON, or the MODULE:FUNCTION that returns it.", "JSON")
    pair: str | None = option("Two neighbours: '[FIRST, SECOND]', or the MODULE:FUNCTION that returns them.", "JSON")
    epsilon: float | None = option("The claimed epsilon; with --delta, (epsilon, delta)-DP.", "E")
    delta: float | None = option("The claimed delta.", "D")
    claim: str | None = option("Any other claim, as in a spec: '{\"mu\": 1.0}'.", "JSON")
    relation: str | None = option("Who is a neighbour; add_or_remove_one of --data if left out.", "WORD")
    params: tuple[str, ...] = option("A keyword of the function; may be repeated.", "NAME=VALUE", flag="--param")
    runs: float | None = asked(about=ONE)
    confidence: float | None = asked("C", ONE)
    seed: int | None = asked(about=ONE)
    isolation: str | None = asked("MODE")
    report: str | None = option("Write the record and a page of it into DIR.", "DIR")
    jobs: int | None = option("Workers; -1, the default, for all processors.", "N")
    no_progress: bool = option("Say nothing while it runs.")


class RunCommand(CommandLine, group="Audits", home="suite"):
    """Run the audits of spec files.

    Of a folder all spec files are run. Options go before the spec, the spec before [tool.dpaudit] in ./pyproject.toml.

    A run that was killed or interrupted goes on with --resume: nothing of it is lost, and nothing is counted twice.
    """

    paths: tuple[str, ...] = argument("PATH...", required=True)
    report: str | None = option("Write a JSON for each result, and a report of them all, into DIR.", "DIR")
    formats: str | None = option("Formats of the report: json,md,html by default.", "NAME,...", flag="--format")
    confidence: float | None = asked("C")
    seed: int | None = asked()
    runs: float | None = asked()
    controls: int | None = asked()
    jobs: int | None = option("Workers; -1, the default, for all processors.", "N")
    backend: str | None = option("A joblib backend, instead of the one that fits the work.", "NAME")
    isolation: str | None = asked("MODE")
    tags: tuple[str, ...] = option("Only audits with this tag; may be repeated.", "WORD", flag="--tag")
    only: tuple[str, ...] = option("Only the audit of this name; may be repeated.", "NAME")
    ledger: str | None = option("Record results and shards here; .dpaudit/ledger.sqlite by default.", "FILE")
    no_ledger: bool = option("Record nothing: a run that is killed is lost.")
    resume: bool = option("Go on with the newest run of these specs that was not finished.")
    accepted: str | None = option("Findings that were reviewed; dpaudit-accepted.toml where there is one.", "FILE")
    no_progress: bool = option("Say nothing while the audits run.")
    quiet: bool = option("Print the closing line only; implies --no-progress.")


class PlanCommand(CommandLine, group="Audits"):
    """Show what `run` would do, and what it could catch.

    Claims, pairs, runs of each stage, and the smallest loss that would be caught. Imports no mechanism and runs none,
    unless its claim is not in the spec, the time is asked for with --probe, or a look at outputs with --look: also
    where the runs are too few to refute the claim.
    """

    paths: tuple[str, ...] = argument("SPEC...", required=True)
    confidence: float | None = asked("C")
    runs: float | None = asked()
    tags: tuple[str, ...] = option("Only audits with this tag; may be repeated.", "WORD", flag="--tag")
    controls: int | None = asked()
    probe: bool = option("Run each mechanism for a moment, to say how long its audit would take.")
    look: bool = option("Run each mechanism, and tell what its runs see: no claim, no verdict.")
    jobs: int = option("Workers that the time is told for; -1 for all.", "N", default=-1)


class ValidateCommand(CommandLine, group="Audits", home="plan"):
    """Check spec files without running them.

    Of a folder all spec files are checked. A mechanism is imported only beside a stored proof, in another process.
    """

    paths: tuple[str, ...] = argument("PATH...")
    schema: Literal["spec", "result", "suite"] | None = option("Print the JSON Schema of a file format instead.")


class RecheckCommand(CommandLine, group="Results"):
    """Check a stored result, or repeat it on new runs.

    The arithmetic of RESULT.json is repeated from its counts, with --fresh its witness on new runs. With --ledger,
    check that no recorded result was changed, taken out or put in; RESULT.json may then be left out. A file that its
    own numbers contradict, and a chain that does not hold, are refused (2); fresh runs that give another verdict end
    with 1, and so does an attestation that does not hold with --key. A result of a Python call is repeated where it
    names a function of a module in this folder. Of several files the worst code counts: 2, 1, 3, 0.
    """

    results: tuple[str, ...] = argument("[RESULT.json]...", type=click.Path())
    fresh: bool = option("Run the witness again, on new runs of what its spec file or it names.")
    seed: int | None = option("Seed of the fresh runs; the stored one plus 1 by default.", "N")
    jobs: int = option("Workers for the fresh runs; -1 for all processors.", "N", default=-1)
    no_progress: bool = option("Say nothing while the fresh runs are made.")
    key: str | None = option("A public key that must have attested RESULT.json, in the file beside it.", "FILE")
    ledger: str | None = option("Follow the chain of this ledger; RESULT.json must be in it, if given.", "FILE")
    head: str | None = option("A head of the ledger that was written down: does it lead there still?", "ROWS:HASH")


class ReportCommand(CommandLine, group="Results"):
    """Write stored results in other formats.

    RESULT is the file of a result, a suite.json, or a folder of a report. A file that its own numbers contradict is
    refused (2). Of a folder that holds a suite.json, this is read; of another, all results in it. Results without a
    suite are reported as if no violation had been expected of them. A file that was read is never written over. A
    result of audit-training is printed, or becomes its page in --output.
    """

    results: tuple[str, ...] = argument("RESULT...", required=True)
    formats: str = option(f"One or more of {', '.join(FORMATS)}.", "NAME[,NAME...]", flag="--format", shown="txt")
    output: str | None = option(
        "A file for one format, a folder for several and for html; standard output if not given, or -.", "PATH"
    )


class HistoryCommand(CommandLine, group="Results"):
    """List the recorded results of a mechanism.

    MECHANISM is an audit's name, a mechanism's reference, or a fingerprint. A bound of more runs, or of a lower
    confidence, is a higher one: compare rows whose question is the same.
    """

    mechanism: str = argument("MECHANISM")
    ledger: str | None = option("The ledger; otherwise that of [tool.dpaudit], or .dpaudit/ledger.sqlite.", "FILE")
    figure: str | None = option("Draw the bound over time into a .svg or .png file.", "FILE")
    form: Literal["table", "csv", "json"] = option("How the results are printed.", flag="--format", shown="table")


class CompareCommand(CommandLine, group="Results", home="history"):
    """Say what changed between two results or reports.

    OLD and NEW are each a result, a suite, a report folder, a ledger, or a commit in a ledger. A regression is a claim
    that became refuted, a bound that rose beyond noise, or a verdict that is not there any more. With --rerun, an old
    event whose spec file is here is counted on fresh runs, and rose where they show that it loses more than it did:
    that needs no margin for what search may miss. Ends with 5 where the two have no audit in common, unless nothing is
    to fail.
    """

    old: str = argument("OLD")
    new: str = argument("NEW")
    fail_on: Literal["regression", "any", "never"] = option(
        "What ends with 1: a regression, or any change beyond noise.", shown="regression"
    )
    ledger: str | None = option("Where commits are looked up; otherwise as for dpaudit history.", "FILE")
    rerun: bool = option("Run the old events again, on fresh runs of the code that is here.")
    jobs: int = option("Workers for --rerun; -1 for all processors.", "N", default=-1)


class AcceptCommand(CommandLine, group="Results", home="history"):
    """Accept a finding, for a reason and until a day.

    FINDING is the file of a refuted result, or a fingerprint in the ledger. The finding is matched by its fingerprint
    (mechanism, claim, class of pair and event) and stays refuted in every report. When its last day is over, the audits
    fail again.
    """

    finding: str = argument("FINDING")
    reason: str = option("Why this finding is accepted; people will read it.", "TEXT", required=True)
    until: str = option("The last day, as 2026-03-01; from then on it fails again.", "DATE", required=True)
    accepted: str | None = option("The file; otherwise that of [tool.dpaudit], or dpaudit-accepted.toml.", "FILE")
    ledger: str | None = option("Where fingerprints are looked up; otherwise as for dpaudit history.", "FILE")


class AttestCommand(CommandLine, group="Results", home="recheck"):
    """Sign results, or check a signature.

    RESULT is the file of a result, a suite.json or a folder of a report. An attestation is an in-toto statement in a
    DSSE envelope: the digest of each file, and its question, witness, counts, certificate, verdict, health, environment
    and source digest. It shows that the holder of the key says so. One more is added to a file that holds some. The
    password of an encrypted key is asked for, or taken from DPAUDIT_KEY_PASSWORD. Exit codes: 0 signed, or it holds; 1
    it does not hold; 2 a file is not what it should be, or contradicts its own counts.
    """

    results: tuple[str, ...] = argument("RESULT...", required=True)
    key: str = option(
        "A key in PEM (Ed25519, ECDSA, RSA): the private one that signs; with --verify the public one.",
        "FILE",
        required=True,
    )
    attestation: str | None = option("Sign nothing: check whether this attestation holds.", "FILE", flag="--verify")
    output: str | None = option("Where the attestation goes; RESULT.intoto.jsonl if not given.", "FILE")
    ledger: str | None = option("Bind the head of this ledger's chain too, or ask if it still leads there.", "FILE")


class BracketCommand(CommandLine, group="Upper bounds and proofs"):
    """Bound a mechanism from above and below.

    TARGET is an entry of the catalogue, or module:function. Reads its source, compares it with what runs once it is
    imported, looks for a proof and for exact losses, and audits it; it is imported in processes of its own. Exit codes:
    0 proved or pinned, 1 refuted, 3 open; a loss that is known of one pair alone is open.
    """

    target: str = argument("TARGET")
    claim: str | None = option("The claim: a number, or a formula in the parameters such as 2*eps.", "EPS")
    delta: float = option("With a number as the claim: (EPS, D)-DP.", "D", default=0.0)
    adjacency: str | None = option("all-differ, one-differs, monotone, or one way: up, down.", "WORD")
    params: tuple[str, ...] = option("A parameter; may be repeated.", "NAME=VALUE", flag="--param")
    answers: int | None = option("Number of query answers, where no proof is for any number.", "N")
    pair: str | None = option("Two datasets: '[[0, 0], [1, -1]]'; left out: the worst that is found.", "JSON")
    runs: float = option("Executions of the audit; 0: none.", "N", default=1_000_000)
    max_time: float = option("Seconds that all of it may take.", "S", default=60.0)
    confidence: float = option("Confidence of the audit.", "C", default=0.999)
    seed: int = option("Seed of the audit.", "N", default=0)
    jobs: int = option("Workers; -1, the default, for all processors.", "N", default=-1)
    save: str | None = option("Write the proof to a file that `dpaudit check-proof` reads.", "CERT")
    as_json: bool = option("Print the bracket as JSON.", flag="--json")


class CheckProofCommand(CommandLine, group="Upper bounds and proofs", home="bracket"):
    """Check a stored proof and say what it shows.

    For which inputs, too, and which obligations were discharged. The program is read from the certificate, never run.
    Exit codes: 0 accepted, 1 rejected, 2 not a proof at all. An accepted proof bounds the loss by its cost; where that
    is above the claim the claim is open, and the code 3.
    """

    certificate: str = argument("CERT", type=click.Path())


class SweepCommand(CommandLine, group="Research"):
    """Audit a grid of mechanisms, claims and runs.

    The grids are the [sweep] tables of a spec file. A refuted claim is a row like any other. Ends with 0 where every
    point has a verdict, and with 3 where one has none. Points that the ledger holds, for the same question and code,
    are not run again: an interrupted sweep goes on.
    """

    spec: str = argument("SPEC")
    report: str | None = option("Write the table (CSV), its figures and a page about them into DIR.", "DIR")
    runs: float | None = asked(about=POINTS)
    seed: int | None = asked(about=POINTS)
    confidence: float | None = asked("C", POINTS)
    jobs: int | None = option("Workers; -1, the default, for all processors.", "N")
    backend: str | None = option("A joblib backend, instead of the one that fits the work.", "NAME")
    isolation: str | None = asked("MODE")
    ledger: str | None = option("Record results here, and take from here those that are there already.", "FILE")
    no_ledger: bool = option("Record nothing, and run every point.")
    no_progress: bool = option("Say nothing while the points run.")
    quiet: bool = option("Print the closing lines only; implies --no-progress.")


class CatalogueCommand(CommandLine, group="Research"):
    """List mechanisms of the literature, with mistakes.

    By topic, each with its twins, and attacks; or describe the one called NAME. Words choose among them: those stay
    that have every WORD in their name, title, topic, formula, claim or verdict.
    """

    words: tuple[str, ...] = argument("[NAME | WORD...]")


class AuditScoresCommand(CommandLine, group="Private training", home="scores"):
    """Bound epsilon by the scores of an attack.

    The membership scores are in FILE (.csv, .json, .npy, .npz). CSV: columns score and member, or in and out. JSON:
    {"in": [...], "out": [...]}, or counts {"tp", "fp", "tn", "fn"}. Ends with 1 where the claim is refuted, with 2 for
    input that cannot be used.
    """

    file: str = argument("FILE")
    epsilon: float | None = option("The claimed epsilon; with --delta, (epsilon, delta)-DP.", "E")
    claim_json: str | None = option('Any claim: \'{"form": "GaussianDP", "mu": 1.0}\'.', "JSON", flag="--claim")
    delta: float | None = option("The delta at which epsilon is bounded; 0 by default.", "D")
    confidence: float = option(metavar="C", shown=0.95)
    methods: tuple[str, ...] = option("A method, or all; the certified by default.", "NAME", flag="--method")
    design: str = option("many-run, or one-run (fair coins).", shown="many-run")
    threshold: str | None = option("A threshold known before the scores, or all (each paid for).", "T")
    split: float | None = option("Part of the scores that chooses the threshold; 0.25.", "PART")
    splits: int | None = option("Median over N splits.", "N")
    guesses: tuple[int, int] | None = option("Numbers of guesses, fixed before (one-run).", "IN OUT", nargs=2, type=int)
    event: str | None = option("in, out or both: the guesses that a given threshold compares.")
    interval: str = option("lower, upper or two-sided.", shown="lower")
    seed: int = option("Draws the split.", "N", shown=0)
    score: str | None = option("CSV column of the scores.", "NAME")
    member: str | None = option("CSV column that is 1 for members.", "NAME")
    inside: str | None = option("Column or array of the members' scores.", "NAME", flag="--in")
    outside: str | None = option("Column or array of the others' scores.", "NAME", flag="--out")
    json_path: str | None = option("Write the result as JSON.", "OUT", flag="--json", type=click.Path())
    plot_path: str | None = option(
        "Draw the ROC of the attack (svg, png).", "OUT.svg", flag="--plot", type=click.Path()
    )
    report: str | None = option("Write a page about the result there, its figures and its JSON.", "FOLDER")


class AuditTrainingCommand(CommandLine, group="Private training", home="scores"):
    """Bound the loss of a training, with canaries in it.

    MODULE:FUNCTION is called as f(included, rng). Each training runs in a process of its own. Ends with 1 where the
    claim is refuted, with 0 where it is not, with 3 where a training breaks or its scores say nothing, and with 2 for a
    question that cannot be asked.
    """

    reference: str = argument("MODULE:FUNCTION")
    canaries: int = option("Canaries of one training.", "N", required=True)
    trainings: int = option("Trainings, at most.", "K", shown=1)
    steps: int | None = option("Audit the claim of one step: T steps a training.", "T")
    compose: int | None = option("Steps that are composed to a run; those of --steps by default.", "T")
    sample_rate: float = option("At which train lets canaries join a step.", "Q", default=1.0)
    mu: float | None = option("The claimed mu of Gaussian differential privacy.", "M")
    epsilon: float | None = option("The claimed epsilon; with --delta, (epsilon, delta)-DP.", "E")
    delta: float | None = option("The delta at which epsilon is bounded.", "D")
    claim_json: str | None = option('Any claim: \'{"form": "GaussianDP", "mu": 1.0}\'.', "JSON", flag="--claim")
    confidence: float = option(metavar="C", shown=0.95)
    seed: int = option("Draws coins, and for train.", "N", shown=0)
    inserted: str = option("What the canaries are, for the report.", "WORDS", default="")
    not_tested: tuple[str, ...] = option("What is left out, for the report; may be repeated.", "WORDS")
    exact: bool = option("Scores that tell every coin are meant: a training without noise.")
    underpowered: bool = option("Go on where not even perfect scores could refute the claim.")
    report: str | None = option("Keep every training there, and write the report.", "FOLDER")
    resume: bool = option("Go on with the trainings that --report keeps.")
    limit_s: float | None = option("Seconds that one training may take.", "S", flag="--timeout")
    jobs: int = option("Trainings at a time.", "N", shown=1)
    no_progress: bool = option("Say nothing while it trains.")


class CalibrateCommand(CommandLine, group="For developers of dpaudit"):
    """Measure the rate of false refutations.

    Mechanisms whose loss is exactly their claim are audited again and again, and the refutations counted. Prints, for
    each claim form and certifier, the rate of false refutations at confidence 0.95 with its exact interval, and how
    much of the best possible bound is certified. Ends with 1 where a rate is above the stated one by more than chance
    explains (one time in a million a line).
    """

    full: bool = option("2,000 audits a line, as before a release; 200 without it.")
    repeats: int | None = option("Audits a line, instead.", "N")
    runs: int | None = option("Executions of each audit.", "N")
    forms: tuple[str, ...] = option("Only lines of this claim form; may be repeated.", "NAME", flag="--form")
    seed: int = option("Seed of the first audit of a line.", "N", shown=0)
    jobs: int = option("Workers; -1, the default, for all processors.", "N", default=-1)
    output: str | None = option("Write the lines as JSON too.", "FILE", flag="--json")


EVERY = tuple(CommandLine.__subclasses__())
