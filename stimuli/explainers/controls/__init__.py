"""Maps that look like explanations but do not depend on the network's reasons."""
