
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Stimulus',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64, unique=True)),
                ('spec', models.JSONField()),
                ('attribution_key', models.CharField(db_index=True, max_length=64)),
                ('image_key', models.CharField(db_index=True, max_length=64)),
                ('state', models.CharField(choices=[('missing', 'Missing'), ('claimed', 'Claimed'), ('done', 'Done'), ('failed', 'Failed')], db_index=True, default='missing', max_length=8)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('claimed_by', models.CharField(blank=True, max_length=64)),
                ('claimed_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('error', models.TextField(blank=True)),
                ('image_file', models.CharField(blank=True, max_length=120)),
                ('image_tile_file', models.CharField(blank=True, max_length=120)),
                ('explanation_file', models.CharField(blank=True, max_length=120)),
                ('explanation_tile_file', models.CharField(blank=True, max_length=120)),
                ('picture_digest', models.CharField(blank=True, db_index=True, max_length=64)),
                ('width_px', models.PositiveIntegerField(default=0)),
                ('height_px', models.PositiveIntegerField(default=0)),
                ('tile_width_px', models.PositiveIntegerField(default=0)),
                ('tile_height_px', models.PositiveIntegerField(default=0)),
                ('provenance', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'verbose_name_plural': 'stimuli',
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['missing', 'claimed', 'done', 'failed'])), name='stimulus_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'done'), _negated=True), models.Q(models.Q(('image_file', ''), _negated=True), models.Q(('picture_digest', ''), _negated=True)), _connector='OR'), name='stimulus_done_has_files'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'claimed'), _negated=True), ('claimed_at__isnull', False), _connector='OR'), name='stimulus_claim_has_time')],
            },
        ),
    ]
