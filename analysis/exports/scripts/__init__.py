"""Scripts that are copied into a package as they stand: they import nothing of this project."""
