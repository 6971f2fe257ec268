"""A call of `dpaudit.audit` in the ledger: its shards as they come, so that the same call goes on where it was stopped.

The same call asks the same question of the same code. What the function refers to in its own module is looked at, and
the files of the modules that it names; what those import is not.
"""

import dataclasses
import functools
import hashlib
import inspect
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from dpaudit.errors import DpAuditError
from dpaudit.ledger.problems import LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import Begun, Run, changes, resume, start, waiting
from dpaudit.results.provenance import versions
from dpaudit.results.result import AuditResult
from dpaudit.sampling import ShardStore
from dpaudit.sampling.canonical import digest_of
from dpaudit.sampling.tasks import digest_of_file


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is driven by this process."""

    ledger: Ledger
    run: Run

    @property
    def begun(self) -> Begun | None:
        """What is known of it, where it has begun."""
        return self.run.begun(1)

    def begin(self, spec: Mapping[str, Any], runs: int | None) -> ShardStore:
        """Where its shards are kept; `runs` as they were chosen by the time."""
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

    Warns where one of this name asked something else. Raises `LedgerError` where the ledger cannot be used.
    """
    made = {key: value for key, value in versions().items() if key != "platform"}
    question = {"asked": asked, "function": {"digest": digest_of(_code(mechanism, []))}, "versions": made}
    with Ledger(path) as ledger:
        found = waiting(ledger, [name], question)
        if found is None and (changed := changes(ledger, [name], question)):
            warnings.warn(f"{path}: {'; '.join(changed[:3])}: another call of {name}, which begins anew", stacklevel=5)
        run = (start if found is None else resume)(ledger, [name], question)
        try:
            yield Call(ledger, run)
            run.finish()
        except LedgerError:
            raise
        except DpAuditError:  # no verdict: the next call begins anew
            run.finish()
            raise
        finally:
            run.close()


def _code(value: Any, seen: list[Any]) -> Any:
    """A function, with all that it refers to in its own module, as plain values; other values by what they hold."""
    if any(value is each for each in seen):
        return "again"
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, [_code(each, seen) for each in value.co_consts]]
    if isinstance(value, ModuleType):
        return [value.__name__, digest_of_file(getattr(value, "__file__", None) or "")]
    if isinstance(value, MethodType | functools.partial):
        own = (value.__func__, value.__self__) if isinstance(value, MethodType) else value.__reduce__()[2]
        return [_code(each, [*seen, value]) for each in own]
    if isinstance(value, FunctionType | type):
        file = getattr(sys.modules.get(value.__module__), "__file__", None)
        if value.__module__ != "__main__" and file:
            return [value.__module__, value.__qualname__, digest_of_file(file), *_held(value, [*seen, value])]
        if isinstance(value, type):
            return [
                value.__qualname__,
                [_code(each, [*seen, value]) for each in vars(value).values() if callable(each)],
            ]
        names = sorted(_names(value.__code__) & value.__globals__.keys())
        named = [[name, _code(value.__globals__[name], [*seen, value])] for name in names]
        return [_code(value.__code__, seen), named, *_held(value, [*seen, value])]
    if isinstance(value, tuple | list):
        return [_code(each, seen) for each in value]
    if dataclasses.is_dataclass(value):
        return [_code(getattr(value, field.name), [*seen, value]) for field in dataclasses.fields(value)]
    try:
        return digest_of(value)
    except TypeError:
        return _pickled(value)


def _held(value: Any, seen: list[Any]) -> list[Any]:
    """Defaults of a function, and what it has closed over."""
    cells = [each.cell_contents for each in getattr(value, "__closure__", None) or ()]
    defaults = getattr(value, "__defaults__", None), sorted((getattr(value, "__kwdefaults__", None) or {}).items())
    return [_code(each, seen) for each in (*cells, *defaults)]


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _pickled(value: Any) -> str:
    import cloudpickle

    try:
        return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
    except Exception:
        return inspect.getmodule(type(value)).__name__ + type(value).__qualname__  # type: ignore[union-attr]
