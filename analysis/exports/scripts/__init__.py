"""Scripts that are copied into a package with their study's level. The copies need nothing of this project:
what the scripts share is written into each."""
