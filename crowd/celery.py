"""The one Celery app. Without a broker, tasks run in the process that calls them."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
app = Celery("legible")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
