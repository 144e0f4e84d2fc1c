"""Amazon Mechanical Turk: entry, API, questions and fees."""
