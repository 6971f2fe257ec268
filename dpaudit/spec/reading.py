"""Which files are specs, and their tables as typed values: all faults at once, each with its place, line and cure."""

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from dpaudit.base.files import FOLDER, found_at, read_bytes
from dpaudit.base.strict import LARGEST_FILE, Keys, fitted, lines_of, read_toml
from dpaudit.base.validate import meant
from dpaudit.claims import POINTS
from dpaudit.errors import InvalidSpec
from dpaudit.options import IN_SPECS
from dpaudit.spec.tables import Document, SweepTable, parts

Table = TypeVar("Table", bound=Struct)
Fault = tuple[Keys, str]  # the keys that lead to it from its table, and a message

WHOLE = "; write [[audit]], in double brackets, above the keys of each"
EXAMPLES = {
    "schema": '"dpaudit.audit/1"',
    "name": '"noisy count"',
    "mechanism": '"my_module:my_function"',
    "mechanism.command": '["python3", "mechanism.py"]',
    "mechanisms": '["my_module:my_function"]',
    "tags": '["core"]',
    "parameters": "{ epsilon = 1.0 }",
    "claim": "{ epsilon = 1.0 }",
    "relation": '"add_or_remove_one"',
    "pair": "{ first = [1, 2, 3], second = [1, 2] }",
    "pairs": "[{ first = [1, 2, 3], second = [1, 2] }]",
    "pattern": '"one_differs"',
    "expect": '"refuted"',
    "upper": '{ proof = "proof.json" }',
    "requires": '["numpy"]',
    **{name: each.example for name, each in IN_SPECS.items() if each.example},
}


