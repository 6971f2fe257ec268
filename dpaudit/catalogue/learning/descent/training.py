"""One private training as a white box sees it, the noisy gradient sums, and the mistakes that the field has made.

The model is linear with the loss -label <features, w>: its gradients are the same whatever the model is by then, as
those of a canary are that an auditor makes (Nasr et al. 2021, Adversary instantiation). So each sum is normal noise
around one of finitely many vectors, and every loss below is exact. A mistake is a name: it changes one line.
"""

import itertools
import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.learning.descent import ABADI, PARAMETERS, accounted, programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.losses import need, with_and_without
from dpaudit.catalogue.learning.descent.programs import Data, Descent, Record, planned
from dpaudit.catalogue.learning.objective_noise import in_room
from dpaudit.catalogue.noise import Rng
from dpaudit.losses.composing import transcript_epsilon
from dpaudit.losses.distribution import Mixture, repeated_epsilon, step_losses, two_batches

TINY = 1e-300  # a gradient of length 0 is divided by it
MOST = 16  # records that the sampler and the exact losses take: they look at all batches

AVERAGED = ("clip_by_batch", "sampled_size", "last_partial_batch", "expected_size")  # and not the sum
FOR_A_SHARE = (*AVERAGED, "noise_divided_twice")  # the noise is that of an average over `batch_size` records
DEALT = ("shuffled", "last_partial_batch")  # epochs of shuffled records, not Poisson batches

OTHERS: Data = [[[0.0, 0.0], 1.0]] * 2
CANARY: Record = [[20.0, 0.0], 1.0]
SHOWN: dict[str, tuple[Record, Data]] = {  # by a canary, which comes last, and others, where not by these
    "no_clipping": ([[3.0, 0.0], 1.0], OTHERS),
    "layers": ([[20.0, 20.0], 1.0], OTHERS),
    "microbatches": ([[200.0, 0.0], 1.0], [[[-20.0, 0.0], 1.0]]),
    "shuffled": (CANARY, [[[-20.0, 0.0], 1.0]] * 4),
    "padding": ([[0.0, 3.0], 1.0], OTHERS),
    "nan_gradients": ([[math.inf, 0.0], 1.0], OTHERS),
    "batch_norm": ([[200.0, 0.0], 0.0], [[[0.0, 0.0], 1.0]] * 3),
}
HARMLESS = ("noise_first", "expected_size", "clip_factor")
# of each line that is changed: its name and title, why it breaks the claim or not, what is done
MISTAKES = """\
no_clipping: Private training, gradients not clipped
  a gradient is as long as its record makes it, and the noise is for one of length C
  the gradients are summed as they are
clip_by_batch: Private training, the gradient of the batch clipped
  alone in the average a record moves it by up to C, and the noise is for its share, C / batch_size
  the average of the batch is clipped to C, with noise of noise_multiplier C / batch_size
layers: Private training, each layer clipped to the norm of all
  a gradient of length C in each of L layers is sqrt(L) C long, the noise is for C (McMahan et al. 2018, 1812.06210)
  each coordinate is a layer, clipped to C by itself
no_clip_factor: Private training, noise that does not know the clip norm
  a record moves the sum by C, and the noise is for 1 (jax_privacy's pitfalls)
  the noise has the deviation noise_multiplier, whatever C is
noise_divided_twice: Private training, noise divided by the batch size twice
  the noise of an average is added to a sum, where a record weighs batch_size times as much (jax_privacy 383)
  the noise on the sum has the deviation noise_multiplier C / batch_size
microbatches: Private training, averages of microbatches clipped
  a record can turn its microbatch's average round: 2 C, as TF Privacy says (Ponomareva et al. 2023, section 5.6)
  the gradients of a batch are averaged two by two, and each average is clipped
one_seed: Private training, the same seed in every step
  the noise cancels between two steps, and what is left is who was in the batch (jax_privacy's pitfalls)
  the generator of the noise is made anew in each step, from one seed
shuffled: Private training, shuffled batches accounted as Poisson
  a record is once in each epoch, and takes the place of another in a full batch: 2 C (Chua et al. 2024, 2403.17673)
  each epoch deals the shuffled records out in batches of `batch_size`; what is left over sits out
last_partial_batch: Private training, the last batch of an epoch averaged by its own size
  in the short batch that ends an epoch (`drop_last=False`) a record weighs more than 1 / batch_size
  each epoch deals the shuffled records out; each batch is averaged, with noise of noise_multiplier C / batch_size
sampled_size: Private training, divided by the number of records drawn
  in a small batch a record weighs up to 1, and the noise is for 1 / batch_size (opacus 420 asks for it)
  the sum is divided by the size of the batch that was drawn, the noise by `batch_size`
padding: Private training, padding left out of the norm
  what belongs to padding is in the sum, and no clipping sees it (opacus 792, private-transformers 3)
  the last coordinate is that of the padding, and a gradient's norm is that of the others
nan_gradients: Private training, NaN passes the clip
  an infinite gradient times C / norm is NaN, as is each sum that it joins (jax_privacy's pitfalls)
  gradients that are not finite are clipped as all others
batch_norm: Private training, batch normalisation
  one record moves the mean of its batch, and with it each other gradient by up to C (jax_privacy's pitfalls)
  the mean of the batch is taken off its features before the gradients are
noise_first: Private training, the noise added before the gradients
  a sum does not know its order
  the sum starts at its noise, and the clipped gradients are added to that
expected_size: Private training, divided by the expected batch size
  the expected size is public, and the noise is divided with the sum
  sum and noise are divided by `batch_size`
clip_factor: Private training, a millionth in the clip factor
  C / (norm + 1e-6) is below C / norm: no gradient gets longer
  the clip factor is min(1, C / (norm + 1e-6))
"""


