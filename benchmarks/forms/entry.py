"""What an entry of the corpus of forms is, and how a broken twin is made of it."""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

KEEPS, BREAKS = "keeps", "breaks"


@dataclass(frozen=True, slots=True)
class Form:
    """A mechanism as an author writes it, its claim, and the truth about the claim at these parameters.

    `function` is a function or a bound method of (data, rng, parameters). `adjacency` is a word of `bracket`; None
    where `domain` lists the datasets, all of them neighbours. `records` says what a record is, where data are records:
    numbers are finite. `pair` shows the loss of a form that breaks, and the shape of the data of any. `why` is a line
    on the truth where it is not the textbook's. The noise and the answers are real numbers; exceptions are outputs.
    """

    name: str
    function: Callable[..., Any]
    claim: Any
    adjacency: str | None
    parameters: Mapping[str, Any]
    kind: str
    pair: Any = None
    domain: tuple[Any, ...] | None = None
    truth: str = KEEPS
    why: str = ""
    records: str = ""


@dataclass(slots=True)
class Collection:
    """The forms of one kind, in the order in which they are stated."""

    kind: str
    forms: list[Form] = field(default_factory=list)

    def keeps(self, function: Callable[..., Any], claim: Any, adjacency: str | None = None, **given: Any) -> Form:
        """States that the function keeps its claim."""
        name = given.pop("name", function.__name__.replace("_", " "))
        parameters = given.pop("at", {"eps": 1.0})
        self.forms.append(Form(name, function, claim, adjacency, parameters, self.kind, **given))
        return self.forms[-1]

    def breaks(self, function: Callable[..., Any], claim: Any, adjacency: str | None = None, **given: Any) -> Form:
        """States that the function breaks its claim."""
        return self.keeps(function, claim, adjacency, truth=BREAKS, **given)

    def twin(self, form: Form, name: str, why: str, *changes: tuple[str, str], at: Any = None, **given: Any) -> Form:
        """States that a form breaks its claim once its text is changed, or what it is asked about."""
        function = changed(form.function, re.sub(r"\W+", "_", name), *changes) if changes else form.function
        asked = {"parameters": {**form.parameters, **(at or {})}, "truth": BREAKS, "why": why, **given}
        self.forms.append(replace(form, name=name, function=function, **asked))
        return self.forms[-1]


def changed(function: Callable[..., Any], name: str, *changes: tuple[str, str]) -> Callable[..., Any]:
    """A function whose text differs from another's, in its module; the text can be found again."""
    source = textwrap.dedent(inspect.getsource(function)).replace(f"def {function.__name__}(", f"def {name}(")
    for old, new in changes:
        assert old in source, f"{function.__name__} has no {old!r}"
        source = source.replace(old, new)
    named = {word: each for word, each in function.__globals__.items() if isinstance(each, ModuleType)}
    source = "".join(f"import {each.__name__} as {word}\n" for word, each in named.items()) + source
    file = f"<form {name}, {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), function.__globals__)
    return function.__globals__[name]  # type: ignore[no-any-return]
