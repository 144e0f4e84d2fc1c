"""Colour-blind digit plates: a figure of dots that differ from the ground in colour alone."""