def summed(batch: Data, at: Descent, width: int, mistake: str) -> Reals:
    """The clipped gradients of a batch, added up.

    >>> summed([[[3.0, 4.0], 1.0], [[0.5, 0.0], -1.0]], Descent(1.0, 1, clip=1.0), 2, "")
    array([0.1, 0.8])
    """
    features = np.array([record[0] for record in batch], float).reshape(-1, width)
    labels = np.array([record[1] for record in batch], float)
    if mistake == "batch_norm" and len(batch):
        features = features - features.mean(axis=0)
    gradients = labels[:, None] * features
    if mistake == "microbatches":
        gradients = np.array([gradients[i : i + 2].mean(axis=0) for i in range(0, len(batch), 2)]).reshape(-1, width)
    if mistake == "clip_by_batch":
        gradients = gradients.sum(axis=0, keepdims=True) / at.size
    if mistake != "nan_gradients":
        gradients = gradients[np.isfinite(gradients).all(axis=1)]
    seen = gradients[:, :-1] if mistake == "padding" else gradients
    norms = np.abs(gradients) if mistake == "layers" else np.linalg.norm(seen, axis=1, keepdims=True)
    if mistake == "clip_factor":
        norms = norms + 1e-6
    if mistake != "no_clipping":
        with np.errstate(invalid="ignore"):  # infinite times 0
            gradients = gradients * np.minimum(1.0, at.clip / np.maximum(norms, TINY))
    total = gradients.sum(axis=0)
    if mistake in ("sampled_size", "last_partial_batch"):
        return np.asarray(total / max(len(batch), 1))
    return np.asarray(total / at.size if mistake == "expected_size" else total)


def spread(at: Descent, mistake: str) -> float:
    """The standard deviation of the noise on each coordinate."""
    if mistake == "no_clip_factor":
        return at.noise_multiplier
    return at.noise_multiplier * at.clip / (at.size if mistake in FOR_A_SHARE else 1.0)


def _batches(mistake: str) -> tuple[programs.Batches, many.Batches]:
    if mistake not in DEALT:
        return programs.poisson, many.poisson
    whole = mistake == "last_partial_batch"
    return partial(programs.shuffled, whole=whole), partial(many.shuffled, whole=whole)


