"""A journal as its specification says, by a machine that compares it with a model; and what the machine cannot do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dpaudit.errors import InvalidSpec
from dpaudit.execution.journal import LOADED, StoredShard
from dpaudit.ledger import runs
from dpaudit.ledger.database import LedgerError, LedgerLost
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import LedgerJournal, Run, RunLock, resume, start, taken
from dpaudit.processes.tasks import digest_of_file
from dpaudit.results.result import AuditResult
from dpaudit.running.streams import Shard, Stage
from tests.cases import for_each
from tests.ledger.made import counted

SPECS = ["/a/one.toml", "/a/two.toml"]
ASKED = {"dpaudit": "1", "options": {"tags": ["core"]}, "audits": {"one": {"runs": 100, "seed": 0}}}
PAIRS = [{"name": "pair", "distance": 1, "first": {"digest": "a", "value": 1}, "second": {"digest": "b", "value": 2}}]
SPEC: dict[str, Any] = {"name": "one", "runs": 100, "mechanism": {"digest": "f00"}, "pairs": PAIRS}
SHARD = StoredShard(3, 0, Shard(Stage.CERTIFY, 1, 7, 250), "question", "counts", b"\x00content\xff")
RESULTS = [counted(250_000 + number, 200_000) for number in range(2)]


def shard(index: int, kind: str, content: bytes) -> StoredShard:
    return StoredShard(index % 2, 0, Shard(Stage.CERTIFY, 0, index, 250), "question", kind, content)


# --- the machine ------------------------------------------------------------------------------------------------------


@dataclass
class Audit:
    """What a ledger has to know of one audit of a run."""

    drivers: int = 0
    spec: int | None = None
    shards: dict[int, StoredShard] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    touched: bool = False
    result: AuditResult | None = None


@dataclass
class Model:
    """What a ledger has to know of a run; `held` is the run in the process that drives it."""

    question: int
    held: Run | None
    finished: bool = False
    audits: dict[int, Audit] = field(default_factory=dict)
    journals: dict[int, LedgerJournal] = field(default_factory=dict)  # that the driver has begun


class Journals(RuleBasedStateMachine):
    """Two processes with one ledger: they begin, store, note, record, are killed and resume; and somebody tampers."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledgers = [Ledger(Path(self.folder.name, "ledger.sqlite")) for _ in range(2)]
        for ledger in self.ledgers:
            ledger.rows("PRAGMA synchronous = OFF")  # no power is cut here
        self.known: dict[str, Model] = {}  # in the order in which they began

    def teardown(self) -> None:
        for model in self.known.values():
            if model.held is not None:
                model.held.close()
        for ledger in self.ledgers:
            ledger.close()
        self.folder.cleanup()

    def unfinished(self, question: int | None = None) -> list[str]:
        open_runs = [key for key, model in reversed(self.known.items()) if not model.finished]
        return [key for key in open_runs if question in (None, self.known[key].question)]

    def driven(self) -> list[Model]:
        return [model for model in self.known.values() if model.held is not None]

    def begun(self, data: st.DataObject) -> tuple[Model, int, Audit, LedgerJournal] | None:
        there = [(model, number) for model in self.driven() for number in model.journals]
        if not there:
            return None
        model, number = data.draw(st.sampled_from(there))
        return model, number, model.audits[number], model.journals[number]

    @rule(process=st.integers(0, 1), question=st.integers(0, 1))
    def start(self, process: int, question: int) -> None:
        run = start(self.ledgers[process], SPECS, {"question": question})
        self.known[run.id] = Model(question, run)

    @rule(process=st.integers(0, 1), question=st.integers(0, 1), again=st.booleans())
    def take_up(self, process: int, question: int, again: bool) -> None:
        """The newest of the question that nobody drives; asked for by --resume, others are told apart in words."""
        same = self.unfinished(question)
        expected = next((key for key in same if self.known[key].held is None), None)
        ledger, asked = self.ledgers[process], {"question": question}
        if again and expected is None:
            kind = LedgerError if same else InvalidSpec
            words = "driven by another process" if same else "this is another run|there is no unfinished run"
            with pytest.raises(kind, match=words):
                resume(ledger, SPECS, asked)
            return
        run = resume(ledger, SPECS[::-1], asked) if again else taken(ledger, SPECS, asked)
        assert (None if run is None else run.id) == expected
        if run is not None:
            self.known[run.id].held = run

    @precondition(driven)
    @rule(data=st.data(), number=st.integers(1, 2), spec=st.integers(0, 1))
    def begin(self, data: st.DataObject, number: int, spec: int) -> None:
        model = data.draw(st.sampled_from(self.driven()))
        audit, held = model.audits.get(number, Audit()), model.held
        assert held is not None
        journal = LedgerJournal(held.ledger, held.id, number, {"module a": "#1"})
        if audit.spec not in (None, spec):
            with pytest.raises(InvalidSpec, match=f"audit 'one': runs was {audit.spec} and is {spec}"):
                journal.begin({**SPEC, "runs": spec}, None)
            return
        assert journal.begin({**SPEC, "runs": spec}, 77) is journal
        assert (journal.driver, journal.ours) == (audit.drivers, True)
        assert journal.begun is not None
        assert (journal.begun.interruptions, journal.begun.runs) == (audit.drivers, 77)
        model.audits[number] = replace(audit, drivers=audit.drivers + 1, spec=spec)
        model.journals[number] = journal

    @precondition(driven)
    @rule(data=st.data(), first=st.integers(0, 4), several=st.integers(1, 2), kind=st.sampled_from(["piece", "counts"]))
    def keep(self, data: st.DataObject, first: int, several: int, kind: str) -> None:
        """All of them or none: a place is taken once, but for a piece of it."""
        if (found := self.begun(data)) is None or (audit := found[2]).touched:
            return
        content = data.draw(st.binary(max_size=8))
        stored = {index: shard(index, kind, content) for index in range(first, first + several)}
        if any(audit.shards[index].kind != "piece" for index in stored if index in audit.shards):
            with pytest.raises(LedgerError):
                found[3].keep(list(stored.values()))
            return
        found[3].keep(list(stored.values()))
        audit.shards |= stored

    @precondition(driven)
    @rule(data=st.data(), name=st.sampled_from("ab"), value=st.integers(0, 9))
    def note(self, data: st.DataObject, name: str, value: int) -> None:
        if (found := self.begun(data)) is not None and not found[2].touched and found[2].result is None:
            found[3].note(name, value)
            found[2].notes[name] = value

    @precondition(driven)
    @rule(data=st.data())
    def fetch(self, data: st.DataObject) -> None:
        """What was stored, by whichever driver; a first one has nothing to take up."""
        if (found := self.begun(data)) is None:
            return
        _, _, audit, journal = found
        for call in (0, 1):
            expected = [each for each in audit.shards.values() if each.call == call and journal.driver]
            if audit.touched and expected:
                with pytest.raises(LedgerError, match="not what was stored; begin the run anew"):
                    journal.fetch(call)
            elif not audit.touched:
                assert sorted(journal.fetch(call), key=lambda each: each.shard.index) == sorted(
                    expected, key=lambda each: each.shard.index
                )
        if journal.driver and not audit.touched:
            assert journal.notes() == audit.notes

    @precondition(driven)
    @rule(data=st.data(), change=st.sampled_from(["content = x'00010203040506070809'", "runs = 1", "question = ''"]))
    def tamper(self, data: st.DataObject, change: str) -> None:
        """Somebody has the file open: every shard of an audit is another one."""
        if (found := self.begun(data)) is None or not (audit := found[2]).shards:
            return
        with found[3].ledger.transaction() as connection:
            where = f"UPDATE shards SET {change} WHERE run = ? AND audit = ? AND kind <> 'notes'"
            connection.execute(where, (found[3].run, found[1]))
        audit.touched = True
        with pytest.raises(LedgerError, match="not what was stored; begin the run anew"):
            LedgerJournal(found[3].ledger, found[3].run, found[1], driver=1).fetch(
                next(iter(audit.shards.values())).call
            )

    @precondition(driven)
    @rule(data=st.data(), which=st.integers(0, 1))
    def record(self, data: st.DataObject, which: int) -> None:
        """Once, and the same again: its shards are gone then."""
        if (found := self.begun(data)) is None:
            return
        audit, journal, result = found[2], found[3], RESULTS[which]
        if audit.result not in (None, result):
            with pytest.raises(LedgerError, match="has another result already; start a new run"):
                journal.record(result)
            return
        journal.record(result)
        audit.shards, audit.notes, audit.touched, audit.result = {}, {}, False, result
        assert journal.ended() == result

    @precondition(driven)
    @rule(data=st.data(), how=st.sampled_from(["finish", "close", "kill"]))
    def end(self, data: st.DataObject, how: str) -> None:
        model = data.draw(st.sampled_from(self.driven()))
        assert model.held is not None
        if how == "kill":
            file = model.held._lock._file
            assert file is not None
            runs._OPEN_LOCKS.discard(file)
            os.close(file)
        elif how == "finish":
            model.held.finish()
            model.finished = True
            for audit in model.audits.values():
                audit.shards, audit.notes = {}, {}
        if how != "kill":
            model.held.close()
            assert not model.held._lock.path.exists()
        model.held, model.journals = None, {}

    @invariant()
    def the_file_holds_what_the_model_does(self) -> None:
        rows = self.ledgers[0].rows("SELECT run, audit, shard, kind FROM shards ORDER BY run, audit, kind, shard")
        expected = [
            (key, number, place, kind)
            for key, model in self.known.items()
            for number, audit in model.audits.items()
            for place, kind in [
                *((index, each.kind) for index, each in audit.shards.items()),
                *[(0, "notes")] * bool(audit.notes),
            ]
        ]
        assert sorted(map(tuple, rows)) == sorted(expected)


