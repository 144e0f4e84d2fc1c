"""What people read on a study's pages, in every language, and the window that it needs."""
