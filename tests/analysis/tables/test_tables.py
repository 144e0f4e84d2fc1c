"""Rows in, frames out: declared columns, derived scores, keyed names, a number of queries that does not
grow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from django.test.utils import CaptureQueriesContext

from analysis.columns import TABLES
from analysis.tables import session_batches
from analysis.tables.response_reader import read_frames, study_facts, tombstones
from experiments.models import Session, Study
from tests.analysis.stored import cast, opened, sitting

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return opened()


def test_it_has_the_declared_columns_and_one_row_per_answer(study: Study) -> None:
    people = cast(study)
    frames = read_frames(study)
    for table, frame in frames.tables.items():
        assert list(frame.columns) == [column.name for column in TABLES[table]]
    per_slot = people["ada"].slot.trials.count()  # type: ignore[union-attr]
    assert len(frames.trials) == 2 * per_slot + 7
    assert len(frames.participants) == 4
    assert len(frames.stimuli) == 48 * 3


def test_it_derives_agreement_with_model_and_truth(study: Study) -> None:
    sitting(study, "ada", condition="grad_cam")
    trials = read_frames(study).trials
    scored = trials[trials["scored_index"].notna()]
    assert list(scored["scored_index"]) == list(range(8))
    assert (scored["matches_model"] == 1).all()
    items = dict(study.items.values_list("key", "truth"))
    assert [bool(x) for x in scored["matches_truth"]] == [
        items[item] == response for item, response in zip(scored["item"], scored["response"], strict=True)
    ]
    rest = trials[trials["scored_index"].isna()]
    assert rest["matches_model"].isna().all()
    assert rest.loc[rest["check"] != "", "check_passed"].all()
    assert rest.loc[rest["check"] == "", "check_passed"].isna().all()


def test_it_counts_a_wrong_answer_as_no_match(study: Study) -> None:
    sitting(study, "ada", condition="control", right=lambda trial: trial.block == 0)
    trials = read_frames(study).trials
    scored = trials[trials["scored_index"].notna()]
    assert list(scored.groupby("block")["matches_model"].mean()) == [1.0, 0.0]


def test_it_describes_each_sitting(study: Study) -> None:
    cast(study)
    people = read_frames(study).participants.set_index("status")
    assert list(people.index) == ["passed", "screened", "incomplete", "declined"]
    assert people.loc["screened", "reasons"] == "total_minutes"
    assert json.loads(people.loc["screened", "reasons_detail"])[0]["limit"] == 30.0
    assert people.loc["passed", "duration_s"] == 480.0
    assert people.loc["passed", "practice_attempts"] == 2
    assert json.loads(people.loc["passed", "answers"]) == {"age": 41}
    assert people.loc["passed", "reservoir_openings"] == 1
    assert [bool(x) for x in people["consented"]] == [True, True, True, False]
    assert [bool(x) for x in people["admitted"]] == [True, True, True, False]


def test_it_gives_matched_plans_the_same_number(study: Study) -> None:
    for condition in ("baseline", "control", "grad_cam"):
        for _ in range(2):
            sitting(study, f"{condition}{_}", condition=condition)
    trials = read_frames(study).trials
    for _, same in trials[trials["item"] != ""].groupby(["plan", "trial_index"]):
        assert same["item"].nunique() == 1
        assert same["condition"].nunique() == 3


def test_it_names_people_by_key_study_and_release(study: Study, settings: Settings) -> None:
    session = sitting(study, "ada", condition="control")
    first = read_frames(study).participants.loc[0, ["participant", "session"]].tolist()
    assert read_frames(study).participants.loc[0, ["participant", "session"]].tolist() == first
    other = read_frames(study, release="second").participants.loc[0, ["participant", "session"]].tolist()
    assert set(first).isdisjoint(other)
    settings.IDENTITY_KEY = "another"
    assert read_frames(study).participants.loc[0, "participant"] not in first
    text = " ".join(first + other)
    assert str(session.pk)[:8] not in text and session.participant.pseudonym.hex[:8] not in text


def test_it_asks_the_same_number_of_queries_for_one_and_for_many(
    study: Study,
) -> None:
    from django.db import connection

    sitting(study, "ada", condition="control")
    with CaptureQueriesContext(connection) as few:
        read_frames(study)
    for number in range(6):
        sitting(study, f"p{number}", condition=("baseline", "grad_cam")[number % 2], minutes=number)
    with CaptureQueriesContext(connection) as many:
        read_frames(study)
    assert len(many) == len(few) <= 20


def test_it_reads_the_same_in_batches_of_any_size(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    people = cast(study)
    # A second sitting of one person, met in another batch.
    Session.objects.filter(pk=people["cy"].pk).update(participant=people["ada"].participant)
    whole = read_frames(study)
    for size in (1, 3):
        monkeypatch.setattr(session_batches, "SESSIONS", size)
        for table, frame in read_frames(study).tables.items():
            pd.testing.assert_frame_equal(frame, whole.tables[table])
    assert list(whole.participants["sitting"]) == [0, 0, 1, 0]


def test_it_knows_the_study(study: Study) -> None:
    cast(study)
    facts = study_facts(study)
    assert [(c.name, c.label, c.wanted, c.kept) for c in facts.conditions] == [
        ("baseline", "Baseline", 4, 0),
        ("control", "Control", 4, 0),
        ("grad_cam", "Grad-CAM", 4, 1),
    ]
    assert facts.questions[0].prompt == "How old are you?"


def test_it_counts_what_was_removed(study: Study) -> None:
    session = sitting(study, "eve", condition="control", verdict="withdrawn")
    Session.objects.filter(pk=session.pk).update(erased={"responses": 9, "events": 1})
    assert tombstones(study) == {"sittings": 1, "responses": 9}
