"""The page of a result of `audit_training`: HTML, Markdown, figures and JSON beside one another."""

from typing import Any

from dpaudit.account.sections import Section
from dpaudit.account.statements import NO_BITS, at_delta
from dpaudit.base.numerals import counted
from dpaudit.base.validate import error_probability
from dpaudit.report.account import Account, pictures, sentence, short
from dpaudit.scores.few import ceiling
from dpaudit.scores.result import CERTIFIED, INDEPENDENT, number_text
from dpaudit.training import wording
from dpaudit.training.wording import Trained

LIBRARIES = {name: name for name in ("numpy", "torch", "opacus", "jax", "jax-privacy")}
MADE_BY = {"version": "dpaudit", "python": "Python", **LIBRARIES, "platform": "on"}  # in the provenance
NEIGHBOURS = "Neighbours differ in one canary, which is added or removed."
CANARY = (
    "A canary is a record, or the gradient of one, that was made for this audit.",
    "Whether it was in was decided by a fair coin of this audit's own, and told to `train`.",
)
TOGETHER = (
    "There are mechanisms that keep their claim exactly, answer all canaries together, and are put above it by bounds "
    "that assume independent canaries far more often than the confidence says."
)
NEVER = "A lower bound never shows that a claim holds: nothing here says that the training is private."


def account_of(result: Trained, record: dict[str, Any]) -> Account:
    """The page of a result, as plain values; `record` is its stored form."""
    many, claim = result.canaries == 1, wording.claim(result)
    drawn = result.sample_rate == 1.0  # otherwise the claim is of a step before it is sampled, the scores of one after
    return Account(
        kind="Audit of private training",
        stem="training",
        title=f"Private training against {claim}",
        stamp=result.verdict.value.replace("_", " "),
        tone="refuted" if result.refuted else "kept",
        short=short(
            result.claim, claim, result.deciding, result.confidence, result.refuted, "The training as it was run here"
        ),
        estimates=result.lines,
        meanings=wording.meanings(result),
        parts=tuple(_parts(result)),
        not_tested=Section("What was not tested", (*map(sentence, result.not_tested), NO_BITS, NEVER)),
        drawings=pictures(
            claim=result.claim if drawn else None,
            confidence=result.confidence,
            decided=result.deciding if drawn else None,
            histogram=result.histogram,
            roc=result.roc,
            band=result.band,
            band_line=CERTIFIED if many else INDEPENDENT,
            of="scores" if result.steps is not None else "trainings" if many else "canaries",
            about=wording.scores(result),
            e_values=result.e_values,
        ),
        repeat=wording.repeat(result),
        record=record,
        of="" if result.steps is None else wording.STEP,
    )


def _parts(result: Trained) -> list[Section]:
    """What was asked and done, and what the test of dependence can say."""
    asked = dict(wording.asked(result))
    inserted = asked.pop("inserted") or "the caller gave no words for what was inserted"
    parts = [
        Section("claim", (wording.promise(result), NEIGHBOURS)),
        Section("inserted", (sentence(inserted), *CANARY)),
        *(Section(title, (sentence(told),)) for title, told in asked.items() if told),
    ]
    if result.dependence is not None:
        more = () if result.canaries == 1 else (TOGETHER,)
        parts.append(Section("dependence", (sentence(result.dependence.words), *more)))
    if result.canaries > 1 and result.sample_rate == 1.0:
        parts.append(Section("could have shown", (_could_show(result),)))
    told = [f"{words} {result.provenance[name]}" for name, words in MADE_BY.items() if name in result.provenance]
    if isinstance(spent := result.provenance.get("cpu_s"), float):
        told.append(f"{spent:.3g} CPU seconds")
    return [*parts, *([Section("made by", (f"{', '.join(told)}.",))] if told else [])]


def _could_show(result: Trained) -> str:
    """What these canaries would have shown of a training that gives every one of them away."""
    given = result.canaries, result.claim, result.delta, error_probability(result.confidence)
    best, least = ceiling(*given, trainings=result.trainings, steps=result.steps)
    about = at_delta(result.delta) + (f" of {wording.of(result)}" if wording.of(result) else "")
    best_text = f"Had the scores told every coin: epsilon >= {number_text(best)}{about}."
    if least is None:
        return f"{best_text} No number of canaries can refute this claim so."
    each = " a training" if result.trainings > 1 else ""
    return f"{best_text} Then {counted(least, 'canary', 'canaries')}{each} would refute this claim, and no fewer."
