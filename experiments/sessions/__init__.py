"""One person's session from arrival to verdict."""
