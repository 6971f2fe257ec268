"""How to repeat an audit: the command that was recorded, or the call in Python."""

from typing import Any

from dpaudit.base.numerals import counted
from dpaudit.base.quoting import clean, literal, plain_text
from dpaudit.certify import suited
from dpaudit.claims import claim_from_dict
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.options import OPTIONS
from dpaudit.results.result import AuditResult

LONGEST_CODE, LONGEST_LINE = 4_000, 1_000
CALL = "dpaudit.audit("
MORE = "print(result.explain()) shows the whole account"
NOT_HELD = "which the result does not hold"


SAME, TIMED, OWN = (  # what a repetition gives
    "with the same counts",
    "with other counts, for the repetition is made without max_time_s: it makes all {runs:,} runs, which may take far "
    "longer than that",
    "with other counts, for the mechanism draws randomness of its own",
)


def repeat(result: AuditResult) -> tuple[str, ...]:
    """How to repeat the audit, in one line: the command that was recorded, or the call in Python."""
    command = result.provenance.get("command")
    if command:
        return (clean(command, len(command)),)
    return (_in_a_line(result)[0],)


def _in_a_line(result: AuditResult) -> tuple[str, list[str]]:
    """The call in one line, and what stands in it that only its author has; where it is too long, that it is."""
    form = python_form(result)
    start = form.index(CALL)
    imports = [each for each in form[:start] if each.startswith("import ")]
    asked = " ".join(each.strip() for each in form[start + 1 : -1]).removesuffix(",")
    text = "; ".join([*imports, f"{CALL}{asked})"])
    if len(text) > LONGEST_LINE:
        return f"# the call is too long for a line: {MORE}", []
    return text, [each.removeprefix("# ") for each in form[:start] if each.startswith("# ")]


def repetition(result: AuditResult) -> str:
    """What a repetition gives, the same counts or other ones, and what its line does not bring along."""
    gives = OWN if not result.reproducible else TIMED if result.cut_short else SAME
    lacking = [] if result.provenance.get("command") else _in_a_line(result)[1]
    left = clean(f" ({'; '.join(lacking)})", LONGEST_LINE) if lacking else ""
    return f"{gives.format(runs=result.spec['runs'])}{left}:"


def repeatable(result: AuditResult) -> tuple[str, ...]:
    """By what an audit is known, and what a repetition of it gives."""
    seed = f"seed {result.spec['seed']}"
    if result.cut_short:
        return (
            f"made under max_time_s: without it the same spec and seed make other parts of the runs, and maybe more, "
            f"and give other counts ({seed})",
        )
    if result.reproducible:
        return (f"reproducible: the same spec and seed give the same counts ({seed})",)
    return (
        f"not reproducible: the mechanism draws randomness of its own, not from the rng of the audit ({seed})",
        "other runs give other counts; dpaudit recheck --fresh repeats the witness on new ones",
    )


def python_form(result: AuditResult) -> tuple[str, ...]:
    """The audit as a call of `dpaudit.audit`; what only its author has is named by a comment."""
    return call_of(result.spec)


def call_of(spec: dict[str, Any]) -> tuple[str, ...]:
    """The same of a stored question."""
    head, mechanism = _mechanism_form(spec["mechanism"])
    pairs: list[str] = []
    for number, pair in enumerate(spec["pairs"], start=1):
        values = [plain_text(pair[side]["value"]) for side in ("first", "second")]
        both = [*map(literal, values)]
        if None in values:  # one was recorded by its digest alone
            both = [f"{side}_{number}" if len(spec["pairs"]) > 1 else side for side in ("first", "second")]
            digests = " and ".join(str(pair[side]["digest"]) for side in ("first", "second"))
            head.append(f"# {', '.join(both)}: your datasets with the digests {digests}, {NOT_HELD}")
        more = [f"distance={pair['distance']}"] if pair["distance"] > 1 else []
        more += [f"sensitivity={pair['sensitivity']!r}"] if "sensitivity" in pair else []
        more += [f"user={pair['user']!r}"] if "user" in pair else []
        arguments = ", ".join([*both, *more])
        pairs.append(f"dpaudit.AdjacentPair({arguments})" if more else f"({arguments})")
    given = f"pair={pairs[0]}" if len(pairs) == 1 else f"pairs=[{', '.join(pairs)}]"
    if len(given) > LONGEST_CODE:
        given = "pairs=pairs"
        head = [line for line in head if not line.endswith(NOT_HELD)]
        head.append(f"# pairs: your {counted(len(pairs), 'pair')} of datasets, too long to write here")
    claim = [f"{key}={value!r}" for key, value in spec["claim"].items() if key != "form" and value is not None]
    asked = [each for each in OPTIONS.values() if each.stored and each.keyword and each.name != "certifier"]
    told = sorted(asked, key=lambda each: not each.shown)
    values = [(each, spec.get(each.name, each.default)) for each in told]
    options = [f"{each.name}={value!r}" for each, value in values if each.shown or value != each.default]
    if spec["certifier"] != suited(claim_from_dict(spec["claim"]), spec["stopping"]).name:
        options.append(f"certifier={spec['certifier']!r}")
    tables = {name for name in ("numpy", "pandas", "polars") if f"{name}." in given}
    lines = (
        *(f"import {name}" for name in ("dpaudit", *sorted(tables))),
        *head,
        CALL,
        f"    {mechanism},",
        f"    {given},",
        f"    claim=dpaudit.{spec['claim']['form']}({', '.join(claim)}),",
        f"    {', '.join(options)},",
        ")",
    )
    return tuple(clean(line, len(line)) for line in lines)


def _mechanism_form(stored: dict[str, Any]) -> tuple[list[str], str]:
    """The lines that bring the mechanism, and the expression that names it."""
    if stored["kind"] == "command":
        return [], f"dpaudit.command({stored['parameters']['command']!r})"
    module, _, path = (stored["reference"] or "").partition(":")
    name = f"{module}.{path}" if path else stored["name"] if stored["name"].isidentifier() else "mechanism"
    if stored["kind"] == "built in the worker" and not path:
        name = "make"
    head = [f"import {module}" if path else f"# {name}: the function that was audited"]
    bound_ = "".join(f", {key}={value!r}" for key, value in stored["parameters"].items())
    wrapper = {"batched": "dpaudit.batched", "built in the worker": "dpaudit.built_by"}.get(stored["kind"])
    if stored["kind"].startswith(ADAPTED):
        wrapper = stored["kind"]
    if wrapper is None and bound_:
        wrapper, head = "functools.partial", ["import functools", *head]
    return head, name if wrapper is None else f"{wrapper}({name}{bound_})"
