"""Rank tests and rank correlation."""
