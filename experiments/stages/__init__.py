"""Studies that start from the solutions of an earlier one."""
