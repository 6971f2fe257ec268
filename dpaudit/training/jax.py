"""Gradient canaries in a training by jax_privacy: its own clipping, sums and noise are what runs.

Its `clipped_grad` and its privatizer get one leaf more, with a coordinate for each canary.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.training.canaries import TOO_LONG, GradientCanaries

AT_ONCE = 250  # canaries whose gradients are in memory together
OWN = ("l2_clip_norm", "rescale_to_unit_norm", "normalize_by", "nan_safe", "dtype")  # what clips canaries too


class WithCanaries(NamedTuple):
    """A sum of clipped gradients, of the examples and along each canary; JAX takes it for a tree."""

    gradients: Any
    canaries: Any


class JaxCanaries(GradientCanaries):
    """Gradient canaries in the steps of a training by jax_privacy.

    `clipped_grad` takes the place of `jax_privacy.clipped_grad`, and `privatizer` wraps the one that adds the noise;
    the optimizer gets the gradients that it got before. With `jax.jit` the hook is called back in the order of the
    steps; under `jax.vmap` it cannot be.

    `included` and `rng` are those that `train` was called with, `sample_rate` is what the accountant was told (1.0 for
    full batches), and `noise_multiplier` the noise over the sensitivity, as claimed: it makes better scores where
    `sample_rate` is below 1, and is not looked at otherwise. A canary is ten times as long as the clip norm. Where the
    noise of steps depends on each other (a matrix privatizer), coins for each step certify nothing: audit the run.

        def train(included, rng):
            canaries = JaxCanaries(included, rng, sample_rate=1.0)
            gradient = canaries.clipped_grad(loss, l2_clip_norm=1.0)
            privatizer = canaries.privatizer(gaussian_privatizer(stddev=5.0, prng_key=int(rng.integers(2**31))))
            ...  # the training as it was
            return canaries.scores()
    """

    def __init__(
        self, included: Any, rng: np.random.Generator, *, sample_rate: float, noise_multiplier: float | None = None
    ) -> None:
        super().__init__(included, rng, clip_norm=1.0, sample_rate=sample_rate, noise_multiplier=noise_multiplier)
        self._bound = 1.0  # what one canary may add to a sum
        self._broken: DpAuditError | None = None

    def clipped_grad(
        self, loss: Callable[..., Any], *args: Any, using: Callable[..., Any] | None = None, **options: Any
    ) -> Any:
        """`jax_privacy.clipped_grad(loss, ...)`, whose gradients are a `WithCanaries` with those of the canaries.

        `using` is another function like it, as the `clipped_grad` of an execution plan.
        """
        import jax
        from jax.experimental import io_callback

        if using is None:
            import jax_privacy

            using = jax_privacy.clipped_grad
        clipped = using(loss, *args, **options)
        own = {name: options[name] for name in OWN if name in options} | {"microbatch_size": AT_ONCE}
        # a loss whose gradient is as long as `length`, along one coordinate
        along = using(lambda along, place, length: (along[place] * length).sum(), batch_argnums=(1, 2), **own)
        self._bound = validate.positive("the sensitivity of clipped_grad", float(clipped.l2_norm_bound))
        length = TOO_LONG * options.get("l2_clip_norm", 100.0)
        places = np.pad(np.arange(self.count), (0, -self.count % AT_ONCE))  # whole microbatches, the last with zeros
        shape = jax.ShapeDtypeStruct(places.shape, np.dtype("float32"))
        summed = jax.jit(lambda lengths: along(jax.numpy.zeros(self.count), places, lengths))

        def lengths() -> Any:
            norms = np.zeros(places.size, np.float32)
            self._kept(lambda: norms.__setitem__(self.drawn(), length))
            return norms

        def joined(*args: Any, **kwargs: Any) -> Any:
            given = clipped(*args, **kwargs)
            canaries = summed(io_callback(lengths, shape, ordered=True))
            return (WithCanaries(given[0], canaries), given[1]) if clipped.has_aux else WithCanaries(given, canaries)

        return dataclasses.replace(clipped, fun=joined)

    def privatizer(self, privatizer: Any) -> Any:
        """The privatizer, which adds its noise to the canaries too: what it releases along them is kept as scores."""
        import jax
        from jax.experimental import io_callback

        def init(params: Any) -> Any:
            return privatizer.init(WithCanaries(params, jax.numpy.zeros(self.count)))

        def update(gradients: Any, state: Any, params: Any = None) -> Any:
            if not isinstance(gradients, WithCanaries):
                raise InvalidSpec("gradients have no canaries in them: make them by canaries.clipped_grad(loss, ...)")
            noisy, state = privatizer.update(gradients, state)
            io_callback(self._read, None, noisy.canaries, ordered=True)
            return noisy.gradients, state

        return type(privatizer)(init, update)

    def scores(self) -> Reals:
        """One score a canary, or (steps, canaries) of them, after all steps are done."""
        import jax

        jax.effects_barrier()
        if self._broken is not None:
            raise self._broken
        return super().scores()

    def _read(self, values: Any) -> None:
        self._kept(lambda: self.record(np.asarray(values), 1.0 / self._bound))

    def _kept(self, call: Callable[[], object]) -> None:
        """Calls; an error is kept for the end, as one raised inside a compiled step would come out as JAX's."""
        if self._broken is None:
            try:
                call()
            except DpAuditError as error:
                self._broken = error
