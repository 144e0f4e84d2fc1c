"""The report of a study of ratings."""
