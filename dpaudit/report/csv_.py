"""CSV: one row an audit, the columns of `COLUMNS`; numbers whole, and no text that a spreadsheet would compute.

And Parquet, for tables with types.
"""

import csv
import importlib
import io
import itertools
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from dpaudit.account.statements import expected_text, meaning, verdict_text
from dpaudit.base.installed import lacking
from dpaudit.base.quoting import LONGEST_DATA, cell, standing
from dpaudit.base.strict import spec_hash
from dpaudit.certify import Binned
from dpaudit.report import spec_of
from dpaudit.results.result import AuditResult, fingerprint
from dpaudit.results.suite import SuiteEntry, SuiteResult

COLUMNS = {
    "audit": "the name of the audit",
    "verdict": "REFUTED, not refuted, or no verdict",
    "expected": "the verdict that the author of the spec expects",
    "as_expected": "yes where the verdict is the expected one, or an accepted finding",
    "accepted_until": "the last day of the acceptance that covers the finding; empty where there is none",
    "claim": "the form of the claim",
    "claimed": "what it promises for the pair of the witness, in the parameter of the next column",
    "parameter": "epsilon, mu, rho: what the claim and the bound are stated in",
    "claimed_delta": "the delta of the claim, where its form has one",
    "relation": "which datasets count as neighbours; empty where the claim does not say",
    "distance": "how many steps apart the datasets of the witness are",
    "lower": "the certified lower bound in the parameter of the claim; inf for infinity",
    "epsilon_lower": "the certified lower bound on epsilon, at delta; empty where there is none",
    "delta": "the delta of the certificate",
    "confidence": "the confidence of this audit",
    "p_value": "at most this is the p-value of the claim; the true one may be smaller",
    "p_value_holm": "the same, adjusted for all audits of the suite by Holm's method",
    "epsilon_upper": "an upper bound on epsilon for the pair of the witness, where one is known",
    "upper_kind": "exact-finite, exact-pair, proved or numeric-upper",
    "representation": "refuted where the bits of floating-point outputs refute the claim; empty where not looked at",
    "event": "the witness in words",
    "likelier_on": "the dataset on which search took the event to be likelier: first or second",
    "pair": "the name of the pair of datasets",
    "hits_likelier": "certifying runs in the event, on that dataset; empty for a partition",
    "runs_likelier": "all certifying runs on that dataset",
    "hits_other": "certifying runs in the event, on the other dataset",
    "runs_other": "all certifying runs on the other dataset",
    "runs_asked": "executions that the audit could spend",
    "runs_used": "executions that it spent, search included",
    "seed": "the seed of the audit",
    "reproducible": "yes where the same seed gives the same counts",
    "mechanism": "the name of the mechanism",
    "reference": "where it can be imported from",
    "digest": "the digest of its source",
    "commit": "the commit of the tree it was run in, -dirty where that had changes",
    "version": "the version of dpaudit",
    "started": "when the audit began",
    "fingerprint": "the fingerprint of the finding: the same from run to run",
    "spec_hash": "the hash of the whole question",
    "source": "the spec file, seen from where dpaudit was called",
    "record": "the JSON file that holds the whole result",
    "exit_code": "what the audit adds to the exit code of the suite",
    "error": "why there is no verdict, or what went wrong beside it",
    "adjacency": "records, rows, entries or any two: what shows that the datasets are neighbours; answers, neutral or "
    "one value: they are if the data are that; or on trust",
    "unseen": "entries of one output that were not looked at, at the most",
    "unpaired": "entries of one output that were looked at alone and in sums only, at the most",
    "diagnosis": "the kind of mistake that the evidence of a refutation fits; empty where none does",
    "supposes": "what a refutation supposes of calls or processes; empty where it stands without that",
}

