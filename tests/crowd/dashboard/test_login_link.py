"""A fresh link after a log-out, and commands as they are typed here."""

from __future__ import annotations

import shlex
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from crowd.ground.copyable_commands import as_typed


def link(*words: str) -> str:
    out = StringIO()
    call_command("login_link", *words, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


@pytest.mark.django_db
def test_a_link_logs_in_once_after_every_log_out(settings: Any) -> None:
    User.objects.create_user("vera")
    with pytest.raises(CommandError, match="There are 0 superusers: name one of vera"):
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
    page = Client().get("/login/").content.decode()
    assert "manage.py login_link" in page and str(settings.VAR_DIR) not in page, "everybody may read it"


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
