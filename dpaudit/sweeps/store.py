"""Where the results of a sweep are kept: in the ledger, found again only for the very same question and code."""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType

import dpaudit.version
from dpaudit.auditing.known import comes_with_us
from dpaudit.auditing.spec import AuditSpec
from dpaudit.ledger.results import Ledger, LedgerRecord
from dpaudit.mechanisms import Imported
from dpaudit.results.provenance import versions
from dpaudit.results.question import spec_hash
from dpaudit.results.result import AuditResult
from dpaudit.sweeps.sources import memory_digest, sources_digest

DOORS = ("report", "ledger", "api.py", "sweeps", "spec_file", "cli", "pytest_plugin")  # no result depends on them
Files = dict[tuple[str, str, str | None], str | None]  # a mechanism's module, file and folder, and their digest
NUMBER_DIGITS = 15  # of a spec's hash: as many hexadecimal ones as a number of the ledger holds


class LedgerStore:
    """A sweep's results in a ledger; `record` hears of each new one too.

    A result is taken from the ledger where question, seed, sources and versions are the same: the sources of dpaudit
    that decide results, the mechanism's module and those beside it, and all that they import. A mechanism of which that
    cannot be known, such as a function made inside another or at a prompt, is always run.
    """

    def __init__(self, ledger: Ledger | None, record: Callable[[AuditResult], object] | None = None) -> None:
        self._ledger = ledger
        self._record = record
        self._known: dict[str, dict[int, LedgerRecord]] = {}
        self._asked: str | None = None  # the code of the question that was looked for last
        self._files: Files = {}

    def find(self, spec: AuditSpec) -> AuditResult | None:
        """The result of the very same question about the very same code; None where there is none."""
        if self._ledger is None:
            return None
        run = self._asked = same_code(spec, self._files)
        if run is None:
            return None
        if run not in self._known:
            self._known[run] = self._ledger.of_run(run)
        record = self._known[run].get(number_of(spec))
        if record is None or record.spec_hash != spec.hash:
            return None
        found = self._ledger.load(record)
        return found if spec_hash(found.spec) == spec.hash else None

    def keep(self, spec: AuditSpec, result: AuditResult) -> None:
        """Records a result, on the disk when this returns."""
        if self._ledger is not None:
            run = self._asked
            self._ledger.record(result, run=run, number=None if run is None else number_of(spec))
        if self._record is not None:
            self._record(result)


def number_of(spec: AuditSpec) -> int:
    """The question as a number of the ledger."""
    return int(spec.hash[:NUMBER_DIGITS], 16)


def same_code(spec: AuditSpec, files: Files) -> str | None:
    """A name that two audits share where the same sources ran; None where nothing can tell.

    `files` keeps what the files of a mechanism were before its first run: once it is loaded they may change unseen.
    """
    mechanism, description = spec.mechanism, spec.description
    assert description is not None
    if comes_with_us(mechanism):
        code = "catalogue"
    elif description.reference is None or description.digest is None or description.file is None:
        return None
    else:
        found = _code(mechanism, description.reference, Path(description.file), files)
        if found is None:
            return None
        code = found
    parts = [code, _own_sources(), spec.seed, versions()]
    return "sweep-" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def _code(mechanism: object, reference: str, file: Path, files: Files) -> str | None:
    """What the sources of a mechanism are, and what of them a function in this process has been changed to."""
    module, folder = reference.partition(":")[0], getattr(mechanism, "folder", None)
    key = module, str(file), folder
    if key not in files:
        files[key] = sources_digest(module, file, folder)
    from_files = files[key]
    if isinstance(mechanism, Imported) or from_files is None:
        return from_files
    function = getattr(mechanism, "function", None)
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return None
    in_memory = memory_digest(function)
    return None if in_memory is None else f"{from_files} {in_memory}"


@cache
def _own_sources() -> str:
    package = Path(dpaudit.version.__file__).parent
    files = sorted(package.rglob("*.py"))
    return _digest([file for file in files if file.relative_to(package).parts[0] not in DOORS])


def _digest(files: list[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.name}:{file.stat().st_size}:".encode("utf-8", "surrogateescape"))
        found.update(file.read_bytes())
    return found.hexdigest()
