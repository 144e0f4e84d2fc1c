"""The scripts that make runs: installation, tests and proofs. They use the standard library only."""
