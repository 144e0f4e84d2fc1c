"""Amazon Mechanical Turk: its door, its market, its questions and fees."""
