from django.db import migrations

import crowd.models


def carry_postings(apps, schema_editor):
    """Each posting gets its own key; a live one stays live, every other was a rehearsal."""
    for posting in apps.get_model('crowd', 'Posting').objects.all():
        posting.key = crowd.models.new_key()
        posting.mode = 'live' if posting.live else 'rehearsal'
        posting.save(update_fields=['key', 'mode'])


class Migration(migrations.Migration):

    dependencies = [
        ('crowd', '0003_recruitment_and_money'),
    ]

    operations = [
        migrations.RunPython(carry_postings, migrations.RunPython.noop),
    ]
