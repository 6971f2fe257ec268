"""Local mechanisms: each person randomises their own value."""

from dpaudit.catalogue.local.bits import randomised_response

ENTRIES = (randomised_response,)
