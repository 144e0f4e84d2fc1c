"""How much code there is, by room: each keeps to its budget (tests/budget.toml), and no budget is idle."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from setup.figures import House, code_lines, fullest_folders, lines_alone, lines_by_room
from tests.house.test_architecture import ROOT

pytestmark = pytest.mark.pure

LINES: dict[str, int] = tomllib.loads((ROOT / "tests/budget.toml").read_text())["lines"]
MODULES_MAX = 20
SPARE = 40
"""A budget may be so much above what is there; what is saved beyond is given back."""


def test_every_room_keeps_to_its_budget() -> None:
    there = lines_by_room(House(ROOT))
    over = [
        f"{room} has {count} lines of code, {count - LINES.get(room, 0)} more than its budget: write less, "
        "or raise it in tests/budget.toml with a line that says why."
        for room, count in there.items()
        if count > LINES.get(room, 0)
    ]
    spare = [
        f"{room} has {there.get(room, 0)} lines of code: lower its budget from {most}."
        for room, most in LINES.items()
        if most > there.get(room, 0) + SPARE
    ]
    assert not over + spare, "\n".join(over + spare)


def test_it_counts_code_and_nothing_else(tmp_path: Path) -> None:
    head, body = (
        '"""Of the module."""\n\n# Why.\nimport os  # here\n\n\n',
        '    """Of it."""\n    return (\n        of\n    )\n',
    )
    text = f"{head}def name(\n    of: str,\n) -> str:\n{body}"
    assert code_lines(text) == 7
    (tmp_path / "crowd" / "money").mkdir(parents=True)
    (tmp_path / "crowd" / "migrations").mkdir()
    for place in ("crowd/top.py", "crowd/money/one.py", "crowd/migrations/0001.py"):
        (tmp_path / place).write_text(text)
    assert lines_by_room(House(tmp_path)) == {"crowd": 7, "crowd.money": 7}


def test_what_stands_alone_is_counted_with_what_it_imports(tmp_path: Path) -> None:
    files = {
        "analysis/alone/top.py": "from analysis.stats import share\nimport crowd_of_others\n",
        "analysis/stats/share.py": "def share():\n    from analysis.base import ROUND\n    return ROUND\n",
        "analysis/base.py": "ROUND = 4\n",
        "analysis/report.py": "import analysis.alone.top\n",
    }
    for place, text in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    assert lines_alone(House(tmp_path), "analysis.alone") == 2 + 3 + 1
    assert lines_alone(House(tmp_path), "analysis.base") == 1


def test_no_folder_is_too_full_to_guess_in() -> None:
    """At most twenty modules at one level, in the packages, the tests and the page's sources."""
    page = ROOT / "frontend" / "src"
    sources = [path for path in page.rglob("*.ts") if not path.name.endswith(".spec.ts")]
    folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in sources)
    counts = [*((count, folder) for folder, count in folders.items()), *fullest_folders(House(ROOT))]
    assert len(counts) > 100
    full = [f"{folder} has {count} modules" for count, folder in counts if count > MODULES_MAX]
    assert not full, "\n".join(full)
