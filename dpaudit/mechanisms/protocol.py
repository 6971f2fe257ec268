"""The protocol of a mechanism: picklable while closed, opened once inside each worker that runs it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard, runtime_checkable

if TYPE_CHECKING:
    from dpaudit.claims.claim import Claim
    from dpaudit.data.pair import AdjacentPair


MOST_LINES, LONGEST_LINE = 40, 160  # of an excerpt
ADAPTED = "dpaudit.adapters."  # before the name of an adapter: the kind of a mechanism that is called run by run


@dataclass(frozen=True, slots=True)
class Opened:
    """A mechanism ready to run inside one worker.

    `call` is `call(data, rng)` where `per_run`, else `call(data, runs, rng)` for `runs` outputs at once.
    A mechanism that owns its randomness ignores `rng`; `takes_rng` says which.
    """

    call: Callable[..., Any]
    per_run: bool
    takes_rng: bool
    smallest_batch: int = 1  # runs below which one call is not worth its start-up cost
    size: int = 0  # runs of every call, even where fewer are needed; 0: as many as are needed
    limited: Callable[[float], Callable[..., Any]] | None = None  # the call that limits the seconds of a run itself


@dataclass(frozen=True, slots=True)
class Description:
    """What a report says of a mechanism: names and places, nothing that runs."""

    name: str
    kind: str
    reference: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    takes_rng: bool = False
    file: str | None = None
    line: int | None = None
    digest: str | None = None
    excerpt: tuple[str, ...] = ()  # the source; its first lines are kept
    claim: dict[str, Any] | None = None  # that it is to keep, in its stored form, where it was asked for
    _KEYS: ClassVar = ("name", "kind", "reference", "parameters", "takes_rng", "digest")  # as results store it

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", {str(name): _plain(value) for name, value in self.parameters.items()})
        lines = [str(line).rstrip()[:LONGEST_LINE] for line in self.excerpt[: MOST_LINES + 1]]
        object.__setattr__(self, "excerpt", (*lines[:MOST_LINES], *["..." for _ in lines[MOST_LINES:]]))

    def to_dict(self) -> dict[str, Any]:
        """The description as plain values, as results store it; file, line, excerpt live in the provenance."""
        return {key: value for key, value in asdict(self).items() if key in self._KEYS}


def _plain(value: Any) -> Any:
    """A parameter as it is where JSON can hold it, else as it prints: a result stores it, and never computes with it.

    >>> _plain((1, 2.5)), _plain({2: 1}), _plain({("a", "b"): 1})
    ([1, 2.5], {'2': 1}, "{('a', 'b'): 1}")
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False, sort_keys=True))
    except Exception:
        try:
            return repr(value)
        except Exception:
            return type(value).__name__


class Mechanism(Protocol):
    """Anything that can be opened in a worker and described in a report."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    def open(self) -> Opened:
        """The runnable form; called once in each worker."""

    def describe(self) -> Description:
        """The printable form; may import, never runs the mechanism."""


@runtime_checkable
class Known(Mechanism, Protocol):
    """A mechanism that offers what is known of it: its claim, a pair of datasets, and the exact loss of a pair."""

    @property
    def reference(self) -> str:
        """The name to import it by."""

    @property
    def program(self) -> Callable[..., Any]:
        """One run, `program(data, rng, **values())`, in plain Python: what is read for a proof."""

    @property
    def bound(self) -> Mapping[str, Any]:
        """The parameters that were given."""

    @property
    def adjacency(self) -> tuple[str, ...]:
        """The words of `verify` for neighbouring vectors of query answers; empty where datasets are none."""

    @property
    def broken(self) -> bool:
        """Whether it breaks its claim on purpose."""

    @property
    def pair(self) -> "AdjacentPair":
        """A pair of datasets on which its loss shows."""

    def with_parameters(self, parameters: Mapping[str, Any]) -> "Known":
        """The same with some parameters given; raises `InvalidSpec` for an unknown one or a bad value."""

    def values(self) -> dict[str, Any]:
        """Every parameter with its value."""

    def claim(self) -> "Claim":
        """What it promises at these parameters."""

    def true_loss(self, first: Any, second: Any) -> float | None:
        """The exact loss between two datasets, in the claim's own parameter; None where it is not known."""


def is_known(value: object) -> TypeGuard[Known]:
    """Whether a mechanism, or what a reference names, is one of which something is known."""
    return hasattr(type(value), "true_loss") and isinstance(value, Known)  # which evaluates properties in Python 3.11
