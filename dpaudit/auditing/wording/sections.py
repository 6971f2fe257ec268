"""Every sentence a user reads about a result: pure functions of `AuditResult` and `SuiteResult`.

Contract: numbers are rounded towards safety (lower bounds down, p-values and detectable epsilons up), text
that came from a user is made harmless, and all formats print these same sentences.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpaudit.auditing.numerals import bound, confidence_text, counted, decimals, exact, p_text, up
from dpaudit.auditing.quoting import LONGEST_DATA, clean, data_text, literal, plain_text
from dpaudit.auditing.result import AuditResult, SuiteEntry, SuiteResult
from dpaudit.auditing.spec import spec_hash
from dpaudit.auditing.verdict import Verdict
from dpaudit.certify import smallest_epsilon_caught
from dpaudit.certify.certificate import error_probability
from dpaudit.certify.power import MASSES

MOST_NAMES = 12  # of one kind that a sentence lists
LONGEST_CODE = 4_000
POWER = 0.95  # of the smallest epsilon that an audit is said to catch

NOT_PRIVATE = "Not refuted is not private: it says what was looked at and not found."
LIMITS = (
    "A lower bound holds for the pair that was run; it never shows that a claim holds for every pair.",
    "Other datasets and other events may lose more than the ones that were tried.",
    "Time, memory, logs and other side channels were not looked at, nor several releases taken together.",
    "The low bits of floating-point outputs (representation) were not looked at as such.",
    "The mechanism was run here, with these versions; elsewhere, or when not audited, it may behave differently.",
)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the account of a result: a title, sentences, and lines to paste into a shell or Python."""

    title: str
    lines: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


def verdict_text(verdict: Verdict) -> str:
    """`REFUTED` or `not refuted`: the loud word is kept for the finding."""
    return "REFUTED" if verdict is Verdict.REFUTED else "not refuted"


def claimed(result: AuditResult) -> str:
    """The parameter that the claim promises for the witness's pair."""
    claim = result.claim
    return exact(float(getattr(claim, claim.parameter)))


def certified(result: AuditResult, *, digits: int = 3) -> str:
    """The bound, and the delta it is stated at where the claim has one: `epsilon >= 1.98 at delta 1e-06`."""
    claim, certificate = result.claim, result.certificate
    above = float(getattr(claim, claim.parameter)) if result.verdict is Verdict.REFUTED else None
    return f"{claim.parameter} >= {bound(certificate.lower, digits=digits, above=above)}{_at_delta(certificate.delta)}"


def statement(result: AuditResult, *, digits: int = 3) -> str:
    """The certified statement: the bound, its confidence, and what was claimed."""
    confidence = confidence_text(result.certificate.confidence)
    return f"{certified(result, digits=digits)} with confidence {confidence}, claimed {claimed(result)}"


def headline(result: AuditResult) -> str:
    """The one line of a result: `REFUTED  noisy count: epsilon >= 1.98 with confidence 0.999, claimed 1`."""
    return f"{verdict_text(result.verdict)}  {clean(result.name)}: {statement(result)}"


def full_text(result: AuditResult) -> str:
    """What `print(result)` shows: the verdict, the arithmetic behind it, its limits and how to repeat it."""
    return "\n".join([headline(result), "", *columns([*sections(result), Section("not shown", LIMITS)])])


def columns(parts: Iterable[Section]) -> list[str]:
    """Sections as plain text: titles in a left column, lines in a right one."""
    lines = []
    for part in parts:
        titles = itertools.chain([part.title], itertools.repeat(""))
        lines += [f"{title:<13}{line}".rstrip() for title, line in zip(titles, (*part.lines, *part.code), strict=False)]
    return lines


def sections(result: AuditResult) -> list[Section]:
    """The account of a result, part by part, in the order in which a reviewer asks."""
    return [
        Section("verdict", _verdict(result)),
        Section("claim", _claim(result)),
        Section("mechanism", _mechanism(result)),
        Section("witness", _witness(result)),
        Section("evidence", _evidence(result)),
        Section("bound", _bound(result)),
        Section("cross-check", _cross_check(result)),
        Section("could see", could_see(result)),
        Section("search", _search(result)),
        Section("made with", _made_with(result)),
        Section("repeat", _reproducible(result), repeat(result)),
    ]


