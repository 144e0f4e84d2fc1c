"""`manage.py check --deploy` with the settings of docker-compose.yml, and https as it is served with them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml

from crowd.models import Posting
from crowd.platforms import PLATFORMS, traits_of
from experiments.simulation.browser.connection import open_pool
from tests import services
from tests.analysis.stored import opened
from tests.crowd.ground.test_locks import database_url
from tests.services import ROOT

GIVEN = {
    "SECRET_KEY": "tGv5x0JH8bq2YwZkR7mN4cLs1pDfUa9eXiOoQ3hB6jKyTzWnVr-EMlPuCgAd_SI8",
    "POSTGRES_PASSWORD": "unused",
    "BASE_URL": "https://study.example.org",
}
"""What a person gives to docker compose."""
Manage = Callable[..., subprocess.CompletedProcess[str]]


def composed(name: str) -> dict[str, str]:
    """The environment of a service of docker-compose.yml, as compose fills it in."""
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    def fill(match: re.Match[str]) -> str:
        return GIVEN.get(match[1], match[2] or "")

    pattern = re.compile(r"\$\{(\w+)(?::[-?]([^}]*))?\}")
    return {key: pattern.sub(fill, value) for key, value in document["services"][name]["environment"].items()}


@pytest.fixture
def deployed(transactional_db: None, tmp_path: Path) -> dict[str, str]:
    """The settings of the web service, with this test's database and folders."""
    here = {"DATABASE_URL": database_url(), "STORAGE_URL": str(tmp_path), "LEGIBLE_VAR": str(tmp_path)}
    return {**os.environ, **composed("web"), **here}


@pytest.fixture
def manage(deployed: dict[str, str]) -> Manage:
    def run(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={**deployed, **changes},
            capture_output=True,
            text=True,
        )

    return run


CHECK = ("check", "--deploy", "--fail-level", "WARNING")
NO_DATABASE = r"crowd\.W003\) The database does not ans"


def offered(state: str = "open") -> None:
    """A live posting on a platform that pays people."""
    platform = next(name for name in PLATFORMS if traits_of(name).account)
    Posting.objects.create(study=opened(), platform=platform, mode="live", state=state, currency="EUR")


def test_it_is_deployed_without_a_warning(manage: Manage) -> None:
    done = manage(*CHECK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "System check identified no issues (1 silenced).\n"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"DATABASE_URL": "postgresql://legible@127.0.0.1:1/none", "SECRET_KEY": "x" * 31},
            (NO_DATABASE, r"crowd\.E003\) SECRET_KEY has 31 characters, fewer than 32"),
        ),
        ({"DATABASE_URL": "sqlite:////nowhere/at/all.sqlite3"}, (NO_DATABASE,)),
    ],
)
def test_it_names_what_is_wrong_before_people_come(
    manage: Manage, changes: dict[str, str], told: tuple[str, ...]
) -> None:
    done = manage(*CHECK, **changes)
    assert done.returncode == 1 and all(re.search(each, done.stderr) for each in told), done.stderr
    assert "Traceback" not in done.stderr


def test_it_forbids_debug_pages_plain_http_and_a_short_key_while_people_take_part(manage: Manage) -> None:
    offered()
    done = manage("check", "--deploy", BASE_URL="http://127.0.0.1:8000", SECRET_KEY="abc", DEBUG="true")
    assert done.returncode == 1
    assert set(re.findall(r"crowd\.E\d+", done.stderr)) == {"crowd.E001", "crowd.E002", "crowd.E003"}
    # Migrating asks the same, so that a new version does not begin with such settings.
    assert manage("migrate", DEBUG="true").returncode == 1
    assert manage(*CHECK).returncode == 0


def test_it_says_nothing_of_postings_that_are_closed(manage: Manage) -> None:
    offered(state="closed")
    done = manage("check", "--deploy", BASE_URL="http://127.0.0.1:8000", DEBUG="true")
    assert done.returncode == 0 and "crowd." not in done.stderr


def test_it_checks_before_there_are_tables(manage: Manage, tmp_path: Path) -> None:
    done = manage(*CHECK, DATABASE_URL=f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    assert (done.returncode, done.stderr) == (0, "")


def test_it_sends_people_to_https_and_answers_health_checks_by_http(deployed: dict[str, str]) -> None:
    with services.web_server(deployed) as server, httpx.Client(base_url=server.url) as browser:
        plain = browser.get("/login/?next=/", headers={"Host": "study.example.org"})
        assert plain.status_code == 301
        assert plain.headers["Location"] == "https://study.example.org/login/?next=/"
        ended = browser.get("/login/", headers={"X-Forwarded-Proto": "https", "SCRIPT_NAME": "/x"})
        assert ended.status_code == 200
        assert ended.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
        assert browser.get("/healthz").text == "ok"
        # A rehearsal is served on this machine by http, and BASE_URL may say https.
        with open_pool(server.url, 1) as simulated:
            assert simulated.get("/login/").status_code == 200
