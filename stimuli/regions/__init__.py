"""Marked regions: cells of a grid laid over a picture, brought into one language for people and models."""
