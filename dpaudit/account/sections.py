"""The account of a result, part by part, in the order in which a reviewer asks."""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.account.diagnosis import BITS
from dpaudit.account.findings import (
    alone,
    bet_lines,
    bracket_lines,
    ending_lines,
    health_lines,
    meaning,
    other_lines,
    representation_lines,
    unit_lines,
)
from dpaudit.account.first import DO, FOUND, SURE, explanation, found, sure, to_do
from dpaudit.account.power import control_lines, could_see
from dpaudit.account.repeating import repeat
from dpaudit.account.statements import (
    at_delta,
    confidence,
    implied,
    limits,
    record_lines,
    said,
    stamp,
    statement,
    supposed,
    verdict_text,
)
from dpaudit.base.numerals import bound, confidence_text, counted, level_text, p_text
from dpaudit.base.quoting import LONGEST_DATA, P, clean, data_text, line, standing
from dpaudit.base.strict import spec_hash
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned
from dpaudit.events import Partition
from dpaudit.results.audited import Audited
from dpaudit.results.observations import LINES

MOST_NAMES = 12  # of one kind that a sentence lists
MOST_POINTS = 8  # of a curve
WIDTH = 16  # of the column of titles
NEW_LINE = "\n"


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the account of a result: a title, sentences, and lines to paste into a shell or Python."""

    title: str
    lines: tuple[str, ...] = ()
    code: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, tell: Callable[P, Iterable[str]], *given: P.args, **named: P.kwargs) -> "Section":
        """The part that a function tells of what it is given; where that fails, the line that says so."""
        return cls(title, standing(line)(lambda: tuple(tell(*given, **named)))())


def full_text(result: Audited) -> str:
    """What `print(result)` shows: the verdict, the arithmetic behind it, its limits and how to repeat it."""
    head = f"{stamp(result)}  {clean(result.name)}: {NEW_LINE.join(said(result))}"
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


def sections(result: Audited) -> list[Section]:
    """The account of a result, part by part, in the order in which a reviewer asks."""
    mend = BITS.lines if result.refuted and result.representation_refuted else ()
    parts = [
        Section.of(FOUND.lower(), found, result),
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


def _verdict(result: Audited) -> tuple[str, ...]:
    certificate, found = result.certificate, result.representation
    limit, error = level_text(error_probability(certificate.confidence)), p_text(error_probability(confidence(result)))
    first = (
        f"{verdict_text(result.verdict)}: p-value at most {p_text(certificate.p_value)}, and {limit} or less refutes"
    )
    bits: tuple[str, ...] = ()
    if found is not None and found.certificate.refuted:
        told = p_text(found.certificate.p_value)
        bits = (f"REFUTED by bits: p-value at most {told}, a finding with a level of its own",)
    if result.refuted:
        keeps = f"a mechanism that keeps its claim is refuted with probability at most {error}"
        return (first, f"{keeps}{supposed(result)}", *unit_lines(result), *bits)
    return (*bits, first)


def _claim(result: Audited) -> tuple[str, ...]:
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
    told = [f"({', '.join(exact(number) for number in point)})" for point in points]
    if len(told) <= MOST_POINTS:
        return f"[{', '.join(told)}]"
    half = MOST_POINTS // 2
    return f"[{', '.join(told[:half])}, ..., {', '.join(told[-half:])}: {len(told):,} points]"


def _mechanism(result: Audited) -> tuple[str, ...]:
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


def _witness(result: Audited) -> tuple[str, ...]:
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


def _plain(result: Audited) -> tuple[str, ...]:
    """Beside an event that nobody can read: the best that people can, its counts on the same runs, its own bound."""
    found = result.plain
    if found is None:
        return ()
    counts = (f"{name:<7} {hits:,} of {runs:,} runs" for name, (hits, runs) in found.sides.items())
    level = confidence_text(found.certificate.confidence)
    return (
        clean(found.witness.event, LONGEST_DATA),
        *counts,
        f"alone it gives {alone(result)} with confidence {level}; the bound of the witness covers that",
    )


def leaning(result: Audited) -> str:
    """What the counts say of the side on which search took the event to be likelier: never more than they show."""
    e, made = result.evidence, result.certificate
    name = clean(result.pair["name"])
    where = f'the {result.witness.p_side} dataset of the pair "{name}"'
    shown = made.refuted or made.lower > 0.0
    if isinstance(e, Binned):
        return f"{'shows' if shown else 'does not show'} a divergence of {where} from the other"
    if shown:
        return f"is likelier on {where}"
    more = e.hits_p * e.runs_q > e.hits_q * e.runs_p
    return f"came {'more often' if more else 'no more often'} on {where}{', which may be chance' if more else ''}"


def evidence_lines(result: Audited) -> tuple[str, ...]:
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


def _bound(result: Audited) -> tuple[str, ...]:
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


def _cross_check(result: Audited) -> tuple[str, ...]:
    crossed = result.crossed()
    if crossed is None or not result.evidence.runs:  # there is nothing to check in no runs
        return ()
    if isinstance(crossed, str):
        return (f"not made: {clean(crossed)}; the verdict and the bound do not depend on it",)
    lower = bound(crossed, digits=6)
    return (f"epsilon >= {lower}{at_delta(result.certificate.delta)} by two Clopper-Pearson intervals (statsmodels)",)


def _search(result: Audited) -> tuple[str, ...]:
    witnesses = counted(len(result.others) + 1, "witness", "witnesses")
    runs, pairs = counted(result.spec["runs"], "run"), counted(len(result.spec["pairs"]), "pair")
    fixed, bets = result.certifying_runs, sum(block.evidence.runs for block in result.blocks)
    told = f"{bets:,} of them to bet on and certify" if bets else f"{fixed:,} of them to certify"
    told += f", the last {fixed:,} of these for the fixed bound" if bets and fixed else ""
    lines = [
        f"{result.runs_used:,} of {runs} used, {told}",
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


def _made_with(result: Audited) -> tuple[str, ...]:
    made = result.provenance
    versions = [f"{name} {clean(made[key])}" for key, name in _VERSIONS.items() if made.get(key)]
    lines = [", ".join(versions)] if versions else []
    if made.get("platform"):
        lines.append(f"on {clean(made['platform'])}")
    if made.get("started"):
        times = (("wall_s", "elapsed"), ("cpu_s", "of CPU"))
        spent = [f"{made[key]:.1f} s {word}" for key, word in times if key in made]
        spent += [f"{key} {clean(made[key])}" for key in ("n_jobs", "backend", "isolation") if made.get(key)]
        lines.append(f"started {clean(made['started'])}, {', '.join(spent)}")
    if made.get("max_time_s") is not None:
        limit = exact(made["max_time_s"])
        lines.append(f"the number of runs was chosen, before each stage, to fit {limit} s, start and imports included")
    stones, part = result.milestones, result.part(result.evidence)
    if stones is not None and part < 1.0:
        lines.append(
            f"{stones.planned_runs:,} certifying runs were planned, and {len(stones.ends)} milestones fixed before the "
            f"first; certified is that of {result.evidence.runs:,}, at {part:.3g} of the error probability"
        )
    return tuple(lines)


_VERSIONS = {"version": "dpaudit", "python": "Python", "numpy": "numpy", "scipy": "scipy", "joblib": "joblib"}


def _reproducible(result: Audited) -> tuple[str, ...]:
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
