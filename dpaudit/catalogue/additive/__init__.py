"""Additive noise."""

from dpaudit.catalogue.additive.single import gaussian, geometric, laplace, laplace_vector
from dpaudit.catalogue.additive.snapped import snapping

ENTRIES = (laplace, laplace_vector, geometric, gaussian, snapping)
