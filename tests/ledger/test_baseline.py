"""The file of accepted findings: exact both ways, strict, and never a cover for what it was not written for."""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.account.suites import reviewed_lines
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.baseline import accept, merged, read_baseline, review, write_baseline
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, fingerprint
from dpaudit.results.suite import Acceptance, SuiteEntry, SuiteResult
from tests.cases import for_each
from tests.golden import example
from tests.ledger import made
from tests.report import hostile

TODAY = date(2026, 3, 1)
LATER = TODAY + timedelta(days=30)
WHOLE = Acceptance("0123456789abcdef", "noisy count", "old API", TODAY, LATER)

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
acceptances = st.builds(
    Acceptance,
    st.text("0123456789abcdef", min_size=16, max_size=16),
    texts,
    texts.filter(lambda text: bool(text.strip())),
    st.just(TODAY),
    st.dates(min_value=TODAY),
)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.lists(acceptances, max_size=5, unique_by=lambda each: each.fingerprint))
def test_what_is_written_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, found: list[Acceptance]
) -> None:
    path = tmp_path_factory.getbasetemp() / "accepted.toml"
    write_baseline(path, found)
    text = path.read_text(encoding="utf-8")
    assert set(read_baseline(path)) == set(found)
    write_baseline(path, list(reversed(found)))
    assert path.read_text(encoding="utf-8") == text  # sorted: a diff shows what changed and nothing else
    assert all(line.isprintable() for line in text.split("\n"))
    assert tomllib.loads(text)["schema"] == "dpaudit.accepted/1"


def test_the_file_is_one_to_review(tmp_path: Path) -> None:
    lines = write_baseline(tmp_path / "a.toml", [WHOLE]).read_text().splitlines()
    assert lines[4:] == [
        "",
        "[[finding]]",
        'fingerprint = "0123456789abcdef"',
        'finding = "noisy count"',
        'reason = "old API"',
        "accepted = 2026-03-01",
        "until = 2026-03-31",
    ]


