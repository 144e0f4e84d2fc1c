"""Statistics for a table that anybody brings: one row per answer in, tables of results out."""
