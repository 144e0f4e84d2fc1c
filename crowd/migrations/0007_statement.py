"""Payouts belong to submissions; what platforms showed becomes lines of their statement."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone


def give_submissions(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    Payout, Submission = apps.get_model("crowd", "Payout"), apps.get_model("crowd", "Submission")
    of_session = Submission.objects.filter(session=OuterRef("session")).values("pk")[:1]
    Payout.objects.filter(submission=None).update(submission=Subquery(of_session))


def write_lines(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """What was read before: the bonuses that were listed, the rewards of approved submissions, and each
    payout that the list had confirmed, so that nothing that was settled opens again."""
    Submission, Payout = apps.get_model("crowd", "Submission"), apps.get_model("crowd", "Payout")
    StatementLine = apps.get_model("crowd", "StatementLine")
    confirmed: dict[int, list[Any]] = {}
    for payout in Payout.objects.exclude(confirmed_at=None).select_related("batch"):
        confirmed.setdefault(payout.submission_id, []).append(payout)
    lines = []
    for row in Submission.objects.select_related("posting").iterator():
        at = row.posting.synced_at or row.seen_at or timezone.now()
        own, bonuses = Counter[tuple[str, int]](), Counter(int(cents) for cents in row.bonuses)
        paid = Counter[int]()
        for payout in confirmed.get(row.pk, []):
            if payout.batch is not None and payout.batch.purpose != "base":
                paid[payout.cents] += 1
            else:
                own["screen_out" if row.state == "screened_out" else "reward", payout.cents] += 1
        if row.state == "approved" and not own:
            share = Fraction(str(row.posting.options.get("base_share", 1.0)))
            base = math.floor(row.posting.reward_cents * share + Fraction(1, 2))
            own["reward", min(row.posting.reward_cents, max(1, base))] += 1
        for (kind, cents), count in own.items():
            lines.append(line(StatementLine, row, kind, cents, count, at))
        for cents, count in (bonuses | paid).items():
            lines.append(line(StatementLine, row, "bonus", cents, count, at))
    StatementLine.objects.bulk_create([each for each in lines if each.cents > 0], batch_size=500)


def line(model: Any, row: Any, kind: str, cents: int, count: int, at: Any) -> Any:
    return model(submission=row, kind=kind, cents=cents, count=count, first_at=at, read_at=at)


def leave(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Backwards, the bonuses are listed again by the next sync."""


KINDS = [("reward", "Reward"), ("screen_out", "Screen Out"), ("bonus", "Bonus")]


class Migration(migrations.Migration):
    dependencies = [("crowd", "0006_posting_columns"), ("experiments", "0001_initial")]

    operations = [
        migrations.AddField(
            "payout",
            "submission",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payouts",
                to="crowd.submission",
            ),
        ),
        migrations.RunPython(give_submissions, leave),
        migrations.RemoveConstraint("payout", "payout_once"),
        migrations.RemoveConstraint("payout", "payout_state"),
        migrations.AddField("payout", "receipt", models.TextField(blank=True, default=""), False),
        migrations.AddField("submission", "statement_at", models.DateTimeField(null=True)),
        migrations.AddField("posting", "unread", models.JSONField(default=list)),
        migrations.AlterField(
            "payoutbatch",
            "fees_cents",
            models.DecimalField(decimal_places=4, default=0, max_digits=16),
        ),
        migrations.CreateModel(
            name="StatementLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=KINDS, max_length=10)),
                ("cents", models.PositiveIntegerField()),
                ("reference", models.CharField(blank=True, max_length=60)),
                ("count", models.PositiveSmallIntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("read_at", models.DateTimeField()),
                ("accepted", models.PositiveSmallIntegerField(default=0)),
                ("accepted_by", models.CharField(blank=True, max_length=150)),
                ("accepted_reason", models.TextField(blank=True)),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="crowd.submission",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("submission", "kind", "cents", "reference"), name="line_once"
                    )
                ],
            },
        ),
        migrations.RunPython(write_lines, leave),
        migrations.RemoveField("submission", "bonuses"),
    ]
