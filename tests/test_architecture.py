"""The rooms of the building, in the order of the flow: each imports only from those before it, and keeps to its budget.

When one of these tests fails, the message is the explanation. A new room gets its place in `FLOW`; an import
that goes the other way wants a smaller interface or another home, not an exception here.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from tests.cases import for_each

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dpaudit"

FLOW = {
    "version": "what this is",
    "errors": "how it fails, in one line",
    "base": "checks, files, strict reading, numbers and text in words",
    "claims": "what is promised",
    "data": "adjacent datasets",
    "mechanisms": "what runs",
    "adapters": "what runs in other libraries",
    "outputs": "what runs returned, in canonical form",
    "events": "sets of outputs",
    "certify": "integers in, certified statements out",
    "losses": "exact privacy losses and their mathematics",
    "options": "what may be asked of an audit, each option declared once",
    "results": "what was found, as values and as files",
    "account": "every sentence about a result",
    "running": "runs of a mechanism in one process",
    "processes": "the processes that run mechanisms",
    "execution": "shards in, merged integers out",
    "recording": "what a mechanism draws, recorded and played again on the neighbour",
    "search": "which event tells two datasets apart",
    "scores": "bounds from membership scores that exist already",
    "auditing": "the question of an audit and its stages: probe, search, freeze, certify, health",
    "verify": "upper bounds, and brackets",
    "report": "one format, one file",
    "ledger": "the record of results",
    "catalogue": "mechanisms from the literature",
    "spec": "the TOML door",
    "api": "the Python door",
    "sweeps": "many audits over a grid",
    "training": "audits of private training",
    "cli": "the door of the shell",
    "pytest_plugin": "the door of a test suite",
}

LIBRARY = (
    "dpaudit.catalogue",
    "dpaudit.losses",
    "dpaudit.claims",
    "dpaudit.certify",
    "dpaudit.report",
    "dpaudit.account",
    "dpaudit.training",
)  # mechanisms, the mathematics of checks, the design of pages, and the hooks of libraries
# Lines that each room may have. Who adds to a room takes out as much, or argues for the new number in the commit.
BUDGET = {
    "version": 10,
    "errors": 80,
    "base": 1_240,
    "claims": 2_360,
    "data": 2_220,
    "mechanisms": 1_060,
    "adapters": 630,
    "outputs": 2_270,
    "events": 1_550,
    "certify": 2_380,
    "losses": 1_340,
    "options": 455,
    "results": 2_800,
    "account": 4_070,
    "running": 2_280,
    "processes": 2_670,
    "execution": 1_030,
    "recording": 2_330,
    "search": 4_070,
    "scores": 3_150,
    "auditing": 4_270,
    "verify": 20_420,
    "report": 3_230,
    "ledger": 2_130,
    "catalogue": 11_340,
    "spec": 1_120,
    "api": 500,
    "sweeps": 1_460,
    "training": 1_640,
    "cli": 2_950,
    "pytest_plugin": 955,
}
SLACK = 100  # lines that a room may lie below its budget, before this is lowered
LONGEST = 700  # lines of a module
NAMED = re.compile(r"dpaudit(\.\w+)+")  # a module in a string, as `import_module` takes it


@dataclass(frozen=True)
class Import:
    """One import of a module: where it stands and what it names."""

    file: Path
    line: int
    module: str
    name: str | None

    @property
    def where(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"


@cache
def imports(file: Path) -> tuple[Import, ...]:
    """Every import of a file: those inside functions, those for types alone, and those by a name in a string."""
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[Import]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.relative_to(ROOT)}:{node.lineno}: write the whole name of {node.module}"
            for alias in node.names:
                yield Import(file, node.lineno, node.module or "", alias.name)
        elif isinstance(node, ast.Constant) and is_module(node.value) and not name_of(file).startswith(node.value):
            yield Import(file, node.lineno, node.value, None)  # but of a room that names itself


def is_module(name: object) -> bool:
    """Whether a constant is the name of a module of the package."""
    if not isinstance(name, str) or not NAMED.fullmatch(name):
        return False
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def floor_of(file: Path) -> str:
    """The name in `FLOW` that a file of the package belongs to; empty for `__init__` and `__main__` of the top."""
    inside = file.relative_to(PACKAGE)
    name = inside.parts[0] if len(inside.parts) > 1 else inside.stem
    return "" if name in ("__init__", "__main__") else name


def target_of(found: Import) -> str | None:
    """The name in `FLOW` that an import reaches for; None for another package, empty for the public names."""
    parts = found.module.split(".")
    if parts[0] != "dpaudit":
        return None
    if len(parts) > 1:
        return parts[1]
    return found.name if found.name in FLOW else ""


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if not any(part.startswith(".") for part in path.parts))


MODULES = sources(PACKAGE)


def test_every_folder_has_its_place_in_the_flow() -> None:
    unknown = {floor_of(file) for file in MODULES} - set(FLOW) - {""}
    assert not unknown, f"give {', '.join(sorted(unknown))} a place in FLOW, in its order, and say what it is"


@for_each("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_up_the_flow_and_never_down(file: Path) -> None:
    order = list(FLOW)
    here = floor_of(file)
    if not here:
        return
    for found in imports(file):
        target = target_of(found)
        if target is None:
            continue
        assert target, f"{found.where}: import {found.name} from its own module, not from dpaudit itself"
        assert target in order, f"{found.where}: {found.module} is nowhere in FLOW"
        assert order.index(target) <= order.index(here), (
            f"{found.where}: {here} ({FLOW[here]}) imports {target} ({FLOW[target]}), which comes after it. "
            f"{here} may import: {', '.join(order[: order.index(here) + 1])}"
        )


def name_of(file: Path) -> str:
    """The dotted name that a file is imported by."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph() -> dict[str, dict[str, Import]]:
    """For every module of the package those that it imports, with the import that does; in functions and for types."""
    names = {name_of(file): file for file in MODULES}
    found: dict[str, dict[str, Import]] = {name: {} for name in names}
    for name, file in names.items():
        for each in imports(file):
            inside = f"{each.module}.{each.name}"
            target = inside if inside in names else each.module
            if target in names and target != name:
                found[name].setdefault(target, each)
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    modules, way = graph(), []
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        way = list(error.args[1][::-1])  # it names each after what imports it
    told = [f"{modules[a][b].where}: {a} imports {b}" for a, b in pairwise(way)]
    assert not way, "these files import each other in a circle:\n" + "\n".join(told)


