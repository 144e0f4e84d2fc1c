from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

    from experiments.models import Study


@pytest.fixture
def study(db: None) -> "Study":
    """An open study of twelve places, as records only: nobody has come yet."""
    from tests.analysis import stored

    return stored.opened(slots=4)


@pytest.fixture
def small(db: None, tmp_path: Path, store_folder: Path) -> "Study":
    """The small study with its pictures, open on the local platform."""
    from tests import world

    return world.opened_study(world.write_study(tmp_path / "small"))


@pytest.fixture
def researcher(db: None) -> "User":
    from django.contrib.auth.models import User

    return User.objects.create_user("grace", password="a-long-enough-password")


@pytest.fixture
def desk(researcher: "User") -> "Client":
    """A browser of somebody who has logged in."""
    from django.test import Client

    client = Client()
    client.force_login(researcher)
    return client
