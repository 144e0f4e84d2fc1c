import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0008_observers_digest")]

    operations = [
        migrations.AddField("study", "copies", models.JSONField(default=dict)),
        migrations.AddField(
            "item",
            "copy_of",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="copies",
                to="experiments.item",
            ),
        ),
        migrations.AddField("item", "perturbation", models.JSONField(default=dict)),
        migrations.AddField("rendering", "rated_as", models.CharField(blank=True, default="", max_length=64)),
    ]
