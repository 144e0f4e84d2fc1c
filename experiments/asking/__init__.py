"""Models that take a session as raters: through the participant API as people do, and asked at an address
that speaks the chat completions of OpenAI. What they answer is stored under an origin of its own."""

HEADING = "A model answers, not people."
