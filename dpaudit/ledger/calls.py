"""A call of `dpaudit.audit` in the ledger: its shards as they come, so that the same call goes on where it was stopped.

The same call asks the same question of the same code: the function, and all that it refers to in modules that are no
library, file by file, with their plain values. What is read from elsewhere while it runs is not looked at.
"""

import dataclasses
import functools
import hashlib
import inspect
import os
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
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

PACKAGE = Path(__file__).parents[1]
LIBRARIES = (*(sysconfig.get_path(each) for each in ("stdlib", "purelib", "platlib")), str(PACKAGE))
PLAIN = (bool, int, float, complex, str, bytes, tuple)


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
    made["source of dpaudit"] = digest_of([digest_of_file(str(each)) for each in sorted(PACKAGE.rglob("*.py"))])
    question = {"asked": asked, "function": {"digest": digest_of(_code(mechanism, {}))}, "versions": made}
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


def _code(value: Any, seen: dict[int, Any]) -> Any:
    """A function, with all that it refers to in code that is no library's, as plain values; other values by contents.

    `seen` holds what is told already, and keeps it alive.
    """
    if id(value) in seen:
        return "again"
    if isinstance(value, CodeType | ModuleType | FunctionType | type) or dataclasses.is_dataclass(value):
        seen[id(value)] = value
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, [_code(each, seen) for each in value.co_consts]]
    if isinstance(value, ModuleType):
        file = getattr(value, "__file__", None) or ""
        own = [] if not file or file.startswith(LIBRARIES) else sorted(vars(value).items())
        held = [
            [key, _code(each, seen)]
            for key, each in own
            if isinstance(each, (FunctionType, type, ModuleType, *PLAIN)) and key[:2] != "__"
        ]
        return [value.__name__, digest_of_file(file), held]
    if isinstance(value, property | staticmethod | classmethod):
        return _code(value.fget if isinstance(value, property) else value.__func__, seen)
    if isinstance(value, MethodType | functools.partial):
        parts: Any = (value.__func__, value.__self__) if isinstance(value, MethodType) else value.__reduce__()[2]
        return [_code(each, seen) for each in parts]
    if isinstance(value, FunctionType | type):
        module, held = sys.modules.get(value.__module__), [] if isinstance(value, type) else _held(value)
        if value.__module__ != "__main__" and getattr(module, "__file__", None):
            return [value.__qualname__, _code(module, seen), _code(held, seen)]
        if isinstance(value, type):
            known = [[key, each] for key, each in sorted(vars(value).items()) if callable(each) or key[:2] != "__"]
            return [value.__qualname__, _code([value.__bases__, known], seen)]
        names = sorted(_names(value.__code__) & value.__globals__.keys())
        return [_code([value.__code__, held, [[name, value.__globals__[name]] for name in names]], seen)]
    if isinstance(value, tuple | list):
        return [_code(each, seen) for each in value]
    if dataclasses.is_dataclass(value):
        return [_code(getattr(value, field.name), seen) for field in dataclasses.fields(value)]
    try:
        return digest_of(value)
    except TypeError:
        return _pickled(value)


def _held(value: FunctionType) -> list[Any]:
    """What a function has closed over, its attributes, and its defaults."""
    closed = [each.cell_contents for each in value.__closure__ or ()]
    return [closed, sorted(vars(value).items()), value.__defaults__, sorted((value.__kwdefaults__ or {}).items())]


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _pickled(value: Any) -> str:
    import cloudpickle

    try:
        return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
    except Exception:
        return inspect.getmodule(type(value)).__name__ + type(value).__qualname__  # type: ignore[union-attr]
