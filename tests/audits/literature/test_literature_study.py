"""The study itself on a few thousand runs: rows measured, failures said, the command line."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

import dpaudit
from audits.literature import measure, study
from audits.literature.chances import chances
from audits.literature.laws import curves
from audits.literature.measure import measured, point, truth, words
from audits.literature.oracle import ceiling, oracle_bound
from audits.literature.record import Failed
from audits.literature.rows import Row, row
from audits.literature.study import Study, audited, main
from audits.literature.table import Table
from dpaudit.base.validate import error_probability
from dpaudit.catalogue.entry import Code
from dpaudit.certify import CoinFlip, certify
from tests.cases import for_each, some

RUNS = 20_000


@pytest.mark.parametrize("name", some(["Laplace", "TruncGeo", "NoisyMax1"], 2))
def test_a_row_is_measured_as_an_audit_and_its_law_say(name: str) -> None:
    made, machine = measured(row(name), RUNS, smaller=(5_000, 50_000), n_jobs=1)
    assert [each.asked for each in made.points] == [5_000, RUNS]  # none that is larger than the audit itself
    found = made.main
    assert found.executions <= RUNS
    assert found.bound() == certify(CoinFlip(found.hits_p, found.hits_q, found.runs_p, found.runs_q),
                                    row(name).entry.claim(), 0.9999).lower  # fmt: skip
    assert found.exact is not None
    assert made.exact is not None
    assert found.exact <= made.exact
    assert made.agrees
    # wrong with probability 0.0001 over seeds; the seed is fixed
    assert not found.above_the_truth()
    assert found.oracle_all is not None
    assert found.oracle is not None
    assert 0.0 <= found.oracle <= found.oracle_all < made.exact
    laws = [curve for pair in row(name).pairs for curve in curves(name, row(name).entry, pair)]
    alpha = error_probability(0.9999)
    assert found.oracle_all == max(oracle_bound(curve, found.certifying, alpha) for curve in laws)
    assert made.ceiling == max(map(ceiling, laws))
    assert {"python", "platform", "processors"} <= set(machine)
    again, _ = measured(row(name), RUNS, smaller=(), n_jobs=1)
    assert again.main.evidence == found.evidence  # seconds apart, all is a function of row, runs and seed


def test_the_direction_of_the_certified_loss_is_the_witness_s() -> None:
    """NoisyMax4 on all answers up: where the first is likelier the loss is infinite, the other way it is not."""
    known = truth(row("NoisyMax4"))
    losses = {each for each in known.losses if each is not None}
    assert any(first != second for first, second in losses)
    up = next(place for place, pair in enumerate(row("NoisyMax4").pairs) if pair.second == [2] * 5)
    assert known.loss(up, 0) == math.inf
    assert known.loss(up, 1) == pytest.approx(0.05)  # far above all answers: one of them moves, for half the claim
    max4 = row("NoisyMax4")
    made = dpaudit.audit(
        max4.entry, pair=max4.pairs[up], claim=max4.entry.claim(), certifier="coin-flip", runs=RUNS, n_jobs=1
    )
    for side, place in (("first", 0), ("second", 1)):
        turned = dataclasses.replace(made, witness=dataclasses.replace(made.witness, pair=up, p_side=side))
        found = point(row("NoisyMax4"), known, turned)
        assert found.exact == known.loss(up, place)
        assert (found.likelier, found.rarer) == (("5 x 1", "5 x 2"), ("5 x 2", "5 x 1"))[place]


def test_a_law_that_fails_leaves_the_audit_and_the_loss_of_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ArithmeticError("does not converge")

    monkeypatch.setattr(measure, "curves", fails)
    made, _ = measured(row("Laplace"), RUNS, n_jobs=1)
    assert made.unknown == "ArithmeticError: does not converge"
    assert (made.main.oracle, made.main.oracle_all, made.ceiling) == (None, None, None)
    assert made.exact == pytest.approx(0.1)
    assert made.main.exact == pytest.approx(0.1)


@for_each("name", ["Laplace", "SVT1", "TruncGeo"])
def test_an_event_is_judged_by_other_runs_than_those_that_certify(name: str) -> None:
    """Weighed, or counted where no ratio is written out; six counts within 6.5 deviations: 5e-10 by chance."""
    of = row(name)
    result = dpaudit.audit(of.entry, pairs=of.pairs[:1], claim=of.entry.claim(), runs=RUNS, seed=1, n_jobs=1)
    again = dpaudit.recheck(result, of.entry, fresh=True).evidence
    assert isinstance(again, CoinFlip)
    p, q, error = chances(of, result)
    for hits, runs, chance in ((again.hits_p, again.runs_p, p), (again.hits_q, again.runs_q, q)):
        assert abs(hits - runs * chance) <= 6.5 * math.sqrt(runs * chance * max(0.0, 1.0 - chance)) + 1.0
        assert name != "TruncGeo" or hits == round(runs * chance)
    assert 0.0 <= error < 0.05


def test_a_row_that_fails_is_said_and_the_others_go_on() -> None:
    def cannot(*_: object, **__: object) -> None:
        raise RuntimeError("cannot")

    good = row("Laplace")
    bad = Row("TruncGeo", dataclasses.replace(good.entry, code=Code(cannot, cannot)), good.pairs, True)
    told: list[str] = []
    made = audited([bad, good], RUNS, told=told.append, n_jobs=1)
    assert [each.name for each in made.records] == ["Laplace"]
    assert [each.name for each in made.failed] == ["TruncGeo"]
    assert "TruncGeo" in told[0]
    assert "FAILED" in told[0]
    assert "Laplace" in told[1]


def test_the_command_writes_its_files_and_makes_them_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--report", str(tmp_path), "--runs", str(RUNS), "--only", "Laplace", "--jobs", "1"]
    assert main(asked) == 0
    assert f"page: {tmp_path / 'literature.md'}" in capsys.readouterr().out
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == sorted(
        ["literature.json", "literature.md"]
        + [f"against-{name}.{kind}" for name in ("exact", "executions") for kind in ("svg", "png")]
    )
    assert b"--runs 20000 --only Laplace" in before["literature.md"]
    assert main(["--report", str(tmp_path / "again"), "--from", str(tmp_path / "literature.json")]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == before
    kept = Study.from_json(before["literature.json"].decode())
    assert [each.name for each in kept.records] == ["Laplace"]


WHOLE = '{"schema": "dpaudit.literature/1"}'


@pytest.mark.parametrize(
    ("arguments", "record", "words_of_it"),
    [
        (["--only", "SVT9"], "", "no row is called SVT9; there are: Laplace"),
        (["--from", "nowhere.json"], "", "nowhere.json"),
        (["--only", "Laplace", "--runs", "0"], "", "--runs must be at least 1, got 0"),
        *((["--from", "half.json"], text, "error: ") for text in (WHOLE, WHOLE[:-1] + ', "rows": [{}]}', "[")),
        (["--only", "Laplace", "--report", "half.json"], "a file", "error: "),  # where nothing can be written
    ],
)
def test_a_wrong_question_is_one_line_before_the_runs_and_writes_nothing(
    arguments: list[str],
    record: str,
    words_of_it: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study, "audited", lambda *_, **__: pytest.fail("nothing is to be run"))
    Path("half.json").write_text(record)
    assert main(["--report", "out", *arguments]) == 2
    told = capsys.readouterr().err
    assert words_of_it in told
    assert told.count("\n") == 1
    assert not Path("out").exists()


def test_groups_that_fail_are_said_and_leave_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Table("Good", (), (), verdict="None is wrong.")

    def fails(_: int) -> Table:
        raise RuntimeError("cannot")

    monkeypatch.setattr(study, "SECTIONS", {"bad": fails, "good": lambda _: good})
    told: list[str] = []
    assert study.further(1, told.append) == ((good,), (Failed("bad", "RuntimeError: cannot"),))
    assert "bad  FAILED" in told[0]
    assert "None is wrong." in told[1]


def test_datasets_are_told_in_a_few_letters() -> None:
    assert words([1] * 10 + [0] * 10) == "10 x 1, 10 x 0"
    assert words([1, 0.5, 2]) == "[1, 0.5, 2]"
    assert words([0.5, -0.5, 1.0, -1.0, -1.0]) == "[0.5, -0.5, 1.0, -1.0, -1.0]"
    assert words(1) == "1"
    assert len(words(list(range(1000)))) == measure.LONGEST
