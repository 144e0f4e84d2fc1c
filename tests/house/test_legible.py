"""The command `legible`: every command once, each with an example that its parser takes."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from importlib import import_module

import pytest

from crowd import legible
from tests.services import ROOT

pytestmark = pytest.mark.pure
COMMANDS = {
    path.stem: f"{path.parts[-4]}.management.commands.{path.stem}"
    for path in ROOT.glob("*/management/commands/*.py")
    if path.stem != "__init__"
}
EXAMPLES = [(name, example) for commands in legible.GROUPS.values() for name, example in commands]


def test_it_tells_every_command_once() -> None:
    assert sorted(name for name, _ in EXAMPLES) == sorted(COMMANDS)
    shown = legible.overview()
    for name in COMMANDS:
        assert shown.count(f"\n  {name} ") == 1
    assert max(map(len, shown.splitlines())) <= legible.WIDTH


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_its_example_is_taken_by_the_command_itself(name: str, example: str) -> None:
    words = shlex.split(example.partition(" < ")[0].replace(" NAME", " prolific"))
    command = import_module(COMMANDS[words[0]]).Command()
    command.create_parser("legible", words[0]).parse_args(words[1:])
    assert str(import_module(COMMANDS[name]).Command.help).startswith(legible.purpose(name).rstrip("."))


def test_it_runs_a_command_and_refuses_what_is_none() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "crowd.legible", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert run().stdout.strip() == run("help").stdout.strip() == legible.overview()
    assert "--participant" in run("forget", "--help").stdout
    wrong = run("raport")
    assert wrong.returncode == 1 and "report" in wrong.stderr
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"legible": "crowd.legible:main"}


def test_make_help_names_every_target_of_the_makefile() -> None:
    done = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True)
    (phony,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY")]
    named = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  make ")}
    assert done.returncode == 0 and named == set(phony.split()[1:])
