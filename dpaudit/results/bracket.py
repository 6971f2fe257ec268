"""The bracket as a user holds it: the bounds from below and from above, which print themselves."""

from dataclasses import dataclass

from dpaudit.results.bounds import Bounds
from dpaudit.results.display import Displayed
from dpaudit.results.wording.bracketed import account


@dataclass(frozen=True, slots=True, repr=False)
class Bracket(Displayed, Bounds):
    """What is known of a mechanism's loss; its fields and all that follows from them are those of `Bounds`."""

    def __str__(self) -> str:
        return "\n".join(account(self))
