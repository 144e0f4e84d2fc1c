"""Offering a study on a platform."""

from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from crowd.models import Posting
from tests.world import draft_study, opened_study, write_study

pytestmark = pytest.mark.django_db


def test_it_offers_an_open_study_once(tmp_path: Path, store_folder: Path) -> None:
    opened_study(write_study(tmp_path))
    Posting.objects.all().delete()
    call_command("publish", "small", "--platform", "local")
    call_command("publish", "small")
    assert list(Posting.objects.values_list("platform", "state", "live")) == [("local", "open", False)]


def test_it_offers_no_draft(tmp_path: Path, store_folder: Path) -> None:
    draft_study(write_study(tmp_path))
    with pytest.raises(CommandError, match="'small' is draft.*study_open small"):
        call_command("publish", "small")
    assert not Posting.objects.exists()


def test_it_names_the_way_to_a_study_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="no study 'nowhere'"):
        call_command("publish", "nowhere")
