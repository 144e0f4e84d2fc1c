"""Stateful servers that behave as the platforms do, over real HTTP: for rehearsals and tests. Their money is
simulated, and everything they print says so."""
