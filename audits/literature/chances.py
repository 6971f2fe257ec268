"""P(S) and Q(S) of a frozen event, apart from the luck of its certificate.

Fresh outputs are weighted by their exact log ratio where `laws.ratios` has it: the quotient is nearly exact then, for
the ratio hardly varies within an event. Elsewhere they are counted on fresh runs, as many as the audit was asked for,
and the standard error is stated.
"""

from __future__ import annotations

import math
from typing import Any, cast

import dpaudit
from audits.literature.laws.ratios import log_ratio
from audits.literature.rows import Row
from benchmarks.classics import weighed

Chances = tuple[float, float, float]  # on the likelier dataset, on the other; the standard error of the log quotient


def chances(row: Row, result: dpaudit.AuditResult) -> Chances:
    """Of the event that a coin-flip audit of a row froze."""
    witness, event = result.witness, cast("Any", result.witness.event)
    pair = row.pairs[witness.pair]
    ratio = log_ratio(row.name, row.entry, pair)
    if ratio is not None:
        p, q, error = weighed(event, ratio, row.entry, pair)
        return (p, q, error) if witness.p_side == "first" else (q, p, error)
    counts: Any = dpaudit.recheck(result, row.entry, fresh=True).evidence
    sides = ((counts.hits_p, counts.runs_p), (counts.hits_q, counts.runs_q))
    error = math.sqrt(sum(1.0 / max(hits, 1) - 1.0 / runs for hits, runs in sides))
    return counts.hits_p / counts.runs_p, counts.hits_q / counts.runs_q, error
