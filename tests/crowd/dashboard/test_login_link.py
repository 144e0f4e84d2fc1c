"""A fresh link after a log-out, and commands as they are typed here."""

from __future__ import annotations

import html
import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from crowd.ground.copyable_commands import as_typed

ROOT = Path(__file__).parents[3]


def link(*words: str) -> str:
    out = StringIO()
    call_command("login_link", *words, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


@pytest.mark.django_db
def test_a_link_logs_in_once_after_every_log_out(settings: Any) -> None:
    with pytest.raises(CommandError, match=r"^There is no superuser yet: run createsuperuser first\.$"):
        link()
    User.objects.create_user("vera")
    with pytest.raises(CommandError, match="run createsuperuser first, or name one of vera"):
        link()
    User.objects.create_superuser("researcher")
    for words in ((), ("researcher",), ("vera", "--url", "http://127.0.0.1:8123/")):
        client, address = Client(), link(*words)
        base = "http://127.0.0.1:8123" if words[-2:-1] == ("--url",) else settings.BASE_URL
        assert address.startswith(f"{base}/enter/")
        path = address.removeprefix(base)
        assert client.post(path).status_code == 302 and client.get("/").status_code == 200
        client.post("/logout/")
        assert client.get("/").status_code == 302 and client.post(path).status_code == 410
    with pytest.raises(CommandError, match='no active login "mallory": name one of researcher, vera'):
        link("mallory")
    page = html.unescape(Client().get("/login/").content.decode())
    assert as_typed("python manage.py login_link") in page and str(settings.VAR_DIR) in page, (
        "one's own machine"
    )

    settings.BASE_URL = "https://study.example.org"
    page = Client().get("/login/").content.decode()
    assert "python manage.py login_link" in page and str(settings.VAR_DIR) not in page, (
        "everybody may read it"
    )


@pytest.mark.pure
@pytest.mark.parametrize(
    ("data", "said"),
    [("var", ""), ("var/demo", "LEGIBLE_VAR=var/demo "), ("/srv/my data", "LEGIBLE_VAR='/srv/my data' ")],
)
def test_a_command_finds_the_same_data(data: str, said: str, settings: Any) -> None:
    root = Path(settings.BASE_DIR)
    settings.VAR_DIR = root / data
    typed = as_typed("python manage.py report wolf-or-husky --origin human")
    assert typed.startswith(said) and typed.endswith(" manage.py report wolf-or-husky --origin human")
    words = shlex.split(typed.removeprefix(said))
    assert (root / words[0]).samefile(sys.executable) or words[0].endswith("/bin/python")
    assert as_typed("celery -A crowd worker") == "celery -A crowd worker"
    sentence = as_typed("No worker. Run: python manage.py report wolf-or-husky --origin human")
    assert sentence == f"No worker. Run: {typed}", "within a sentence as well"


@pytest.mark.pure
def test_two_installations_on_one_host_keep_their_logins(tmp_path: Path) -> None:
    """A browser sends the cookies of 127.0.0.1:8000 to 127.0.0.1:8381 too."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "served-at.txt").write_text("http://127.0.0.1:8381\n")
    script = "from crowd import settings as s; print(s.BASE_URL, s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME)"
    told = []
    for name in ("demo", "other", "other"):
        plain = {key: value for key, value in os.environ.items() if key not in {"BASE_URL", "DATABASE_URL"}}
        environment = {**plain, "LEGIBLE_VAR": str(tmp_path / name)}
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stdout.split())
    demo, other, again = told
    assert other == again and not set(demo) & set(other)
    assert [demo[0], other[0]] == ["http://127.0.0.1:8381", "http://127.0.0.1:8000"]
