"""The demo: shipped studies with simulated people, from stimuli to report."""
