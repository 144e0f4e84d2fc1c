"""A payout needs a submission, and no session; the columns are tightened once they are filled."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

STATES = ["due", "sending", "sent", "failed", "unknown", "withheld", "by_hand"]
CHOICES = [(state, state.capitalize()) for state in STATES[:-1]] + [("by_hand", "Paid by hand")]


class Migration(migrations.Migration):
    dependencies = [("crowd", "0007_statement")]

    operations = [
        migrations.AlterField(
            "payout",
            "submission",
            models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="payouts", to="crowd.submission"
            ),
        ),
        migrations.AlterField(
            "payout",
            "session",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payouts",
                to="experiments.session",
            ),
        ),
        migrations.AlterField(
            "payout", "state", models.CharField(choices=CHOICES, default="due", max_length=8)
        ),
        migrations.AddConstraint(
            "payout", models.UniqueConstraint(fields=("submission", "kind"), name="payout_once")
        ),
        migrations.AddConstraint(
            "payout", models.CheckConstraint(condition=Q(state__in=STATES), name="payout_state")
        ),
    ]
