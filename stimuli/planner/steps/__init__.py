"""Passes whose steps are seen one by one, and run in another way than the network has them."""
