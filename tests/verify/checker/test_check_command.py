"""`dpaudit check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit.cli.group import exit_code
from dpaudit.verify.stored import save, to_dict
from tests.verify.checker.certificates import RIGHT


def test_an_accepted_proof_ends_with_0_and_says_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "proof.json"
    save(RIGHT["c4"], path)
    assert exit_code(["check", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("accepted: the privacy loss of sparse is at most eps/2 (one way")
    assert out[1] == "claim     eps: the claim holds"
    assert out[2].startswith("for       all real query answers, any number of answers; every answer falls")
    assert out[3].startswith("assumed   N >= 1; eps > 0; N is whole")
    assert "          loop:TF: the cost is within the potential" in out


def test_a_cost_above_the_claim_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(replace(RIGHT["c2"], claim="eps/2"), tmp_path / "proof.json")
    assert exit_code(["check", str(tmp_path / "proof.json")]) == 0
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
