"""Gradient descent with differential privacy, in full batches and in Poisson ones."""
