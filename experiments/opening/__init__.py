"""Opening a study: every slot planned, its preregistration stored and time-stamped."""
