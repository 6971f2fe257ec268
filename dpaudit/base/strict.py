"""JSON and TOML that a stranger wrote, read strictly and limited in size and depth; and models of our own classes."""

import datetime
import hashlib
import json
import math
import os
import re
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import repeat
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from dpaudit.base.files import read_bytes
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec, at

LARGEST, LARGEST_SUITE = 2**24, 2**26  # bytes of a file; a result has ten thousand, a suite of 2,000 audits half of it
MOST_VALUES = 2**22  # in a text; a suite of 2,000 audits has a million
DEEPEST = 64  # objects and lists inside one another
FIRST_USE = threading.RLock()  # of a type: where two threads make it known to msgspec at once, the process ends

JsonObject = dict[str, Any]
Kind: TypeAlias = Any  # a type as annotations have it, which no type of Python describes


def stored(value: Any) -> Any:
    """A value as JSON holds it: by `to_dict` where it has one, a dataclass by its keys, a tuple as a list.

    >>> from dpaudit.results.observations import Explored
    >>> stored((Explored("feature", "output", "looked at", math.inf),))
    [{'what': 'feature', 'name': 'output', 'status': 'looked at', 'score': 'inf', 'runs': 0}]
    """
    if type(value) in (str, int, bool, type(None)):  # most values: quicker than to look for a method
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
    if isinstance(value, datetime.date):
        return value.isoformat()
    return "inf" if value == math.inf else "-inf" if value == -math.inf else value


def by_fields(value: Any, **derived: object) -> JsonObject:
    """A dataclass as JSON holds it: its fields in their order, or what its class says.

    `_KEYS` of a class are fields and properties instead, of which those that are `derived` are given; keys that are
    `_SPARSE` are left out where there is nothing. A `kind` of the class stands first. The keys of what is in its
    `_PARTS` stand beside its own.
    """
    kind = type(value)
    sparse, values, parts = getattr(kind, "_SPARSE", ()), _tag(kind), _parts_of(kind)
    for key in keys_of(kind):
        each = derived[key] if key in derived else getattr(getattr(value, parts[key]) if key in parts else value, key)
        if each or key not in sparse:
            values[key] = each if key in derived else stored(each)
    return values


class Written:
    """What a stored dataclass is as plain values, for whoever has a part of a result."""

    __slots__ = ()

    def to_dict(self) -> JsonObject:
        """As its file has it."""
        return by_fields(self)


def keys_of(kind: Kind) -> tuple[str, ...]:
    """The keys under which a dataclass is stored."""
    keys: tuple[str, ...] = getattr(kind, "_KEYS", None) or tuple(each.name for each in fields(kind))
    return keys


def _tag(kind: Kind) -> JsonObject:
    """The kind of a class that is one of several, as it is stored."""
    if not hasattr(kind, "kind") or any(each.name == "kind" for each in fields(kind)):
        return {}
    return {"kind": kind.kind}


def _parts_of(kind: Kind) -> dict[str, str]:
    """The field that holds each key of a part."""
    return {key: name for name in getattr(kind, "_PARTS", ()) for key in keys_of(_hints(kind)[name])}


@cache
def _hints(kind: Kind) -> dict[str, Kind]:
    return get_type_hints(kind, include_extras=True)


def fitted(raw: Any, kind: Kind, **how: Any) -> Any:
    """Plain values as a value of a type, or of a model; in any thread. Raises `msgspec.ValidationError`.

    >>> fitted([1, 2], tuple[int, float])
    (1, 2.0)
    """
    from msgspec import convert

    with FIRST_USE:
        return convert(raw, kind, **how)


def text_of(value: object) -> str:
    """The text of a file: ASCII only, so that no hidden character stands in it."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def content_digest(value: object) -> str:
    """The SHA-256 of a value of JSON, 64 hex digits, whatever the order of its keys and the spaces between them.

    >>> content_digest({"a": 1, "b": [0.1]}) == content_digest({"b": [0.1], "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def spec_hash(spec: JsonObject) -> str:
    """The digest of a spec in its stored form."""
    return content_digest(spec)[:16]


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

    def whole(pairs: list[tuple[str, object]]) -> JsonObject:
        entries = dict(pairs)
        if len(entries) < len(pairs):  # readers differ in which of the two they take
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InvalidSpec(f"the key {clean(twice)!r} stands twice in one object; {cure}")
        return entries

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


LARGEST_FILE = 256 * 1024  # bytes
DEEPEST_NAME = 16  # parts of a dotted name; the parser's time is quadratic in them
DEEPEST_VALUE = 32  # tables and lists inside one another
LARGEST_WHOLE = 1 << 63  # the range that the format promises
LONGEST_VALUE = 200  # lines; behind a longer value no line is known

Keys = tuple[str | int, ...]  # that lead to a value: names of tables and keys, places in lists
CURES = {  # by the words of the parser
    "Invalid value": 'texts stand in quotes: name = "noisy count"',
    "Expected '='": 'a line is a key and a value: name = "noisy count"',
    "Expected newline": "one key and value on a line",
    "Illegal character": "close the quotes on the same line",
    "Unterminated string": "close the quotes",
    "Unclosed": "close the bracket",
    "Cannot overwrite": "a key stands once in a table",
    "Cannot declare": "a table stands once in a file; several audits are [[audit]] each",
}

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST_NAME}}}")


