"""The watcher as a process of its own: a killed worker, a dead broker, a disk that fills
and a posting that stalls are each told once, over real HTTP, and are over when they are mended."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from crowd.models import Alert
from tests import services
from tests.analysis import stored
from tests.crowd.dashboard.test_dashboard_recruitment import live
from tests.crowd.listeners import Listener, listening
from tests.run.guard import Service

pytestmark = pytest.mark.django_db(transaction=True)
WATCH = ("manage", "watch", "--every", "0.2")
BIG_MB = 2048
"""Far more than other tests write to this disk meanwhile."""


def is_over(key: str) -> bool:
    return Alert.objects.filter(key=key).exclude(ended_at=None).exists()


def wait(service: Service, ear: Listener, word: str, count: int = 1) -> None:
    service.wait_until(lambda: len(ear.said(word)) >= count, within_s=120)


def test_real_causes_are_told_once_and_are_over_when_mended(
    server_env: dict[str, str], store_folder: Path, tmp_path: Path
) -> None:
    study = stored.opened()
    with ExitStack() as stack:
        ear = stack.enter_context(listening())
        url, broker = services.start_redis()
        stack.callback(lambda: broker.stop())
        free_mb = shutil.disk_usage(tmp_path).free // 2**20
        env = {
            **server_env,
            "CELERY_BROKER_URL": url,
            "LEGIBLE_VAR": str(tmp_path),
            "ALERT_WEBHOOK": ear.url,
            "DISK_FREE_MIN_MB": str(free_mb - BIG_MB // 2),
        }
        with services.celery_worker(env) as worker:
            watch = stack.enter_context(services.project_process("watch", WATCH, env))
            watch.wait_until(lambda: "trouble is told by webhook" in watch.log())
            posting = live(study, created_at=timezone.now() - timedelta(hours=7), synced_at=timezone.now())
            wait(watch, ear, "free places")
            posting.state = "paused"
            posting.save()
            watch.wait_until(lambda: is_over(f"stalled:{posting.pk}"), within_s=120)

            big = tmp_path / "big"
            with big.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, BIG_MB * 2**20)
            wait(watch, ear, "MB are left")
            big.unlink()
            watch.wait_until(lambda: is_over("service:disk of work"), within_s=120)
            worker.kill()
        wait(watch, ear, "Workers: none answers.")
        with services.celery_worker(env):
            watch.wait_until(lambda: is_over("service:workers"), within_s=120)
            broker.kill()
            wait(watch, ear, "Broker:")
        told = [letter["said"].partition(":")[0] for letter in ear.heard]
        assert sorted(told) == sorted(set(told)), "each once"
        assert {letter["about"] for letter in ear.heard} == {"the service", study.slug}
        assert "Traceback" not in watch.log()
