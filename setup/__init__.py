"""What make runs: installation by stamps, and the parts of the test run. Standard library only."""
