"""Results read back: strict models of `dpaudit.result/1`, and the arithmetic again from the stored counts.

Contract: what `AuditResult.to_dict` writes is read exactly, floats bit for bit; anything else is refused with
one line. A file whose verdict, certificate, ceiling or hash its own numbers do not give is never loaded.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpaudit.base.files import FILE, found_at
from dpaudit.base.quoting import clean
from dpaudit.base.strict import LARGEST_SUITE, JsonObject, content_digest, fields_of, fitted, parsed, read, spec_hash
from dpaudit.base.validate import error_probability
from dpaudit.certify import Binned, Certificate, CoinFlip, certifier_named
from dpaudit.certify.binomial import joint_limits
from dpaudit.certify.certificate import divided
from dpaudit.claims import Claim, claim_from_dict
from dpaudit.errors import InvalidSpec, at
from dpaudit.events import Event, Partition, event_from_dict, partition_from_dict
from dpaudit.results.bounds import UpperBound
from dpaudit.results.certification import ceiling_of, certificate_of
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Histogram
from dpaudit.results.recorded import SCHEMA as RECORDED
from dpaudit.results.recorded import NoiseRecord
from dpaudit.results.result import SCHEMA, AuditResult, Finding, fingerprint, part_of, reached, recompute
from dpaudit.results.result import recompute_finding as of_finding
from dpaudit.results.stored.models import json_schema, model_of
from dpaudit.results.suite import SUITE_SCHEMA, SuiteEntry, SuiteResult

TOLERANCE = 1e-6  # relative; releases of scipy differ by less, and no reader sees so far
CURE = "restore the file, or audit again"
READERS = {"dpaudit.training/": "dpaudit.training.load", "dpaudit.recorded/": "dpaudit.load_record"}  # of others
GIVE = "give the path of a result that dpaudit saved"


def load(path: str | os.PathLike[str]) -> AuditResult:
    """The result in a file that `AuditResult.save` wrote.

    Raises `InvalidSpec` where the file is missing, is not such a result, or contradicts its own counts.
    """
    with named(path):
        return result_of(read(path, cure=CURE, not_json=GIVE))


def load_record(path: str | os.PathLike[str]) -> NoiseRecord:
    """The record of noise in a file that `dpaudit record --report` wrote. Raises `InvalidSpec` as `load` does."""
    with named(path):
        raw = read(path, cure=CURE, not_json=GIVE)
        check_schema(raw, RECORDED)
        return record_of(raw)


def loads(text: str, name: object = "a stored result") -> AuditResult:
    """The result in a text that `AuditResult.to_json` made; `name` is what errors call it.

    Raises `InvalidSpec` as `load` does.
    """
    with named(name):
        return result_of(parsed(text, cure=CURE, not_json=GIVE))


def result_of(raw: Any) -> AuditResult:
    """The result that a JSON object holds. Raises `InvalidSpec`, or `msgspec.ValidationError` for a wrong key."""
    check_schema(raw, SCHEMA)
    fitted(raw, model_of(AuditResult))
    return checked(raw)


def checked(raw: JsonObject, place: str = "") -> AuditResult:
    """The result in its stored form, which its model has passed. Raises `InvalidSpec` that names the place."""
    with at(place) if place else nullcontext():
        result = _result(raw)
        _check(result, raw)
        _check_shown(result)
        digest = raw["provenance"].get("digest")
        if digest is not None:  # older files have none; a deliberate change of a file has to renew it
            given = content_digest({**raw, "provenance": result.provenance})
            agree("provenance.digest", digest, given, "what stands in the file gives")
    return result


@contextmanager
def named(name: object) -> Iterator[None]:
    """Errors of what is read, as one line each that begins with the name of the file."""
    shown = clean(name, 200)
    try:
        with np.errstate(all="ignore"), at(shown):  # numbers that no result has are refused, in one line
            yield
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the second: half a character in a word of ours
        raise InvalidSpec(f"{shown}: not a result of this version: {clean(error, 300)}; {CURE}") from None


def check_schema(raw: object, *schemas: str) -> None:
    """Raises `InvalidSpec` where a value is no object of one of the schemas."""
    names = " or ".join(map(repr, schemas))
    if not isinstance(raw, dict) or "schema" not in raw:
        raise InvalidSpec(f"not a result: it has no key 'schema'; give the path of a result in {names}")
    if raw["schema"] not in schemas:
        schema = clean(raw["schema"])
        of_kind = (reader for kind, reader in READERS.items() if schema.startswith(kind))
        reader = next(of_kind, "the dpaudit that wrote it")
        raise InvalidSpec(f"schema must be {names}, got {schema!r}; read it with {reader}")


def _result(raw: JsonObject) -> AuditResult:
    spec = {key: value for key, value in raw["spec"].items() if key != "hash"}

    def claim(stored: JsonObject, place: str) -> Claim:
        """The claim at the distance of a witness's pair."""
        number, pairs = stored["witness"]["pair"], spec["pairs"]
        if number >= len(pairs):
            rule = f"{place}witness.pair must be below the number of pairs, {len(pairs)}"
            raise InvalidSpec(f"{rule}, got {number}; {CURE}")
        return claim_from_dict(spec["claim"]).at_distance(pairs[number]["distance"])

    def finding(stored: JsonObject, place: str) -> Finding:
        return Finding(claim(stored, f"{place}."), **fields_of(Finding, stored, own, place))

    own = {Finding: finding, Event: _event, Event | Partition: _event, UpperBound: _upper}
    provenance = {key: value for key, value in raw["provenance"].items() if key != "digest"}
    whole = fields_of(AuditResult, {**raw, "spec": spec, "provenance": provenance}, own)
    result = AuditResult(claim=claim(raw, ""), **whole)
    shown = result.illustration
    return replace(result, illustration=replace(shown, histogram=_counted_once(shown.histogram)))


