"""Troubles that were seen and told, requests that failed, and notes on people."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('crowd', '0010_arrivals'),
        ('experiments', '0014_quality'),
    ]

    operations = [
        migrations.CreateModel(
            name='LastTime',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='PersonNote',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('by', models.CharField(max_length=150)),
                ('text', models.TextField()),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='experiments.session')),
            ],
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=120)),
                ('said', models.TextField()),
                ('remedy', models.TextField(blank=True)),
                ('page', models.CharField(max_length=200)),
                ('told', models.JSONField(default=list)),
                ('error', models.TextField(blank=True)),
                ('began_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('study', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='experiments.study')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('key',), name='alert_stands_once')],
            },
        ),
        migrations.CreateModel(
            name='Failure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('route', models.CharField(blank=True, max_length=120)),
                ('error', models.CharField(max_length=80)),
                ('place', models.CharField(blank=True, max_length=160)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='experiments.session')),
                ('study', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='experiments.study')),
            ],
            options={
                'indexes': [models.Index(fields=['study', 'at'], name='failure_of_study')],
            },
        ),
    ]
