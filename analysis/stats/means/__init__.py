"""Means of groups and of conditions within people: tests, comparisons, effect sizes, assumptions."""
