"""Networks from files and archives, and back into them; nothing is ever unpickled."""
