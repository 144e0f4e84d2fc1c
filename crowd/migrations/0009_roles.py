"""Roles per study. Every login that is active now keeps what it could do: all, in every study that is
there."""

import django.db.models.deletion
import django.utils.timezone
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ROLES = ("view", "run", "pay", "unseal")


def keep(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    StudyRole = apps.get_model("crowd", "StudyRole")
    users = list(apps.get_model("auth", "User").objects.filter(is_active=True).values_list("pk", flat=True))
    slugs = apps.get_model("experiments", "Study").objects.order_by("pk").values_list("slug", flat=True)
    StudyRole.objects.bulk_create(
        [
            StudyRole(study_id=slug, user_id=user, role=role)
            for slug in slugs
            for user in users
            for role in ROLES
        ],
        batch_size=500,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("crowd", "0008_payout_of_submission"),
        ("experiments", "0004_fill_right_stimulus_matched"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AskedPayment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cents", models.PositiveBigIntegerField()),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "posting",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="asked_payment",
                        to="crowd.posting",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StudyRole",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("view", "View"), ("run", "Run"), ("pay", "Pay"), ("unseal", "Unseal")],
                        max_length=6,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="roles",
                        to="experiments.study",
                        to_field="slug",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="study_roles",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["study", "user", "role"], name="study_role_once")
                ]
            },
        ),
        migrations.RunPython(keep, migrations.RunPython.noop),
    ]
