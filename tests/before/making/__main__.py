"""Makes everything that tests/before/stored holds, from a checkout of commit f38355e with this folder,
order.py and names.py copied into it and its page built (npm --prefix frontend run build).

python -m tests.before.making OUT [people|orders|page|names ...]
"""

from __future__ import annotations

import json
import lzma
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests import services

STUDY = Path("experiments/studies/wolf-or-husky/study.toml")
PARTS = ("people", "orders", "page", "names")
KEPT = ("exports/*/*.csv", "exports/*/codebook.json", "exports/*/manifest.json", "reports/*/report.json",
        "reports/*/printed.txt", "studies/**/*.*")  # fmt: skip


def run(*arguments: str, env: dict[str, str] | None = None) -> None:
    command = [sys.executable, "-m", *arguments]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})})


def people(out: Path, work: Path) -> None:
    """Twice: once in SQLite, once in PostgreSQL. Exports, reports and pictures are those of SQLite."""
    with services.postgres() as server:
        urls = {
            "sqlite": f"sqlite:///{work / 'legible.sqlite3'}",
            "postgresql": services.create_database(server.port, "before"),
        }
        for kind, url in urls.items():
            folder = work / kind
            env = {"DATABASE_URL": url, "STORAGE_URL": str(folder / "store"), "CELERY_BROKER_URL": "",
                   "LEGIBLE_VAR": str(folder / "var")}  # fmt: skip
            run("tests.before.making.people", str(folder), env=env)
            packed(out / f"people-{kind}.json.xz", (folder / "people.json").read_text())
            packed(out / f"people-{kind}.sql.xz", "\n".join(dump_of(kind, url, work)) + "\n")
            with ZipFile(folder / "store.zip") as archive:
                add(out / "pictures.zip", {name: archive.read(name) for name in archive.namelist()})
    folder = work / "sqlite"
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in KEPT
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }
    (out / "told.zip").unlink(missing_ok=True)
    add(out / "told.zip", files)


def dump_of(kind: str, url: str, work: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield from sqlite3.connect(work / "legible.sqlite3").iterdump()
        return
    command = ["pg_dump", "--inserts", "--rows-per-insert=50", "--no-owner", "--no-privileges", url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        # Commands of psql, and what only servers as new as this one know.
        if not re.match(r"\\|SET transaction_timeout|--", line):
            yield line


def add(path: Path, files: dict[str, bytes]) -> None:
    """Adds files to an archive, those that it has already aside."""
    with ZipFile(path, "a", ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(set(files) - set(archive.namelist())):
            archive.writestr(ZipInfo(name), files[name], ZIP_DEFLATED)


def packed(path: Path, text: str) -> None:
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def page(out: Path) -> None:
    folder = Path("frontend/dist")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (out / "page.zip").unlink(missing_ok=True)
    add(out / "page.zip", files)


def unpacked(out: Path, work: Path) -> Path:
    with ZipFile(out / "told.zip") as archive:
        archive.extractall(work)
    return work


def orders(out: Path, work: Path) -> None:
    studies = {"toy": unpacked(out, work) / "studies" / "before" / "study.toml", "demo": STUDY}
    for kind, study in studies.items():
        run("tests.before.order", str(work / f"order-{kind}.json"), kind, str(study))
        packed(out / f"order-{kind}.json.xz", (work / f"order-{kind}.json").read_text())


def names(out: Path, work: Path) -> None:
    unpacked(out, work)
    for kind in ("toy", "demo"):
        text = lzma.decompress((out / f"order-{kind}.json.xz").read_bytes()).decode()
        (work / f"order-{kind}.json").write_text(text)
    run("tests.before.making.names", str(work), env={"LEGIBLE_VAR": str(work / "var")})
    packed(out / "names.json.xz", json.dumps(json.loads((work / "names.json").read_text()), indent=1) + "\n")


def main(out: Path, parts: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for part in parts or PARTS:
        with tempfile.TemporaryDirectory() as name:
            {"people": people, "orders": orders, "page": lambda out, _: page(out), "names": names}[part](
                out, Path(name)
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
