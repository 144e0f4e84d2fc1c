from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("stimuli", "0002_measurements"),
    ]

    operations = [
        migrations.AddField(
            model_name="measurement",
            name="package",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
    ]
