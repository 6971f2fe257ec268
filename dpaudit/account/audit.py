"""The account of an audit: what was found, what to do and how to repeat it; then all that was done, part by part."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from dpaudit.account.diagnosis import BITS, diagnosis
from dpaudit.account.findings import (
    alone,
    bet_lines,
    bracket_line,
    bracket_lines,
    control_lines,
    could_see,
    ending_lines,
    health_lines,
    meaning,
    other_lines,
    representation_lines,
    unit_lines,
)
from dpaudit.account.first import AuditFacts, cause, finding_lines, or_else, to_do
from dpaudit.account.officer import could_have_seen, expectation, in_plain_words, not_shown, record, unit
from dpaudit.account.repeat import python_form, repeat, repeatable, repetition
from dpaudit.account.review import REVIEWS, excerpt, excerpt_place
from dpaudit.account.section import Account, Level, Topic, account
from dpaudit.account.statements import (
    at_delta,
    certified,
    confidence,
    headline,
    implied,
    not_looked_at,
    stamp,
    supposed,
)
from dpaudit.account.tables import TABLES
from dpaudit.base.numerals import bound, counted, level_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, clean, data_text
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned
from dpaudit.events import Partition
from dpaudit.results.display import Verdict
from dpaudit.results.observations import LINES, Explanation
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry

AUDIT = "Audit of a differential privacy claim"
OR_ELSE = "or else"
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
    by = "" if finding is None else ", by values or by bits,"
    keeps = f"a mechanism that keeps its claim is refuted{by} with probability at most {error}{supposed(result)}"
    first = f"p-value at most {p_text(certificate.p_value)}, and {limit} or less refutes"
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
    relation = f"relation {stated['relation']}" if stated["relation"] else "no relation stated"
    lines = [f"{_claim_words(stated)}; {relation}"]
    if result.distance > 1:
        lines.append(f"for datasets {result.distance:,} steps apart that is {_claim_words(result.claim.to_dict())}")
    return (*lines, *unit(result))


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
        f"{leaning(result)}:",
        f"first   {data_text(pair['first'])}",
        f"second  {data_text(pair['second'])}",
        *([f"why     {clean(reasons[pair['name']])}"] if pair["name"] in reasons else []),
        *ending_lines(result),
    )


def _plain(facts: AuditFacts) -> tuple[str, ...]:
    """Beside an event that nobody can read: the best that people can, its counts on the same runs, its own bound."""
    finding = facts.result.plain
    if finding is None:
        return ()
    counts = (f"{name:<7} {hits:,} of {runs:,} runs" for name, (hits, runs) in finding.sides.items())
    return (
        clean(finding.witness.event, LONGEST_DATA),
        *counts,
        f"alone it gives {alone(facts.result)}, at the same confidence; the bound of the witness covers that",
    )


def leaning(result: AuditResult) -> str:
    """What the counts say of the side on which search took the event to be likelier: never more than they show."""
    e, certificate = result.evidence, result.certificate
    name = clean(result.pair["name"])
    where = f'the {result.witness.p_side} dataset of the pair "{name}"'
    shown = certificate.refuted or certificate.lower > 0.0
    if isinstance(e, Binned):
        return f"{'shows' if shown else 'does not show'} a divergence of {where} from the other"
    if shown:
        return f"is likelier on {where}"
    more = e.hits_p * e.runs_q > e.hits_q * e.runs_p
    return f"came {'more often' if more else 'no more often'} on {where}{', which may be chance' if more else ''}"


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
    crossed = result.crossed()
    if crossed is None or not result.evidence.runs:  # there is nothing to check in no runs
        return ()
    if isinstance(crossed, str):
        return (f"not made: {clean(crossed)}; the verdict and the bound do not depend on it",)
    lower = bound(crossed, digits=6)
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
            f"{key} {clean(provenance[key])}" for key in ("n_jobs", "backend", "isolation") if provenance.get(key)
        ]
        lines.append(f"started {clean(provenance['started'])}, {', '.join(spent)}")
    if provenance.get("max_time_s") is not None:
        limit = exact(provenance["max_time_s"])
        lines.append(f"the number of runs was chosen, before each stage, to fit {limit} s, start and imports included")
    stones, part = result.milestones, result.part(result.evidence)
    if stones is not None and part < 1.0:
        lines.append(
            f"{stones.planned_runs:,} certifying runs were planned, and {len(stones.ends)} milestones fixed before the "
            f"first; certified is that of {result.evidence.runs:,}, at {part:.3g} of the error probability"
        )
    return tuple(lines)


_VERSIONS = {"version": "dpaudit", "python": "Python", "numpy": "numpy", "scipy": "scipy", "joblib": "joblib"}


def _of(tell: Callable[[AuditResult], Told]) -> Callable[[AuditFacts], Told]:
    """The same of the facts of a result."""
    return lambda facts: tell(facts.result)


def _missing(facts: AuditFacts) -> tuple[str, ...]:
    """What could have been seen, on the first page of a claim that is not refuted."""
    return () if facts.refuted else could_have_seen(facts.result)


def _call(facts: AuditFacts) -> tuple[str, ...]:
    """The call in Python, line by line, where no command was recorded."""
    return () if facts.result.provenance.get("command") else python_form(facts.result)


TOPICS: tuple[Topic[AuditFacts], ...] = (
    Topic("verdict", Level.HEADLINE, lambda facts: (headline(facts.result),)),
    Topic("what was found", Level.PAGE_ONE, finding_lines),
    Topic("bracket", Level.PAGE_ONE, _of(bracket_line)),
    Topic("could see", Level.PAGE_ONE, _missing),
    Topic("what to do", Level.PAGE_ONE, to_do),
    Topic("not looked at", Level.PAGE_ONE, lambda facts: (not_looked_at(facts.result),)),
    Topic("repeat", Level.PAGE_ONE, lambda facts: (repetition(facts.result),), code=_of(repeat)),
    Topic("what it means", Level.DETAIL, lambda facts: (*in_plain_words(facts.result), *expectation(facts.entry))),
    Topic(OR_ELSE, Level.DETAIL, or_else),
    Topic("how sure it is", Level.DETAIL, _level),
    Topic("claim", Level.DETAIL, _claim),
    Topic("mechanism", Level.DETAIL, _mechanism),
    Topic("witness", Level.DETAIL, _event),
    Topic("evidence", Level.DETAIL, _of(evidence_lines)),
    Topic("plain event", Level.DETAIL, _plain),
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
    Topic("made with", Level.DETAIL, _made_with),
    Topic("record", Level.DETAIL, _of(record)),
    Topic("call", Level.DETAIL, _of(repeatable), code=_call),
    Topic("not shown", Level.DETAIL, _of(not_shown)),
    *(Topic(key, Level.REVIEWER, _of(tell)) for key, tell in REVIEWS.items()),
    Topic("source", Level.REVIEWER, _of(excerpt_place), code=_of(excerpt)),
    *(Topic(title, Level.REVIEWER, table=_of(make)) for title, make in TABLES.items()),
)