@for_each(
    ("old", "new", "message"),
    [
        ('"dpaudit.accepted/1"', '"dpaudit.accepted/2"', "schema must be 'dpaudit.accepted/1'"),
        ("[[finding]]", "[finding]", "finding must be an array of tables"),
        ("[[finding]]", "[[findings]]", "unknown key 'findings'"),
        (
            "until = ",
            "unti = ",
            "finding 1: it must have the keys fingerprint, finding, reason, accepted, until, and no other",
        ),
        ("until = 2026-03-31", 'until = "2026-03-31"', "until must be a day"),
        ("until = 2026-03-31", "until = 2026-03-31T00:00:00", "until must be a day"),
        ("until = 2026-03-31", "until = 2026-02-28", "until 2026-02-28 is before 2026-03-01"),
        ('"old API"', '" "', "reason must say why"),
        ('"old API"', "7", "reason must be a text"),
        ("0123456789abcdef", "0123", "16 hexadecimal digits"),
        ("[[finding]]", "[[finding", "not valid TOML"),
    ],
)
def test_anything_else_in_the_file_is_refused_in_a_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_baseline(tmp_path / "a.toml", [WHOLE])
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InvalidSpec) as caught:
        read_baseline(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()


def test_an_editor_may_mark_the_encoding_and_what_stands_twice_or_is_no_file_is_refused(tmp_path: Path) -> None:
    path = write_baseline(tmp_path / "a.toml", [WHOLE])
    text = path.read_text()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_baseline(path) == (WHOLE,)
    path.write_text(text + text[text.index("[[finding]]") :])
    with pytest.raises(InvalidSpec, match="finding 2: 0123456789abcdef stands here twice"):
        read_baseline(path)
    with pytest.raises(InvalidSpec, match="there is no such file"):
        read_baseline(tmp_path / "none.toml")
    with pytest.raises(InvalidSpec, match="/dev/zero: not a file"):
        read_baseline("/dev/zero")


def test_what_has_no_reference_is_accepted_for_its_audit_alone() -> None:
    def closure(audit: str, parameters: dict[str, object]) -> str:
        spec = example.result().spec
        mechanism = {**spec["mechanism"], "reference": None, "name": "make.released", "parameters": parameters}
        return fingerprint(example.result(spec={**spec, "name": audit, "mechanism": mechanism}))

    assert closure("a", {}) == closure("a", {}) != closure("b", {})  # what they hold is not known
    assert closure("a", {"command": ["x"]}) == closure("b", {"command": ["x"]})


def test_only_a_refutation_is_accepted_for_a_reason_and_until_a_day_to_come() -> None:
    found = accept(example.result(), reason=" old API ", until=TODAY, today=TODAY)
    assert found == Acceptance(fingerprint(example.result()), "noisy count", "old API", TODAY, TODAY)
    with pytest.raises(InvalidSpec, match="not refuted, so there is no finding"):
        accept(example.kept(), reason="x", until=LATER, today=TODAY)
    with pytest.raises(InvalidSpec, match="not refuted, so there is no finding"):
        accept(example.result(), reason="x", until=LATER, today=TODAY, representation=True)
    with pytest.raises(InvalidSpec, match="2026-02-28 is in the past; give a day from 2026-03-01 on"):
        accept(example.result(), reason="x", until=date(2026, 2, 28), today=TODAY)
    for reason in ("", " \n", "x" * 2001, "half \ud800"):
        with pytest.raises(InvalidSpec, match="--reason must"):
            accept(example.result(), reason=reason, until=LATER, today=TODAY)


def test_any_name_can_be_accepted_and_read_back(tmp_path: Path) -> None:
    for name in hostile.NAMES[::4]:
        result = example.result(spec={**example.result().spec, "name": name})
        reason = name.replace("\ud800", "")[:2000]
        found = accept(result, reason=reason, until=LATER, today=TODAY)
        assert read_baseline(write_baseline(tmp_path / "a.toml", [found])) == (found,)


def test_the_bits_are_a_finding_of_their_own() -> None:
    bits = made.with_bits(example.kept())
    found = accept(bits, reason="x", until=LATER, today=TODAY)
    assert found.fingerprint == fingerprint(bits, representation=True) != fingerprint(bits)
    assert found.finding == "noisy count, whole noise; representation"
    both = made.with_bits(example.result())
    assert accept(both, reason="x", until=LATER, today=TODAY).fingerprint == fingerprint(both)
    entries, reviewed = review([SuiteEntry("bits", Verdict.NOT_REFUTED, both)], [found], TODAY)
    assert reviewed[0].matched
    assert not entries[0].covered  # an acceptance of the bits excuses no other finding
    assert SuiteResult(entries, 0.999, reviewed).exit_code == 1


def test_accepting_again_replaces_the_entry() -> None:
    other = Acceptance("f" * 16, "other", "x", TODAY, LATER)
    again = Acceptance(WHOLE.fingerprint, "noisy count", "still", TODAY, LATER + timedelta(days=9))
    assert merged((WHOLE, other), again) == ((other, again), WHOLE)
    assert merged((), WHOLE) == ((WHOLE,), None)


@for_each(
    ("result", "day", "covered", "matched", "expired", "code", "told"),
    [
        (example.result(), LATER, True, True, False, 0, "accepted     noisy count: accepted until 2026-03-31"),
        (example.result(), LATER + timedelta(days=1), False, True, True, 1, "EXPIRED "),
        (example.kept(), TODAY, False, False, False, 0, "not found "),  # the same event, but it refutes nothing
        (example.kept(), date(2027, 1, 1), False, False, True, 1, "EXPIRED "),
    ],
)
def test_an_acceptance_covers_its_finding_until_its_day_is_over(
    result: AuditResult, day: date, covered: bool, matched: bool, expired: bool, code: int, told: str
) -> None:
    """Without its finding it covers nothing, and it fails when it has expired, whatever is found."""
    acceptance = accept(example.result(), reason="old API", until=LATER, today=TODAY)
    assert fingerprint(result) == acceptance.fingerprint
    ((entry,), reviewed) = review([SuiteEntry("a", Verdict.NOT_REFUTED, result)], [acceptance], day)
    assert entry.accepted == (acceptance if covered else None)
    assert entry.covered is covered
    assert [(each.matched, each.expired) for each in reviewed] == [(matched, expired)]
    assert SuiteResult((entry,), 0.999, reviewed).exit_code == code
    assert reviewed_lines(reviewed)[1].startswith(told)
    assert reviewed_lines(()) == ()


def test_a_stale_cover_is_taken_off() -> None:
    entry = SuiteEntry("a", Verdict.NOT_REFUTED, example.result(), accepted=WHOLE)
    assert review([entry], [], TODAY)[0][0].accepted is None