TestJournals = Journals.TestCase
TestJournals.settings = settings(max_examples=40, stateful_step_count=30, derandomize=True, deadline=None)


# --- the rest
@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as made:
        yield made


def begin(run: Run, spec: dict[str, Any] = SPEC, number: int = 1, **parts: str) -> LedgerJournal:
    """An audit of a run begins or resumes."""
    journal = LedgerJournal(run.ledger, run.id, number, parts)
    assert journal.begin(spec, None) is journal
    return journal


@for_each("change", ["stage = 1", "shard = 8", "pair = 0", "runs = 251", "look = 1", "kind = 'pilot'", "audit = 2"])
def test_a_shard_that_was_moved_is_refused(change: str) -> None:
    assert Stage.SEARCH == 1
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "ledger.sqlite")) as ledger:
        LedgerJournal(ledger, "run").keep([SHARD])
        with ledger.transaction() as connection:
            connection.execute(f"UPDATE shards SET {change}")
        with pytest.raises(LedgerError, match="not what was stored; begin the run anew"):
            LedgerJournal(ledger, "run", 2 if "audit" in change else 1, driver=1).fetch(3)


def test_what_changed_is_named(ledger: Ledger) -> None:
    run = start(ledger, SPECS, ASKED)
    begin(run, mechs="#aa")
    digests = {**PAIRS[0], "first": {"digest": "c", "value": None}}
    for spec, digest, said in (
        (SPEC, "#bb", "audit 'one': mechs is not what it was"),
        ({**SPEC, "mechanism": {"digest": "f01"}}, "#aa", "the content of mechanism is not what"),
        ({**SPEC, "pairs": [digests]}, "#aa", "the content of pairs, 1, first is not what it was"),
        ({**SPEC, "runs": 101}, "#aa", "runs was 100 and is 101"),
    ):
        with pytest.raises(InvalidSpec, match=said):
            begin(run, spec, mechs=digest)
    run.close()
    for now, said in (
        ({"options": {"tags": []}}, r"options, tags was \['core'\] and is \[\]: this is another run"),
        ({"audits": {"two": {}}}, "audits, one is gone; audits, two is new"),
    ):
        with pytest.raises(InvalidSpec, match=said):
            resume(ledger, SPECS, {**ASKED, **now})


