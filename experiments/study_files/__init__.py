"""Study files on disk: located, read, checked, extended."""
