"""The page of the study as Markdown: its sentences are computed from the records they speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from audits.literature import expected
from audits.literature.expected import down, up
from audits.literature.published import of
from audits.literature.record import AGREEING, CONFIDENCE, CONFIDENCES, PEERS, Failed, Record
from audits.literature.sections import MARK, number, tables
from audits.literature.table import Table, escape

TITLE = "The published benchmark: certified bounds beside exact losses and published ones"
EXACT, EXECUTIONS = "against-exact", "against-executions"  # the figures, without suffix
LONGEST = 300  # characters of an event on the page


def markdown(
    records: Sequence[Record],
    failed: Sequence[Failed],
    groups: Sequence[Table],
    machine: Mapping[str, Any],
    command: str,
) -> str:
    """The page; every text that is not its own is escaped."""
    first, *rest = tables(records, failed, groups, machine.get("study_s")) or (None,)
    blocks = [f"# {TITLE}", *map(escape, summary(records, failed, groups))]
    blocks += first.markdown() if first else []
    blocks += figures() if records else []
    for table in rest:
        blocks += table.markdown() if table else []
    if records:
        blocks += ["## Witnesses", "\n".join(map(witness, records))]
    for table in groups:
        blocks += table.markdown()
    blocks += ["## What is compared, and what is not", *map(escape, comparison(records)), "## How to repeat it"]
    made = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items())
    blocks += [f"`{command}`", escape(f"Made with: {made}." if made else "Nothing was run.")]
    return "\n\n".join(blocks) + "\n"


def figures() -> list[str]:
    """The two figures and what they show."""
    return [
        "## Figures",
        f"![Bounds against exact losses]({EXACT}.svg)",
        escape(
            f"Certified bounds, from confidence {CONFIDENCE:g} (small dot) to {PEERS:.2f} (large dot), beside the "
            "published ones, which are at 0.90. Where the exact loss is finite, bounds are shown over it."
        ),
        f"![Bounds against executions]({EXECUTIONS}.svg)",
        escape(
            "Each point of ours is an audit of its own with so many executions, search included. Epsilon is drawn from "
            "0; DP-Sniper's bounds stand at the executions of one classifier."
        ),
    ]


def summary(records: Sequence[Record], failed: Sequence[Failed], groups: Sequence[Table] = ()) -> Iterator[str]:
    """What the page says first."""
    if failed:
        yield f"Not audited: {', '.join(each.name for each in failed)}; the reasons are below."
    if not records:
        return
    yield (
        f"{len(records)} mechanisms from the papers on StatDP, DP-Finder and DP-Sniper, each audited with at most "
        f"{max(each.main.asked for each in records):,} executions: all pairs searched, one event frozen and certified "
        f"on fresh runs at confidence {CONFIDENCE:g}, seed 0. Outputs are as the mechanisms give them: no flags and no "
        "summaries were made for the audit."
    )
    asked = expected.comparable(records)
    below = [_explained(each) for each in asked if not expected.compared(each)]
    if asked:
        yield (
            f"At confidence {PEERS:.2f}, that of the published bounds, {len(asked) - len(below)} of {len(asked)} are "
            f"above the better one of DP-Sniper's two classifiers. Not above it: {', '.join(below) or 'none'}."
        )
        ours, theirs = (sum(executions) for executions in zip(*map(_executions, asked), strict=True))
        yield (
            f"These {len(asked)} took {ours:,} executions and {up(sum(each.main.cpu_s for each in asked), 0)} CPU "
            f"seconds in all. DP-Sniper took {theirs:,} with each classifier, {theirs // ours:,} times as many."
        )
    for level in CONFIDENCES:
        names = [each.name for each in records if each.main.above_the_truth(level)]
        told = f"{', '.join(names)}; marked {MARK}" if names else "none"
        chance = f"{1.0 - level:.2g}"
        yield f"Bounds at {level:g} above the exact loss of their pair (by chance, {chance} each at most): {told}."
    for table in groups:
        if table.verdict:
            yield f"{table.title}, below: {table.verdict}"


def comparison(records: Sequence[Record]) -> Iterator[str]:
    """How far numbers of one line can be held against each other."""
    yield (
        "Definitions and pairs. The mechanisms have the definitions and parameters of DP-Sniper's evaluation. The "
        "pairs are its patterns too: (1, ..., 1) against vectors of which one entry, or every entry, moves by 1, and "
        "for the latter a half of ones and one of zeros exchanged; 1 against 0 and 2 for single values and for the 20 "
        "of LaplaceParallel. Both directions of each are looked at. NoisySum is DP-Finder's, with one element more. "
        "Losses and bounds are those of these pairs; other pairs may lose more."
    )
    yield (
        "Outputs. Ours are whole, and what is absent is absent. For DP-Sniper numbers stand in the place of what is "
        "absent, most of them told apart by flags; StatDP sees the outputs of the sparse vector technique through a "
        "number or two that were chosen for each variant."
    )
    held = [each for each in records if each.exact is not None and each.catalogued is not None]
    other = [f"{each.name} ({number(each.catalogued)})" for each in held if not each.agrees]
    yield (
        "Exact losses. They are those of the laws named above. The catalogue's losses, which share integrals with some "
        f"of them, agree to {AGREEING:g} for {len(held) - len(other)} of {len(held)}; not agreeing: "
        f"{', '.join(other) or 'none'}. The tests compare each law with another computation or with runs of the "
        "mechanism."
    )
    yield from map(numerical, (each for each in records if each.name == "NumericalSVT"))
    yield (
        f"Confidence. Each of our bounds holds by itself, at {CONFIDENCE:g}, 0.95 or {PEERS:.2f}, all from the same "
        "counts of one event. Published ones are at 0.90, by two Clopper-Pearson limits at 0.05; the column of two "
        "intervals is our counts by that rule. At 0.90 a tenth of all bounds may be above the truth, whoever computes "
        "them."
    )
    over = [
        f"{each.name} ({tool} {epsilon:g}, exact {number(each.exact)})"
        for each in records
        for tool, epsilon in _published(each.name)
        if each.exact is not None and epsilon > each.exact
    ]
    if over:
        yield (
            f"Published above the truth: {', '.join(over)}. At their confidence that happens to a tenth of bounds at "
            "most; no sound audit can be expected to exceed them."
        )
    yield (
        "Hardware. The machine of the published seconds is not described, so executions compare and seconds do not. "
        "Our CPU seconds hold the search, the certification and the checks of the experiment; exact laws and the "
        "smaller audits of the figure are apart."
    )
    yield (
        "Floating point. DP-Sniper published 0.2521 for the bits of a Laplace output claimed 0.1: a finding on a "
        "program, not on the mechanism. Bits are not looked at here."
    )


def numerical(record: Record) -> str:
    """What is known of NumericalSVT, whose best event has no reliable published value."""
    told = (
        "NumericalSVT. Samples alone do not settle its best event, for the likelihood ratios are estimates too: they "
    )
    told += "put the ceiling at mass 0.01 anywhere from 0.046 to 0.084. "
    if record.exact is None or record.main.oracle_all is None:
        return f"{told}No law with a stated error is known here."
    return (
        f"{told}From the exact law it is {number(record.ceiling)}, the exact loss {number(record.exact)}, and the best "
        f"event's bound with as many certifying runs {down(record.main.oracle_all)}."
    )


def witness(record: Record) -> str:
    """The witness of a row as an item of a list: the datasets, the hits and the event.

    The event is told as the search froze it, cut where it is long; the JSON record has all of it.
    """
    found = record.main
    event = found.event if len(found.event) <= LONGEST else f"{found.event[: LONGEST - 3]}..."
    event = event.replace("`", "'")  # it stands in backquotes
    sides = f"likelier on ({found.likelier}) than on ({found.rarer}), {found.hits_p:,} hits against {found.hits_q:,}"
    return f"- **{escape(record.name)}**: `{event}` is {escape(sides)}"


def _executions(record: Record) -> tuple[int, int]:
    return record.main.executions, of(record.name).executions


def _published(name: str) -> Iterator[tuple[str, float]]:
    known = of(name)
    for tool, reported in (("DP-Sniper, logistic", known.logistic), ("DP-Sniper, network", known.network)):
        if reported is not None:
            yield tool, reported.epsilon
    for reported in known.statdp if known.same else ():
        yield "StatDP", reported.epsilon


def _explained(record: Record) -> str:
    best = of(record.name).best
    assert best is not None
    told = f"{record.name} ({down(record.main.bound(PEERS))} against {best}"
    if record.main.above_the_truth(PEERS):
        told += f"; above the exact loss {number(record.main.exact)}, so it does not count"
    if record.exact is not None and best.epsilon > record.exact:
        told += f", which is above the exact loss {number(record.exact)}"
    return f"{told})"
