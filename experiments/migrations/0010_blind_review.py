from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0009_copies")]

    operations = [
        migrations.AddField("item", "use", models.CharField(default="task", max_length=8)),
        migrations.AddField("study", "frozen", models.JSONField(default=dict)),
        migrations.AddField("solution", "use", models.CharField(default="solution", max_length=8)),
        migrations.AddField("solution", "donor", models.CharField(blank=True, default="", max_length=64)),
        migrations.AddField("solution", "made", models.JSONField(default=dict)),
        migrations.AddField("rendering", "variant", models.CharField(blank=True, default="", max_length=64)),
        migrations.RemoveConstraint("rendering", "rendering_once"),
        migrations.AddConstraint(
            "rendering",
            models.UniqueConstraint(fields=["item", "condition", "variant"], name="rendering_once"),
        ),
    ]
