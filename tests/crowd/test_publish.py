"""Offering a study on a platform."""

from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analysis.tables import study_facts
from crowd.models import Posting
from experiments.models import Slot
from tests.world import Person, draft_study, opened_study, write_study

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


def test_it_goes_live_with_every_place_free_for_people(tmp_path: Path, store_folder: Path) -> None:
    study = opened_study(write_study(tmp_path))
    robot = Person("robot", simulated="learner").take_part()
    assert robot.verdict == "passed" and study_facts(study, "simulated").conditions != ()
    kept = Slot.objects.filter(kept=True)
    assert kept.count() == 1 and sum(c.kept for c in study_facts(study, "human").conditions) == 0
    call_command("publish", "small", "--live")
    assert not kept.exists() and Posting.objects.get().live
    refused = Person("another", simulated="learner").join()
    assert refused.status_code == 403 and refused.json()["error"]["code"] == "not_admitted"
    assert Person("ada").join().status_code == 201
