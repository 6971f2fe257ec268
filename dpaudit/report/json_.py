"""JSON: the record. One result is exactly what `AuditResult.save` writes; a suite holds its results whole."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dpaudit.base.strict import stored, text_of
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import SUITE_SCHEMA
from dpaudit.results.suite import SuiteResult


def render_result(result: AuditResult) -> str:
    """One result in the schema `dpaudit.result/1`."""
    return result.to_json()


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite in the schema `dpaudit.suite/1`: each entry with its result, or the reason why there is none."""
    entries = [
        {
            "name": entry.name,
            "source": entry.source,
            "expect": entry.expected,
            "as_expected": entry.as_expected,
            "exit_code": entry.exit_code,
            "error": entry.error,
            "p_value_holm": adjusted,
            "accepted": stored(entry.accepted),
            "result": None if entry.result is None else entry.result.to_dict(),
        }
        for entry, adjusted in zip(suite.entries, suite.holm(), strict=True)
    ]
    head = {"schema": SUITE_SCHEMA, "confidence": suite.confidence, "exit_code": suite.exit_code}
    # ASCII only: hidden and bidirectional characters stand as escapes, and come back exactly
    return text_of({**head, "reviewed": stored(suite.reviewed), "entries": entries})


def files(
    suite: SuiteResult, names: Sequence[str | None], records: Sequence[str | None], trends: object = ()
) -> Iterator[tuple[str, Callable[[], str]]]:
    """A record for each result, and the suite."""
    for entry, name in zip(suite.entries, names, strict=True):
        if entry.result is not None and name is not None:
            yield name, partial(render_result, entry.result)
    yield "suite.json", partial(render_suite, suite)
