"""`dpaudit check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment import prove
from dpaudit.verify.checker import ProofRejected, check, costs
from dpaudit.verify.language import read
from dpaudit.verify.proof import Alignment, Case, Proof, Shift
from dpaudit.verify.stored import save, to_dict
from tests.verify.checker.certificates import RIGHT


def test_an_accepted_proof_ends_with_0_and_says_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "proof.json"
    save(RIGHT["c4"], path)
    assert exit_code(["check", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("accepted: the privacy loss of c4_sparse_decreasing is at most eps/2 (one way")
    assert out[1] == "claim     eps: the claim holds"
    assert out[2].startswith("for       all real query answers, any number of answers; every answer falls")
    assert out[3].startswith("assumed   N >= 1; eps > 0; N is whole")
    assert "          loop:TF: the cost is within the potential" in out


def test_a_cost_above_the_claim_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(replace(RIGHT["c2"], claim="eps/2"), tmp_path / "proof.json")
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 3  # the claim is open
    assert "claim     eps/2: the cost is above it for some parameters" in capsys.readouterr().out


def test_a_rejected_proof_ends_with_1_and_names_the_obligation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = to_dict(RIGHT["c2"])
    raw["alignments"][0]["shifts"][1]["constant"] = "0"
    (tmp_path / "proof.json").write_text(json.dumps(raw))
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: loop:TT: both runs take the same branch at line 7: false at ")
    assert captured.err.count("\n") == 1


def test_a_file_that_is_no_proof_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proof.json").write_text("{}")
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 2
    assert exit_code(["check", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().out == ""


def test_the_program_in_a_certificate_is_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = to_dict(RIGHT["c2"])
    mark = tmp_path / "mark"
    raw["source"] = f"open({str(mark)!r}, 'w').close()\n" + raw["source"]
    (tmp_path / "proof.json").write_text(json.dumps(raw))
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 1
    assert not mark.exists()
    assert "and nothing else" in capsys.readouterr().err


HOSTILE = {
    "numbers too long": {"source": RIGHT["c2"].source.replace("4 * N", "*".join(["9" * 99] * 60) + " * N")},
    "a deep source": {"source": "def sparse(q, rng):\n return " + "-" * 200_000 + "q"},
    "no text": {"source": "\ud800"},
    "a claim that is no text": {"claim": "\ud800\n\x1b[2J"},
    "a claim over nothing": {"claim": "eps/(eps - eps)"},
    "an impossible assumption": {"assumptions": ["1 == 2"]},
    "a value against the preconditions": {"fixed": {"N": "0"}},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_certificates_are_rejected_in_one_line(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proof.json").write_text(json.dumps(to_dict(RIGHT["c2"]) | HOSTILE[what]))
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.rstrip("\n").isprintable()


def _doubling(first: str, again: str, times: int) -> list[str]:
    return [f"a0 = {first}", *(f"a{i + 1} = {again.format(f'a{i}')}" for i in range(times))]


def _release(lines: list[str], scale: str, cost: str = "eps") -> Proof:
    source = "def release(q, rng, eps):\n" + "".join(f"    {line}\n" for line in lines)
    source += f"    return q + rng.laplace(scale=1 / ({scale}))\n"
    moved = Alignment((Shift("before:", "draw_1", answer=Fraction(-1)),))
    return Proof(source, "release", "all-differ", {}, None, "eps", cost, "lock-step", (moved,), (Case(0, cost),))


GROWING = {  # every line doubles what the line before is: each of these took minutes, or for ever
    "squares of a number": _release(_doubling("7" * 90, "{0} * {0}", 25), "eps * a25"),
    "squares of a long number": _release(_doubling("7" * 90, "{0} * {0}", 7), "eps * a7"),
    "squares of a sum": _release(_doubling("eps + 1", "{0} * {0}", 14), "a14"),
    "a high power": _release(_doubling("eps", "{0} * {0}", 7), "a7"),
    "a high power below": _release(_doubling("1 / (eps + 1)", "{0} * {0}", 7), "eps * a7"),
    "sums of sums": _release(_doubling("eps", "{0} + {0}", 60), "a60"),
    "a cost of many factors": _release([], "eps", "*".join(["(eps + 1)"] * 40)),
    "many terms": replace(
        _release([], "eps * " + " * ".join(f"(1 + p{i})" for i in range(12))),
        source=_release([], "eps * " + " * ".join(f"(1 + p{i})" for i in range(12))).source.replace(
            "eps)", "eps, " + ", ".join(f"p{i}" for i in range(12)) + ")", 1
        ),
    ),
    "comparisons of comparisons": replace(
        RIGHT["c2"],
        source=RIGHT["c2"].source.replace(
            "    for x in q:\n",
            "    for x in q:\n        c0 = x > T\n" + "".join(f"        c{i + 1} = c{i} or c{i}\n" for i in range(40)),
        ),
    ),
}


@pytest.mark.parametrize("what", GROWING)
def test_what_grows_is_refused_before_it_is_computed(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(GROWING[what], tmp_path / "proof.json")
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert any(why in captured.err for why in ("simplify it", "that grow so long", "that may outgrow doubles"))


def test_the_search_for_a_proof_refuses_the_same() -> None:
    for what in ("squares of a long number", "squares of a sum", "a high power below", "many terms"):
        with pytest.raises(InvalidSpec, match=r"too large to compute with|that grow so long"):
            prove(read(GROWING[what].source), "all-differ")


def test_classes_of_runs_are_counted_over_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states after each of ten thousand answers were few enough, and all together took hours."""
    monkeypatch.setattr(costs, "MOST_STATES", 3)
    with pytest.raises(ProofRejected, match="more than 3 classes of runs; give a proof by a potential"):
        check(RIGHT["no cut-off, 2 answers"])