def test_a_source_that_only_the_runs_load_is_held_on_to(ledger: Ledger, tmp_path: Path) -> None:
    late = tmp_path / "late.py"
    late.write_text("SCALE = 1.5\n")
    run = start(ledger, SPECS, ASKED)
    for _ in range(2):  # killed before its shards were kept
        begin(run).note(LOADED, {str(late): digest_of_file(str(late))})
    assert begin(run).fetch(0) == []
    late.write_text("SCALE = 1.6\n")
    with pytest.raises(InvalidSpec, match=r"audit 'one': the source .*late\.py is not what it was"):
        begin(run)
    late.unlink()
    with pytest.raises(InvalidSpec, match=r"late\.py is not what it was"):
        begin(run)
    LedgerJournal(ledger, run.id).drop()
    begin(run)
    run.close()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_ledger_that_is_gone_is_told_at_once(ledger: Ledger, how: str) -> None:
    """SQLite would go on writing to a file that nobody can open again."""
    run = start(ledger, SPECS, ASKED)
    shards = begin(run)
    ledger.path.rename(ledger.path.with_name("elsewhere"))
    if how == "replaced":
        ledger.path.touch()
    for use in (lambda: shards.keep([SHARD]), shards.drop, run.finish, lambda: begin(run, number=2)):
        with pytest.raises(LedgerLost, match="deleted, moved or replaced during the run"):
            use()
    run.close()


