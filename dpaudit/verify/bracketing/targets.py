"""What a bracket is put around: what runs, what is read of it, at which parameters, and who is a neighbour of whom."""

import ast
import contextlib
import functools
import numbers
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.machinery import SOURCE_SUFFIXES, PathFinder
from importlib.util import decode_source
from pathlib import Path
from typing import Any

from dpaudit.auditing.known import known_of
from dpaudit.claims import Claim, Relation
from dpaudit.claims.rounding import above
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Imported, Mechanism, PerRun, wrap
from dpaudit.mechanisms.importing import is_own
from dpaudit.verify.enclosure import check_wide, in_short, rational
from dpaudit.verify.language import expression
from dpaudit.verify.language.facts import OPERATIONS
from dpaudit.verify.language.nodes import Arithmetical, Expression, Number, Program, ProgramParameter
from dpaudit.verify.language.outline import parameters_of
from dpaudit.verify.language.source import at_the_top, bound, check_running
from dpaudit.verify.language.source import source_of as read_source
from dpaudit.verify.proof import ADJACENCIES, REACH, Adjacency


def source_of(reference: str, folder: str) -> tuple[str, str]:
    """The text of the module and the name of the function in it; `folder` heads the import path.

    Raises `InvalidSpec` where the name reads in another way, there is no such file, or what the module calls by this
    name is not one plain `def`.
    """
    module, colon, name = reference.partition(":")
    if not (colon and module and name):
        raise InvalidSpec(f"write module:function, such as my_module:noisy_count, got {reference!r}")
    path = _file(module, folder)
    try:
        text = decode_source(path.read_bytes())
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidSpec(f"{path} cannot be read: {type(error).__name__}: {error}") from None
    if _times_bound(tree, name) != 1 or not any(isinstance(n, ast.FunctionDef) and n.name == name for n in tree.body):
        raise InvalidSpec(f"{path} must define {name!r} once, by a plain def: what is read must be what runs")
    lines = text.split("\n")
    for node in (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name):
        for decorator in node.decorator_list:  # what they do is seen where what runs is compared with the text
            lines[decorator.lineno - 1 : node.lineno - 1] = [""] * (node.lineno - decorator.lineno)
    return "\n".join(lines), name


def check_as_read(reference: str, folder: str, text: str) -> None:
    """Raises `InvalidSpec` where what runs under this name, in a process of its own, is not what was read of it."""
    check_running(reference, folder, text, reference.partition(":")[2])
    if source_of(reference, folder)[0] != text:
        raise InvalidSpec(f"{reference} changes its own file as it is imported: what is read must be what runs")


def check_relation(claim: Claim | None, adjacency: str | None) -> None:
    """Raises `InvalidSpec` where a claim is about other neighbours of records than the adjacency."""
    if adjacency in RECORDS and claim is not None and claim.relation not in (None, Relation.of(adjacency)):
        raise InvalidSpec(
            f"the claim is for {Relation.word(claim.relation)}: give it as the adjacency, got {adjacency!r}"
        )


def _file(module: str, folder: str) -> Path:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise InvalidSpec(f"write module:function, got the module {module!r}, which no import names")
    if parts[0] in sys.stdlib_module_names:
        raise InvalidSpec(f"{module} is a module of Python itself, whatever files there are")
    PathFinder.invalidate_caches()
    where: Iterable[str] | None = [folder, *sys.path]
    origin: str | None = None
    for count in range(1, len(parts) + 1):  # as Python finds it, except for what a package does during its import
        spec = None if where is None else PathFinder.find_spec(parts[count - 1], list(where))
        where, origin = (None, None) if spec is None else (spec.submodule_search_locations, spec.origin)
    if origin is None:
        raise InvalidSpec(
            f"there is no module {module!r} here or on the import path; install your package, or correct the name"
        )
    loaded = getattr(sys.modules.get(module), "__file__", origin)
    if (
        not origin.endswith(tuple(SOURCE_SUFFIXES))
        or loaded is None
        or Path(loaded).resolve() != Path(origin).resolve()
    ):
        raise InvalidSpec(f"{origin} is not what runs under the name {module!r}: it is compiled, or the name is taken")
    return Path(origin)


def _times_bound(tree: ast.Module, name: str) -> int:
    """How often the module gives something this name, in a star import, a function's `global` or a default perhaps.

    An attribute of what has the name counts: `f.__kwdefaults__["eps"] = 2` makes it another function.
    """
    times = sum(name in node.names for node in ast.walk(tree) if isinstance(node, ast.Global))
    for node in at_the_top(tree.body):
        match node:
            case ast.Attribute(value=ast.Name(id=whose)):
                times += whose == name
            case _:
                times += bound(node) in (name, "*")
    return times


WAYS: dict[str, tuple[Adjacency, ...]] = {
    "all-differ": ("all-differ",),
    "one-differs": ("one-differs",),
    "monotone": ("up", "down"),
    "up": ("up",),
    "down": ("down",),
}
RECORDS = {  # relations of datasets of records
    "add_or_remove_one": "one record more or less",
    "replace_one": "one record in the place of another",
    "add_or_remove_user": "all records of one user more or less",
}
MONOTONE = "all answers rise, or all fall, by at most 1"


