"""The production server over the rows and files of one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from tests import services
from tests.services import WebServer

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from experiments.models import Study


@pytest.fixture
def server_env(transactional_db: None, store_folder: Path, settings: Settings) -> dict[str, str]:
    """What other processes need to share the rows and the files of this test."""
    database = connection.settings_dict
    if connection.vendor == "postgresql":
        url = services.postgres_url(int(database["PORT"]), str(database["NAME"]))
    else:
        url = f"sqlite:///{database['NAME']}"
    return {"DATABASE_URL": url, "STORAGE_URL": settings.STORAGE_URL, "CELERY_BROKER_URL": ""}


@pytest.fixture
def server(server_env: dict[str, str], study: Study) -> Iterator[WebServer]:
    """Serves once the test's own study is open."""
    with services.web_server(server_env) as started:
        yield started
