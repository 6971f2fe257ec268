"""Stored results, suites and proofs with one field changed: none changes a verdict, none is an internal error.

And certificates of proofs that a forger made, for claims that are false: none is accepted.

Every field of every kind of file is left out, put twice, exchanged with its neighbour, or replaced by a value of
another type or size. Twice: as the file stands, where the digest in it must show every change; and with the digest
made anew, as a forger would, where what is derived must be refused, and what is not is read, rendered and compared.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables import print_table as show
from dpaudit import report
from dpaudit.api.audits import audit
from dpaudit.base.strict import content_digest, parsed
from dpaudit.claims import Claim, GaussianDP, PureDP, RenyiDP
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.ledger.baseline import accept
from dpaudit.ledger.comparison import compare
from dpaudit.ledger.history import Half
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import loads
from dpaudit.results.stored.reading import either_of, named
from dpaudit.results.suite import SuiteEntry, SuiteResult

Place = tuple[str | int, ...]
SLOW_S = 2.0
TWICE, GONE = "\0twice\0", "\0gone\0"  # marks of what JSON values cannot say
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, -0.0, 0.5, 5e-324, 1e308, float("nan"), float("inf"), 2**63 - 1, 2**64, 10**30, "", "x", "inf",
    "\ud800", "\x00", "\u202e", [], {}, [[]], {"a": None}, "REFUTED", "9" * 400,
)  # fmt: skip
LISTED = 3  # entries of a long list that are changed: the first, one in between, the last


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where something stands in a value of JSON; of long lists only some entries."""
    yield at
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*at, key))
    if isinstance(value, list):
        for number in sorted({0, len(value) // 2, len(value) - 1} if len(value) > LISTED else range(len(value))):
            yield from places(value[number], (*at, number))


def changes(whole: Any, place: Place) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every change of what stands at a place: its name, and what makes it; the value itself is never among them."""
    old = _at(whole, place)
    was = json.dumps(old)
    near = [old + 1, old - 1, old * 2, -old] if isinstance(old, int | float) and not isinstance(old, bool) else []
    near += [old * 1.001, old * (1.0 - 1e-9)] if isinstance(old, float) else []
    near += [not old] if isinstance(old, bool) else [f"{old}x", old[:-1], old.upper()] if isinstance(old, str) else []
    near += [old[::-1], old[1:], [*old, *old[-1:]]] if isinstance(old, list) else []
    for value in (*near, *VALUES):
        if json.dumps(value) != was:
            yield f"{json.dumps(value)[:20]}", partial(_with, whole, place, value)
    if place:
        yield "left out", partial(_with, whole, place, GONE)
        holder = _at(whole, place[:-1])
        if isinstance(holder, dict):
            yield "twice", partial(_with, whole, place, {TWICE: old})
            moved = {f"{key}_" if key == place[-1] else key: value for key, value in holder.items()}
            yield "renamed", partial(_with, whole, place[:-1], moved)
            for other in list(holder)[:3]:
                if json.dumps(holder[other]) != was:
                    yield f"as {other}", partial(_with, whole, place, holder[other])


def text_of(whole: Any) -> str:
    """The text of a changed value, with keys that stand twice."""
    text = json.dumps(whole)
    while (at := text.find(json.dumps(TWICE))) >= 0:  # "key": {"<twice>": value}
        start = text.rindex("{", 0, at)
        value, end = json.JSONDecoder().raw_decode(text, text.index(":", at) + 2)
        key = text[text.rindex('"', 0, text.rindex('"', 0, start)) : start]
        text = f"{text[:start]}{json.dumps(value)}, {key}{json.dumps(value)}{text[end + 1 :]}"
    return text


def resigned(whole: Any) -> Any:
    """The same with the digests of its results made anew, by somebody who knows how."""
    whole = copy.deepcopy(whole)
    entries = whole.get("entries") if isinstance(whole, dict) else None
    inner = [each.get("result") for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    for result in (whole, *inner):
        provenance = result.get("provenance") if isinstance(result, dict) else None
        if isinstance(provenance, dict) and "digest" in provenance:
            kept = {key: value for key, value in provenance.items() if key != "digest"}
            provenance["digest"] = content_digest({**result, "provenance": kept})
    return whole


@dataclass
class Tally:
    """What became of the files of a kind, and those that went wrong."""

    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def put(self, what: str, outcome: str, *, right: bool) -> None:
        """One file; what is not right is told."""
        self.kinds[outcome] += 1
        if not right:
            self.wrong.append(f"{what}: {outcome}")


def try_stored(original: Any, changed: str, before: AuditResult | SuiteResult) -> str:
    """What becomes of a changed file: refused, read, or in words what went wrong."""
    began = time.process_time()
    try:
        with named("it"):
            read = either_of(parsed(changed, cure="", not_json=""))
        if verdicts(read) != verdicts(before):
            return f"another verdict: {verdicts(read)}"
        for made in report.FORMATS.values():
            if made.single or isinstance(read, SuiteResult):
                report.render(read, made)
        if isinstance(read, AuditResult) and isinstance(before, AuditResult):
            compare([Half(before.name, before)], [Half(read.name, read)], old_label="a", new_label="b")
            if read.verdict is Verdict.REFUTED:
                accept(read, reason="known", until=date.max, today=date.min)
            loads(read.to_json())
        outcome = "read"
    except InvalidSpec as error:
        outcome = "refused" if str(error).isprintable() else f"not one line: {str(error)!r}"
    except DpAuditError as error:
        return f"{type(error).__name__}, which no reader should raise"
    except Exception as error:
        return f"internal error: {type(error).__name__}: {error}"
    return outcome if time.process_time() - began < SLOW_S else f"{outcome}, too slowly"


def verdicts(read: AuditResult | SuiteResult) -> Any:
    """All that a reader takes away."""
    if isinstance(read, SuiteResult):
        return sorted(f"{each.name} {each.result and verdicts(each.result)}" for each in read.entries), read.exit_code
    return read.verdict, read.representation_refuted, read.exit_code, f"{read.certificate.lower:.5g}"


def tampered(originals: dict[str, Any], *, share: float = 1.0, seed: int = 0) -> dict[str, Tally]:
    """What became of every change (or of a random share of them) of each kind of file, twice as the module says."""
    random_ = random.Random(seed)
    found: dict[str, Tally] = {}
    for kind, whole in originals.items():
        with named(kind):
            before = either_of(parsed(json.dumps(whole), cure="", not_json=""))
        tally = found[kind] = Tally()
        for place in places(whole):
            for name, make in changes(whole, place):
                if random_.random() >= share:
                    continue
                changed = make()
                what = f"{kind}: {'.'.join(map(str, place))} {name}"
                outcome = try_stored(whole, text_of(changed), before)
                bound = ("result" in place or kind != "a suite") and _signed(changed)
                tally.put(what, outcome, right=outcome == "refused" or (outcome == "read" and not bound))
                again = text_of(resigned(changed))
                outcome = try_stored(whole, again, before)
                tally.put(f"{what}, digest made anew", outcome, right=outcome in ("refused", "read"))
    return found


def results() -> dict[str, Any]:
    """A stored file of every kind: certifiers, stoppings, and what may stand beside a verdict."""

    def noisy(data: Any, rng: np.random.Generator) -> Any:
        return data + rng.laplace(scale=0.4)

    def mixed(data: Any, rng: np.random.Generator) -> Any:
        if rng.random() < 0.1 * data:
            raise ValueError("too many")
        return {"count": data + rng.laplace(), "word": "even" if rng.random() < 0.4 else None}

    def asked(mechanism: Any, claim: Claim, **options: Any) -> AuditResult:
        given = {"runs": 4_000, "confidence": 0.95, "n_jobs": 1, **options}
        return audit(mechanism, **({"pair": (0, 1)} if "pairs" not in given else {}), claim=claim, **given)

    made = {
        "fixed": asked(noisy, PureDP(1.0)),
        "kept": asked(noisy, PureDP(6.0)),
        "anytime": asked(noisy, PureDP(1.0), stopping="anytime"),
        "Gaussian": asked(noisy, GaussianDP(1.0)),
        "Renyi": asked(noisy, RenyiDP(2.0, 0.5)),
        "mixed outputs": asked(mixed, PureDP(1.0)),
        "several pairs": asked(noisy, PureDP(1.0), pairs=[(0, 1), (0, 2)], certify_pairs=2),
        "representation": asked(noisy, PureDP(3.0), representation=True),
        "controls": asked(noisy, PureDP(6.0), controls=1),
    }
    half = 1.0 - (1.0 - 0.95) * 2
    entries = tuple(
        SuiteEntry(each.name, Verdict.REFUTED, each, exit_code=each.exit_code) for each in (made["fixed"], made["kept"])
    )
    suite = SuiteResult(entries, half)
    stored = {kind: json.loads(result.to_json()) for kind, result in made.items()}
    return {**stored, "a suite": json.loads(report.render(suite, report.FORMATS["json"]))}


def proofs_tampered(proofs: dict[str, Any], *, share: float = 1.0, seed: int = 0) -> Tally:
    """What `dpaudit check-proof` makes of every change of stored proofs; `accepted` ones with what they show."""
    from dpaudit.verify.checker import check
    from dpaudit.verify.stored import from_dict, to_dict

    random_ = random.Random(seed)
    tally = Tally()
    for kind, proof in proofs.items():
        whole, before = to_dict(proof), check(proof)
        for place in places(whole):
            for name, make in changes(whole, place):
                if random_.random() >= share:
                    continue
                changed = make()
                what = f"{kind}: {'.'.join(map(str, place))} {name}"
                began = time.process_time()
                try:
                    read = from_dict(parsed(text_of(changed), cure="", not_json=""))
                    found = check(read)
                    shows = [(each.cost, each.scope, each.assumptions) for each in (found, before)]
                    same = shows[0] == shows[1] and ast.dump(ast.parse(read.source)) == ast.dump(
                        ast.parse(proof.source)
                    )
                    outcome = "accepted, the same" if same else f"accepted: {found.statement} ({found.scope})"
                    right = same
                except DpAuditError as error:
                    outcome, right = "refused or rejected", error.exit_code in (1, 2)
                except Exception as error:
                    outcome, right = f"internal error: {type(error).__name__}: {error}", False
                tally.put(what, outcome, right=right and time.process_time() - began < SLOW_S)
    return tally


class Forger:
    """Bases for a false claim: true steps, and steps changed at random, as far as the checker takes them for lemmas.

    `taken` counts the changed steps that it took, by their clauses; each must hold for all numbers.
    """

    def __init__(self, pool: list[str], true: Callable[[Any], Any], random_: random.Random) -> None:
        self.pool, self.true, self.random = pool, true, random_
        self.taken: Counter[Any] = Counter()
        self.refused = 0

    def __call__(self, obligation: Any) -> Any:
        from dpaudit.verify.alethe.steps import lemma
        from dpaudit.verify.proof import Basis

        known = self.true(obligation)
        steps = list(known.steps)
        for step in self.random.choices(steps * 5 + self.pool, k=12) if self.pool else ():
            changed = step_changed(step, self.random)
            try:
                self.taken[lemma(changed, obligation.symbols)] += 1
                steps.append(changed)
            except (DpAuditError, ZeroDivisionError):
                self.refused += 1
        return Basis(tuple(steps), known.state)


def step_changed(step: str, random_: random.Random) -> str:
    """A step of Alethe with one to three of its words changed."""
    from dpaudit.verify.alethe.terms import NUMBER, TOKEN

    words = TOKEN.findall(step)
    for _ in range(random_.choice((1, 1, 2, 3))):
        place = random_.choice([place for place, word in enumerate(words) if word not in "()"])
        word = words[place]
        if NUMBER.fullmatch(word):
            words[place] = random_.choice(("0", "1", "2", "-1", "1/2", "99/100", "3.0", f"{word}0"))
        elif word in (">=", ">", "<=", "<", "="):
            words[place] = random_.choice((">=", ">", "<=", "<", "="))
        elif word == "not" or random_.random() < 0.1:
            words[place] = ""
        else:
            others = [other for other in words if (other[0] == "|") == (word[0] == "|") and other not in "()"]
            words[place] = random_.choice(others)
        words = [each for each in words if each]
    return " ".join(words)


def forged(proofs: dict[str, Any], *, count: int, seed: int = 0) -> tuple[Tally, Counter[Any]]:
    """What the checker makes of so many forged certificates for false claims, and the clauses of changed steps it took.

    The proofs must be tight: of each, a claim of 1 % less, and the same claim of half the noise, are false.
    """
    from dpaudit.verify.alethe.search import Search
    from dpaudit.verify.checker import certified, checked

    pool = [step for proof in proofs.values() for each in certified(proof).certificate.values() for step in each.steps]
    false = {}
    for kind, proof in proofs.items():
        false[f"{kind}, 1 % less"] = replace(proof, cost=f"({proof.cost})*99/100")
        false[f"{kind}, half the noise"] = replace(proof, source=proof.source.replace("scale=", "scale=1/2*"))
    true = {kind: Search() for kind in false}
    tally, taken = Tally(), Counter[Any]()
    for number in range(count):
        kind = list(false)[number % len(false)]
        forger = Forger(pool, true[kind], random.Random(seed + number))
        try:
            outcome = f"accepted: {checked.check(false[kind], forger).statement}"
        except DpAuditError as error:
            outcome = "rejected" if error.exit_code == 1 else f"refused: {error}"
        tally.put(f"{kind}, certificate {seed + number}", outcome, right=outcome == "rejected")
        tally.kinds["changed steps refused"] += forger.refused
        tally.kinds["changed steps taken"] += forger.taken.total()
        taken += forger.taken
    return tally, taken


def untrue(clauses: Iterable[Any]) -> list[str]:
    """The clauses that do not hold for all numbers, as far as z3 knows: what is unknown is among them."""
    import z3

    from dpaudit.verify.alethe.obligations import Obligation
    from dpaudit.verify.language.algebra import Opposite

    found = []
    for clause in clauses:
        solver = z3.Solver()
        solver.set("timeout", 10_000)
        solver.from_string(Obligation((Opposite(clause),)).text)
        if solver.check() != z3.unsat:
            found.append(str(clause))
    return found


def _forgeries(quick: bool) -> None:
    from benchmarks.programs import RIGHT
    from dpaudit.verify.alignment import prove
    from dpaudit.verify.language import read
    from dpaudit.verify.proof import Proof

    found = {name: prove(read(case.function), case.adjacency, claim=case.claim) for name, case in RIGHT.items()}
    proofs = {name: each for name, each in found.items() if isinstance(each, Proof)}
    tally, taken = forged(proofs, count=150 if quick else 3_000)
    wrong = untrue(taken)
    show("Forged certificates for false claims", ("what", "number"), [(k, str(v)) for k, v in tally.kinds.items()])
    print(f"\nclauses of changed steps: {len(taken)}, not true of all numbers: {len(wrong)}; wrong: {len(tally.wrong)}")
    for line in [*tally.wrong, *wrong][:5]:
        print(f"- {line[:300]}")


def run(quick: bool) -> None:
    """The tables of results and suites, and of certificates of proofs."""
    _forgeries(quick)
    found = tampered(results(), share=0.02 if quick else 1.0)
    rows = [
        (
            kind,
            str(sum(tally.kinds.values())),
            str(tally.kinds["refused"]),
            str(tally.kinds["read"]),
            str(len(tally.wrong)),
        )
        for kind, tally in found.items()
    ]
    show("Stored files with one field changed", ("file", "changes", "refused", "read, the same verdict", "wrong"), rows)
    for tally in found.values():
        for line in tally.wrong[:5]:
            print(f"- {line[:300]}")


def _signed(whole: Any) -> bool:
    """Whether every result still has a digest; without one it is a file of before there were any."""
    if not isinstance(whole, dict):
        return True
    if isinstance(whole.get("entries"), list):
        return all(_signed(each.get("result")) for each in whole["entries"] if isinstance(each, dict))
    return not isinstance(whole.get("provenance"), dict) or "digest" in whole["provenance"]


def _at(whole: Any, place: Place) -> Any:
    for key in place:
        whole = whole[key]
    return whole


def _with(whole: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    if len(place) > 1:
        return _with(whole, place[:1], _with(whole[place[0]], place[1:], value))
    made = copy.copy(whole)
    if isinstance(value, str) and value == GONE:
        del made[place[0]]
    else:
        made[place[0]] = value
    return made
