"""Stores the names of commit f38355e: python -m tests.before.making.names OUT (after people and orders)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import django


def main(out: Path) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "crowd.settings"
    os.environ.setdefault("ALLOWED_HOSTS", "testserver")
    django.setup()
    from experiments.definition import STUDIES_DIR, load_study
    from tests.before import names

    reports = [json.loads(path.read_text()) for path in sorted(out.glob("reports/*/report.json"))]
    reports += [json.loads(path.read_text())["report"] for path in sorted(out.glob("order-*.json"))]
    collected = names.collected() | {
        "report": sorted({name for report in reports for name in names.paths(report)}),
        "digests": {
            path.parent.name: load_study(path).digest
            for path in [*STUDIES_DIR.glob("*/study.toml"), *out.glob("studies/*/study.toml")]
        },
    }
    (out / "names.json").write_text(json.dumps(collected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
