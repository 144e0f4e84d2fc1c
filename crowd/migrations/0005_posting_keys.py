from django.db import migrations, models

import crowd.models


class Migration(migrations.Migration):

    dependencies = [
        ('crowd', '0004_carry_postings'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='posting',
            name='live',
        ),
        migrations.AlterField(
            model_name='posting',
            name='key',
            field=models.CharField(default=crowd.models.new_key, max_length=22, unique=True),
        ),
    ]