def _verdict(result: AuditResult) -> tuple[str, ...]:
    certificate, error = result.certificate, p_text(error_probability(result.certificate.confidence))
    first = (
        f"{verdict_text(result.verdict)}: p-value at most {p_text(certificate.p_value)}, and {error} or less refutes"
    )
    if result.verdict is Verdict.REFUTED:
        return (first, f"a mechanism that keeps its claim is refuted with probability at most {error}")
    return (first, NOT_PRIVATE)


def _claim(result: AuditResult) -> tuple[str, ...]:
    stated = result.spec["claim"]
    relation = f"relation {stated['relation']}" if stated["relation"] else "no relation stated"
    lines = [f"{_claim_words(stated)}; {relation}"]
    distance = result.spec["pairs"][result.witness.pair]["distance"]
    if distance > 1:
        lines.append(f"for datasets {distance:,} steps apart that is {_claim_words(result.claim.to_dict())}")
    return tuple(lines)


def _claim_words(stored: dict[str, Any]) -> str:
    """The form and its numbers: `ApproximateDP(epsilon=1, delta=1e-06)`."""
    values = (f"{key}={exact(value)}" for key, value in stored.items() if isinstance(value, float))
    return f"{stored['form']}({', '.join(values)})"


def _mechanism(result: AuditResult) -> tuple[str, ...]:
    stored, made = result.spec["mechanism"], result.provenance
    lines = [f"{clean(stored['name'])} ({clean(stored['kind'])})"]
    if stored["reference"]:
        lines[0] += f", {clean(stored['reference'])}"
    if stored["parameters"]:
        lines.append("parameters " + ", ".join(f"{clean(k)} = {clean(v)}" for k, v in stored["parameters"].items()))
    if made.get("file"):
        line = f", line {made['line']}" if made.get("line") else ""
        digest = f", digest {clean(stored['digest'])}" if stored["digest"] else ""
        lines.append(f"source {clean(made['file'], LONGEST_DATA)}{line}{digest}")
    return tuple(lines)


def _witness(result: AuditResult) -> tuple[str, ...]:
    pair = result.spec["pairs"][result.witness.pair]
    return (
        f"the event {clean(result.witness.event, LONGEST_DATA)}",
        f'is likelier on the {result.witness.p_side} dataset of the pair "{clean(pair["name"])}":',
        f"first   {data_text(pair['first'])}",
        f"second  {data_text(pair['second'])}",
    )


def _evidence(result: AuditResult) -> tuple[str, ...]:
    e = result.evidence
    sides = [(e.hits_p, e.runs_p), (e.hits_q, e.runs_q)]
    if result.witness.p_side == "second":
        sides.reverse()
    widths = [max(len(f"{number:,}") for number in column) for column in zip(*sides, strict=True)]
    lines = [
        f"{name:<7} {hits:>{widths[0]},} of {runs:>{widths[1]},} runs in the event"
        + (f" ({hits / runs:.4g})" if runs else "")
        for name, (hits, runs) in zip(("first", "second"), sides, strict=True)
    ]
    if math.isfinite(e.estimate):
        lines.append(f"the plain log ratio of these rates is {e.estimate:.4f}: an estimate, never a bound")
    return tuple(lines)


def _bound(result: AuditResult) -> tuple[str, ...]:
    return (statement(result, digits=6), f"by {clean(result.certificate.method)}, on fresh runs of a frozen witness")


def _cross_check(result: AuditResult) -> tuple[str, ...]:
    lower = bound(result.cross_check, digits=6)
    return (f"epsilon >= {lower}{_at_delta(result.certificate.delta)} by two Clopper-Pearson intervals (statsmodels)",)


