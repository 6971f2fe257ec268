"""Noise: what a generator draws, what is spent when a noisy value is looked at, and what when only a place is chosen.

A noisy number is not looked at when it is made but when something uses it. Looking at base + noise moves the noise of
the second run by what the base moved, so that both runs have one value: that costs what the law says. Where of several
only the largest is asked for, its noise alone is moved, by the most that the others may gain on it.
"""

import ast
import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.base.installed import flint
from dpaudit.claims.rounding import HAIR
from dpaudit.verify.coupled.executor import TreeExecutor
from dpaudit.verify.coupled.spent import Spending
from dpaudit.verify.coupled.values import (
    ALL,
    AT_LEAST_0,
    FreshNoise,
    KnownArray,
    Noisy,
    NormedVector,
    OpaqueValue,
    PairedNumber,
    Span,
    UnknownValue,
    Vector,
    fraction_of,
    is_number,
    is_plain,
    is_same,
    number_of,
    parts,
    words,
)
from dpaudit.verify.coupled.ways import NotShown
from dpaudit.verify.enclosure import BITS, ball, normal_tail, of_ball

ONE = Fraction(1)
LOOKED_AT = "looked at"
UNIT = Span(Fraction(0), ONE)
SPANS = {"geometric": Span(ONE, math.inf), "exponential": AT_LEAST_0, "uniform": UNIT}
LARGEST = ("laplace", "exponential", "gumbel", "geometric")  # noise by whose largest a choice may be made
CENTRED = ("laplace", "normal", "gumbel", "geometric", "exponential")
ARGUMENTS = {  # of numpy's Generator, in their order
    "laplace": ("loc", "scale", "size"),
    "normal": ("loc", "scale", "size"),
    "gumbel": ("loc", "scale", "size"),
    "exponential": ("scale", "size"),
    "geometric": ("p", "size"),
    "standard_normal": ("size",),
    "standard_exponential": ("size",),
    "random": ("size",),
    "uniform": ("low", "high", "size"),
}
FREE = words("integers choice random uniform")


