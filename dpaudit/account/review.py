"""What a reviewer asks beyond the account itself: the rule of decision, what counts as an output, what was tried.

Where the result does not know an answer, a sentence says that it was not recorded.
"""

import itertools
import math
from collections.abc import Callable

from dpaudit.account.statements import confidence, record_lines
from dpaudit.base.numerals import bound, confidence_text, counted, level_text
from dpaudit.base.quoting import LONGEST_DATA, clean, data_text
from dpaudit.base.strict import spec_hash
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.claims import Relation
from dpaudit.results.provenance import RECORD
from dpaudit.results.result import AuditResult

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
ELSEWHERE = (
    "Audits of the same claim that were made elsewhere, or made and thrown away, are not known here; dpaudit history "
    "lists those of a ledger."
)
EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0)


def _rule(result: AuditResult) -> tuple[str, ...]:
    spec = result.spec
    level = confidence(result)
    error = level_text(error_probability(result.certificate.confidence))
    lines = [
        f"Written before the first run, in the question with the hash {spec_hash(spec)}: refuted where the p-value is "
        f"at most {error}, and not refuted otherwise. An experiment that broke has no verdict.",
        f"The bound is one-sided, at confidence {confidence_text(level)}, by the certifier {clean(spec['certifier'])}; "
        "only whole numbers of hits and runs enter it.",
    ]
    if spec["stopping"] == "anytime":
        lines.append(
            "Stopping: the audit may stop once its bets have refuted the claim, at any block; that is what the method "
            "allows for."
        )
    else:
        lines.append("Stopping: after a number of runs that was fixed beforehand, whatever they showed.")
    if spec["certify_pairs"] > 1:
        lines.append(
            f"The error probability is divided equally among up to {spec['certify_pairs']} witnesses, so that all "
            "their bounds hold together."
        )
    if result.spec["representation"]:
        lines.append(
            "A finding on the bits of floating-point outputs has a level of its own, and never enters the verdict."
        )
    return tuple(lines)


def _output(result: AuditResult) -> tuple[str, ...]:
    limit = result.spec["run_timeout_s"]
    lines = [
        "Observed is the value that the mechanism returns, and nothing else: not the time, not what it prints or logs.",
        "An exception (by its type), NaN, infinity, None and a missing part are outputs like any other: a mechanism "
        "that fails more often on one dataset gives it away.",
        "A run that was lost is never dropped: its shard is run once more with the same seed, and the audit ends "
        "without a verdict if it is lost again.",
    ]
    if limit is None:
        lines.append("No limit of time was set for a run.")
    else:
        lines.append(
            f"A run longer than {exact(limit)} s counts as the output 'timed out' where it could be stopped alone."
        )
    return tuple(lines)


def _datasets(result: AuditResult) -> tuple[str, ...]:
    pairs = result.spec["pairs"]
    lines = []
    relation = result.spec["claim"]["relation"]
    reasons = result.provenance.get("reasons", {})
    for pair, shown in itertools.zip_longest(pairs[:MOST_PAIRS], result.adjacency[: len(pairs)][:MOST_PAIRS]):
        steps = f", {pair['distance']:,} steps apart" if pair["distance"] > 1 else ""
        first, second = data_text(pair["first"]), data_text(pair["second"])
        further = f"Compared, they are further apart than stated, {shown}; that they count as neighbours is on trust"
        lines.append(f'Pair "{clean(pair["name"])}"{steps}: {first} against {second}. {ADJACENCY.get(shown, further)}.')
        lines += [f"Why this pair: {clean(reasons[pair['name']])}."] if pair["name"] in reasons else []
    if len(pairs) > MOST_PAIRS:
        lines.append(f"{counted(len(pairs) - MOST_PAIRS, 'more pair')}; the record, the JSON file, has all of them.")
    for user in dict.fromkeys(pair["user"] for pair in pairs if "user" in pair):
        lines.append(f"Whose record each one is stands at {clean(repr(user), LONGEST_DATA)}.")
    if not relation:
        lines.append("No relation is stated: it is enough that a record was added, removed or replaced.")
    return (*lines, *_filled(result, "data"))


def _filled(result: AuditResult, key: str) -> tuple[str, ...]:
    return tuple(line for line in record_lines(result) if line.startswith(f"{RECORD[key].capitalize()}: "))


def _tried(result: AuditResult) -> tuple[str, ...]:
    if result.stopped_early:
        bets = counted(len(result.blocks), "bet")
        made = (
            f"{bets} were made: an event was chosen from the runs of earlier blocks and frozen before the first run of"
        )
        return f"{made} its own block. There is no fixed bound beside them, for they refuted the claim.", ELSEWHERE
    statuses = ("looked at", "kept")
    left = sum(each.what in ("feature", "pair") and not each.status.startswith(statuses) for each in result.explored)
    named = f"{counted(left, 'thing')} that it came upon; the account names them, each with its reason"
    return (
        f"Search left out {named if left else 'nothing that it came upon'}.",
        "Search costs no error probability: the event was frozen before the first run that counts"
        + (" for it, and each bet before its block." if result.blocks else "."),
        ELSEWHERE,
    )


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


def _release(result: AuditResult) -> tuple[str, ...]:
    relation = result.spec["claim"]["relation"]
    if relation == Relation.LOCAL.value:
        trust = "The claim is one of the local model: nobody but the person sees the record before it is randomised."
    elif relation:
        trust = "The relation is one of the central model: somebody trusted holds the dataset and runs the mechanism."
    else:
        trust = "The trust model is not recorded."
    return ("One run is one release.", *_filled(result, "releases"), trust)


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


REVIEWS: dict[str, Callable[[AuditResult], tuple[str, ...]]] = {
    "rule of decision": _rule,
    "what counts as the output": _output,
    "datasets": _datasets,
    "how much was tried": _tried,
    "certified beside the bound": _beside,
    "releases and trust": _release,
    "how the runs were made": _running,
}
