"""How to repeat an audit: the command that was recorded, or the call in Python."""

from typing import Any

from dpaudit.base.numerals import counted
from dpaudit.base.quoting import clean, literal, plain_text, standing
from dpaudit.certify import suited
from dpaudit.claims import claim_from_dict
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.results.audited import Audited

LONGEST_CODE = 4_000
NOT_HELD = "which the result does not hold"
USUAL: dict[str, Any] = {
    "stopping": "fixed",
    "sequential_share": 0.2,
    "certify_pairs": 1,
    "representation": False,
    "detect": None,
    "controls": 0,
}


@standing(lambda told: (f"# {told}",))
def repeat(result: Audited) -> tuple[str, ...]:
    """How to repeat the audit: the command that was recorded, or the Python form."""
    command = result.provenance.get("command")
    return (clean(command, len(command)),) if command else python_form(result)


def python_form(result: Audited) -> tuple[str, ...]:
    """The audit as a call of `dpaudit.audit`; what only its author has is named by a comment."""
    spec = result.spec
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
        told = ", ".join([*both, *more])
        pairs.append(f"dpaudit.AdjacentPair({told})" if more else f"({told})")
    given = f"pair={pairs[0]}" if len(pairs) == 1 else f"pairs=[{', '.join(pairs)}]"
    if len(given) > LONGEST_CODE:
        given = "pairs=pairs"
        head = [line for line in head if not line.endswith(NOT_HELD)]
        head.append(f"# pairs: your {counted(len(pairs), 'pair')} of datasets, too long to write here")
    claim = [f"{key}={value!r}" for key, value in spec["claim"].items() if key != "form" and value is not None]
    keys = ("runs", "confidence", "seed", "run_timeout_s")
    options = [f"{key}={spec[key]!r}" for key in keys if spec[key] is not None]
    options += [f"{key}={spec[key]!r}" for key, usual in USUAL.items() if spec[key] != usual]
    if spec["certifier"] != suited(claim_from_dict(spec["claim"]), spec["stopping"]).name:
        options.append(f"certifier={spec['certifier']!r}")
    tables = {name for name in ("numpy", "pandas", "polars") if f"{name}." in given}
    lines = (
        *(f"import {name}" for name in ("dpaudit", *sorted(tables))),
        *head,
        "dpaudit.audit(",
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