class Rng(OpaqueValue):
    """The generator of the program."""

    def draw(self, law: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a method gives where the draws are known; see `tape`."""
        raise NotImplementedError


class WholeAnswers(NotShown):
    """What is shown for whole answers alone."""


class NoiseLedger:
    """What was spent on one way, step by step; and which noise was looked at, so that it can be undone."""

    within = 0  # lists over what one run alone has, of which there may be many
    single: bool | None = None  # whether only the second run does this, or only the first; None: both

    def __init__(self, run: TreeExecutor) -> None:
        self.run = run
        self.steps: list[tuple[int, str, Spending]] = []
        self.seen: list[tuple[Any, str, Any]] = []  # objects whose field was set, and what it was before
        self.clock = 0
        self.born: dict[int, int] = {}  # noise that was made, and when
        self.kept: list[Any] = []
        self.made_in: list[tuple[int, int]] = []  # between which times numbers are those of single entries
        self.own: set[int] = set()  # noise that is drawn for each entry of a vector

    # --- what was done, and undone ------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int, int]:
        """A point to return to."""
        return len(self.steps), len(self.seen), self.clock

    def undo(self, mark: tuple[int, int, int]) -> bool:
        """Back to a point; whether privacy was spent since, or noise looked at that was there before."""
        steps, seen, clock = mark
        later = self.seen[seen:]
        spends = len(self.steps) > steps or any(self.born.get(id(each), 0) <= clock for each, _, _ in later)
        for each, name, before in reversed(later):
            setattr(each, name, before)
        del self.steps[steps:], self.seen[seen:]
        return spends

    def _set(self, each: Any, name: str, value: Any) -> None:
        self.seen.append((each, name, getattr(each, name)))
        setattr(each, name, value)

    def made(self, noise: Any) -> Any:
        """Noise, with when it was made."""
        self.clock += 1
        self.born[id(noise)] = self.clock
        self.kept.append(noise)
        return noise

    def pay(
        self, words: str, pure: Fraction = Fraction(0), gaussian: Fraction = Fraction(0), delta: Fraction = Fraction(0)
    ) -> None:
        """Writes down a step."""
        if pure or gaussian or delta:
            self.steps.append((self.run.line, words, Spending(pure, gaussian, pure**2, delta)))

    # --- drawing --------------------------------------------------------------------------------------------------

    def draw(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a method of the generator gives."""
        kept = Vector | NormedVector
        args = [each if isinstance(each, kept) else self.look(each) for each in args]
        kwargs = {key: each if isinstance(each, kept) else self.look(each) for key, each in kwargs.items()}
        known = dict(zip(ARGUMENTS.get(name, ()), args, strict=False)) | kwargs
        if name in ARGUMENTS and len(args) > len(ARGUMENTS[name]):
            raise self.run.refusal("an argument of the noise", "give loc, scale and size")
        if name == "choice":
            chosen = self.weighted(args, kwargs)
            if chosen is not None:
                return chosen
        if name in ("random", "uniform") and set(known) <= {"size"}:
            size = known.get("size")
            if size is None:
                return self.made(FreshNoise("uniform", ONE, self.run.line))
            if isinstance(size, PairedNumber) and size.axis is not None:
                return self.run.rules.beside_each(size, lambda: self.made(FreshNoise("uniform", ONE, self.run.line)))
        law = name.removeprefix("standard_")
        if law in CENTRED:
            return self.noise(law, known)
        if name in FREE and self.single is not None:
            raise self.run.refusal(f"`{name}` of the generator for one record alone", "draw before the loop")
        if name in FREE and all(map(is_same, [*args, *kwargs.values()])):
            if name != "integers":
                return UnknownValue()
            if len(args) < 3 and not kwargs and all(number_of(each) is not None for each in args):
                return PairedNumber(whole=True)
        raise self.run.refusal(f"`{name}` of the generator, so or of what the runs do not share", "draw one by one")

    def noise(self, law: str, known: dict[str, Any]) -> Any:
        """Fresh noise, one or many, and around a centre where one is given."""
        if set(known) - {"loc", "scale", "size", "p"}:
            raise self.run.refusal("an argument of the noise", "give loc, scale and size")
        scale = known.get("p", known.get("scale", 1.0))
        count = None
        if isinstance(scale, PairedNumber) and scale.count is not None and scale.count[2].span.width == 0:
            count, scale = scale.count[:2], scale.count[2].span.low
        if not is_number(scale):
            raise self.run.refusal("a scale that is not public, or not one number", "give one, or draw in each branch")
        if scale <= 0 or law == "geometric" and scale >= 1:
            raise self.run.refusal(f"noise of scale {scale!r}", "give one above 0")
        number = fraction_of(scale)
        if law == "geometric":
            number = self.ratio(scale)
        size, centre = known.get("size"), known.get("loc", 0)
        if size is None and isinstance(centre, Vector | KnownArray | NormedVector):
            (size,) = self.run.rules.attribute(centre, "shape")
        fresh = self.fresh(law, number, size, count)
        return fresh if is_plain(centre) and centre == 0 else self.run.rules.binary(ast.Add(), centre, fresh)

    @staticmethod
    def ratio(p: float) -> Fraction:
        """1 - p of geometric noise; p is taken to be a real number that was rounded on its way, as a claim is."""
        q = 1.0 - p
        for _ in range(HAIR):
            q = math.nextafter(q, 1.0)
        return Fraction(q)

    def fresh(self, law: str, scale: Fraction, size: Any, count: Any = None) -> Any:
        """One draw; a list of some; or one for each entry of a vector."""
        line = self.run.line
        if isinstance(size, tuple) and len(size) == 1:
            (size,) = size
        if size is None:
            return self.made(FreshNoise(law, scale, line, count=count))
        if count is not None:
            raise self.run.refusal("a list of noise whose scale is of the number of records", "draw one by one")
        if isinstance(size, int | np.integer) and 0 <= size <= 100_000:
            return KnownArray([self.made(FreshNoise(law, scale, line)) for _ in range(int(size))])
        if isinstance(size, PairedNumber) and not size.same:
            raise self.run.refusal("as many draws as there are records", "draw a public number")
        if not isinstance(size, PairedNumber) or size.axis is None:
            raise self.run.refusal("a size that is not known", "give len(data), or a public number")
        if size.axis is self.run.rules.rows:
            return self.made(FreshNoise(law, scale, line, axis=size.axis))
        return self.run.rules.beside_each(size, lambda: self.made(FreshNoise(law, scale, line)))

    # --- sums of noise ----------------------------------------------------------------------------------------------

    def combined(self, op: ast.operator, left: Any, right: Any) -> Any:
        """left op right as a noisy number that nothing has looked at, where it is one; else None."""
        for one, two in ((left, right), (right, left)):
            if not isinstance(two, FreshNoise) or two.spent is not None:
                continue
            if isinstance(one, NormedVector) and isinstance(op, ast.Add) and one.axis is two.axis is not None:
                return self.made(Noisy(one, ((ONE, two),)))
            if isinstance(op, ast.Mult) and two.law == "uniform" and len(weights_of(one)) > 1:
                self.used(two, "a share")
                return self.made(FreshNoise("share", ONE, two.line, count=one))
        if isinstance(op, ast.Mult | ast.Div):
            noisy, by = (right, left) if isinstance(op, ast.Mult) and is_number(left) else (left, right)
            terms = terms_of(noisy)
            if terms is None or not is_number(by) or by == 0:
                return None
            factor = fraction_of(by) if isinstance(op, ast.Mult) else 1 / fraction_of(by)
            base = self.run.rules.binary(op, noisy.base if isinstance(noisy, Noisy) else 0, by)
            return self.made(Noisy(base, tuple((f * factor, drawn) for f, drawn in terms)))
        if not isinstance(op, ast.Add | ast.Sub):
            return None
        sign = ONE if isinstance(op, ast.Add) else -ONE
        ours, theirs = terms_of(left), terms_of(right)
        if ours is None and theirs is None:
            return None
        moves = any(isinstance(each, PairedNumber) and not each.same for each in (left, right))
        if isinstance(left, Noisy | PairedNumber) and isinstance(right, Noisy | PairedNumber) and not moves:
            return None  # looked at one by one
        bases = [
            each.base if isinstance(each, Noisy) else 0 if isinstance(each, FreshNoise) else each
            for each in (left, right)
        ]
        if any(number_of(each) is None and not hasattr(each, "region") for each in bases):
            return None
        none = [is_plain(each) and each == 0 for each in bases]
        alone = 0 if none[1] else 1 if none[0] and sign > 0 else None
        base = self.run.rules.binary(op, *bases) if alone is None else bases[alone]
        factors: dict[FreshNoise, Fraction] = {}
        for factor, drawn in (*(ours or ()), *((f * sign, drawn) for f, drawn in theirs or ())):
            factors[drawn] = factors.get(drawn, Fraction(0)) + factor
        if not all(factors.values()):
            raise self.run.refusal("noise that is taken away again", "keep what is released noisy")
        return self.made(Noisy(base, tuple((factor, drawn) for drawn, factor in factors.items())))

    # --- looking ----------------------------------------------------------------------------------------------------

    def look(self, value: Any) -> Any:
        """The value once something uses it: noisy numbers are one in both runs from here on."""
        match value:
            case Noisy():
                if value.value is None:
                    self._set(value, "value", self.released(value.base, value.terms))
                return value.value
            case FreshNoise():
                if value.law == "share":
                    raise self.run.refusal("a part of a sum of weights", "compare it with sums of the first of them")
                if value.spent not in (None, LOOKED_AT):
                    raise self.again(value)
                if value.spent is None:
                    self._set(value, "spent", LOOKED_AT)
                if value.axis is not None:
                    return UnknownValue()
                return PairedNumber(True, SPANS.get(value.law, ALL), whole=value.law == "geometric")
            case Vector():
                return value if is_settled(value) else self.run.rules.each(value, self.look)
            case KnownArray():
                return value if all(map(is_settled, value.items)) else KnownArray(list(map(self.look, value.items)))
            case list() | tuple() if not all(map(is_settled, value)):
                return type(value)(map(self.look, value))
            case dict() if not all(map(is_settled, value.values())):
                return {key: self.look(each) for key, each in value.items()}
        return value

    def check_own(self, value: Any, clock: int) -> Any:
        """What was made for a usual entry: noise in it must have been drawn for it, since a time. Returns it."""
        draws: list[FreshNoise] = []
        match value:
            case Noisy(value=None):
                draws = [drawn for _, drawn in value.terms]
            case FreshNoise():
                draws = [value]
            case OpaqueValue():
                raise self.run.refusal("a function for every entry", "call it where it is made")
        if any(self.born[id(drawn)] <= clock and id(drawn) not in self.own or drawn.axis for drawn in draws):
            raise self.run.refusal("one draw of noise for every entry", "draw fresh noise for each")
        self.own |= set(map(id, draws))
        for each in parts(value):
            self.check_own(each, clock)
        return value

    def again(self, drawn: Any) -> Exception:
        """The error for noise that is used twice."""
        return self.run.refusal(f"the noise of line {drawn.line} is used twice", "draw fresh noise for each value")

    def many(self, action: Callable[[], Any]) -> Any:
        """What is done for a usual entry, and so for as many as there are: nothing may be spent on it."""
        steps, choices = len(self.steps), len(self.run.script.made)
        self.within += self.single is not None
        try:
            found = action()
        finally:
            self.within -= self.single is not None
        cure = "give `answers`, how many there are"
        if len(self.steps) > steps:
            raise self.run.refusal("privacy is spent at every entry, and their number is not known", cure)
        if len(self.run.script.made) > choices:  # another entry may go another way
            raise self.run.refusal("a decision for every entry, and their number is not known", cure)
        return found

    def used(self, drawn: Any, by: Any) -> None:
        """Notes what noise is used for. Raises where it was used for something else."""
        if drawn.spent is not None and drawn.spent != by:
            raise self.again(drawn)
        self._set(drawn, "spent", by)

    def released(self, base: Any, terms: tuple[tuple[Fraction, FreshNoise], ...]) -> Any:
        """base + noise as both runs have it, paid for."""
        by = (id(base) if not is_plain(base) else None, *terms)  # the same value again is the same noise again
        self.kept.append(base)
        paid = all(drawn.spent == by for _, drawn in terms)
        for _, drawn in terms:
            self.used(drawn, by)
        if isinstance(base, NormedVector):
            if not paid:
                self.charge_norms(base, *terms)
            number = self.run.rules.rows.number
            return UnknownValue() if number is None else KnownArray([PairedNumber() for _ in range(number)], True, "f")
        number = number_of(self.run.rules.numeric(base))
        assert number is not None
        laws = {drawn.law for _, drawn in terms}
        whole = number.whole and laws == {"geometric"} and all(f.denominator == 1 for f, _ in terms)
        if not number.same and not paid:
            self.charge(number, terms, whole)
        one_sided = len(terms) == 1 and terms[0][0] > 0
        span = number.span + SPANS.get(terms[0][1].law, ALL) * Span(terms[0][0], terms[0][0]) if one_sided else ALL
        return PairedNumber(True, span, whole=whole)

    def charge(self, base: PairedNumber, terms: tuple[tuple[Fraction, FreshNoise], ...], whole: bool) -> None:
        """What it costs to look at a number with this noise."""
        if any(drawn.count is not None for _, drawn in terms):
            counts = {drawn.count for _, drawn in terms}
            if len(counts) != 1 or base.count is None or base.count[:2] != counts.pop():
                raise self.run.refusal(
                    "noise whose scale is of the number of records, on another value", "divide both by it"
                )
            base = base.count[2]
        far = base.moved.most
        scales = {(drawn.law, abs(f) * drawn.scale if drawn.law != "geometric" else drawn.scale) for f, drawn in terms}
        if math.isinf(far):
            raise self.run.refusal(
                "noise on a value that neighbours may move by any amount", "bound it first, by np.clip say"
            )
        far, laws = Fraction(far), {law for law, _ in scales}
        if far > 2**40:
            raise self.run.refusal(f"what moves by {float(far):g}", "use a larger unit: numbers may overflow")
        on = f"noise on what moves by at most {far}"
        if laws == {"normal"}:
            square = sum(((abs(f) * drawn.scale) ** 2 for f, drawn in terms), Fraction(0))
            self.pay(f"Gaussian {on}", gaussian=far**2 / square)
            return
        if "laplace" in laws:
            most = max(scale for law, scale in scales if law == "laplace")
            self.pay(f"Laplace {on.replace('noise', f'noise of scale {float(most):g}')}", far / most)
            return
        if laws == {"geometric"} and not whole:
            raise WholeAnswers(
                self.run.line, "geometric noise on what may move by a part of 1", "round the value first"
            )
        (factor, drawn), *others = terms
        steps = drawn.law != "geometric" or abs(factor) == 1
        cost = far * rate(factor, drawn)
        away = base.moved.high <= 0 if factor > 0 else base.moved.low >= 0
        if steps and len(scales) == 1 and [f for f, _ in others] == [-factor]:
            self.pay(f"a difference of {drawn.law} {on}", cost)
        elif steps and not others and drawn.law in ("exponential", "geometric") and away:
            words = f"one-sided {drawn.law} {on}, away from it"
            self.steps.append((self.run.line, words, Spending(cost, squares=math.inf)))  # pure in one direction
        else:
            words = ", ".join(sorted(laws))
            raise self.run.refusal(
                f"noise ({words}) that cannot hide how far the value moves", "use Laplace or Gaussian noise"
            )

    def charge_norms(self, base: NormedVector, term: tuple[Fraction, FreshNoise]) -> None:
        """What noise on each entry of a vector costs."""
        factor, drawn = term
        far = base.number.moved.most
        if far and (drawn.law != "normal" or math.isinf(far)):
            raise self.run.refusal("noise on a vector that neighbours may move by any amount", "bound its norm first")
        words = f"Gaussian noise on a vector that moves by at most {far}"
        self.pay(words, gaussian=(Fraction(far) / factor / drawn.scale) ** 2)

    def tail(self, noisy: Noisy, threshold: Fraction) -> Fraction | None:
        """The chance, rounded up, that a number which one run alone has is above a threshold once it has noise."""
        base = number_of(self.run.rules.numeric(noisy.base))
        drawn = noisy.terms[0][1]
        if base is None or len(noisy.terms) != 1 or math.isinf(base.span.high) or drawn.spent or drawn.count:
            return None
        factor, drawn = noisy.terms[0]
        above, scale = threshold - Fraction(base.span.high), abs(factor) * drawn.scale
        if above < 0 or drawn.law not in ("laplace", "normal"):
            return None
        self.used(drawn, "a threshold")
        with flint().ctx.workprec(BITS):
            x = ball(above / scale)
            chance = (-x).exp() / 2 if drawn.law == "laplace" else normal_tail(x)
            return Fraction(of_ball(chance).upper)

    # --- choosing -----------------------------------------------------------------------------------------------------

    def largest(self, entries: list[Any], times: int = 1, smallest: bool = False) -> bool:
        """Pays for the place of the largest of noisy entries, so often; False where they are no such entries."""
        terms = [terms_of(each) or () if isinstance(each, Noisy) else () for each in entries]
        if not entries or any(len(each) != 1 for each in terms):
            return False
        draws = [drawn for ((_, drawn),) in terms]
        kinds = {(drawn.law, factor, drawn.scale) for ((factor, drawn),) in terms}
        if len(kinds) != 1 or any(drawn.spent is not None or drawn.count is not None for drawn in draws):
            return False
        if len({*map(id, draws)}) != len(draws):
            raise self.run.refusal("one draw of noise for several entries", "draw fresh noise for each")
        ((law, factor, _),) = kinds
        bases = [number_of(self.run.rules.numeric(each.base)) for each in entries]
        numbers = [each for each in bases if each is not None]
        if law not in LARGEST or len(numbers) < len(bases) or law != "laplace" and (factor < 0) is not smallest:
            return False
        if law == "geometric" and not (abs(factor) == 1 and all(each.whole for each in numbers)):
            return False
        spread = self.spread(numbers)
        for drawn in draws:
            self.used(drawn, "a choice")
        words = f"the place of the largest with {law} noise, of what may gain {spread} on another"
        self.pay(words, times * spread * rate(factor, draws[0]))
        return True

    def spread(self, numbers: list[PairedNumber]) -> Fraction:
        """By how much one of several numbers may gain on another from the first run to the second."""
        less = {each.less for each in numbers}
        if any(each is not None and any(low < each[0].born < high for low, high in self.made_in) for each in less):
            less = {None}  # what is taken away is each entry's own
        moves = [each.alone if len(less) == 1 and None not in less else each.moved for each in numbers]
        hull = functools.reduce(operator.or_, moves)
        if math.isinf(hull.width):
            raise self.run.refusal("a choice by scores that may move by any amount", "bound the scores")
        return Fraction(hull.width)

    def of_the_first(self, drawn: Any, reached: Any) -> bool:
        """Whether a uniform draw is below the share of the first of some weights e^score: one choice, paid for once."""
        if not (isinstance(drawn, FreshNoise) and isinstance(reached, PairedNumber) and self.single is None):
            return False
        weights = weights_of(reached)
        overs = {id(each.over): each.over for each in weights}
        if drawn.law not in ("share", "uniform") or len(overs) != 1:
            return False
        (over,) = overs.values()
        total = drawn.count if drawn.law == "share" and over is None else over if drawn.law == "uniform" else None
        every = () if total is None or total.along is not None else total.summed
        if any(each.over is not None for each in every) or reached.along is not None:
            return False
        if [each.log for each in weights] != [each.log for each in every[: len(weights)]]:
            return False
        if drawn.spent is None:
            self.pay_for_choice([each.log for each in every])
        self.used(drawn, (id(total), "a choice"))
        self.kept.append(total)
        return True

    def pay_for_choice(self, scores: list[PairedNumber]) -> None:
        """Pays for the exponential mechanism."""
        spread = self.spread(scores)
        self.pay(f"a choice by exp(score), of scores that may gain {spread} on another", spread)

    def weighted(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """One of several, chosen by weights e^score: the exponential mechanism; None for other choices."""
        weights = kwargs.get("p", args[3] if len(args) > 3 else None)
        if weights is None or is_plain(weights):
            return None
        entries = list(parts(weights))
        over = getattr(entries[0], "over", None) if entries else None
        summands = sorted(id(each.log) for each in weights_of(over))
        sums = all(isinstance(each, PairedNumber) and each.log is not None and each.over is over for each in entries)
        chosen = kwargs.get("size", args[1] if len(args) > 1 else None) is None and is_same(args[0])
        axis, extras = (weights.axis, weights.extras) if isinstance(weights, Vector) else (None, ())
        apart = over is None or over.along is not axis
        if apart or not sums or not chosen or extras or summands != sorted(id(each.log) for each in entries):
            raise self.run.refusal(
                "a choice by weights that are not exp(score) over their sum",
                "write p = w / w.sum(), w = np.exp(...), and choose one public candidate",
            )
        self.pay_for_choice([each.log for each in entries])
        return UnknownValue()


def weights_of(value: Any) -> tuple[Any, ...]:
    """The weights e^score that a number is, or is the sum of."""
    if not isinstance(value, PairedNumber):
        return ()
    return value.summed or ((value,) if value.log is not None else ())


def terms_of(value: Any) -> tuple[tuple[Fraction, FreshNoise], ...] | None:
    """The noise in a number that nothing has looked at."""
    if isinstance(value, Noisy) and value.value is None and not isinstance(value.base, NormedVector):
        return value.terms
    if isinstance(value, FreshNoise) and value.law in CENTRED and value.spent is None and value.axis is None:
        return ((ONE, value),)
    return None


def is_settled(value: Any) -> bool:
    """Whether there is no noise in a value that nothing has looked at."""
    return not isinstance(value, Noisy | FreshNoise) and all(map(is_settled, parts(value)))


def rate(factor: Fraction, drawn: FreshNoise) -> Fraction:
    """How fast the log of the density of factor times a draw falls, rounded up: that of a step, for whole ones."""
    if drawn.law != "geometric":
        return 1 / (abs(factor) * drawn.scale)
    with flint().ctx.workprec(BITS):
        return Fraction(of_ball(-ball(drawn.scale).log()).upper)
