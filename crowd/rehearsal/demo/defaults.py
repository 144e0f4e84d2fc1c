"""What a demo does if its command does not say otherwise; no imports, as the command reads it twice."""

SCENARIO_PARTICIPANTS = 240
PARTICIPANTS, ITEMS = 80, 60
"""How many people are to pass, and how many items are drawn for that few, if no number is given."""
USUAL_PARTICIPANTS, USUAL_ITEMS = 40, 40
"""The same of the study that comes if none is named: five people in each condition, and few more items than
the 36 of a session, as its report is to come soon."""
USUAL = "wolf-or-husky"
UNSEEN = 5000
"""Pictures that teach the observers' ceiling when scenarios are compared."""
