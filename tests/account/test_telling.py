"""Every kind of event is told at its extremes, and what cannot be told costs its own part of a report alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaudit import report
from dpaudit.account.first import words_of
from dpaudit.account.suites import assertion
from dpaudit.base import quoting
from dpaudit.events import Event, Partition, TwoEvents, bits, event_from_dict, features, grammar, joint, scores
from dpaudit.events.joint import KINDS
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import (
    ABSENT,
    CLASS,
    LENGTH,
    MESSAGE,
    NONE,
    NOT_A_NUMBER,
    TIMED_OUT,
    TYPE,
    Token,
    token,
)
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.stored import loads
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.cases import for_each, some
from tests.golden import example

UNTOLD = quoting.untold  # the tests put another in its place
INF, NAN = math.inf, math.nan
NOTHING, TWO, MANY = (), ((0,), (1,)), tuple((k,) for k in range(100))
PATHS = ((), (0,), (LENGTH,), (0, LENGTH), (TYPE,), (CLASS,), (MESSAGE,), ("a",), ("@has 'x'",), (2**70,), ("\x00",))
ENDS = (-INF, -3.4028235e38, -1.0, -1e-45, 0.0, 0.5, 1.0, 2.0, 1e16, INF)
SPANS: tuple[tuple[tuple[float, float], ...], ...] = (
    *(((low, high),) for low, high in some(itertools.combinations_with_replacement(ENDS, 2), 20)),
    *((), ((-INF, 0.0), (1.0, INF)), tuple((float(k), k + 0.5) for k in range(40)), ((NAN, NAN),), ((INF, -INF),)),
)
TOKENS = (
    *((ABSENT,), (NONE,), (NOT_A_NUMBER,), (TIMED_OUT,), (token("raised", "ValueError"),), (Token("x" * 5_000, 7),)),
    *((Token("", 0),), (Token("type int", 2**64 - 1),), tuple(token("text", f"w{k}") for k in range(40))),
)
BINS = Binning(np.array([0.0, 1.0], np.float32), (NONE,))
PLAIN = features.Coordinate(())
ODD = features.Coordinate((0,), -1e308)
NEIGHBOURS = scores.Neighbours(PLAIN, ODD, BINS)


def given(word: str, paths: tuple[Any, ...]) -> tuple[float, ...]:
    """As many parameters as the word takes."""
    return (1.0,) * (len(paths) if word == "less" else "{by}" in grammar.WORDS[word].text)


FEATURES: tuple[Any, ...] = (
    *(features.Coordinate(path, centre) for path in PATHS for centre in (0.0, 1e308, -INF)),
    *(
        features.Whole(),
        features.Shape(NOTHING),
        features.Shape(MANY, (INF, 1.0)),
    ),
    *(joint.ordered(paths, rank, rank == 1) for paths in (TWO, MANY) for rank in (0, -1, 1)),
    *(joint.above(paths, bound) for paths in (NOTHING, TWO, MANY) for bound in (INF, -INF, NAN, 0.5)),
    *(
        joint.Equal(*TWO),
        joint.product(*TWO, (INF, -1e308)),
    ),
    *(kind(paths) for kind in (joint.Present, joint.Distinct) for paths in (NOTHING, TWO, MANY)),
    *(joint.FirstOf(paths, number) for paths in (NOTHING, TWO, MANY) for number in (None, INF, 0.5)),
    *(joint.FirstOf(TWO, None, 5, "x" * 4_000), bits.LowestBit(), bits.LowestBit(MANY), bits.OnGrid((), 5e-324)),
    *(bits.BitScore((), (0.5, -INF)), bits.BitScore()),
    *(grammar.Expression(word, paths, given(word, paths)) for word in grammar.WORDS for paths in (TWO, MANY)),
    grammar.Expression("sum", (grammar.Expression("less", TWO, (0.0, INF)), (5,))),
    *(bits.TrailingZeros((), edges) for edges in ((), (0.5, 1.0), (-INF, INF))),
    *(scores.Linear((), (), (), ()), scores.Linear(TWO, (INF, NAN), (0.0, INF), (1.0, NAN), "squares")),
    *(scores.LogRatio(()), scores.LogRatio((scores.Term(PLAIN, BINS, (1.0, -INF, INF, NAN, 0.0)),), pooled=True)),
    scores.LogRatio((scores.Term(NEIGHBOURS, BINS, (0.0,) * 5), scores.Term(features.Shape(TWO), BINS, (0.0,) * 5))),
)


def events(feature: Any) -> Iterator[Event]:
    yield from (Event(feature, span) for span in SPANS)
    yield from (Event(feature, (), tokens) for tokens in TOKENS)
    yield Event(feature, ((-INF, INF),), TOKENS[-1])
    first, other = Event(feature, ((-INF, 0.5),)), Event(PLAIN, ((0.0, INF),))
    yield from (Event(TwoEvents(first, other), (span,)) for span in ((0.5, INF), (-INF, 0.5), (-INF, INF)))


def told_by(event: Event | Partition, **changes: Any) -> AuditResult:
    made = example.result(**changes)
    witness = replace(made.witness, event=event)
    return replace(made, witness=witness, plain=Finding(made.claim, witness, made.evidence, made.certificate))


def test_the_features_here_are_of_every_kind_there_is() -> None:
    known = {*KINDS, *bits.KINDS, scores.LogRatio, scores.Linear}
    assert {type(feature) for feature in FEATURES} == known


@for_each("feature", FEATURES, ids=lambda feature: str(feature)[:60])
def test_every_event_has_its_words_and_comes_back_from_its_stored_form(feature: Any) -> None:
    for event in events(feature):
        result = told_by(event)
        words = words_of(event, result)
        assert words
        assert "\n" not in words
        again = event_from_dict(event.to_dict())
        assert again.to_dict() == event.to_dict()
        assert repr(again) == repr(event)  # equal, NaN apart


@for_each(
    ("span", "words"),
    [
        ((-INF, INF), "position of the first 0 in output is any, or nowhere"),
        ((-INF, 1.0), "0 is in output"),
        ((-INF, 1.5), "0 is in output"),
        ((-INF, 0.5), "position of the first 0 in output is at most 0"),
        ((0.5, 1.5), "position of the first 0 in output is 1"),
        ((0.5, INF), "position of the first 0 in output is at least 1, or nowhere"),
        ((1.5, INF), "no 0 in output"),
        ((-INF, -INF), "position of the first 0 in output == -inf"),
        ((INF, INF), "position of the first 0 in output == inf"),
    ],
)
def test_a_position_is_told_with_its_end_beyond_the_list(span: tuple[float, float], words: str) -> None:
    event = Event(joint.FirstOf(TWO, 0.0, label="0"), (span,))
    assert words_of(event, told_by(event)) == words


def everywhere(result: AuditResult) -> dict[str, str]:
    """What each format, and each way of looking at it, tells of a result that nobody expected."""
    entry = SuiteEntry(result.name, Verdict.NOT_REFUTED, result)
    suite = SuiteResult((entry,), 0.999)
    told = {f"{name} of a suite": report.render(suite, made) for name, made in report.FORMATS.items()}
    told |= {name: report.render(result, made) for name, made in report.FORMATS.items() if made.single}
    told |= {"str": str(result), "repr": repr(result), "notebook": result._repr_html_()}
    return told | {"explain": str(result.explain()), "failure": assertion(entry)}


@pytest.mark.long
def test_every_format_tells_the_events_at_their_extremes() -> None:
    """One of each kind of feature; the words of all others are tried above."""
    features = {type(feature): feature for feature in FEATURES}.values()
    spans = itertools.cycle([(-INF, INF), (0.5, INF), (-INF, -INF)])
    asked = example.result().spec
    made = [
        told_by(Event(feature, (span,)), spec={**asked, "name": f"audit of {feature.kind}"})
        for feature, span in zip(features, spans, strict=False)
    ]
    bins = tuple(Event(PLAIN, (span,)) for span in ((-INF, -3e38), (3e38, INF)))
    made.append(told_by(Partition(PLAIN, bins)))
    made.append(
        example.result(
            typical=replace(example.result().illustration.typical, constant=("(32.0, 64.0)", "(32.0, 64.0)"))
        )
    )
    suite = SuiteResult(tuple(SuiteEntry(each.name, Verdict.REFUTED, each) for each in made), 0.99)
    for name, format_ in report.FORMATS.items():
        assert report.render(suite, format_), name
    for each in made:
        assert loads(each.to_json()).to_json() == each.to_json()
        assert repr(each), each.explain()
    for each in made[::8]:
        assert all(everywhere(each).values())


def fail(*given: object, **named: object) -> None:
    raise OverflowError("cannot convert float infinity to integer")


LINE = "part cannot be told (OverflowError: cannot convert float infinity to integer)"


@for_each(
    ("broken", "shown"),
    [
        ("dpaudit.account.first.words_of", {"str", "explain", "txt", "md", "html", "notebook", "failure"}),
        ("dpaudit.account.audit.data_text", {"explain", "txt", "md", "html", "notebook"}),
        ("dpaudit.account.audit.level_text", {"explain", "txt", "md", "html", "notebook"}),
        ("dpaudit.account.repeat.python_form", {"str", "explain", "txt", "md", "html", "notebook", "failure"}),
        ("dpaudit.account.diagnosis.diagnosis_of_kind", {"str", "txt", "md", "html", "json", "sarif of a suite"}),
        ("dpaudit.account.officer.promise", {"explain", "txt", "md", "html"}),
        ("dpaudit.account.officer.record_digest", {"explain", "md", "html"}),
        ("dpaudit.account.audit.exact", {"explain", "md", "html"}),
        ("dpaudit.account.statements.bound", {"str", "txt", "md", "html", "repr", "failure"}),
        ("dpaudit.account.statements.wrong", {"str", "txt", "md", "html", "repr", "failure"}),
        ("dpaudit.account.statements.bits_looked_at", {"str", "txt", "md", "html"}),
        ("dpaudit.account.tables.level_text", {"explain", "md", "html"}),
        ("dpaudit.report.figures.panel.Panel.line", {"html", "notebook"}),
    ],
)
def test_a_part_that_fails_says_so_and_takes_nothing_with_it(
    monkeypatch: pytest.MonkeyPatch, broken: str, shown: set[str]
) -> None:
    result = example.result()
    with monkeypatch.context() as patched:
        patched.setattr(quoting, "untold", UNTOLD)
        patched.setattr(broken, fail)
        told = everywhere(result)
        assert "REFUTED" in told["str"]
        for name, text in told.items():
            assert name in ("json", "json of a suite", "badge of a suite") or "REFUTED" in text, name
        for name in shown:
            assert LINE in text_of(told[name]), name
        assert all("82,289" in told[name] for name in ("explain", "md", "html"))
        stored = loads(told["json"])
        assert (stored.verdict, stored.evidence, stored.exit_code) == (result.verdict, result.evidence, 0)


def text_of(told: str) -> str:
    return told.replace("\\", "")