def _counted_once(shown: Histogram | None) -> Histogram | None:
    """The histogram; older files counted infinities in the outer bins and by a label: of these, in the bins alone.

    How many of them were above and how many below is not known, so that they cannot be taken from the bins.
    """
    label = next((each for each in ("infinite", "others") if shown is not None and each in shown.labels), None)
    if shown is None or label is None or not len(shown.labels) == len(shown.tokens_first) == len(shown.tokens_second):
        return shown
    twice = (
        sum(shown.first) + sum(shown.tokens_first) - shown.runs_first,
        sum(shown.second) + sum(shown.tokens_second) - shown.runs_second,
    )
    place = shown.labels.index(label)
    left = shown.tokens_first[place] - max(0, twice[0]), shown.tokens_second[place] - max(0, twice[1])
    if max(twice) <= 0 or min(left) < 0 or not shown.edges:
        return shown
    rows = [*zip(shown.labels, shown.tokens_first, shown.tokens_second, strict=True)]
    rows[place : place + 1] = [(label, *left)] if any(left) else []
    labels, first, second = zip(*rows, strict=True) if rows else ((), (), ())
    return replace(shown, labels=labels, tokens_first=first, tokens_second=second)


def _upper(stored: JsonObject, place: str) -> UpperBound:
    """The upper bound, as it was given: nothing in a result can tell whether it is right."""
    try:
        return UpperBound(**fields_of(UpperBound, stored, {Claim: lambda shown, _: claim_from_dict(shown)}))
    except InvalidSpec as error:
        raise InvalidSpec(f"{place}: {error}; {CURE}") from None


def _event(stored: JsonObject, place: str) -> Event | Partition:
    """An event, which must be one that this version writes the same way."""
    try:
        event = (partition_from_dict if "bins" in stored else event_from_dict)(stored)
        codes = [token["code"] for each in stored.get("bins", [stored]) for token in each["tokens"]]
        str(event)
        if event.to_dict() != stored or max(codes, default=0) >= 2**64:
            raise ValueError("this version writes it in another way")
        return event
    except InvalidSpec:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        raise InvalidSpec(f"{place} is not an event ({clean(error)}); {CURE}") from None


