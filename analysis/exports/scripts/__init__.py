"""Scripts that are copied into a package with their study's level: they import nothing of this project."""
