"""Networks that decide about a picture by named concepts."""
