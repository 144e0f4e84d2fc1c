"""Utility of explanation methods, and what automatic metrics say of their explanations."""
