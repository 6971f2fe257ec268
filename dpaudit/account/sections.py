"""The account of a result: its parts, in the order of a review; how to repeat it; the message of a failing test."""

import itertools
import math
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.account.diagnosis import BITS, diagnosis
from dpaudit.account.findings import (
    alone,
    bet_lines,
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
from dpaudit.account.first import DO, FOUND, SURE, explanation, finding_lines, sure, to_do
from dpaudit.account.statements import (
    at_delta,
    bound_lines,
    confidence,
    implied,
    limits,
    record_lines,
    stamp,
    statement,
    supposed,
    verdict_text,
)
from dpaudit.base.numerals import bound, confidence_text, counted, level_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, P, clean, data_text, line, literal, plain_text, standing
from dpaudit.base.strict import spec_hash
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned, suited
from dpaudit.claims import claim_from_dict
from dpaudit.events import Partition
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.options import OPTIONS
from dpaudit.results.observations import LINES
from dpaudit.results.result import AuditResult

# --- how to repeat an audit: the command that was recorded, or the call in Python ---


LONGEST_CODE = 4_000
NOT_HELD = "which the result does not hold"


@standing(lambda line: (f"# {line}",))
def repeat(result: AuditResult) -> tuple[str, ...]:
    """How to repeat the audit: the command that was recorded, or the Python form."""
    command = result.provenance.get("command")
    return (clean(command, len(command)),) if command else python_form(result)


def python_form(result: AuditResult) -> tuple[str, ...]:
    """The audit as a call of `dpaudit.audit`; what only its author has is named by a comment."""
    spec = result.spec
    head, mechanism = _mechanism_form(spec["mechanism"])
    pairs: list[str] = []
    for number, pair in enumerate(spec["pairs"], start=1):
        values = [plain_text(pair[side]["value"]) for side in ("first", "second")]
        both = [*map(literal, values)]
        if None in values:  # one was recorded by its digest alone
            both = [f"{side}_{number}" if len(spec["pairs"]) > 1 else side for side in ("first", "second")]
            digests = " and ".join(str(pair[side]["digest"]) for side in ("first", "second"))
            head.append(f"# {', '.join(both)}: your datasets with the digests {digests}, {NOT_HELD}")
        more = [f"distance={pair['distance']}"] if pair["distance"] > 1 else []
        more += [f"sensitivity={pair['sensitivity']!r}"] if "sensitivity" in pair else []
        more += [f"user={pair['user']!r}"] if "user" in pair else []
        arguments = ", ".join([*both, *more])
        pairs.append(f"dpaudit.AdjacentPair({arguments})" if more else f"({arguments})")
    given = f"pair={pairs[0]}" if len(pairs) == 1 else f"pairs=[{', '.join(pairs)}]"
    if len(given) > LONGEST_CODE:
        given = "pairs=pairs"
        head = [line for line in head if not line.endswith(NOT_HELD)]
        head.append(f"# pairs: your {counted(len(pairs), 'pair')} of datasets, too long to write here")
    claim = [f"{key}={value!r}" for key, value in spec["claim"].items() if key != "form" and value is not None]
    asked = [each for each in OPTIONS.values() if each.stored and each.keyword and each.name != "certifier"]
    told = sorted(asked, key=lambda each: not each.shown)
    values = [(each, spec.get(each.name, each.default)) for each in told]
    options = [f"{each.name}={value!r}" for each, value in values if each.shown or value != each.default]
    if spec["certifier"] != suited(claim_from_dict(spec["claim"]), spec["stopping"]).name:
        options.append(f"certifier={spec['certifier']!r}")
    tables = {name for name in ("numpy", "pandas", "polars") if f"{name}." in given}
    lines = (
        *(f"import {name}" for name in ("dpaudit", *sorted(tables))),
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
    if stored["kind"] == "built in the worker" and not path:
        name = "make"
    head = [f"import {module}" if path else f"# {name}: the function that was audited"]
    bound_ = "".join(f", {key}={value!r}" for key, value in stored["parameters"].items())
    wrapper = {"batched": "dpaudit.batched", "built in the worker": "dpaudit.built_by"}.get(stored["kind"])
    if stored["kind"].startswith(ADAPTED):
        wrapper = stored["kind"]
    if wrapper is None and bound_:
        wrapper, head = "functools.partial", ["import functools", *head]
    return head, name if wrapper is None else f"{wrapper}({name}{bound_})"


# --- the sections ---


MOST_NAMES = 12  # of one kind that a sentence lists
MOST_POINTS = 8  # of a curve
WIDTH = 16  # of the column of titles


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the account of a result: a title, sentences, and lines to paste into a shell or Python."""

    title: str
    lines: tuple[str, ...] = ()
    code: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, tell: Callable[P, Iterable[str]], *given: P.args, **named: P.kwargs) -> "Section":
        """The section with the lines that `tell` returns; where it raises, with one line that says so."""
        return cls(title, standing(line)(lambda: tuple(tell(*given, **named)))())


def full_text(result: AuditResult) -> str:
    """What `print(result)` shows: the verdict, the arithmetic behind it, its limits and how to repeat it."""
    head = f"{stamp(result)}  {clean(result.name)}: " + "\n".join(bound_lines(result))
    return "\n".join([head, "", *columns([*sections(result), Section.of("not shown", limits, result)])])


def columns(parts: Iterable[Section]) -> list[str]:
    """Sections as plain text: titles in a left column, lines in a right one."""
    lines = []
    for part in parts:
        titles = itertools.chain([part.title], itertools.repeat(""))
        lines += [
            f"{title:<{WIDTH}}{line}".rstrip() for title, line in zip(titles, (*part.lines, *part.code), strict=False)
        ]
    return lines


def sections(result: AuditResult) -> list[Section]:
    """The account of a result, part by part, in the order in which a reviewer asks."""
    mend = BITS.lines if result.refuted and result.representation_refuted else ()
    parts = [
        Section.of(FOUND.lower(), finding_lines, result),
        Section.of(DO.lower(), to_do, result),
        Section.of(SURE.lower(), sure, result),
        Section.of("verdict", _verdict, result),
        Section.of("claim", _claim, result),
        Section.of("mechanism", _mechanism, result),
        Section.of("witness", _witness, result),
        Section.of("evidence", evidence_lines, result),
        Section.of("plain event", _plain, result),
        Section.of("examples", lambda: explanation(result).lines(LINES)),
        Section.of("bets", bet_lines, result),
        Section.of("bound", _bound, result),
        Section.of("cross-check", _cross_check, result),
        Section.of("bracket", bracket_lines, result),
        Section.of("more pairs", other_lines, result),
        Section.of("representation", lambda: (*representation_lines(result), *mend)),
        Section.of("search", _search, result),
        Section.of("health", health_lines, result),
        Section.of("made with", _made_with, result),
        Section.of("record", record_lines, result),
        replace(Section.of("repeat", _reproducible, result), code=repeat(result)),
        Section.of("could see", could_see, result),
        Section.of("controls", control_lines, result),
    ]
    return [part for part in parts if part.lines or part.code]


def _verdict(result: AuditResult) -> tuple[str, ...]:
    certificate, finding = result.certificate, result.representation
    limit, error = level_text(error_probability(certificate.confidence)), p_text(error_probability(confidence(result)))
    first = (
        f"{verdict_text(result.verdict)}: p-value at most {p_text(certificate.p_value)}, and {limit} or less refutes"
    )
    bits: tuple[str, ...] = ()
    if finding is not None and finding.certificate.refuted:
        p_value = p_text(finding.certificate.p_value)
        bits = (f"REFUTED by bits: p-value at most {p_value}, a finding with a level of its own",)
    if result.refuted:
        keeps = f"a mechanism that keeps its claim is refuted with probability at most {error}"
        return (first, f"{keeps}{supposed(result)}", *unit_lines(result), *bits)
    return (*bits, first)


def _claim(result: AuditResult) -> tuple[str, ...]:
    stated = result.spec["claim"]
    relation = f"relation {stated['relation']}" if stated["relation"] else "no relation stated"
    lines = [f"{_claim_words(stated)}; {relation}"]
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


def _mechanism(result: AuditResult) -> tuple[str, ...]:
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


def _witness(result: AuditResult) -> tuple[str, ...]:
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


def _plain(result: AuditResult) -> tuple[str, ...]:
    """Beside an event that nobody can read: the best that people can, its counts on the same runs, its own bound."""
    finding = result.plain
    if finding is None:
        return ()
    counts = (f"{name:<7} {hits:,} of {runs:,} runs" for name, (hits, runs) in finding.sides.items())
    level = confidence_text(finding.certificate.confidence)
    return (
        clean(finding.witness.event, LONGEST_DATA),
        *counts,
        f"alone it gives {alone(result)} with confidence {level}; the bound of the witness covers that",
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


def _bound(result: AuditResult) -> tuple[str, ...]:
    bets = "each bet" if result.stopped_early else "bet or witness"
    fresh = f"runs made after {bets} was frozen" if result.blocks else "fresh runs of a frozen witness"
    model = result.model_based
    meant = "" if model is None else f"epsilon {model['epsilon']:.4g} at delta {exact(model['delta'])}"
    return (
        statement(result, digits=6),
        *implied(result.claim, result.certificate),
        *([] if model is None else [f"model-based, no bound: if {model['model']}, mu_lower would mean {meant}"]),
        f"by {clean(result.certificate.method, LONGEST_DATA)}, on {fresh}",
    )


def _cross_check(result: AuditResult) -> tuple[str, ...]:
    crossed = result.crossed()
    if crossed is None or not result.evidence.runs:  # there is nothing to check in no runs
        return ()
    if isinstance(crossed, str):
        return (f"not made: {clean(crossed)}; the verdict and the bound do not depend on it",)
    lower = bound(crossed, digits=6)
    return (f"epsilon >= {lower}{at_delta(result.certificate.delta)} by two Clopper-Pearson intervals (statsmodels)",)


def _search(result: AuditResult) -> tuple[str, ...]:
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


def _made_with(result: AuditResult) -> tuple[str, ...]:
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


def _reproducible(result: AuditResult) -> tuple[str, ...]:
    seed = f"spec hash {spec_hash(result.spec)}, seed {result.spec['seed']}"
    if result.cut_short:
        return (
            f"made under max_time_s: without it the same spec and seed make other parts of the runs, and maybe more, "
            f"and give other counts ({seed})",
        )
    if result.reproducible:
        return (f"reproducible: the same spec and seed give the same counts ({seed})",)
    return (
        f"not reproducible: the mechanism draws randomness of its own, not from the rng of the audit ({seed})",
        "other runs give other counts; dpaudit recheck --fresh repeats the witness on new ones",
    )


# --- the message of a failing test: the finding in at most 25 lines, in the order in which one acts on it ---


LONGEST = 25  # lines of a message
PROVE = "state a claim that you can prove: the true loss is no smaller than the bound above"  # where no kind fits


def refuted_lines(result: AuditResult, record: str | None = None) -> tuple[str, ...]:
    """The message of a test whose claim was refuted; `record` is the file of the result, where one was written."""
    mistake = diagnosis(result)
    error = p_text(error_probability(confidence(result)))
    accept = ""
    if record is not None:
        accept = f", or dpaudit accept {shlex.quote(clean(record, len(record)))} --reason ... --until ..."
    return _message(
        result,
        f"{verdict_text(result.verdict)}  {_name(result)}: {statement(result)}",
        *_finding(result),
        f"a mechanism that keeps its claim is refuted with probability at most {error}",
        "what to do:",
        *(f"  {line}" for line in ((PROVE,) if mistake is None else mistake.lines)),
        f"  or say that the violation is known: audit(..., expect='refuted'){accept}",
    )


def missed_lines(result: AuditResult) -> tuple[str, ...]:
    """The message of a test that knows of a violation which its audit did not find."""
    return _message(
        result,
        f"NOT FOUND  {_name(result)}: a violation that this test expects; {statement(result)}",
        *_finding(result),
        *could_see(result)[:3],
        "what to do: give more runs, or a pair on which the violation shows; or it is gone: leave out expect",
    )


def weak_lines(result: AuditResult) -> tuple[str, ...]:
    """The message of a test whose audit did not have the power that it demands."""
    wanted = ", ".join(f"{key} {exact(value)}" for key, value in result.spec["detect"].items())
    head = f"TOO LITTLE POWER  {_name(result)}: detect demands {wanted}; {statement(result)}"
    return _message(result, head, *could_see(result), "what to do: give more runs, or demand less")


def _name(result: AuditResult) -> str:
    """The name of the mechanism without that of its test, which stands above the message already."""
    return clean(str(result.spec["mechanism"]["name"]).removeprefix(f"{result.name}: "))


@standing(line)
def _finding(result: AuditResult) -> tuple[str, ...]:
    pair, witness = result.pair, result.witness
    what = "partition" if isinstance(witness.event, Partition) else "event"
    return (
        f"{what}: {clean(witness.event, LONGEST_DATA)}{meaning(result)} {leaning(result)}",
        f"  first   {data_text(pair['first'])}",
        f"  second  {data_text(pair['second'])}",
        *(f"  {line}" for line in ending_lines(result)),
        "counts, of fresh runs after the event was chosen:",
        *(f"  {line}" for line in (*evidence_lines(result)[:2], *bet_lines(result))),
    )


def _message(result: AuditResult, *lines: str) -> tuple[str, ...]:
    """The message: these lines, and how to repeat the audit."""
    if not result.reproducible:
        note = "repeat, with other counts, for the mechanism draws randomness of its own:"
    elif result.cut_short:
        note = "repeat, with other counts, for the repetition is made without max_time_s:"
    else:
        note = "repeat, with the same counts:"
    lines += (note, *(f"  {line}" for line in repeat(result)))
    return lines if len(lines) <= LONGEST else (*lines[: LONGEST - 1], "  ...")
