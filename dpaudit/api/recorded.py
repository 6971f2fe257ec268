"""Recorded noise: what a mechanism draws on one dataset, played again on its neighbour. Leads, and no verdict."""

from collections.abc import Mapping
from typing import Any

from dpaudit.adapters.adapted import Adapted
from dpaudit.api.audits import by_name, pose
from dpaudit.auditing import Runner
from dpaudit.claims import Claim, PureDP, Relation
from dpaudit.execution.engine import Engine
from dpaudit.results.recorded import NoiseRecord


@by_name
def record_noise(
    mechanism: Any,
    pair: Any,
    *,
    claim: Claim | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    relation: Relation | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    name: str = "",
    seed: int = 0,
    run_timeout_s: float | None = None,
    user: str | int | None = None,
    isolation: str | None = None,
) -> NoiseRecord:
    """What replays of recorded draws tell of a mechanism on a pair, in a process of its own: leads, and no verdict.

    The mechanism runs some 45 times. Its draws on the first dataset are played again on the second; what then differs
    more than the claim allows is a lead, if these draws are its only randomness. Without a claim the loss of the pair
    is told, where it is understood. The keywords are those of `audit`, which refutes by counts what a lead suspects.

    Raises `InvalidSpec` for a question that cannot be asked, and `UnsoundAudit` where the runs end their process.

    >>> def noisy_sum(rows, rng):
    ...     return sum(rows) + rng.laplace(scale=1.0)
    >>> print(record_noise(noisy_sum, ([2, 1], [1]), epsilon=1.0).worst.loss)
    2.0
    """
    given = locals()
    stated = claim is not None or epsilon is not None or delta > 0.0 or isinstance(mechanism, Adapted)
    asked = {key: value for key, value in given.items() if key != "isolation"}
    question = pose(**asked if stated else {**asked, "claim": PureDP(0.0)})
    with Engine(1, isolation=isolation) as engine:
        (record,) = Runner(engine).recorded(question, claimed=stated)
    return record
