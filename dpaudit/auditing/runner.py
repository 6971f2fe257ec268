"""The one driver of audits: a question is described, planned, journaled, answered, and told where it comes from."""

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from dpaudit.auditing import probing
from dpaudit.auditing.audit import repeat_witness, run_audit
from dpaudit.auditing.clock import Clock
from dpaudit.auditing.probing import CHOICES, chosen_runs, planned_runs
from dpaudit.auditing.question import FEWEST_RUNS_A_PAIR, Pair, Plan, Question, plan
from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.execution.engine import Engine
from dpaudit.execution.journal import ELSEWHERE, FrozenCall, ShardStore
from dpaudit.mechanisms import Description, Mechanism
from dpaudit.recording.pairs import asked_alone, worst_here
from dpaudit.results.certification import Witness
from dpaudit.results.recorded import NoiseRecord
from dpaudit.results.result import AuditResult, repeated, went_alone
from dpaudit.running.progress import SILENT, Progress
from dpaudit.running.streams import Shard

MOST_RECORDS = 5  # of pairs with a lead, that a result keeps
RECORDED_PART, FEWEST_RECORDED = 4, 600  # noise is recorded in one run for four of the audit, where these are enough


class BegunAudit(Protocol):
    """What is known of an audit that has begun: the runs chosen for it, and how often it was interrupted."""

    @property
    def runs(self) -> int | None: ...

    @property
    def interruptions(self) -> int: ...


