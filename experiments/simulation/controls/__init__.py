"""What the observers would have done with other explanations."""
