"""Pictures and sentences drawn by our own code, so that what decides about them is known."""
