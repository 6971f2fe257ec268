"""Recorded noise: the draws of a run, played again on the neighbour, and what follows where outputs are made of them."""
