"""The report of a reverse Turing test."""