def could_see(result: AuditResult) -> tuple[str, ...]:
    """What an audit of this size could have certified, and the epsilons it would have refuted."""
    runs, confidence = result.evidence.runs, result.certificate.confidence
    caught = {m: smallest_epsilon_caught(result.claim, runs, m, confidence=confidence, power=POWER) for m in MASSES}
    seen = [f"{up(least, decimals(least, 3))} at {exact(mass)}" for mass, least in caught.items() if least is not None]
    blind = [exact(mass) for mass, least in caught.items() if least is None]
    lines = [f"at most epsilon {up(result.ceiling, 2)}: with all hits on one side no more can be certified"]
    if seen:
        lines.append(f"refuted with power {exact(POWER)}: an epsilon from here on, by the probability of its event")
        lines.append("; ".join(seen))
    if blind:
        lines.append(f"nothing is caught on an event of probability {' or '.join(blind)}")
    return tuple(lines)


def _search(result: AuditResult) -> tuple[str, ...]:
    runs, pairs = counted(result.spec["runs"], "run"), counted(len(result.spec["pairs"]), "pair")
    lines = [
        f"{result.runs_used:,} of {runs} used, {result.evidence.runs:,} of them to certify",
        f"{pairs} of datasets; one witness proposed and certified, by {clean(result.witness.selector)}",
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in result.explored:
        groups.setdefault((entry.what, entry.status), []).append(clean(entry.name))
    for (what, status), names in groups.items():
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        lines.append(f"{clean(what)} {', '.join(names[:MOST_NAMES])}{more}: {clean(status, LONGEST_DATA)}")
    return tuple(lines)


def _made_with(result: AuditResult) -> tuple[str, ...]:
    made = result.provenance
    versions = [f"{name} {clean(made[key])}" for key, name in _VERSIONS.items() if made.get(key)]
    lines = [", ".join(versions)] if versions else []
    if made.get("platform"):
        lines.append(f"on {clean(made['platform'])}")
    if made.get("started"):
        lines.append(f"started {clean(made['started'])}, {_spent(made)}")
    if made.get("max_time_s") is not None:
        lines.append(f"the number of runs was chosen beforehand, to fit {exact(made['max_time_s'])} s")
    return tuple(lines)


_VERSIONS = {"version": "dpaudit", "python": "Python", "numpy": "numpy", "scipy": "scipy", "joblib": "joblib"}


def _spent(made: dict[str, Any]) -> str:
    spent = [f"{made[key]:.1f} s {word}" for key, word in (("wall_s", "elapsed"), ("cpu_s", "of CPU")) if key in made]
    workers = [f"{key} {clean(made[key])}" for key in ("n_jobs", "backend") if made.get(key)]
    return ", ".join([*spent, *workers])


def _reproducible(result: AuditResult) -> tuple[str, ...]:
    seed = f"spec hash {spec_hash(result.spec)}, seed {result.spec['seed']}"
    if result.reproducible:
        return (f"reproducible: the same spec and seed give the same counts ({seed})",)
    return (
        f"not reproducible: the mechanism draws randomness of its own ({seed})",
        "other runs give other counts; dpaudit recheck --fresh repeats the witness on new ones",
    )


def repeat(result: AuditResult) -> tuple[str, ...]:
    """How to repeat the audit: the command that was recorded, or the Python form."""
    command = result.provenance.get("command")
    return (clean(command, len(command)),) if command else python_form(result)


def python_form(result: AuditResult) -> tuple[str, ...]:
    """The audit as a call of `dpaudit.audit`; what only its author has is named by a comment."""
    spec = result.spec
    head, mechanism = _mechanism_form(spec["mechanism"])
    pairs = [_pair_form(pair) for pair in spec["pairs"]]
    given = f"pair={pairs[0]}" if len(pairs) == 1 else f"pairs=[{', '.join(map(str, pairs))}]"
    if None in pairs or len(given) > LONGEST_CODE:
        given = "pairs=pairs"
        head.append(f"# pairs: the {counted(len(pairs), 'pair')} of datasets that the result records")
    claim = [f"{key}={value!r}" for key, value in spec["claim"].items() if key != "form" and value is not None]
    keys = ("runs", "confidence", "seed", "run_timeout_s")
    options = [f"{key}={spec[key]!r}" for key in keys if spec[key] is not None]
    lines = (
        "import dpaudit",
        *head,
        "dpaudit.audit(",
        f"    {mechanism},",
        f"    {given},",
        f"    claim=dpaudit.{spec['claim']['form']}({', '.join(claim)}),",
        f"    {', '.join(options)},",
        ")",
    )
    return tuple(clean(line, len(line)) for line in lines)


def _mechanism_form(stored: dict[str, Any]) -> tuple[list[str], str]:
    """The lines that bring the mechanism, and the expression that names it."""
    if stored["kind"] == "command":
        return [], f"dpaudit.command({stored['parameters']['command']!r})"
    module, _, path = (stored["reference"] or "").partition(":")
    name = f"{module}.{path}" if path else stored["name"] if stored["name"].isidentifier() else "mechanism"
    head = [f"import {module}" if path else f"# {name}: the function that was audited"]
    bound_ = "".join(f", {key}={value!r}" for key, value in stored["parameters"].items())
    wrapper = {"batched": "dpaudit.batched", "built in the worker": "dpaudit.built_by"}.get(stored["kind"])
    if wrapper is None and bound_:
        wrapper, head = "functools.partial", ["import functools", *head]
    return head, name if wrapper is None else f"{wrapper}({name}{bound_})"


def _pair_form(pair: dict[str, Any]) -> str | None:
    """The two datasets as Python writes them; None where one was recorded by digest alone."""
    values = [plain_text(pair[side]["value"]) for side in ("first", "second")]
    if None in values:
        return None
    both = ", ".join(map(literal, values))
    return f"({both})" if pair["distance"] == 1 else f"dpaudit.AdjacentPair({both}, distance={pair['distance']})"


def _at_delta(delta: float) -> str:
    return f" at delta {exact(delta)}" if delta > 0.0 else ""


# suites


def suite_line(entry: SuiteEntry) -> str:
    """One audit of a suite on one line: whether it went as its author expects, and what came out."""
    if entry.result is None:
        return f"no verdict   {clean(entry.name)}: {clean(entry.error or 'no reason was recorded', LONGEST_DATA)}"
    expected = "as expected  " if entry.as_expected else "UNEXPECTED   "
    line = f"{expected}{verdict_text(entry.result.verdict):<11}  {clean(entry.name)}: {statement(entry.result)}"
    if not entry.as_expected:
        line += f", expected {verdict_text(entry.expect)}"
    return f"{line}; {clean(entry.error, LONGEST_DATA)}" if entry.error else line


def suite_headline(suite: SuiteResult) -> str:
    """The one line of a suite: how many audits, what they say, and the exit code."""
    done = [entry.result.verdict for entry in suite.entries if entry.result is not None]
    refuted = sum(verdict is Verdict.REFUTED for verdict in done)
    odd = sum(not entry.as_expected for entry in suite.entries if entry.result is not None)
    counts = f"{refuted} refuted, {len(done) - refuted} not refuted, {len(suite.entries) - len(done)} without verdict"
    surprise = "every verdict as expected" if not odd else f"{counted(odd, 'verdict')} not as expected"
    said = f"{counts}; {surprise}" if done else counts
    return f"{counted(len(suite.entries), 'audit')}: {said}; exit code {suite.exit_code}"


def suite_question(suite: SuiteResult) -> tuple[str, ...]:
    """What a suite asks, and what its confidence means."""
    error = p_text(error_probability(suite.confidence))
    return (
        f"{counted(len(suite.entries), 'audit')} at suite confidence {confidence_text(suite.confidence)}: "
        f"each gets an equal part of the error probability {error}.",
        f"Where every claim holds, the whole suite refutes one of them with probability at most {error}.",
        "Each audit's verdict and bound follow from its own part; the Holm-adjusted p-value stands beside them.",
    )
