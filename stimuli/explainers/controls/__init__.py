"""Maps that look like explanations and know nothing of the network's reasons."""
