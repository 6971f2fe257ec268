"""What a newcomer finds beside the code: licence, citation, metadata, hooks, and bounds that are kept."""

from __future__ import annotations

import ast
import doctest
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import dpaudit
from dpaudit.base import installed
from dpaudit.version import __version__
from scripts import mutants
from scripts.newest import different
from scripts.oldest import constraints, requirements
from scripts.package import missing
from tests.cases import for_each
from tests.test_architecture import MODULES, imports

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
APACHE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"  # SHA-256 of the published text


def test_licence_metadata_and_citation_agree() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE
    assert (PROJECT["license"], PROJECT["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert all(PROJECT[key] for key in ("authors", "description", "readme", "keywords", "classifiers"))
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"message", "title", "authors", "abstract"} <= set(cited)  # the first three are what the schema demands
    told = [cited[key] for key in ("cff-version", "authors", "title", "license", "version")]
    assert told == ["1.2.0", PROJECT["authors"], PROJECT["name"], PROJECT["license"], dpaudit.__version__]


def test_the_changelog_begins_with_this_version() -> None:
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    versions = [re.fullmatch(r"(\d+\.\d+\.\d+) \((?:unreleased|\d{4}-\d\d-\d\d)\)", each) for each in sections]
    assert all(versions), sections
    assert sections[0].split()[0] == dpaudit.__version__
    assert not any("unreleased" in each for each in sections[1:])


def test_every_goal_and_file_that_a_contributor_is_told_of_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    goals = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([\w-]+)`", text))
    assert {"quick", "test", "audit", "lectures"} <= named <= goals
    paths = set(re.findall(r"`((?:dpaudit|tests|docs|audits)/[\w./]+)`", text))
    assert len(paths) > 15
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_every_sentence_is_listed_with_its_place_and_values_as_templates() -> None:
    listed = subprocess.run(
        [sys.executable, ROOT / "scripts" / "sentences.py"], capture_output=True, text=True, check=True
    )
    for known in (
        r"api/audits\.py:\d+: \{call\} has no keyword \{word\}\{meant\(",
        r"cli/commands\.py:\d+: Audit one function, without a spec file\. ",
        r"cli/commands\.py:\d+: The claimed epsilon; with --delta",
        r"mechanisms/importing\.py:\d+: \{reference\}: there is no module \{module\}; \{cure\}",
        r"options\.py:\d+: Executions to spend on each \{audit\}\.",
        r"account/templates\.py:\d+: ",
    ):
        assert re.search(rf"^{known}", listed.stdout, re.MULTILINE), known
    assert not re.search(r"^base/validate\.py:\d+: Checks of ", listed.stdout, re.MULTILINE)  # a docstring


def test_workflows_run_goals_that_are_there() -> None:
    goals = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        lines = re.findall(r"run: make (.*)", path.read_text(encoding="utf-8"))
        made = {each for line in lines for each in line.split() if "=" not in each}
        assert made, path.name
        assert made <= goals, path.name


def test_the_makefile_audits_the_lectures_at_eleven_seeds_and_checks_a_core_that_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (seeds,) = re.findall(r"^SEEDS := (.*)$", makefile, re.MULTILINE)
    assert seeds.split() == [str(seed) for seed in range(11)]
    assert re.findall(r"run audits/lectures --confidence (\S+)", makefile) == ["0.9999"]
    (core,) = re.findall(r"^CORE := (.*)$", makefile, re.MULTILINE)
    assert not [part for part in core.split() for top in ("dpaudit", "tests") if not (ROOT / top / part).is_dir()]
    oldest = re.findall(r"^\.environments/oldest/\.ready: PYTHON = python(\S+)$", makefile, re.MULTILINE)
    assert [f">={each}" for each in oldest] == [PROJECT["requires-python"]]


def test_the_hooks_run_the_linter_and_the_types_of_the_environment() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"  # nothing is downloaded, and the versions are those of pyproject.toml
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert [entry.split()[:3] for entry in entries] == [[".venv/bin/python", "-m", name] for name in ("ruff", "mypy")]


def test_the_lowest_versions_are_those_that_are_allowed_and_no_lower() -> None:
    required = {Requirement(each).name: Requirement(each).specifier for each in requirements()}
    lowest = dict(each.split("==") for each in constraints(requirements()))
    assert set(required) - set(lowest) == {"scipy-stubs", "joblib-stubs"}  # types alone: no version runs
    for name, version in lowest.items():
        assert version in required[name], f"{name} {version}"
        parts = Version(version).release
        lower = next(".".join(map(str, (*parts[:at], parts[at] - 1))) for at in (-1, -2, -3) if parts[at])
        assert lower not in required[name], f"{name}: {lower} is allowed too"


@pytest.mark.long
def test_every_goal_takes_the_lock_and_with_newest_what_is_newest() -> None:
    """`LOCKED=1`, which older notes name, changes nothing."""
    outer = {"NEWEST", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"}  # of a make that runs this test
    plain = {name: value for name, value in os.environ.items() if name not in outer} | {"PYTHON": sys.executable}

    def told(*words: str) -> str:
        command = ["make", "--dry-run", "--always-make", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=plain).stdout

    for goal in ("audit", "test", "docs"):
        locked, newest = told(goal), told(goal, "NEWEST=1")
        assert "--require-hashes --requirement requirements/test.txt" in locked
        assert "--no-deps --no-build-isolation --editable ." in locked
        assert ("--require-hashes" in newest, "--upgrade-strategy eager" in newest) == (False, True)
        assert not set(re.findall(r"\S+/bin/python", newest)) & {".venv/bin/python"}
        if goal == "test":
            assert ("scripts/newest.py" in newest, "scripts/newest.py" in locked) == (True, False)
            assert told(goal, "LOCKED=1") == locked


def test_versions_that_are_not_those_of_the_lock_are_named() -> None:
    lock = (ROOT / "requirements" / "test.txt").read_text(encoding="utf-8")
    name, version, *_ = PIN.findall(lock)[0]
    assert different(lock, [(name.upper().replace("-", "_"), version), ("nothing-of-ours", "1")]) == []
    assert different(lock, [(name, "0.0")])[0].startswith(f"{name} 0.0 (the lock has ")


@pytest.mark.long
def test_what_is_imported_is_required_and_what_is_required_is_imported() -> None:
    """By the package itself, wherever the import stands; what an extra brings is asked for in a try, or by name."""
    required = {Requirement(each).name.lower() for each in PROJECT["dependencies"]}
    others = {"markupsafe"}  # of jinja2, whose texts are its own
    others |= {"pytest", "distributed", "dask", "flint", "z3", "pyarrow", "polars", "securesystemslib", "cryptography"}
    others |= {"matplotlib", "coverage", "pandas", "xdist", "_pytest", "IPython", "hypothesis"}  # where a user has them
    others |= {"opacus", "torch", "jax", "jax_privacy", "dp_accounting", "diffprivlib", "opendp"}
    imported = {each.module.partition(".")[0] for path in MODULES for each in imports(path)}
    assert imported - others - set(sys.stdlib_module_names) - {"dpaudit"} == required


@pytest.mark.long
def test_what_a_test_cannot_be_collected_without_is_required_by_name() -> None:
    """Not by what something else requires today: a requirement that goes takes its own with it."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][each] for each in LOCKS["test"][0])]
    required = {Requirement(each).name.lower() for every in lists for each in every}
    required |= {"dask", "cryptography"}  # of distributed and securesystemslib[crypto], which are made of them
    providers = metadata.packages_distributions()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in _imported(node) - {"tests", "audits", "benchmarks", "scripts"}:
                assert {each.lower() for each in providers.get(name, ())} & required, f"{path}: {name}"


def _imported(node: ast.AST) -> set[str]:
    """The packages that an import names, but for Python's own and ours."""
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
    names += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
    return {each.partition(".")[0] for each in names} - set(sys.stdlib_module_names) - {"dpaudit"}


def test_continuous_integration_runs_what_readme_says_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith(("#", "set ", "cd "))] == ["make test"]


def test_a_file_that_a_build_leaves_out_is_noticed(tmp_path: Path) -> None:
    def build(names: list[str]) -> list[str]:
        archive = tmp_path / "a-1.tar.gz"
        with tarfile.open(archive, "w:gz") as sdist, zipfile.ZipFile(tmp_path / "a-1.whl", "w") as wheel:
            for name in names:
                sdist.addfile(tarfile.TarInfo(f"a-1/{name}"), io.BytesIO())
                wheel.writestr("a-1.dist-info/licenses/LICENSE" if name == "LICENSE" else name, "")
        return missing(tmp_path, {"a/one.py", "a/two.html"})

    assert build(["LICENSE", "a/one.py", "a/two.html"]) == []
    assert build(["LICENSE", "a/one.py"]) == ["a-1.tar.gz: a/two.html", "a-1.whl: a/two.html"]
    assert build(["a/one.py", "a/two.html"]) == ["a-1.tar.gz: LICENSE", "a-1.whl: LICENSE"]


# what is locked


LOCKS = {  # by file: the extras and groups of pyproject.toml that it holds beside what the package itself requires
    "runtime": ((), ()),
    "action": ((), ("build",)),
    "test": (("test", "plots", "audits", "verify", "search", "attest", "dask", "docs"), ("build",)),
    "release": (None, ("build", "release")),  # tools alone
}
PIN = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)==(\S+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)
USED = re.compile(r"uses: (\S+)(.*)$", re.MULTILINE)
OURS = "OWNER/dpaudit@COMMIT"  # in examples
BY_TAG = "github/codeql-action/upload-sarif@v3"  # of which no hash could be looked up


@for_each("name", LOCKS)
def test_the_lock_holds_all_that_is_required_at_versions_that_are_allowed(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    pins = PIN.findall(text)
    assert len(pins) == len(re.findall(r"^[^#\s]", text, re.MULTILINE))  # each line that names a package has hashes
    assert "://" not in text  # neither another index nor a file of one machine
    extras, groups = LOCKS[name]
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = [] if extras is None else PROJECT["dependencies"][:]
    required += [each for extra in extras or () for each in PROJECT["optional-dependencies"][extra]]
    required += [each for group in groups for each in whole["dependency-groups"][group]]
    for each in map(Requirement, required):
        versions = [version for pinned, version, _, _ in pins if pinned == each.name.lower()]
        assert versions, f"{name}.txt has no {each.name}: make lock"
        assert all(version in each.specifier for version in versions), f"{name}.txt: {each}: make lock"


def test_the_extras_of_the_lock_are_those_of_the_test_environment() -> None:
    (tested,) = re.findall(r"^TESTED := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(tested.split()) == LOCKS["test"][0]
    others = {"opacus", "jax", "parquet", "ray", "spark"}  # make audit-training, cluster-ray and cluster-spark
    assert set(tested.split()) == set(PROJECT["optional-dependencies"]) - others


def test_actions_are_named_by_commits_and_a_workflow_may_read_and_nothing_more() -> None:
    files = [ROOT / "action.yml", *ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("audits/*/.github/workflows/*.yml")]
    used = [each for file in [*files, ROOT / "docs/ci/action.md"] for each in USED.findall(file.read_text("utf-8"))]
    assert len(files) >= 3
    assert len(used) > 10
    for action, rest in used:
        if action not in (OURS, BY_TAG):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", rest), f"{action} has no version beside it"
    hashes = {(action.partition("@")[0], action) for action, _ in used}
    assert len(hashes) == len({name for name, _ in hashes})  # one version of each
    for file in files[1:]:
        assert yaml.safe_load(file.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}


@pytest.mark.long
def test_a_mutant_is_another_program_that_can_be_read() -> None:
    assert doctest.testmod(mutants).failed == 0
    every = mutants.mutants(ROOT)
    for room in mutants.ROOMS:
        named = [each for name, each in every.items() if name.startswith(f"{room}: ")]
        assert len(named) > 300, room
        for each in named[:: len(named) // 10]:
            text = (ROOT / each.path).read_text(encoding="utf-8")
            assert ast.dump(ast.parse(each.source(text))) != ast.dump(ast.parse(text)), each.name


@pytest.mark.long
def test_a_mutant_that_changes_no_answer_is_one_of_today_and_has_a_reason() -> None:
    excused = tomllib.loads(mutants.EQUIVALENT.read_text(encoding="utf-8"))
    assert set(excused) <= set(mutants.mutants(ROOT))
    assert all(reason.strip() for reason in excused.values())


def _tree(folder: Path, tests: mutants.Covered) -> mutants.Tree:
    """Files that no commit holds, without a process that has collected their tests."""
    tree = object.__new__(mutants.Tree)
    tree.folder, tree.tests, tree.passing = folder, tests, {}
    return tree


@for_each(
    ("with_it", "without", "outcome"),
    [
        (0, 1, "survived"),  # what passes with a fault need not be run again
        (1, 0, "killed"),
        (mutants.LATE, 0, "timed out"),
        (4, 0, "killed"),
        *((code, code, mutants.UNSOUND) for code in (1, mutants.LATE, 4, 5)),
    ],
)
def test_only_tests_that_fail_by_the_mutant_kill_it(tmp_path: Path, with_it: int, without: int, outcome: str) -> None:
    file, source = tmp_path / "doubled.py", "def double(x):\n    return x + x\n"
    file.write_text(source)
    mutant = mutants.Mutant("double", file.name, 2, source.index("x + x"), source.index("x + x") + 5, "3 * x")
    tree = _tree(tmp_path, mutants.Covered({"test": 0.1}, {(file.name, 2): {"test"}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "_forked", lambda file, before, after, chosen: with_it if "3 * x" in after else without)
        patch.setattr(tree, "_run", lambda chosen: with_it if "3 * x" in file.read_text() else without)
        assert tree.killed(mutant) == outcome
    assert file.read_text() == source
    assert _tree(tmp_path, mutants.Covered({}, {})).killed(mutant) == "no test"


def test_what_only_other_processes_run_is_tried_on_the_tests_of_its_room() -> None:
    mutant = mutants.Mutant("", "dpaudit/processes/counting.py", 7, 0, 0, "")
    short, long = (f"tests/processes/test_host.py::{name}" for name in ("short", "long"))
    assert mutants.Covered({long: 3.0, short: 1.0, "tests/a.py::b": 0.1}, {}).tests_of(mutant) == [short, long]


@pytest.mark.long
def test_a_module_that_a_mutant_leaves_unreadable_is_killed(tmp_path: Path) -> None:
    (tmp_path / "doubled.py").write_text("SIZE = 2\n")
    (tmp_path / "test_doubled.py").write_text("from doubled import SIZE\n\ndef test_size():\n    assert SIZE\n")
    known = "test_doubled.py::test_size"
    tests = mutants.Covered({known: 0.1}, {("doubled.py", 1): {known}})
    mutant = mutants.Mutant("SIZE", "doubled.py", 1, 7, 8, "2 / 0")
    tree = _tree(tmp_path, tests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "_forked", lambda *_: mutants.UNCHANGED)  # a function that holds no fault
        assert tree.killed(mutant) == "killed"
    assert tree._run((known,)) == 0


# how an extra is installed: the way this package was, as pip wrote it down; never by the bare name alone


GIT = {"url": "https://host/o/dpaudit", "vcs_info": {"vcs": "git", "commit_id": "0a1b2c", "requested_revision": "main"}}
WHEEL = {"url": "https://host/dpaudit-1.whl", "archive_info": {}}


@for_each(
    ("told", "words"),
    [
        ({"url": "file:///a%20b/c", "dir_info": {"editable": True}}, ["--editable", "/a b/c[verify]"]),
        ({"url": "file:///a/c", "dir_info": {}}, ["/a/c[verify]"]),
        (GIT, ["dpaudit[verify] @ git+https://host/o/dpaudit@0a1b2c"]),
        ({**GIT, "subdirectory": "part"}, ["dpaudit[verify] @ git+https://host/o/dpaudit@0a1b2c#subdirectory=part"]),
        (WHEEL, ["dpaudit[verify] @ https://host/dpaudit-1.whl"]),
        (None, [f"dpaudit[verify]=={__version__}"]),  # from an index
        ("nothing", [f"{ROOT}[verify]"]),  # a checkout on the path alone
    ],
)
def test_an_extra_is_installed_as_the_package_was(told: object, words: list[str]) -> None:
    def distribution(name: str) -> object:
        if told == "nothing":
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(read_text=lambda file: None if told is None else json.dumps(told))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "distribution", distribution)
        assert installed.requirement("verify") == words
        assert "[verify]" not in " ".join(installed.requirement())
        message = str(installed.lacking("proofs need z3-solver", "verify"))
    assert message.endswith(shlex.join(words))
    assert message.startswith("proofs need z3-solver; the extra [verify] has it: python3 -m pip install ")
    if " @ " in words[-1] or "==" in words[-1]:
        assert Requirement(words[-1]).extras == {"verify"}


def test_no_message_and_no_page_installs_by_the_bare_name() -> None:
    """Anybody can take a name that is on no index: what is shown has an address, or is a checkout."""
    shown = {path: path.read_text("utf-8") for path in (ROOT / "dpaudit").rglob("*.py") if path.name != "installed.py"}
    texts = {
        str(path): str(node.value)
        for path, text in shown.items()
        if "pip install" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and "pip install" in str(node.value)
    }
    pages = [ROOT / "README.md", ROOT / "action.yml", *(ROOT / "docs").rglob("*.md"), *(ROOT / "templates").iterdir()]
    texts |= {
        f"{path}:{number}": line
        for path in [*pages, ROOT / "Dockerfile"]
        for number, line in enumerate(path.read_text("utf-8").splitlines())
        if "pip install" in line
    }
    assert len(texts) > 8
    for place, text in texts.items():
        words = text.partition("pip install")[2].replace("`", " ").replace('"', " ").replace("'", " ").split()
        bare = [
            word for at, word in enumerate(words) if word.split("[")[0] == "dpaudit" and words[at + 1 : at + 2] != ["@"]
        ]
        assert not bare, place
