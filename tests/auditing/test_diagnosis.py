"""Kinds of broken functions: each has its diagnosis and, as event, what a maintainer would name; sound twins have none.

The audits are seeded. A sound twin is refuted by chance with probability at most 3e-8, all of them with 1e-6. Another
seed would change a diagnosis where quantiles of search runs stray by four deviations, about once in 10,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from dpaudit.results.wording.diagnosis import diagnosis
from dpaudit.results.wording.first import sentence
from dpaudit.results.wording.sections import full_text
from tests.cases import for_each

Run = Callable[[Any, np.random.Generator], Any]
THREE, TWO = [1.0, 2.0, 3.0], [1.0, 2.0]
RUNS = 2000
SURE = 1.0 - 3e-8


def _noise(rng: np.random.Generator, scale: float = 1.0) -> float:
    return float(rng.laplace(scale=scale))


def _count(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + _noise(rng)


def _fixed_seed(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + float(np.random.default_rng(7).laplace())


def _no_noise(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": len(rows), "sum": sum(rows)}


def _sometimes(rows: list[Any], rng: np.random.Generator) -> float:
    return _count(rows, rng) if rng.random() < 0.7 else float(len(rows))


def _early_return(rows: list[Any], rng: np.random.Generator) -> float:
    return _count(rows, rng) if len(rows) > 2 else 0.0


def _by_category(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + _noise(rng) for each in dict.fromkeys(rows)}


def _all_categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + _noise(rng) for each in "abc"}


def _warns(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": _count(rows, rng), **({"many": 1.0} if len(rows) > 2 else {})}


def _as_dict(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": _count(rows, rng), "many": 0.0}


def _by_row(rows: list[Any], rng: np.random.Generator) -> list[float]:
    return [_noise(rng) for _ in rows]


def _three(rows: list[Any], rng: np.random.Generator) -> list[float]:
    return [_noise(rng) for _ in range(3)]


def _in_order(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {each: _noise(rng) for each in (("a", "b") if len(rows) > 2 else ("b", "a"))}


def _rounded(rows: list[Any], rng: np.random.Generator) -> float | int:
    return _count(rows, rng) if len(rows) > 2 else round(_count(rows, rng))


def _raises(rows: list[Any], rng: np.random.Generator) -> float:
    if len(rows) < 3:
        raise ValueError("too few rows")
    return _count(rows, rng)


def _says(rows: list[Any], rng: np.random.Generator) -> float:
    if rng.random() < 0.5:
        raise ValueError(f"sum {sum(rows)} is out of range")
    return 0.0


def _hides(rows: list[Any], rng: np.random.Generator) -> float:
    if rng.random() < 0.5:
        raise ValueError("out of range")
    return 0.0


def _none(rows: list[Any], rng: np.random.Generator) -> float | None:
    return _count(rows, rng) if len(rows) > 2 else None


def _not_a_number(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": _count(rows, rng), "spread": _noise(rng) if len(rows) > 2 else float("nan")}


def _small_scale(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + _noise(rng, 0.3)


def _scale_of_data(rows: list[float], rng: np.random.Generator) -> float:
    return _noise(rng, max(rows))


def _public_scale(rows: list[float], rng: np.random.Generator) -> float:
    return _noise(rng, 30.0)


def _sum(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) + _noise(rng, 3.0)


def _clipped_sum(rows: list[float], rng: np.random.Generator) -> float:
    return sum(min(max(each, 0.0), 3.0) for each in rows) + _noise(rng, 3.0)


def _uniform(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + float(rng.uniform(-4.0, 4.0))


def _normal(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.normal(scale=1.5, size=runs)


def _wide_normal(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.normal(scale=6.0, size=runs)


def _own_size(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) / len(rows) + _noise(rng, 1.0 / len(rows))


def _public_size(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) / 2 + _noise(rng, 1.0)


def _size(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"mean": _noise(rng), "n": len(rows)}


def _one_draw(rows: list[Any], rng: np.random.Generator) -> list[float]:
    noise = _noise(rng, 3.0)
    return [len(rows) + noise, 2.0 * len(rows) + noise]


def _two_draws(rows: list[Any], rng: np.random.Generator) -> list[float]:
    return [len(rows) + _noise(rng, 3.0), 2.0 * len(rows) + _noise(rng, 3.0)]


def _candidates(rows: list[str], rng: np.random.Generator) -> str:
    return str(rng.choice(list(dict.fromkeys(rows))))


def _any_letter(rows: list[str], rng: np.random.Generator) -> str:
    return str(rng.choice(["a", "b", "c"]))


def _response(value: int, rng: np.random.Generator) -> int:
    return value if rng.random() < 0.9 else 1 - value


def _fair_response(value: int, rng: np.random.Generator) -> int:
    return value if rng.random() < 0.6 else 1 - value


def _four(value: float, rng: np.random.Generator) -> list[float]:
    return [value + _noise(rng) for _ in range(4)]


def _four_shared(value: float, rng: np.random.Generator) -> list[float]:
    return [value + _noise(rng, 4.5) for _ in range(4)]


def _bits(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


def _grid(data: int, runs: int, rng: np.random.Generator) -> Any:
    return np.round((data + rng.laplace(scale=1.5, size=runs)) * 16.0) / 16.0


def _shuffled(rows: list[float], rng: np.random.Generator) -> list[float]:
    return [float(each) for each in rng.permutation(rows)]


def _three_shuffled(rows: list[float], rng: np.random.Generator) -> list[float]:
    return _shuffled(THREE, rng)


def _cut_off(data: int, runs: int, rng: np.random.Generator) -> Any:
    half = -np.log1p(-rng.random(runs) * (1.0 - np.exp(-3.0)))  # Laplace noise redrawn until it is at most 3
    return data + half * rng.choice([-1.0, 1.0], runs)


def _whole(rows: list[Any], rng: np.random.Generator) -> int:
    return round(len(rows) + _noise(rng, 0.3))


def _die(rows: list[Any], rng: np.random.Generator) -> int:
    return len(rows) + int(rng.integers(-5, 6))


def _whole_count(rows: list[Any], rng: np.random.Generator) -> int:
    return round(_count(rows, rng))


def _new_word(value: int, rng: np.random.Generator) -> str:
    return "c" if value and rng.random() < 0.015 else str(rng.choice(["a", "b"]))


def _same_words(value: int, rng: np.random.Generator) -> str:
    return "c" if rng.random() < 0.015 else str(rng.choice(["a", "b"]))


def _clamped(rows: list[float], rng: np.random.Generator) -> float:
    return max(0.0, sum(rows) + _noise(rng))


def _clamped_widely(rows: list[float], rng: np.random.Generator) -> float:
    return max(0.0, sum(rows) + _noise(rng, 99.0))


def _capped(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"sum": min(100.0, sum(rows) + 101.0 + _noise(rng))}


def _capped_widely(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"sum": min(100.0, sum(rows) + 101.0 + _noise(rng, 99.0))}


def _codes(rows: list[str], rng: np.random.Generator, known: str = "") -> list[int]:
    """The codes of the last four, half of them random: by order of appearance, where the letters are not known."""
    order = list(dict.fromkeys([*known, *rows]))
    return [int(rng.integers(3)) if rng.random() < 0.5 else order.index(each) for each in rows[-4:]]


def _known_codes(rows: list[str], rng: np.random.Generator) -> list[int]:
    return _codes(rows, rng, "abc")


def _one_vector(rows: list[float], rng: np.random.Generator, own: float = 0.0) -> dict[str, list[float]]:
    """The gradients of two layers, with one noise vector for both."""
    noise, gradient = rng.normal(size=2) * 5.0, float(np.clip(sum(rows), -1.0, 1.0))
    return {"w": (gradient + noise).tolist(), "b": (noise + own * rng.normal(size=2)).tolist()}


def _two_vectors(rows: list[float], rng: np.random.Generator) -> dict[str, list[float]]:
    return _one_vector(rows, rng, 5.0)


ROWS = (THREE, TWO)
FIRST_LEAVES = (["a", *"bbccaacab"], [*"bbccaacab"])
LETTERS = (["a", "b", "c"], ["a", "b"])


@for_each(
    ("broken", "sound", "pair", "kind", "event"),
    [
        (_fixed_seed, _count, ROWS, "constant output", "output == "),
        (_no_noise, _as_dict, ROWS, "constant output", " == 2"),
        (_sometimes, _count, ROWS, "answer without noise", "output == "),
        (_early_return, _count, ROWS, "constant on one dataset", "output == 0"),
        (_by_category, _all_categories, LETTERS, "keys", "there is no output['c']"),
        (_warns, _as_dict, ROWS, "keys", "there is no output['many']"),
        (_by_row, _three, ROWS, "length", "len(output) == 2"),
        (_in_order, _as_dict, ROWS, "order", "order(output) is "),
        (_rounded, _count, ROWS, "type", "type(output) is type int"),
        (_raises, _count, ROWS, "failure", "output is raised ValueError"),
        (_says, _hides, ROWS, "message", "message(output) is 'sum "),
        (_none, _count, ROWS, "failure", "output is None"),
        (_not_a_number, _as_dict, ROWS, "failure", "output['spread'] is nan"),
        (_small_scale, _count, ROWS, "location", "output <= "),
        (_scale_of_data, _public_scale, ([1.0, 30.0], [1.0]), "scale", "output "),
        (_sum, _clipped_sum, ([1.0, 2.0, 90.0], TWO), "location", "output "),
        (_uniform, _count, ROWS, "bounded noise", "output "),
        (dpaudit.batched(_normal), dpaudit.batched(_wide_normal), (1, 0), "tail", "output "),
        (_own_size, _public_size, ([0.5] * 5, [0.5]), "number of records", "output "),
        (_size, _as_dict, ROWS, "number of records", "output['n'] == 2"),
        (_one_draw, _two_draws, ROWS, "shared noise", "output[0] - output[1] "),
        (_candidates, _any_letter, LETTERS, "support", "output is 'c'"),
        (_response, _fair_response, (0, 1), "probabilities", "output == "),
        (_sum, _clipped_sum, ([1.0, 2.0, float("-inf")], TWO), "infinity", "output == -inf"),
        (_shuffled, _three_shuffled, ROWS, "length", "output"),
        (dpaudit.batched(_cut_off), dpaudit.batched(_wide_normal), (1, 0), "bounded noise", "output "),
        (_whole, _whole_count, ROWS, "location", "output "),
        (_die, _whole_count, ROWS, "bounded noise", "output == "),
        (_four, _four_shared, (0.0, 1.0), "location", "score of "),
        (_clamped, _clamped_widely, ([99.0, -1.0], [-1.0]), "location", "output"),
        (_capped, _capped_widely, ([-99.0], [0.0]), "location", "output['sum']"),
        (_codes, _known_codes, FIRST_LEAVES, "probabilities", "score of "),
        (_one_vector, _two_vectors, ([1.0], []), "shared noise", " == output['w']"),
        (dpaudit.batched(_bits), dpaudit.batched(_grid), (0, 1), "bits of floats", ""),
    ],
)
def test_a_broken_function_has_its_diagnosis_and_a_plain_event(
    broken: Any, sound: Any, pair: Any, kind: str, event: str
) -> None:
    batched = isinstance(broken, type(dpaudit.batched(_bits)))
    settings = {"pair": pair, "epsilon": 1.0, "runs": 60_000 if batched else RUNS, "n_jobs": 1, "seed": 5}
    settings["representation"] = batched and kind == "bits of floats"
    found = dpaudit.audit(broken, confidence=0.9, **settings)  # constant outputs take fewer fresh processes then
    told = found.diagnosis
    assert told is not None, found
    assert told.kind == kind, (told.sentence, str(found.witness.event))
    assert event in str(found.witness.event)
    assert (found.plain is not None) == ("score" in event)
    text = full_text(found)
    assert all(sentence(line) in text for line in told.lines)
    assert ("at most 1 in 5." in text) == settings["representation"], "two statements, each at a level of 0.1"
    assert dpaudit.audit(sound, confidence=SURE, **settings).diagnosis is None


def test_the_examples_are_kept_with_the_result(tmp_path: Path) -> None:
    found = dpaudit.audit(_by_category, pair=LETTERS, epsilon=1.0, runs=RUNS, n_jobs=1, seed=5)
    told = found.explain()
    assert (len(told.first), len(told.second)) == (8, 8)
    assert told.hits == (0, told.runs[1])
    assert all("'c': " in each for each in told.first), "none is inside: others, to compare with"
    assert all(each.startswith("{'a': ") and "'c'" not in each for each in told.second)
    assert "first, outside  {'a': " in str(told)
    assert told.diagnosis == found.diagnosis
    again = dpaudit.load(found.save(tmp_path / "result.json"))
    assert again == found
    assert again.explain() == told
    assert found.to_dict()["diagnosis"]["kind"] == "keys"


def test_a_kind_that_does_not_fit_is_not_guessed() -> None:
    """Clipping at 0 changes the shape of the outputs: nothing is said of scale or location."""

    def clipped(rows: list[Any], rng: np.random.Generator) -> float:
        return max(0.0, len(rows) - 2 + _noise(rng, 0.4))

    def more_zeros(value: int, rng: np.random.Generator) -> float:
        return 0.0 if rng.random() < (0.2 if value else 0.01) else float(rng.integers(1, 1000))

    def one_draw(value: int, rng: np.random.Generator) -> tuple[float, float]:
        """Each entry alone keeps the claim, so that nothing is said of its noise."""
        noise = _noise(rng)
        return noise, noise + (rng.random() < (0.9 if value else 0.1))

    found = dpaudit.audit(clipped, pair=ROWS, epsilon=1.0, runs=RUNS, n_jobs=1, seed=5)
    for each in (
        found,
        *(dpaudit.audit(f, pair=(1, 0), epsilon=1.0, runs=5000, seed=5) for f in (more_zeros, one_draw)),
    ):
        assert each.refuted
        assert each.diagnosis is None
    assert diagnosis(replace(found, typical=None)) is None
    assert "\ndiagnosis " not in str(found)


def test_the_bound_of_a_plain_event_is_at_most_that_of_the_witness() -> None:
    found = dpaudit.audit(_four, pair=(0.0, 1.0), epsilon=1.0, runs=RUNS, n_jobs=1, seed=5)
    assert found.plain is not None
    made, first = found.plain.certificate, found.certificate
    assert (made.delta, made.confidence, found.plain.evidence.runs) == (
        first.delta,
        first.confidence,
        found.evidence.runs,
    )
    low = replace(first, lower=1.2, epsilon_lower=1.2)
    assert "alone it gives epsilon >= 1.20 with" in str(replace(found, certificate=low))
