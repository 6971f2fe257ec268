"""A call of `dpaudit.audit` in the ledger: its shards as they come, so that the same call goes on where it was stopped.

The same call asks the same question of a mechanism that is made of the same parts (`running.program`).
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.store import ShardStore
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import MADE, Begun, Run, changes, start, taken
from dpaudit.processes.tasks import parts_of
from dpaudit.results.result import AuditResult
from dpaudit.running.modules import PACKAGE
from dpaudit.running.program import made_with, unknown


@dataclass(slots=True)
class Call:
    """A call that is driven by this process."""

    ledger: Ledger
    name: str
    question: Mapping[str, Any]
    run: Run

    @property
    def begun(self) -> Begun | None:
        """What is known of it, where it has begun."""
        return self.run.begun(1)

    def begin(self, spec: Mapping[str, Any], runs: int | None) -> ShardStore:
        """Where its shards are kept; `runs` as they were chosen by the time. Anew where more than was seen differs."""
        try:
            return self.run.begin(1, spec, {}, runs)
        except InvalidSpec as error:
            self.run.finish()
            self.run.close()
            _say(f"{error}: this call of {self.name} begins anew")
            self.run = start(self.ledger, [self.name], self.question)
            return self.run.begin(1, spec, {}, runs)

    def keep(self, result: AuditResult) -> AuditResult:
        """Records the result, which tells how often it was interrupted; shards are needed no longer."""
        told = {} if self.begun is None else {"interruptions": self.begun.interruptions}
        result = replace(result, provenance={**result.provenance, **told})
        self.ledger.record(result, run=self.run.id, number=1)
        return result


@contextmanager
def kept(path: str | os.PathLike[str], name: str, mechanism: Any, asked: Mapping[str, Any]) -> Iterator[Call]:
    """The newest call of this question that was interrupted, or a new one, in the ledger at a path.

    Warns where one of this name asked something else, or was made of other parts. Raises `LedgerError` where the ledger
    cannot be used.
    """
    parts = parts_of(mechanism) | made_with()
    question = {"asked": asked, MADE: parts}
    with Ledger(path) as ledger:
        lost = unknown(parts)
        run = None if lost else taken(ledger, [name], question)
        if run is None:
            told = changes(ledger, [name], question)
            if told is not None and (why := [*lost, *told]):
                _say(f"{path}: {'; '.join(why[:3])}: another call of {name}, which begins anew")
            run = start(ledger, [name], question)
        call = Call(ledger, name, question, run)
        try:
            yield call
            call.run.finish()
        except LedgerError:
            raise
        except DpAuditError:  # no verdict: the next call begins anew
            call.run.finish()
            raise
        finally:
            call.run.close()


def _say(message: str) -> None:
    """Warns at the line of the user's that has called us."""
    frame, depth = sys._getframe(), 1
    ours = (str(PACKAGE), contextlib.__file__)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, stacklevel=depth)
