"""The report of a blind review."""
