"""Shares of yes: proportions, contrasts, margins, signal detection."""
