"""Mechanisms of other libraries as audits take them, with the claim that the object itself makes where it can.

Nothing of a library is imported here, and what an adapter needs of one only when it is used.
"""

from dpaudit.adapters.adapted import Adapted, local
from dpaudit.adapters.estimators import diffprivlib, estimator
from dpaudit.adapters.measurements import autodp, dp_accounting, opendp

__all__ = ["Adapted", "autodp", "diffprivlib", "dp_accounting", "estimator", "local", "opendp"]