def training(data: Data, rng: Rng, at: Descent, *, mistake: str = "") -> tuple[float, ...]:
    """One run: the noisy sums of all steps."""
    width, drawn, seed = len(data[0][0]), _batches(mistake)[0](data, rng, at), int(rng.integers(2**63))
    released: list[float] = []
    for batch in itertools.islice(drawn, at.steps):
        source = np.random.default_rng(seed) if mistake == "one_seed" else rng
        noise = source.normal(scale=spread(at, mistake), size=width)
        if mistake == "noise_first":
            total = sum((summed([record], at, width, mistake) for record in batch), noise)
        else:
            total = summed(batch, at, width, mistake) + noise
        released.extend(total.tolist())
    return tuple(released)


def trainings(data: Data, runs: int, rng: Rng, at: Descent, *, mistake: str = "") -> Reals:
    """Many runs: a batch is a number, whose bits say who is in it, and each batch that occurs is added up once."""
    need(len(data) <= MOST, f"there are at most {MOST} records")
    width, records = len(data[0][0]), len(data)
    draw, released = _batches(mistake)[1](rng, records, runs, at), np.empty((at.steps, runs, width))
    for step in range(at.steps):
        numbers, places = np.unique((1 << np.arange(records)) @ draw(step), return_inverse=True)
        sums = [summed(batch_of(data, number), at, width, mistake) for number in numbers.tolist()]
        released[step] = np.array(sums)[places]
        if step == 0 or mistake != "one_seed":
            noise = rng.standard_normal((runs, width)) * spread(at, mistake)
        released[step] += noise
    return np.hstack(list(released))


def batch_of(data: Data, number: int) -> Data:
    """The records whose bits are set."""
    return [record for place, record in enumerate(data) if number >> place & 1]


def _laws(first: Data, second: Data, at: Descent, mistake: str) -> tuple[Mixture, Mixture]:
    """The sum of a step on the dataset with the canary and on that without it, in deviations of the noise."""
    both = sorted((first, second), key=len, reverse=True)
    need(len(both[0]) <= MOST, f"there are at most {MOST} records")
    sums, chances = [], []
    for data in both:
        all_batches = [batch_of(data, number) for number in range(1 << len(data))]
        sums.append(np.array([summed(batch, at, len(data[0][0]), mistake) for batch in all_batches]))
        shares = [at.rate ** len(batch) * (1.0 - at.rate) ** (len(data) - len(batch)) for batch in all_batches]
        chances.append(np.array(shares))
    furthest = max(sums[0], key=lambda total: float(total @ total))
    line = furthest / max(float(np.linalg.norm(furthest)), TINY)
    need(all(np.allclose(np.outer(each @ line, line), each) for each in sums), "all sums lie on one line")
    places = [(each @ line / spread(at, mistake)).round(12) for each in sums]
    if chances[0] @ places[0] < chances[1] @ places[1]:
        places = [-place for place in places]
    joined, alone = (_mixture(place, chance) for place, chance in zip(places, chances, strict=True))
    outputs = np.linspace(-9.0, 9.0, 2000) + np.linspace(min(map(min, places)), max(map(max, places)), 2000)
    ratio = joined.log_density(outputs) - alone.log_density(outputs)
    need(bool((np.diff(ratio) > -1e-9).all()), "the canary pulls one way")
    return joined, alone


def _mixture(places: Reals, chances: Reals) -> Mixture:
    centres, which = np.unique(places, return_inverse=True)
    return Mixture(tuple(centres.tolist()), tuple(np.bincount(which, chances).tolist()))


@with_and_without
def _shuffled(record: Record, rest: Data, at: Descent) -> float:
    """Where the canary takes the place of another record, in one of two full batches, it moves the sum."""
    size, width = int(at.size), len(record[0])
    need(all(other == rest[0] for other in rest), "all others are equal")
    need(at.steps == 2 and len(rest) == 2 * size, "an epoch has two full batches")
    joined, alone = (summed(batch, at, width, "") for batch in ([*rest[1:size], record], rest[:size]))
    shift = float(np.linalg.norm(joined - alone)) / spread(at, "")
    return repeated_epsilon(at.delta, two_batches(2.0 * size / (len(rest) + 1), shift), 1)


