"""Recorded noise: the draws of a run, played again on the neighbour, and what follows for outputs made of them."""
