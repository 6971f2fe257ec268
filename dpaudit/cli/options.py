"""What the commands share of their options: checked under the names that the user typed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.spec_file import Question, Wishes


def wishes(
    *,
    runs: float | None = None,
    confidence: float | None = None,
    seed: int | None = None,
    controls: int | None = None,
) -> Wishes:
    """What goes before and after the spec here. Raises `InvalidSpec` naming the option, or the key of the project."""
    from dpaudit import validate
    from dpaudit.auditing.spec import FEWEST_RUNS
    from dpaudit.spec_file import Wishes, read_settings

    return Wishes(
        runs=None if runs is None else validate.whole("--runs", runs, least=FEWEST_RUNS),
        confidence=None if confidence is None else validate.open_probability("--confidence", confidence),
        seed=None if seed is None else validate.whole("--seed", seed, least=0),
        controls=None if controls is None else validate.whole("--controls", controls, least=0),
        settings=read_settings(Path.cwd()),
    )


def tagged(questions: list[Question], tags: tuple[str, ...]) -> tuple[Question, ...]:
    """The questions that carry one of the tags; all of them where none is asked for."""
    return tuple(question for question in questions if not tags or set(tags) & set(question.tags))


def nothing_to_audit(paths: tuple[str, ...], tags: tuple[str, ...], audits: int) -> str:
    """Why there is nothing to do."""
    where = ", ".join(paths)
    if audits:
        return f"nothing to audit: none of the {audits} audits in {where} has the tag {' or '.join(map(repr, tags))}"
    return f"nothing to audit: no [[audit]] in {where}"
