"""Ordered answers of several raters: agreement, reliability, and models with people and items at random."""
