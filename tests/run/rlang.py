"""Rscript for the proofs in R: an installed one, else Debian's package as root.

Without either the proofs are left out, each by its name and counted in the summary of the run. A run that
sets R_REQUIRED, as continuous integration does, fails instead.
"""

import os
import shutil
import subprocess

import pytest

from tests.run.databases import only_one
from tests.run.guard import ServiceFailed
from tests.services import ROOT

PACKAGES = ("r-base-core", "r-cran-mvtnorm")


def rscript() -> str:
    """The path of an Rscript; installs one if possible, while other test processes wait."""
    with only_one(ROOT / ".venv" / "rscript.lock"):
        path, why = shutil.which("Rscript"), "this is not root, or there is no apt-get"
        if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
            why = _install()
            path = shutil.which("Rscript")
    if path is not None:
        return path
    sentence = f"There is no Rscript: apt install {' '.join(PACKAGES)} ({why})."
    if os.environ.get("R_REQUIRED"):
        raise ServiceFailed(sentence)
    pytest.skip(f"A proof in R is left out. {sentence}")


def _install() -> str:
    """Installs R; returns what apt said last."""
    env, said = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, ""
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
        result = subprocess.run(["apt-get", *words], env=env, capture_output=True, text=True)
        said = (result.stderr or result.stdout).strip()[-300:]
    return said
