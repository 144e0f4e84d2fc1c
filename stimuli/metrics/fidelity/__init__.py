"""Metrics of what parts of a picture do to the number that is explained."""
