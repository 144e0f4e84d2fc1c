"""Recruitment, money and roles: the only tables with outside ids. Before consent an id is stored as a keyed
hash alone; in the clear it comes from the platform's own list, and only for people who consented."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


def new_key() -> str:
    """22 characters that cannot be guessed and that every platform accepts."""
    return secrets.token_hex(11)


class Posting(models.Model):
    """A study as offered on a platform. The row is committed before the platform is called; `draft` means
    that it may or may not exist there yet.

    `wanted` is how many slots it is to fill. Its `places` may be more, because of replacements for people who
    used a place without filling a slot. `names` are what the platform calls the posting or parts of it, by
    which arrivals and notifications name it. `fee_rates` are what the platform told last (money/cap.py).
    `facts` is the adapter's own memory: only the adapter reads it. `unread` are sentences about rows of its
    list that could not be read. `shown_cents` is what approving pays, as the platform showed it last (null:
    it does not); if that is not what was offered, a named person may accept it as `accepted_cents`.
    `unclear_at` is since when the platform has called it by a state that we do not know, `silent_at` since
    when it has not answered.
    """

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    class Mode(models.TextChoices):
        LIVE = "live"
        SANDBOX = "sandbox"
        REHEARSAL = "rehearsal"

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, related_name="postings")
    platform = models.CharField(max_length=20)
    key = models.CharField(max_length=22, default=new_key, unique=True)
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.REHEARSAL)
    pilot = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    wanted = models.PositiveIntegerField(default=0)
    places = models.PositiveIntegerField(default=0)
    reward_cents = models.PositiveIntegerField(default=0)
    shown_cents = models.PositiveIntegerField(null=True)
    accepted_cents = models.PositiveIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    cap_cents = models.PositiveBigIntegerField(default=0)
    fee_rates = models.JSONField(default=dict)
    unread = models.JSONField(default=list)
    codes = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    site = models.CharField(max_length=200, blank=True)
    external_id = models.CharField(max_length=100, blank=True)
    names = models.JSONField(default=list)
    address = models.CharField(max_length=500, blank=True)
    facts = models.JSONField(default=dict)
    raw_state = models.CharField(max_length=40, blank=True)
    unclear_at = models.DateTimeField(null=True)
    silent_at = models.DateTimeField(null=True)
    taken = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)
    sync_asked_at = models.DateTimeField(null=True)
    synced_at = models.DateTimeField(null=True)
    sync_error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["study", "platform", "mode", "pilot"],
                name="posting_open_once",
                condition=~Q(state="closed"),
            ),
            models.UniqueConstraint(
                fields=["platform", "mode", "site", "external_id"],
                name="posting_outside_once",
                condition=~Q(external_id=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study_id} on {self.platform}"

    @property
    def live(self) -> bool:
        return self.mode == self.Mode.LIVE


class Identity(models.Model):
    """Which participant an outside person is, per study. The hash is keyed and covers the realm, so it is the
    same in every study and on every platform of that realm. `external_id` is empty until consent and after
    `forget`."""

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, related_name="identities")
    platform = models.CharField(max_length=20)
    person_hash = models.CharField(max_length=64)
    external_id = models.CharField(max_length=100, blank=True)
    participant = models.OneToOneField(
        "experiments.Participant", on_delete=models.CASCADE, related_name="identity"
    )
    forgotten_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["study", "person_hash"], name="identity_once")]
        indexes = [models.Index(fields=["person_hash"], name="identity_person")]

    def __str__(self) -> str:
        return self.person_hash[:8]


class Submission(models.Model):
    """The platform's record of one person's participation. Without a session it is known to the platform
    alone; without `seen_at` it is known to us alone. `statement_at` is when its bonuses were read last,
    `state_at` since when the platform has said what it says of it, `gone_at` since when its list has not
    named it any more."""

    posting = models.ForeignKey(Posting, on_delete=models.CASCADE, related_name="submissions")
    identity = models.ForeignKey(Identity, on_delete=models.CASCADE, null=True, related_name="submissions")
    submission_hash = models.CharField(max_length=64)
    person_hash = models.CharField(max_length=64, blank=True)
    external_id = models.CharField(max_length=140, blank=True)
    session = models.OneToOneField(
        "experiments.Session", on_delete=models.CASCADE, null=True, related_name="submission"
    )
    entry_digest = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=16, default="unknown")
    raw_state = models.CharField(max_length=40, blank=True)
    state_at = models.DateTimeField(null=True)
    code = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)
    return_requested = models.BooleanField(default=False)
    statement_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["posting", "submission_hash"], name="submission_once")]
        indexes = [models.Index(fields=["posting", "state"], name="submission_state")]

    def __str__(self) -> str:
        return self.submission_hash[:8]


class PayoutBatch(models.Model):
    """Payouts sent together. The platform's id is committed before its pay call; `paying` after a crash means
    that the outcome is unknown: read the platform's list. `fees_cents` are what the platform said that it
    charges; they may be fractions."""

    class State(models.TextChoices):
        PREPARING = "preparing"
        PREPARED = "prepared"
        PAYING = "paying"
        PAID = "paid"
        UNKNOWN = "unknown"
        SETTLED = "settled"
        DROPPED = "dropped"

    posting = models.ForeignKey(Posting, on_delete=models.PROTECT, related_name="batches")
    purpose = models.CharField(max_length=10)
    external_id = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.PREPARING)
    cents = models.PositiveBigIntegerField()
    fees_cents = models.DecimalField(max_digits=16, decimal_places=4, default=0)
    currency = models.CharField(max_length=3)
    by = models.CharField(max_length=150)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    called_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "payout batches"

    def __str__(self) -> str:
        return f"{self.purpose} {self.pk}"


class Payout(models.Model):
    """One amount owed to one person for one submission: due -> sending -> sent | failed | unknown.

    Every amount that can leave has its row first, also for a person who never joined (no session). `unknown`
    is settled by the platform's statement or by a named person, never by silence. `withheld` was denied by a
    named person. `by_hand` was paid outside of the platform, with a `receipt`. `confirmed_at` is when the
    platform's statement showed it, `refused_at` when the platform refused this very payment for good: it
    stays due.
    """

    class Kind(models.TextChoices):
        BASE = "base"
        BONUS = "bonus"
        SCREEN_OUT = "screen_out"
        COMPENSATION = "compensation"

    class State(models.TextChoices):
        DUE = "due"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"
        UNKNOWN = "unknown"
        WITHHELD = "withheld"
        BY_HAND = "by_hand", "Paid by hand"

    posting = models.ForeignKey(Posting, on_delete=models.PROTECT, related_name="payouts")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="payouts")
    session = models.ForeignKey(
        "experiments.Session", on_delete=models.PROTECT, null=True, related_name="payouts"
    )
    kind = models.CharField(max_length=12, choices=Kind)
    cents = models.PositiveIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=8, choices=State, default=State.DUE)
    reason = models.TextField()
    reference = models.CharField(max_length=22, default=new_key, unique=True)
    batch = models.ForeignKey(PayoutBatch, on_delete=models.PROTECT, null=True, related_name="payouts")
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    refused_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=150, default="policy")
    receipt = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    called_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["submission", "kind"], name="payout_once"),
            models.CheckConstraint(
                condition=Q(state__in=["due", "sending", "sent", "failed", "unknown", "withheld", "by_hand"]),
                name="payout_state",
            ),
        ]
        indexes = [models.Index(fields=["posting", "state"], name="payout_posting_state")]

    def __str__(self) -> str:
        return f"{self.kind} {self.cents}"


class StatementLine(models.Model):
    """What the platform shows as paid for one submission, as it was read last.

    A line has an identity only if the platform keeps our `reference`; else it is (submission, kind, amount)
    and `count`. Reading again replaces the snapshot: a line that is not shown any more keeps a count of 0.
    `accepted` of them were explained by a named person, because the ledger did not send them.
    """

    class Kind(models.TextChoices):
        REWARD = "reward"
        SCREEN_OUT = "screen_out"
        BONUS = "bonus"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="lines")
    kind = models.CharField(max_length=10, choices=Kind)
    cents = models.PositiveIntegerField()
    reference = models.CharField(max_length=60, blank=True)
    count = models.PositiveSmallIntegerField(default=1)
    first_at = models.DateTimeField()
    read_at = models.DateTimeField()
    accepted = models.PositiveSmallIntegerField(default=0)
    accepted_by = models.CharField(max_length=150, blank=True)
    accepted_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["submission", "kind", "cents", "reference"], name="line_once")
        ]

    def __str__(self) -> str:
        return f"{self.count} x {self.kind} {self.cents}"


class Notice(models.Model):
    """A notification of a platform, once. Its content is not stored: it only triggers a sync."""

    platform = models.CharField(max_length=20)
    event_id = models.CharField(max_length=140)
    kind = models.CharField(max_length=60)
    posting = models.ForeignKey(Posting, on_delete=models.CASCADE, null=True, related_name="notices")
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["platform", "event_id"], name="notice_once")]

    def __str__(self) -> str:
        return f"{self.platform} {self.kind}"


class Message(models.Model):
    """A message from or to a participant. A message to a person is committed before it is sent, and never
    sent twice: a call without an answer leaves it `unknown`."""

    class State(models.TextChoices):
        RECEIVED = "received"
        ANSWERED = "answered"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"
        UNKNOWN = "unknown"

    posting = models.ForeignKey(Posting, on_delete=models.CASCADE, related_name="messages")
    identity = models.ForeignKey(Identity, on_delete=models.CASCADE, null=True, related_name="messages")
    external_id = models.CharField(max_length=140, default=new_key)
    state = models.CharField(max_length=8, choices=State)
    body = models.TextField()
    by = models.CharField(max_length=150, blank=True)
    answers = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="replies")
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["posting", "external_id"], name="message_once")]

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"


class JoinCount(models.Model):
    """How often an address asked to join a study within one minute, and was refused. `sender` is a keyed hash
    of address, study and day; the row is deleted after some hours. Without a study the address named none."""

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, null=True, related_name="+")
    sender = models.CharField(max_length=32)
    minute = models.DateTimeField()
    joins = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sender", "minute"], name="join_count_once")]
        indexes = [models.Index(fields=["minute"], name="join_count_minute")]

    def __str__(self) -> str:
        return f"{self.sender[:8]} {self.joins}"


class ExcludedPerson(models.Model):
    """A person who may not take part in studies that exclude this list. The hash covers the realm."""

    list_name = models.CharField(max_length=64)
    person_hash = models.CharField(max_length=64)

    class Meta:
        verbose_name_plural = "excluded people"
        constraints = [models.UniqueConstraint(fields=["list_name", "person_hash"], name="excluded_once")]

    def __str__(self) -> str:
        return self.list_name


class StudyRole(models.Model):
    """What one login may do in one study (ground/roles.py).

    It holds on to the study's slug: `build_stimuli` replaces a changed draft by a new row, and the people who
    work on it keep their roles.
    """

    class Role(models.TextChoices):
        VIEW = "view"
        RUN = "run"
        PAY = "pay"
        UNSEAL = "unseal"

    study = models.ForeignKey(
        "experiments.Study",
        to_field="slug",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="roles",
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="study_roles")
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "user", "role"], name="study_role_once")]

    def __str__(self) -> str:
        return f"{self.role} {self.study_id}"


class AskedPayment(models.Model):
    """A large payment that one login asked for, and that another is to confirm (people/second.py). A posting
    has at most one; the confirmation removes it."""

    posting = models.OneToOneField(Posting, on_delete=models.CASCADE, related_name="asked_payment")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    cents = models.PositiveBigIntegerField()
    asked_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.posting_id} {self.cents}"


class Alert(models.Model):
    """A trouble that a look has seen (alerts/): `told` names the channels that have carried it, `error` why
    one did not. It has ended when a look does not see it any more."""

    key = models.CharField(max_length=120)
    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, null=True, related_name="alerts")
    said = models.TextField()
    remedy = models.TextField(blank=True)
    page = models.CharField(max_length=200)
    told = models.JSONField(default=list)
    error = models.TextField(blank=True)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key"], name="alert_stands_once", condition=Q(ended_at=None))
        ]

    def __str__(self) -> str:
        return self.key


class Failure(models.Model):
    """A request that ended in an error of ours (ground/failures.py): where, and whom it hit."""

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, null=True, related_name="+")
    session = models.ForeignKey("experiments.Session", on_delete=models.CASCADE, null=True, related_name="+")
    route = models.CharField(max_length=120, blank=True)
    error = models.CharField(max_length=80)
    place = models.CharField(max_length=160, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["study", "at"], name="failure_of_study")]

    def __str__(self) -> str:
        return f"{self.error} {self.place}"


class PersonNote(models.Model):
    """What a researcher noted about one session, by name (people/notes.py). It goes with the session."""

    session = models.ForeignKey("experiments.Session", on_delete=models.CASCADE, related_name="notes")
    by = models.CharField(max_length=150)
    text = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.by} {self.session_id}"


class DataKey(models.Model):
    """With it a program downloads the data of one study in a login's name (people/keys.py)."""

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, related_name="data_keys")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    digest = models.CharField(max_length=64, unique=True)
    made_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class SavedFilter(models.Model):
    """A filter of the participants' list that one login keeps (people/saved.py)."""

    study = models.ForeignKey("experiments.Study", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=40)
    query = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "user", "name"], name="filter_once")]

    def __str__(self) -> str:
        return self.name


class LastTime(models.Model):
    """When something of the installation last happened: a look for trouble, a backup."""

    name = models.CharField(max_length=20, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
