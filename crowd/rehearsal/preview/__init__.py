"""A draft in the participant's page, from a world that is thrown away: `legible preview`."""
