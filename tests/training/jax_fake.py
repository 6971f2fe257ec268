"""The shape of jax_privacy 2.0 and of what its hook asks of JAX, on numpy: derivatives are differences, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class BoundedSensitivityCallable:
    """`jax_privacy.clipping.BoundedSensitivityCallable`."""

    fun: Callable[..., Any]
    l2_norm_bound: float
    has_aux: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)


class GradientTransformation(NamedTuple):
    """`optax.GradientTransformation`."""

    init: Callable[..., Any]
    update: Callable[..., Any]


def clipped_grad(
    fun: Callable[..., float],
    has_aux: bool = False,
    *,
    l2_clip_norm: float = 1.0,
    rescale_to_unit_norm: bool = False,
    normalize_by: float = 1.0,
    batch_argnums: int | tuple[int, ...] = 1,
    microbatch_size: int | None = None,
) -> BoundedSensitivityCallable:
    """The sum of the clipped gradients of each example; `fun` is linear, so differences are exact."""

    def summed(parameters: Any, *batch: Any) -> Any:
        total = np.zeros(len(parameters))
        for example in zip(*batch, strict=True):
            alone = [np.asarray(part)[None] for part in example]  # as it has it: a batch of one
            gradient = np.array([fun(unit, *alone) for unit in np.eye(len(parameters))])
            total += gradient * min(1.0, l2_clip_norm / max(1e-9, float(np.linalg.norm(gradient))))
        total /= (l2_clip_norm if rescale_to_unit_norm else 1.0) * normalize_by
        return (total, "values") if has_aux else total

    assert microbatch_size is None or len(batch_argnums) == 2  # type: ignore[arg-type]
    bound = (1.0 if rescale_to_unit_norm else l2_clip_norm) / normalize_by
    return BoundedSensitivityCallable(summed, bound, has_aux)


def privatizer(stddev: float, rng: np.random.Generator) -> GradientTransformation:
    """Adds normal noise to every leaf; the state is how often it did."""

    def update(gradients: Any, state: int, params: Any = None) -> Any:
        noisy = [leaf + rng.normal(scale=stddev, size=len(leaf)) for leaf in gradients]
        return type(gradients)(*noisy), state + 1

    return GradientTransformation(lambda params: 0 * len(params), update)


def modules() -> dict[str, Any]:
    """What stands in `sys.modules` for the libraries."""

    def io_callback(call: Callable[..., Any], shape: Any, *args: Any, ordered: bool) -> Any:
        assert ordered
        found = call(*args)
        assert shape is None or (found.shape, found.dtype) == (shape.shape, shape.dtype)
        return found

    made: dict[str, Any] = {name: ModuleType(name) for name in ("jax", "jax.experimental", "jax_privacy")}
    vars(made["jax"]).update(
        ShapeDtypeStruct=lambda shape, dtype: SimpleNamespace(shape=shape, dtype=dtype),
        jit=lambda function: function,
        numpy=np,
        effects_barrier=lambda: None,
    )
    vars(made["jax.experimental"]).update(io_callback=io_callback)
    vars(made["jax_privacy"]).update(clipped_grad=clipped_grad)
    return made
