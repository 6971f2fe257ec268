"""The running maximum of a loop, recognised: `if index == 0 or y > best: best = y`, perhaps with `winner = index`."""

from dataclasses import dataclass
from fractions import Fraction

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import bindings, reads, statements, used
from dpaudit.verify.witnesses.rationals import NoisySum
from dpaudit.verify.witnesses.states import ConcreteRun, splits


@dataclass(frozen=True, slots=True)
class Maximum:
    """The branch that raises `name` to `value`; `sign` is -1 for a minimum, `strict` says that equals do not raise it.

    `opening` are the other parts of the condition, true of the first value only, such as index == 0.
    """

    branch: nodes.Branch
    name: str
    value: nodes.Expression
    sign: int
    strict: bool
    opening: tuple[nodes.Expression, ...]
    assigned: frozenset[str]

    def starts_open(self, state: ConcreteRun) -> bool:
        """Whether the first value is taken whatever the maximum was before the loop."""
        found = [splits(part, state, self.branch.line) for part in self.opening]
        return any(each == [(True, ())] for each in found)

    def above(self, more: NoisySum, less: NoisySum, *, strict: bool) -> NoisySum | bool:
        """What must be positive for one value to be above another; a truth where no draw is in it."""
        difference = (more - less).times(Fraction(self.sign))
        if difference.is_number:
            return difference.constant > 0 if strict else difference.constant >= 0
        return difference


def maximum(program: nodes.Program) -> Maximum | None:
    """The running maximum of a program; None where it has none that can be read as one."""
    found = [each for each in map(_read, program.loop or ()) if each is not None]
    return found[0] if len(found) == 1 and _alone(found[0], program) else None


def _read(statement: nodes.Statement) -> Maximum | None:
    if not isinstance(statement, nodes.Branch) or statement.otherwise:
        return None
    condition = statement.condition
    *opening, compared = condition.parts if isinstance(condition, nodes.Any) else (condition,)
    if not isinstance(compared, nodes.Compared) or compared.order not in ("<", "<=", ">", ">="):
        return None
    if not all(isinstance(each, nodes.Assign) for each in statement.then) or not all(map(_first, opening)):
        return None
    assigned = {each.target: each.value for each in statement.then if isinstance(each, nodes.Assign)}
    if len(assigned) != len(statement.then):
        return None
    for value, best, sign in ((compared.left, compared.right, 1), (compared.right, compared.left, -1)):
        if not isinstance(best, nodes.Variable) or assigned.get(best.name) != value or set(assigned) & reads(value):
            continue
        upwards, strict = compared.order in (">", ">="), compared.order in ("<", ">")
        side = sign if upwards else -sign
        return Maximum(statement, best.name, value, side, strict, tuple(opening), frozenset(assigned))
    return None


def _first(part: nodes.Expression) -> bool:
    """Whether a condition is `index == 0`: true of the first answer alone."""
    zero = nodes.Number(Fraction(0))
    return part in (nodes.Compared("==", nodes.Index(), zero), nodes.Compared("==", zero, nodes.Index()))


def _alone(found: Maximum, program: nodes.Program) -> bool:
    """Whether the rest of the loop neither reads nor changes what the branch assigns, nor ends the loop."""
    others = tuple(statement for statement in program.loop or () if statement is not found.branch)
    inner = [expression for statement in found.branch.then for expression in used(statement)]
    outer = [expression for statement in statements(others) for expression in used(statement)]
    changed = {name for name, _ in bindings(others)}
    return not (reads(*inner, *outer) | changed) & found.assigned
