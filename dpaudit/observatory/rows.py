"""The rows of the observatory: the audits of spec files that name an environment, as they are asked and were seen.

Each is asked by `dpaudit run` as a child process in its environment. Beside what an audit found stands a plain count,
with a bound of its own. The first version with another outcome is found by halving the versions that the index has.
"""

import json
import math
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from dpaudit.account.first import cause
from dpaudit.account.statements import at_delta, stamp
from dpaudit.account.suites import expected_text
from dpaudit.base.files import write_text
from dpaudit.base.numerals import bound
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.base.strict import read_toml
from dpaudit.claims import Claim
from dpaudit.errors import DpAuditError, InvalidSpec, MissingRequirement
from dpaudit.observatory.environments import Children, Ended, Environment
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.stored import load_suite
from dpaudit.results.suite import SuiteEntry
from dpaudit.running.contents import digest_of
from dpaudit.spec.questions import Layers, SpecQuestion, read_spec, shared
from dpaudit.spec.reading import SpecPlace, convert, find_specs, meant, read_audits
from dpaudit.spec.tables import EnvironmentTable, RecordTable

SLOW = "slow"  # the tag of a row with less than a thousand runs a second
NO_RECORD = RecordTable()
CONFIDENCE = 0.999  # of a plain count


@dataclass(frozen=True, slots=True)
class LibraryAudit:
    """One audit of a library: its question, at its share of its file's confidence, and what is known of it.

    `asked` is a digest of all that decides its answer: two rows that share it need not be run twice.
    """

    question: SpecQuestion
    record: RecordTable
    environment: Environment
    asked: str

    @property
    def mechanism(self) -> str:
        """The name of the audit without library and version, which stand beside it."""
        return self.question.name.removeprefix(f"{self.environment.name}, ")

    def command(self, program: str = "dpaudit run") -> list[str]:
        """The command line, without its program, that asks this row alone and gives the same answer."""
        question = self.question
        alone = ["--only", question.name, "--confidence", repr(question.confidence)]
        return [*program.split(), str(question.source), *alone, "--seed", str(question.seed)]


def read_rows(
    paths: Sequence[str], environments: Path, layers: Layers | None = None
) -> tuple[tuple[LibraryAudit, ...], tuple[Path, ...]]:
    """The rows of the spec files under these paths, and the files that name no environment and are left out.

    The confidence of a file is divided among all its audits, so that no choice of rows changes an answer. Raises
    `InvalidSpec` for a file that is none, a name that stands twice, or one environment asked for in two ways.
    """
    rows: dict[str, LibraryAudit] = {}
    left_out: list[Path] = []
    by_folder: dict[Path, EnvironmentTable] = {}
    for path in find_specs(paths):
        raw = read_toml(path)
        if "environment" not in raw:
            left_out.append(path)
            continue
        tables = {table.name: table for table in read_audits(raw, str(path))}
        table = convert(raw["environment"], EnvironmentTable, SpecPlace(str(path), ("environment",), "environment"))
        environment = Environment.of(table, environments, str(path))
        if by_folder.setdefault(environment.folder, table) != table:
            problem = f"{environment.name} is asked for with other requirements in another file"
            raise InvalidSpec(f"{path}: environment: {problem}; keep to one list")
        lying = (file for file in path.parent.iterdir() if file.is_file() and file.suffix != ".toml")
        digests = {file.name: digest_of(file.read_bytes()) for file in lying if not file.name.startswith(".")}
        for question in shared(read_spec(path, layers))[0]:
            if question.name in rows:
                raise InvalidSpec(f"{question.place}: the name stands in {rows[question.name].question.source}, too")
            own = msgspec.to_builtins(tables[question.name])
            record = tables[question.name].record or NO_RECORD
            own["record"] = [record.plain, record.plain_runs]
            where = [environment.asked(), own_code(), question.confidence, question.seed, str(question.runs)]
            asked = digest_of(repr(own), digests, repr(where))
            rows[question.name] = LibraryAudit(question, record, environment, asked)
    return tuple(rows.values()), tuple(left_out)


@cache
def own_code() -> str:
    """A digest of dpaudit's own code: in development, the version alone says too little."""
    package = Path(__file__).parents[1]
    return digest_of({str(file.relative_to(package)): file.read_bytes() for file in package.rglob("*.py")})