REALS = (  # columns of numbers that may be missing
    *("claimed", "claimed_delta", "distance", "lower", "epsilon_lower", "delta", "confidence", "p_value"),
    *("p_value_holm", "epsilon_upper", "hits_likelier", "runs_likelier", "hits_other", "runs_other", "runs_asked"),
    *("runs_used", "unseen", "unpaired"),
)


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A row for each audit, those without a verdict too."""
    return table(COLUMNS, *itertools.starmap(row, itertools.zip_longest(suite.entries, suite.holm(), records)))


def table(*rows: Iterable[object], longest: int = LONGEST_DATA, quoting: Any = csv.QUOTE_NONNUMERIC) -> str:
    """Rows as CSV (RFC 4180, lines end in a line feed): text quoted, each cell made harmless.

    >>> table(["=cmd", 0.5, None])
    '"\\'=cmd",0.5,""\\n'
    """
    file = io.StringIO()
    writer = csv.writer(file, quoting=quoting, lineterminator="\n")
    writer.writerows([cell(value, longest) for value in row] for row in rows)
    return file.getvalue()


def row(entry: SuiteEntry, holm: float | None, record: str | None) -> list[object]:
    """The values of an entry in the order of `COLUMNS`."""
    values = {
        "audit": entry.name,
        "verdict": "no verdict" if entry.result is None else verdict_text(entry.result.verdict),
        "expected": expected_text(entry),
        "as_expected": entry.as_expected,
        "accepted_until": entry.accepted.until.isoformat() if entry.covered and entry.accepted else None,
        "p_value_holm": holm,
        "source": spec_of(entry),
        "record": record,
        "exit_code": entry.exit_code,
        "error": entry.error,
    }
    if entry.result is not None:
        values |= _told_of(entry.result)
    return [values.get(name) for name in COLUMNS]


def _told_of(result: AuditResult) -> dict[str, object]:
    spec, certificate, witness, e = result.spec, result.certificate, result.witness, result.evidence
    mechanism, bits = spec["mechanism"], result.representation
    upper = None if result.bracket is None else result.upper
    return {  # what has the name of its column first
        **{name: getattr(result, name) for name in ("distance", "runs_used", "reproducible", "unseen", "unpaired")},
        **{name: getattr(certificate, name) for name in ("lower", "epsilon_lower", "delta", "p_value")},
        **{name: result.provenance.get(name) for name in ("commit", "version", "started")},
        "claim": spec["claim"]["form"],
        "claimed": result.claim.promised(certificate.delta),
        "parameter": result.claim.parameter,
        "claimed_delta": result.claim.to_dict().get("delta"),
        "relation": spec["claim"]["relation"],
        "confidence": spec["confidence"],
        "epsilon_upper": None if upper is None else upper.epsilon_upper,
        "upper_kind": None if upper is None else upper.label.value,
        "representation": None if bits is None else "refuted" if bits.certificate.refuted else "not refuted",
        "event": standing(str)(witness.event.__str__)() + meaning(result),
        "likelier_on": witness.p_side,
        "pair": spec["pairs"][witness.pair]["name"],
        "hits_likelier": None if isinstance(e, Binned) else e.hits_p,
        "runs_likelier": e.runs_p,
        "hits_other": None if isinstance(e, Binned) else e.hits_q,
        "runs_other": e.runs_q,
        "runs_asked": spec["runs"],
        "seed": spec["seed"],
        "mechanism": mechanism["name"],
        "reference": mechanism["reference"],
        "digest": mechanism["digest"],
        "fingerprint": fingerprint(result),
        "spec_hash": spec_hash(spec),
        "adjacency": "on trust" if result.further_apart else result.shown or "on trust",
        "diagnosis": None if result.diagnosis is None else result.diagnosis.kind,
        "supposes": result.condition,
    }


def parquet(names: Sequence[str], rows: Sequence[Mapping[str, Any]], reals: Container[str]) -> bytes:
    """Rows of such columns as Parquet: doubles (those in `reals` always), whole numbers, booleans, and text.

    Raises `MissingRequirement` where neither pyarrow nor polars is installed.
    """
    columns = {name: _typed([row.get(name) for row in rows], name in reals) for name in names}
    file = io.BytesIO()
    try:
        arrow, written = map(importlib.import_module, ("pyarrow", "pyarrow.parquet"))
        table = {name: arrow.array(values, getattr(arrow, kind)()) for name, (kind, values) in columns.items()}
        written.write_table(arrow.table(table), file)
    except ImportError:
        try:
            polars: Any = importlib.import_module("polars")
        except ImportError:
            raise lacking("Parquet needs pyarrow or polars, and neither is installed here", "parquet") from None
        kinds = {"float64": polars.Float64, "int64": polars.Int64, "bool_": polars.Boolean, "string": polars.String}
        series = {name: polars.Series(values, dtype=kinds[kind]) for name, (kind, values) in columns.items()}
        polars.DataFrame(series).write_parquet(file)
    return file.getvalue()


def _typed(values: list[Any], real: bool) -> tuple[str, list[Any]]:
    """The name that Arrow has for the type of a column, and its values as such; None stays None.

    >>> _typed([1, None, 0.5], False), _typed([True, [1]], False)
    (('float64', [1.0, None, 0.5]), ('string', ['true', '[1]']))
    """
    kinds = {type(value) for value in values if value is not None}
    if real or kinds == {float} or kinds == {int, float}:
        return "float64", [None if value is None else float(value) for value in values]
    if kinds == {bool} or (kinds == {int} and max(abs(value) for value in values if value is not None) < 2**63):
        return "bool_" if kinds == {bool} else "int64", values
    return "string", [value if value is None or type(value) is str else json.dumps(value) for value in values]
