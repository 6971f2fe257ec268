"""The file formats, from the JSON Schemas that `dpaudit validate --schema` prints: every key, none written by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

from dpaudit.cli.group import exit_code
from dpaudit.options import IN_PROJECTS, OPTIONS
from dpaudit.spec.settings import OWN
from reference import text
from reference.meanings import COMMON, RESULT, SETTINGS, SUITE, Meanings
from reference.text import code, fenced, prose, table

Schema = dict[str, Any]

SPEC = """\
An audit written down as a TOML file, for `dpaudit run`, `plan` and `validate`. `dpaudit validate --schema spec` prints
the JSON Schema that this page is made from. A key that is not listed here is refused, with the nearest one that is.

A spec names code to import and run: audit only what you would run. `validate` and `plan` import no mechanism."""

EXAMPLE = """\
schema = "dpaudit.audit/1"

[[audit]]
name = "noisy count, half the noise"
mechanism = "dpaudit.catalogue.additive:laplace.half_noise"
parameters = { epsilon = 1.0, sensitivity = 1.0 }
claim = { epsilon = 1.0 }
pair = { first = 10, second = 9 }
expect = "refuted"
runs = 200_000
"""

RESULT_FILE = """\
What `AuditResult.save` and `dpaudit run --report` write, and `dpaudit.load` and `dpaudit recheck` read. It is the whole
answer: question, witness, counts, certificate. A file whose verdict, bound, p-value or hash its own counts do not give
is refused. `dpaudit validate --schema result` prints the JSON Schema that this page is made from.

A key may be added in a later version; none is renamed and none changes its meaning. Infinity is the text `"inf"`.
Two audits of the same spec and seed differ in `provenance` alone, for a mechanism that draws only from its `rng`."""

SUITE_FILE = """\
`suite.json`: several audits together, each with its result whole. `dpaudit report`, `compare` and `load_suite` read it;
`dpaudit validate --schema suite` prints the JSON Schema that this page is made from."""

SPEC_KEYS = {
    "Document": {"schema": "the format; another version is refused", "audit": "the audits, `[[audit]]` each"},
}
KINDS = {
    "number": "number",
    "integer": "whole number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "object": "table",
    "array": "list",
}
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} character",
    "minItems": "at least {} item",
}
TAKEN = {each.name: each.default for each in OPTIONS.values()}
TAKEN |= {"seeds": TAKEN["seed"], "isolation": "process"}  # of `dpaudit run`
LARGEST = 2**63 - 1  # of a count: what a file can hold, and no bound that a reader need know


def schema(name: str) -> Schema:
    """The JSON Schema of a file format, as the command prints it."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code_ = exit_code(["validate", "--schema", name])
    if code_:
        raise LookupError(f"`dpaudit validate --schema {name}` ended with {code_}")
    found: Schema = json.loads(printed.getvalue())
    return found


def spec_page() -> str:
    """The page of the spec file, and of the settings of a project."""
    rows = [(code(each), prose(SETTINGS[each])) for each in (*IN_PROJECTS, *OWN)]
    return text.page(
        "Spec file",
        SPEC,
        fenced("toml", EXAMPLE),
        *sections(schema("spec"), SPEC_KEYS),
        "## The settings of a project { #settings }",
        "The table `[tool.dpaudit]` of the `pyproject.toml` in the current folder: defaults for the command line and "
        "for the pytest plugin. Options and spec files go before them.",
        table(("key", "meaning"), rows),
    )


def result_page() -> str:
    """The page of a stored result."""
    return text.page("Result file", RESULT_FILE, *sections(schema("result"), RESULT))


def suite_page() -> str:
    """The page of a stored suite; a result inside it is the result file's."""
    made = schema("suite")
    inside = set(schema("result")["$defs"])
    kept = {name: each for name, each in made["$defs"].items() if name not in inside}
    return text.page("Suite file", SUITE_FILE, *sections({**made, "$defs": kept}, SUITE))