def read_toml(path: str | os.PathLike[str], *, largest: int = LARGEST_FILE, dates: bool = False) -> JsonObject:
    """The tables of a file. Raises `NoSuchFile`, or `InvalidSpec` that names the file, and the line where there is one.

    Dates and times are refused unless they are asked for: nothing in a spec is one, and results could not store them.
    """
    shown = clean(path, 200)
    with at(shown):
        content = read_bytes(path, largest)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSpec(f"{shown}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    return parse_toml(text, shown, dates=dates)


def parse_toml(text: str, place: str, *, dates: bool = False) -> JsonObject:
    """The tables of a text; `place` is what messages call it.

    >>> parse_toml("runs = 1_000", "x.toml")
    {'runs': 1000}
    """
    long = _LONG_NAME.search(text)
    if long is not None:
        line = text.count("\n", 0, long.start()) + 1
        raise InvalidSpec(f"{place}: line {line}: a name of more than {DEEPEST_NAME} parts; use shorter names")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise InvalidSpec(f"{place}: nested more than {DEEPEST_VALUE} deep; flatten it") from None
    except ValueError as error:  # a decoding error, or a number of thousands of digits
        message = " ".join(str(error).split())
        cure = next((f"; {cure}" for what, cure in CURES.items() if message.startswith(what)), "")
        raise InvalidSpec(f"{place}: not valid TOML: {message}{cure}") from None
    _check_values(tables, text, place, dates)
    return tables


def _check_values(tables: JsonObject, text: str, place: str, dates: bool) -> None:
    def wrong(keys: Keys, what: str) -> InvalidSpec:
        line = lines_of(text).get(keys)
        return InvalidSpec(f"{place}: {'' if line is None else f'line {line}: '}{keys[-1]}: {what}")

    layer: list[tuple[Keys, Any]] = [((key,), value) for key, value in tables.items()]
    for _ in range(DEEPEST_VALUE):
        below: list[tuple[Keys, Any]] = []
        for keys, value in layer:
            if isinstance(value, dict):
                below.extend(((*keys, key), each) for key, each in value.items())
            elif isinstance(value, list):
                below.extend(((*keys, number), each) for number, each in enumerate(value))
            elif isinstance(value, int) and not -LARGEST_WHOLE <= value < LARGEST_WHOLE:
                bits = value.bit_length()
                raise wrong(keys, f"a whole number must lie between -2^63 and 2^63 - 1, got one of {bits} bits")
            elif isinstance(value, datetime.date | datetime.time) and not dates:
                raise wrong(keys, f"a date or time has no place here, got {value}; write it as text")
        layer = below
        if not layer:
            return
    raise InvalidSpec(f"{place}: nested more than {DEEPEST_VALUE} deep; flatten it")


def lines_of(text: str) -> dict[Keys, int]:
    """The first line of the statement that gives each key, table and item of a valid TOML text.

    >>> lines_of("[[audit]]\\nname = 'a'\\nclaim = { epsilon = 1.0 }")[("audit", 0, "claim", "epsilon")]
    3
    """
    rows = text.replace("\r\n", "\n").split("\n")
    lines: dict[Keys, int] = {}
    counts: Counter[Keys] = Counter()
    table: Keys = ()
    first = 0
    while first < len(rows):
        for last in range(first, min(first + LONGEST_VALUE, len(rows))):  # the shortest that is TOML is one statement
            with suppress(ValueError):
                statement = tomllib.loads("\n".join(rows[first : last + 1]))
                break
        else:
            return lines
        if rows[first].lstrip().startswith("["):
            table = _header(statement, counts)
            lines.setdefault(table, first + 1)
        for path in _inside(statement, table) if not rows[first].lstrip().startswith("[") else ():
            lines.setdefault(path, first + 1)
        first = last + 1
    return lines


def _header(rest: Any, counts: Counter[Keys]) -> Keys:
    """The keys of a table whose header alone was read."""
    table: Keys = ()
    while rest:
        ((key, rest),) = rest.items()
        table = (*table, key)
        if isinstance(rest, list):
            counts[table] += 1
            rest = rest[0]
        if table in counts:
            table = (*table, counts[table] - 1)
    return table


def _inside(value: object, at: Keys) -> Iterator[Keys]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*at, key)
        yield from _inside(each, (*at, key))


@dataclass(frozen=True, slots=True)
class Layout:
    """What the model of a dataclass has that the class does not say: a name, a description, the kinds of some keys."""

    name: str = ""
    about: str = ""
    kinds: Mapping[str, Kind] = field(default_factory=dict)


