"""Long proofs: how their size is chosen, and that their short forms in `make test` notice a planted fault."""
