"""A study with people in a fixed order of arrival: one after the other, drawn from one seed, through the
commands and a real server, in a SQLite of its own. The same file made the stored tables at f38355e and makes
them anew in the test.

python -m tests.before.order OUT.json toy|demo STUDY.toml
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

from tests import services

PEOPLE_SEED = 7
MIX = "learner=0.8,guesser=0.08,careless=0.07,leaver=0.05"
"""The people of that time: observers of version 1."""
MADE = ("made_at", "code_version")
"""What a report says of how it was made; it differs in every report."""
DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")


@dataclass(frozen=True, slots=True)
class Told:
    """What the simulation and the report printed, and report.json, without dates and places."""

    simulated: str
    printed: str
    report: dict[str, Any]


def small(path: Path, folder: Path, slots: int, *, leave_out: Sequence[str] = (), **changes: str) -> Path:
    """A copy of the study with `slots` slots per condition, without the named conditions; `changes` replaces
    lines by their first word.
    """
    shutil.copytree(path.parent, folder, dirs_exist_ok=True)
    text = re.sub(r"(?m)^slots = \d+$", f"slots = {slots}", path.read_text(encoding="utf-8"))
    for name in leave_out:
        text, count = re.subn(rf'(?m)^\[\[conditions\]\]\nname = "{name}"\n(.+\n)+\n', "", text)
        assert count == 1, name
    for word, line in changes.items():
        text, count = re.subn(rf"(?m)^{word} = .*$", line, text)
        assert count == 1, word
    # Drawn as it was then: a file that says nothing has today's recipe.
    text = text.replace("[render]\n", "[render]\nabsolute = true\n")
    if "[render]" not in text:
        text += "\n[render]\nabsolute = true\n"
    copy = folder / "study.toml"
    copy.write_text(text, encoding="utf-8")
    return copy


def toy(study: Path, folder: Path) -> tuple[Path, int]:
    """The stored study on the closed-form model, and how many people come."""
    return small(study, folder, slots=6), 26


def demo(study: Path, folder: Path) -> tuple[Path, int]:
    """The shipped study with four of its conditions, and how many people come."""
    without = ("gradient_x_input", "integrated_gradients", "smooth_grad", "occlusion")
    return small(study, folder, slots=3, leave_out=without, items="items = 60"), 18


def run(path: Path, env: Mapping[str, str], folder: Path, people: int) -> Told:
    """Opens the study of the file, sends the people, reports; `env` is what the server shares with us."""
    slug = slug_of(path)
    call_command("build_stimuli", str(path), stdout=io.StringIO())
    call_command("study_open", str(path), stdout=io.StringIO())
    call_command("publish", slug, platform="local", by="grace", stdout=io.StringIO())
    with services.web_server(env) as server:
        simulated = said(
            "simulate", str(path), count=people, url=server.url, seed=PEOPLE_SEED, concurrency=1, mix=MIX
        )
    printed = said("report", slug, origin="simulated", out=folder)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    report = {name: undated(value) for name, value in report.items() if name not in MADE}
    return Told(re.sub(r" in \d+ s\b", "", simulated), cleaned(printed), report)


def undated(value: Any) -> Any:
    """The same without the hours of the sittings."""
    if isinstance(value, dict):
        return {name: undated(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [undated(inner) for inner in value]
    return "a date" if isinstance(value, str) and DATE.fullmatch(value) else value


def slug_of(path: Path) -> str:
    match = re.search(r'(?m)^slug = "(.+)"$', path.read_text(encoding="utf-8"))
    assert match is not None, path
    return match[1]


def said(command: str, *arguments: str, **options: Any) -> str:
    """What a command prints, to its own stream or to the terminal."""
    out = io.StringIO()
    with redirect_stdout(out):
        call_command(command, *arguments, stdout=out, **options)
    return out.getvalue()


def cleaned(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if not line.startswith("Written to "))


def main(out: Path, kind: str, study: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {
            "DATABASE_URL": f"sqlite:///{folder / 'legible.sqlite3'}",
            "STORAGE_URL": str(folder / "store"),
            "LEGIBLE_VAR": str(folder),
            "CELERY_BROKER_URL": "",
            "SECRET_KEY": "before: only for tests",
            "DJANGO_SETTINGS_MODULE": "crowd.settings",
            "COLUMNS": "100",
        }
        os.environ.update(env)
        django.setup()
        from experiments.models import Item, Study

        call_command("migrate", verbosity=0)
        path, people = {"toy": toy, "demo": demo}[kind](study, folder / "study")
        told = run(path, env, folder / "report", people)
        record = asdict(told) | {
            "people": people,
            "predictor": Study.objects.get().predictor,
            "predicted": dict(Item.objects.order_by("key").values_list("key", "predicted")),
        }
        out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
