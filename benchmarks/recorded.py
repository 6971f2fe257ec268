"""Recorded noise on mechanisms of which the truth is known: `python -m benchmarks.recorded [--seeds 20] [NAME ...]`.

Each case is analysed in a forked child of its own for each seed, so that one that hangs or exits harms no other. The
exit code is 1 where fewer than 36 of 40 broken mechanisms have a lead at every seed, where any word is false, or where
a record takes more than 50 runs.
"""

from __future__ import annotations

import argparse
import io
import math
import multiprocessing
import os
import resource
import sys
from collections import Counter
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.tables import print_table
from tests.recording.corpus import BROKEN, EVASIVE, SOUND, Case

LIMIT_S = 60.0
RUNS = 50  # a record has to do with these
ENDED, LATE = "the child ended", f"no answer in {LIMIT_S:g} s"
MISSES = 4  # broken mechanisms that may have no lead
DIGITS = 1e-3  # losses are told to three digits


def child(ask: Any, case: Case, back: Connection) -> None:
    """What a function of the call and both datasets says of a case; runs in a child."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = io.StringIO()
    try:
        back.send(ask(case.call, *case.pair))
    except BaseException as error:
        back.send(f"{type(error).__name__}: {error}")
    back.close()


def record(case: Case, seed: int) -> Any:
    """The record of a case at a seed, looked at again in another child; text where there is none, and why."""
    from dpaudit.recording.replays import analysed, confirmed, constant

    one = asked(partial(analysed, claim=case.claim, seed=seed), case)
    if isinstance(one, str) or not any(map(constant, one.leads)):
        return one
    return asked(partial(confirmed, record=one, seed=seed + 1_000), case)


def asked(ask: Any, case: Case) -> Any:
    """What one child says."""
    forked = multiprocessing.get_context("fork")
    here, there = forked.Pipe(duplex=False)
    process = forked.Process(target=child, args=(ask, case, there), daemon=True)
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(LIMIT_S) else LATE
    except EOFError:
        return ENDED
    finally:
        process.kill()
        process.join()


def false_loss(case: Case, loss: float | None, at_most: bool) -> bool:
    """Whether a loss that is stated of the pair, or the most that it can be, is not so."""
    if loss is None or case.loss is None or math.isinf(loss) and math.isinf(case.loss):
        return False
    low = loss < case.loss * (1.0 - DIGITS) - 1e-9
    return low or not at_most and loss > case.loss * (1.0 + DIGITS) + 1e-9


def judged(case: Case, said: Any) -> tuple[bool, list[str]]:
    """Whether there is a lead, and what is false in what was said."""
    if isinstance(said, str):
        return False, [] if case in EVASIVE and said in (ENDED, LATE) else [said]
    wrong = [f"{lead.kind} lead {lead.parts}, loss {lead.loss}" for lead in said.leads if lead.kind not in case.kinds]
    stated = [lead for lead in said.leads if lead.loss is not None]
    largest = max(stated, key=lambda lead: lead.loss, default=None)
    if all(lead.kind in ("shift", "law") for lead in said.leads):  # of others, what is lost is without end
        if said.leads and largest is None:
            wrong.append("lead without loss")
        if largest is not None and false_loss(case, largest.loss, largest.at_most):
            wrong.append(f"lead states {largest.loss:.6g}, is {case.loss}")
    if false_loss(case, said.loss, said.at_most):
        wrong.append(f"record states {said.loss:.6g}, is {case.loss}")
    if case not in EVASIVE:  # whose draws are all recorded
        wrong += said.unseen
    if said.runs > RUNS and any(lead.kind == "shift" for lead in said.leads):
        wrong.append(f"{said.runs} runs")
    return bool(said.leads), wrong


def run(quick: bool, seeds: int = 20, names: tuple[str, ...] = ()) -> bool:
    """Prints what is said of all cases, or of those with these names, and gives whether the lines are held."""
    seeds, held = 2 if quick else seeds, True
    rows: list[list[str]] = []
    for group, cases in (("broken", BROKEN), ("sound", SOUND), ("evasive", EVASIVE)):
        cases = [case for case in cases if not names or case.name in names]
        before, led, false = resource.getrusage(resource.RUSAGE_CHILDREN), 0, 0
        for case in cases:
            leads, words, unseen = 0, Counter[str](), Counter[str]()
            for seed in range(seeds):
                said = record(case, seed)
                lead, wrong = judged(case, said)
                leads += lead
                words.update(wrong)
                unseen.update([said] if isinstance(said, str) else said.unseen)
            led += leads == seeds
            false += bool(words)
            if words or names or group == "broken" and leads < seeds:
                print(f"{group} {case.name}: {leads} leads in {seeds} seeds; false: {dict(words)}; {dict(unseen)}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rows.append(
            [
                group,
                str(len(cases)),
                str(led),
                str(false),
                f"{seconds:.1f}",
                f"{seconds / max(1, len(cases) * seeds):.3f}",
            ]
        )
        held &= not false and (group != "broken" or led >= len(cases) - MISSES)
    print_table(
        f"Recorded noise, {seeds} seeds",
        ["set", "mechanisms", "lead at every seed", "a false word at any", "CPU s", "CPU s a record"],
        rows,
    )
    return held


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    sys.exit(not run(given.quick, given.seeds, tuple(given.names)))
