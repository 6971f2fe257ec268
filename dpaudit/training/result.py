"""The result of `audit_training`: its account and figures; stored, read back, and raised where it refutes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, get_type_hints

from dpaudit.account import Account, Level, Section, account
from dpaudit.account.statements import NO_BITS, at_delta
from dpaudit.base.files import write_text
from dpaudit.base.numerals import counted
from dpaudit.base.strict import by_fields, fitted, read, text_of
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim, claim_from_dict
from dpaudit.errors import ClaimRefuted, InvalidSpec
from dpaudit.mechanisms.importing import in_a_line
from dpaudit.report import write_page
from dpaudit.report.figures import Drawing, drawings
from dpaudit.report.figures.membership import pictures
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Histogram
from dpaudit.scores import result as wording
from dpaudit.scores.dependence import Dependence
from dpaudit.scores.few import ceiling
from dpaudit.scores.result import CERTIFIED, INDEPENDENT, STEP, Estimate, line_sections, sentence

SCHEMA = "dpaudit.training/1"
CURE = "restore the file, or audit again"
MOST_LINES, MOST_STATEMENTS = 6, 4  # of what was not tested, and on all three lines together, on the first page
ANY_DEPENDENCE = "the coins alone, in whatever way canaries depend on each other; it decides"
INDEPENDENT_RUNS = (
    "trainings of one canary each that are independent runs of the same code: none knows what an earlier one drew, "
    "released or scored; it decides"
)
BLIND = "A coin that all canaries of a training share cannot be seen"
LONGEST_CODE = 200


LIBRARIES = {name: name for name in ("numpy", "torch", "opacus", "jax", "jax-privacy")}
MADE_BY = {"version": "dpaudit", "python": "Python", **LIBRARIES, "platform": "on"}  # in the provenance
NEIGHBOURS = "Neighbours differ in one canary, which is added or removed."
CANARY = (
    "A canary is a record, or the gradient of one, that was made for this audit.",
    "A fair coin of this audit decided whether it was in, and `train` was given the answer.",
)
TOGETHER = (
    "There are mechanisms that keep their claim exactly, answer all canaries together, and are put above it by bounds "
    "that assume independent canaries far more often than the confidence says."
)
NEVER = "A lower bound never shows that a claim holds: nothing here says that the training is private."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrainingResult(wording.Decided):
    """The answer of `audit_training`; all but `provenance` is a function of the question and its seed.

    `trainings` is how many were allowed, `trainings_used` how many were run. `steps` is None where the claim is about
    the whole run, and the number of steps where it is about one step; `compose` steps are then composed, each of a
    sample of ours at `sample_rate`. `lines` are the estimates; the first certified one decides. `e_values` is the
    evidence against the claim after each training, where trainings are combined: refuted at 1 / (1 - confidence). `roc`
    holds the corners (fpr, fnr) of the scores' trade-off, `band` upper limits of (fpr, fnr) that hold together at
    `confidence`: certified where every training has one canary. `repeat` are lines that ask the same again.
    `provenance` may differ between two equal audits.
    """

    claim: Claim
    delta: float
    confidence: float
    seed: int
    canaries: int
    trainings: int
    trainings_used: int
    steps: int | None = None
    compose: int | None = None
    sample_rate: float = 1.0
    inserted: str = ""
    not_tested: tuple[str, ...] = ()
    lines: tuple[Estimate, ...] = ()
    dependence: Dependence | None = None
    e_values: tuple[float, ...] = ()
    histogram: Histogram | None = None
    roc: tuple[tuple[float, float], ...] = ()
    band: tuple[tuple[float, float], ...] = ()
    repeat: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def stated(self) -> tuple[Estimate, ...]:
        """The estimates on all lines."""
        return self.lines

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at `confidence`."""
        return self.p_value is not None and self.p_value <= error_probability(self.confidence)

    @property
    def verdict(self) -> Verdict:
        """REFUTED or NOT_REFUTED; the second never means that the training is private."""
        return Verdict.REFUTED if self.refuted else Verdict.NOT_REFUTED

    def on_line(self, line: str) -> tuple[Estimate, ...]:
        """The estimates of one of the three lines, in their order."""
        return tuple(each for each in self.lines if each.line == line)

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self))
        return self

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, as JSON holds it; the verdict is derived, and read back never."""
        return {"schema": SCHEMA, "verdict": self.verdict.value, **by_fields(self)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the result as JSON, whole or not at all."""
        return write_text(path, text_of(self.to_dict()))

    def write_report(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes a page about this result in HTML and Markdown, its figures and its JSON; returns their paths."""
        return write_page(self, folder)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        stamp = self.verdict.value.replace("_", " ")
        return wording.headline(stamp, self.claim, self.about, self.deciding, self.confidence)

    @property
    def of(self) -> str:
        """What the claim and the statements are about, where it is not the whole training."""
        sampled = "" if self.sample_rate == 1.0 else f" before it is sampled at rate {self.sample_rate:g}"
        return "" if self.steps is None else f"{STEP}{sampled}"


def _numbers(detail: Mapping[str, Any]) -> dict[str, Any]:
    """What a method stored beside its bound, infinity as a number again."""
    return {name: float(value) if value in ("inf", "-inf") else value for name, value in detail.items()}


def load(path: str | os.PathLike[str]) -> TrainingResult:
    """The result in a file that `TrainingResult.save` wrote; raises `InvalidSpec` where it is none."""
    stored = read(path, cure=CURE, not_json="give the path of a result that audit_training saved")
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise InvalidSpec(f"{path}: no result of an audit of training ({SCHEMA}); {CURE}")
    hints = get_type_hints(TrainingResult)
    try:
        values = {each.name: stored[each.name] for each in fields(TrainingResult)}
        claim = claim_from_dict(dict(values.pop("claim")))
        given = {name: fitted(value, hints[name], strict=False) for name, value in values.items()}
        given["lines"] = tuple(replace(each, detail=_numbers(each.detail)) for each in given["lines"])
        result = TrainingResult(claim=claim, **given)
        str(result)  # it can be told
    except (KeyError, TypeError, ValueError, OverflowError) as error:  # those of msgspec and of claims are ValueErrors
        raise InvalidSpec(f"{path}: not a result that was saved ({in_a_line(error)}); {CURE}") from None
    if stored.get("verdict") != result.verdict.value:
        raise InvalidSpec(f"{path}: the stored verdict is not that of its estimates; {CURE}")
    return result


# --- its words ---


def meanings(result: TrainingResult) -> dict[str, str]:
    """What each line rests on, for the way that these trainings were made."""
    certified = INDEPENDENT_RUNS if result.canaries == 1 else ANY_DEPENDENCE
    if result.steps is not None:
        certified += ", and says that not every step keeps less"
    return wording.MEANINGS | {CERTIFIED: certified}


def trained(result: TrainingResult) -> str:
    """What was trained, with which canaries and coins, and what was put in."""
    used = counted(result.trainings_used, "training")
    if result.trainings_used < result.trainings:
        used += f" of at most {result.trainings:,}"
    coins = "a fair coin of its own for each" + ("" if result.steps is None else f" at each of {result.steps:,} steps")
    made = f"{used}, {counted(result.canaries, 'canary', 'canaries')}, {coins}; seed {result.seed}"
    return f"{sentence(made)} {sentence(result.inserted or 'the caller gave no words for what was inserted')}"


def scores(result: TrainingResult) -> str:
    """Where the scores of the picture come from."""
    histogram = result.histogram
    shown = 0 if histogram is None else histogram.runs_first + histogram.runs_second
    every = result.trainings_used * result.canaries * (result.steps or 1)
    by = f"They are from {counted(result.trainings_used, 'training')}"
    by += "" if result.steps is None else f", one for each canary at each of {result.steps:,} steps"
    by += "." if shown >= every else f"; the first {shown:,} of {every:,} are shown."
    if result.sample_rate == 1.0:
        return by
    return f"{by} Canaries joined a step at rate {result.sample_rate:g}; the claim is of a step before, and not drawn."


def repeat(result: TrainingResult) -> tuple[str, ...]:
    """Lines that ask the same again: those that the door gave, or the Python form, where `train` is the user's."""
    if result.repeat:
        return result.repeat
    stated = {key: value for key, value in result.claim.to_dict().items() if value is not None}
    claim = ", ".join(f"{key}={value!r}" for key, value in stated.items() if key != "form")
    asked = {name: getattr(result, name) for name in ("delta", "trainings", "steps", "compose", "confidence", "seed")}
    asked |= {"sample_rate": result.sample_rate} if result.sample_rate < 1.0 else {}
    options = ", ".join(f"{name}={value!r}" for name, value in asked.items() if value is not None)
    claim, known = f"dpaudit.{stated['form']}({claim})", "# train is the function that was audited"
    if len(claim) > LONGEST_CODE:
        claim, known = "claim", f"{known}, claim the {result.claim} of the record"
    return (
        known,
        "dpaudit.audit_training(",
        f"    train, canaries={result.canaries}, claim={claim},",
        f"    {options},",
        ")",
    )


# --- its account and its figures ---


@drawings.register
def _drawings(result: TrainingResult) -> tuple[Drawing, ...]:
    many = result.canaries == 1
    drawn = result.sample_rate == 1.0  # otherwise the claim is of a step before it is sampled, the scores of one after
    of = "scores" if result.steps is not None else "trainings" if many else "canaries"
    band_line = CERTIFIED if many else INDEPENDENT
    return pictures(result, result.claim if drawn else None, band_line, of=of, about=scores(result))


@account.register
def _of_training(result: TrainingResult, up_to: Level = Level.REVIEWER) -> Account:
    """What was found, on three lines; what was asked and done, and what the test of dependence can say."""
    evidence = wording.judged(None, result.deciding)
    if result.e_values:
        needed = 1.0 / (1.0 - result.confidence)
        evidence = f"largest e-value {max(result.e_values):.4g} against the claim; from {needed:.4g} on refuted"
    promise = f"{result.claim.short}. It promises: {result.claim.promise('its neighbour')}."
    untested = (*map(sentence, result.not_tested), NO_BITS, NEVER)
    seen = "" if result.dependence is None else sentence(result.dependence.words)
    more = () if result.canaries == 1 or not seen else (TOGETHER,)
    blind = f" {BLIND}." if seen and (result.trainings_used, result.steps) == (1, None) else ""
    could = _could_show(result) if result.canaries > 1 and result.sample_rate == 1.0 else ""
    told = [f"{words} {result.provenance[name]}" for name, words in MADE_BY.items() if name in result.provenance]
    if isinstance(spent := result.provenance.get("cpu_s"), float):
        told.append(f"{spent:.3g} CPU seconds")
    shown, left = untested[:MOST_LINES], len(untested) - MOST_LINES
    first, detail = Level.PAGE_ONE, Level.DETAIL
    sections = [
        *line_sections(result.lines, meanings(result), "" if result.steps is None else STEP, MOST_STATEMENTS),
        Section("trained", first, (trained(result),)),
        Section("evidence", first, (sentence(evidence),) if evidence else ()),
        Section("dependence", first, (f"{seen.partition(';')[0].removesuffix('.')}.{blind}",) if seen else ()),
        wording.to_do(result, "The training as it was run here"),
        Section("not tested", first, (" ".join([*shown, *([f"And {counted(left, 'more thing')}."] * (left > 0))]),)),
        Section("repeat", first, _lacking(result), code=(command(result),)),
        wording.sure(result),
        Section("claim", detail, (f"Of {result.of or 'the whole training'}: {promise}", NEIGHBOURS)),
        Section("canaries", detail, CANARY),
        Section("test of dependence", detail, (seen, *more) if seen else ()),
        Section("could have shown", detail, (could,) if could else ()),
        Section("not tested either", detail, untested[MOST_LINES:]),
        Section("made by", detail, (f"{', '.join(told)}.",) if told else ()),
        Section("call", detail, code=repeat(result)),
    ]
    return wording.assembled("Audit of private training", result, result.headline, sections, up_to)


def command(result: TrainingResult) -> str:
    """How to repeat it in one line."""
    text = " ".join(each.strip() for each in repeat(result) if not each.startswith("#"))
    return text.replace("( ", "(", 1).removesuffix(", )") + ")" * text.endswith(", )")


def _lacking(result: TrainingResult) -> tuple[str, ...]:
    """What stands in the line that repeats it and that only its author has."""
    return tuple(f"where {each.removeprefix('# ')}:" for each in repeat(result) if each.startswith("# "))


def _could_show(result: TrainingResult) -> str:
    """What these canaries would have shown of a training that gives every one of them away."""
    given = result.canaries, result.claim, result.delta, error_probability(result.confidence)
    best, least = ceiling(*given, trainings=result.trainings, steps=result.steps)
    where = at_delta(result.delta) + (f" of {result.of}" if result.of else "")
    words = "No number of canaries can refute this claim so."
    if least is not None:
        each = " a training" if result.trainings > 1 else ""
        words = f"Then {counted(least, 'canary', 'canaries')}{each} would refute this claim, and no fewer."
    return f"Where scores give every coin away: epsilon >= {wording.number_text(best)}{where}. {words}"
