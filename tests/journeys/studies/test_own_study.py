"""docs/own-study.md, followed to the letter in an empty folder: own pictures, own model, verified export.

Only sizes are changed, so that it is quick: fewer and smaller pictures, fewer slots and trials.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tests.run.guard import Plan, Service
from tests.services import ROOT, is_answering, listening_url, new_folder

PAGE = (ROOT / "docs" / "own-study.md").read_text()
BLOCK = re.compile(r"(?:^Save as `([^`]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SMALLER = {
    "SIZE_PX = 640": "SIZE_PX = 48",
    "PER_CELL = 40": "PER_CELL = 12",
    "INPUT_PX = 96": "INPUT_PX = 48",
    "--input-px 96": "--input-px 48",
    " -n 36 ": " -n 6 --mix learner=1 ",
}
SMALLER_STUDY = {"slots": 2, "blocks": 2, "train_per_block": 4, "test_per_block": 4, "items": 40}
"""In the file that `new` writes."""
SERVER = "crowd/gunicorn.py"
ADDRESS = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page; `file` is the name that it is saved under, if it is."""

    file: str
    language: str
    text: str


def blocks() -> list[Block]:
    parsed = [Block(file or "", language, text) for file, language, text in BLOCK.findall(PAGE)]
    for before, after in SMALLER.items():
        assert any(before in block.text for block in parsed), f"the page no longer says {before!r}"
        parsed = [Block(b.file, b.language, b.text.replace(before, after)) for b in parsed]
    return parsed


class Reader:
    """A person who does what the page says; the home folder holds only the checkout."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self.home = home
        self.study = home / "shapes"
        # The page's own export of LEGIBLE_VAR holds; rows and files stay in the world of the test.
        self.env = {**os.environ, **env, "HOME": str(home), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
        (home / "legible").symlink_to(ROOT)

    def script(self, text: str) -> list[str]:
        return ["bash", "-e", "-c", f"if [ -f env.sh ]; then . ./env.sh; fi\n{text}"]

    def run(self, text: str) -> str:
        """Runs a block in a fresh terminal in the study's folder; returns what it prints."""
        done = self._ran(text)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def refused(self, text: str) -> str:
        """What a block says that does not succeed."""
        done = self._ran(text)
        assert done.returncode != 0, f"{text}\n{done.stdout}"
        return done.stdout + done.stderr

    def _ran(self, text: str) -> subprocess.CompletedProcess[str]:
        folder = self.study if self.study.is_dir() else self.home
        return subprocess.run(self.script(text), cwd=folder, env=self.env, capture_output=True, text=True)

    @contextmanager
    def second_terminal(self, text: str) -> Iterator[str]:
        """Runs the server's block on a free port while the rest goes on; gives its address."""
        command = self.script(text.replace(SERVER, f"{SERVER} --bind 127.0.0.1:0"))
        service = Service(Plan(new_folder("own-study"), command, self.env, str(self.study)))
        try:
            service.wait_until(lambda: listening_url(service) is not None)
            url = listening_url(service)
            assert url is not None
            service.wait_until(lambda: is_answering(url, service))
            yield url
        finally:
            service.stop()


@pytest.fixture
def reader(tmp_path: Path, project_env: dict[str, str]) -> Reader:
    home = tmp_path / "home"
    home.mkdir()
    return Reader(home, project_env)


def follow(reader: Reader) -> str:
    """Every block in its order; returns everything that was printed. A block of another study than the
    page's is marked `bash`, and left out."""
    printed = []
    todo = iter(blocks())
    for block in todo:
        if block.file:
            (reader.study / block.file).write_text(block.text)
        elif block.language == "sh" and SERVER in block.text:
            with reader.second_terminal(block.text) as url:
                rest = [b for b in todo if b.language == "sh"]
                assert any(ADDRESS in b.text for b in rest)
                printed += [reader.run(b.text.replace(ADDRESS, url)) for b in rest]
        elif block.language == "sh":
            printed.append(reader.run(block.text))
            if "legible new" in block.text:
                make_smaller(reader.study / "disc-or-square" / "study.toml")
    return "\n".join(printed)


def make_smaller(path: Path) -> None:
    text = path.read_text()
    for key, value in SMALLER_STUDY.items():
        text, count = re.subn(rf"^{key} = \d+$", f"{key} = {value}", text, flags=re.MULTILINE)
        assert count, f"the study no longer has {key}"
    path.write_text(text)


@pytest.mark.long(stays="tests/journeys/studies/test_toy.py::test_it_goes_from_a_file_to_report_and_export")
def test_it_goes_from_an_empty_folder_to_a_verified_export(reader: Reader) -> None:
    printed = follow(reader)
    assert "6 slots, 126 trials" in printed
    report = json.loads((reader.study / "report" / "report.json").read_text())
    assert report["heading"] == "Computational observers, not people."
    assert [row["name"] for row in report["conditions"]] == ["baseline", "control", "grad_cam"]
    stimuli = pd.read_csv(reader.study / "data" / "stimuli.csv")
    assert set(stimuli["truth"]) == set(stimuli["predicted"]) == {"disc", "square"}
    wrong_share = float((stimuli["truth"] != stimuli["predicted"]).mean())
    assert 0.3 < wrong_share < 0.7  # the tint decides, and is wrong in half of the pictures
    assert (reader.study / "report" / "report.html").stat().st_size > 10_000
    assert "are as they were exported from 'disc-or-square'" in printed
    page = (ROOT / "docs" / "data.md").read_text()
    written = [p.name.replace("-simulated.", "-ORIGIN.") for p in (reader.study / "data").iterdir()]
    assert not [name for name in (*report, *written) if f"`{name}`" not in page]


@pytest.mark.pure
def test_a_first_trial_is_seen_after_at_most_five_commands() -> None:
    """From pictures and a state dict: all that is typed before and for the preview, but for the example."""
    typed = [
        line for b in blocks() if b.language in {"sh", "bash"} and not b.file for line in b.text.splitlines()
    ]
    commands = [line for line in typed if line.startswith("legible ")]
    first = next(place for place, line in enumerate(commands) if line.startswith("legible preview"))
    assert first + 1 <= 5
    assert any(line.startswith("legible new") for line in commands[:first])
