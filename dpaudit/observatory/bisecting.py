"""The first version of a library whose audit has another outcome, by halving the versions that the index has."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from dpaudit.account.statements import stamp
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.observatory.environments import Children, Environment
from dpaudit.observatory.rows import NO_RECORD, LibraryAudit
from dpaudit.results.suite import SuiteEntry
from dpaudit.running.contents import digest_of

FINAL = re.compile(r"\d+(\.\d+)*")  # a version that is no pre-release, post-release or local one


@dataclass(frozen=True, slots=True)
class VersionOutcome:
    """What an audit of a version came to; `error` where there is none: it could not be installed, imported or asked."""

    said: str = ""
    error: str = ""

    @classmethod
    def of(cls, entry: SuiteEntry) -> "VersionOutcome":
        """The verdict and whether bits refute; none where every search run raised, as calls of another API do."""
        result = entry.result
        if result is None:
            return cls(error=entry.error or "no verdict")
        if result.endings and all(each.what.startswith("raised") for each in result.endings if any(each.runs)):
            return cls(error=f"every run {result.endings[0].what}")
        return cls(stamp(result))


@dataclass(frozen=True, slots=True)
class VersionChange:
    """Where the outcome changes: the last version known to be as the first, and the first known to be otherwise.

    `skipped` are the versions that were tried and had no outcome, with the reason; `between` are those of them that
    may be the first that is otherwise, too.
    """

    before: str
    after: str
    outcomes: tuple[VersionOutcome, VersionOutcome]
    skipped: dict[str, str]
    between: tuple[str, ...]


def at_version(row: LibraryAudit, version: str) -> LibraryAudit:
    """The row with another version of its library, in an environment of its own; its plain count is left out."""
    table, folder = row.environment.table, row.environment.folder.parent
    first = re.sub(r"==.*", f"=={version}", table.requirements[0])
    other = Environment.of(
        msgspec.structs.replace(table, requirements=[first, *table.requirements[1:]]), folder, str(row.question.source)
    )
    return replace(row, environment=other, record=NO_RECORD, asked=digest_of("bisect", row.asked, version))


def versions(package: str, span: str, python: str, children: Children) -> tuple[str, ...]:
    """The releases of a package from a to b, "a..b", that the index has for this interpreter, oldest first.

    Raises `InvalidSpec` for a span that is none or holds fewer than two, `MissingRequirement` where pip cannot say.
    """
    start, dots, end = span.partition("..")
    if not (dots and FINAL.fullmatch(start) and FINAL.fullmatch(end)):
        raise InvalidSpec(f'--versions must read "a..b", two releases such as 1.1.2..1.2.0, got {span!r}')
    ended = children.run([python, "-m", "pip", "index", "versions", package])
    listed = re.search(r"Available versions: (.*)", ended.out)
    if ended.code or listed is None:
        raise MissingRequirement(f"pip does not say which versions {package} has: {ended.last_line}")
    ordered = sorted((v for v in listed[1].replace(",", " ").split() if FINAL.fullmatch(v)), key=order)
    inside = tuple(version for version in ordered if order(start) <= order(version) <= order(end))
    if len(inside) < 2:
        raise InvalidSpec(f"--versions {span}: the index has {', '.join(inside) or 'none'} of {package} there")
    return inside


def order(version: str) -> tuple[int, ...]:
    """The order of releases.

    >>> order("1.10.0") > order("1.9"), order("1.0.0") == order("1")
    (True, True)
    """
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def bisect(known: Sequence[str], ask: Callable[[str], VersionOutcome]) -> VersionChange:
    """The first of the versions with another outcome than the first of them, if the outcome changes once.

    A version without outcome is left out, as `git bisect skip` does; ends give way to their neighbours. Raises
    `InvalidSpec` where both ends have the same outcome, `MissingRequirement` where none has one.

    >>> bisect("1 2 3 4 5".split(), lambda version: VersionOutcome("old" if version < "4" else "new")).after
    '4'
    """
    outcome, skipped = cache(ask), dict[str, str]()

    def has_one(place: int) -> bool:
        if not outcome(known[place]).said:
            skipped[known[place]] = outcome(known[place]).error
        return bool(outcome(known[place]).said)

    low = next((place for place in range(len(known)) if has_one(place)), None)
    if low is None:
        raise MissingRequirement(f"no version could be audited; {known[-1]}: {skipped[known[-1]]}")
    high = next(place for place in reversed(range(len(known))) if has_one(place))
    first = outcome(known[low])
    if first == outcome(known[high]):
        raise InvalidSpec(
            f"--versions: {known[low]} and {known[high]} have the same outcome, {first.said}; choose two that differ"
        )
    while within := [place for place in range(low + 1, high) if known[place] not in skipped]:
        middle = sorted(within)[len(within) // 2]
        if has_one(middle):
            low, high = (middle, high) if outcome(known[middle]) == first else (low, middle)
    return VersionChange(known[low], known[high], (first, outcome(known[high])), skipped, tuple(known[low + 1 : high]))
