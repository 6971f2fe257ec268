"""The page of a result of `audit_scores`."""

import os
from pathlib import Path

from dpaudit.report.account import Account, pictures, short, write
from dpaudit.results.wording.numerals import counted
from dpaudit.results.wording.sections import Section
from dpaudit.scores.estimate import CERTIFIED
from dpaudit.scores.result import ScoresResult
from dpaudit.scores.wording import MEANINGS, judged

NOT_TESTED = (
    "Where the scores come from: they were taken as they are, and the design as it was said to be.",
    "Attacks other than the one that made these scores, other data, and other trainings than those it looked at.",
    "A lower bound never shows that a claim holds.",
)
TONES = {True: "refuted", False: "kept", None: "none"}


def write_page(result: ScoresResult, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes scores.json, the figures, scores.md and scores.html into a folder; returns their paths."""
    return write(account_of(result), folder)


def account_of(result: ScoresResult) -> Account:
    """The page of a result, as plain values."""
    decided = result.deciding
    claim = "" if result.claim is None else str(result.claim)
    certified = sum(each.line == CERTIFIED for each in result.estimates)
    parts = [
        Section("design", (f"{result.design}: {result.assumption}.",)),
        Section("scores", (f"{result.sizes[0]:,} in, {result.sizes[1]:,} out.", f"{result.choice.capitalize()}.")),
        Section("judged", (f"{judged(result.counts, decided)}.",)),
    ]
    if certified > 1:
        parts.append(Section("confidence", (f"{counted(certified, 'certified statement')}; each holds on its own.",)))
    return Account(
        kind="Audit of membership scores",
        stem="scores",
        title=f"Membership scores against {claim}" if claim else "Membership scores",
        stamp=result.headline.partition("  ")[0],
        tone=TONES[result.refuted],
        short=short(result.claim, claim, decided, result.confidence, result.refuted, "What was attacked"),
        estimates=result.estimates,
        meanings=MEANINGS | {CERTIFIED: f"its design, and no model of the scores: {result.assumption}"},
        parts=tuple(parts),
        not_tested=Section("What was not tested", NOT_TESTED),
        drawings=pictures(
            claim=result.claim,
            confidence=result.confidence,
            decided=decided,
            histogram=result.histogram,
            roc=result.roc,
            band=result.band,
            band_line=CERTIFIED,
            of="scores",
            about="They are those that the caller gave.",
        ),
        repeat=(),
        record=result.to_dict(),
    )
