"""The toy's study of texts and pictures in this process, and people who take it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tests.toy
from experiments.models import Session
from experiments.sessions.lifecycle import start_session
from tests.world import Person, draw_images

SLUG, LANES = "three-piles", ("left-desk", "right-desk")


def write_toy(folder: Path) -> Path:
    """The toy's study file with pictures beside it."""
    shutil.copytree(Path(tests.toy.__file__).parent / "study", folder)
    draw_images(folder, per_cell=6)
    return folder / "study.toml"


class Sorter(Person):
    """A person who also knows the toy's gate."""

    def good_value(self) -> dict[str, Any]:
        return {"promise": True} if self.state["step"] == "promise" else super().good_value()


def sorter(name: str, sitting: int = 1) -> Sorter:
    return Sorter(name, slug=SLUG, submission=f"{name}-{sitting}")


def again(session: Session) -> Session:
    """A further session of the same participant, still at the gates."""
    return start_session(session.study, session.participant, origin=session.origin)[0]
