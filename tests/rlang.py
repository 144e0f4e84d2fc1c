"""Rscript for the tests that run R: an installed one, else Debian's package as root, else a sentence."""

import os
import shutil
import subprocess

from tests.databases import only_one
from tests.guard import ServiceFailed
from tests.services import ROOT

PACKAGES = ("r-base-core", "r-cran-mvtnorm")


def rscript() -> str:
    """The path of an Rscript; installs one if possible, while other test processes wait."""
    with only_one(ROOT / ".venv" / "rscript.lock"):
        path = shutil.which("Rscript")
        if path is None:
            path = _installed()
    return path


def _installed() -> str:
    failure = "this is not root, or there is no apt-get"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
            result = subprocess.run(["apt-get", *words], env=env, capture_output=True, text=True)
            failure = (result.stderr or result.stdout).strip()[-300:]
    path = shutil.which("Rscript")
    if path is None:
        raise ServiceFailed(f"These tests need R: apt install {' '.join(PACKAGES)}. {failure}")
    return path
