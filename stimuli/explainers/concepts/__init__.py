"""Methods that explain a decision by named concepts."""
