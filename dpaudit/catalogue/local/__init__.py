"""Local mechanisms: each person randomises their own value."""

from dpaudit.catalogue.local.filters import rappor, rappor_one_time
from dpaudit.catalogue.local.unary import optimised_unary, symmetric_unary
from dpaudit.catalogue.local.values import k_randomised_response, one_bit_mean, randomised_response, subset_selection

ENTRIES = (
    *(randomised_response, k_randomised_response, subset_selection, symmetric_unary, optimised_unary),
    *(one_bit_mean, rappor_one_time, rappor),
)
