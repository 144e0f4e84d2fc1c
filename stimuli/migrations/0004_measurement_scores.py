from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("stimuli", "0003_measurement_package"),
    ]

    operations = [
        migrations.AddField(
            model_name="measurement",
            name="scores",
            field=models.CharField(default="method", max_length=8),
        ),
    ]
