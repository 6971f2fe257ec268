"""What a spec file means, and hostile ones: precedence, claims, pairs, the folder that heads the import path."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Command, Imported
from dpaudit.results.display import Verdict
from dpaudit.spec.questions import Layers, command, read_spec, share, shared
from dpaudit.spec.reading import find_specs
from dpaudit.spec.settings import read_settings
from tests.cases import for_each
from tests.doors.conftest import Run, Write, document, spec, unnumbered
from tests.doors.test_transcripts import FOLDER, cases

ALL_KEYS = """[[audit]]
name = "all keys"
tags = ["a", "b"]
mechanism = "mechs:leak"
parameters = { times = 2 }
claim = { epsilon = 1, delta = 0.01 }
relation = "bounded"
pair = { first = [1, 2], second = [1, 3], name = "the last", distance = 1 }
expect = "refuted"
runs = 2e4
run_timeout_s = 1
confidence = 0.9
seed = 4
search_share = 0.2
requires = ["numpy"]
"""


def test_every_key_arrives(write: Write, folder: Path) -> None:
    (asked,) = read_spec(write(ALL_KEYS))
    assert (asked.name, asked.tags, asked.requires) == ("all keys", ("a", "b"), ("numpy",))
    assert asked.mechanism == Imported("mechs:leak", {"times": 2}, str(folder))
    assert asked.claim == ApproximateDP(1.0, 0.01, Relation.REPLACE_ONE)
    assert asked.pairs == (AdjacentPair([1, 2], [1, 3], "the last", 1),)
    assert (asked.expect, asked.confidence, asked.seed) == (Verdict.REFUTED, 0.9, 4)
    posed = asked.outline()
    assert (posed.runs, posed.run_timeout_s, posed.search_share) == (20_000, 1.0, 0.2)
    asked.check_requirements()


def test_the_record_of_a_suite_is_that_of_its_audits_and_reaches_the_result(
    dpaudit: Run, write: Write, folder: Path
) -> None:
    shared = '[suite.record]\nowner = "statistics team"\nreleases = 12\nunit = "a household"\n'
    path = write(shared + spec(runs="3_000") + spec(name='"own"', runs="3_000", record='{ unit = "a visit" }'))
    first, second = read_spec(path)
    assert first.record == {"owner": "statistics team", "unit": "a household", "releases": "12"}
    assert second.record == first.record | {"unit": "a visit"}
    assert "unit of privacy: a household" not in dpaudit("run", path, "--report", "reports").err
    (stored,) = (json.loads(file.read_text()) for file in (folder / "reports").glob("own-*.json"))
    assert stored["provenance"]["record"] == second.record
    assert stored["provenance"]["excerpt"][0].startswith("def ")
    dpaudit("run", path, "--report", "again", "--seed", "1", "--format", "html")
    assert (folder / "again" / "index.html").read_text().count('<svg role="img" aria-label="2 audits: ') == 2


def test_the_keys_of_a_claim_choose_its_form_and_an_entry_brings_claim_and_pair(write: Write) -> None:
    own = {"mechanism": '"dpaudit.catalogue.additive:laplace.half_noise"', "claim": None, "pair": None}
    zero = spec(name='"b"', claim="{ epsilon = 1, delta = 0 }", relation='"unbounded"')
    pure, approximate, asked = read_spec(write(spec(name='"a"'), zero, spec(**own)))
    assert pure.claim == PureDP(1.0)
    assert approximate.claim == ApproximateDP(1.0, 0.0, Relation.ADD_OR_REMOVE_ONE)
    assert asked.claim.to_dict()["epsilon"] == 1.0
    assert [pair.name for pair in asked.pairs] == ["laplace.half_noise, default"]


PEOPLE = """
from dataclasses import dataclass

@dataclass
class Person:
    age: float

def visits():
    return [Person(34.0), Person(71.0)]

def total(rows, rng):
    return sum(each.age for each in rows) + rng.laplace()

def head(rows, rng):
    return len(rows) + rng.laplace()
