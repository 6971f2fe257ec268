"""dpaudit: certified lower bounds on the true epsilon of any differentially private mechanism.

Public names are loaded on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaudit.base import presenter as _presenter
from dpaudit.version import __version__ as __version__

if TYPE_CHECKING:
    from dpaudit import adapters as adapters
    from dpaudit.api.audits import audit as audit
    from dpaudit.api.audits import bracket as bracket
    from dpaudit.api.existing import recheck as recheck
    from dpaudit.api.look import look as look
    from dpaudit.api.recorded import record_noise as record_noise
    from dpaudit.auditing import AuditSpec as AuditSpec
    from dpaudit.auditing.pair_search import PairSearch as PairSearch
    from dpaudit.auditing.pair_search import search_pairs as search_pairs
    from dpaudit.auditing.watching import AuditInterrupted as AuditInterrupted
    from dpaudit.claims import ApproximateDP as ApproximateDP
    from dpaudit.claims import GaussianDP as GaussianDP
    from dpaudit.claims import PrivacyProfile as PrivacyProfile
    from dpaudit.claims import PureDP as PureDP
    from dpaudit.claims import Relation as Relation
    from dpaudit.claims import RenyiDP as RenyiDP
    from dpaudit.claims import TradeOffDP as TradeOffDP
    from dpaudit.claims import ZeroConcentratedDP as ZeroConcentratedDP
    from dpaudit.data import AdjacentPair as AdjacentPair
    from dpaudit.data import stock_pairs as stock_pairs
    from dpaudit.errors import ClaimRefuted as ClaimRefuted
    from dpaudit.errors import DpAuditError as DpAuditError
    from dpaudit.errors import InvalidSpec as InvalidSpec
    from dpaudit.errors import MissingRequirement as MissingRequirement
    from dpaudit.errors import NotAttested as NotAttested
    from dpaudit.errors import UnsoundAudit as UnsoundAudit
    from dpaudit.mechanisms import batched as batched
    from dpaudit.mechanisms import built_by as built_by
    from dpaudit.mechanisms.command import command as command
    from dpaudit.report import write_report as write_report
    from dpaudit.results.attesting import attest as attest
    from dpaudit.results.attesting import verify_attestation as verify_attestation
    from dpaudit.results.bounds import Bracket as Bracket
    from dpaudit.results.bounds import BracketVerdict as BracketVerdict
    from dpaudit.results.bounds import UpperBound as UpperBound
    from dpaudit.results.display import Verdict as Verdict
    from dpaudit.results.recorded import NoiseRecord as NoiseRecord
    from dpaudit.results.result import AuditResult as AuditResult
    from dpaudit.results.stored import load as load
    from dpaudit.results.stored import load_record as load_record
    from dpaudit.results.stored import load_suite as load_suite
    from dpaudit.results.suite import SuiteResult as SuiteResult
    from dpaudit.scores import AttackCounts as AttackCounts
    from dpaudit.scores import FewRuns as FewRuns
    from dpaudit.scores import ManyRun as ManyRun
    from dpaudit.scores import OneRun as OneRun
    from dpaudit.scores import ScoresResult as ScoresResult
    from dpaudit.scores import Steps as Steps
    from dpaudit.scores import audit_scores as audit_scores
    from dpaudit.sweeps import Sweep as Sweep
    from dpaudit.sweeps import SweepInterrupted as SweepInterrupted
    from dpaudit.sweeps import sweep as sweep
    from dpaudit.training import TrainingResult as TrainingResult
    from dpaudit.training import audit_training as audit_training

_HOMES = {
    "dpaudit.api.audits": "audit bracket",
    "dpaudit.api.existing": "recheck",
    "dpaudit.report": "write_report",
    "dpaudit.results.stored": "load load_record load_suite",
    "dpaudit.auditing": "AuditSpec",
    "dpaudit.auditing.watching": "AuditInterrupted",
    "dpaudit.results.result": "AuditResult",
    "dpaudit.results.suite": "SuiteResult",
    "dpaudit.results.display": "Verdict",
    "dpaudit.results.recorded": "NoiseRecord",
    "dpaudit.auditing.pair_search": "PairSearch search_pairs",
    "dpaudit.claims": "ApproximateDP GaussianDP PrivacyProfile PureDP Relation RenyiDP TradeOffDP ZeroConcentratedDP",
    "dpaudit.errors": "ClaimRefuted DpAuditError InvalidSpec MissingRequirement NotAttested UnsoundAudit",
    "dpaudit.api.look": "look",
    "dpaudit.api.recorded": "record_noise",
    "dpaudit.mechanisms": "batched built_by command",
    "dpaudit.data": "AdjacentPair stock_pairs",
    "dpaudit.scores": "AttackCounts FewRuns ManyRun OneRun ScoresResult Steps audit_scores",
    "dpaudit.sweeps": "Sweep SweepInterrupted sweep",
    "dpaudit.training": "TrainingResult audit_training",
    "dpaudit.results.attesting": "attest verify_attestation",
    "dpaudit.results.bounds": "Bracket BracketVerdict UpperBound",
}
_presenter.HOME = "dpaudit.report.display"
_MODULES = ("adapters", "catalogue", "claims", "training")
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_HOME, "__version__", "adapters"])


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
