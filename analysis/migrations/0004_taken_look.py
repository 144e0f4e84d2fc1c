import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0003_report_opening"), ("experiments", "0011_preregistration")]

    operations = [
        migrations.CreateModel(
            name="TakenLook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("people", models.PositiveIntegerField()),
                (
                    "answer",
                    models.CharField(choices=[("continue", "Continue"), ("stop", "Stop")], max_length=8),
                ),
                ("looked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("looked_by", models.TextField()),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="looks",
                        to="experiments.study",
                    ),
                ),
            ],
            options={"ordering": ["number"]},
        ),
        migrations.AddConstraint(
            model_name="takenlook",
            constraint=models.UniqueConstraint(fields=("study", "number"), name="look_once"),
        ),
    ]