"""


def test_pairs_are_made_of_a_dataset_that_a_spec_writes_down_or_names(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "people.py").write_text(PEOPLE)
    made = {"pair": None, "claim": "{ epsilon = 1 }", "relation": '"add_or_remove_one"', "runs": "4_000"}
    given = spec(name='"given"', mechanism='"people:total"', data='"people:visits"', expect='"refuted"', **made)
    made["pairs"] = '["drop_one", "empty"]'
    ended = dpaudit("run", write(given, spec(mechanism='"people:head"', data="[1, 2, 5]", **made)), "--report", "out")
    assert ended.code == 0, ended.out + ended.err
    named, written = (json.loads(next(Path("out").glob(f"{name}-*.json")).read_text()) for name in ("given", "it"))
    kinds = {each.partition(": ")[0] for each in named["provenance"]["reasons"].values()}
    assert kinds >= {"a record less", "NaN", "far out of bounds", "the empty dataset"}
    shown = {pair["first"].get("shown") for pair in named["spec"]["pairs"]}
    assert "[Person(age=34.0), Person(age=71.0)]" in shown
    assert set(named["adjacency"]) == {"records"}
    assert {pair["name"].partition(":")[0] for pair in written["spec"]["pairs"]} == {"drop one", "empty"}
    page = next(Path("out").glob("it-*.html")).read_text()
    assert "made of the given data: a record less, the empty dataset; not tried: a duplicate more," in page


def test_the_command_line_goes_before_the_spec_and_that_before_the_project(write: Write, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.dpaudit]\nruns = 3_000\nconfidence = 0.9\nseed = 3\njobs = 1\nreport = "r"'
    )
    settings = read_settings(folder)
    assert (settings.jobs, settings.report) == (1, "r")
    name = write(spec(name='"says"', seed="2", confidence="0.99"), spec(name='"silent"', runs=None))

    def found(layers: Layers) -> list[tuple[object, object, object]]:
        return [(asked.runs, asked.confidence, asked.seed) for asked in read_spec(name, layers)]

    assert found(Layers()) == [(1_000, 0.99, 2), (1_000_000, 0.999, 0)]
    assert found(Layers(project=settings.options)) == [(1_000, 0.99, 2), (3_000, 0.9, 3)]
    assert found(Layers({"runs": 2_000, "confidence": 0.95, "seed": 1}, settings.options)) == [(2_000, 0.95, 1)] * 2


def test_folders_are_searched_and_other_files_left_alone(write: Write, folder: Path) -> None:
    write(spec(), name="b/two.toml")
    write(spec(), name="a/one.toml")
    write(spec(), name=".hidden/three.toml")
    (folder / "a/ruff.toml").write_text("line-length = 100\n")
    (folder / "pyproject.toml").write_text("this is not TOML")
    assert [str(path) for path in find_specs([".", "a/one.toml"])] == ["a/one.toml", "b/two.toml"]


@for_each("line_end", ["\n", "\r\n"])
def test_lines_are_counted_whatever_ends_them_and_python_hears_the_same(
    dpaudit: Run, folder: Path, line_end: str
) -> None:
    (case,) = cases((FOLDER / "all_mistakes.txt").read_text(encoding="utf-8"))
    text = case.files["spec.toml"].replace("\n", line_end)
    (folder / "spec.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert dpaudit("validate", "spec.toml").err == case.steps[0].err
    with pytest.raises(InvalidSpec) as caught:
        read_spec("spec.toml")
    assert [f"error: {each}" for each in caught.value.args] == case.steps[0].err.splitlines()


@for_each("audits", [1, 2, 3, 13, 100])
@for_each("confidence", [0.999, 0.95, 0.123456789, 1 - 1e-9])
def test_the_command_that_repeats_a_file_gives_the_same_share(write: Write, audits: int, confidence: float) -> None:
    names = [
        write(spec(runs="1e6"), *(spec(name=f'"{n}"', runs="1e6") for n in range(file)), name=f"f {file}.toml")
        for file in range(2)
    ]
    asked = [*read_spec(names[0]), *read_spec(names[1])] + list(read_spec(names[0])) * (audits - 1)
    each = share(confidence, len(asked))
    assert len(asked) * (1.0 - each) == pytest.approx(1.0 - confidence)
    posed, together = shared([replace(question, confidence=confidence) for question in asked])
    assert (together, {question.confidence for question in posed}) == (confidence, {each})
    words = shlex.split(command(posed[1], posed, ("core", "slow"), given={"runs": 7}))
    assert words[:8] == ["dpaudit", "run", "f 1.toml", "--tag", "core", "--tag", "slow", "--seed"]
    assert words[-2:] == ["--runs", "7"]
    assert share(float(words[words.index("--confidence") + 1]), 2) == each


def test_the_recorded_command_repeats_the_result_bit_for_bit(dpaudit: Run, write: Write, folder: Path) -> None:
    noisy = spec(name='"noisy"', mechanism='"mechs:noisy"', tags='["t"]')
    write(noisy, spec(name='"other"'), name="one.toml")
    write(spec(max_time_s="60"), name="two.toml")
    assert dpaudit("run", ".", "--report", "first", "--format", "json", "--seed", "9").code == 0
    (first,), (limited,) = (list(Path("first").glob(f"{name}-*.json")) for name in ("noisy", "it"))
    stored, timed = json.loads(first.read_text()), json.loads(limited.read_text())
    words = shlex.split(stored["provenance"]["command"])
    assert dpaudit(*words[1:], "--report", "second", "--format", "json").code == 0
    again = json.loads(Path("second", first.name).read_text())
    for record in (stored, again):
        del record["provenance"]
    assert again == stored
    assert timed["provenance"]["max_time_s"] == 60.0
    assert timed["runs_used"] <= timed["spec"]["runs"] == 1_000  # both are caps
    assert timed["provenance"]["command"].endswith("--runs 1000")


def test_a_command_is_found_beside_its_spec(dpaudit: Run, write: Write, folder: Path) -> None:
    program = (
        "import json, random, sys\nasked = json.load(sys.stdin)\nrng = random.Random(asked['seed'])\n"
        "for _ in range(asked['runs']):\n    print(asked['data'] + rng.expovariate(1.0) - rng.expovariate(1.0))\n"
    )
    loose = "{ epsilon = 2.0 }"  # a false alarm has a chance of about 1e-30, as a loss of 1 is claimed to be 2
    write(
        spec(name='"beside"', mechanism='{ command = ["tells"] }', claim=loose),
        spec(name='"argument"', mechanism=f'{{ command = ["{sys.executable}", "tells"] }}', claim=loose),
        name="deep/spec.toml",
    )
    (folder / "deep/tells").write_text(f"#!{sys.executable}\n{program}")
    (folder / "deep/tells").chmod(0o755)
    asked = read_spec("deep/spec.toml")[0].mechanism
    assert asked == Command(("./tells",), str(folder / "deep"), None)
    ended = dpaudit("run", "deep")
    assert ended.code == 0, ended.out + ended.err


def test_the_schema_accepts_what_is_read_and_refuses_what_is_not(dpaudit: Run, root: Path) -> None:
    ended = dpaudit("validate", str(root / "audits"))
    assert ended.code == 0, ended.err
    schema = json.loads(dpaudit("validate", "--schema", "spec").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for path in find_specs([root / "audits"]):
        check.validate(tomllib.loads(path.read_text()))
    for wrong in (spec(epsilom="1"), spec(claim='{ epsilon = "1" }'), spec(expect='"yes"'), spec(name='""')):
        with pytest.raises(jsonschema.ValidationError):
            check.validate(tomllib.loads(document(wrong)))


@for_each(
    ("text", "message"),
    [
        (spec(), "error: spec.toml: the key 'schema' is missing"),
        (document(spec()).replace("/1", "/2"), "error: spec.toml: schema must be one of dpaudit.audit/1, got 'dpau"),
        ("a" + ".a" * 100_000 + " = 1", "error: spec.toml: line 1: a name of more than 16 parts; use shorter names"),
        ('\n"a"' + " . 'a'" * 40_000 + " = 1", "error: spec.toml: line 2: a name of more than 16 parts"),
        ("a = " + "[" * 100_000 + "]" * 100_000, "error: spec.toml: nested more than 32 deep; flatten it"),
        ("a = " + "[" * 40 + "]" * 40, "error: spec.toml: nested more than 32 deep; flatten it"),
        ("#" * 300_000, "error: spec.toml: larger than 256 KB"),
        ("a" * 250_000, "error: spec.toml: not valid TOML"),
        ('"' * 250_000, "error: spec.toml: not valid TOML"),
        ("seed = " + "1" * 5_000, "error: spec.toml: not valid TOML"),
    ],
    ids=lambda given: given[:40],
)
def test_hostile_files_are_refused_cheaply(dpaudit: Run, folder: Path, text: str, message: str) -> None:
    # each would take the bare parser from nothing to a minute; without the guard this test would hang
    (folder / "spec.toml").write_text(text)
    ended = dpaudit("validate", "spec.toml")
    assert ended.code == 2
    assert ended.err.startswith(message) or unnumbered(ended.err).startswith(message)
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 300


def test_a_wrong_spec_stops_the_suite_before_it_starts(dpaudit: Run, write: Write, folder: Path) -> None:
    write(spec(), name="right.toml")
    write(spec(epsilom="1"), name="wrong.toml")
    (folder / "wronger.toml").write_bytes(b"\xff\xfe\x00")
    ended = dpaudit("run", ".", "--report", "out", "--format", "json,md")
    first, second = ended.err.splitlines()
    assert (ended.code, ended.out, first.split(":")[1]) == (2, "", " wrong.toml")
    assert second == "error: wronger.toml: not UTF-8 text (byte 0); save it as UTF-8"
    assert not os.path.exists("out")


def test_a_hang_on_one_dataset_is_an_output(dpaudit: Run, write: Write) -> None:
    hangs = spec(mechanism='"mechs:hangs_on_ten"', run_timeout_s="0.005", runs="400", expect='"refuted"')
    ended = dpaudit("run", write(hangs), "--confidence", "0.99")
    assert ended.code == 0, ended.out + ended.err
    assert "REFUTED" in ended.out


def test_nothing_of_the_command_line_imports_a_mechanism(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "marks.py").write_text(
        "open('imported', 'w').close()\ndef f(data):\n    return 0\ndef p():\n    return 1, 2\n"
    )
    name = write(spec(mechanism='"marks:f"', pair='"marks:p"'))
    assert dpaudit("validate", name).code == 0
    assert dpaudit("plan", name).code == 0
    assert not os.path.exists("imported")
