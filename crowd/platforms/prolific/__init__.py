"""Prolific: entry, API and signatures."""
