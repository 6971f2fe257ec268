"""Where the results of a sweep are kept: in the ledger, found again only for the very same question and code."""

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from dpaudit.auditing.known import comes_with_us
from dpaudit.auditing.spec import AuditSpec
from dpaudit.ledger.results import Ledger, LedgerRecord
from dpaudit.mechanisms import Mechanism
from dpaudit.results.provenance import versions
from dpaudit.results.question import spec_hash
from dpaudit.results.result import AuditResult
from dpaudit.sampling.made import made_of, made_with, unknown

Looked = dict[int, tuple[Mechanism, dict[str, str] | None]]  # mechanisms by their id, with their parts
NUMBER_DIGITS = 15  # of a spec's hash: as many hexadecimal ones as a number of the ledger holds


class LedgerStore:
    """A sweep's results in a ledger; `record` hears of each new one too.

    A result is taken from the ledger where question, seed, versions and all parts of the mechanism are the same
    (`sampling.made`). A mechanism that cannot be shown to be the same is always run.
    """

    def __init__(self, ledger: Ledger | None, record: Callable[[AuditResult], object] | None = None) -> None:
        self._ledger = ledger
        self._record = record
        self._known: dict[str, dict[int, LedgerRecord]] = {}
        self._asked: str | None = None  # the code of the question that was looked for last
        self._parts: Looked = {}

    def find(self, spec: AuditSpec) -> AuditResult | None:
        """The result of the very same question about the very same code; None where there is none."""
        if self._ledger is None:
            return None
        run = self._asked = same_code(spec.mechanism, spec.seed, self._parts)
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


def same_code(mechanism: Mechanism, seed: int, known: Looked) -> str | None:
    """A name that two audits share whose mechanisms are made of the same parts; None where nothing can tell.

    `known` keeps what a mechanism was before its first run: once a module is loaded its file may change unseen.
    """
    if comes_with_us(mechanism):
        parts: dict[str, str] | None = {"the mechanism": "catalogue"}
    elif id(mechanism) in known:
        parts = known[id(mechanism)][1]
    else:
        before = set(sys.modules)
        found = made_of(mechanism)
        parts = None if unknown(found) or _may_be_old(found, before) else found
        known[id(mechanism)] = mechanism, parts
    if parts is None:
        return None
    told = [parts | made_with(), seed, versions()["platform"]]
    return "sweep-" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:24]


def _may_be_old(parts: Iterable[str], before: set[str]) -> bool:
    """Whether a file was changed since this process began and was loaded `before`: what runs may be an older text."""
    named = (name.removeprefix("module ") for name in parts if name.startswith("module "))
    modules = (sys.modules.get(name) for name in named if name in before)
    files = [file for module in modules if (file := getattr(module, "__file__", None)) is not None]
    return any(os.path.getmtime(file) >= _started() for file in files if os.path.exists(file))


@cache
def _started() -> float:
    """When this process began, less the second that clocks may differ in; long ago where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
        return int(booted.split()[1]) + ticks / os.sysconf("SC_CLK_TCK") - 1.0
    except (OSError, ValueError, StopIteration, IndexError):
        return -math.inf
