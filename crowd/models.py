"""Recruitment: the only tables with outside ids. Before consent an id is stored as a keyed hash alone."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Posting(models.Model):
    """A study as offered on a platform."""

    class State(models.TextChoices):
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, related_name="postings")
    platform = models.CharField(max_length=20)
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    live = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["study", "platform"], name="posting_open_once", condition=Q(state="open")
            )
        ]

    def __str__(self) -> str:
        return f"{self.study_id} on {self.platform}"


class Identity(models.Model):
    """Which participant an outside person is, per study; the person is a keyed hash."""

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, related_name="identities")
    platform = models.CharField(max_length=20)
    person_hash = models.CharField(max_length=64)
    participant = models.OneToOneField(
        "experiments.Participant", on_delete=models.CASCADE, related_name="identity"
    )

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["study", "platform", "person_hash"], name="identity_once")
        ]

    def __str__(self) -> str:
        return self.person_hash[:8]


class Submission(models.Model):
    """The platform's record of one person's work, tied to the session that served it."""

    posting = models.ForeignKey(Posting, on_delete=models.CASCADE, related_name="submissions")
    identity = models.ForeignKey(Identity, on_delete=models.CASCADE, related_name="submissions")
    submission_hash = models.CharField(max_length=64)
    session = models.OneToOneField("experiments.Session", on_delete=models.CASCADE, related_name="submission")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["posting", "submission_hash"], name="submission_once")]

    def __str__(self) -> str:
        return self.submission_hash[:8]
