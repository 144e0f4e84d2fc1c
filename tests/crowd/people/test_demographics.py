"""What people told the platform, joined with the export of the study: by pseudonym, and only of people who
are in it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from experiments.models import Session
from tests.crowd import paid

pytestmark = pytest.mark.django_db


def test_it_joins_with_the_export_by_pseudonym(tmp_path: Path) -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person() for _ in range(3)]
        taken = stage.sim.control.take()  # One who never came here.
        stage.sim.control.complete(taken["submission"], stage.posting.codes["complete"])
        stage.sim.clock.advance(10)
        gone = rows[2].session
        assert gone is not None
        Session.objects.filter(pk=gone.pk).update(state="withdrawn", erased={"at": "now"})
        ages = {
            session.pk: stage.sim.world.people[stage.truth()[row.submission_hash]["person"]].age
            for row in rows
            if (session := row.session) is not None
        }
        file = tmp_path / "demographics.csv"
        call_command("demographics", stage.study.slug, str(file))
        call_command("export", stage.study.slug, out=tmp_path / "export", origin="simulated")
        told = list(csv.DictReader(file.open(newline="")))
        participants = list(csv.DictReader((tmp_path / "export" / "participants.csv").open(newline="")))
        assert {row["participant"] for row in told} < {row["participant"] for row in participants}
        assert sorted(row["age"] for row in told) == sorted(
            str(age) for key, age in ages.items() if key != gone.pk
        )
        assert list(told[0]) == ["participant", "age", "sex", "country_of_residence"]
        people = stage.sim.control.state()["submissions"].items()
        text = file.read_text()
        assert not any(name in text or work["person"] in text for name, work in people)
        with pytest.raises(CommandError, match="is there already"):
            call_command("demographics", stage.study.slug, str(file))


def test_it_says_what_a_platform_does_not_tell(tmp_path: Path) -> None:
    file = tmp_path / "demographics.csv"
    with paid.offered(paid.paying_on("mturk"), "mturk") as stage:
        with pytest.raises(CommandError, match="Nothing was written"):
            call_command("demographics", stage.study.slug, str(file))
        assert not file.exists()
