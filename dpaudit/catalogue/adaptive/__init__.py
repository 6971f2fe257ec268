"""Adaptive data analysis: holdouts and chosen statistics."""

from dpaudit.catalogue.adaptive.average import select_and_average
from dpaudit.catalogue.adaptive.features import boosted_vote
from dpaudit.catalogue.adaptive.holdout import thresholdout
from dpaudit.catalogue.adaptive.subsets import select_subsets

ENTRIES = (boosted_vote, select_subsets, select_and_average, thresholdout)
