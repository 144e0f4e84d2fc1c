"""Power of planned tests, and looks at the data before a study is complete."""
