"""What a spec file means: order of precedence, claims, pairs, the folder that heads the import path, repeating."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Command, Imported
from dpaudit.results.display import Verdict
from dpaudit.spec.questions import ImportedPair, Layers, command, read_spec, share, shared
from dpaudit.spec.reading import find_specs
from dpaudit.spec.settings import read_settings
from tests.cases import for_each
from tests.doors.conftest import Outcome, document, spec
from tests.doors.transcript import FOLDER, cases

Run = Callable[..., Outcome]
Write = Callable[..., str]


def test_every_key_arrives(write: Write, folder: Path) -> None:
    (asked,) = read_spec(
        write(
            spec(
                name='"all keys"',
                tags='["a", "b"]',
                mechanism='"mechs:leak"',
                parameters="{ times = 2 }",
                claim="{ epsilon = 1, delta = 0.01 }",
                relation='"replace_one"',
                pair='{ first = [1, 2], second = [1, 3], name = "the last", distance = 1 }',
                expect='"refuted"',
                runs="2e4",
                run_timeout_s="1",
                confidence="0.9",
                seed="4",
                search_share="0.2",
                requires='["numpy"]',
            )
        )
    )
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


def test_the_keys_of_a_claim_choose_its_form(write: Write) -> None:
    pure, approximate = read_spec(write(spec(name='"a"'), spec(name='"b"', claim="{ epsilon = 1, delta = 0 }")))
    assert pure.claim == PureDP(1.0)
    assert approximate.claim == ApproximateDP(1.0, 0.0)


def test_a_catalogue_entry_brings_claim_and_pair(write: Write) -> None:
    (asked,) = read_spec(
        write(spec(mechanism='"dpaudit.catalogue.additive:laplace.half_noise"', claim=None, pair=None))
    )
    assert asked.claim.to_dict()["epsilon"] == 1.0
    assert [pair.name for pair in asked.pairs] == ["laplace.half_noise, default"]


def test_pairs_are_made_of_a_dataset_that_a_spec_writes_down_or_names(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "people.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Person:\n    age: float\n"
        "def visits():\n    return [Person(34.0), Person(71.0)]\n"
        "def total(rows, rng):\n    return sum(each.age for each in rows) + rng.laplace()\n"
        "def head(rows, rng):\n    return len(rows) + rng.laplace()\n"
    )
    made = {"pair": None, "claim": "{ epsilon = 1 }", "relation": '"add_or_remove_one"', "runs": "4_000"}
    path = write(
        spec(name='"named"', mechanism='"people:total"', data='"people:visits"', expect='"refuted"', **made)
        + spec(name='"written"', mechanism='"people:head"', data="[1, 2, 5]", pairs='["drop_one", "empty"]', **made)
    )
    ended = dpaudit("run", path, "--report", "reports")
    assert ended.code == 0, ended.out + ended.err
    named, written = (
        json.loads(next((folder / "reports").glob(f"{name}-*.json")).read_text()) for name in ("named", "written")
    )
    kinds = {each.partition(": ")[0] for each in named["provenance"]["reasons"].values()}
    assert kinds >= {"a record less", "NaN", "far out of bounds", "the empty dataset"}
    assert named["spec"]["pairs"][0]["first"]["shown"] == "[Person(age=34.0), Person(age=71.0)]"
    assert set(named["adjacency"]) == {"records"}
    assert {pair["name"].partition(":")[0] for pair in written["spec"]["pairs"]} == {"drop one", "empty"}
    page = next((folder / "reports").glob("written-*.html")).read_text()
    assert "Kinds of pairs that were tried: a record less, the empty dataset; not tried: a duplicate more," in page
    for keys, words in (
        ({"relation": None}, 'pairs are made of data under a relation: give relation = "add_or_remove_one" or another'),
        ({"pair": "{ first = 1, second = 2 }"}, "of data pairs are made: leave out pair"),
        ({"pairs": '["drop_on"]'}, "pattern must be one of "),
        ({"data": "3"}, "data = 3 is one value, and add_or_remove_one is about records"),
    ):
        with pytest.raises(InvalidSpec, match=words):
            read_spec(write(spec(**{**made, "data": "[1, 2]", **keys})))


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


def test_settings_of_the_project_are_as_strict_as_a_spec(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.dpaudit]\nsede = 3\n")
    ended = dpaudit("validate", write(spec()))
    assert ended.code == 2
    assert (
        ended.err
        == "error: pyproject.toml: line 2: tool.dpaudit: unknown key 'sede'; did you mean 'seed'?\n".replace(
            "pyproject", str(folder / "pyproject")
        )
    )
    (folder / "pyproject.toml").write_text("[tool.dpaudit]\nconfidence = 2\n")
    assert "pyproject.toml: tool.dpaudit.confidence must lie strictly between" in dpaudit("plan", "spec.toml").err
    (folder / "pyproject.toml").write_text("[project]\nname = 'somebody-elses'\n")
    assert dpaudit("validate", "spec.toml").code == 0


def test_folders_are_searched_and_other_files_left_alone(dpaudit: Run, write: Write, folder: Path) -> None:
    write(spec(), name="b/two.toml")
    write(spec(), name="a/one.toml")
    write(spec(), name=".hidden/three.toml")
    (folder / "a/ruff.toml").write_text("line-length = 100\n")
    (folder / "pyproject.toml").write_text("this is not TOML")
    assert [str(path) for path in find_specs([".", "a/one.toml"])] == ["a/one.toml", "b/two.toml"]
    (folder / "a/typo.toml").write_text("shema = 1\naudit = []\n")
    assert dpaudit("validate", "a").err.startswith("error: a/typo.toml: line 1: unknown key 'shema'; did you mean")


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


def test_every_file_of_a_folder_is_checked_before_one_is_refused(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "a.toml").write_text("schema = dpaudit\n")
    (folder / "b.toml").write_bytes(b"\xff\xfes\x00")
    write(spec(seed="-1"), name="c.toml")
    write(spec(), name="d.toml")
    for asked in ("validate", "plan", "run"):
        ended = dpaudit(asked, ".")
        assert ended.code == 2
        assert [line.split(":")[1] for line in ended.err.splitlines()] == [" a.toml", " b.toml", " c.toml"]
    assert 'quotes: name = "noisy count"' in ended.err
    assert dpaudit("validate", "no.toml", "d.toml", "nor.toml").err.count("no such file") == 2


@for_each(
    ("word", "stored"),
    [("bounded", "replace_one"), ("unbounded", "add_or_remove_one"), ("add-or-remove-one", "add_or_remove_one")],
)
def test_relations_have_second_names(write: Write, word: str, stored: str) -> None:
    (question,) = read_spec(write(spec(relation=f'"{word}"', pair="{ first = 1, second = 2 }")))
    assert Relation.word(question.claim.relation) == stored


def test_a_suite_divides_the_error_probability(write: Write) -> None:
    name = write(*(spec(name=f'"{letter}"', runs="20_000") for letter in "abc"))
    posed, together = shared(read_spec(name))
    assert together == 0.999
    assert {asked.confidence for asked in posed} == {share(0.999, 3)}
    assert 3 * (1.0 - posed[0].confidence) == pytest.approx(0.001)


@for_each("audits", [1, 2, 3, 13, 100])
@for_each("confidence", [0.999, 0.95, 0.123456789, 1 - 1e-9])
def test_the_command_that_repeats_a_file_gives_the_same_share(write: Write, audits: int, confidence: float) -> None:
    names = [
        write(spec(runs="1e6"), *(spec(name=f'"{n}"', runs="1e6") for n in range(file)), name=f"f {file}.toml")
        for file in range(2)
    ]
    asked = [*read_spec(names[0]), *read_spec(names[1])] + list(read_spec(names[0])) * (audits - 1)
    each = share(confidence, len(asked))
    posed = tuple(replace(question, confidence=each) for question in asked)
    words = shlex.split(command(posed[1], posed, ("core", "slow"), given={"runs": 7}))
    assert words[:8] == ["dpaudit", "run", "f 1.toml", "--tag", "core", "--tag", "slow", "--seed"]
    assert words[-2:] == ["--runs", "7"]
    assert share(float(words[words.index("--confidence") + 1]), 2) == each


def test_the_recorded_command_repeats_the_result_bit_for_bit(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "noisy.py").write_text("def noisy(data, rng):\n    return data + rng.laplace()\n")
    noisy = spec(name='"noisy"', mechanism='"noisy:noisy"', tags='["t"]')
    write(noisy, spec(name='"other"'), name="one.toml")
    write(spec(), name="two.toml")
    assert dpaudit("run", ".", "--report", "first", "--format", "json,md", "--seed", "9", "--runs", "3000").code == 0
    (first,) = Path("first").glob("noisy-*.json")
    stored = json.loads(first.read_text())
    words = shlex.split(stored["provenance"]["command"])
    assert dpaudit(*words[1:], "--report", "second", "--format", "json,md").code == 0
    (second,) = Path("second").glob("noisy-*.json")
    again = json.loads(second.read_text())
    for record in (stored, again):
        del record["provenance"]
    assert first.name == second.name
    assert again == stored


def test_a_pair_made_by_a_function_runs_in_the_worker(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "own.py").write_text(
        "class Rows(list):\n    pass\n"
        "def pair():\n    return Rows([1, 2]), Rows([1])\n"
        "def size(rows, rng):\n    assert type(rows) is Rows\n    return len(rows) + rng.random() / 2\n"
    )
    several = spec(mechanism='"own:size"', pair=None, pairs='["own:pair", { first = [1], second = [2] }]')
    once = spec(name='"once"', mechanism='"own:size"', pair='"own:pair"', expect='"refuted"')
    ended = dpaudit("run", write(once, several), "--report", "out", "--format", "json,md")
    assert "as expected  REFUTED      once" in ended.out, ended.err
    (stored,) = (json.loads(path.read_text()) for path in Path("out").glob("once-*.json"))
    assert stored["spec"]["pairs"][0]["name"] == "pair"
    assert isinstance(read_spec("spec.toml")[0].pairs[0], ImportedPair)
    assert [pair.name for pair in read_spec("spec.toml")[1].pairs] == ["pair 1, pair", "pair 2"]


def test_each_spec_imports_from_its_own_folder(dpaudit: Run, write: Write, folder: Path) -> None:
    # two modules of one name: a worker that kept the first would give the second audit the wrong mechanism
    for name, result in (("first", "data"), ("second", "0")):
        expect = '"refuted"' if result == "data" else '"not-refuted"'
        write(spec(name=f'"{name}"', mechanism='"same:f"', expect=expect), name=f"{name}/spec.toml")
        (folder / name / "same.py").write_text(
            "import helper\ndef f(data, rng):\n    return helper.answer(data) + rng.random() / 2\n"
        )
        (folder / name / "helper.py").write_text(f"def answer(data):\n    return {result}\n")
    for backend in ("sequential", "loky"):
        ended = dpaudit("run", ".", "--backend", backend, "--jobs", "2")
        assert ended.code == 0, (backend, ended.out)


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


def test_a_time_limit_is_recorded_with_the_runs_that_it_leaves(dpaudit: Run, write: Write) -> None:
    ended = dpaudit(
        "run", write(spec(runs="2_000", max_time_s="20")), "--report", "out", "--format", "json,md", "--jobs", "1"
    )
    assert ended.code == 0, ended.err
    (stored,) = (json.loads(path.read_text()) for path in Path("out").glob("it-*.json"))
    assert stored["provenance"]["max_time_s"] == 20.0
    assert stored["spec"]["runs"] == 2_000  # both are caps
    assert stored["provenance"]["command"].endswith(f"--runs {stored['spec']['runs']}")
    assert stored["runs_used"] <= stored["spec"]["runs"]


def test_the_schema_accepts_what_is_read_and_refuses_what_is_not(dpaudit: Run, root: Path) -> None:
    import tomllib

    from dpaudit.spec.reading import find_specs

    schema = json.loads(dpaudit("validate", "--schema", "spec").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for path in find_specs([root / "audits"]):
        check.validate(tomllib.loads(path.read_text()))
    for wrong in (spec(epsilom="1"), spec(claim='{ epsilon = "1" }'), spec(expect='"yes"'), spec(name='""')):
        with pytest.raises(jsonschema.ValidationError):
            check.validate(tomllib.loads(document(wrong)))


def test_the_specs_of_the_repository_are_valid(dpaudit: Run, root: Path) -> None:
    ended = dpaudit("validate", str(root / "audits"))
    assert ended.code == 0, ended.err