def models(types: Mapping[Kind, Kind], layouts: Mapping[type, Layout] | None = None) -> Callable[[Kind], Kind]:
    """What gives the model of a type: of a dataclass, in which no key may be missing and none may be added.

    `types` stand for others, such as a number with its limits for a number. Keys in `_LATER` of the class, which older
    files lack, may be missing; so may a key whose kind in `layouts` is a tuple of the kind and a default.
    """
    import msgspec

    def table(kind: Kind) -> Kind:
        more = (layouts or {}).get(kind, Layout())
        later, sparse = getattr(kind, "_LATER", ()), getattr(kind, "_SPARSE", ())
        needed, optional, parts = [], {}, _parts_of(kind)
        for key in keys_of(kind):
            if (hint := more.kinds.get(key)) is None:
                hints = _hints(_hints(kind)[parts[key]] if key in parts else kind)
                hint = hints.get(key) or _hints(getattr(kind, key).fget)["return"]  # a field, or a property
                left = tuple(each for each in get_args(hint) if each is not type(None))
                hint = model(Union[left] if key in sparse and type(None) in get_args(hint) else hint)  # noqa: UP007
            if key in later:
                optional[key] = (key, hint | msgspec.UnsetType, msgspec.UNSET)
            elif isinstance(hint, tuple):
                optional[key] = (key, *hint)
            else:
                needed.append((key, hint))
        about = more.about or " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
        return msgspec.defstruct(
            f"Stored{more.name or kind.__name__.removeprefix('Stored')}",
            [*needed, *(optional[key] for key in sorted(optional, key=(*later, *optional).index))],
            namespace={"__doc__": about},
            forbid_unknown_fields=True,
            tag_field="kind" if _tag(kind) else None,
            tag=_tag(kind).get("kind"),
        )

    @cache
    def model(kind: Kind) -> Kind:
        kinds = get_args(kind)
        origin: Kind = get_origin(kind)
        if kind in types:
            return types[kind]
        if is_dataclass(kind):
            return table(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return Literal[tuple(each.value for each in kind)]
        if origin is Annotated:
            limits = dict(kind.__metadata__)
            words = limits.pop("words", ())
            inner = kinds[0] if kinds[0] in (int, float, str) else model(kinds[0])
            inner = Annotated[inner, msgspec.Meta(**limits)] if limits else inner
            return inner | Literal[words] if words else inner
        if origin is ClassVar:
            return model(kinds[0])
        if origin is tuple:
            return list[model(kinds[0])] if kinds[-1] is ... else tuple[tuple(map(model, kinds))]  # type: ignore[misc]
        if origin is Mapping:
            return dict[str, model(kinds[1])]  # type: ignore[misc]
        if origin in (Union, UnionType):
            return Union[tuple(map(model, kinds))]  # noqa: UP007
        return kind

    return model


Own = Mapping[Kind, Callable[[Any, str], object]]
PLAIN: Mapping[Kind, Callable[[Any], object]] = {float: float, datetime.date: datetime.date.fromisoformat}


def value_of(kind: Kind, given: Any, own: Own, place: str = "") -> Any:
    """A value of a type from its stored form, which its model has passed: the way back from `stored`.

    `own` has the readers of types that need their own: each takes the stored form and the place where it stands.

    >>> from dpaudit.results.observations import Explored
    >>> value_of(tuple[Explored, ...], [{"what": "a", "name": "b", "status": "c", "score": "inf", "runs": 2}], {})
    (Explored(what='a', name='b', status='c', score=inf, runs=2),)
    """
    kinds = get_args(kind)
    origin: Kind = get_origin(kind)
    if kind in own:
        return own[kind](given, place)
    if kind in PLAIN:
        return PLAIN[kind](given)
    if is_dataclass(kind) and isinstance(kind, type):
        return kind(**fields_of(kind, given, own, place))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(given)
    if origin is Annotated:
        return value_of(kinds[0], given, own, place)
    if origin is tuple:
        each = repeat(kinds[0], len(given)) if kinds[-1] is ... else kinds
        return tuple(
            value_of(one, part, own, f"{place}[{j}]") for j, (one, part) in enumerate(zip(each, given, strict=True))
        )
    if origin in (Union, UnionType) and given is not None:
        left = [one for one in kinds if one is not type(None)]
        one = left[0] if len(left) == 1 else next(one for one in left if _tag(one)["kind"] == given["kind"])
        return value_of(one, given, own, place)
    return given


def fields_of(kind: Kind, given: JsonObject, own: Own, place: str = "") -> JsonObject:
    """The fields of a dataclass that its stored form has, by name."""
    start, hints = f"{place}." if place else "", _hints(kind)
    names = [each.name for each in fields(kind) if each.name in given]
    whole = {name: value_of(hints[name], given[name], own, f"{start}{name}") for name in names}
    parts = getattr(kind, "_PARTS", ())
    return whole | {name: hints[name](**fields_of(hints[name], given, own, place)) for name in parts}
