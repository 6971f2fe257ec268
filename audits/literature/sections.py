"""The tables of the page: a column is a heading and what stands under it for a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, Context

from audits.literature import expected
from audits.literature.expected import down, up
from audits.literature.oracle import GRID
from audits.literature.published import SEARCHING, VERIFYING, Reported, of
from audits.literature.record import CONFIDENCE, CONFIDENCES, PEERS, Failed, Record
from audits.literature.table import Table

MARK = "†"  # a number above the exact loss

Column = tuple[str, Callable[[Record], str]]


def tables(
    records: Sequence[Record],
    failed: Sequence[Failed] = (),
    groups: Sequence[Table] = (),
    seconds: float | None = None,
) -> tuple[Table, ...]:
    """The tables of the page, those that have rows."""
    made = (bounds(records), closeness(records), costs(records), judged(records, groups, seconds), not_audited(failed))
    return tuple(each for each in made if each.rows)


def bounds(records: Sequence[Record]) -> Table:
    """Claim, exact loss, certified bounds, and the published ones."""
    columns: list[Column] = [
        ("mechanism", lambda row: row.name),
        ("claim", lambda row: number(row.claimed)),
        ("exact loss", lambda row: number(row.exact)),
        *((f"ours, {level:g}", _certified(level)) for level in CONFIDENCES),
        (f"ours, {PEERS:g} by two intervals", lambda row: down(row.main.two_intervals)),
        ("DP-Sniper, logistic", lambda row: reported(row, of(row.name).logistic)),
        ("DP-Sniper, network", lambda row: reported(row, of(row.name).network)),
        ("StatDP, two runs", _statdp),
        ("above DP-Sniper", lambda row: {True: "yes", False: "no", None: "-"}[expected.compared(row)]),
    ]
    notes = [
        f"{MARK} above the exact loss. The exact loss is the largest of the pairs that were given, both directions. "
        "Bounds are rounded down. The last column compares ours at 0.9 with the better of DP-Sniper's two; one above "
        "the exact loss does not count.",
        *(f"{row.name}: {of(row.name).remark}" for row in records if of(row.name).remark),
    ]
    return _table("Bounds", columns, records, notes=notes)


def closeness(records: Sequence[Record]) -> Table:
    """What could have been shown at most, and how much of it was."""
    columns: list[Column] = [
        ("mechanism", lambda row: row.name),
        ("outputs", lambda row: "discrete" if row.discrete else "numbers"),
        ("exact loss of the certified pair", lambda row: number(row.main.exact)),
        ("best event, certified pair", lambda row: _or_dash(row.main.oracle)),
        ("best event, all pairs", lambda row: _or_dash(row.main.oracle_all)),
        ("part reached", part),
        ("ceiling at mass 0.01", lambda row: number(row.ceiling)),
        ("relative error of the law", _error),
    ]
    notes = [_without_law(records), *_methods(records)]
    before = (
        "The best event is Neyman and Pearson's for the exact law; its bound is that of the same certifier at "
        f"{CONFIDENCE:g} with as many certifying runs, at expected counts. The part reached is the bound of "
        "the frozen event, at its own expected counts, over that of the best event of all pairs, both directions. Its "
        "probabilities are those of the law, by outputs weighted with their exact ratio, or counted on fresh runs: the "
        "standard error says how well they are known.",
        "The ceiling is the largest log ratio of an event whose rarer probability is fixed at 0.01, as DP-Sniper "
        "fixes it.",
        "The relative error bounds that of the probabilities of these events. Where outputs are numbers, events are "
        "unions of fine cells: with cells an eighth as wide the best bound grows by less than "
        f"{100.0 * GRID:g} %.",
    )
    return _table("How close to what can be shown", columns, records, before=before, notes=notes)


def costs(records: Sequence[Record]) -> Table:
    """Executions and seconds, ours and the published ones."""
    columns: list[Column] = [
        ("mechanism", lambda row: row.name),
        ("pairs", lambda row: str(row.pairs)),
        ("executions", lambda row: f"{row.main.executions:,}"),
        ("certifying", lambda row: f"{row.main.certifying:,}"),
        ("CPU s", lambda row: up(row.main.cpu_s, 1)),
        ("wall s", lambda row: up(row.main.wall_s, 1)),
        ("DP-Sniper, executions", lambda row: f"{of(row.name).executions:,}" if of(row.name).best else "-"),
        ("DP-Sniper logistic, s", lambda row: _seconds(of(row.name).logistic)),
        ("DP-Sniper network, s", lambda row: _seconds(of(row.name).network)),
        ("StatDP, executions a try", lambda row: f"{of(row.name).statdp_executions:,}" if of(row.name).statdp else "-"),
        ("StatDP, s", lambda row: _seconds(next(iter(of(row.name).statdp), None))),
    ]
    notes = (
        f"DP-Sniper takes {SEARCHING:,} executions for each pair in each order and {VERIFYING:,} for its last event, "
        "with each classifier, by its documented sample sizes. StatDP takes the executions of a try for each epsilon "
        f"that it tries, an unpublished number of them, and {VERIFYING:,} for its last event, whose time is not in "
        "its seconds.",
    )
    return _table("Executions and time", columns, records, notes=notes)


def judged(records: Sequence[Record], groups: Sequence[Table] = (), seconds: float | None = None) -> Table:
    """What was expected before the runs, and what was found; no rows for audits of another size."""
    held = expected.expectations(records, groups, seconds)
    rows = tuple((each.words, each.found, "met" if each.met else expected.MISSED) for each in held)
    return Table("What was expected", ("expected", "found", "outcome"), rows)


def not_audited(failed: Sequence[Failed]) -> Table:
    """The rows that could not be audited."""
    return Table("Not audited", ("mechanism", "why"), tuple((each.name, each.reason) for each in failed))


def number(value: float | None) -> str:
    """An exact number in four digits; a dash where it is not known.

    >>> number(0.117783), number(math.inf), number(None)
    ('0.1178', '∞', '-')
    """
    if value is None:
        return "-"
    return "∞" if math.isinf(value) else f"{value:.4g}"


def part(row: Record) -> str:
    """What the frozen event is worth of the best one, with its standard error; a dash where it is not known."""
    found = row.main
    if found.expected_part is None:
        return "-"
    error = (found.chance_error or 0.0) / (found.oracle_all or math.inf)
    return f"{down(found.expected_part, 3)} ± {up(error, 3)}"


def reported(row: Record, bound: Reported | None) -> str:
    """A published bound, marked where it is above the exact loss; a dash for none."""
    if bound is None:
        return "-"
    return f"{bound} {MARK}" if row.exact is not None and bound.epsilon > row.exact else str(bound)


def _table(
    title: str,
    columns: Sequence[Column],
    records: Sequence[Record],
    *,
    before: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Table:
    rows = tuple(tuple(cell(row) for _, cell in columns) for row in records)
    return Table(title, tuple(heading for heading, _ in columns), rows, tuple(before), tuple(notes))


def _certified(level: float) -> Callable[[Record], str]:
    def cell(row: Record) -> str:
        return down(row.main.bound(level)) + (f" {MARK}" if row.main.above_the_truth(level) else "")

    return cell


def _statdp(row: Record) -> str:
    known = of(row.name)
    if not known.same:
        return f"{' / '.join(map(str, known.statdp))} (another mechanism)"
    return " / ".join(reported(row, each) for each in known.statdp) or "-"


def _error(row: Record) -> str:
    """A bound, in two digits rounded up."""
    if row.error is None:
        return "-"
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(row.error)):.1e}"


def _without_law(records: Sequence[Record]) -> str:
    names = ", ".join(f"{row.name} ({row.unknown})" for row in records if row.unknown)
    return f"No law with a stated error is known for: {names}." if names else "Every law here has a stated error."


def _methods(records: Sequence[Record]) -> Iterator[str]:
    """How the laws are known, a sentence for each way."""
    for method in dict.fromkeys(row.method for row in records if row.method):
        yield f"{', '.join(row.name for row in records if row.method == method)}: {method}."


def _or_dash(value: float | None) -> str:
    return "-" if value is None else down(value)


def _seconds(each: Reported | None) -> str:
    return "-" if each is None or each.seconds is None else f"{each.seconds:,}"
