"""Studies, plans and what people answered. Identities of a platform and derived scores are stored elsewhere
or nowhere."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone


def _one_of(field: str, values: list[str]) -> Q:
    return Q(**{f"{field}__in": values})


class Study(models.Model):
    """One study, frozen under the digest of its definition when it opens."""

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        CLOSED = "closed"

    slug = models.SlugField(unique=True, max_length=64)
    title = models.TextField()
    paradigm = models.CharField(max_length=40)
    definition = models.JSONField()
    digest = models.CharField(max_length=64)
    seed = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.DRAFT)
    practice = models.JSONField(default=list)
    plates = models.JSONField(default=list)
    predictor = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    plan_digest = models.CharField(max_length=64, blank=True)
    picture_bytes = models.JSONField(default=dict)
    """Length of the longest picture of each part of a page; empty if the study was opened before pictures
    were padded."""
    frozen_at = models.DateTimeField(null=True)
    frozen_digest = models.CharField(max_length=64, blank=True)
    """Digest of the solutions that a later stage reads, with their settings; empty until they are frozen."""
    frozen = models.JSONField(default=dict)
    """The settings under which solutions were frozen, and what was counted and measured of them."""
    solutions_digest = models.CharField(max_length=64, blank=True)
    """The `frozen_digest` of the earlier stage at the time this study was drafted from it."""
    unsealed_at = models.DateTimeField(null=True)
    unsealed_by = models.TextField(blank=True)
    unsealed_reason = models.TextField(blank=True)
    dropped = models.JSONField(default=dict)
    """Items that were left out by `[stimuli] drop_flagged`, with counts; empty if the study asks for none."""
    copies = models.JSONField(default=dict)
    """How many changed copies of pictures were made, and of which there is none, why; empty if none are
    wanted."""
    quality = models.JSONField(default=dict)
    """What was measured of the stimuli when the study was opened; empty if nothing was, `error` says why."""
    acknowledged = models.JSONField(default=list)
    """Who acknowledged which warnings about the stimuli, when and why, the oldest first."""

    class Meta:
        verbose_name_plural = "studies"
        constraints = [
            models.CheckConstraint(
                condition=_one_of("state", ["draft", "open", "closed"]), name="study_state"
            )
        ]

    def __str__(self) -> str:
        return self.slug


class Preregistration(models.Model):
    """What was planned when a study opened; never altered. A study that was opened before there were such
    rows has none. `registry` is an address that was named later, and when."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="preregistration")
    document = models.TextField()
    """Canonical JSON."""
    digest = models.CharField(max_length=64)
    """SHA-256 of `document`."""
    stored_at = models.DateTimeField()
    registry = models.TextField(blank=True, default="")
    registry_named_at = models.DateTimeField(null=True)
    timestamp = models.JSONField(default=dict, blank=True)
    """What a time stamp proves (`timestamps.verified`); empty without one."""

    def __str__(self) -> str:
        return f"{self.digest[:12]} of {self.study_id}"


class Condition(models.Model):
    """A level of the manipulated factor: baseline, control, or one method."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="conditions")
    name = models.CharField(max_length=64)
    role = models.CharField(max_length=64)
    ordinal = models.PositiveIntegerField()
    slots = models.PositiveIntegerField()
    explainer = models.JSONField(null=True)
    dataset = models.CharField(max_length=64, blank=True)
    predictor = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["ordinal"]
        constraints = [models.UniqueConstraint(fields=["study", "name"], name="condition_once")]

    def __str__(self) -> str:
        return self.name


class Item(models.Model):
    """An item of a study's pool, with what the study's first model says of it; or a changed copy of one
    (`copy_of`), which stands beside it on a page, with what its own model says of the copy."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="items")
    key = models.CharField(max_length=200)
    truth = models.CharField(max_length=100)
    predicted = models.CharField(max_length=100)
    confidence = models.FloatField()
    group = models.CharField(max_length=200)
    use = models.CharField(max_length=8, default="task")
    """What it is for: see `stimuli.types.Use`."""
    logits = models.JSONField()
    image_key = models.CharField(max_length=64)
    width_px = models.PositiveIntegerField()
    height_px = models.PositiveIntegerField()
    copy_of = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="copies")
    perturbation = models.JSONField(default=dict)
    """What made a copy of it, and what the model said before and after; empty for the study's own items."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="item_once")]

    def __str__(self) -> str:
        return self.key


class Prediction(models.Model):
    """What a further model of the study says of an item; a study with one model has no such rows."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="predictions")
    predictor = models.CharField(max_length=64)
    predicted = models.CharField(max_length=100)
    confidence = models.FloatField()
    logits = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "predictor"], name="prediction_once")]

    def __str__(self) -> str:
        return f"{self.predictor} on {self.item_id}"


