"""Two records held against each other: every kind of change, told in a line, and failing what should fail."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.account.change import Half, Kind, change_line, comparison_lines
from dpaudit.auditing.clock import cut
from dpaudit.errors import InvalidSpec
from dpaudit.events import event_from_dict
from dpaudit.ledger.comparison import change_of, compare, matched, question
from dpaudit.results.result import AuditResult
from tests.cases import for_each
from tests.ledger import made
from tests.report import hostile

SOUND = made.counted(100_000, 50_000)  # epsilon about 0.69, claimed 1
LOUDER = made.counted(100_000, 45_000)  # about 0.80
LOUD = made.counted(200_000, 50_000)  # about 1.39: refuted
NOTHING = Half("noisy count, whole noise", None, "the worker was lost twice")


def kinds(old: AuditResult | Half, new: AuditResult | Half) -> set[Kind]:
    halves = [made.half(each) if isinstance(each, AuditResult) else each for each in (old, new)]
    return set(change_of(*halves).kinds)


def code(old: AuditResult | Half | None, new: AuditResult | Half | None, fail_on: str = "regression") -> int:
    sides = [
        () if each is None else (made.half(each) if isinstance(each, AuditResult) else each,) for each in (old, new)
    ]
    return compare(*sides).exit_code(fail_on)


@for_each(
    ("old", "new", "expected", "codes"),
    [
        (SOUND, SOUND, {Kind.SAME}, (0, 0, 0)),
        (SOUND, made.counted(100_100, 50_100, seed=1), {Kind.NOISE}, (0, 0, 0)),
        (SOUND, LOUDER, {Kind.ROSE}, (1, 1, 0)),
        (LOUDER, SOUND, {Kind.FELL}, (0, 1, 0)),
        (SOUND, LOUD, {Kind.REFUTED, Kind.ROSE}, (1, 1, 0)),
        (LOUD, SOUND, {Kind.CLEARED, Kind.FELL}, (0, 1, 0)),
        (LOUD, made.counted(220_000, 50_000), {Kind.ROSE}, (1, 1, 0)),
        (SOUND, made.sourced(SOUND, "ff"), {Kind.SOURCE}, (0, 1, 0)),
        (SOUND, made.sourced(SOUND, None), {Kind.SAME}, (0, 0, 0)),
        (SOUND, made.sourced(LOUDER, "ff"), {Kind.SOURCE, Kind.ROSE}, (1, 1, 0)),
        (SOUND, made.counted(100_000, 45_000, runs=2_000_000), {Kind.QUESTION}, (0, 1, 0)),
        (SOUND, made.counted(200_000, 50_000, runs=2_000_000), {Kind.QUESTION, Kind.REFUTED}, (1, 1, 0)),
        (SOUND, made.counted(100_000, 50_000, epsilon=0.5), {Kind.QUESTION, Kind.REFUTED}, (1, 1, 0)),
        (SOUND, made.counted(100_000, 45_000, confidence=0.99), {Kind.QUESTION}, (0, 1, 0)),
        (SOUND, made.counted(100_000, 45_000, certifier="unconditional"), {Kind.QUESTION}, (0, 1, 0)),
        (made.counted(1, 1, representation=True), made.with_bits(made.counted(1, 1)), {Kind.BITS}, (1, 1, 0)),
        (SOUND, NOTHING, {Kind.LOST}, (1, 1, 0)),
        (NOTHING, SOUND, {Kind.FOUND}, (0, 1, 0)),
        (NOTHING, LOUD, {Kind.FOUND, Kind.REFUTED}, (1, 1, 0)),
        (NOTHING, NOTHING, {Kind.NEITHER}, (5, 5, 0)),
    ],
)
def test_every_kind_of_change_and_what_it_fails(
    old: AuditResult | Half, new: AuditResult | Half, expected: set[Kind], codes: tuple[int, int, int]
) -> None:
    assert kinds(old, new) == expected
    assert tuple(code(old, new, fail_on) for fail_on in ("regression", "any", "never")) == codes


def test_what_is_in_one_record_alone_is_new_or_gone_and_nothing_in_common_is_no_success() -> None:
    assert (code(SOUND, None), code(SOUND, None, "any"), code(SOUND, None, "never")) == (5, 1, 0)
    assert (code(None, LOUD), code(None, LOUD, "any")) == (5, 1)  # not a regression: it was not asked before
    assert code(None, None) == 5
    other = replace(SOUND, spec={**SOUND.spec, "name": "other"})
    both = compare([made.half(SOUND), made.half(other)], [made.half(SOUND)])
    assert [change.kind for change in both.changes] == [Kind.GONE, Kind.SAME]
    assert (both.exit_code("regression"), both.exit_code("any")) == (0, 1)


def test_parts_of_the_question_are_named() -> None:
    for same in (made.counted(1, 1, seed=9, name="other"), made.sourced(SOUND, "ff")):
        assert question(SOUND, same) == ()
    moved = {**SOUND.spec["mechanism"], "parameters": {"scale": 2}}
    data = [{**SOUND.spec["pairs"][0], "first": {"digest": "0", "value": None}}]
    changed = made.counted(1, 1, mechanism=moved, pairs=data, runs=300, detect={"epsilon": 2.0, "mass": 0.1})
    assert question(SOUND, changed) == ("mechanism parameters", "pairs", "runs", "detect")
    assert question(SOUND, made.counted(1, 1, epsilon=2.0)) == ("claim",)


def test_audits_are_matched_by_name_first_and_never_by_guess() -> None:
    def named(name: str, reference: str = "m:f", epsilon: float = 1.0) -> Half:
        mechanism = {**SOUND.spec["mechanism"], "reference": reference}
        return made.half(made.counted(100_000, 50_000, epsilon=epsilon, name=name, mechanism=mechanism))

    def pairs(old: list[Half], new: list[Half]) -> list[tuple[str | None, str | None]]:
        def told(half: Half | None) -> str | None:
            return None if half is None else half.name

        return [(told(before), told(after)) for before, after in matched(old, new)]

    a, b, renamed = named("a"), named("b", "m:g"), named("c")
    assert pairs([a, b], [b, a]) == [("b", "b"), ("a", "a")]
    assert pairs([a], [named("a", epsilon=2.0)]) == [("a", "a")]  # the claim changed
    assert pairs([a], [named("a", "m:h")]) == [("a", "a")]  # the mechanism moved
    assert pairs([a], [renamed]) == [("a", "c")]  # the same question under another name
    assert pairs([a, named("d")], [renamed]) == [("a", None), ("d", None), (None, "c")]  # it may be either
    assert pairs([a, a], [a, a]) == [("a", "a"), ("a", "a")]
    assert pairs([a, a], [a]) == [("a", "a"), ("a", None)]
    assert pairs([a], [Half("a", None, "lost")]) == [("a", "a")]
    twice = [named("a", epsilon=2.0), named("a", epsilon=3.0)]
    assert pairs([a], twice) == [("a", None), (None, "a"), (None, "a")]


def test_audits_of_one_name_are_matched_by_all_that_they_ask_first_and_each_may_lose_its_verdict() -> None:
    def found(old: list[Half], new: list[Half]) -> list[Kind]:
        return [change.kind for change in compare(old, new).changes]

    sides = [made.half(SOUND), made.half(made.counted(100_000, 50_000, epsilon=2.0))], [NOTHING, NOTHING]
    assert found(*sides) == [Kind.LOST, Kind.LOST]
    assert compare(*sides).exit_code("regression") == 1
    assert found(*reversed(sides)) == [Kind.FOUND, Kind.FOUND]
    assert found(sides[1], sides[1]) == [Kind.NEITHER, Kind.NEITHER]
    long, louder = (made.half(made.counted(100_000, hits, runs=2_000_000)) for hits in (50_000, 45_000))
    assert found([made.half(SOUND), long], [louder, made.half(SOUND)]) == [Kind.ROSE, Kind.SAME]


def test_a_comparison_states_its_false_alarms_in_all() -> None:
    old = [made.half(replace(SOUND, spec={**SOUND.spec, "name": name})) for name in "abc"]
    same = compare(old, old)
    assert (same.rise_checks, same.false_alarm) == (0, 0.0)  # equal counts are not held against each other
    found = compare(old, [made.half(made.counted(100_100, 50_100, seed=1, name=name)) for name in "abc"])
    assert (found.rise_checks, round(found.false_alarm, 9)) == (3, 0.006)
    told = "3 bounds were held against the old: one of them rises by chance with probability 0.006 at most"
    assert any(told in line for line in comparison_lines(found, "any"))


@for_each(
    ("new", "parts"),
    [
        (
            made.half(made.sourced(LOUDER, "ff")),
            (
                "REGRESSION          noisy count, whole noise: not refuted as before, epsilon >= 0.7",
                "before epsilon >= 0.6",
                "rose beyond noise: the old event loses at most 0.7",
                "(error probability 0.001); its source changed",
            ),
        ),
        (
            made.half(made.counted(200_000, 50_000, runs=2_000_000)),
            (
                "became REFUTED, epsilon >= 1.3",
                "asked otherwise (runs), so the bounds alone prove nothing of the mechanism",
            ),
        ),
        (NOTHING, ("REGRESSION ", "now no verdict (the worker was lost twice); before not refuted")),
        (
            made.half(made.counted(100_050, 50_000)),
            ("the counts differ although source, question and seed are the same",),
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_lines_say_the_numbers_the_limit_and_its_level(new: Half, parts: tuple[str, ...]) -> None:
    line = change_line(change_of(made.half(SOUND), new))
    assert all(part in line for part in parts), line


def test_a_comparison_opens_with_what_it_found_and_closes_with_its_rule() -> None:
    other = made.half(replace(SOUND, spec={**SOUND.spec, "name": "other"}))
    found = compare([made.half(SOUND), other], [made.half(LOUD), other], old_label="x", new_label="y")
    lines = comparison_lines(found, "regression")
    assert lines[0] == "2 audits compared: 1 regression; 1 became refuted, 1 same counts; exit code 1"
    assert [line.split() for line in lines[1:3]] == [["old", "x"], ["new", "y"]]
    assert sum("other" in line for line in lines) == 0  # what did not change is only counted
    assert "A bound rose beyond noise where" in lines[-3]
    empty = comparison_lines(compare([], []), "regression")[-1]
    assert empty.endswith("No audit with a verdict is in both: there was nothing to compare.")


def test_no_name_breaks_a_line() -> None:
    for name in hostile.NAMES:
        half = made.half(replace(SOUND, spec={**SOUND.spec, "name": name}))
        for old, new in ((half, None), (None, half), (half, Half(name, None, name))):
            assert change_line(change_of(old, new)).isprintable()


def test_counts_that_the_clock_cut_are_no_hint_of_a_change() -> None:
    """The same question and seed gave other counts because there was time for fewer runs."""
    other = made.counted(100_100, 50_100)
    timed = replace(other, explored=(*other.explored, cut("900,000 certifying runs", 1_000_000)))
    assert [change_of(made.half(SOUND), made.half(each)).hidden for each in (other, timed)] == [True, False]


def test_an_old_event_that_was_run_again_needs_no_margin() -> None:
    """Its fresh bound tells of itself; the new event's is held against the old limit with a margin besides."""
    old, new = made.half(SOUND), made.half(LOUDER)
    event = {"feature": {"kind": "coordinate", "path": []}, "intervals": [["-inf", 7.0]], "tokens": []}
    away = made.half(replace(LOUDER, witness=replace(LOUDER.witness, event=event_from_dict(event))))
    for after, fresh, rose, chance in (
        (new, LOUDER, True, 0.004),
        (away, SOUND, False, 0.004),
        (away, LOUDER, True, 0.004),
        (made.half(made.counted(100_100, 50_100)), LOUDER, True, 0.004),
    ):
        seen = compare([old], [after], again=lambda result, fresh=fresh: fresh)
        assert (Kind.ROSE in seen.changes[0].kinds) is rose
        assert seen.false_alarm == chance
        assert ("rose beyond noise: on fresh runs" in change_line(seen.changes[0])) is rose
        assert "of the code here the old event loses at least 0." in change_line(seen.changes[0])


def test_where_an_old_event_cannot_be_run_again_the_bounds_are_compared() -> None:
    def again(result: AuditResult) -> AuditResult:
        raise InvalidSpec("its spec is gone")

    change = change_of(made.half(SOUND), made.half(LOUDER), again)
    assert Kind.ROSE in change.kinds
    line = change_line(change)
    assert "the old event was not run again (its spec is gone); rose beyond noise: the old event loses at most" in line
    within = compare([made.half(SOUND)], [made.half(made.counted(100_100, 50_100))], again=again)
    assert any("was not run again" in line for line in comparison_lines(within, "regression"))