def find_specs(paths: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """The spec files under the given files and folders, each once, in the order of their names within a folder.

    In a folder, a TOML file with neither `schema` nor `audit` belongs to another tool and is left out; so are
    hidden folders, pyproject.toml and sweeps, which have a command of their own. One that is not valid TOML is
    included: reading it raises the error. Raises `InvalidSpec` naming every path that does not exist.
    """
    there = {given: found_at(given) for given in map(Path, paths)}
    if missing := [given for given, kind in there.items() if kind is None]:
        raise InvalidSpec(*(f"{given}: there is no such file or folder" for given in missing))
    seen: dict[Path, Path] = {}
    for given, kind in there.items():
        for file in filter(_of_audits, _toml_files(given)) if kind == FOLDER else (given,):
            seen.setdefault(file.resolve(), file)
    return tuple(seen.values())


def _of_audits(file: Path) -> bool:
    try:
        keys = read_toml(file).keys()
    except InvalidSpec:
        return True
    return not keys.isdisjoint({"schema", "audit"}) and ("sweep" not in keys or "audit" in keys)


def _toml_files(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".toml") and not name.startswith(".") and name != "pyproject.toml":
                yield Path(here, name)


@dataclass(frozen=True, slots=True)
class SpecPlace:
    """A table of a file: the keys that lead to it, and its name in messages."""

    file: str
    keys: Keys = ()
    called: str = ""

    def line(self, *keys: str | int) -> str:
        """The file, and the line of a key of this table, or of the table where it has no such key."""
        lines: dict[Keys, int] = {}
        with suppress(InvalidSpec, UnicodeDecodeError):  # it has changed since it was read
            lines = lines_of(read_bytes(self.file, LARGEST_FILE).decode("utf-8-sig"))
        path = (*self.keys, *keys)
        number = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
        return self.file if number is None else f"{self.file}: line {number}"

    def says(self, message: object, *keys: str | int) -> str:
        """A message with its place before it."""
        return ": ".join(filter(None, (self.line(*keys), self.called, str(message))))


def audits_of(raw: dict[str, Any], source: str) -> tuple[list[tuple[Any, SpecPlace]], list[str]]:
    """The raw audits of a spec file with their places, and the faults of the rest of it."""
    if "sweep" in raw:
        also = "; keep the audits in a file of their own" if "audit" in raw else ""
        return [], [f"{source}: it holds a [sweep], which `dpaudit sweep {source}` runs{also}"]
    audits = raw.get("audit", [])
    place = SpecPlace(source)
    document_faults = list(faults({**raw, "audit": []} if isinstance(audits, list) else raw, Document))
    if ("schema",) in (keys for keys, _ in document_faults) or not isinstance(audits, list):
        audits = []  # of another format
    places = (
        SpecPlace(source, ("audit", number), f"audit {_called(each, number + 1)}") for number, each in enumerate(audits)
    )
    return list(zip(audits, places, strict=False)), [place.says(what, *keys) for keys, what in document_faults]


def read_sweeps(raw: dict[str, Any], source: str) -> list[SweepTable]:
    """The sweeps of a spec file, in its order. Raises `InvalidSpec` naming place, sweep and key."""
    if "sweep" not in raw:
        runs = f"; `dpaudit run {source}` runs its audits" if "audit" in raw else ""
        raise InvalidSpec(f"{source}: it holds no [sweep]{runs}")
    if "audit" in raw:
        raise InvalidSpec(f"{source}: it holds both [[audit]] and [sweep]; keep each in a file of its own")
    convert({**raw, "sweep": []}, Document, SpecPlace(source))
    if not isinstance(raw["sweep"], list):
        return [convert(raw["sweep"], SweepTable, SpecPlace(source, ("sweep",), "sweep"))]
    several = len(raw["sweep"]) > 1
    return [
        convert(
            each, SweepTable, SpecPlace(source, ("sweep", n), f"sweep {_called(each, n + 1)}" if several else "sweep")
        )
        for n, each in enumerate(raw["sweep"])
    ]


def convert(raw: Any, into: type[Table], place: SpecPlace) -> Table:
    """A table as typed values. Raises `InvalidSpec` naming place and key of each fault."""
    messages = [place.says(what, *keys) for keys, what in faults(raw, into)]
    if messages:
        raise InvalidSpec(*messages)
    read: Table = fitted(raw, into)
    return read


def faults(raw: Any, into: type[Struct], inside: Keys = ()) -> Iterator[Fault]:
    """The faults of a table, key by key; `inside` are the keys that lead to it from the outer table."""
    if not isinstance(raw, dict):
        yield from _fault(raw, into, into, inside)
        return
    kinds = {key: parts().get((into.__name__, key), (kind,))[0] for key, kind in _hints(into).items()}
    meant_by = {key: difflib.get_close_matches(key[:100], kinds, n=1) for key in raw if key not in kinds}
    for key in meant_by:
        yield (*inside, key), _sentence(f"Object contains unknown field `{key}`", inside, None, tuple(kinds), ())
    for field in msgspec.structs.fields(into):
        if field.required and field.name not in raw and [field.name] not in meant_by.values():
            yield (
                (*inside, field.name),
                _sentence(f"Object missing required field `{field.name}`", inside, None, (), ()),
            )
    for key, value in raw.items():
        table = next((kind for kind in _within(kinds.get(key), lists=False) if _is_table(kind)), None)
        if table is not None and isinstance(value, dict):
            yield from faults(value, table, (*inside, key))
        elif key in kinds:
            yield from _fault(value, kinds[key], into, (*inside, key))


_ERROR = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def _fault(value: Any, kind: Any, table: type[Struct], keys: Keys) -> Iterator[Fault]:
    """The fault of one value, if it has one."""
    try:
        fitted(value, kind)
    except msgspec.ValidationError as error:
        yield keys, _in_words(str(error), value, kind, table, keys)


def _in_words(message: str, value: Any, kind: Any, table: type[Struct], keys: Keys) -> str:
    match = _ERROR.fullmatch(message)
    what, path = (match["what"], match["path"] or "$") if match else (message, "$")
    kinds = [*_within(kind)]  # that the last key may have
    for key, index in _STEP.findall(path):
        if index and POINTS in kinds:
            break
        if index:
            value = value[int(index)] if index.isdigit() and isinstance(value, list) else None
            continue
        table = next((each for each in kinds if _is_table(each)), table)
        value = value.get(key) if isinstance(value, dict) else None
        keys = (*keys, key)
        kinds = [*_within(parts().get((table.__name__, key), _hints(table).get(key)))]
    table = next((each for each in kinds if _is_table(each)), table)
    if POINTS in kinds and value is not None:
        return f"{_dotted(keys)} must be a list of points, each of two numbers, got {_short(value)}"
    known = next((get_args(each) for each in kinds if get_origin(each) is Literal), ())
    return _sentence(what, keys, value, table.__struct_fields__, known)


@cache
def _hints(table: type[Struct]) -> dict[str, Any]:
    return get_type_hints(table, include_extras=True)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _within(kind: Any, *, lists: bool = True) -> Iterator[Any]:
    """A kind and all its parts; without `lists`, its alternatives only."""
    yield kind
    for part in kind if isinstance(kind, tuple) else get_args(kind) if lists or get_origin(kind) is not list else ():
        yield from _within(part, lists=lists)


def _called(value: Any, number: int) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return repr(name) if isinstance(name, str) and name else f"number {number}"


def _dotted(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _sentence(what: str, keys: Keys, value: Any, fields: tuple[str, ...], known: tuple[str, ...]) -> str:
    key = _dotted(keys)
    inside = f"{key}: " if key else ""
    if match := re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL):
        others = f"; known here: {', '.join(fields)}"
        if key and match[1] in EXAMPLES:
            return f"{key}: {match[1]!r} stands beside {key}, not in it{example(match[1])}"
        return f"{inside}unknown key {match[1]!r}{meant(match[1], fields, others)}"
    if match := re.fullmatch(r"Object missing required field `(.*)`", what):
        return f"{inside}the key {match[1]!r} is missing{example(*keys, match[1])}"
    if match := re.fullmatch(r"Expected `(.*)`, got `(.*)`", what):
        kinds = [_KINDS.get(kind, kind) for kind in match[1].split(" | ") if kind != "null"]
        if "a number" in kinds and "a whole number" in kinds:
            kinds.remove("a whole number")
        got = f"{_KINDS.get(match[2], match[2])} {_short(value)}"
        return f"{key or 'it'} must be {' or '.join(kinds)}, got {got}{example(*keys)}"
    if what.startswith("Expected `str` of length >= 1"):
        return f"{key} must not be empty{example(*keys)}"
    if what.startswith("Invalid enum value"):
        near = meant(str(value), known, example(*keys))
        return f"{key} must be one of {', '.join(known)}, got {_short(value)}{near}"
    return f"{key or 'it'}: {what[:1].lower()}{what[1:]}{example(*keys)}"


def example(*keys: str | int) -> str:
    """How a key may be written, as the end of a message; empty where there is none.

    >>> example("runs")
    '; for example runs = 1_000_000'
    """
    named = next((each for each in (_dotted(keys), *map(str, keys[:1])) if each in EXAMPLES), "")
    return f"; for example {named} = {EXAMPLES[named]}" if named else WHOLE if keys == ("audit",) else ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
