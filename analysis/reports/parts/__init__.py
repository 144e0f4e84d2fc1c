"""Sections that the reports of several paradigms share."""
