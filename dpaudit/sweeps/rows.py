"""One row of a sweep's table: what was asked, what came out, and what is known of the truth.

Contract: a column never changes its meaning, every row has all columns, and nothing is estimated: what is not known is
None. Bounds, claim and truth of a row are told at one and the same delta, that of the certificate. What is known from
above about a question, proofs and exact losses, is found once for all its runs and seeds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.auditing.known import known_upper
from dpaudit.base.strict import spec_hash
from dpaudit.claims import Claim
from dpaudit.data import AdjacentPair
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import Command, Imported
from dpaudit.report.figures.study import PARAMETERS
from dpaudit.results.bounds import RIGOROUS, Arithmetic, Label, UpperBound, sure
from dpaudit.results.result import AuditResult, fingerprint
from dpaudit.scores.result import ESTIMATE, OWN, Estimate
from dpaudit.sweeps.grid import Point
from dpaudit.verify.bracketing import Wanted, run_bracket, target_named, target_of

CLOSE = 1e-4  # relative: an enclosure that is wider is no value to show as the exact one


@dataclass(frozen=True, slots=True)
class UpperBounds:
    """Upper bounds on a question's loss, and why the methods that gave none did not."""

    uppers: tuple[UpperBound, ...] = ()
    why: str | None = None

    @staticmethod
    def encloses(bound: UpperBound) -> bool:
        """Whether the bound is the upper end of a rigorous enclosure of the pair's own loss, and a close one."""
        if bound.label is not Label.EXACT_PAIR or bound.arithmetic not in RIGOROUS or bound.epsilon_lower is None:
            return False
        low, high = bound.epsilon_lower, bound.epsilon_upper
        return low == high or (high < math.inf and high - low <= CLOSE * high)


def above_of(point: Point) -> UpperBounds:
    """The bounds that the mechanism's source, and the pair, give; runs nothing of the mechanism."""
    if point.mechanism is None:
        return UpperBounds(why=point.error)
    if isinstance(point.mechanism, Command):
        return UpperBounds(why="there is no source to read")
    pair = point.pair if isinstance(point.pair, AdjacentPair) else None
    if pair is not None and pair.distance != 1:
        return UpperBounds(why=f"the datasets are {pair.distance} steps apart; proofs are about neighbours")
    try:
        wanted = Wanted(claim=point.claim, pair=pair, runs=0, seed=point.options["seed"])
        with Engine(1) as engine:
            bracket = run_bracket(_target(point.mechanism), wanted, engine).bracket
    except DpAuditError as error:
        return UpperBounds(why=str(error))
    return UpperBounds(bracket.uppers, "; ".join(bracket.reasons) or "no method applies")


def _target(mechanism: Any) -> Any:
    if isinstance(mechanism, Imported) and mechanism.folder is not None:  # read, not imported
        return target_named(mechanism.reference, mechanism.parameters, mechanism.folder)
    return target_of(mechanism)


ASKED = ("runs", "confidence", "certifier", "selector", "stopping", "seed")  # options that are columns
COLUMNS: dict[str, str] = {
    "point": "number of the point in the grid, from 1",
    "mechanism": "name of the mechanism",
    "reference": "module:attribute; empty where it cannot be imported again",
    "broken": "whether the catalogue lists it as broken; empty for other mechanisms",
    "pair": "name of the pair of datasets",
    "distance": "how many steps apart the datasets are",
    "form": "form of the claim",
    "claim": "the claim in words",
    "parameter": "the claim's own parameter: epsilon, mu, rho",
    "claimed": "its claimed value; empty for a claim that is a curve",
    "claimed_epsilon": "epsilon that the claim allows this pair at delta",
    "runs": "executions that the audit may spend",
    "confidence": "of this point alone",
    "certifier": "how the counts are turned into a bound",
    "selector": "how the event is chosen",
    "stopping": "fixed or anytime",
    "base_seed": "seed that was asked for; several repeat every point",
    "seed": "of this point alone, made of base_seed and the question: audit(seed=...) repeats it",
    "verdict": "REFUTED or NOT_REFUTED; empty where there is none",
    "lower": "certified lower bound on the claim's own parameter",
    "epsilon_lower": "certified lower bound on epsilon at delta",
    "delta": "the delta that epsilon_lower, claimed_epsilon, true_epsilon, upper and proved are at",
    "p_value": "of the claim, on the fresh runs",
    "ceiling": "the bound that all hits on one side would have given",
    "true_loss": "exact loss of the pair in the claim's own parameter, by the catalogue's formula, in floats",
    "true_epsilon": "the same as an epsilon at delta",
    "exact_epsilon": "epsilon of the pair at delta where a rigorous computation encloses it closely: its upper end",
    "proved": "epsilon proved for all inputs at delta, by a proof that was checked or a whole replay",
    "upper": "least upper bound on the epsilon of the pair at delta that is known, of any kind",
    "upper_label": "its kind: proved, exact-finite, exact-pair or numeric-upper",
    "upper_arithmetic": "what it was computed with",
    "not_proved": "why nothing was proved, where that was asked for",
    "event": "the outputs that the bound is about, in words",
    "certifying_runs": "fresh executions on that event, both datasets",
    "runs_used": "executions made",
    "runs_to_refute": "executions made until the claim was refuted; empty where it was not",
    "time_s": "seconds that the audit took",
    "cpu_s": "seconds of processors that it took",
    "spec_hash": "digest of the question",
    "fingerprint": "of the finding, without its digits",
    "from_ledger": "whether the result was taken from the ledger",
    "error": "why there is no verdict",
}

