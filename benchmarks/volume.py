"""A study of many answers: what `export` and `report` take in memory and time, each in a process of its own,
and a report of the exported package beside a plain script.

The rows are those of a small study that was answered in full, copied by SQL inside SQLite: good for memory
and time, not for inference.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import beside
from benchmarks.processes import Taken, run
from tests import services

if TYPE_CHECKING:
    from django.db.models import Model

ANSWERS = (250_000, 1_000_000)
ROUNDS = 3
GOALS_MIB: Mapping[str, float] = {"export": 300.0, "report": 1024.0}


def measure(say: Callable[[str], None]) -> tuple[list[Taken], list[Taken]]:
    """Both commands at each number of answers, in growing order; then the sides of `beside` on the largest
    package, in turns."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="legible-volume-") as folder:
        env = environment(folder)
        services.migrate(env)
        for wanted in ANSWERS:
            say(f"rows of {wanted:,} answers")
            _, made = run(["-m", "benchmarks.volume", str(wanted)], env)
            slug, answers = made.split()
            for command in ("export", "report"):
                say(f"{command} of {wanted:,} answers")
                out = Path(folder) / f"{command}-{wanted}"
                measured, _ = run(["manage.py", command, slug, "--out", str(out)], env)
                taken.append(replace(measured, side=command, answers=int(answers)))
        package = Path(folder) / f"export-{ANSWERS[-1]}"
        return taken, [replace(each, answers=taken[-1].answers) for each in in_turns(package, env, say)]


def environment(folder: str) -> dict[str, str]:
    """For processes with rows and files in the folder."""
    return {
        "DATABASE_URL": f"sqlite:///{folder}/volume.sqlite3",
        "LEGIBLE_VAR": folder,
        "STORAGE_URL": f"{folder}/store",
        "SECRET_KEY": "only-for-benchmarks",
        "CELERY_BROKER_URL": "",
        "OMP_NUM_THREADS": "1",
        "DJANGO_SETTINGS_MODULE": "crowd.settings",
    }


def in_turns(package: Path, env: Mapping[str, str], say: Callable[[str], None]) -> list[Taken]:
    """Every side of `beside` on one package, ROUNDS times in turns. Raises RuntimeError if one fails, or if
    the plain script and our tests find other numbers."""
    taken, outcomes = [], {}
    for number in range(ROUNDS):
        for side in beside.SIDES:
            say(f"{beside.WORDS[side]}, {number + 1} of {ROUNDS}")
            if side == "report":
                with tempfile.TemporaryDirectory(prefix="legible-report-") as out:
                    made, _ = run(["manage.py", "report", "--from", str(package), "--out", out], env)
            else:
                made, outcomes[side] = run(["-m", "benchmarks.beside", side, str(package)], env)
            taken.append(replace(made, side=side))
        if odd := beside.differing(*(json.loads(outcomes[side]) for side in ("plain", "tests"))):
            raise RuntimeError(f"The sides differ: {'; '.join(odd)}.")
    return taken


def grow(answers: int) -> tuple[str, int]:
    """Copies the study's people until there are about so many answers; returns its slug and their number."""
    from django.apps import apps
    from django.db import connection

    models = {model.__name__: model for model in apps.get_app_config("experiments").get_models()}
    stored = models["Response"]._default_manager
    if not stored.exists():
        _answer_once()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys = OFF")
        cursor.execute("PRAGMA synchronous = OFF")
        cursor.execute(f"SELECT count(*) FROM experiments_response WHERE {_is_first('session_id')}")
        per_copy = cursor.fetchone()[0]
        copies = [stored.count() // per_copy, answers // per_copy]
        for name, (cells, first) in COPIED.items():
            cursor.execute(_copying(models[name], cells, first), copies)
        cursor.execute(DRAWN)
        cursor.execute("UPDATE experiments_study SET state = 'closed'")
        cursor.execute("ANALYZE")
    return str(models["Study"]._default_manager.values_list("slug", flat=True)[0]), stored.count()


def _answer_once() -> None:
    """A study of three conditions whose twelve slots are kept."""
    from tests.analysis.stored import full, opened

    full(opened())


def _key(column: str) -> str:
    """A key of its own in each copy: the first half is the number of the copy."""
    return f"printf('%016x', n) || substr({column}, 17)"


def _is_first(column: str) -> str:
    """Rows that are no copies: their random keys do not begin with zeros."""
    return f"{column} NOT LIKE '0000000%'"


IDS = 100_000
"""More than the small study has rows of a table."""
COPIED: Mapping[str, tuple[Mapping[str, str], str]] = {
    "Participant": ({"id": f"id + n * {IDS}", "pseudonym": "lower(hex(randomblob(16)))"}, f"id < {IDS}"),
    "Slot": (
        {"id": f"id + n * {IDS}", "ordinal": f"ordinal + n * {IDS}", "holder_id": _key("holder_id")},
        f"id < {IDS}",
    ),
    "Trial": ({"id": f"id + n * {IDS}", "slot_id": f"slot_id + n * {IDS}"}, f"id < {IDS}"),
    "Session": (
        {
            "id": _key("id"),
            "participant_id": f"participant_id + n * {IDS}",
            "slot_id": f"slot_id + n * {IDS}",
            "token_hash": _key("token_hash"),
            "media_id": "printf('%016x', n) || substr(id, 27)",
        },
        _is_first("id"),
    ),
    "Response": (
        {"id": "NULL", "session_id": _key("session_id"), "trial_id": f"trial_id + n * {IDS}"},
        _is_first("session_id"),
    ),
    "Gate": ({"id": "NULL", "session_id": _key("session_id")}, _is_first("session_id")),
    "Event": (
        {"id": "NULL", "session_id": _key("session_id"), "trial_id": f"trial_id + n * {IDS}"},
        _is_first("session_id"),
    ),
}
"""Of each model the cells that differ between copies, and which rows are copied."""


DRAWN = """
UPDATE experiments_response
SET value = CASE random() % 2 WHEN 0 THEN '{"choice": "husky"}' ELSE '{"choice": "wolf"}' END
WHERE value IN ('{"choice": "husky"}', '{"choice": "wolf"}')
"""
"""Answers are drawn by a coin: copied ones would make every p 0, and nothing could be compared by it."""


def _copying(model: type[Model], cells: Mapping[str, str], first: str) -> str:
    """A statement that copies the rows; it takes the numbers of the first copy and of the one after the
    last."""
    table = model._meta.db_table
    columns = [str(field.column) for field in model._meta.concrete_fields]
    values = ", ".join(cells.get(column, f'"{column}"') for column in columns)
    return (
        (
            "WITH RECURSIVE copies(n) AS (SELECT %s AS n UNION ALL SELECT n + 1 FROM copies "
            "WHERE n + 1 < %s) "
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"SELECT {values} FROM copies, (SELECT * FROM {table} WHERE {first})"
        )
        .replace("'%016x'", "'%%016x'")
        .replace("0000000%'", "0000000%%'")
    )


def main() -> None:
    import django

    django.setup()
    print(*grow(int(sys.argv[1])))


if __name__ == "__main__":
    main()