def _check_shown(result: AuditResult) -> None:
    """What is there to look at must fit the counts that were certified."""
    trail, shown = result.illustration.trail, result.illustration.histogram
    if trail and trail[-1] != result.evidence:
        raise InvalidSpec(f"the last counts of 'trail' are not those of 'evidence'; {CURE}")
    if len(result.adjacency) not in (0, len(result.spec["pairs"])):
        raise InvalidSpec(f"'adjacency' must have an entry for each pair; {CURE}")
    if shown is None:
        return
    cells = len(shown.values) or (len(shown.edges) + 1 if shown.edges else 0)
    tokens = len(shown.labels)
    lengths = [len(each) for each in (shown.first, shown.second, shown.tokens_first, shown.tokens_second)]
    sides = (
        (shown.first, shown.tokens_first, shown.runs_first),
        (shown.second, shown.tokens_second, shown.runs_second),
    )
    fits = lengths == [cells, cells, tokens, tokens] and not (shown.values and shown.edges)
    fits &= list(shown.edges) == sorted(set(shown.edges))
    if not fits or any(runs < 1 or sum(counts) + sum(others) > runs for counts, others, runs in sides):
        raise InvalidSpec(f"the counts of 'histogram' do not fit its bins; {CURE}")


def _check(result: AuditResult, raw: JsonObject) -> None:
    """That everything derived follows from the counts, the claim and the confidence."""
    spec, e, sharing = raw["spec"], result.evidence, raw["spec"]["certify_pairs"]
    agree("spec.hash", spec["hash"], spec_hash(result.spec), "the spec gives")
    if not result.certifying_runs <= result.runs_used <= spec["runs"]:
        numbers = f"{result.certifying_runs}, {result.runs_used} and {spec['runs']}"
        raise InvalidSpec(f"runs of the evidence, runs_used and spec.runs must not fall, got {numbers}; {CURE}")
    again, stored = recompute(result), result.certificate
    _same_certificate("certificate", stored, again)
    for certificate in (again, stored):  # a p-value at the border must fall on the same side by both
        given = Verdict.REFUTED if certificate.refuted else Verdict.NOT_REFUTED
        agree("verdict", raw["verdict"], given.value, f"at p-value {again.p_value!r} the counts give")
    for j, finding in enumerate(result.others):
        _same_certificate(f"others[{j}].certificate", finding.certificate, of_finding(result, finding, sharing))
        if finding.certificate.p_value < stored.p_value:
            raise InvalidSpec(f"others[{j}] has a smaller p-value than the finding before it; {CURE}")
    for name, each, witnesses in (("representation", result.representation, 1), ("plain", result.plain, sharing)):
        if each is not None:
            _same_certificate(f"{name}.certificate", each.certificate, of_finding(result, each, witnesses))
    certifier = certifier_named(result.certifier)
    for j, f in enumerate(result.units.again if result.units else ()):
        computed = certificate_of(f.witness, f.evidence, f.claim, spec["confidence"], certifier)
        _same_certificate(f"units.again[{j}].certificate", f.certificate, computed)
    agree("ceiling", result.ceiling, ceiling_of(result.witness, e, result.claim, result.level, certifier))
    crossed, slack = None, 0.0
    if not isinstance(e, Binned):
        level = divided(again.confidence, 1.0 / part_of(result, e))
        crossed, slack = _two_intervals(e, again.delta, level), _slack(e, again.delta)
    mine = None if raw["cross_check"] is None else float(raw["cross_check"]["epsilon_lower"])
    if mine is not None and (crossed is None or not math.isclose(mine, crossed, rel_tol=0.0, abs_tol=slack)):
        agree("cross_check.epsilon_lower", mine, crossed)
    modelled = None if raw["model_based"] is None else float(raw["model_based"]["epsilon"])
    agree("model_based.epsilon", modelled, None if result.model_based is None else result.model_based["epsilon"])


