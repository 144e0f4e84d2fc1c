"""Methods that change the picture and watch the score."""
