from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0011_preregistration")]

    operations = [
        migrations.AddField(
            model_name="preregistration",
            name="timestamp",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
