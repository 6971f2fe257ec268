"""The rows of the observatory: the audits of spec files that name an environment, as they are asked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from dpaudit.errors import InvalidSpec
from dpaudit.observatory.environments import Environment
from dpaudit.results.strict import read_toml
from dpaudit.sampling.contents import digest_of
from dpaudit.spec_file.files import SpecPlace, find_specs
from dpaudit.spec_file.questions import Question, Wishes, read_spec
from dpaudit.spec_file.reading import convert, meant, read_audits
from dpaudit.spec_file.suite import shared
from dpaudit.spec_file.tables import EnvironmentTable, RecordTable

SLOW = "slow"  # the tag of a row with less than a thousand runs a second
NO_RECORD = RecordTable()


@dataclass(frozen=True, slots=True)
class LibraryAudit:
    """One audit of a library: its question, at its share of its file's confidence, and what is known of it.

    `asked` is a digest of all that decides its answer: two rows that share it need not be run twice.
    """

    question: Question
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
    paths: Sequence[str], environments: Path, wishes: Wishes | None = None
) -> tuple[tuple[LibraryAudit, ...], tuple[Path, ...]]:
    """The rows of the spec files under these paths, and the files that name no environment and are left out.

    The confidence of a file is divided among all its audits, so that no choice of rows changes an answer. Raises
    `InvalidSpec` for a file that is none, a name that stands twice, or one environment asked for in two ways.
    """
    rows: dict[str, LibraryAudit] = {}
    left_out: list[Path] = []
    made: dict[Path, EnvironmentTable] = {}
    for path in find_specs(paths):
        raw = read_toml(path)
        if "environment" not in raw:
            left_out.append(path)
            continue
        tables = {table.name: table for table in read_audits(raw, str(path))}
        table = convert(raw["environment"], EnvironmentTable, SpecPlace(str(path), ("environment",), "environment"))
        environment = Environment.of(table, environments, str(path))
        if made.setdefault(environment.folder, table) != table:
            told = f"{environment.name} is asked for with other requirements in another file"
            raise InvalidSpec(f"{path}: environment: {told}; keep to one list")
        lying = (file for file in path.parent.iterdir() if file.is_file() and file.suffix != ".toml")
        beside = {file.name: digest_of(file.read_bytes()) for file in lying if not file.name.startswith(".")}
        for question in shared(read_spec(path, wishes))[0]:
            if question.name in rows:
                raise InvalidSpec(f"{question.place}: the name stands in {rows[question.name].question.source}, too")
            own = msgspec.to_builtins(tables[question.name])
            record = tables[question.name].record or NO_RECORD
            own["record"] = [record.plain, record.plain_runs]
            where = [environment.asked(), own_code(), question.confidence, question.seed, str(question.runs)]
            asked = digest_of(repr(own), beside, repr(where))
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
