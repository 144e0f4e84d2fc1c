"""What a study's explanations look like, and what is wrong with them before anybody is paid to look."""
