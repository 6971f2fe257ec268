"""Canaries that enter a private training as gradients, each along a coordinate of its own, or as inputs.

Clipping, summing and adding noise are the training's own; the coordinates of what it releases are the scores (Nasr et
al. 2023, arXiv:2302.07956; many in one training: Steinke, Nasr & Jagielski 2023, arXiv:2305.08846).
"""

import math
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bools, Places, Reals
from dpaudit.errors import InvalidSpec, UnsoundAudit

RATE: ContextVar[float | None] = ContextVar("RATE", default=None)  # at which the audit of a step counts on canaries
NAME = "canaries"  # their entry, where gradients are a mapping
TOO_LONG = 10.0  # times the clip norm: how long a canary is, so that a step that does not clip shows


class GradientCanaries:
    """Gradient canaries of one training, and what its steps released along them.

    `included` says which are in: bools of shape (canaries,), or (steps, canaries) with a coin of its own for each
    step. A canary that is in takes part in a step with probability `sample_rate`, the rate that the privacy of the
    training was accounted with. `clip_norm` is the norm that gradients are clipped to, `norm` that of a canary before
    it is clipped (ten times as much). With `noise_multiplier`, the noise over the clip norm as claimed, the score of
    a canary in the whole training is its log-likelihood ratio if that were true; without it, the sum over the steps.
    Either is a valid score, whatever the noise is.

    Raises `InvalidSpec` for values that cannot be used, and `UnsoundAudit` where the training breaks down.

    >>> canaries = GradientCanaries([True, False], np.random.default_rng(0), clip_norm=1.0, sample_rate=1.0)
    >>> canaries.beside(np.array([[3.0, 4.0]]))  # one example; one canary is in
    array([[ 3.,  4.,  0.,  0.],
           [ 0.,  0., 10.,  0.]])
    >>> canaries.read(np.array([0.6, 0.8, 1.0, 0.0]))  # the clipped sum: the training goes on with its own part
    array([0.6, 0.8])
    >>> canaries.scores()
    array([1., 0.])
    """

    def __init__(
        self,
        included: Any,
        rng: np.random.Generator,
        *,
        clip_norm: float,
        sample_rate: float,
        norm: float | None = None,
        noise_multiplier: float | None = None,
    ) -> None:
        self.included: Bools = np.asarray(included, dtype=bool)
        self.clip_norm = validate.positive("clip_norm", clip_norm)
        self.sample_rate = validate.probability("sample_rate", sample_rate)
        asked = RATE.get()
        if asked is not None and not math.isclose(asked, self.sample_rate, rel_tol=1e-3):
            raise InvalidSpec(
                f"canaries join a step at {sample_rate=}, and the audit has {asked:g}: give both the same"
            )
        self.norm = TOO_LONG * self.clip_norm if norm is None else validate.positive("norm", norm)
        self.noise_multiplier = noise_multiplier
        self.count = int(self.included.shape[-1])
        self._rng = rng
        self._steps = 0
        self._in_step: Places | None = None
        self._sum = np.zeros(self.count)
        self._rows: list[Reals] = []

    def drawn(self) -> Places:
        """The canaries that take part in the step that comes; none from the second call of a step on.

        Gradients may come in several pieces before a step is taken: the canaries are in the first.
        """
        if self._in_step is not None:
            return self._in_step[:0]
        each_step = self.included.ndim == 2
        if each_step and self._steps == len(self.included):
            raise InvalidSpec(f"the training takes more steps than there are coins for, {self._steps}: give steps=...")
        member = self.included[self._steps] if each_step else self.included
        if self.sample_rate < 1.0:
            member = member & (self._rng.random(self.count) < self.sample_rate)
        self._in_step = np.flatnonzero(member)
        return self._in_step

    def beside(self, gradients: Any) -> Any:
        """The per-example gradients with a row for each canary that takes part.

        `gradients` is an array or tensor of shape (examples, parameters), which gets a column for each canary; or a
        mapping of names to shapes (examples, ...), which gets an entry "canaries".
        """
        places = self.drawn()
        if isinstance(gradients, Mapping):
            longer = {name: longer_by(len(places), each) for name, each in gradients.items()}
            first = next(iter(gradients.values()))
            return longer | {NAME: self.rows(len(first), places, first)}
        n, d = gradients.shape
        wide = self.rows(n, places, gradients, d)
        wide[:n, :d] = gradients
        return wide

    def rows(self, before: int, places: Places, like: Any, columns: int = 0) -> Any:
        """`before` rows of zeros and one for each of `places`: `columns` zeros, then the canaries' own columns."""
        longer = zeros_like(like, (before + len(places), columns + self.count))
        longer[range(before, before + len(places)), (columns + places).tolist()] = self.norm
        return longer

    def read(self, released: Any, divided_by: float = 1.0) -> Any:
        """What a step released, noise and all, without the canaries' part, which is kept as their scores.

        `released` has the columns (or the entries) of what `beside` gave. `divided_by` is the batch size where it is
        a mean; it matters for the likelihood ratio alone.
        """
        if isinstance(released, Mapping):
            self.record(released[NAME], divided_by)
            return {name: each for name, each in released.items() if name != NAME}
        self.record(released[-self.count :], divided_by)
        return released[: -self.count]

    def record(self, values: Any, divided_by: float = 1.0, noise_multiplier: float | None = None) -> None:
        """Keeps what one step released along each canary; `noise_multiplier` where steps differ in it."""
        scores = np.asarray(values.tolist(), dtype=float).ravel() * (divided_by / self.clip_norm)
        step = f"step {self._steps + 1}"
        if self._in_step is None:
            raise UnsoundAudit(f"{step} was read before its gradients had canaries; put them in first")
        if scores.size != self.count:
            raise UnsoundAudit(f"{step} released {scores.size} numbers for {self.count} canaries")
        if (wrong := np.flatnonzero(~np.isfinite(scores))).size:
            raise UnsoundAudit(f"{step} released {scores[wrong[0]]} along canary {wrong[0]}: did the model become NaN?")
        self._steps, self._in_step = self._steps + 1, None
        if self.included.ndim == 2:
            self._rows.append(scores)
            return
        self._sum += log_ratio(scores, self.sample_rate, noise_multiplier or self.noise_multiplier)

    def scores(self) -> Reals:
        """One score a canary, higher where it is more likely in; (steps, canaries) of them with coins for each step."""
        if not self._steps:
            raise UnsoundAudit("no step was taken with the canaries: the hook is on another optimizer, or never called")
        if self.included.ndim == 1:
            return self._sum
        if self._steps < len(self.included):
            raise UnsoundAudit(
                f"the training took {self._steps} steps, and has coins for {len(self.included)}: give steps=..."
            )
        return np.array(self._rows)