def choose(
    rows: Sequence[LibraryAudit],
    *,
    tags: Collection[str] = (),
    skipped: Collection[str] = (),
    only: Collection[str] = (),
    option: str = "--only",
) -> tuple[LibraryAudit, ...]:
    """The rows of these names that carry one of the tags and none of those to skip; nothing given: all of them.

    Raises `InvalidSpec` for a name that no row has.
    """
    names = [row.question.name for row in rows]
    for name in only:
        if name not in names:
            some = f"; there are {', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''}"
            raise InvalidSpec(f"{option}: no audit has the name {name!r}{meant(name, names) or some}")
    return tuple(
        row
        for row in rows
        if (not only or row.question.name in only)
        and (not tags or set(tags) & set(row.question.tags))
        and not set(skipped) & set(row.question.tags)
    )


@dataclass(frozen=True, slots=True)
class Plain:
    """Hits and runs of a plain event on the two datasets; `error` where it could not be counted."""

    event: str = ""
    first: tuple[int, int] = (0, 0)
    second: tuple[int, int] = (0, 0)
    error: str = ""

    def breaks(self, claim: Claim) -> bool:
        """Whether the counts show more than the claim allows, by four Clopper-Pearson bounds and Bonferroni.

        Apart from `dpaudit.certify` on purpose: the beta quantiles are those of scipy.stats.
        """
        sides = (self.first, self.second), (self.second, self.first)
        level = (1.0 - CONFIDENCE) / 4.0
        return any(least(*p, level) > claim.max_probability(most(*q, level)) for p, q in sides)

    def epsilon(self, delta: float) -> float:
        """The epsilon at this delta that the counts show, 0 for none."""
        misses = [(runs - hits, runs) for hits, runs in (self.first, self.second)]
        sides = (self.first, self.second), (self.second, self.first), misses, misses[::-1]
        level = (1.0 - CONFIDENCE) / 4.0
        return math.log(max(1.0, *((least(*p, level) - delta) / most(*q, level) for p, q in sides)))

    def text(self, claim: Claim) -> str:
        """The counts in words: the epsilon they show at the claim's delta, or for other claims whether it is more."""
        if self.error:
            return self.error
        (first, runs), (second, others) = self.first, self.second
        shown = f"{'' if self.breaks(claim) else 'no '}more than the claim allows"
        if claim.linear:
            epsilon = self.epsilon(claim.delta)
            shown = f"epsilon >= {bound(epsilon)}{at_delta(claim.delta)}" if epsilon else "nothing"
        return f"{first:,} of {runs:,} against {second:,} of {others:,}, which shows {shown}"


def least(hits: int, runs: int, level: float) -> float:
    """The lower Clopper-Pearson bound on a probability.

    >>> round(least(10, 10, 0.05), 6) == round(0.05 ** 0.1, 6)
    True
    """
    from scipy.stats import beta

    return float(beta.ppf(level, hits, runs - hits + 1)) if hits else 0.0


def most(hits: int, runs: int, level: float) -> float:
    """The upper Clopper-Pearson bound on a probability."""
    return 1.0 - least(runs - hits, runs, level)


def decisive(result: AuditResult) -> Finding | AuditResult:
    """What the stamp of a result stands on: the result itself, or the finding on bits where only bits refute."""
    alone = result.representation_refuted and not result.refuted
    return result.representation if alone and result.representation is not None else result


@dataclass(frozen=True, slots=True)
class Observed:
    """A row and what became of it."""

    row: LibraryAudit
    entry: SuiteEntry
    plain: Plain | None = None

    @property
    def as_expected(self) -> bool:
        """Whether verdict and cause are those that the author of the row knows to be right."""
        return self.entry.as_expected and not self.missing

    @property
    def cause(self) -> str:
        """What was found, in a maintainer's words; empty where nothing was."""
        return "" if self.entry.result is None else cause(self.entry.result)

    @property
    def counts(self) -> str:
        """The plain count in words, held to the claim that the stamp is about; empty where none was made."""
        result = self.entry.result
        return "" if self.plain is None or result is None else self.plain.text(decisive(result).claim)

    @property
    def missing(self) -> tuple[str, ...]:
        """Words that the sentence on the cause must hold, by the record, and does not."""
        if self.entry.result is None:
            return ()
        text = self.cause.casefold()
        return tuple(word for word in self.row.record.cause if word.casefold() not in text)

    @property
    def expected(self) -> str:
        """What the author of the row knows and was not seen; empty where all was."""
        lines = [] if self.entry.as_expected else [expected_text(self.entry)]
        return ", ".join([*lines, *(f"a cause that says {word!r}" for word in self.missing)])

    @property
    def disagreement(self) -> str:
        """What the plain count has against what was found; empty where it agrees or none was made."""
        result = self.entry.result
        if self.plain is None or result is None:
            return ""
        if self.plain.error:
            return "could not be made"
        finding = decisive(result)
        if (shown := self.plain.breaks(finding.claim)) == finding.certificate.refuted:
            return ""
        return "showed more than the audit found" if shown else "did not show what the audit found"

    @property
    def odd(self) -> bool:
        """Whether it is to be looked at first."""
        return not self.as_expected or bool(self.disagreement)