def agree(place: str, stored: object, again: object, source: str = "the counts give") -> None:
    """Raises `InvalidSpec` naming both where what is stored is not what `source` gives.

    >>> agree("runs", 1.0, 1.0 + 1e-9)
    >>> agree("verdict", "REFUTED", "NOT_REFUTED")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpaudit.errors.InvalidSpec: verdict is 'REFUTED', but the counts give 'NOT_REFUTED'; restore ...
    """
    if isinstance(stored, float) and isinstance(again, float):
        if math.isclose(stored, again, rel_tol=TOLERANCE, abs_tol=1e-300):
            return
    elif stored == again:
        return
    raise InvalidSpec(f"{place} is {clean(repr(stored))}, but {source} {clean(repr(again))}; {CURE}")


def _same_certificate(place: str, stored: Certificate, again: Certificate) -> None:
    for key in ("lower", "epsilon_lower", "p_value", "delta", "confidence", "method"):
        agree(f"{place}.{key}", getattr(stored, key), getattr(again, key))


def _slack(e: CoinFlip, delta: float) -> float:
    """What a limit that differs by a hundredth of `TOLERANCE` makes of ln(limit - delta): much where delta is near."""
    rate = e.hits_p / max(1, e.runs_p)
    return TOLERANCE / 1e2 * rate / (rate - delta) if rate > delta else 0.0


def _two_intervals(e: CoinFlip, delta: float, confidence: float) -> float:
    """The rule of the cross-check, here without statsmodels, which takes a second to import."""
    low, high = joint_limits(e.events, e.runs_p, e.runs_q, error_probability(confidence))[0]
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


SUITE_FILE = "suite.json"
SOFTER = (0, 4, 5)  # exit codes that say less than that a verdict is missing
ROUNDED = 1e-3  # relative; a confidence close to 1 keeps few digits of its distance from 1


def suite_schema() -> JsonObject:
    """The JSON Schema (draft 2020-12) of a stored suite."""
    return json_schema(SuiteResult)


def load_suite(path: str | os.PathLike[str]) -> SuiteResult:
    """The suite in a file that `dpaudit.report` wrote as JSON.

    Raises `InvalidSpec` where the file is missing, is not such a suite, or contradicts its own results.
    """
    with named(path):
        return _suite_of(read(path, cure=CURE, not_json=GIVE, largest=LARGEST_SUITE))


def load_either(path: str | os.PathLike[str]) -> AuditResult | SuiteResult:
    """The result or the suite in a file, whichever it says that it is. Raises `InvalidSpec` as `load_suite` does."""
    with named(path):
        return either_of(read(path, cure=CURE, not_json=GIVE, largest=LARGEST_SUITE))


def either_of(raw: Any) -> AuditResult | SuiteResult:
    """The same of a JSON object. Raises `InvalidSpec`, or `msgspec.ValidationError` for a wrong key."""
    check_schema(raw, SCHEMA, SUITE_SCHEMA)
    return result_of(raw) if raw["schema"] == SCHEMA else _suite_of(raw)


def record_of(raw: Any) -> NoiseRecord:
    """The record of noise that `NoiseRecord.to_dict` wrote. Raises as `result_of` does."""
    fitted(raw, model_of(NoiseRecord))
    return NoiseRecord(**fields_of(NoiseRecord, raw, {}))


def stored_files(folder: Path) -> list[Path]:
    """The stored files of a folder: its suite.json, or else every result in it. Raises `InvalidSpec` for none."""
    if found_at(folder / SUITE_FILE) == FILE:
        return [folder / SUITE_FILE]
    files = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    if not files:
        raise InvalidSpec(
            f"{clean(folder, 200)}: no result (*.json) is in this folder; name a result file, or a folder of a report"
        )
    return files