def log_ratio(released: Reals, sample_rate: float, noise_multiplier: float | None) -> Reals:
    """The log-likelihood ratio of a canary in a Poisson-sampled Gaussian step, or `released` without noise known.

    `released` is in units of the clip norm: its law is N(0, noise^2) without the canary, and with it a mixture that
    has N(1, noise^2) in it with probability `sample_rate`.

    >>> log_ratio(np.array([0.5, 1.5]), 1.0, 2.0)
    array([0.  , 0.25])
    """
    if not noise_multiplier:
        return released
    missed = math.log1p(-sample_rate) if sample_rate < 1.0 else -math.inf
    met = math.log(sample_rate) if sample_rate > 0.0 else -math.inf
    return np.logaddexp(missed, met + (released - 0.5) / noise_multiplier**2)


def zeros_like(like: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape`, an array or a tensor as `like` is."""
    return np.zeros(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(shape)


def longer_by(rows: int, gradients: Any) -> Any:
    """Per-example gradients, shape (examples, ...), with so many rows of zeros after them."""
    longer = zeros_like(gradients, (len(gradients) + rows, *gradients.shape[1:]))
    longer[: len(gradients)] = gradients
    return longer


def own_features(inputs: Reals, count: int, size: float) -> tuple[Reals, Reals]:
    """`inputs` of shape (examples, features) with a feature for each of `count` input canaries; and the canaries.

    A canary is an example like another: those that are in are put into the data, so that they go through the user's
    own loader, model and loss. It has its own feature alone, of `size`, large enough that its gradient is clipped.

    >>> own_features(np.array([[1.0, 2.0]]), 2, 9.0)
    (array([[1., 2., 0., 0.]]), array([[0., 0., 9., 0.],
           [0., 0., 0., 9.]]))
    """
    n, features = inputs.shape
    wide = np.zeros((n + count, features + count), dtype=inputs.dtype)
    wide[:n, :features] = inputs
    wide[n:, features:] = size * np.eye(count)
    return wide[:n], wide[n:]


def margins(logits: Any, labels: Any) -> Reals:
    """How sure a model is of each label, as a score: log-odds, from logits (canaries, classes) and labels (canaries,).

    >>> margins([[0.0, 0.0], [2.0, 0.0]], [0, 0])
    array([0., 2.])
    """
    values = np.array(logits, dtype=float)
    each = np.arange(len(values)), np.asarray(labels)
    own: Reals = values[each]
    values[each] = -np.inf
    others: Reals = np.logaddexp.reduce(values, axis=1)
    return np.asarray(own - others)
