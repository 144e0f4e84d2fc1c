"""Server-rendered pages for researchers: what a study is doing, what it costs, what it found."""
