"""Exact losses: the mathematics that several rooms of the catalogue share."""
