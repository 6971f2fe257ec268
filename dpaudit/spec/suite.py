"""Several questions at one confidence: how the error probability is divided, and the command that repeats one file."""

import shlex
from dataclasses import replace

from dpaudit.errors import at
from dpaudit.spec.questions import Question


def share(confidence: float, audits: int) -> float:
    """The confidence of each of so many audits, so that together they err with probability at most 1 - confidence.

    >>> share(0.999, 1)
    0.999
    """
    return confidence if audits == 1 else 1.0 - (1.0 - confidence) / audits


def shared(questions: tuple[Question, ...]) -> tuple[tuple[Question, ...], float]:
    """The questions, each at its share, and the confidence of the suite; raises `InvalidSpec` for too few runs."""
    if not questions:
        return (), 0.0
    confidence = max(question.confidence for question in questions)
    each = share(confidence, len(questions))
    posed = tuple(replace(question, confidence=each) for question in questions)
    for question in posed:
        with at(question.place):
            question.check()  # a share may ask for more runs than the whole
    return posed, confidence


def command(
    question: Question,
    questions: tuple[Question, ...],
    tags: tuple[str, ...],
    *,
    only: tuple[str, ...] = (),
    runs: int | None = None,
    controls: int | None = None,
) -> str:
    """The command that repeats this question's file as it was run here: same seed, same share of the confidence.

    `questions` are those of the suite, at their shares; `runs` and `controls` are given where they did not come from
    the spec.
    """
    siblings = sum(other.source == question.source for other in questions)
    parts = ["dpaudit", "run", str(question.source)]
    parts += [word for tag in tags for word in ("--tag", tag)]
    parts += [word for name in only for word in ("--only", name)]
    parts += ["--seed", str(question.seed), "--confidence", _whole_confidence(question.confidence, siblings)]
    for option, value in (("--runs", runs), ("--controls", controls)):
        parts += [] if value is None else [option, str(value)]
    return shlex.join(parts)


def _whole_confidence(each: float, audits: int) -> str:
    """The shortest decimal whose share among so many audits is exactly `each`."""
    whole = 1.0 - (1.0 - each) * audits
    texts = (f"{whole:.{digits}g}" for digits in range(1, 18))
    return next((text for text in texts if share(float(text), audits) == each), repr(whole))
