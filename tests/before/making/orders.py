"""Stores the tables of commit f38355e with people in a fixed order of arrival (tests/before/order.py).

python -m tests.before.making.orders OUT toy|demo STUDY.toml
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import django


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
        from django.core.management import call_command

        from experiments.models import Item, Study
        from tests.before import order

        call_command("migrate", verbosity=0)
        path, people = {"toy": order.toy, "demo": order.demo}[kind](study, folder / "study")
        told = order.run(path, env, folder / "report", people)
        kept = asdict(told) | {
            "people": people,
            "predictor": Study.objects.get().predictor,
            "predicted": dict(Item.objects.order_by("key").values_list("key", "predicted")),
        }
        (out / f"order-{kind}.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
