"""A method, a metric and a reporter of an installed package in a deployment's own processes.

The commands, the web server and the Celery worker, each with its own folder of packages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import services, world
from tests.packages import install_toy

RINGS = 'explainer = { name = "toy_rings", rings = 4 }'
METRICS = """
[[metrics]]
name = "toy_centre"
"""
ITEMS = 28
FULL = "legible-toy-methods:toy_rings"
ROWS = """
import json
from django.contrib.auth.models import User
from stimuli.models import Measurement, Stimulus
specs = [[row.state, row.error, row.spec] for row in Stimulus.objects.exclude(spec__explainer=None)]
numbers = list(Measurement.objects.values_list("metric", "package", "value", "error"))
from crowd.dashboard.login_links import make_login_path
grace, _ = User.objects.get_or_create(username="grace", is_staff=True, is_superuser=True)
print("ROWS" + json.dumps({"specs": specs, "numbers": numbers, "login": make_login_path(grace)}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The package's folder by version; "" is a machine without it."""
    folder = tmp_path_factory.mktemp("packages")
    return {"": "", **{version: str(install_toy(folder, version)) for version in ("1.0", "1.1")}}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = world.write_study(tmp_path / "study", slots=1)
    for number in range(ITEMS // 4, 14):  # fewer pictures are enough
        for picture in (tmp_path / "study" / "images").glob(f"*/*-{number:02d}.png"):
            picture.unlink()
    text = path.read_text().replace('explainer = { name = "saliency" }', RINGS)
    path.write_text(text + METRICS)
    return path


class Machines:
    """One world whose processes may have different packages."""

    def __init__(self, env: dict[str, str], installed: dict[str, str], folder: Path) -> None:
        self.log = folder / "imports.txt"
        self.env, self.installed = {**env, "TOY_IMPORTS": str(self.log)}, installed

    def having(self, version: str) -> dict[str, str]:
        return {**self.env, "PYTHONPATH": self.installed[version]}

    def manage(self, version: str, *words: str) -> subprocess.CompletedProcess[str]:
        import os

        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=services.ROOT,
            env={**os.environ, "COLUMNS": "300", **self.having(version)},
            capture_output=True,
            text=True,
        )

    def done(self, version: str, *words: str) -> str:
        result = self.manage(version, *words)
        assert result.returncode == 0, result.stderr[-3000:]
        return result.stdout

    def refused(self, version: str, *words: str) -> str:
        result = self.manage(version, *words)
        assert result.returncode != 0 and "Traceback" not in result.stderr, result.stderr[-3000:]
        return " ".join(result.stderr.split())

    def rows(self) -> dict[str, Any]:
        """All that is looked at from inside, in one command: each start of one costs seconds."""
        printed = self.done("", "shell", "-c", ROWS)
        records: dict[str, Any] = json.loads(printed.partition("ROWS")[2])
        return records

    def imports(self) -> str:
        """The programs that imported the package."""
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture
def machines(
    project_env: dict[str, str], redis_url: str, installed: dict[str, str], tmp_path: Path
) -> Iterator[Machines]:
    project_env["CELERY_BROKER_URL"] = redis_url
    yield Machines(project_env, installed, tmp_path)


def rings(rows: dict[str, Any]) -> list[list[Any]]:
    return [row for row in rows["specs"] if row[2]["explainer"]["name"] == FULL]


@pytest.mark.long(stays="tests/stimuli/explainers/test_packages.py::test_it_makes_stimuli_of_a_package_alone")
def test_it_is_used_by_worker_web_and_report(machines: Machines, study: Path, tmp_path: Path) -> None:
    with services.celery_worker(machines.having("1.0")):
        machines.done("1.0", "study_open", str(study))
    rows = machines.rows()
    assert len(rings(rows)) == ITEMS and {row[0] for row in rows["specs"]} == {"done"}
    assert {tuple(row[2]["packages"]) for row in rings(rows)} == {("legible-toy-methods==1.0",)}
    others = [row for row in rows["specs"] if row not in rings(rows)]
    assert others and not any("packages" in row[2] for row in others)
    assert {tuple(row[:2]) for row in rows["numbers"]} == {
        ("legible-toy-methods:toy_centre", "legible-toy-methods==1.0")
    }
    assert all(isinstance(row[2], float) and 0 < row[2] < 1 for row in rows["numbers"])
    assert "celery" in machines.imports()

    machines.done("1.0", "publish", "small", "--platform", "local")
    with services.web_server(machines.having("1.0")) as web:
        people = ("-n", "6", "--mix", "learner=1")
        machines.done("1.0", "simulate", str(study), "--url", web.url, *people)
    # The web server knows the package by its metadata alone.
    assert "gunicorn" not in machines.imports()

    folder = tmp_path / "report"
    words = ("report", "small", "--origin", "simulated", "--out", str(folder))
    machines.done("1.0", *words, "--reporter", "toy_tally")
    report = json.loads((folder / "report.json").read_text())
    assert report["reporter"] == {
        "name": "legible-toy-methods:toy_tally",
        "package": "legible-toy-methods==1.0",
    }
    assert report["tally"]["passed"] == report["flow"]["passed"] > 0
    assert "no reporter 'toy_tally'" in machines.refused("", *words, "--reporter", "toy_tally")


@pytest.mark.long(
    stays="tests/stimuli/explainers/test_packages.py::test_it_renders_nothing_with_another_version"
)
def test_it_is_refused_without_the_package_and_made_anew_with_another_version(
    machines: Machines, study: Path
) -> None:
    """The researcher has 1.0, the other machines have none or 1.1; then the researcher has 1.1 too."""
    for version, wanted, reason in [
        (
            "",
            3 * ITEMS,
            "and no legible-toy-methods is installed here: install legible-toy-methods==1.0 here",
        ),
        (
            "1.1",
            ITEMS,
            "but legible-toy-methods is 1.1 here: install legible-toy-methods==1.0 here, or build",
        ),
    ]:
        made_with = f"explainer '{FULL}' was made with legible-toy-methods==1.0, {reason}"
        with services.celery_worker(machines.having(version)):
            said = machines.refused("1.0", "build_stimuli", str(study))
        assert f"{ITEMS} of {wanted} stimuli could not be rendered" in said and made_with in said
        rows = machines.rows()
        assert {(row[0], str(row[1])[: len(made_with)]) for row in rings(rows)} == {("failed", made_with)}
        with services.web_server(machines.having(version)) as web:
            researcher = logged_in(web.url, rows["login"])
            assert made_with in pressed(researcher, web.url)
    with services.web_server(machines.having("1.0")) as web:
        # The same browser, as an upgrade of the server leaves it.
        assert f"{ITEMS} stimuli were sent to the workers" in pressed(researcher, web.url)
    assert "gunicorn" not in machines.imports()

    # A draft whose stimuli are not there yet asks for those of the version that is here.
    machines.env["CELERY_BROKER_URL"] = ""
    said = machines.refused("", "build_stimuli", str(study))
    assert "there is no explainer 'toy_rings'" in said and "known are saliency" in said
    machines.done("1.1", "build_stimuli", str(study))
    done = [row[2]["packages"] for row in rings(machines.rows()) if row[0] == "done"]
    assert done == [["legible-toy-methods==1.1"]] * ITEMS


def logged_in(url: str, path: str) -> httpx.Cookies:
    """A researcher's browser after a login link."""
    with closing(httpx.Client(base_url=url, follow_redirects=True, timeout=60)) as client:
        client.get(path)
        page = client.post(
            path,
            data={"csrfmiddlewaretoken": next(v for k, v in client.cookies.items() if k.startswith("csrf_"))},
        )
        assert page.status_code == 200
        return client.cookies


def pressed(browser: httpx.Cookies, url: str) -> str:
    """What the dashboard says when a researcher asks for the missing stimuli."""
    with closing(httpx.Client(base_url=url, cookies=browser, follow_redirects=True, timeout=60)) as client:
        form = {"csrfmiddlewaretoken": next(v for k, v in client.cookies.items() if k.startswith("csrf_"))}
        answer = client.post("/studies/small/build/", data=form)
        assert answer.status_code == 200, answer.text[:500]
        return " ".join(answer.text.replace("&#x27;", "'").split())
