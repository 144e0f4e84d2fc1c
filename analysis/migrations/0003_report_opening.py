from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0002_initial")]

    operations = [
        migrations.AddField(
            model_name="report",
            name="opening",
            field=models.TextField(blank=True, default=""),
        ),
    ]
