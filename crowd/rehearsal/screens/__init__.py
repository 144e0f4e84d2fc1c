"""Every page that a participant of a study can meet, as a picture: for ethics boards, and to look at.

The pages are those of a throwaway copy of the study, so nothing that is looked at here counts there.
"""
