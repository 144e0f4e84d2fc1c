"""The report of a study of advice."""
