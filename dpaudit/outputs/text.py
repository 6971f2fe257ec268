"""What a text says: the number it is, the JSON it holds, or the numbers and words in it; each of one text alone.

Reading never raises and is bounded. Texts are hostile until read.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dpaudit.base.arrays import Places
from dpaudit.outputs.canonical import READ_AS, Numbers, Path

FLOAT, JSON, NUMBERS, WORDS = (f"{READ_AS}{name}" for name in ("float", "json", "numbers", "words"))
CHARACTERS, PREFIX, UNPACKED, REPEATS = (f"{READ_AS}{name}" for name in ("len", "prefix", "unpacked", "repeats"))
PAIRS = {f"{READ_AS}int16 little": "<h", f"{READ_AS}int16 big": ">h"}  # two bytes in a row as a number
CLASSES = {  # numbers of characters of a kind
    f"{READ_AS}digits": re.compile("[0-9]"),
    f"{READ_AS}upper": re.compile("[A-Z]"),
    f"{READ_AS}blanks": re.compile(r"\s"),
}
LONGEST_NUMBER, LONGEST_JSON, LONGEST_READ = 400, 1 << 16, 1 << 12  # characters that are looked at
MOST_FIELDS = 16  # numbers of a text that have a column, and words
MOST_REPEATS = 8  # words of a text whose number has a column
PREFIXES = 3  # first characters that are a token
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+", re.ASCII)
BETWEEN = re.compile(r"[\s,;|=:/()\[\]{}<>\"']+")
PACKED = {4: "<f", 8: "<d"}  # by length: bytes that may be a number in binary form


def readings(texts: Sequence[str], asked: Callable[[str], bool]) -> Iterator[tuple[Path, Places, list[Any]]]:
    """Below the path of these texts: the steps to each reading that is asked for, whose texts have it, and what it is.

    A text is a number, or JSON of several parts, or neither: then numbers and words are looked for. So nothing is said
    twice of one text.
    """
    numbers = _each(texts, number)
    rest = [text for text, value in numbers.items() if value is None]
    if asked(FLOAT):
        yield from _held((FLOAT,), texts, numbers)
    objects = _each(rest, parsed)
    if asked(JSON):
        yield from _held((JSON,), texts, objects)
    plain = [text for text, value in objects.items() if value is None]
    for step, fields in ((NUMBERS, numbers_in), (WORDS, words_in)):
        if asked(step):
            value = _each(plain, fields)
            for place in range(max(map(len, value.values()), default=0)):
                some = {text: each[place] for text, each in value.items() if place < len(each)}
                yield from _held((step, place), texts, some)
    if asked(REPEATS):
        yield from _held((REPEATS,), texts, _each(plain, repeats_in))
    for step, kind in CLASSES.items():
        if asked(step):
            yield from _held((step,), texts, {text: float(len(kind.findall(text[:LONGEST_READ]))) for text in rest})
    if asked(CHARACTERS):
        yield from _held((CHARACTERS,), texts, {text: float(len(text)) for text in texts})
    for length in range(1, PREFIXES + 1):
        if asked(PREFIX):
            longer = [text for text in rest if len(text) > length]
            yield from _held((PREFIX, length), texts, {text: text[:length] for text in longer})


def number(text: str) -> float | None:
    """The number that a text is; None where it is none, or longer than numbers are written.

    >>> number(" 1e3 "), number("1,5"), number("9" * 500)
    (1000.0, None, None)
    """
    try:
        return float(text) if len(text) <= LONGEST_NUMBER else None
    except ValueError:
        return None


def parsed(text: str) -> list[Any] | dict[str, Any] | None:
    """The list or object that a text is in JSON; its integers as floats, so that they are read in linear time."""
    if len(text) > LONGEST_JSON or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list | dict) else None


def numbers_in(text: str) -> list[float]:
    """The first numbers in a text, in their order.

    >>> numbers_in("count: 12.3 ok, -4"), numbers_in("2026-11-22 at 5e-1")
    ([12.3, -4.0], [2026.0, 11.0, 22.0, 0.5])
    """
    values = (number(each.group()) for each in islice(NUMBER.finditer(text[:LONGEST_READ]), MOST_FIELDS))
    return [value for value in values if value is not None]


def words_in(text: str) -> list[str | None]:
    """The first fields of a text between blanks and signs, in their order: None for a number; none of a single word.

    >>> words_in("count: 12.3 ok"), words_in("ok")
    (['count', None, 'ok'], [])
    """
    fields = BETWEEN.split(text[:LONGEST_READ].strip(), MOST_FIELDS)[:MOST_FIELDS]
    return [None if number(each) is not None else each for each in fields] if len(fields) > 1 else []


def repeats_in(text: str) -> dict[str, int] | None:
    """How often the words come that a text has more than once, those that come most often; None where none does.

    >>> repeats_in("to be or not to be"), repeats_in("ok")
    ({'be': 2, 'to': 2}, None)
    """
    found = Counter(BETWEEN.split(text[:LONGEST_READ].strip()))
    often = sorted((-times, word) for word, times in found.items() if times > 1 and word and number(word) is None)
    return {word: -times for times, word in often[:MOST_REPEATS]} or None


def text_of(content: bytes) -> str | None:
    """The text that bytes are in UTF-8; None where they are none that can be printed."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "".join(text.split()).isprintable() else None


def unpacked(contents: Sequence[bytes], asked: Callable[[Path], bool]) -> Iterator[tuple[Path, Numbers]]:
    """What bytes of one length that are no text are as numbers: a float if four or eight, or else two by two in a row.

    >>> [(steps, number.tolist()) for steps, number in unpacked([np.float64(2.5).tobytes()], lambda steps: True)]
    [(('@as unpacked',), [2.5])]
    """
    length = len(contents[0])
    table = np.frombuffer(b"".join(contents), np.uint8).reshape(len(contents), length)
    if length in PACKED:
        yield (UNPACKED,), table.view(PACKED[length])[:, 0]
        return
    for step, kind in PAIRS.items():
        for place in range(min(length - 1, MOST_FIELDS)):
            if asked((step, place)):
                yield (step, place), np.ascontiguousarray(table[:, place : place + 2]).view(kind)[:, 0]


def _each(texts: Sequence[str], reading: Callable[[str], Any]) -> dict[str, Any]:
    return {text: reading(text) for text in dict.fromkeys(texts)}


def _held(steps: Path, texts: Sequence[str], values: dict[str, Any]) -> Iterator[tuple[Path, Places, list[Any]]]:
    there = [place for place, text in enumerate(texts) if values.get(text) is not None]
    if there:
        yield steps, np.array(there, np.intp), [values[texts[place]] for place in there]