@dataclass(frozen=True, slots=True)
class Target:
    """A mechanism to be bounded.

    `mechanism` is what an audit runs. `source` is what is read: a function, or a text in which `function` names it;
    None where there is nothing to read, and then `unread` says why. `adjacency` is a word of `WAYS`, None where
    datasets are no query answers; `pair` and `claim` are those that it offers. `check` raises
    where what runs is not what was read.
    """

    name: str
    mechanism: Mechanism
    source: Callable[..., Any] | str | None
    function: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    adjacency: str | None = None
    pair: AdjacentPair | None = None
    claim: Claim | None = None
    check: Callable[[], None] | None = None
    unread: str = "there is no source to read: give a function f(data, rng) in plain Python"


def target_of(mechanism: Any, parameters: Mapping[str, Any] | None = None) -> Target:
    """The target that a function, an entry of the catalogue or a name is; names are imported here.

    >>> from dpaudit.catalogue.sparse import sparse_monotone
    >>> target_of(sparse_monotone).adjacency
    'monotone'
    """
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidSpec(f"parameters must be a mapping of names to values, got {parameters!r}")
    wrapped = wrap(mechanism, dict(parameters or {}))
    known = known_of(wrapped)
    if known is not None:
        claim, values = known.claim(), known.values()
        relation = "" if claim.relation is None else claim.relation.value
        own = {("up", "down"): "monotone", (): relation}.get(known.adjacency, "".join(known.adjacency))
        listed = length_of(known.pair.first) is not None
        adjacency = own if own in WAYS or own in RECORDS and listed else None
        if values.get("sensitivity", 1.0) != 1.0:
            adjacency = None  # proofs are about answers that move by at most 1
        ours = is_own(known.reference)
        return Target(known.name, known, *_beneath(known.program, values, ours), adjacency, known.pair, claim)
    if isinstance(wrapped, Imported):
        wrapped = wrapped.resolve()
    if isinstance(wrapped, PerRun):
        return Target(wrapped.name, wrapped, *_beneath(wrapped.function, dict(wrapped.parameters)))
    return Target(wrapped.name, wrapped, None)


def _beneath(function: Any, parameters: dict[str, Any], ours: bool = False) -> tuple[Any, None, dict[str, Any]]:
    """The function under bound parameters; of `ours`, under what says by `beneath` to which one it hands its data."""
    while True:
        if type(function) is functools.partial and not function.args:
            function, parameters = function.func, {**function.keywords, **parameters}
        elif ours and hasattr(function, "beneath"):
            function, parameters = function.beneath(parameters)
        else:
            return function, None, parameters


def target_named(reference: str, parameters: Mapping[str, Any], folder: str) -> Target:
    """The target module:function, its source read without importing it here; `folder` heads the import path."""
    if is_own(reference):
        return target_of(reference, parameters)
    mechanism = Imported(reference, dict(parameters), folder)
    try:
        text, function = source_of(reference, folder)
    except InvalidSpec as error:
        return Target(mechanism.name, mechanism, None, None, parameters, unread=str(error))
    check = functools.partial(check_as_read, reference, folder, text)
    return Target(mechanism.name, mechanism, text, function, parameters, check=check)


def form_of(pair: AdjacentPair | None, of_records: bool) -> tuple[str | None, int | None]:
    """What kind of data the datasets of a pair are, and how many answers; None where nothing says it."""
    if pair is None:
        return None, None
    number = length_of(pair.first)
    if of_records:
        return "a mapping" if isinstance(pair.first, Mapping) else "records", None
    return "one number" if number is None else "a mapping" if isinstance(pair.first, Mapping) else "an array", number


def words_of(adjacency: str) -> str:
    """An adjacency in words."""
    if adjacency in RECORDS:
        return RECORDS[adjacency]
    return MONOTONE if adjacency == "monotone" else ADJACENCIES[WAYS[adjacency][0]]


def many_answers(answers: int | None) -> str:
    """How many answers a proof is about, in words."""
    return "any number of answers" if answers is None else f"{answers} answers"


def exact_answers(what: str, data: Any) -> tuple[Fraction, ...]:
    """A dataset of query answers as rationals; one number stands for itself. Raises `InvalidSpec`."""
    check_wide(what, data)
    if hasattr(data, "iloc"):
        raise InvalidSpec(f"{what} finds its answers by labels, data[i] is not the one at i: give its values, a list")
    if hasattr(data, "tolist"):
        data = data.tolist()
    if not isinstance(data, list | tuple):
        return (rational(what, data),)
    if not data:
        raise InvalidSpec(f"{what} must hold at least one query answer, got none")
    return tuple(rational(f"{what}[{place}]", each) for place, each in enumerate(data))