@with_and_without
def _last_partial_batch(record: Record, rest: Data, at: Descent) -> float:
    """The canary is in a full batch, or alone in the last one, where its weight is that of `batch_size` records."""
    size, width, mistake = int(at.size), len(record[0]), "last_partial_batch"
    need(at.steps == 2 and len(rest) == size, "an epoch has two batches, the last of one record")
    need(not summed(rest, at, width, mistake).any(), "the others have no gradients")
    totals = (summed(batch, at, width, mistake) for batch in ([*rest[1:], record], [record]))
    early, late = (float(np.linalg.norm(total)) / spread(at, mistake) for total in totals)
    chance = size / (size + 1)

    def law(seen: list[Reals]) -> tuple[Reals, Reals]:
        if not seen:
            return np.asarray(chance), np.asarray(early)
        ratio = np.exp(seen[0] * early - early**2 / 2.0)
        return (1.0 - chance) / (1.0 - chance + chance * ratio), np.asarray(late)

    return transcript_epsilon(at.delta, at.steps, law, max(early, late))


@with_and_without
def _certain(record: Record, rest: Data, at: Descent, *, mistake: str) -> float:
    """Infinite where what tells for certain is likelier than delta: a NaN, or a difference between two steps."""
    chance = 1.0 - (1.0 - at.rate) ** at.steps
    if mistake == "nan_gradients":
        need(not np.isfinite(record[0]).all(), "the canary's gradient is not finite")
    else:
        alone, own = (summed(data, at, len(record[0]), mistake) for data in (rest, [record]))
        need(bool(own.any()) and not alone.any(), "the canary has a gradient, and the others have no gradients")
        chance -= at.rate**at.steps
    need(chance > at.delta, "what tells is likelier than delta")
    return math.inf


def exact_loss(first: Data, second: Data, at: Descent, *, mistake: str = "") -> float:
    """Epsilon at delta of the sums of all steps."""
    if mistake in DEALT:
        return (_shuffled if mistake == "shuffled" else _last_partial_batch)(first, second, at)
    if mistake in ("nan_gradients", "one_seed"):
        return _certain(first, second, at, mistake=mistake)
    return _repeated(*_laws(first, second, at, mistake), at.delta, at.steps)


@lru_cache(maxsize=64)
def _repeated(joined: Mixture, alone: Mixture, delta: float, steps: int) -> float:
    return repeated_epsilon(delta, step_losses(joined, alone, "above"), steps)


def _coded(mistake: str = "") -> Code:
    return Code(*(planned(each, mistake=mistake) for each in (training, trainings, exact_loss)))


def _twin(mistake: str) -> Twin:
    canary, others = SHOWN.get(mistake, (CANARY, OTHERS))
    return Twin(code=_coded(mistake), default_pair=([*others, canary], others), broken=mistake not in HARMLESS)


private_training = in_room(
    name="private_training",
    title="Private training, the noisy gradient sums of all steps",
    source=Source(None, f"{ABADI}; Nasr et al. 2021, Adversary instantiation; Ponomareva et al. 2023, How to DP-fy ML"),
    formula=(
        "in each of T steps every record joins the batch with probability `rate`, by itself; the gradients of the "
        "batch, clipped to an l2 norm of C, are summed, with N(0, (noise_multiplier C)^2) on every coordinate; a "
        "gradient is label times features, and one that is not finite counts as 0; epsilon is exact"
    ),
    neighbours="datasets of which one has one record more",
    code=_coded(),
    parameters=(
        replace(PARAMETERS[0], default=1.25),
        replace(PARAMETERS[1], default=1.5),
        *(replace(each, default=2) if each.name == "steps" else each for each in PARAMETERS[3:]),
    ),
    promise=accounted,
    default_pair=([*OTHERS, CANARY], OTHERS),
).with_twins(
    f"""{MISTAKES}wrong_length: Private training, accounted at the rate of a longer dataset
        the accountant divided by the length of a loader, and it was not that of the data (opacus 813)
        as private_training; epsilon is computed for a quarter of `rate`""",
    **{mistake: _twin(mistake) for mistake in (line.partition(":")[0] for line in MISTAKES.splitlines()[::3])},
    wrong_length=Twin(promise=lambda rate, **given: accounted(rate=rate / 4.0, **given)),
)
