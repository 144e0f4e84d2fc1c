"""Packages outside the checkout, installed by their installer into folders of their own."""

import shutil
import subprocess
import sys
from pathlib import Path

TOY = Path(__file__).with_name("legible_toy_methods")


def install_toy(folder: Path, version: str = "1.0") -> Path:
    """The toy package in that version, in a new folder that only needs to be on the path. No network."""
    source = folder / f"source-{version}"
    shutil.copytree(TOY, source, ignore=shutil.ignore_patterns("__pycache__"))
    project = source / "pyproject.toml"
    project.write_text(project.read_text().replace('version = "1.0"', f'version = "{version}"'))
    target = folder / f"installed-{version}"
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    command = [*pip, *offline, "--target", str(target), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return target
