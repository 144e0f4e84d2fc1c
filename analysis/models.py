"""Rows of analysis: the last report of each study and origin, and the chain of releases."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from experiments.models import Session, Study


class Report(models.Model):
    """The newest report of one study and origin. It is refreshed if it is older than its newest session."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="reports")
    origin = models.CharField(max_length=10)
    newest_session_at = models.DateTimeField(null=True)
    json = models.JSONField()
    html = models.TextField()
    opening = models.TextField(default="", blank=True)
    sealed = models.BooleanField()
    facts_digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "origin"], name="report_once")]

    def __str__(self) -> str:
        return f"{self.study_id} {self.origin}"


class TakenLook(models.Model):
    """A look that the plan names, as it was taken: what it said, and nothing of what it saw."""

    class Answer(models.TextChoices):
        CONTINUE = "continue"
        STOP = "stop"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="looks")
    number = models.PositiveIntegerField()
    people = models.PositiveIntegerField()
    """Kept per condition."""
    answer = models.CharField(max_length=8, choices=Answer)
    looked_at = models.DateTimeField(default=timezone.now)
    looked_by = models.TextField()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="look_once")]

    def __str__(self) -> str:
        return f"look {self.number} of {self.study_id}"


class Viewing(models.Model):
    """What a login looked at while a study ran, so that a report can tell it: another limit of screening that
    was tried, or one person's record (once per login)."""

    class Kind(models.TextChoices):
        LIMIT = "limit"
        RECORD = "record"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="viewings")
    kind = models.CharField(max_length=8, choices=Kind)
    origin = models.CharField(max_length=10)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, null=True, related_name="viewings")
    who = models.CharField(max_length=150)
    detail = models.JSONField(default=dict)
    """Of a limit: `rule`, `limit`, how many `more` and `fewer` it would exclude, `of` how many."""
    sealed = models.BooleanField()
    viewed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "who"], name="record_viewed_once", condition=models.Q(kind="record")
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.who}"


class Release(models.Model):
    """One export: its manifest, whose digest the next export of the study names as its predecessor."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="releases")
    digest = models.CharField(max_length=64, unique=True)
    manifest = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.digest[:16]
