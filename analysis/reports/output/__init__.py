"""A report as a page, in the terminal, and as files for a paper."""
