"""Where numbers of an output are something of the data plus a draw: `y = f + c z`, exactly, in every replay.

Replays differ in their draws alone, so `f` and `c` are what the data makes of an output. A draw may also be the
transform of a uniform one, a product with a sign, or the difference of two; what is rounded, clipped or left out below
a threshold after the noise is fitted as far as it shows, and a ratio of two noisy numbers by its two parts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.recording.laws import CHOICE, ORDER
from dpaudit.recording.sources import NoiseDraw

Element = tuple[str, str, int, int]  # place in the code, call, number of the call there, and place among its values
MOST_PAIRS, MOST_SCALARS, MOST_LIKELY = 16, 64, 12  # blocks that are paired; numbers, and draws of one, that are tried
FEWEST_SHOWN = 5  # values to fit
GRIDS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-6)  # of what is rounded
DIFFERENCES = {"exponential": "laplace", "geometric": "discrete_laplace"}  # of two draws of one law
LOOSE = 2.0**12  # ulps of what was computed by logarithms, above those of sums
ULPS = 64.0  # of the largest number in a sum, that rounding may take


@dataclass(frozen=True, slots=True, eq=False)
class NoiseSource:
    """Noise of one law: its standard form in every replay, and location and scale there as they were drawn.

    `values[replays, size]` are what was drawn; `elements` the draws that each value is made of.
    """

    law: str
    values: Reals
    loc: Reals  # [size]
    scale: Reals
    more: tuple[Any, ...]
    elements: tuple[tuple[Element, ...], ...]
    place: str
    call: str
    loose: float = 1.0
    simple: bool = True  # one draw, as it was drawn


@dataclass(frozen=True, slots=True)
class NumberNoise:
    """The law of one number of an output on one dataset: location (within `error`), scale (`blur`: relative).

    It is made of the draws `elements`, times `slope`.
    """

    law: str
    location: float
    scale: float
    error: float
    more: tuple[Any, ...]
    elements: tuple[Element, ...]
    slope: float
    blur: float
    place: str
    call: str
    at_most: bool = False


def features_of(tapes: Sequence[Sequence[NoiseDraw]], ends: Bools) -> list[NoiseSource]:
    """The draws that every replay on one dataset made, those at `ends` perhaps not, and what is often made of them."""
    runs = [{(each.key, each.call, each.number): each for each in draws} for draws in tapes]
    base: list[NoiseSource] = []
    for key, first in runs[0].items():
        same = [run.get(key) for run in runs]
        alike = [each is not None and each.values.size == first.values.size and _alike(each, first) for each in same]
        gone = np.array([each is None for each in same]) & ends
        loc, scale = (_spread(getattr(first, name), first) for name in ("loc", "scale"))
        known = first.law not in ("", ORDER) and all(
            isinstance(each, tuple) or np.ndim(each) == 0 for each in first.more
        )
        if not known or first.values.size == 0 or loc is None or scale is None or not all(alike | gone):
            continue
        nothing = np.full(first.values.size, math.nan)
        values = np.stack([each.values if each and fits else nothing for each, fits in zip(same, alike, strict=True)])
        elements = tuple(((*key, place),) for place in range(first.values.size))
        told = (first.more, elements, first.place, first.call, 2.0**29 if _single(values) else 1.0)
        base.append(NoiseSource(first.law, values, loc, scale, *told))
    derived = [each for feature in base for each in _transforms(feature)]
    few = [each for each in (*base, *derived) if each.law in DIFFERENCES]
    return [*base, *derived, *_pairs(few, base)]


def _single(values: Reals) -> bool:
    """Whether numbers that are not whole are single floats."""
    finite = values[np.isfinite(values)]
    return bool(np.all(finite == finite.astype(np.float32)) and np.any(finite != np.round(finite)))


def _alike(one: NoiseDraw, other: NoiseDraw) -> bool:
    """Whether two replays drew by one law: what is drawn by the draws before is no noise of a fixed law."""
    with np.errstate(all="ignore"):
        same = np.array_equal(one.loc, other.loc) and np.array_equal(one.scale, other.scale)
    return bool(same) and one.law == other.law and repr(one.more) == repr(other.more)


def _spread(value: Any, draw: NoiseDraw) -> Reals | None:
    try:
        return np.broadcast_to(np.asarray(value, float), draw.shape).ravel()
    except (ValueError, TypeError):
        return None


def _derived(of: NoiseSource, law: str, values: Reals, **told: Any) -> NoiseSource:
    """Noise in its standard form, made of that of a source, and perhaps of more elements."""
    zeros = np.zeros(values.shape[1])
    told = {"more": (), "loose": max(LOOSE, of.loose), **told}
    return replace(of, law=law, values=values, loc=zeros, scale=zeros + 1.0, simple=False, **told)


def _transforms(of: NoiseSource) -> Iterator[NoiseSource]:
    """Noise that programs make of uniform numbers, by the inverse of its distribution function."""
    if of.law != "uniform" or not np.all(of.scale != 0.0):
        return
    from scipy.special import ndtri  # which takes longer to load than many replays

    with np.errstate(all="ignore"):
        t = (of.values - of.loc) / of.scale
        yield _derived(of, "exponential", -np.log(t))
        yield _derived(of, "exponential", -np.log1p(-t))
        even = np.allclose(of.loc, -1.0, atol=1e-6) and np.allclose(of.scale, 2.0, atol=1e-6)  # as torch draws
        centred = of.values if even else 2.0 * t - 1.0
        yield _derived(of, "laplace", np.sign(centred) * np.log1p(-np.abs(centred)))
        yield _derived(of, "gumbel", -np.log(-np.log(t)))
        yield _derived(of, "logistic", np.log(t) - np.log1p(-t))
        yield _derived(of, "normal", ndtri(t))


def _pairs(few: list[NoiseSource], base: list[NoiseSource]) -> Iterator[NoiseSource]:
    """Differences of two draws of one law, and a sign times an exponential draw."""

    def both(one: NoiseSource, other: NoiseSource) -> tuple[tuple[Element, ...], ...]:
        return tuple(a + b for a, b in zip(one.elements, other.elements, strict=True))

    def fits(one: NoiseSource, other: NoiseSource) -> bool:
        return one.values.shape == other.values.shape and one.elements != other.elements

    few = few[: 3 * MOST_PAIRS]
    for one, other in combinations(few, 2):
        same = one.law == other.law and np.array_equal(one.scale, other.scale) and repr(one.more) == repr(other.more)
        if fits(one, other) and same and (one.simple or one.loose == other.loose):
            values = (one.values - other.values) / (one.scale if one.law == "exponential" else 1.0)
            told = {"elements": both(one, other), "more": one.more, "loose": one.loose}
            yield _derived(one, DIFFERENCES[one.law], values, **told)
    signs = [(each, sign) for each in base if (sign := _signs(each)) is not None][:MOST_PAIRS]
    for one, (other, sign) in product([each for each in few if each.law == "exponential"], signs):
        if fits(one, other):
            yield _derived(one, "laplace", sign * one.values / one.scale, elements=both(one, other))


def _signs(of: NoiseSource) -> Reals | None:
    """A fair coin as a sign; None where it is none."""
    values, p = np.unique(of.values), of.more[-1] if of.more else ()
    fair = {"integers": of.more in ((0, 2), (1,)), "binomial": p == 0.5, CHOICE: p == (0.5, 0.5)}
    return np.where(of.values == values[0], -1.0, 1.0) if len(values) == 2 and fair.get(of.law) else None


def _together(values: Reals, numbers: Reals, there: Bools) -> list[list[int]]:
    """For each number the draws that go with it most, by the correlation of their ranks."""

    def ranks(of: Reals) -> Reals:
        places = np.argsort(np.argsort(of, axis=0), axis=0).astype(np.float64)
        return np.asarray(places - places.mean(axis=0))

    together = np.abs(ranks(np.where(there, numbers, -math.inf)).T @ ranks(np.nan_to_num(values)))
    return np.argsort(-together, axis=1)[:, :MOST_LIKELY].tolist()  # type: ignore[no-any-return]


def _cut(y: Reals, there: Bools, inside: Bools, whole: Reals, slack: float) -> bool:
    """Whether what is not inside is at an end that `whole` lies beyond, or is left out on one side of what is shown."""
    low, high = np.min(y[there]), np.max(y[there])
    slack += 1e-6 * (abs(low) + abs(high))
    beyond = np.where(y == low, whole <= low + slack, whole >= high - slack)
    absent = whole[~there]
    one_side = absent.size == 0 or absent.max() <= whole[there].min() or absent.min() >= whole[there].max()
    return bool(np.all(beyond[there & ~inside]) and one_side)


# --- fits of single numbers --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Fitter:
    """Fits of the numbers of an output on one dataset; `ends` marks the replays at the ends of laws."""

    features: list[NoiseSource]
    ends: Bools

    @property
    def bank(self) -> list[tuple[NoiseSource, int]]:
        """Every value that noise may be, with its place in its feature."""
        return [(each, place) for each in self.features if each.law != CHOICE for place in range(each.values.shape[1])]

    def fit(self, numbers: Reals, there: Bools) -> list[NumberNoise | None]:
        """The noise of each number, `numbers[replays, size]`, None where it is not understood.

        `there[replays, size]`: whether a number was there. Those that are data plus one draw are known by their
        differences, which are in one ratio; of the others the draws that go with them most are tried.
        """
        bank, plain = self.bank, np.flatnonzero(~self.ends)
        result: list[NumberNoise | None] = [None] * numbers.shape[1]
        if not bank or len(plain) < FEWEST_SHOWN:
            return result
        values = np.stack([feature.values[:, place] for feature, place in bank], axis=1)
        moves, steps = (np.diff(each[plain[:3]], axis=0) for each in (values, numbers))
        signature = moves[1] / moves[0]
        order = np.argsort(signature)
        rising = signature[order]
        for place in range(numbers.shape[1]):
            y, shown = numbers[:, place], there[:, place]
            ratio = steps[1, place] / steps[0, place]
            for reach in (1e-9, 1e-5) if shown.all() and math.isfinite(ratio) else ():
                wide = reach * max(1.0, abs(ratio))
                low, high = np.searchsorted(rising, (ratio - wide, ratio + wide))
                fits = (self._line(y, bank[each], None) for each in order[low:high][:MOST_SCALARS])
                result[place] = result[place] or next((each for each in fits if each is not None), None)
        odd = np.array([place for place, noise in enumerate(result) if noise is None][:MOST_SCALARS], np.intp)
        close = _together(values[plain], numbers[np.ix_(plain, odd)], there[np.ix_(plain, odd)])
        for place, likely in zip(odd.tolist(), close, strict=True):
            y, shown = numbers[:, place], there[:, place]
            if len(np.unique(y[shown])) > 1:
                ways = ((way, bank[each]) for way in (self._whole, self._clipped, self._rounded) for each in likely)
                result[place] = next((noise for way, each in ways if (noise := way(y, shown, each)) is not None), None)
        return result

    def _line(self, y: Reals, of: tuple[NoiseSource, int], rows: Bools | None) -> NumberNoise | None:
        """The noise where `y = f + c z` in all rows, to within the roundings of sums."""
        feature, place = of
        z = feature.values[:, place]
        use = np.isfinite(y) if rows is None else rows & np.isfinite(y)
        if not np.isfinite(z[use]).all():  # something else is there, where that was not drawn
            return None
        plain = np.flatnonzero(use & ~self.ends)
        if len(plain) < FEWEST_SHOWN - 1 or (rows is None and not use[~self.ends].all()):
            return None
        moved = plain if np.ptp(z[plain]) > 0.0 else np.flatnonzero(use)
        low, high = moved[np.argmin(z[moved])], moved[np.argmax(z[moved])]
        slope = (y[high] - y[low]) / (z[high] - z[low])
        if not np.isfinite(slope) or slope == 0.0:
            return None
        precision = max(2.0**-23 if _single(y) else 2.0**-52, 2.0**-52 * feature.loose)
        blur = 8.0 * precision * float(np.max(np.abs(y[plain]))) / abs(float(y[high] - y[low]))
        if abs(abs(slope) - 1.0) < max(1e-9, blur):
            slope = np.sign(slope)
        rest = y - slope * z
        f = float(np.median(rest[plain]))
        if np.any(np.abs(rest - f)[use] > ULPS * precision * np.maximum(np.abs(y), np.abs(slope * z) + abs(f))[use]):
            return None
        error = 4.0 * precision * float(np.max(np.abs(y[plain])) + abs(f)) / np.sqrt(len(plain))
        return self.noise(feature, place, f, float(slope), error, blur)

    def noise(self, of: NoiseSource, place: int, *fit: float, at_most: bool = False) -> NumberNoise:
        """The noise of `f + slope * z`: `fit` is f, the slope, the error of f, and that of the slope, relative."""
        f, slope, error, blur = fit or (0.0, 1.0, 0.0, 0.0)
        location, scale = f + slope * float(of.loc[place]), abs(slope) * float(of.scale[place])
        law = f"-{of.law}" if slope < 0.0 and of.law in ("exponential", "gumbel", "gamma") else of.law
        told = error, of.more, of.elements[place], slope, blur, of.place, of.call, at_most
        return NumberNoise(law, location, scale, *told)

    def _whole(self, y: Reals, there: Bools, of: tuple[NoiseSource, int]) -> NumberNoise | None:
        """What shows all of its noise, in steps of which some are nothing."""
        return self._line(y, of, None) if there.all() else None

    def _inside(self, y: Reals, there: Bools) -> Bools:
        """Where a number is shown, and not at one of two ends at which several are, or those of the ends of laws."""
        low, high = np.min(y[there]), np.max(y[there])
        at_ends = [(y == end) & (self.ends | (np.sum(y[there] == end) > 1)) for end in (low, high)]
        return np.asarray(there & ~at_ends[0] & ~at_ends[1])

    def _clipped(self, y: Reals, there: Bools, of: tuple[NoiseSource, int]) -> NumberNoise | None:
        """What is outside two ends is at them, or below a threshold is left out, and all else is data plus a draw."""
        inside = self._inside(y, there)
        if inside.all() or np.sum(inside & ~self.ends) < FEWEST_SHOWN:
            return None
        noise = self._line(y, of, inside)
        if noise is None:
            return None
        whole = noise.slope * (of[0].values[:, of[1]] - of[0].loc[of[1]]) + noise.location
        return replace(noise, at_most=True) if _cut(y, there, inside, whole, 0.0) else None

    def _rounded(self, y: Reals, there: Bools, of: tuple[NoiseSource, int]) -> NumberNoise | None:
        """What lies on a grid, with data plus a draw never further off than the grid is wide; it may be clipped too."""
        z = of[0].values[:, of[1]]
        far = np.isfinite(z) & (np.abs(z) < 1e12)
        for inside in (there, self._inside(y, there)) if of[0].law not in ("integers", "choice", "order") else ():
            levels = np.unique(y[inside & ~self.ends])
            if len(levels) < 3:
                continue
            for grid, slope in product((float(np.min(np.diff(levels))), *GRIDS), (1.0, -1.0)):
                steps, rest = (levels - levels[0]) / grid, (y - slope * z)[inside & far]
                if np.any(np.abs(steps - np.round(steps)) > 1e-6) or len(rest) <= FEWEST_SHOWN:
                    continue
                middle = 0.5 * float(rest.min() + rest.max())
                if np.ptp(rest) <= grid * (1.0 + 1e-9) and _cut(y, there, inside, slope * z + middle, grid):
                    error = 0.5 * (grid - float(np.ptp(rest))) + 1e-9 * grid
                    return self.noise(*of, middle, slope, error, 0.0, at_most=True)
        return None

    def sum(self, y: Reals) -> NumberNoise | None:
        """A number that is a sum of several normal draws, which is one."""
        plain = ~self.ends
        bank = [(each, place) for each, place in self.bank if each.simple]
        if not 2 <= len(bank) <= int(plain.sum()) - 3:
            return None
        columns = np.stack([each.values[:, place] for each, place in bank] + [np.ones(len(y))], axis=1)
        good = np.isfinite(columns).all(axis=1) & np.isfinite(y)
        if not good[plain].all():
            return None
        factors = np.linalg.lstsq(columns[plain], y[plain], rcond=None)[0]
        size = float(np.max(np.abs(y[plain])))
        used = [(c, *each) for each, c in zip(bank, factors[:-1].tolist(), strict=True) if abs(c) > 1e-9 * size]
        if np.any(np.abs(columns @ factors - y)[good] > 1e-9 * np.abs(columns * factors).sum(axis=1)[good]):
            return None
        if len(used) < 2 or any(each.law != "normal" for _, each, _ in used):
            return None
        location = float(factors[-1]) + sum(c * float(each.loc[at]) for c, each, at in used)
        scale = math.hypot(*(c * float(each.scale[at]) for c, each, at in used))
        c, of, place = used[0]
        elements = tuple(each.elements[at][0] for _, each, at in used)
        one = self.noise(of, place, location, c, 1e-9 * (size + scale), 1e-9)
        return replace(one, location=location, scale=scale, elements=elements)

    def ratio(self, y: Reals) -> tuple[NumberNoise, NumberNoise] | None:
        """Numerator and denominator of a ratio of two noisy numbers: y (n + z) = s + c w in all replays."""
        bank, plain = self.bank[:MOST_PAIRS], ~self.ends & np.isfinite(y)
        if plain.sum() < FEWEST_SHOWN + 2:
            return None
        for (above, a), (below, b) in permutations(bank, 2):
            w, z = above.values[:, a], below.values[:, b]
            if not (np.ptp(w[plain]) > 0.0 and np.ptp(z[plain]) > 0.0):
                continue
            columns = np.stack([-y, np.ones(len(y)), w], axis=1)
            rows = plain & np.isfinite(w) & np.isfinite(z)
            if rows.sum() < FEWEST_SHOWN + 2 or above.elements[a] == below.elements[b]:
                continue
            n, s, c = np.linalg.lstsq(columns[rows], (y * z)[rows], rcond=None)[0]
            gap = np.abs(y * (n + z) - s - c * w)
            size = np.abs(y * n) + np.abs(y * z) + abs(s) + np.abs(c * w)
            sure = np.isfinite(gap) & np.isfinite(size)
            real = np.all(np.abs(n + z)[rows] > 1e-6 * (abs(n) + np.abs(z))[rows])
            real &= np.ptp(c * w[rows]) > 1e-6 * np.max(size[rows])
            if real and np.all(gap[rows] <= 1e-9 * size[rows]) and np.all(gap[sure] <= 1e-7 * size[sure]):
                error = 1e-9 * float(np.max(size[rows]))
                upper = self.noise(above, a, s, c, error, 1e-9, at_most=True)
                return upper, self.noise(below, b, n, 1.0, error, 1e-9, at_most=True)
        return None
