"""The tables of a study: the only reader of its rows."""
