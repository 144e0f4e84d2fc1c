"""The report of a meta-predictor study."""
