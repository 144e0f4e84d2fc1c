"""The library: explain, measure and draw a model's pictures without a study or a server."""