REALS = (  # columns of numbers that may be missing
    *("distance", "claimed", "claimed_epsilon", "lower", "epsilon_lower", "delta", "p_value", "ceiling", "true_loss"),
    *("true_epsilon", "exact_epsilon", "proved", "upper", "certifying_runs", "runs_used", "runs_to_refute", "time_s"),
    "cpu_s",
)


def columns(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The columns of a table: `COLUMNS`, with parameters and estimates that a row has after the mechanism's."""
    keys = dict.fromkeys(key for row in rows for key in row if key not in COLUMNS)
    names = list(COLUMNS)
    place = names.index("pair")
    return (*names[:place], *keys, *names[place:])


def parameters_of(row: Mapping[str, object]) -> dict[str, object]:
    """The values of the mechanism's keywords in a row, by their names; what another mechanism has is left out."""
    given = ((key.removeprefix(PARAMETERS), row[key]) for key in row if key.startswith(PARAMETERS))
    return {key: value for key, value in given if value is not None}


def row_of(
    point: Point,
    result: AuditResult | None,
    *,
    above: UpperBounds | None = None,
    from_ledger: bool = False,
    error: str | None = None,
) -> dict[str, Any]:
    """The row of a point: with its result, or with the reason why there is none."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {f"{PARAMETERS}{key}": value for key, value in point.parameters.items()}
    row |= _asked(point)
    row |= {"from_ledger": from_ledger, "error": error or point.error}
    delta = 0.0 if point.claim is None else point.claim.delta
    if result is not None:
        row |= _answered(result)
        delta = result.certificate.delta
    row["delta"] = delta
    row |= _known(point, result, delta)
    return row | _bounded(result, above, delta)


def _asked(point: Point) -> dict[str, Any]:
    offered = point.known
    asked: dict[str, Any] = {
        "point": point.number,
        "mechanism": point.name,
        "reference": None if offered is None else offered.reference,
        "broken": None if offered is None else offered.broken,
        "pair": getattr(point.pair, "name", None),
        "distance": getattr(point.pair, "distance", None),
        **{"base_seed" if name == "seed" else name: value for name, value in point.options.items() if name in ASKED},
    }
    return asked | _of_claim(point.claim)


def _of_claim(claim: Claim | None) -> dict[str, Any]:
    if claim is None:
        return {}
    return {"form": claim.form, "claim": str(claim), "parameter": claim.parameter, "claimed": claim.value}


def row_of_scores(number: int, name: str, result: Any) -> dict[str, Any]:
    """The row of a training or of scores that were audited elsewhere: its certified line, and its estimate beside."""
    decided: Estimate | None = result.deciding
    delta = (None if decided is None else decided.delta) or 0.0
    figures = [each.value for each in result.stated if (each.line, each.quantity) == (ESTIMATE, "epsilon")]
    figures += [] if decided is None else [decided.value]
    row = dict.fromkeys(COLUMNS) | _of_claim(result.claim) | {
        "point": number,
        "mechanism": name,
        "claimed_epsilon": None if result.claim is None else _epsilon(result.claim, delta),
        "confidence": result.confidence,
        "base_seed": result.seed,
        "delta": delta,
        "runs_used": getattr(result, "trainings_used", None),
        ESTIMATE: next((value for value in figures if value is not None), None),
    }  # fmt: skip
    if result.claim is None or decided is None:
        return row | {"error": "there is no claim" if result.claim is None else "nothing is certified of it"}
    epsilon, own = result.claim.parameter == "epsilon", decided.detail.get(f"{result.claim.parameter}{OWN}")
    row |= {"lower": decided.lower if epsilon else own, "epsilon_lower": decided.lower, "p_value": decided.p_value}
    return row | {"certifier": decided.method, "verdict": f"{'' if result.refuted else 'NOT_'}REFUTED"}


def _answered(result: AuditResult) -> dict[str, Any]:
    certificate, mechanism = result.certificate, result.spec["mechanism"]
    return {  # what has the name of its column first
        **{name: getattr(result, name) for name in ("distance", "certifier", "ceiling", "runs_used")},
        **{name: getattr(certificate, name) for name in ("lower", "epsilon_lower", "p_value")},
        "mechanism": mechanism["name"],
        "reference": mechanism["reference"],
        "pair": result.spec["pairs"][result.witness.pair]["name"],
        "seed": result.spec["seed"],
        "verdict": result.verdict.value,
        "event": str(result.witness.event),
        "certifying_runs": result.evidence.runs,
        "runs_to_refute": result.runs_used if result.refuted else None,
        "time_s": result.provenance.get("wall_s"),
        "cpu_s": result.provenance.get("cpu_s"),
        "spec_hash": spec_hash(result.spec),
        "fingerprint": fingerprint(result),
    }


def _known(point: Point, result: AuditResult | None, delta: float) -> dict[str, Any]:
    """What the claim says of the pair, and the truth where the catalogue has a formula."""
    if point.claim is None:
        return {}
    distance = getattr(point.pair, "distance", 1) if result is None else result.distance
    claim = point.claim if distance == 1 else point.claim.at_distance(distance)
    known: dict[str, Any] = {"claimed_epsilon": _epsilon(claim, delta)}
    offered = point.known
    if offered is None or not isinstance(point.pair, AdjacentPair):
        return known
    try:
        loss = offered.true_loss(*point.pair.open())
    except (InvalidSpec, ArithmeticError, ValueError, TypeError, LookupError):
        return known  # data that the program takes and the formula of its loss does not
    own: Any = offered.claim()
    same_delta = own.parameter != "epsilon" or own.delta == point.claim.delta  # a formula at one is none at another
    if loss is not None and not math.isnan(loss) and own.parameter == point.claim.parameter and same_delta:
        known["true_loss"] = loss
    upper = known_upper(offered, point.pair, delta)
    if upper is not None and _near(upper.delta, delta):
        known["true_epsilon"] = upper.epsilon_upper
    return known


def _bounded(result: AuditResult | None, above: UpperBounds | None, delta: float) -> dict[str, Any]:
    """The bounds from above that hold at `delta`: of the result, and those that were computed for this question."""
    bounds: list[UpperBound] = [] if above is None else list(above.uppers)
    if result is not None and result.upper is not None and result.bracket is not None:
        bounds.append(result.upper)
    row: dict[str, Any] = {"not_proved": None}
    at = [each for each in bounds if each.delta <= delta]
    if above is not None:
        proved = [each.epsilon_upper for each in at if sure(each)]
        exact = [each.epsilon_upper for each in at if above.encloses(each) and _near(each.delta, delta)]
        row |= {"proved": min(proved, default=None), "exact_epsilon": min(exact, default=None)}
        if not proved:
            row["not_proved"] = above.why
    least = _least(at)
    if least is not None:
        row |= {
            "upper": least.epsilon_upper,
            "upper_label": least.label.value,
            "upper_arithmetic": least.arithmetic.value,
        }
    return row


def _least(bounds: list[UpperBound]) -> UpperBound | None:
    """The least bound; one that is not in plain floats where it says the same."""
    least = min(bounds, key=lambda each: each.epsilon_upper, default=None)
    if least is None or least.arithmetic is not Arithmetic.FLOATS:
        return least
    same = (each for each in bounds if math.isclose(each.epsilon_upper, least.epsilon_upper, rel_tol=1e-9, abs_tol=0.0))
    return next((each for each in same if each.arithmetic is not Arithmetic.FLOATS), least)


def _near(one: float, other: float) -> bool:
    """Whether two deltas are the same: an exact loss at one delta is none at another."""
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=0.0)


def _epsilon(claim: Claim, delta: float) -> float | None:
    try:
        return float(claim.epsilon_at(delta))
    except (ArithmeticError, ValueError):  # a claim that is no promise at this delta
        return None