def _suite_of(raw: Any) -> SuiteResult:
    check_schema(raw, SUITE_SCHEMA)
    fitted(raw, model_of(SuiteResult))
    suite = SuiteResult(**fields_of(SuiteResult, raw, {SuiteEntry: _entry}))
    _check_suite(suite, raw)
    return suite


def _entry(stored: JsonObject, place: str) -> SuiteEntry:
    bits = stored["expect"] == "BITS"
    expect = Verdict.NOT_REFUTED.value if bits else stored["expect"]
    given = {**stored, "expect": expect, "source": stored.get("source") or None}
    return SuiteEntry(bits=bits, **fields_of(SuiteEntry, given, {AuditResult: checked}, place))


def _check_suite(suite: SuiteResult, raw: JsonObject) -> None:
    """That everything derived follows from the results, the expectations and the acceptances."""
    for j, (entry, mine, adjusted) in enumerate(zip(suite.entries, raw["entries"], suite.holm(), strict=True)):
        place = f"entries[{j}]"
        _check_entry(entry, place)
        agree(f"{place}.as_expected", mine["as_expected"], entry.as_expected, "its verdict and expectation give")
        agree(f"{place}.p_value_holm", mine["p_value_holm"], adjusted, "the results give")
        _check_acceptance(entry, suite, place)
    agree("exit_code", raw["exit_code"], suite.exit_code, "the results give")
    _check_confidence(suite)


def _check_confidence(suite: SuiteResult) -> None:
    """The audits spend no more than the error probability of the suite; and all of it, where none lacks a result."""
    spent = math.fsum(error_probability(result.spec["confidence"]) for result in suite.results)
    whole = error_probability(suite.confidence)
    given = f"confidence is {suite.confidence!r}, but the audits spend an error probability of {spent!r} together"
    if min(spent, 1.0) > whole * (1.0 + TOLERANCE):
        raise InvalidSpec(f"{given}; {CURE}")
    if suite.entries and len(suite.results) == len(suite.entries) and spent < whole * (1.0 - ROUNDED):
        raise InvalidSpec(f"{given}: an audit is missing; {CURE}")


def _check_entry(entry: SuiteEntry, place: str) -> None:
    """A result is that of its audit; one without a verdict, or without the power demanded, cannot have gone well."""
    if entry.result is None:
        if entry.exit_code in SOFTER:
            raise InvalidSpec(f"{place}.exit_code is {entry.exit_code}, but there is no result; {CURE}")
        return
    agree(f"{place}.name", entry.name, entry.result.name, "its result is of")
    if entry.exit_code == 0 and reached(entry.result, entry.result.least_caught) is False:
        raise InvalidSpec(f"{place}.exit_code is 0, but the power that the spec demands was not reached; {CURE}")
    if entry.exit_code == 0 and entry.result.led and entry.result.spec.get("leads") == "fail":
        raise InvalidSpec(f"{place}.exit_code is 0, but there is a lead, and leads is 'fail'; {CURE}")


def _check_acceptance(entry: SuiteEntry, suite: SuiteResult, place: str) -> None:
    """Only the finding that was reviewed is covered, and only while its acceptance holds."""
    acceptance = entry.accepted
    if acceptance is None:
        return
    mine = None if entry.result is None else fingerprint(entry.result)
    agree(f"{place}.accepted.fingerprint", acceptance.fingerprint, mine, "the results give")
    listed = [each for each in suite.reviewed if each.acceptance == acceptance]
    if not listed:
        raise InvalidSpec(f"{place}.accepted is not among the accepted findings in 'reviewed'; {CURE}")
    if all(each.expired or not each.matched for each in listed):
        raise InvalidSpec(f"{place}.accepted is listed in 'reviewed' as expired or not found; {CURE}")
