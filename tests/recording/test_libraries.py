"""Recorded noise of libraries: torch, JAX, diffprivlib, where they are installed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpaudit.claims import PureDP
from dpaudit.recording.replays import analysed
from dpaudit.results.recorded import NoiseRecord
from tests.cases import for_each

ROWS, OTHERS = [1.0, 1.0, 1.0], [1.0, 1.0]


def found(mechanism: Any) -> NoiseRecord:
    return analysed(mechanism, ROWS, OTHERS, claim=PureDP(1.0))


@pytest.mark.filterwarnings("ignore")
def test_torch() -> None:
    torch = pytest.importorskip("torch")
    laplace = found(lambda rows, rng: len(rows) + torch.distributions.Laplace(0.0, 0.5).sample().item())
    assert laplace.leads[0].loss == pytest.approx(2.0, rel=1e-4)
    noise = found(lambda rows, rng: torch.tensor(rows).sum() + torch.normal(0.0, 2.0, (2,)))
    assert [each.loss for each in noise.leads] == [math.inf]
    own = found(lambda rows, rng: torch.normal(0.0, 1.0, (1,), generator=torch.Generator().manual_seed(len(rows))))
    assert own.unseen
    assert not own.leads


def test_jax() -> None:
    jax = pytest.importorskip("jax")

    def key(rng: Any) -> Any:
        return jax.random.key(int(rng.integers(2**31)))

    noise = found(lambda rows, rng: len(rows) + 0.5 * jax.random.laplace(key(rng)))
    assert noise.leads[0].loss == pytest.approx(2.0, rel=1e-4)
    traced = found(lambda rows, rng: jax.jit(lambda of: len(rows) + jax.random.laplace(of))(key(rng)))
    assert traced.unseen == ("JAX inside jit, where calls are traced and not run",)
    assert found(lambda rows, rng: len(rows) + jax.random.laplace(jax.random.key(0))).unseen


@for_each("name, keywords, loss", [("Laplace", {}, 2.0), ("Geometric", {}, 2.0)])
def test_diffprivlib(name: str, keywords: dict[str, Any], loss: float) -> None:
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    made = getattr(mechanisms, name)(epsilon=2.0, sensitivity=1, **keywords)
    (lead,) = found(lambda rows, rng: made.randomise(len(rows))).leads
    assert (lead.kind, lead.loss) == ("shift", pytest.approx(loss))
