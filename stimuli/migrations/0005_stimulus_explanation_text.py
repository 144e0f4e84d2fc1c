from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("stimuli", "0004_measurement_scores"),
    ]

    operations = [
        migrations.AddField(
            model_name="stimulus",
            name="explanation_text",
            field=models.TextField(blank=True, default=""),
        ),
    ]
