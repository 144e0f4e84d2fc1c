"""Methods that mark words of a text."""