def answers_of_pair(pair: AdjacentPair) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Both datasets of a pair as rationals; of mappings, the values of the same keys. Raises `InvalidSpec`."""
    first, second = pair.first, pair.second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if list(first) != list(second):
            raise InvalidSpec("pair must have the same keys on both sides, in the same order")
        first, second = list(first.values()), list(second.values())
    return exact_answers("pair.first", first), exact_answers("pair.second", second)


def length_of(data: Any) -> int | None:
    """How many query answers a dataset has; None for a single number."""
    return len(data) if hasattr(data, "__len__") and getattr(data, "ndim", None) != 0 else None


def check_form(program: Program, pairs: Iterable[AdjacentPair], answers: int | None) -> None:
    """Raises `InvalidSpec` where data are not of the form that a program was read for: one number, or a list of them.

    Python runs a program for one number on a vector too, and every entry then gets the same noise.
    """
    kinds = ["a list of query answers", "one number"]
    kind, other = kinds if program.loop is not None else kinds[::-1]
    for pair in pairs:
        for data in (pair.first, pair.second):
            if isinstance(data, Mapping):
                raise InvalidSpec(f"{program.name} is read for {kind} as data, a loop over a mapping is over its keys")
            if (length_of(data) is None) != (program.loop is None):
                raise InvalidSpec(f'{program.name} is read for {kind} as data, the pair "{pair.name}" holds {other}')
    if program.loop is None and answers not in (None, 1):
        raise InvalidSpec(f"{program.name} is read for {kind} as data, so answers must be left out, got {answers}")


def with_defaults(target: Target) -> dict[str, Any]:
    """The parameters, with the defaults of the function where its source can be read."""
    defaults: dict[str, Any] = {}
    with contextlib.suppress(InvalidSpec, ValueError):
        read = target.source and read_source(target.source, target.function)
        stands = [(each.arg, value) for each, value in (parameters_of(read.definition) if read else ()) if value]
        defaults = {name: ast.literal_eval(value) for name, value in stands}
    return {**defaults, **target.parameters}


def check_unit(target: Target) -> None:
    """Raises `InvalidSpec` where answers move by another amount than the 1 of every adjacency."""
    unit = with_defaults(target).get("sensitivity", 1)
    if not isinstance(unit, numbers.Real) or unit != 1:
        raise InvalidSpec(f"an adjacency of answers is about moves of at most 1: give sensitivity = 1, got {unit!r}")


def stated(parameters: Mapping[str, Any]) -> dict[str, Fraction]:
    """The parameters that are numbers, of whatever type: a claim may be a formula in these."""
    real: dict[str, Any] = {name: value for name, value in parameters.items() if isinstance(value, numbers.Real)}
    return {name: rational(name, value if isinstance(value, int) else float(value)) for name, value in real.items()}


def epsilon_of(text: str, parameters: Mapping[str, Any]) -> float:
    """A claim such as "2*eps" as an epsilon, no smaller than it. Raises `InvalidSpec` for anything else.

    >>> epsilon_of("2*eps", {"eps": 0.5, "c": 3})
    1.0
    """
    if strange := [word for word in re.findall(r"\b[A-Za-z_]\w*", text) if word not in parameters]:
        known = f"of this mechanism the sweep has: {', '.join(parameters) or 'none'}"
        raise InvalidSpec(f"the claim {text!r} needs a parameter {strange[0]!r}; {known}")
    return above(value_of(text, stated(parameters)))


def value_of(text: str, parameters: Mapping[str, Fraction]) -> Fraction:
    """A claim such as "2*eps" at the values of the parameters. Raises `InvalidSpec` for anything else."""

    def value(node: Expression) -> Fraction:
        match node:
            case Number(number):
                return number
            case ProgramParameter(name):
                return parameters[name]
            case Arithmetical("+" | "-" | "*" | "/" as operation, left, right):
                with contextlib.suppress(ZeroDivisionError):
                    return Fraction(OPERATIONS[operation](value(left), value(right)))
        raise InvalidSpec(f"claim must be a formula in the parameters {', '.join(parameters)}, got {text!r}")

    amount = value(expression(text, Program("", "", "", tuple(parameters), frozenset(), (), (), None, (), ())))
    if amount < 0:
        raise InvalidSpec(f"claim must be at least 0, got {text!r} = {in_short(amount)}")
    return amount


def check_adjacent(first: tuple[Fraction, ...], second: tuple[Fraction, ...], adjacency: str) -> None:
    """Raises `InvalidSpec` where two vectors of answers are no neighbours.

    >>> check_adjacent((Fraction(0), Fraction(0)), (Fraction(1), Fraction(-1)), "all-differ")
    """
    if len(first) != len(second):
        raise InvalidSpec(f"the answers of the pair must be as many on both sides, got {len(first)} and {len(second)}")
    moves = [after - before for before, after in zip(first, second, strict=True)]
    ranges = [REACH[way] for way in WAYS[adjacency]]
    fits = any(all(least <= move <= most for move in moves) for least, most in ranges)
    if not fits or adjacency == "one-differs" and sum(map(bool, moves)) > 1:
        text = ", ".join(map(in_short, moves))
        raise InvalidSpec(f"the pair is not adjacent: {words_of(adjacency)}, but the answers move by {text}")
