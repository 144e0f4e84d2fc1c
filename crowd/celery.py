"""The one Celery app. Without a broker, tasks run in the process that calls them."""

import os

from celery import Celery
from kombu.entity import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
app = Celery("legible")
app.config_from_object("django.conf:settings", namespace="CELERY")
# A worker that is told no queue takes these two; one that is started with -Q stimuli.cuda takes only that.
app.conf.task_queues = [Queue(name) for name in ("celery", "stimuli.cpu")]  # type: ignore[no-untyped-call]
app.autodiscover_tasks()
