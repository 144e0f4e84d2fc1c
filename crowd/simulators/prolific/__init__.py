"""A Prolific that lives on this machine."""
