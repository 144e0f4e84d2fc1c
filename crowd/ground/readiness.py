"""What a process needs before it can serve: rows, pictures, and, if there is one, the broker of messages."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from celery import current_app as app
from django.conf import settings
from django.db import Error as AnyDatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from stimuli.errors import StoreSilent
from stimuli.models import Stimulus
from stimuli.store.media_access import has_media

BROKER_S = 1.0
ANSWER_S = 1.0


@dataclass(frozen=True, slots=True)
class ServicePart:
    """A part of the service: whether it is there, what is known of it, and what to do if it is not."""

    name: str
    is_ready: bool
    said: str
    remedy: str = ""


def ready(request: HttpRequest) -> JsonResponse:
    """200 if this process can serve people, else 503; by name what is missing, and nothing else."""
    missing = [part.name for part in [*required_parts(), *disks()] if not part.is_ready]
    return JsonResponse({"ready": not missing, "missing": missing}, status=503 if missing else 200)


def required_parts() -> list[ServicePart]:
    """The parts without which people cannot take part, or no message reaches a worker."""
    rows = _rows()
    parts = [rows]
    if rows.is_ready:
        parts.append(_pictures())
    if settings.CELERY_BROKER_URL:
        parts.append(_broker())
    return parts


def workers(within_s: float = ANSWER_S, at_most: int | None = None) -> ServicePart:
    """Who answers on the queue, until the time is over or so many have answered; without a broker the calling
    process works itself."""
    if not settings.CELERY_BROKER_URL:
        return ServicePart("workers", True, "none are needed: without a broker, this process works itself")
    try:
        answers = app.control.ping(timeout=within_s, limit=at_most)
    except Exception as error:  # the classes of the transport's library, and the system's
        return ServicePart(
            "workers", False, type(error).__name__, "Start the broker, then celery -A crowd worker."
        )
    names = sorted(name for answer in answers for name in answer)
    said = ", ".join(names) or "none answers"
    return ServicePart("workers", bool(names), said, "Start one: celery -A crowd worker --concurrency 1.")


def disks() -> list[ServicePart]:
    """The disks of this installation's files, each once; one with less room than DISK_FREE_MIN_MB is not
    ready."""
    folders = {"work": Path(settings.VAR_DIR)}
    if "://" not in settings.STORAGE_URL or settings.STORAGE_URL.startswith("file://"):
        folders["pictures"] = Path(settings.STORAGE_URL.removeprefix("file://"))
    if connection.vendor == "sqlite":
        folders["rows"] = Path(str(connection.settings_dict["NAME"])).parent
    there = {name: folder for name, folder in folders.items() if folder.is_dir()}
    once = {folder.stat().st_dev: name for name, folder in reversed(there.items())}
    return [_disk(name, there[name]) for name in there if name in once.values()]


def _disk(name: str, folder: Path) -> ServicePart:
    free, least = shutil.disk_usage(folder).free // 2**20, settings.DISK_FREE_MIN_MB
    remedy = f"Make room: with less than {least:,} MB (DISK_FREE_MIN_MB) answers may soon not be stored."
    said = f"more than {least:,} MB are left" if free >= least else f"{free:,} MB are left"
    return ServicePart(f"disk of {name}", free >= least, said, remedy)


def _rows() -> ServicePart:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        executor = MigrationExecutor(connection)
        lacking = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except AnyDatabaseError as error:
        return ServicePart(
            "database", False, type(error).__name__, "Start the database; DATABASE_URL says which."
        )
    if lacking:
        said = f"{len(lacking)} migrations are not applied"
        return ServicePart("database", False, said, "Run manage.py migrate.")
    return ServicePart("database", True, connection.display_name)


def _pictures() -> ServicePart:
    """The newest picture of all studies is there: a folder that is not mounted has none."""
    file = Stimulus.objects.filter(state="done").exclude(image_file="").order_by("-pk")
    newest = file.values_list("image_file", flat=True).first()
    if newest is None:
        return ServicePart("store", True, "no picture is rendered yet")
    try:
        if has_media(newest):
            return ServicePart("store", True, "the newest picture is there")
        said = "the newest picture is missing"
    except (StoreSilent, OSError) as error:
        said = type(error).__name__
    return ServicePart("store", False, said, "Mount or start what STORAGE_URL names.")


def _broker() -> ServicePart:
    try:
        with app.connection_for_write(connect_timeout=BROKER_S) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_S)
    except Exception as error:  # the classes of the transport's library
        return ServicePart("broker", False, type(error).__name__, "Start what CELERY_BROKER_URL names.")
    return ServicePart("broker", True, "answers")
