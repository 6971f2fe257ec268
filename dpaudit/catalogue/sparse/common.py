"""The words that all entries of the sparse vector technique share."""

from functools import partial

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter
from dpaudit.catalogue.promises import EPSILON, at_least_one, pure

TOP, BOTTOM = 1, 0

BASSI = "Bassi 2019, notes 001"
BOOK = "Dwork & Roth 2014, The algorithmic foundations of differential privacy"
LYU = "Lyu, Su & Li 2017, Understanding the sparse vector technique for differential privacy"
NEIGHBOURS = "vectors of answers that each move by at most 1, in any direction"

THRESHOLD = Parameter("threshold", 0.0, "units of the answers", "what the answers are compared with", validate.real)
TOPS = Parameter("c", 2, "answers", "the tops after which a run halts", at_least_one)

in_room = partial(
    Entry,
    module="dpaudit.catalogue.sparse",
    neighbours=NEIGHBOURS,
    adjacency=("all-differ",),
    parameters=(EPSILON, THRESHOLD, TOPS),
    promise=pure,
    default_pair=([1, 1, 1, 1, 1, 1, -1, -1], [2, 2, 2, 2, 2, 2, -2, -2]),
)
