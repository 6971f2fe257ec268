"""The public names, from their docstrings and signatures."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any

import dpaudit
import dpaudit.claims
import dpaudit.training
from dpaudit.mechanisms.importing import import_reference
from reference import text
from reference.text import code, fenced, prose

LONGEST = 80  # characters of a signature on one line

INTRODUCTION = """\
Everything that `import dpaudit` offers, what `dpaudit.claims` adds to convert and compose claims, and what
`dpaudit.training` adds to audit private training. The rest of the package is its inside and may change. To
`import dpaudit` costs next to nothing: names are loaded when they are used."""

CLAIMS = """\
A claim is converted or composed before it is audited, never by the audit itself: each form is tested as it stands."""

TRAINING = """\
What puts canaries into a training and reads their scores, as [the page on training](../how/training.md) shows it.
Nothing of torch, opacus or jax is imported before one of them is used."""

OF_TRAINING = (
    "canaries:GradientCanaries",
    "canaries:own_features",
    "canaries:margins",
    "opacus:Canaries",
    "jax:JaxCanaries",
    "loader:audit_loader",
)


def page() -> str:
    """The page."""
    public = sorted((name for name in dpaudit.__all__ if name != "__version__"), key=_order)
    held = vars(dpaudit.claims).items()
    own = [name for name, each in held if getattr(each, "__module__", "").startswith("dpaudit.claims")]
    more = [name for name in own if name[0] != "_" and name not in dpaudit.__all__]
    claims = ["FORMS", "POINTS", *sorted(more, key=lambda name: (not name[0].isupper(), name))]
    parts = [part for name in public for part in section(f"dpaudit.{name}", getattr(dpaudit, name))]
    named = [(f"dpaudit.claims.{name}", getattr(dpaudit.claims, name)) for name in claims]
    more = [part for name, each in named for part in section(name, each, level=3)]
    parts += ["## Converting and composing claims", CLAIMS, *more, "## Auditing private training", TRAINING]
    own = [f"dpaudit.training:{name}" for name in dpaudit.training.__all__ if name not in dpaudit.__all__]
    for name in (*own, *(f"dpaudit.training.{each}" for each in OF_TRAINING)):
        parts += section(name.replace(":", "."), import_reference(name), level=3)
    return text.page("Python", INTRODUCTION, *parts)


def section(name: str, held: Any, *, level: int = 2) -> Iterator[str]:
    """One public name: its signature, its docstring and, of a class, its public members."""
    short = name.rpartition(".")[2]
    yield f"{'#' * level} `{name}` {{ #{short} }}"
    yield fenced("python", f"{short}{_signature(held, broken=True)}")
    yield from docstring(inspect.getdoc(held) or "")
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
    if issubclass(held, enum.Enum):
        yield "\n".join(f"- {code(f'{held.__name__}.{each.name}')}" for each in held)
        return
    if dataclasses.is_dataclass(held):
        yield "Fields: " + ", ".join(code(each.name) for each in dataclasses.fields(held) if _public(each.name)) + "."
    fields = {each.name for each in dataclasses.fields(held)} if dataclasses.is_dataclass(held) else set()
    rows = []
    for name, member in inspect.getmembers(held):
        if not _public(name) or name in fields or name in dir(Exception):
            continue
        if isinstance(member, property):
            rows.append(f"{code(name)}\n:   {_summary(member.fget)}")
        elif callable(member):
            rows.append(f"{code(name + _signature(member))}\n:   {_summary(member)}")
    yield "\n\n".join(rows)


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
    return re.sub(r"ndarray\[(?:Any|tuple\[\w+, \.\.\.\]), dtype\[(\w+)\]\]", r"NDArray[\1]", short)


def _value(default: Any) -> str:
    """A default as it is written; a value that has no such form is only hinted at."""
    told = repr(default)
    return "..." if told.startswith("<") else told


def _public(name: str) -> bool:
    return not name.startswith("_")


def _order(name: str) -> tuple[int, str]:
    """Functions first, then classes, each in the order of the alphabet."""
    return int(name[0].isupper()), name.lower()
