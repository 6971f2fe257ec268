"""Exact privacy losses and their mathematics."""