KEPT = ".rows"  # of a report's folder: what is known of each row, by what it asked
PLAIN = "plain.json"


@dataclass(frozen=True, slots=True)
class Observer:
    """How rows are run: where to keep what comes out, and whether what is kept there is taken from there."""

    folder: Path
    ledger: str | None
    resume: bool
    children: Children
    say: Callable[[str], None] = lambda message: None

    def observe(self, rows: Sequence[LibraryAudit], jobs: int, tell: Callable[[Observed], None]) -> None:
        """Asks the rows; `tell` hears what was seen of each when it is finished."""
        with ThreadPoolExecutor(jobs) as pool:
            asked = {pool.submit(self.see, row): row for row in rows}
            try:
                for done in as_completed(asked):
                    tell(done.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.children.end()
                raise

    def see(self, row: LibraryAudit) -> Observed:
        """Asks a row, or takes it from what is kept; one that cannot be asked has an entry that says why."""
        folder = self.folder / KEPT / row.asked
        if not self.resume:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            entry = self._entry(row, folder)
            return Observed(row, entry, self._plain(row, entry, folder))
        except DpAuditError as error:
            question = row.question
            entry = SuiteEntry(question.name, question.expect, source=str(question.source), bits=question.bits)
            return Observed(row, replace(entry, error=str(error), exit_code=error.exit_code))

    def _entry(self, row: LibraryAudit, folder: Path) -> SuiteEntry:
        """The row's entry of the suite that the child wrote. Raises `MissingRequirement` where it wrote none."""
        written = folder / "suite.json"
        if not written.exists() or load_suite(written).entries[0].result is None:
            row.environment.make(self.children, self.say)
            self.say(f"{row.question.name}: begins")
            argv = [*row.command("-m dpaudit run"), "--jobs", "1", "--no-progress", "--format", "json"]
            argv += ["--report", str(folder), *(("--ledger", self.ledger) if self.ledger else ())]
            ended = self._run(row, [*argv, "--resume"]) if self.resume else None
            if ended is None or (ended.code == 2 and "--resume" in ended.last_line):  # there is nothing to go on with
                ended = self._run(row, argv)
            if not written.exists():
                problem = f"dpaudit ended with {ended.code} in the environment of {row.environment.name}"
                raise MissingRequirement(f"{problem}: {ended.last_line}")
        return load_suite(written).entries[0]

    def _plain(self, row: LibraryAudit, entry: SuiteEntry, folder: Path) -> Plain | None:
        if row.record.plain is None or entry.result is None:
            return None
        file = folder / PLAIN
        if not file.exists():
            pair = str(decisive(entry.result).witness.pair)
            program = ["-m", "dpaudit.observatory.environments", str(row.question.source), row.question.name, pair]
            ended = self._run(row, program)
            try:
                counts = json.loads("" if ended.code else ended.out.splitlines()[-1])
                plain = Plain(counts["event"], tuple(counts["first"]), tuple(counts["second"]))
            except (IndexError, KeyError, TypeError, ValueError):  # what a library prints may stand there
                return Plain(error=clean(ended.last_line, LONGEST_DATA))
            write_text(file, json.dumps(counts))
            return plain
        counts = json.loads(file.read_text())
        return Plain(counts["event"], tuple(counts["first"]), tuple(counts["second"]))

    def _run(self, row: LibraryAudit, arguments: Sequence[str]) -> Ended:
        return self.children.run([row.environment.python, *arguments], row.environment.variables())


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
