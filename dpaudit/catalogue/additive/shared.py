"""What the entries of this room share: their room, a parameter and the sources."""

from functools import partial

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter
from dpaudit.catalogue.promises import EPSILON, pure

HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
CS208, SARKAR, CHEEMA = "CS 208, notes 002", "Sarkar, notes 003", "Cheema & Huszár, notes 004"

SENSITIVITY = Parameter(
    "sensitivity", 1.0, "units of the answer", "how far one person moves the answer", validate.positive
)

in_room = partial(
    Entry,
    module="dpaudit.catalogue.additive",
    neighbours="answers at most `sensitivity` apart",
    parameters=(EPSILON, SENSITIVITY),
    promise=pure,
    default_pair=(10, 9),
)
