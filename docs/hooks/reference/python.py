"""The public names, from their docstrings and signatures: a page for each group, and one that lists them all."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import dpaudit
import dpaudit.claims
import dpaudit.training
from dpaudit.mechanisms.importing import import_reference
from dpaudit.options import OPTIONS, Working, options
from reference import text
from reference.meanings import FACETS, KEYWORDS, RESULT
from reference.text import code, fenced, prose, table

WORKING = {each.name: each.keyword for each in options(Working)}
LONGEST = 80  # characters of a signature on one line

INTRODUCTION = """\
Everything that `import dpaudit` offers, what `dpaudit.claims` adds to convert and compose claims, and what
`dpaudit.training` adds to audit private training. The rest of the package is its inside and may change. To
`import dpaudit` costs next to nothing: names are loaded when they are used."""

GROUPS = {  # of each page its title and what it says first, and its names in their order: `dpaudit.` left out
    "audit": ("Audits", "", "audit"),
    "mechanisms": (
        "Mechanisms, data and pairs",
        "",
        "batched built_by command adapters AdjacentPair Relation stock_pairs search_pairs PairSearch look record_noise",
    ),
    "claims": (
        "Claims",
        "A claim is converted or composed before it is audited, never by the audit itself: each form is tested as it "
        "stands.",
        "PureDP ApproximateDP GaussianDP RenyiDP ZeroConcentratedDP TradeOffDP PrivacyProfile",
    ),
    "results": (
        "Results and reports",
        "",
        "AuditResult Verdict load recheck write_report SuiteResult load_suite AuditSpec NoiseRecord load_record attest "
        "verify_attestation",
    ),
    "bounds": (
        "Brackets: bounds from both sides",
        "Proofs, replay and exact integrals need the extra `[verify]`: [proofs and upper bounds](../above.md).",
        "bracket Bracket BracketVerdict UpperBound",
    ),
    "scores": (
        "Scores and training",
        "What puts canaries into a training and reads their scores is in `dpaudit.training`, as [the page on "
        "training](../how/training.md) shows it. Nothing of torch, opacus or jax is imported before it is used.",
        "audit_training TrainingResult audit_scores ManyRun OneRun FewRuns Steps AttackCounts ScoresResult",
    ),
    "sweeps": ("Sweeps", "", "sweep Sweep"),
    "errors": (
        "Errors",
        "Every message is one line that names the place, the value and the cure. The [exit codes](exit-codes.md) of "
        "the commands are those of these errors.",
        "DpAuditError InvalidSpec UnsoundAudit MissingRequirement ClaimRefuted NotAttested AuditInterrupted "
        "SweepInterrupted",
    ),
}
OF_TRAINING = (
    "canaries:GradientCanaries",
    "canaries:own_features",
    "canaries:margins",
    "opacus:Canaries",
    "jax:JaxCanaries",
    "loader:audit_loader",
)


@cache
def names() -> dict[str, dict[str, Any]]:
    """The public names of each group, in full, with what they stand for. Raises `LookupError` for one without group."""
    found = {
        group: {f"dpaudit.{name}": getattr(dpaudit, name) for name in held.split()}
        for group, (_, _, held) in GROUPS.items()
    }
    placed = {name.removeprefix("dpaudit.") for group in found.values() for name in group}
    if homeless := set(dpaudit.__all__) - placed - {"__version__"}:
        raise LookupError(f"docs/hooks/reference/python.py has no group for {', '.join(sorted(homeless))}")
    held = vars(dpaudit.claims)
    own = [name for name, each in held.items() if getattr(each, "__module__", "").startswith("dpaudit.claims")]
    more = [name for name in own if name[0] != "_" and name not in dpaudit.__all__]
    claims = ["FORMS", "POINTS", *sorted(more, key=lambda name: (not name[0].isupper(), name))]
    found["claims"] |= {f"dpaudit.claims.{name}": held[name] for name in claims}
    own = [f"dpaudit.training:{name}" for name in dpaudit.training.__all__ if name not in dpaudit.__all__]
    training = (*own, *(f"dpaudit.training.{each}" for each in OF_TRAINING))
    found["scores"] |= {name.replace(":", "."): import_reference(name) for name in training}
    return found


def page() -> str:
    """The list of all names: a table for each group."""
    parts = [INTRODUCTION]
    for group, held in names().items():
        rows = [
            (f"[{code(name.removeprefix('dpaudit.'))}]({group}.md#{anchor(name)})", _first(each))
            for name, each in held.items()
        ]
        parts += [f"## [{GROUPS[group][0]}]({group}.md) {{ #{group} }}", table(("name", "what it is"), rows)]
    return text.page("Python: all names", *parts)


def group_page(group: str) -> str:
    """The page of a group."""
    title, introduction, _ = GROUPS[group]
    parts = [part for name, each in names()[group].items() for part in section(name, each)]
    return text.page(title, introduction, *parts)


def anchor(name: str) -> str:
    """Where a name stands on its page."""
    return name.rpartition(".")[2]


def keyword_table(name: str) -> str:
    """The parameters of a function with many of them: default and meaning. Raises `LookupError` where one has none."""
    meant = KEYWORDS[name]
    rows = []
    for key, each in inspect.signature(getattr(dpaudit, name)).parameters.items():
        said = meant.get(key) or (OPTIONS[key].keyword if key in OPTIONS else WORKING.get(key, ""))
        if not said:
            raise LookupError(f"{name}({key}) has no meaning; give docs/hooks/reference/meanings.py one")
        needed = each.default is each.empty
        rows.append((code(key), "*required*" if needed else code(_value(each.default)), said.replace("|", "\\|")))
    return table(("keyword", "default", "what it says"), rows)


def summary(name: str) -> str:
    """What a function does, what it raises and an example: its docstring, where tables tell of the parameters."""
    first, *others = re.split(r"\n\s*\n", inspect.getdoc(getattr(dpaudit, name)) or "")
    kept = [first, *(each for each in others if each.startswith(("Raises", ">>>")))]
    return "\n\n".join(docstring("\n\n".join(kept)))


def signature(name: str) -> str:
    """The signature of a public name as code."""
    return fenced("python", f"{name}{_signature(getattr(dpaudit, name), broken=True)}")


def section(name: str, held: Any) -> Iterator[str]:
    """One public name: its signature, its docstring and, of a class, its public members."""
    yield f"## `{name}` {{ #{anchor(name)} }}"
    if anchor(name) in KEYWORDS:
        yield from (summary(anchor(name)), keyword_table(anchor(name)), signature(anchor(name)))
        return
    doc = inspect.getdoc(held) or ""
    if anchor(name) in FACETS:  # nobody makes one: tables in place of a signature
        doc = doc.partition("\n\n")[0]
    elif callable(held):
        yield fenced("python", f"{anchor(name)}{_signature(held, broken=True)}")
    yield from docstring(doc)
    if inspect.isclass(held):
        yield from _members(held)


def docstring(doc: str) -> Iterator[str]:
    """Paragraphs as text, lists as lists, examples as code."""
    for part in re.split(r"\n\s*\n", doc.strip()):
        if part.lstrip().startswith(">>>"):
            yield fenced("python", inspect.cleandoc(part))
        elif part.lstrip().startswith(("- ", "* ")):
            yield "\n".join(f"- {prose(item)}" for item in re.split(r"^\s*[-*] ", part, flags=re.MULTILINE)[1:])
        else:
            yield prose(part)


def _members(held: type) -> Iterator[str]:
    """Of an enumeration its members; of another class fields, properties and methods, in tables by what they tell."""
    if issubclass(held, enum.Enum):
        yield "\n".join(f"- {code(f'{held.__name__}.{each.name}')}" for each in held)
        return
    fields = [each.name for each in dataclasses.fields(held)] if dataclasses.is_dataclass(held) else []
    meant = RESULT.get(f"Stored{held.__name__.removeprefix('Audit')}", {})
    rows = {name: (_told(held, name, name), prose(meant.get(name, ""))) for name in fields if _public(name)}
    for name, member in inspect.getmembers(held):
        if not _public(name) or name in fields or name in dir(Exception):
            continue
        if isinstance(member, property):
            rows[name] = _told(held, name, name), _summary(member.fget)
        elif callable(member):
            rows[name] = _told(held, name, name + _signature(member)), _summary(member)
    facets = {facet: wanted.split() for facet, wanted in FACETS.get(held.__name__, {}).items()}
    asked = {name for wanted in facets.values() for name in wanted}
    if stale := asked - rows.keys():
        raise LookupError(f"docs/hooks gives {held.__name__} the members {', '.join(sorted(stale))}, which it has not")
    for facet, wanted in facets.items():
        yield f"### {facet}"
        yield table(("name", "what it is"), [rows.pop(name) for name in wanted])
    if not facets and fields:
        yield f"Fields: {', '.join(rows.pop(name)[0] for name in fields if name in rows)}."
    if rows and facets:
        raise LookupError(f"docs/hooks says of no facet of {held.__name__} that it has {', '.join(sorted(rows))}")
    if rows:
        yield table(("name", "what it is"), list(rows.values()))


def _told(held: type, name: str, words: str) -> str:
    """A member as code, which links lead to."""
    return f'<span id="{held.__name__}.{name}">{code(words)}</span>'


def _first(held: Any) -> str:
    """The first sentence of a docstring; of a value, what kind of value it is."""
    if not (inspect.ismodule(held) or callable(held)):
        return prose(f"a value of {type(held).__name__}")
    return prose(re.split(r"\.\s|\n\s*\n", inspect.getdoc(held) or "")[0].rstrip("."))


def _summary(member: Any) -> str:
    """The docstring without its examples, as one paragraph."""
    doc = inspect.getdoc(member) or ""
    return prose(" ".join(part for part in re.split(r"\n\s*\n", doc) if not part.lstrip().startswith(">>>")))


def _signature(held: Any, *, broken: bool = False) -> str:
    """The signature, without the names of modules; a long one `broken` into a line for each parameter."""
    if inspect.isclass(held) and issubclass(held, (Exception, enum.Enum)):
        return ""
    try:
        found = inspect.signature(held)
    except (TypeError, ValueError):
        return ""
    first = next(iter(found.parameters), None)
    kept = [each for each in found.parameters.values() if not (each.name == first == "self")]
    lines = list(_lines(kept))
    returned = (
        ""
        if inspect.isclass(held) or found.return_annotation is found.empty
        else f" -> {_type(found.return_annotation)}"
    )
    told = f"({', '.join(lines)}){returned}"
    if not broken or len(told) < LONGEST:
        return told
    return "(\n" + "".join(f"    {line},\n" for line in lines) + f"){returned}"


def _lines(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each parameter with its type and default."""
    star = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        name = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "") + each.name
        kind = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        gap = " = " if kind else "="
        yield f"{name}{kind}" + ("" if each.default is each.empty else f"{gap}{_value(each.default)}")


def _type(annotation: Any) -> str:
    """An annotation without the names of modules; arrays of any shape as `NDArray` of their numbers."""
    told = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    short = re.sub(r"\b(?:[a-z_]+\.)+(?=\w)", "", told)
    short = re.sub(r"Annotated\[(\w+)(?:, \([^()]*\))+\]", r"\1", short)  # the limits of a number
    return re.sub(r"ndarray\[(?:Any|tuple\[\w+, \.\.\.\]), dtype\[(\w+)\]\]", r"NDArray[\1]", short)


def _value(default: Any) -> str:
    """A default as it is written; a value that has no such form is only hinted at."""
    told = repr(default)
    return "..." if told.startswith("<") else told


def _public(name: str) -> bool:
    return not name.startswith("_")
