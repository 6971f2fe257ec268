"""The fixture `audit` as a value: the call of the library, with the defaults of the session and its own ending."""

import inspect
import json
import os
import pickle
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from dpaudit import report
from dpaudit.account import Level, account, templates
from dpaudit.account.statements import beyond, certified
from dpaudit.account.suites import assertion
from dpaudit.api.audits import USUAL, check_keywords, journal, pose
from dpaudit.api.recorded import record_noise
from dpaudit.auditing.question import Plan
from dpaudit.auditing.runner import Runner
from dpaudit.auditing.watching import watching
from dpaudit.errors import ClaimRefuted, DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.ledger.baseline import read_baseline, review
from dpaudit.ledger.results import Ledger
from dpaudit.mechanisms import Batched, Description, PerRun
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.options import WORKING, precedence
from dpaudit.processes.pools import pickled
from dpaudit.pytest_plugin.records import AuditOfTest, SessionState
from dpaudit.results.display import Verdict
from dpaudit.results.provenance import commit_of
from dpaudit.results.recorded import NoiseRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.spec.settings import Settings, read_settings

RUNS = 20  # on each dataset,
ENOUGH_S = 1.0  # but no further round of them after so long,
PATIENCE_S = 10.0  # and an end after so long
OPTIONS = ("branch", "cover_pylib", "include", "omit", "relative_files", "source", "source_pkgs")


