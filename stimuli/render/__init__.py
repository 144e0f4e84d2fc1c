"""How attributions become pictures that people see."""
