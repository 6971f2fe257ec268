"""The account of an audit: what was found, what to do and how to repeat it; then all that was done, part by part."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dpaudit.account.diagnosis import BITS, diagnosis
from dpaudit.account.first import BEFORE, AuditFacts, cause, finding_lines, or_else, to_do
from dpaudit.account.officer import BEYOND, before, expectation, in_plain_words, missing, record, too_rare
from dpaudit.account.recorded import drawn, of_audit, out
from dpaudit.account.repeat import python_form, repeat, repeatable, repetition
from dpaudit.account.section import Account, Level, Topic, account
from dpaudit.account.statements import (
    LIMITS,
    at_delta,
    bet_lines,
    bracket_line,
    bracket_lines,
    certified,
    confidence,
    control_lines,
    could_see,
    ending_lines,
    headline,
    health_lines,
    implied,
    meaning,
    not_looked_at,
    other_lines,
    representation_lines,
    stamp,
    supposed,
    unit_lines,
)
from dpaudit.account.tables import CONTENTS, table
from dpaudit.base.numerals import bound, confidence_text, counted, level_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, clean, data_text
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.claims import Relation
from dpaudit.events import Partition
from dpaudit.results.display import Verdict
from dpaudit.results.observations import LINES, Explanation
from dpaudit.results.result import AuditResult, crossed, part_of
from dpaudit.results.suite import SuiteEntry

AUDIT = "Audit of a differential privacy claim"
OR_ELSE = "or else"
MODELS = {
    "local": "of the local model: nobody but the person sees the record before it is randomised",
    "central": "of the central model: somebody trusted holds the dataset and runs the mechanism",
}
Told = TypeVar("Told")
MOST_NAMES = 12  # of one kind that a sentence lists
MOST_POINTS = 8  # of a curve


def tone(result: AuditResult | None, entry: SuiteEntry | None = None) -> str:
    """How a verdict is shown: `refuted`, `kept` or `none`; a finding that somebody answers for is `accepted`."""
    if result is None:
        return "none"
    if result.verdict is not Verdict.REFUTED:
        return "refuted" if result.representation_refuted else "kept"
    return "accepted" if entry is not None and entry.covered else "refuted"


def explanation(result: AuditResult) -> Explanation:
    """The explanation of a result, from what is stored in it: the same after it was saved and loaded.

    >>> from tests.golden import example
    >>> print(explanation(example.result()).lines()[1])
    first  9.51, 9.62, 9.84, 10.4
    """
    return replace(examples(result), account=str(account(result)))


def of_facts(facts: AuditFacts, up_to: Level = Level.REVIEWER) -> Account:
    """The account of an audit, with what the author of its spec knows of it."""
    return Account.of(AUDIT, tone(facts.result, facts.entry), TOPICS, facts, up_to, stamp(facts.result))


def examples(result: AuditResult) -> Explanation:
    """Typical outputs, and the cause: what an explanation holds beside the account."""
    typical = result.illustration.typical
    inside, hits, runs = (((), ()), (0, 0), (0, 0)) if typical is None else (typical.inside, typical.hits, typical.runs)
    return Explanation(cause(result), *inside, hits, runs, diagnosis(result))


@account.register
def _of_result(result: AuditResult, up_to: Level = Level.REVIEWER) -> Account:
    return of_facts(AuditFacts(result), up_to)


# --- what was certified, and of what ---


def _level(facts: AuditFacts) -> tuple[str, ...]:
    """The rule, and how often it is wrong: both stand nowhere else on the page."""
    result = facts.result
    certificate, finding = result.certificate, result.representation
    limit, statements = level_text(error_probability(certificate.confidence)), 1 if finding is None else 2
    error = p_text(min(1.0, statements * error_probability(confidence(result))))  # that on bits has a level of its own
    by, level = "" if finding is None else ", by values or by bits,", confidence_text(confidence(result))
    keeps = f"a mechanism that keeps its claim is refuted{by} with probability at most {error}{supposed(result)}"
    first = f"confidence {level}; p-value at most {p_text(certificate.p_value)}, and {limit} or less refutes"
    bits: tuple[str, ...] = ()
    if finding is not None and finding.certificate.refuted:
        bits = (f"by bits: p-value at most {p_text(finding.certificate.p_value)}, a finding with a level of its own",)
    if result.refuted:
        return (first, keeps, *unit_lines(result), *bits)
    no_level = "the confidence belongs to the bound: a claim that is not refuted gets none from it"
    return (*bits, *([keeps] if bits else []), first, no_level)


def _claim(facts: AuditFacts) -> tuple[str, ...]:
    result = facts.result
    stated = result.spec["claim"]
    model = "local" if stated["relation"] == Relation.LOCAL.value else "central"
    relation = f"; relation {stated['relation']}, {MODELS[model]}" if stated["relation"] else ""
    lines = [f"{_claim_words(stated)}{relation}"]
    if result.distance > 1:
        lines.append(f"for datasets {result.distance:,} steps apart that is {_claim_words(result.claim.to_dict())}")
    return tuple(lines)


def _claim_words(stored: dict[str, Any]) -> str:
    """The form and its numbers: `ApproximateDP(epsilon=1, delta=1e-06)`."""
    values = [f"{key}={exact(value)}" for key, value in stored.items() if isinstance(value, float)]
    values += [f"{key}={_curve(value)}" for key, value in stored.items() if isinstance(value, list)]
    return f"{stored['form']}({', '.join(values)})"


def _curve(points: list[list[float]]) -> str:
    """The points of a curve; where there are many, the first and the last of them."""
    texts = [f"({', '.join(exact(number) for number in point)})" for point in points]
    if len(texts) <= MOST_POINTS:
        return f"[{', '.join(texts)}]"
    half = MOST_POINTS // 2
    return f"[{', '.join(texts[:half])}, ..., {', '.join(texts[-half:])}: {len(texts):,} points]"


def _mechanism(facts: AuditFacts) -> tuple[str, ...]:
    result = facts.result
    stored, provenance = result.spec["mechanism"], result.provenance
    lines = [f"{clean(stored['name'])} ({clean(stored['kind'])})"]
    if stored["reference"]:
        lines[0] += f", {clean(stored['reference'])}"
    if stored["parameters"]:
        lines.append("parameters " + ", ".join(f"{clean(k)} = {clean(v)}" for k, v in stored["parameters"].items()))
    if provenance.get("file"):
        line = f", line {provenance['line']}" if provenance.get("line") else ""
        digest = f", digest {clean(stored['digest'])}" if stored["digest"] else ""
        lines.append(f"source {clean(provenance['file'], LONGEST_DATA)}{line}{digest}")
    return tuple(lines)


def _event(facts: AuditFacts) -> tuple[str, ...]:
    result = facts.result
    pair, event, reasons = result.pair, result.witness.event, result.provenance.get("reasons", {})
    what = "the partition into" if isinstance(event, Partition) else "the event"
    return (
        f"{what} {clean(event, LONGEST_DATA)}{meaning(result)}",
        f'which search took to be likelier on the {result.witness.p_side} dataset of the pair "{clean(pair["name"])}":',
        f"first   {data_text(pair['first'])}",
        f"second  {data_text(pair['second'])}",
        *([f"why     {clean(reasons[pair['name']], LONGEST_DATA)}"] if pair["name"] in reasons else []),
        *ending_lines(result),
    )


def evidence_lines(result: AuditResult) -> tuple[str, ...]:
    """The counts of either side."""
    e, sides = result.evidence, result.main.sides
    if isinstance(e, Binned):
        return tuple(
            f"{name:<7} {', '.join(f'{count:,}' for count in counts)} of {runs:,} runs, bin by bin"
            for name, (counts, runs) in sides.items()
        )
    if e.runs == 0:
        return ("none beyond the bets: they refuted the claim before any run was counted for a fixed bound",)
    widths = [max(len(f"{number:,}") for number in column) for column in zip(*sides.values(), strict=True)]
    lines = [
        f"{name:<7} {hits:>{widths[0]},} of {runs:>{widths[1]},} runs in the event"
        + (f" ({hits / runs:.4g})" if runs else "")
        for name, (hits, runs) in sides.items()
    ]
    if math.isfinite(e.estimate):
        lines.append(f"the plain log ratio of these rates is {e.estimate:.4f}: an estimate, never a bound")
    return tuple(lines)


def _bound(facts: AuditFacts) -> tuple[str, ...]:
    """The bound to six digits, what it implies, and how it was come by."""
    result = facts.result
    bets = "each bet" if result.stopped_early else "bet or witness"
    fresh = f"runs made after {bets} was frozen" if result.blocks else "fresh runs of a frozen witness"
    model = result.model_based
    meant = "" if model is None else f"epsilon {model['epsilon']:.4g} at delta {exact(model['delta'])}"
    return (
        f"to six digits {certified(result, digits=6)}",
        *implied(result.claim, result.certificate),
        *([] if model is None else [f"model-based, no bound: if {model['model']}, mu_lower would mean {meant}"]),
        f"by {clean(result.certificate.method, LONGEST_DATA)}, on {fresh}",
    )


def _cross_check(facts: AuditFacts) -> tuple[str, ...]:
    result = facts.result
    check = crossed(result)
    if check is None or not result.evidence.runs:  # there is nothing to check in no runs
        return ()
    if isinstance(check, str):
        return (f"not made: {clean(check)}; the verdict and the bound do not depend on it",)
    lower = bound(check, digits=6)
    return (f"epsilon >= {lower}{at_delta(result.certificate.delta)} by two Clopper-Pearson intervals (statsmodels)",)


def _search(facts: AuditFacts) -> tuple[str, ...]:
    result = facts.result
    witnesses = counted(len(result.others) + 1, "witness", "witnesses")
    runs, pairs = counted(result.spec["runs"], "run"), counted(len(result.spec["pairs"]), "pair")
    fixed, bets = result.certifying_runs, sum(block.evidence.runs for block in result.blocks)
    use = f"{bets:,} of them to bet on and certify" if bets else f"{fixed:,} of them to certify"
    use += f", the last {fixed:,} of these for the fixed bound" if bets and fixed else ""
    lines = [
        f"{result.runs_used:,} of {runs} used, {use}",
        f"{pairs} of datasets; {witnesses} certified, by {clean(result.witness.selector)}",
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in result.explored:
        groups.setdefault((entry.what, entry.status), []).append(clean(entry.name))
    for (what, status), names in groups.items():
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        kind = "" if names[0].startswith(f"{clean(what)} ") else f"{clean(what)} "  # no "pair pair 2"
        lines.append(f"{kind}{', '.join(names[:MOST_NAMES])}{more}: {clean(status, LONGEST_DATA)}")
    return tuple(lines)


def _bits(facts: AuditFacts) -> tuple[str, ...]:
    mend = BITS.lines if facts.result.refuted and facts.result.representation_refuted else ()
    return (*representation_lines(facts.result), *mend)


def _made_with(facts: AuditFacts) -> tuple[str, ...]:
    result = facts.result
    provenance = result.provenance
    versions = [f"{name} {clean(provenance[key])}" for key, name in _VERSIONS.items() if provenance.get(key)]
    lines = [", ".join(versions)] if versions else []
    if provenance.get("platform"):
        lines.append(f"on {clean(provenance['platform'])}")
    if provenance.get("started"):
        times = (("wall_s", "elapsed"), ("cpu_s", "of CPU"))
        spent = [f"{provenance[key]:.1f} s {word}" for key, word in times if key in provenance]
        spent += [
            f"{key} {clean(provenance[key])}" for key in filter(provenance.get, ("n_jobs", "backend", "isolation"))
        ]
        lines.append(f"started {clean(provenance['started'])}, {', '.join(spent)}")
    if provenance.get("hosts"):
        what = "part" if provenance.get("parts") else "worker"
        made = [
            f"{clean(each['host'])} ({counted(each['workers'], what)}, {each['runs']:,} runs)"
            for each in provenance["hosts"]
        ]
        lines.append(f"runs made on {', '.join(made)}")
    if provenance.get("max_time_s") is not None:
        limit = exact(provenance["max_time_s"])
        lines.append(f"the number of runs was chosen, before each stage, to fit {limit} s, start and imports included")
    stones, part = result.milestones, part_of(result, result.evidence)
    if stones is not None and part < 1.0:
        lines.append(
            f"{stones.planned_runs:,} certifying runs were planned, and {len(stones.ends)} milestones fixed before the "
            f"first; certified is that of {result.evidence.runs:,}, at {part:.3g} of the error probability"
        )
    return tuple(lines)


# --- what a reviewer asks beyond that; what the result does not know is said to be not recorded ---


MOST_PAIRS = 12
ADJACENCY = {
    "records": "Compared record by record, they are as near as stated",
    "rows": "Compared row by row, they are as near as stated",
    "entries": "Compared key by key, each with its value as one record, they are as near as stated",
    "users": "Compared user by user, each with all of their records, they are as near as stated",
    "answers": "No answer moves by more than the stated sensitivity; that this is the right one is taken on trust",
    "any two": "Any two records are neighbours under the relation",
    "neutral": "Compared, as many records are replaced as stated; that the new ones are neutral is taken on trust",
    "one value": "Any two values of one person are neighbours; that each dataset is one such value is taken on trust",
    None: "How near they are is taken on trust",
}

COUNTED = {
    "process": "Outputs were counted in a process where no mechanism ran (isolation: process).",
    "none": "Outputs were counted in the process of the mechanism, which could reach the counts (isolation: none).",
}
EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0)


def _rule(result: AuditResult) -> tuple[str, ...]:
    spec = result.spec
    error = level_text(error_probability(result.certificate.confidence))
    anytime = "at any block, once its bets have refuted the claim; that is what the method allows for"
    fixed = "after a number of runs that was fixed beforehand, whatever they showed"
    lines = [
        f"Fixed before the first run: refuted where the p-value is at most {error}, and not refuted otherwise. An "
        "experiment that broke has no verdict.",
        f"The bound is one-sided, by the certifier {clean(spec['certifier'])}, of numbers of hits and runs alone.",
        f"Stopping: {anytime if spec['stopping'] == 'anytime' else fixed}.",
    ]
    if spec["certify_pairs"] > 1:
        lines.append(
            f"The error probability is divided equally among up to {spec['certify_pairs']} witnesses, so that all "
            "their bounds hold together."
        )
    if spec["representation"]:
        lines.append(
            "A finding on the bits of floating-point outputs has a level of its own, and never enters the verdict."
        )
    return tuple(lines)


def _output(result: AuditResult) -> tuple[str, ...]:
    limit = result.spec["run_timeout_s"]
    lines = [
        "One run is one release. Its output is the value that the mechanism returns: not the time, not what it prints.",
        "An exception (by its type), NaN, infinity, None and a missing part are outputs like any other: a mechanism "
        "that fails more often on one dataset gives it away.",
        "A run that was lost is never dropped: its shard is run once more with the same seed, and the audit ends "
        "without a verdict if it is lost again.",
    ]
    late = f"A run longer than {exact(limit or 0)} s counts as the output 'timed out' where it could be stopped alone."
    return (*lines, late) if limit is not None else tuple(lines)


def _datasets(result: AuditResult) -> tuple[str, ...]:
    pairs = result.spec["pairs"]
    lines = []
    reasons = result.provenance.get("reasons", {})
    for pair, shown in itertools.zip_longest(pairs[:MOST_PAIRS], result.adjacency[: len(pairs)][:MOST_PAIRS]):
        steps = f", {pair['distance']:,} steps apart" if pair["distance"] > 1 else ""
        first, second = data_text(pair["first"]), data_text(pair["second"])
        further = f"Compared, they are further apart than stated, {shown}; that they count as neighbours is on trust"
        lines.append(f'Pair "{clean(pair["name"])}"{steps}: {first} against {second}. {ADJACENCY.get(shown, further)}.')
        lines += [f"Why this pair: {clean(reasons[pair['name']], LONGEST_DATA)}."] if pair["name"] in reasons else []
    if len(pairs) > MOST_PAIRS:
        lines.append(f"{counted(len(pairs) - MOST_PAIRS, 'more pair')}; the record, the JSON file, has all of them.")
    for user in dict.fromkeys(pair["user"] for pair in pairs if "user" in pair):
        lines.append(f"Whose record each one is stands at {clean(repr(user), LONGEST_DATA)}.")
    return tuple(lines)


def _beside(result: AuditResult) -> tuple[str, ...]:
    """What two limits of the same counts say in other parameters: delta at several epsilon, and mu."""
    if not result.evidence.runs:
        return ("Nothing: the bets refuted the claim, and no runs were counted for a fixed bound.",)
    profile = LowerProfile.of(result.evidence, result.level)
    deltas = {epsilon: profile.delta_at(epsilon) for epsilon in EPSILONS}
    points = [
        f"delta >= {bound(delta)} at epsilon {exact(epsilon)}" for epsilon, delta in deltas.items() if delta > 0.0
    ]
    if not points:
        return ("Nothing: the limits of the counts on either side do not part.",)
    mu = max(_mu(low, high) for low, high in profile.limits)
    lines = [
        f"Two limits of the same counts, which hold together at confidence {confidence_text(confidence(result))}, say "
        "of these two datasets, whatever the claim:",
        f"{'; '.join(points)}.",
    ]
    if mu > 0.0:
        lines.append(f"In terms of Gaussian differential privacy: mu >= {bound(mu)}.")
    return (*lines, "These are looser than the bound above, which spends all of its error on one limit.")


def _mu(low: float, high: float) -> float:
    """The least mu whose region holds a point with p >= low and q <= high, rounded down; 0 where none is needed."""
    from scipy.special import ndtri

    if not high < low < 1.0:
        return 0.0
    mu = float(ndtri(low) - ndtri(high))
    return mu - 1e-9 * (1.0 + abs(mu)) if math.isfinite(mu) else 0.0


def _running(result: AuditResult) -> tuple[str, ...]:
    spec, provenance = result.spec, result.provenance
    lines = [
        f"The seed {spec['seed']} has a child for every stage, pair and shard of {counted(spec['shard_runs'], 'run')} "
        "(numpy SeedSequence, SFC64); the side of every run was drawn by a fair coin."
    ]
    if provenance.get("backend"):
        workers = f" in {counted(provenance['n_jobs'], 'job')}" if isinstance(provenance.get("n_jobs"), int) else ""
        lines.append(
            f"The runs were made by the backend {clean(provenance['backend'])}{workers}, which does not change counts."
        )
    if provenance.get("isolation"):
        lines.append(COUNTED[provenance["isolation"]])
    return (
        *lines,
        _interrupted(result),
        "Not recorded: processor, libraries of the system, container, a lock file of all packages.",
    )


def _interrupted(result: AuditResult) -> str:
    count = result.provenance.get("interruptions")
    if not isinstance(count, int):
        return "Whether the audit was interrupted is not recorded."
    if not count:
        return "The audit was not interrupted."
    return (
        f"The audit was interrupted {'once' if count == 1 else f'{count:,} times'} and went on from stored shards; "
        "each shard counts once, so the counts are those of an audit without a break."
    )


def excerpt_place(result: AuditResult) -> tuple[str, ...]:
    """Where the first lines of the source of the mechanism are from; nothing where none were kept."""
    provenance = result.provenance
    file = clean(provenance.get("file") or "a file that is not recorded", LONGEST_DATA)
    where = f"{file}, from line {provenance.get('line') or 1:,}, as it was audited."
    return (where,) if provenance.get("excerpt") else ()


def excerpt(result: AuditResult) -> tuple[str, ...]:
    """The first lines of the source of the mechanism, with their numbers."""
    start = result.provenance.get("line") or 1
    return tuple(f"{start + number:>5}  {line}" for number, line in enumerate(result.provenance.get("excerpt", ())))


_VERSIONS = {"version": "dpaudit", "python": "Python", "numpy": "numpy", "scipy": "scipy", "joblib": "joblib"}


def _of(tell: Callable[[AuditResult], Told]) -> Callable[[AuditFacts], Told]:
    """The same of the facts of a result."""
    return lambda facts: tell(facts.result)


def _if(refuted: bool, tell: Callable[[AuditFacts], Told], other: Told) -> Callable[[AuditFacts], Told]:
    """The same of facts that refute the claim, or do not; another where they do otherwise."""
    return lambda facts: tell(facts) if facts.refuted is refuted else other


def _not_shown(result: AuditResult) -> tuple[str, ...]:
    """What was too rare, and what was not looked at."""
    return (*too_rare(result), f"Not looked at: {not_looked_at(result)}.")


def _call(facts: AuditFacts) -> tuple[str, ...]:
    """The call in Python, line by line, where no command was recorded."""
    return () if facts.result.provenance.get("command") else python_form(facts.result)


TOPICS: tuple[Topic[AuditFacts], ...] = (
    Topic("verdict", Level.HEADLINE, lambda facts: (headline(facts.result),)),
    Topic("what was found", Level.PAGE_ONE, finding_lines),
    Topic("what it means", Level.PAGE_ONE, _of(in_plain_words)),
    Topic("bracket", Level.PAGE_ONE, _of(bracket_line)),
    Topic("recorded noise", Level.PAGE_ONE, _of(of_audit)),
    Topic("what to do", Level.PAGE_ONE, to_do),
    Topic(BEFORE, Level.PAGE_ONE, _if(False, _of(before), ()), _if(False, lambda facts: facts.seen, None)),
    Topic("missing for a decision", Level.PAGE_ONE, _if(False, missing, ())),
    Topic("what it does not show", Level.PAGE_ONE, _of(_not_shown)),
    Topic("repeat", Level.PAGE_ONE, lambda facts: (repetition(facts.result),), code=_of(repeat)),
    Topic("expected", Level.DETAIL, lambda facts: expectation(facts.entry)),
    Topic(OR_ELSE, Level.DETAIL, or_else),
    Topic(BEFORE, Level.DETAIL, _if(True, _of(before), ()), _if(True, lambda facts: facts.seen, None)),
    Topic("limits", Level.DETAIL, lambda facts: (*LIMITS, *BEYOND)),
    Topic("how sure it is", Level.DETAIL, _level),
    Topic("claim", Level.DETAIL, _claim),
    Topic("witness", Level.DETAIL, _event),
    Topic("evidence", Level.DETAIL, _of(evidence_lines)),
    Topic("examples", Level.DETAIL, lambda facts: examples(facts.result).lines(LINES)),
    Topic("bets", Level.DETAIL, _of(bet_lines)),
    Topic("bound", Level.DETAIL, _bound),
    Topic("cross-check", Level.DETAIL, _cross_check),
    Topic("upper bound", Level.DETAIL, lambda facts: bracket_lines(facts.result)[1:]),
    Topic("more pairs", Level.DETAIL, _of(other_lines)),
    Topic("representation", Level.DETAIL, _bits),
    Topic("search", Level.DETAIL, _search),
    Topic("health", Level.DETAIL, _of(health_lines)),
    Topic("power", Level.DETAIL, _of(could_see)),
    Topic("controls", Level.DETAIL, _of(control_lines)),
    Topic("what was drawn", Level.DETAIL, table=lambda facts: next(map(drawn, facts.result.recorded), None)),
    Topic("what came out", Level.DETAIL, table=lambda facts: next(map(out, facts.result.recorded), None)),
    Topic("mechanism", Level.DETAIL, _mechanism),
    Topic("rule of decision", Level.REVIEWER, _of(_rule)),
    Topic("what counts as the output", Level.REVIEWER, _of(_output)),
    Topic("datasets", Level.REVIEWER, _of(_datasets)),
    Topic("certified beside the bound", Level.REVIEWER, _of(_beside)),
    Topic("how the runs were made", Level.REVIEWER, _of(_running)),
    *(Topic(title, Level.REVIEWER, table=_of(partial(table, title))) for title in CONTENTS),
    Topic("source", Level.REVIEWER, _of(excerpt_place), code=_of(excerpt)),
    Topic("made with", Level.REVIEWER, _made_with),
    Topic("record", Level.REVIEWER, _of(record)),
    Topic("call", Level.REVIEWER, _of(repeatable), code=_call),
)
