"""Networks that name a class for a picture."""
