"""Counts of joins by address; and what the platforms have said of those who came until now."""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F, Q


def mark(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A session whose submission the platform lists for the same person is verified; where no platform can
    say so it is unconfirmable; any other is unverified. Previews have no submission and stay unmarked."""
    Submission = apps.get_model("crowd", "Submission")
    Session = apps.get_model("experiments", "Session")
    rows = Submission.objects.exclude(session=None)
    by_hand = Q(posting__platform__in=["local", "link"])
    is_listed = Q(seen_at__isnull=False, person_hash=F("identity__person_hash"))
    for arrival, which in (
        ("unconfirmable", rows.filter(by_hand)),
        ("verified", rows.filter(is_listed).exclude(by_hand)),
        ("unverified", rows.exclude(by_hand)),
    ):
        Session.objects.filter(arrival="", pk__in=which.values("session")).update(arrival=arrival)


class Migration(migrations.Migration):
    dependencies = [("crowd", "0009_roles"), ("experiments", "0005_arrivals")]

    operations = [
        migrations.CreateModel(
            name="JoinCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sender", models.CharField(max_length=32)),
                ("minute", models.DateTimeField()),
                ("joins", models.PositiveIntegerField(default=0)),
                ("refused", models.PositiveIntegerField(default=0)),
                (
                    "study",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="experiments.study",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["minute"], name="join_count_minute")],
                "constraints": [
                    models.UniqueConstraint(fields=("sender", "minute"), name="join_count_once")
                ],
            },
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
