from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

    from experiments.models import Study

Outcome = Callable[[Path], tuple[str, str]]
"""What study_check prints, in one line, and why it refuses the study."""


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages show an empty picture for a figure, which would take most of their time. For tests that read the
    words of a page; the figures of each report are drawn by its own tests."""
    empty = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    monkeypatch.setattr("analysis.reports.base.Figure.svg", empty)


@pytest.fixture
def outcome(capsys: pytest.CaptureFixture[str], store_folder: Path) -> Outcome:
    from django.core.management import CommandError, call_command

    def run(path: Path) -> tuple[str, str]:
        capsys.readouterr()
        why = ""
        try:
            call_command("study_check", str(path), "--pictures", "0", "--quality", "0")
        except CommandError as error:
            why = str(error)
        return " ".join(capsys.readouterr().out.split()), why

    return run


@pytest.fixture
def study(db: None) -> "Study":
    """An open study of twelve places, as records only: no person has come yet."""
    from tests.analysis import stored

    return stored.opened(slots=4)


@pytest.fixture
def small(db: None, tmp_path: Path) -> "Study":
    """The small study with its pictures, open on the local platform. Its files are those of all tests: who
    changes one has a store of its own."""
    from tests import world

    return world.opened_study(world.write_study(tmp_path / "small"))


@pytest.fixture(scope="module")
def built(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """One small study for a whole file: rendering it takes longer than all the tests of entry."""
    from django.test.utils import override_settings

    from crowd.models import Posting
    from experiments import selectors
    from experiments.models import Slot
    from stimuli.models import Stimulus
    from tests import world

    folder = tmp_path_factory.mktemp("entry")
    with django_db_blocker.unblock(), override_settings(STORAGE_URL=str(folder / "store")):
        study = world.opened_study(world.write_study(folder / "small"))
    yield study.pk
    with django_db_blocker.unblock():
        Posting.objects.filter(study=study).delete()
        Slot.objects.filter(study=study).delete()
        study.delete()
        Stimulus.objects.all().delete()
    # The pilot's slots were rolled back, and SQLite gives their numbers to the next study's.
    selectors._cards.cache_clear()


@pytest.fixture
def researcher(db: None) -> "User":
    from django.contrib.auth.models import User

    return User.objects.create_superuser("grace", password="a-long-enough-password")


@pytest.fixture
def desk(researcher: "User") -> "Client":
    """A browser of a researcher who has logged in."""
    from django.test import Client

    client = Client()
    client.force_login(researcher)
    return client
