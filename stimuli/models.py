"""The stimuli that were requested and their state: the database decides what is missing."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Stimulus(models.Model):
    """One item under one condition, as pictures in the store."""

    class State(models.TextChoices):
        MISSING = "missing"
        CLAIMED = "claimed"
        DONE = "done"
        FAILED = "failed"

    key = models.CharField(max_length=64, unique=True)
    spec = models.JSONField()
    attribution_key = models.CharField(max_length=64, db_index=True)
    image_key = models.CharField(max_length=64, db_index=True)

    recorded_at = models.DateTimeField(auto_now_add=True, null=True)
    """Null for rows from before this was noted."""
    state = models.CharField(max_length=8, choices=State, default=State.MISSING, db_index=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    claimed_by = models.CharField(max_length=64, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)

    image_file = models.CharField(max_length=120, blank=True)
    image_tile_file = models.CharField(max_length=120, blank=True)
    explanation_file = models.CharField(max_length=120, blank=True)
    explanation_tile_file = models.CharField(max_length=120, blank=True)
    explanation_text = models.TextField(blank=True, default="")
    """What the drawn explanation says in words, for people who cannot see it."""
    picture_digest = models.CharField(max_length=64, blank=True, db_index=True)
    width_px = models.PositiveIntegerField(default=0)
    height_px = models.PositiveIntegerField(default=0)
    tile_width_px = models.PositiveIntegerField(default=0)
    tile_height_px = models.PositiveIntegerField(default=0)
    provenance = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name_plural = "stimuli"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["missing", "claimed", "done", "failed"]), name="stimulus_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | (~Q(image_file="") & ~Q(picture_digest="")),
                name="stimulus_done_has_files",
            ),
            models.CheckConstraint(
                condition=~Q(state="claimed") | Q(claimed_at__isnull=False), name="stimulus_claim_has_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key[:12]} ({self.state})"

    @property
    def explainer(self) -> str:
        """The explainer's name; empty for the baseline."""
        chosen = self.spec["explainer"]
        return str(chosen["name"]) if chosen else ""


class Measurement(models.Model):
    """The value of a metric for one stimulus: wanted as soon as the row exists, known once `measured_at` is
    set."""

    stimulus = models.ForeignKey(Stimulus, on_delete=models.CASCADE, related_name="measurements")
    key = models.CharField(max_length=64)
    """Names the metric with its version and all of its parameters."""
    metric = models.CharField(max_length=80)
    parameters = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=1)
    package = models.CharField(max_length=200, blank=True, default="")
    """The installed package that offers the metric, "distribution==version"; empty for the core's."""

    value = models.FloatField(null=True, blank=True)
    unit = models.CharField(max_length=40, blank=True)
    better = models.CharField(max_length=8, blank=True)
    scores = models.CharField(max_length=8, default="method")
    details = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    measured_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["stimulus", "key"], name="measurement_once"),
            models.CheckConstraint(
                condition=Q(measured_at__isnull=False) | Q(value__isnull=True),
                name="measurement_value_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} of {self.stimulus_id}"
