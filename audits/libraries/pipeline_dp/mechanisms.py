"""PipelineDP on its LocalBackend, called as its example without frameworks does. The library owns its randomness.

A dataset is the list of its records: who, in which partition, which value; one user gives at most one record. NaN,
which JSON has not, is the text "nan".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import pipeline_dp

Record = tuple[int, str, float]
Entry = tuple[str, dict[str, float]]  # a partition, its metrics


def metrics(
    records: Iterable[Record],
    *,
    epsilon: float,
    names: Sequence[str],
    bounds: tuple[float, float] = (0.0, 1.0),
    public: Sequence[str] | None = ("home",),
    delta: float = 0.0,
) -> list[Entry]:
    """The entries of partitions in the order in which the engine gives them; without `public` it selects them."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[_metric(name) for name in names],
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN if delta and public else pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=bounds[0],
        max_value=bounds[1],
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(1),
        value_extractor=lambda record: float(record[2]),
    )
    result = engine.aggregate(records, params, extractors, public_partitions=list(public) if public else None)
    accountant.compute_budgets()
    return [(partition, entry._asdict()) for partition, entry in result]


def metrics_by_name(records: Sequence[Record], **asked: Any) -> list[Entry]:
    """The same, in the order of the partitions' names."""
    return sorted(metrics(records, **asked), key=itemgetter(0))


def metrics_of_an_iterator(records: Sequence[Record], **asked: Any) -> list[Entry]:
    """The same of an iterator, which is true even where it has no record to give."""
    return metrics(iter(records), **asked)


def moments(records: Sequence[Record], *, epsilon: float, bounds: tuple[float, float]) -> tuple[float, float, float]:
    """Count, sum and sum of squares, worked out from the variance, the mean and the count that are given out."""
    asked = ("VARIANCE", "MEAN", "COUNT")
    ((_, out),) = metrics(records, epsilon=epsilon, names=asked, bounds=bounds)
    divisor, from_middle = max(1.0, out["count"]), out["mean"] - (bounds[0] + bounds[1]) / 2
    return out["count"], from_middle * divisor, (out["variance"] + from_middle**2) * divisor


def _metric(name: str) -> pipeline_dp.Metric:
    return pipeline_dp.Metrics.PERCENTILE(50) if name == "MEDIAN" else getattr(pipeline_dp.Metrics, name)


def of_one_more(output: tuple[float, float, float]) -> bool:
    """Count, sum and sum of squares are all at least what they are with the eleventh record."""
    return output[0] >= 11 and output[1] >= 1 and output[2] >= 1


def is_nan(output: list[Entry]) -> bool:
    """The sum is NaN."""
    return math.isnan(output[0][1]["sum"])


def was_refused(output: object) -> bool:
    """ValueError was raised."""
    return isinstance(output, ValueError)


def here_is_second(output: list[Entry]) -> bool:
    """Partition 'away' stands before partition 'here'."""
    return [entry[0] for entry in output].index("away") == 0
