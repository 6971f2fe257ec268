"""dpaudit: certified lower bounds on the true epsilon of any differentially private mechanism.

Public names are loaded on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaudit.version import __version__

if TYPE_CHECKING:
    from dpaudit import adapters
    from dpaudit.api import audit, bracket
    from dpaudit.auditing import AuditSpec
    from dpaudit.auditing.searching.pair_search import PairSearch, search_pairs
    from dpaudit.auditing.watching import AuditInterrupted
    from dpaudit.claims import (
        ApproximateDP,
        GaussianDP,
        PrivacyProfile,
        PureDP,
        Relation,
        RenyiDP,
        TradeOffDP,
        ZeroConcentratedDP,
    )
    from dpaudit.errors import ClaimRefuted, DpAuditError, InvalidSpec, MissingRequirement, NotAttested, UnsoundAudit
    from dpaudit.existing import load, load_suite, recheck, write_report
    from dpaudit.looking import look
    from dpaudit.mechanisms import batched, built_by
    from dpaudit.mechanisms.command import command
    from dpaudit.pairs import AdjacentPair, stock_pairs
    from dpaudit.results.attesting import attest, verify_attestation
    from dpaudit.results.bounds import BracketVerdict, UpperBound
    from dpaudit.results.result import AuditResult
    from dpaudit.results.suite import SuiteResult
    from dpaudit.results.verdict import Verdict
    from dpaudit.results.wording.bracketed import Bracket
    from dpaudit.scores import AttackCounts, ScoresResult, audit_scores
    from dpaudit.sweeps import Sweep, SweepInterrupted, sweep
    from dpaudit.training import TrainingResult, audit_training

_HOMES = {
    "dpaudit.api": "audit bracket",
    "dpaudit.existing": "load load_suite recheck write_report",
    "dpaudit.auditing": "AuditSpec",
    "dpaudit.auditing.watching": "AuditInterrupted",
    "dpaudit.results.result": "AuditResult",
    "dpaudit.results.suite": "SuiteResult",
    "dpaudit.results.verdict": "Verdict",
    "dpaudit.auditing.searching.pair_search": "PairSearch search_pairs",
    "dpaudit.claims": "ApproximateDP GaussianDP PrivacyProfile PureDP Relation RenyiDP TradeOffDP ZeroConcentratedDP",
    "dpaudit.errors": "ClaimRefuted DpAuditError InvalidSpec MissingRequirement NotAttested UnsoundAudit",
    "dpaudit.looking": "look",
    "dpaudit.mechanisms": "batched built_by command",
    "dpaudit.pairs": "AdjacentPair stock_pairs",
    "dpaudit.scores": "AttackCounts ScoresResult audit_scores",
    "dpaudit.sweeps": "Sweep SweepInterrupted sweep",
    "dpaudit.training": "TrainingResult audit_training",
    "dpaudit.results.attesting": "attest verify_attestation",
    "dpaudit.results.bounds": "BracketVerdict UpperBound",
    "dpaudit.results.wording.bracketed": "Bracket",
}
_MODULES = ("adapters", "catalogue", "claims", "training")
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AdjacentPair",
    "ApproximateDP",
    "AttackCounts",
    "AuditInterrupted",
    "AuditResult",
    "AuditSpec",
    "Bracket",
    "BracketVerdict",
    "ClaimRefuted",
    "DpAuditError",
    "GaussianDP",
    "InvalidSpec",
    "MissingRequirement",
    "NotAttested",
    "PairSearch",
    "PrivacyProfile",
    "PureDP",
    "Relation",
    "RenyiDP",
    "ScoresResult",
    "SuiteResult",
    "Sweep",
    "SweepInterrupted",
    "TradeOffDP",
    "TrainingResult",
    "UnsoundAudit",
    "UpperBound",
    "Verdict",
    "ZeroConcentratedDP",
    "__version__",
    "adapters",
    "attest",
    "audit",
    "audit_scores",
    "audit_training",
    "batched",
    "bracket",
    "built_by",
    "command",
    "load",
    "load_suite",
    "look",
    "recheck",
    "search_pairs",
    "stock_pairs",
    "sweep",
    "verify_attestation",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpaudit.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
