"""A first study.toml and its texts from a folder of pictures and a network."""
