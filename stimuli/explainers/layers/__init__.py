"""Methods that read the maps of a layer."""
