"""Simulated people take a study over HTTP, as a browser would."""