def sections(whole: Schema, meanings: Meanings) -> Iterator[str]:
    """A section for each table of a schema, the outermost first, then in the order in which they are met."""
    tables, waiting, seen = whole["$defs"], [_name(whole["$ref"])], set()
    stale = [f"{name}.{key}" for name, keys in meanings.items() for key in keys if key not in _keys(tables, name)]
    if stale:
        raise LookupError(f"docs/hooks gives a meaning to {', '.join(stale)}, which no file has")
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in tables:
            continue
        seen.add(name)
        held = tables[name]
        waiting += _references(held)
        if "properties" not in held:
            continue
        needed = held.get("required", [])
        rows = [
            (
                code(key),
                kind(value),
                "*required*" if key in needed else _default(name, key, value),
                prose(_meaning(name, key, value, meanings)),
            )
            for key, value in held["properties"].items()
        ]
        yield f"## {_title(name)} {{ #{_anchor(name)} }}"
        yield prose(held.get("description", ""))
        yield table(("key", "value", "default", "meaning"), rows)


def _keys(tables: Schema, name: str) -> Schema:
    found: Schema = tables.get(name, {}).get("properties", {})
    return found


def _meaning(table_name: str, key: str, value: Schema, meanings: Meanings) -> str:
    """What a key means. Raises `LookupError` where nobody has said it: a page with a gap is not built."""
    told: str = value.get("description") or meanings.get(table_name, {}).get(key) or COMMON.get(key, "")
    if not told and table_name == "StoredSpec" and key in OPTIONS:
        told = OPTIONS[key].words
    if not told:
        raise LookupError(f"{table_name}.{key} has no meaning; give its model a description, or docs/hooks one")
    return told


def kind(value: Schema) -> str:
    """What a key may hold, with links to the tables of this page."""
    if "$ref" in value:
        name = _name(value["$ref"])
        return f"[{_title(name)}](#{_anchor(name)})" if name not in _ELSEWHERE else _ELSEWHERE[name]
    if "enum" in value:
        return " or ".join(code(json.dumps(each)) for each in value["enum"])
    if "const" in value:
        return code(json.dumps(value["const"]))
    for several in ("anyOf", "oneOf"):
        if several in value:
            return " or ".join(dict.fromkeys(kind(each) for each in value[several]))
    if value.get("type") == "array":
        if "prefixItems" in value:
            return f"[{', '.join(kind(each) for each in value['prefixItems'])}]".replace("[", "&#91;", 1)
        return f"list of {_together(kind(value['items']))}" if value.get("items") else "list"
    kinds = value.get("type", "any value")
    words = " or ".join(KINDS.get(each, each) for each in ([kinds] if isinstance(kinds, str) else kinds))
    inner = value.get("additionalProperties")
    if words == "table" and isinstance(inner, dict) and inner:
        words = f"table of {_together(kind(inner))}"
    if {"minimum", "maximum"} <= value.keys() and value["maximum"] != LARGEST:
        return f"{words} from {_number(value['minimum'])} to {_number(value['maximum'])}"
    if {"exclusiveMinimum", "exclusiveMaximum"} <= value.keys():
        return f"{words} between {_number(value['exclusiveMinimum'])} and {_number(value['exclusiveMaximum'])}"
    told = [
        words.format(_number(value[key])) for key, words in BOUNDS.items() if key in value and value[key] != LARGEST
    ]
    return f"{words}, {' and '.join(told)}" if told else words


def _together(kinds: str) -> str:
    return f"({kinds})" if " or " in kinds else kinds


_ELSEWHERE = {"StoredResult": "a [result](result.md)"}


def _default(table_name: str, key: str, value: Schema) -> str:
    """What a key is where nobody gives it: of a question, what the audit takes then."""
    default = value.get("default")
    if default is None and table_name in ("AuditTable", "SweepTable"):
        default = TAKEN.get(key)
    return "*left out*" if default is None else "none" if default in ([], {}) else code(json.dumps(default))


def _number(value: float) -> str:
    return f"{value:g}"


def _references(held: Any) -> list[str]:
    if isinstance(held, dict):
        own = [_name(held["$ref"])] if "$ref" in held else []
        return own + [name for value in held.values() for name in _references(value)]
    return [name for value in held for name in _references(value)] if isinstance(held, list) else []


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _title(name: str) -> str:
    """`StoredCoinFlip` as "CoinFlip", `AuditTable` as "Audit"."""
    return name.removeprefix("Stored").removesuffix("Table") or name


def _anchor(name: str) -> str:
    return _title(name).lower()
