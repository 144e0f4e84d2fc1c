"""How pictures look to people of reduced colour vision."""