class AuditJournal(Protocol):
    """The record of one audit, by which it goes on after an interruption."""

    @property
    def begun(self) -> BegunAudit | None:
        """What is known of it; None where it has not begun."""

    def look_at(self, mechanism: Mechanism, engine: Engine) -> None:
        """Looks at what the mechanism is made of, before any run."""

    def begin(self, asked: Mapping[str, Any], runs: int | None) -> ShardStore:
        """The store of its shards; `asked` is the stored question, `runs` those that a probe chose."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Answers questions on an engine; `journal` keeps what is counted, `progress` is told how far it is.

    `origin` says where the question of a plan comes from, for the provenance of the result: a command, a commit.
    """

    engine: Engine
    journal: AuditJournal | None = None
    progress: Progress = SILENT
    origin: Callable[[Plan], Mapping[str, Any]] = field(default=lambda plan: {})
    freezing: bool = False  # the certifying runs are put off, by `Frozen`

    def run(self, question: Question, clock: Clock | None = None) -> AuditResult:
        """The answer, with its provenance; a `clock` of the caller's may end it, else `max_time_s` does.

        Raises `InvalidSpec` for a question that cannot be asked and `UnsoundAudit` where there is no verdict.
        """
        timed = clock or Clock(question.max_time_s)
        with timed.over(self.engine), np.errstate(under="ignore"):  # whatever the program has numpy raise
            planned, chosen = self._planned(question, timed)
            if self.journal is not None:
                self.engine.keep_in(self.journal.begin(planned.to_dict(), chosen), freezing=self.freezing)
            records: tuple[NoiseRecord, ...] = ()
            with suppress(UnsoundAudit):  # the result says so; what counts tell is not lost for it
                records = self.recorded(planned) if planned.leads else ()
            leads = [each for each in records if each.leads]
            leads.sort(key=lambda each: -max(lead.weight for lead in each.leads))
            if leads:  # its pair is the one that is certified, where nothing is beyond the claim yet
                place = self.engine.recorder.decide("pair with a lead", lambda: records.index(leads[0]))
                planned = replace(planned, leading=place)
            result = run_audit(planned, self.engine, progress=self.progress, clock=timed)
        open_runs = question.runs is None and question.max_time_s is None
        begun = None if self.journal is None else self.journal.begun
        told = {
            "max_time_s": question.max_time_s,
            **({} if begun is None else {"interruptions": begun.interruptions}),
            **({"record": question.record} if question.record else {}),
            **({"assumed": question.assumed.value} if question.assumed else {}),
            **({"chosen_runs": planned.runs} if open_runs and planned.runs < CHOICES[-1] else {}),
            **self.origin(planned),
        }
        upper = result.upper if question.upper is None else question.upper
        kept = tuple(leads[:MOST_RECORDS]) or records[:1]
        return replace(result, upper=upper, recorded=kept, provenance={**result.provenance, **told})

    def recorded(self, question: Question, *, claimed: bool = True) -> tuple[NoiseRecord, ...]:
        """What recorded draws tell of each pair of a question; without its claim where that is not `claimed`."""
        from dpaudit.recording.record import record

        asked = question if isinstance(question, Plan) else self.plan(question)
        how: Any = {"seed": asked.seed, "run_timeout_s": asked.run_timeout_s}
        made = record(self.engine, asked.mechanism, asked.pairs, claim=asked.claim if claimed else None, **how)
        described = asked.description.to_dict()
        return tuple(replace(each, mechanism=asked.name, description=described) for each in made)

    def plan(self, question: Question) -> Plan:
        """The plan of a question: as it began, where it has."""
        return self._with_worst(plan(question, *self.described(question), self._begun_runs))

    def count(
        self, question: Question, calls: Sequence[FrozenCall], chosen: Mapping[int, list[Shard]], who: str
    ) -> None:
        """Counts the `chosen` shards of an audit's frozen calls; notes who does, and whether first runs are alike.

        Raises `UnsoundAudit` where they cannot be counted, and as the journal does where it is not what was frozen.
        """
        assert self.journal is not None
        planned, first = self.plan(question), calls[0]
        self.journal.look_at(question.mechanism, self.engine)
        store = self.journal.begin(planned.to_dict(), self._begun_runs)
        pairs = planned.pairs
        with (
            np.errstate(under="ignore"),
            self.engine.session(planned.mechanism, pairs, first.seed, planned.run_timeout_s) as session,
        ):
            if first.alone:
                session.begin_alone(first.seed)
            probing.probe(planned, session, 2 * len(pairs) * first.probed)
            session.certifying = True
            seen = store.notes().get(ELSEWHERE, {})
            same = seen.get(who, (True,))[-1] and first.likeness in ("", session.sentinel[1])
            runs = sum(shard.runs for shards in chosen.values() for shard in shards)
            store.note(ELSEWHERE, {**seen, who: (socket.gethostname(), runs, same)})  # before any count
            for call in calls:
                self.engine.keep_in(store, first=call.number)
                if session.call(call.watch).question != call.question:
                    raise InvalidSpec("the plan is not what was frozen; take the file that was, or freeze a new one")
                self.engine.keep_in(store, first=call.number)
                with session.stage("certify", sum(shard.runs for shard in chosen[call.number])):
                    session.shard_counts(chosen[call.number], call.watch)

    def repeat(self, result: AuditResult, witness: Witness, planned: Plan) -> AuditResult:
        """The result with its frozen witness on fresh runs of a plan, whose seed is not that of the result."""
        evidence, health = repeat_witness(
            witness, planned, self.engine, seed=planned.seed, alone=went_alone(result), progress=self.progress
        )
        return repeated(result, evidence, health, seed=planned.seed)

    def described(self, question: Question) -> tuple[Description, tuple[Pair, ...]]:
        """The mechanism described, and the pairs, resolved where mechanisms may run; those that are here stay here."""
        if question.description is not None:
            return question.description, question.pairs
        if question.settle is None and not any(hasattr(pair, "resolve") for pair in question.pairs):
            return self.engine.describe(question.mechanism, ())[0], question.pairs
        return self.engine.describe(question.mechanism, question.pairs, question.settle)

    @property
    def _begun_runs(self) -> int | None:
        begun = None if self.journal is None else self.journal.begun
        return None if begun is None else begun.runs

    def _planned(self, question: Question, clock: Clock) -> tuple[Plan, int | None]:
        """The plan, and its runs where a probe chose them, now or before an interruption."""
        description, pairs = self.described(question)
        if self.journal is not None:
            self.journal.look_at(question.mechanism, self.engine)
        chosen = self._begun_runs
        if chosen is None and question.max_time_s is not None:
            chosen = planned_runs(question, pairs, self.engine, clock)
        planned = plan(question, description, pairs, chosen)
        if chosen is None and question.runs is None:
            chosen = chosen_runs(question, planned, self.engine)
            planned = plan(question, description, pairs, chosen)
        return self._with_worst(planned), chosen

    def _with_worst(self, planned: Plan) -> Plan:
        """The plan, and before its pairs those that recorded noise finds in the dataset that they were made of."""
        at_once = 1 if planned.max_time_s is None else self.engine.n_jobs  # these runs are made one after another
        runs = planned.runs // (RECORDED_PART * at_once)
        if planned.example is None or runs < FEWEST_RECORDED:
            return planned
        work = partial(worst_here, planned.example, planned.claim, runs)
        _, worst = asked_alone(self.engine, planned.mechanism, 0, work, planned.pairs) or (
            None,
            (),
        )  # the same for every seed
        pairs = (*worst, *planned.pairs)[: planned.runs // FEWEST_RUNS_A_PAIR]
        return replace(planned, pairs=pairs) if worst else planned
