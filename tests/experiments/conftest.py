from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from experiments.models import Study


@pytest.fixture
def small(db: None, tmp_path: Path) -> "Study":
    """The small study, open on the local platform."""
    from tests import world

    return world.opened_study(world.write_study(tmp_path / "small"))