class Solution(models.Model):
    """A frozen answer of one stage, as a later stage of the same protocol reads it; never altered. A study
    that starts from labels has solutions of its own.

    `source` says who solved, people or a model, by the name of the condition. `choice` is the answer and
    `region` the cells marked, null if there are none. `use`, see `Solved`: "lure" and "alone" were made of
    the solution `donor`. `made` says how the region came about, and names no person.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="solutions")
    key = models.CharField(max_length=64)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="solutions")
    source = models.CharField(max_length=64)
    choice = models.CharField(max_length=100)
    region = models.JSONField(null=True)
    use = models.CharField(max_length=8, default="solution")
    donor = models.CharField(max_length=64, blank=True, default="")
    made = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="solution_once")]

    def __str__(self) -> str:
        return self.key


class Rendering(models.Model):
    """Which stimulus shows an item under a condition; what a draft asks for. Trials hold their own. `variant`
    tells several of one item under one condition apart: the key of a solution."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="renderings")
    condition = models.ForeignKey(Condition, on_delete=models.CASCADE, related_name="renderings")
    stimulus = models.ForeignKey("stimuli.Stimulus", on_delete=models.PROTECT, related_name="renderings")
    rated_as = models.CharField(max_length=64, blank=True, default="")
    """The condition whose rating stands for this one too, for their pages are the same; empty: its own."""
    variant = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "condition", "variant"], name="rendering_once")
        ]

    def __str__(self) -> str:
        return f"{self.item_id} under {self.condition_id}"


class Slot(models.Model):
    """One place in the design. Free means: no holder, or the lease is over and the holder has not passed."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="slots")
    ordinal = models.PositiveIntegerField()
    lane = models.CharField(max_length=40, default="participant")
    arm = models.CharField(max_length=80)
    condition = models.ForeignKey(
        Condition, on_delete=models.PROTECT, null=True, related_name="slots_planned"
    )
    pilot = models.BooleanField(default=False)
    holder = models.ForeignKey("Session", on_delete=models.SET_NULL, null=True, related_name="held_slots")
    lease_ends_at = models.DateTimeField(null=True)
    claimed_count = models.PositiveIntegerField(default=0)
    kept = models.BooleanField(default=False)
    matched = models.PositiveIntegerField(null=True)
    """Number of the matched plan: slots of one number differ in the condition alone. Null: no twin."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "pilot", "ordinal"], name="slot_once"),
            models.UniqueConstraint(
                fields=["holder"], name="slot_holder_once", condition=Q(holder__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["study", "lane", "ordinal"], name="slot_next", condition=Q(kept=False)),
        ]

    def __str__(self) -> str:
        return f"{self.arm} {self.ordinal}"


