"""Pictures and sentences made by our own code, so that what decides their class is known."""