def test_a_run_has_one_lock_by_whatever_name_its_ledger_is_called(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / "ledger")
    held = RunLock(tmp_path / "ledger", "run")
    assert held.take()
    assert not RunLock(tmp_path / "alias", "run").take()
    held.free()


def test_a_lock_that_was_let_go_while_it_was_opened_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one would hold a file without a name, and the next a new one: two drivers of one run."""
    first, second = (RunLock(tmp_path / "ledger", "run") for _ in range(2))
    assert first.take()
    lock = runs.lock

    def late(file: int, *, wait: bool) -> bool:
        first.free()
        return lock(file, wait=wait)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "lock", late)
        assert second.take()
    assert not RunLock(tmp_path / "ledger", "run").take()
    second.free()


def test_runs_that_nobody_goes_on_with_are_dropped(ledger: Ledger) -> None:
    old, held, fresh = (start(ledger, SPECS, ASKED) for _ in range(3))
    for run in (old, held):
        begin(run).keep([SHARD])
        with ledger.transaction() as connection:
            connection.execute("UPDATE runs SET started = '2001-01-01' WHERE id = ?", (run.id,))
    old.close()
    fresh.close()
    for day in (2, 3):  # a ledger that is used
        with ledger.transaction() as connection:
            query = (
                "INSERT INTO runs (id, suite_hash, suite, started, finished) SELECT ?, '', suite, ?, started FROM runs"
            )
            connection.execute(f"{query} WHERE id = ?", (f"of day {day}", f"2026-01-0{day}", fresh.id))
    last = start(ledger, SPECS, ASKED)
    left = {row["id"] for row in ledger.rows("SELECT id FROM runs WHERE finished IS NULL")}
    assert left == {held.id, fresh.id, last.id}
    assert {row["run"] for row in ledger.rows("SELECT run FROM shards")} == {held.id}
    held.close()
    last.close()


def test_a_clock_that_jumps_drops_no_run(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = start(ledger, SPECS, ASKED)
    begun.close()
    for year in (2999, 1980, 2999):
        monkeypatch.setattr("dpaudit.ledger.runs._now", lambda year=year: datetime(year, 1, 1, tzinfo=UTC))
        start(ledger, SPECS, {**ASKED, "year": year}).close()
    assert resume(ledger, SPECS, ASKED).id == begun.id


def test_a_fork_of_the_driver_does_not_hold_its_run(tmp_path: Path) -> None:
    """Else workers that outlive a killed driver would keep the next one from going on."""
    lock = RunLock(tmp_path / "ledger", "run")
    assert lock.take()
    assert not RunLock(tmp_path / "ledger", "run").take()
    ready, alive = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(alive[1])
        os.write(ready[1], b".")
        os.read(alive[0], 1)  # until the test lets go of the other end
        os._exit(0)
    os.read(ready[0], 1)
    assert lock._file is not None
    runs._OPEN_LOCKS.discard(lock._file)
    os.close(lock._file)  # what a kill does
    other = RunLock(tmp_path / "ledger", "run")
    taken = other.take()
    other.free()
    for each in (*ready, *alive):
        os.close(each)
    os.waitpid(child, 0)
    assert taken
