"""Values as JSON, strictly: no number that is none, no key twice in an object, infinity as the string "inf"."""

import hashlib
import json
import math
import os
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any, NoReturn

from dpaudit.errors import InvalidSpec
from dpaudit.results.files import read_bytes
from dpaudit.results.wording.quoting import clean

LARGEST, LARGEST_SUITE = 2**24, 2**26  # bytes of a file; a result has ten thousand, a suite of 2,000 audits half of it
MOST_VALUES = 2**22  # in a text; a suite of 2,000 audits has a million
DEEPEST = 64  # objects and lists inside one another


def stored(value: Any) -> Any:
    """A value as JSON holds it: by `to_dict` where it has one, a dataclass by its fields, a tuple as a list.

    >>> from dpaudit.results.beside import Explored
    >>> stored((Explored("feature", "output", "looked at", math.inf),))
    [{'what': 'feature', 'name': 'output', 'status': 'looked at', 'score': 'inf', 'runs': 0}]
    """
    if type(value) in (str, int, bool, type(None)):  # most of them: quicker than to ask for a method
        return value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return by_fields(value)
    if isinstance(value, dict):
        return {key: stored(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [stored(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    return "inf" if value == math.inf else "-inf" if value == -math.inf else value


def by_fields(value: Any) -> dict[str, Any]:
    """A dataclass as JSON holds it, its fields in their order."""
    return {field.name: stored(getattr(value, field.name)) for field in fields(value)}


def text_of(value: Any) -> str:
    """The text of a file: ASCII only, so that no hidden character stands in it."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def content_digest(value: Any) -> str:
    """The SHA-256 of a value of JSON, 64 hex digits, whatever the order of its keys and the spaces between them.

    >>> content_digest({"a": 1, "b": [0.1]}) == content_digest({"b": [0.1], "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: str | os.PathLike[str], *, cure: str, not_json: str, largest: int = LARGEST) -> Any:
    """The value of a JSON file. Raises `InvalidSpec` as `parsed` does, and where there is no text to read."""
    return parsed(text_in(path, not_json=not_json, largest=largest), cure=cure, not_json=not_json)


def text_in(path: str | os.PathLike[str], *, not_json: str, largest: int = LARGEST) -> str:
    """The text of a JSON file, which encoded again is the file byte for byte."""
    try:
        return read_bytes(path, largest).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidSpec(f"not JSON: it is not text in UTF-8; {not_json}") from None
    except InvalidSpec as error:
        raise InvalidSpec(f"{error}; {not_json}") from None


def parsed(text: str, *, cure: str, not_json: str) -> Any:
    """The value of a JSON text. Raises `InvalidSpec`, ending with `cure` for a damaged file, `not_json` for another.

    >>> parsed('{"runs": NaN}', cure="restore the file", not_json="give another file")
    Traceback (most recent call last):
    dpaudit.errors.InvalidSpec: NaN is not a number of JSON; restore the file
    """

    def whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):  # readers differ in which of the two they take
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InvalidSpec(f"the key {clean(twice)!r} stands twice in one object; {cure}")
        return found

    def no_number(text: str) -> NoReturn:
        raise InvalidSpec(f"{text} is not a number of JSON; {cure}")

    def finite(text: str) -> float:
        number = float(text)
        if math.isinf(number):
            raise InvalidSpec(f"the number {clean(text)} is too large; {cure}")
        return number

    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise InvalidSpec(f"more than {MOST_VALUES:,} values; {not_json}")
    try:
        value = json.loads(text, object_pairs_hook=whole, parse_constant=no_number, parse_float=finite)
    except InvalidSpec:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"not JSON ({clean(error)}); {not_json}") from None
    layer = [value]
    for _ in range(DEEPEST + 1):
        parts = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list))
        layer = [each for part in parts for each in part]
    if layer:
        raise InvalidSpec(f"nested more than {DEEPEST} deep; {cure}")
    return value