def test_the_package_itself_loads_nothing_but_its_version_and_who_presents() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    for node in tree.body:  # what stands under `if TYPE_CHECKING` is not executed
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpaudit"):
            loaded = f"{node.module}.{node.names[0].name}"
            known = ("dpaudit.version.__version__", "dpaudit.base.presenter")
            assert loaded in known, f"dpaudit/__init__.py:{node.lineno}: load {loaded} on first use"


def test_only_its_own_door_knows_the_catalogue_and_only_the_plugin_pytest() -> None:
    """A mechanism offers what is known of it: see Known in mechanisms/protocol.py."""
    homes: dict[str, set[str]] = {"catalogue": set(), "pytest": set()}
    for each in (found for file in MODULES for found in imports(file)):
        if target_of(each) == "catalogue" != floor_of(each.file):
            homes["catalogue"].add(str(each.file.relative_to(PACKAGE)))
        elif each.module.split(".")[0] in ("pytest", "_pytest"):
            homes["pytest"].add(floor_of(each.file))
    assert homes == {"catalogue": {"cli/catalogue.py"}, "pytest": {"pytest_plugin"}}


VERIFY = ["deadline", "enclosure", "proof", "language", "replay"]
VERIFY += ["integrals", "witnesses", "alignment", "alethe", "checker", "coupled", "stored", "bracketing"]


def test_the_engines_of_verify_stand_in_their_order() -> None:
    """And checker and search see nothing of one another: they share facts of the language, and the proof as data."""
    for file in sources(PACKAGE / "verify"):
        parts = file.relative_to(PACKAGE / "verify").parts
        here = Path(parts[0]).stem.partition("_")[0]
        for found in imports(file):
            path = found.module.split(".")
            if path[:2] != ["dpaudit", "verify"]:
                continue
            target = (path[2] if len(path) > 2 else str(found.name)).partition("_")[0]
            assert target in VERIFY, f"{found.where}: give {target} a place in VERIFY"
            assert VERIFY.index(target) <= VERIFY.index(here), f"{found.where}: {here} comes before {target}"
            if here in ("alignment", "checker"):
                shared = (here, "language", "proof", "deadline", *["alethe"] * (here == "checker"))
                assert target in shared, f"{found.where}: {here} uses {target}; it may use {', '.join(shared)}"


OBSERVED = [ROOT / "audits" / "libraries" / f"{name}.py" for name in ("environment", "observe", "plain")]
AUDITS = [file for file in sources(ROOT / "audits") if file not in OBSERVED]  # the page of libraries is a door's work


@for_each("file", AUDITS, ids=lambda file: str(file.relative_to(ROOT)))
def test_audits_are_written_as_a_user_would_write_them(file: Path) -> None:
    import dpaudit

    for found in imports(file):
        if found.module.split(".")[0] != "dpaudit":
            continue
        if ".".join(found.module.split(".")[:2]) in LIBRARY:
            assert not (found.name or "").startswith("_"), f"{found.where}: {found.name} is private"
            continue
        assert found.module == "dpaudit", f"{found.where}: audits use public names only: from dpaudit import ..."
        assert found.name is None or found.name in dpaudit.__all__, f"{found.where}: dpaudit.{found.name} is not public"


def test_specs_name_the_catalogue_or_a_module_beside_them() -> None:
    from dpaudit.spec.reading import find_specs

    for file in find_specs([ROOT / "audits"]):
        for audit in tomllib.loads(file.read_text())["audit"]:
            if not isinstance(audit["mechanism"], str):
                continue
            module = audit["mechanism"].partition(":")[0]
            beside = (file.parent / f"{module.replace('.', '/')}.py").exists()
            assert beside or module.startswith("dpaudit.catalogue."), f"{file}: {module} is not beside the spec"


def test_a_class_has_a_name_of_its_own() -> None:
    """One class name, one meaning, in the whole package; those with a leading underscore are a module's own affair."""
    homes: dict[str, list[str]] = {}
    for file in MODULES:
        for name in re.findall(r"^class ([^\W_]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE):
            homes.setdefault(name, []).append(str(file.relative_to(PACKAGE)))
    assert len(homes) > 300
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    assert not twice, f"rename one of each: {twice}"


@for_each("room", list(FLOW))
def test_a_room_keeps_to_its_budget(room: str) -> None:
    lines = sum(len(file.read_text().splitlines()) for file in MODULES if floor_of(file) == room)
    budget = BUDGET[room]
    assert lines <= budget, (
        f"{room} has {lines:,} lines of a budget of {budget:,}: take out {lines - budget:,} of it, "
        "or argue for a new number in the commit"
    )
    assert budget - lines <= SLACK, f"{room} has {lines:,} lines: lower its budget of {budget:,}, so that it stays"


def test_modules_are_one_idea() -> None:
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in MODULES}
    long = {name: lines for name, lines in lengths.items() if lines > LONGEST}
    assert not long, f"split by ideas: {long}"
