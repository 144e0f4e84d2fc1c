"""Prolific: its door, its market, its signatures."""