class Trial(models.Model):
    """One planned trial; never altered after opening. `remaining` counts the trials that follow in its slot.

    `accepts` lists every value that may be stored, as canonical JSON between newlines, so that one
    statement can check and insert; it is empty if a value must be judged in Python. `right` is the value that
    counts as right; null: nothing does.
    """

    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveIntegerField()
    remaining = models.PositiveIntegerField()
    block = models.PositiveIntegerField()
    phase = models.CharField(max_length=8)
    kind = models.CharField(max_length=24)
    check_kind = models.CharField(max_length=12, blank=True)
    item = models.ForeignKey(Item, on_delete=models.PROTECT, null=True, related_name="trials")
    condition = models.ForeignKey(Condition, on_delete=models.PROTECT, null=True, related_name="trials")
    stimulus = models.ForeignKey(
        "stimuli.Stimulus", on_delete=models.PROTECT, null=True, related_name="trials"
    )
    explained = models.BooleanField()
    choices = models.JSONField()
    accepts = models.TextField(blank=True)
    label = models.CharField(max_length=100, null=True)
    expected = models.CharField(max_length=100, blank=True)
    right = models.CharField(max_length=100, null=True)
    reservoir = models.JSONField(default=list)
    extra = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["slot", "position"], name="trial_once")]

    def __str__(self) -> str:
        return f"{self.slot_id}:{self.position}"


class OtherStimulus(models.Model):
    """A further stimulus on a trial's page, such as the second of a pair."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="others")
    role = models.CharField(max_length=24)
    stimulus = models.ForeignKey("stimuli.Stimulus", on_delete=models.PROTECT, related_name="+")
    explained = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "role"], name="other_stimulus_once")]

    def __str__(self) -> str:
        return f"{self.role} of {self.trial_id}"


class Participant(models.Model):
    """One person in one study, anonymous; the identity is stored only in crowd's tables."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="participants")
    pseudonym = models.UUIDField(default=uuid.uuid4, unique=True)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return str(self.pseudonym)


class Session(models.Model):
    """One session of a person. `state` is what the server allows next; `verdict` is what screening decided at
    the end.

    gates -> assigned (a slot is claimed, its instructions are to be read) -> running -> finished; or out of
    any of them: withdrawn, declined (no consent), turned_away (no place left). `erased` is the tombstone of a
    withdrawal; `excluded` a named person's decision (by, reason, at): results are shown with it and without.
    """

    class State(models.TextChoices):
        GATES = "gates"
        ASSIGNED = "assigned"
        RUNNING = "running"
        FINISHED = "finished"
        WITHDRAWN = "withdrawn"
        DECLINED = "declined"
        TURNED_AWAY = "turned_away"

    class Origin(models.TextChoices):
        HUMAN = "human"
        SIMULATED = "simulated"
        PILOT = "pilot"
        PREVIEW = "preview"
        MODEL = "model"

    class Arrival(models.TextChoices):
        """What the place that sent the person says of them: it lists them, it could and does not yet, it
        never can. Empty: a preview."""

        VERIFIED = "verified"
        UNVERIFIED = "unverified"
        UNCONFIRMABLE = "unconfirmable"

    UNPLACED = frozenset({Origin.PREVIEW, Origin.MODEL})
    """They are shown the plan of a slot and never hold it."""
    PROGRAMS = frozenset({Origin.SIMULATED, Origin.MODEL})
    """Programs answer, which have no screen and no reading speed of people."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="sessions")
    participant = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="sessions")
    origin = models.CharField(max_length=10, choices=Origin)
    arrival = models.CharField(max_length=13, choices=Arrival, blank=True)
    simulated_kind = models.CharField(max_length=20, blank=True)
    simulated_digest = models.CharField(max_length=64, blank=True)
    asked = models.JSONField(default=dict)
    """Of a model: its name, the host of its address, how it was asked, and what was wrong with its replies.
    Empty for all others."""
    lane = models.CharField(max_length=40, default="participant")
    state = models.CharField(max_length=12, choices=State, default=State.GATES)
    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, null=True, related_name="sessions")
    token_hash = models.CharField(max_length=64, unique=True)
    media_id = models.CharField(max_length=22, unique=True)
    started_at = models.DateTimeField(default=timezone.now)
    claimed_at = models.DateTimeField(null=True)
    lease_s = models.PositiveIntegerField(null=True)
    """How long this session holds a slot; null: as long as the study says."""
    lease_ends_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    verdict = models.CharField(max_length=12, blank=True)
    reasons = models.JSONField(default=list)
    rules_digest = models.CharField(max_length=64, blank=True)
    verdict_at = models.DateTimeField(null=True)
    comment = models.TextField(blank=True)
    measures = models.JSONField(default=dict)
    """What screening looked at, see `verdicts.measures_of`; empty: not yet worked out, or removed with the
    answers."""
    device = models.JSONField(default=dict)
    erased = models.JSONField(default=dict)
    excluded = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=_one_of(
                    "state",
                    ["gates", "assigned", "running", "finished", "withdrawn", "declined", "turned_away"],
                ),
                name="session_state",
            ),
            models.CheckConstraint(
                condition=_one_of(
                    "verdict", ["", "passed", "screened", "incomplete", "withdrawn", "declined"]
                ),
                name="session_verdict",
            ),
            models.CheckConstraint(
                condition=_one_of("origin", ["human", "simulated", "pilot", "preview", "model"]),
                name="session_origin",
            ),
            models.CheckConstraint(
                condition=_one_of("arrival", ["", "verified", "unverified", "unconfirmable"]),
                name="session_arrival",
            ),
        ]
        indexes = [models.Index(fields=["study", "state"], name="session_study_state")]

    def __str__(self) -> str:
        return str(self.id)


class Hold(models.Model):
    """The place of a session that no platform vouches for, among those of its address.

    `sender` is a keyed hash of address, study and day, `part` and `network` those of the networks of 56 and
    48 bits that an IPv6 address is in, and `number` the place that it takes at its address; null: it lapsed.
    Two sessions cannot take one number, so an address never has more places than numbers. The row leaves with
    the lease; of a session that waits at the gates for a day only the hash leaves.
    """

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="hold")
    sender = models.CharField(max_length=32, blank=True)
    part = models.CharField(max_length=32, blank=True)
    network = models.CharField(max_length=32, blank=True)
    most = models.PositiveSmallIntegerField()
    number = models.PositiveSmallIntegerField(null=True)
    ends_at = models.DateTimeField()
    released = models.BooleanField(default=False)
    """A researcher took the place back: it counts for the address until the lease is over, and holds
    nothing."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sender", "number"], name="hold_number_once")]
        indexes = [
            models.Index(fields=["ends_at"], name="hold_ends"),
            models.Index(fields=["network"], name="hold_network"),
        ]

    def __str__(self) -> str:
        return f"{self.sender[:8]} {self.number}"


