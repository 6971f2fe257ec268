"""What an audit of training found, and the words that it is told in: the verdict, three lines, what was not tested."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit.account.statements import NOT_PRIVATE
from dpaudit.base.numerals import counted
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Histogram
from dpaudit.scores import result as wording
from dpaudit.scores.dependence import Dependence
from dpaudit.scores.result import CERTIFIED, Estimate, Facts

MOST_LINES = 6  # of what was not tested, on the terminal
ANY_DEPENDENCE = "the coins alone, in whatever way canaries depend on each other; it decides"
INDEPENDENT_RUNS = (
    "trainings of one canary each that are independent runs of the same code: none knows what an earlier one drew, "
    "released or scored; it decides"
)
BLIND = "a coin that all canaries of a training share cannot be seen"
LONGEST_CODE, STEP = 200, "one step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Everything that `audit_training` found; all but `provenance` is a function of the question and its seed.

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
    def deciding(self) -> Estimate | None:
        """The estimate that decides: the first certified one with a p-value."""
        return next((each for each in self.on_line("certified") if each.p_value is not None), None)

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at `confidence`."""
        return self.p_value is not None and self.p_value <= error_probability(self.confidence)

    @property
    def p_value(self) -> float | None:
        """The p-value of the claim, of the deciding estimate."""
        return None if self.deciding is None else self.deciding.p_value

    @property
    def verdict(self) -> Verdict:
        """REFUTED or NOT_REFUTED; the second never means that the training is private."""
        return Verdict.REFUTED if self.refuted else Verdict.NOT_REFUTED

    @property
    def epsilon_lower(self) -> float | None:
        """The certified lower bound on epsilon at `delta`: of one step where the audit is of the step."""
        return None if self.deciding is None else self.deciding.epsilon_lower

    def on_line(self, line: str) -> tuple[Estimate, ...]:
        """The estimates of one of the three lines, in their order."""
        return tuple(each for each in self.lines if each.line == line)


def text(result: Trained) -> str:
    """What `print(result)` shows, in about twenty lines."""
    shown = result.not_tested[:MOST_LINES]
    more = len(result.not_tested) - len(shown)
    untested = [*shown, *([f"and {counted(more, 'more thing')}, in the report"] if more else [])]
    dependence = "" if result.dependence is None else result.dependence.words.partition(";")[0]
    dependence += f"; {BLIND}" if dependence and (result.trainings_used, result.steps) == (1, None) else ""
    facts = [
        *wording.line_facts(result.lines, meanings(result), "" if result.steps is None else STEP),
        ("the bound", wording.apart(result.claim, result.deciding, result.refuted)),
        ("dependence", dependence),
        *asked(result),
        *(("not tested" if k == 0 else "", each) for k, each in enumerate(untested)),
        ("not refuted", "" if result.refuted else NOT_PRIVATE),
    ]
    return wording.laid_out(headline(result), [(title, fact) for title, fact in facts if fact])


def headline(result: Trained) -> str:
    """The verdict in one line."""
    return wording.headline(result.verdict.value.replace("_", " "), claim(result), result.deciding, result.confidence)


def claim(result: Trained) -> str:
    """The claim, and what it is about."""
    return " of ".join(filter(None, (str(result.claim), of(result))))


def promise(result: Trained) -> str:
    """What the claim promises, in plain words."""
    about = of(result) or "the whole training"
    return f"Of {about}: {result.claim.short}. It promises: {result.claim.promise('its neighbour')}."


def of(result: Trained) -> str:
    """What the claim and the statements are about, where it is not the whole training."""
    sampled = "" if result.sample_rate == 1.0 else f" before it is sampled at rate {result.sample_rate:g}"
    return "" if result.steps is None else f"one step{sampled}"


def meanings(result: Trained) -> dict[str, str]:
    """What each line rests on, for the way that these trainings were made."""
    certified = INDEPENDENT_RUNS if result.canaries == 1 else ANY_DEPENDENCE
    if result.steps is not None:
        certified += ", and says that not every step keeps less"
    return wording.MEANINGS | {CERTIFIED: certified}


def asked(result: Trained) -> Facts:
    """What was trained, with which canaries and coins, and for which evidence."""
    used = counted(result.trainings_used, "training")
    if result.trainings_used < result.trainings:
        used += f" of at most {result.trainings:,}"
    coins = "a fair coin of its own for each" + ("" if result.steps is None else f" at each of {result.steps:,} steps")
    evidence = wording.judged(None, result.deciding)
    if result.e_values:
        needed = 1.0 / (1.0 - result.confidence)
        evidence = f"largest e-value {max(result.e_values):.4g} against the claim; from {needed:.4g} on refuted"
    return [
        ("trained", f"{used}, {counted(result.canaries, 'canary', 'canaries')}, {coins}; seed {result.seed}"),
        ("inserted", result.inserted),
        ("evidence", evidence),
    ]


def scores(result: Trained) -> str:
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


def repeat(result: Trained) -> tuple[str, ...]:
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
