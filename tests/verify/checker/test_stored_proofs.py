"""Proofs in files: read back as they were, refused where they are anything else, and told by `dpaudit check`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment import prove
from dpaudit.verify.language import read
from dpaudit.verify.proof import Proof
from dpaudit.verify.stored import from_dict, load, save, to_dict
from tests.cases import for_each
from tests.verify.checker.certificates import RIGHT


@for_each("name", RIGHT)
def test_a_proof_is_read_back_as_it_was_and_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    save(RIGHT[name], one)
    save(load(one), two)
    assert load(one) == RIGHT[name]
    assert one.read_bytes() == two.read_bytes()


def changed(**keys: Any) -> dict[str, Any]:
    return {**to_dict(RIGHT["c2"]), **keys}


@for_each(
    "raw",
    [
        [],
        {},
        changed(schema="dpaudit.proof/2"),
        changed(extra=1),
        changed(adjacency="sideways"),
        changed(answers=None),
        changed(claim=1),
        changed(fixed={"N": 1}),
        changed(fixed={"N": "1/0"}),
        changed(fixed={"N": "1e9"}),
        changed(alignment={}),
        changed(alignment=[]),
        changed(assumptions="eps > 0"),
        changed(certificate=[]),
        changed(certificate={"0": {"steps": ["(step)"]}}),
        changed(certificate={"0": {"steps": [1], "state": {}}}),
        changed(certificate={"0": {"steps": [], "state": {"parameter.eps": "1e3"}}}),
        {key: value for key, value in changed().items() if key != "cost"},
    ],
)
def test_anything_else_is_refused_in_one_line(raw: Any, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(InvalidSpec) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    with pytest.raises(InvalidSpec):
        from_dict(raw)


@for_each(
    ("content", "words"),
    [
        *((text, "JSON|twice") for text in (b"", b"{", b'{"schema": NaN}', b'{"schema": 1, "schema": 2}', b"\x00")),
        (b"[" * 100_000, "JSON"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (None, "there is no such file"),
    ],
)
def test_files_that_hold_no_json_are_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "none.json" if content is None else tmp_path / "proof.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidSpec, match=words):
        load(path)


def test_a_folder_that_is_not_there_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="cannot be written"):
        save(RIGHT["c2"], tmp_path / "none" / "proof.json")


# --- dpaudit check --------------------------------------------------------------------------------------------------


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The exit code of `dpaudit check`, and its output and its error, for a proof or for the content of a file."""

    def call(stated: Proof | dict[str, Any]) -> tuple[int, str, str]:
        path = tmp_path / "proof.json"
        if isinstance(stated, Proof):
            save(stated, path)
        else:
            path.write_text(json.dumps(stated))
        return exit_code(["check", str(path)]), *capsys.readouterr()  # type: ignore[return-value]

    return call


def test_an_accepted_proof_ends_with_0_and_says_what_is_shown(checked: Any) -> None:
    code, out, _ = checked(RIGHT["c4"])
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("accepted: the privacy loss of c4_sparse_decreasing is at most eps/2 (one way")
    assert lines[1] == "claim     eps: the claim holds"
    assert lines[2].startswith("for       all real query answers, any number of answers; every answer falls")
    assert lines[3].startswith("assumed   N >= 1; eps > 0; N is whole")
    assert "          loop:TF: the cost is within the potential" in lines
    code, out, _ = checked(replace(RIGHT["c2"], claim="eps/2"))
    assert code == 3  # the claim is open
    assert "claim     eps/2: the cost is above it for some parameters" in out


def test_a_rejected_proof_ends_with_1_and_names_the_obligation(checked: Any) -> None:
    raw = to_dict(RIGHT["c2"])
    raw["alignment"]["shifts"][1]["constant"] = "0"
    code, out, err = checked(raw)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: loop:TT: both runs take the same branch at line 7: false at ")


def test_a_file_that_is_no_proof_ends_with_2(checked: Any, tmp_path: Path) -> None:
    assert checked({})[:2] == (2, "")
    assert exit_code(["check", str(tmp_path / "none.json")]) == 2


def test_the_program_in_a_certificate_is_never_run(checked: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code, _, err = checked(changed(source=f"open({str(mark)!r}, 'w').close()\n{RIGHT['c2'].source}"))
    assert code == 1
    assert not mark.exists()
    assert "and nothing else" in err


HOSTILE = {
    "numbers too long": {"source": RIGHT["c2"].source.replace("4 * N", "*".join(["9" * 99] * 60) + " * N")},
    "a deep source": {"source": "def sparse(q, rng):\n return " + "-" * 200_000 + "q"},
    "no text": {"source": "\ud800"},
    "a claim that is no text": {"claim": "\ud800\n\x1b[2J"},
    "a claim over nothing": {"claim": "eps/(eps - eps)"},
    "an impossible assumption": {"assumptions": ["1 == 2"]},
    "a value against the preconditions": {"fixed": {"N": "0"}},
}


@for_each("what", HOSTILE)
def test_hostile_certificates_are_rejected_in_one_line(what: str, checked: Any) -> None:
    code, out, err = checked(changed(**HOSTILE[what]))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.rstrip("\n").isprintable()


def _doubling(first: str, again: str, times: int) -> list[str]:
    return [f"a0 = {first}", *(f"a{i + 1} = {again.format(f'a{i}')}" for i in range(times))]


def _release(lines: list[str], scale: str, cost: str = "eps", more: str = "") -> Proof:
    body = "".join(f"    {line}\n" for line in [*lines, f"return data + rng.laplace(scale=1 / ({scale}))"])
    source = f"def release(data, rng, eps{more}):\n{body}"
    return replace(RIGHT["release"], source=source, cost=cost)


FACTORS = [f"p{i}" for i in range(12)]
COMPARED = "".join(f"        c{i + 1} = c{i} or c{i}\n" for i in range(40))
GROWING = {  # every line doubles what the line before is: each of these took minutes, or for ever
    "squares of a number": _release(_doubling("7" * 90, "{0} * {0}", 25), "eps * a25"),
    "squares of a long number": _release(_doubling("7" * 90, "{0} * {0}", 7), "eps * a7"),
    "squares of a sum": _release(_doubling("eps + 1", "{0} * {0}", 14), "a14"),
    "a high power": _release(_doubling("eps", "{0} * {0}", 7), "a7"),
    "a high power below": _release(_doubling("1 / (eps + 1)", "{0} * {0}", 7), "eps * a7"),
    "sums of sums": _release(_doubling("eps", "{0} + {0}", 60), "a60"),
    "a cost of many factors": _release([], "eps", "*".join(["(eps + 1)"] * 40)),
    "many terms": _release(
        [], " * ".join(["eps", *(f"(1 + {each})" for each in FACTORS)]), more=f", {', '.join(FACTORS)}"
    ),
    "comparisons of comparisons": replace(
        RIGHT["c2"],
        source=RIGHT["c2"].source.replace("    for x in q:\n", f"    for x in q:\n        c0 = x > T\n{COMPARED}"),
    ),
}


@for_each("what", GROWING)
def test_what_grows_is_refused_before_it_is_computed(what: str, checked: Any) -> None:
    code, _, err = checked(GROWING[what])
    assert (code, err.count("\n")) == (1, 1)
    assert any(why in err for why in ("simplify it", "that grow so long", "that may outgrow doubles"))


def test_the_search_for_a_proof_refuses_the_same() -> None:
    for what in ("squares of a long number", "squares of a sum", "a high power below", "many terms"):
        with pytest.raises(InvalidSpec, match=r"too large to compute with|that grow so long"):
            prove(read(GROWING[what].source), "all-differ")