class Gate(models.Model):
    """One try at a gate. `passed` is null if nothing is judged."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="gates")
    kind = models.CharField(max_length=24)
    attempt = models.PositiveIntegerField()
    value = models.JSONField()
    passed = models.BooleanField(null=True)
    text_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "kind", "attempt"], name="gate_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.attempt}"


class Response(models.Model):
    """One answer as it arrived: never altered, removed only by withdrawal, `forget` or retention."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="responses")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="responses")
    position = models.PositiveIntegerField()
    remaining = models.PositiveIntegerField()
    value = models.JSONField()
    rt_ms = models.PositiveIntegerField()
    shown_ms = models.PositiveIntegerField()
    context = models.JSONField(default=dict)
    late = models.BooleanField()
    received_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "trial"], name="response_once")]

    def __str__(self) -> str:
        return f"{self.session_id}:{self.position}"


class HandOut(models.Model):
    """When a trial that is handed out alone was first sent to the page: bounds the response time."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="hand_outs")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="hand_outs")
    handed_out_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "trial"], name="hand_out_once")]

    def __str__(self) -> str:
        return f"{self.session_id}:{self.trial_id}"


class Event(models.Model):
    """Something that happened besides the answers: focus lost, reservoir opened."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    uuid = models.UUIDField()
    kind = models.CharField(max_length=24)
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, null=True, related_name="events")
    at_ms = models.BigIntegerField()
    detail = models.JSONField(default=dict)
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "uuid"], name="event_once")]

    def __str__(self) -> str:
        return self.kind