def cover(engine: Engine, mechanism: Mechanism, pairs: tuple[Any, ...]) -> None:
    """Adds the lines of the mechanism to the coverage that measures this process; does nothing where none does."""
    coverage = sys.modules.get("coverage")
    measuring = None if coverage is None else coverage.Coverage.current()
    if measuring is None:
        return
    with suppress(Exception):  # what becomes of a figure of coverage never fails an audit that has its result
        options = {name: measuring.get_option(f"run:{name}") for name in OPTIONS}
        task, until = (pickled((mechanism, pairs, options)),), time.monotonic() + PATIENCE_S
        reply = next(engine.workers.child.with_threads(1).run(traced, [task], until))
        lines_of = {file: json.loads(lines) for file, lines in reply.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of modules that the session has yet to import
            data = measuring.get_data()
        if options["branch"]:
            data.add_arcs({file: [(line, then) for line, then in arcs] for file, arcs in lines_of.items()})
        else:
            data.add_lines(lines_of)


def traced(payload: bytes) -> dict[str, str]:
    """The lines of each file that these runs executed, or the jumps between lines, as JSON: in the mechanism's process.

    What it answers are words, as of every process that runs a mechanism.
    """
    import coverage

    mechanism, pairs, options = pickle.loads(payload)
    meter = coverage.Coverage(data_file=None, config_file=False, messages=False)
    for name, value in options.items():
        meter.set_option(f"run:{name}", value)
    datasets = [data for pair in pairs for data in pair.open()]
    begun = time.monotonic()
    meter.start()
    try:
        opened, rng = mechanism.open(), np.random.default_rng(0)
        many = opened.size or max(RUNS, opened.smallest_batch)
        for _ in range(RUNS if opened.per_run else 1):
            for data in datasets:
                with suppress(Exception, SystemExit):  # an output like any other
                    opened.call(data, rng) if opened.per_run else opened.call(data, many, rng)
            if time.monotonic() > begun + ENOUGH_S:
                break
    finally:
        meter.stop()
    measured = meter.get_data()
    of = measured.arcs if options["branch"] else measured.lines
    return {file: json.dumps(of(file)) for file in measured.measured_files()}


EXPECTATIONS = ("not-refuted", "refuted", "bits")
CLAIMS, DATASETS = ("claim", "epsilon"), ("pair", "pairs", "data")  # of each group, one replaces the others


@dataclass(slots=True, repr=False)
class Auditor:
    """Audits like `dpaudit.audit`, never in this process, and raises `ClaimRefuted` for a refutation.

    `expect="refuted"` is for a violation that the author of the test knows of, `expect="bits"` for one of the bits of
    floats alone (with `representation=True`): then finding nothing is the failure.
    Every other option is a keyword of `dpaudit.audit`, or of the marker `dpaudit`.
    """

    session: SessionState
    test: str
    command: str  # that repeats the test, without the options
    marked: tuple[dict[str, Any], ...]  # keywords of the markers, the outermost first
    number: int = 0
    attempt: int = 1  # at this test, where it is run again
    audited: list[dict[str, Any]] = field(default_factory=list)
    patches: Any = None  # pytest's monkeypatch of the test

    def __repr__(self) -> str:
        return f"<the fixture audit of {self.test}>"

    def __call__(self, mechanism: Any, *, expect: str | None = None, **keywords: Any) -> AuditResult:
        """The result. Raises `ClaimRefuted`, `AssertionError` for a violation not found or power not reached,
        `UnsoundAudit` where there is no verdict, and `InvalidSpec` for a question that cannot be asked."""
        __tracebackhide__ = True
        self.number += 1
        try:
            entry, failure = self._audited(mechanism, expect, keywords)
        except DpAuditError as error:
            failure = error
        if failure is not None:
            raise failure.with_traceback(None) from None
        assert entry.result is not None
        return entry.result

    def record(self, mechanism: Any, pair: Any, **keywords: Any) -> NoiseRecord:
        """What recorded noise tells of a mechanism on a pair, by the keywords of `dpaudit.record_noise`, and `leads`.

        Raises `AssertionError` for a lead where `leads` is "fail", and what the call of the library raises.
        """
        __tracebackhide__ = True
        known = inspect.signature(record_noise).parameters
        check_keywords("audit.record", keywords, (*known, "leads"))
        options = _merged(self.marked, {"pair": pair, **keywords})
        check_patches(self.patches, self.session.modules, mechanism)
        with by_value(self.session.modules, (mechanism, pair)):
            record = record_noise(mechanism, **{key: value for key, value in options.items() if key in known})
        if record.leads and options.get("leads") == "fail":
            raise AssertionError(f"LEAD  {account(record, Level.PAGE_ONE)}")
        return record

    def _audited(
        self, mechanism: Any, expect: str | None, keywords: dict[str, Any]
    ) -> tuple[SuiteEntry, Exception | None]:
        """The entry of one audit, recorded, and the exception for the test."""
        options, expected = _merged(self.marked, keywords), _expected(self.marked, expect)
        number = f" {options['name']}" if options.get("name") else "" if self.number == 1 else f" #{self.number}"
        known = Verdict.REFUTED if expected == "refuted" else Verdict.NOT_REFUTED
        entry = SuiteEntry(f"{self.test}{number}", known, bits=expected == "bits")
        record = AuditOfTest(
            key=os.urandom(8).hex(),
            test=self.test,
            attempt=self.attempt,
            number=self.number,
            name=entry.name,
            expect=expected,
            confidence=float(self.session.plan.usual["confidence"]),
        )
        try:
            if entry.bits and not options.get("representation"):
                raise InvalidSpec("expect='bits' needs representation=True: without it bits are not looked at")
            settings, baseline = read_settings(self.session.root), self.session.baseline
            acceptances = () if baseline is None else read_baseline(baseline)  # before the runs: no verdict is lost
            asked = self.session.plan.settle({"leads": settings.options.get("leads"), **options})
            if isinstance(asked["confidence"], float) and 0.0 < asked["confidence"] < 1.0:
                record = replace(record, confidence=asked["confidence"])
            entry = replace(entry, result=self._result(mechanism, asked, options, entry.name, settings))
            (entry,), _ = review((entry,), acceptances, date.today())
        except DpAuditError as error:
            self._keep(replace(record, error=str(error), exit_code=error.exit_code))
            raise
        except Exception as error:
            self._keep(replace(record, error=f"internal error: {type(error).__name__}: {error}", exit_code=70))
            raise
        record = self._stored(entry, record, settings.ledger)
        self._keep(record)
        file = None if record.file is None else os.path.join(self.session.shown or "", record.file)
        return entry, _failure(entry, file)

    def _result(
        self, mechanism: Any, asked: dict[str, Any], options: dict[str, Any], name: str, settings: Settings
    ) -> AuditResult:
        arguments = _arguments(mechanism, asked)
        working = {key: arguments.pop(key) for key in WORKING}
        workers, ledger, shown = (working[key] for key in ("n_jobs", "ledger", "progress"))
        if "n_jobs" not in options:
            workers = 1 if self.session.shared else workers if settings.jobs is None else settings.jobs
        question = pose(**arguments)
        question = replace(question, name=name, description=_described(question.mechanism, name))
        # a process of its own: what one mechanism leaves behind in it is gone before the next test
        with (
            by_value(self.session.modules, (question.mechanism, question.pairs)),
            Engine(workers, supervised=True, **question.where) as engine,
            watching(1, name, shown=shown, below=self.session.terminal) as watcher,
            journal(question, ledger, name) as call,
        ):
            check_patches(self.patches, self.session.modules, question.mechanism)
            result = Runner(engine, call, watcher, partial(self._origin, options, settings)).run(question)
            result = result if call is None else call.record(result)
            cover(engine, question.mechanism, question.pairs)
        return result

    def _origin(self, options: dict[str, Any], settings: Settings, planned: Plan) -> dict[str, Any]:
        """Where a result comes from: the command that repeats its test, the file of the test, and the commit."""
        # git may have much to look at: only where a result outlives the session
        commit = commit_of(self.session.root) if self.session.folder or settings.ledger else None
        origin = {"command": self._command(planned, options), "source": self.test.partition("::")[0], "commit": commit}
        return {key: value for key, value in origin.items() if value}

    def _command(self, planned: Plan, stated: dict[str, Any]) -> str:
        """The command that repeats the audit, with the options that the test does not set itself."""
        options = ""
        if "seed" in self.session.plan.command or "seed" not in stated:
            options += f" --dpaudit-seed {planned.seed}"
        timed = stated.get("max_time_s") is not None
        if "runs" in self.session.plan.command or "runs" not in stated or timed:
            options += f" --dpaudit-runs {planned.runs}"
        return f"{self.command}{options}"

    def _stored(self, entry: SuiteEntry, record: AuditOfTest, ledger: str | None) -> AuditOfTest:
        """The record of a result, which is written at once where a report or a ledger is wanted."""
        result = entry.result
        assert result is not None
        record = replace(
            record,
            verdict=result.verdict.value,
            bound=beyond(result) if result.refuted else certified(result),
            as_expected=entry.as_expected,
            exit_code=result.exit_code,
            accepted=entry.accepted.fingerprint if entry.covered and entry.accepted else None,
            bits_refuted=result.representation_refuted,
            in_part=bool(result.unseen or result.unpaired or result.unread),
        )
        problem = None
        if ledger is not None:
            try:
                with Ledger(self.session.root / ledger) as opened:
                    opened.record(result)
            except DpAuditError as error:
                problem = str(error)
        if self.session.folder is None:
            return replace(record, problem=problem)
        (file,) = report.record_names(SuiteResult((entry,), record.confidence))
        assert file is not None
        if file in {each["file"] for each in self.audited}:  # the result of an earlier attempt stays
            file = f"{file.removesuffix('.json')}-{self.attempt}.json"
        try:
            report.write_report(result, self.session.folder / file)
        except OSError as error:  # the verdict stands all the same; the session will not count as a success
            return replace(record, problem=templates.UNWRITTEN_RESULT.format(why=error.strerror or error))
        return replace(record, file=file, problem=problem)

    def _keep(self, record: AuditOfTest) -> None:
        self.audited.append(record.to_dict())


def _described(mechanism: Any, name: str) -> Description | None:
    """The description of a function that cannot be imported by name: it belongs to this audit alone.

    Closures, lambdas, partial functions and methods of the same name may differ in their values, which no
    description shows; a finding on one of them must never count for another. None: as usual.
    """
    if not isinstance(mechanism, PerRun | Batched):
        return None
    description = mechanism.describe()
    if inspect.isfunction(mechanism.function) and description.reference is not None:
        return description
    return replace(description, name=f"{name}: {description.name}", reference=None)


def _failure(entry: SuiteEntry, file: str | None) -> Exception | None:
    """The exception of the test for a result; None where all is as expected."""
    result = entry.result
    assert result is not None
    if not entry.as_expected and result.refuted:
        return ClaimRefuted(assertion(entry, file), beyond(result))
    if not entry.as_expected or result.exit_code:  # without the power that is demanded, or with a lead that fails
        return AssertionError(assertion(entry, file))
    return None


# --- keywords of a test and its markers -------------------------------------------------------------------------------


def _merged(marked: Sequence[dict[str, Any]], keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of the markers and of the call, the innermost last; a claim there replaces an outer one.

    >>> _merged([{"epsilon": 1.0, "runs": 500}], {"claim": "c"})
    {'runs': 500, 'claim': 'c'}
    """
    layers = [{key: value for key, value in each.items() if key != "expect"} for each in (keywords, *reversed(marked))]
    stated = next((place for place, each in enumerate(layers) if each.get("claim") is not None), len(layers))
    for each in layers[stated + 1 :]:
        each.pop("delta", None)
    return precedence(*layers, together=(CLAIMS, DATASETS))


def _expected(marked: Sequence[dict[str, Any]], expect: str | None) -> str:
    words = [each["expect"] for each in marked if "expect" in each] + ([] if expect is None else [expect])
    word = words[-1] if words else EXPECTATIONS[0]
    if word not in EXPECTATIONS:
        raise InvalidSpec(f"expect must be 'not-refuted', 'refuted' or 'bits', got {word!r}")
    return str(word)


def _arguments(mechanism: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Every keyword of `dpaudit.audit` with its value. Raises `InvalidSpec` for one that it does not have."""
    check_keywords("audit", asked, ("expect", *USUAL))
    return {"mechanism": mechanism, **USUAL, **asked}


# test modules in other processes: their definitions travel by value, for no worker could import them as pytest did


EVERYWHERE = {"builtins", "dpaudit"}  # named by every pickled function, whatever it uses


@contextmanager
def by_value(modules: Iterable[ModuleType], mechanism: Any) -> Iterator[None]:
    """Within it, functions and classes of these modules are pickled by value, and not as a name to import.

    Where the mechanism cannot be pickled so (it uses an object of its module that cannot be pickled), modules are
    imported by name.
    """
    import cloudpickle

    known = cloudpickle.list_registry_pickle_by_value()
    ours = {module.__name__: module for module in modules if sys.modules.get(module.__name__) is module}
    added = [module for name, module in ours.items() if name not in known]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        try:
            cloudpickle.dumps(mechanism)
        except Exception:
            while added:
                cloudpickle.unregister_pickle_by_value(added.pop())
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def check_patches(patches: Any, modules: Iterable[ModuleType], mechanism: Any) -> None:
    """Raises `InvalidSpec` where pytest's monkeypatch has changed a module that the mechanism uses by its name.

    A worker imports that module as it is on disk: the audit would be one of other code than the test means. Modules
    that travel by value include their changes. Only names in the pickled mechanism itself are checked, a package and
    its modules taken as one.
    """
    changed = [(target, name) for target, name, _ in getattr(patches, "_setattr", ())]
    if not changed:
        return
    import pickletools

    import cloudpickle

    try:
        sent = cloudpickle.dumps(mechanism)
    except Exception:  # sending it raises a clearer error
        return
    texts = [argument for _, argument, _ in pickletools.genops(sent) if isinstance(argument, str)]
    used = {text.partition(".")[0] for text in texts} - EVERYWHERE
    ours = {module.__name__ for module in modules}
    for target, name in changed:
        if not isinstance(target, ModuleType | type):
            continue  # an object travels as it is
        where = target.__name__ if isinstance(target, ModuleType) else target.__module__
        if where not in ours and where.partition(".")[0] in used:
            raise InvalidSpec(
                f"monkeypatch has changed {where}.{name} here, and the mechanism runs in another process, without the "
                "change; pass it as an argument (functools.partial), or make it in the mechanism"
            )
