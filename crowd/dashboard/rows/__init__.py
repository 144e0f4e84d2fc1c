"""What the pages of the dashboard show, read from the database as plain values."""
