"""Opening a study whole or not at all, and which slot a person gets: lanes, leases, pilot, places left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from experiments.definition.study import StudyDefinition
from experiments.errors import SessionFinished, StudyError, StudyFull
from experiments.models import Gate, OtherStimulus, Preregistration, Rendering, Session, Slot, Study, Trial
from experiments.opening import opening
from experiments.opening.opening import open_study, plan_pilot, stored_pool
from experiments.paradigms.base import BadDesign, Plan
from experiments.paradigms.meta_predictor import MetaPredictor
from experiments.selectors import definition_of, free_slots, slot_counts
from experiments.sessions import slot_assignment
from experiments.sessions.lifecycle import start_session
from experiments.sessions.slot_assignment import (
    claim_slot,
    free_rehearsed_slots,
    keep_slot,
    peek_slot,
    places_left,
    release_slot,
    route,
)
from tests import world
from tests.experiments.toys import LANES, again, write_toy
from tests.toy.tables import registered
from tests.world import Person, silent

pytestmark = pytest.mark.django_db
SLOTS, TRIALS_PER_SLOT = 9, 2 * (4 + 4) + 2 + 1


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Study]:
    with registered():
        yield world.draft_study(write_toy(tmp_path / "toy"))


@pytest.fixture
def draft(tmp_path: Path) -> Study:
    return world.draft_study(world.write_study(tmp_path / "small"))


def arrived(study: Study, origin: str = "human") -> Session:
    return start_session(study, study.participants.create(), origin=origin)[0]


def seated(study: Study, origin: str = "human") -> Session:
    session = arrived(study, origin)
    claim_slot(session)
    session.refresh_from_db()
    return session


def is_untouched(study: Study) -> bool:
    """Still a draft of which nothing is planned."""
    study.refresh_from_db()
    nothing = not (Slot.objects.exists() or Trial.objects.exists() or OtherStimulus.objects.exists())
    return study.state == "draft" and study.opened_at is None and not study.plan_digest and nothing


# Opening


def test_it_plans_every_slot_and_numbers_every_trial(draft: Study) -> None:
    study = open_study(draft, silent)
    assert study.state == "open" and len(study.plan_digest) == 64
    assert list(Slot.objects.order_by("ordinal").values_list("ordinal", flat=True)) == list(range(SLOTS))
    for slot in Slot.objects.all():
        rows = list(slot.trials.order_by("position").values_list("position", "remaining"))
        assert rows == [(place, TRIALS_PER_SLOT - 1 - place) for place in range(TRIALS_PER_SLOT)]


def test_opening_again_changes_nothing(draft: Study) -> None:
    study = open_study(draft, silent)
    before = list(Trial.objects.order_by("pk").values()), study.opened_at
    assert open_study(study, silent).plan_digest == study.plan_digest
    assert (list(Trial.objects.order_by("pk").values()), study.opened_at) == before


def test_it_tells_how_far_it_is(draft: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(opening, "BATCH", 4)
    open_study(draft, lambda what, done, total: told.append((what, done, total)))
    pictures = [(done, total) for what, done, total in told if what == "read pictures"]
    assert pictures[-1][0] == pictures[-1][1] > 100
    assert told[len(pictures) :] == [("plan slots", done, SLOTS) for done in (4, 8, 9)]


def test_the_size_of_a_batch_changes_no_plan(draft: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> list[tuple[Any, ...]]:
        order = Trial.objects.order_by("slot__ordinal", "position")
        return list(order.values_list("slot__ordinal", "position", "item", "kind", "right", "choices"))

    whole = open_study(draft, silent)
    first, digest = rows(), whole.plan_digest
    Slot.objects.all().delete()
    Preregistration.objects.all().delete()
    Study.objects.filter(pk=draft.pk).update(state="draft", plan_digest="", opened_at=None)
    draft.refresh_from_db()
    monkeypatch.setattr(opening, "BATCH", 2)
    assert open_study(draft, silent).plan_digest == digest and rows() == first


def test_a_closed_study_is_not_opened(draft: Study) -> None:
    Study.objects.filter(pk=draft.pk).update(state="closed")
    draft.refresh_from_db()
    with pytest.raises(StudyError, match="'small' is closed. Choose a new slug"):
        open_study(draft, silent)


def test_it_counts_what_is_not_rendered_yet(draft: Study) -> None:
    missing = Rendering.objects.filter(condition__name="saliency")[:3]
    for rendering in missing:
        rendering.stimulus.state = "failed"
        rendering.stimulus.save()
    with pytest.raises(StudyError, match="3 stimuli are not rendered yet. Run build_stimuli small"):
        open_study(draft, silent)
    assert is_untouched(draft)


def test_a_study_that_was_opened_at_the_same_moment_is_not_planned_twice(draft: Study) -> None:
    stale = Study.objects.get(pk=draft.pk)
    open_study(draft, silent)
    with pytest.raises(StudyError, match="opened or replaced at the same moment"):
        open_study(stale, silent)
    assert Slot.objects.count() == SLOTS


def test_plans_that_cannot_be_drawn_leave_the_draft_as_it_was(
    draft: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the error comes after some plans are stored: here after five."""
    whole = MetaPredictor.plans

    def broken(self: MetaPredictor, *parts: Any) -> Iterator[Plan]:
        for plan in whole(self, *parts):
            if plan.ordinal == 5:
                raise BadDesign("the sixth plan is impossible, ask for less")
            yield plan

    monkeypatch.setattr(MetaPredictor, "plans", broken)
    monkeypatch.setattr(opening, "BATCH", 1)
    with pytest.raises(StudyError) as caught:
        open_study(draft, silent)
    assert str(caught.value) == "'small' cannot be planned: the sixth plan is impossible, ask for less."
    assert is_untouched(draft)
    monkeypatch.setattr(MetaPredictor, "plans", whole)
    assert open_study(draft, silent).state == "open"


def test_too_few_items_are_said_in_a_sentence(tmp_path: Path) -> None:
    """Two blocks of 4 + 100 trials, half of them on wrong predictions; 28 of the 56 pictures are such."""
    path = world.write_study(tmp_path / "small", test_per_block="test_per_block = 100")
    study = world.draft_study(path)
    with pytest.raises(StudyError, match="cannot be planned: needs 104 wrong .* the pool has 28"):
        open_study(study, silent)
    assert is_untouched(study)


def test_a_trial_whose_stimulus_is_missing_is_named(draft: Study) -> None:
    Rendering.objects.filter(condition__name="saliency").delete()
    with pytest.raises(StudyError) as caught:
        open_study(draft, silent)
    said = str(caught.value)
    assert said.startswith("slot ") and "under condition 'saliency', which has no stimulus" in said
    assert "Build the stimuli again" in said and is_untouched(draft)


def test_a_further_stimulus_that_is_missing_is_named_by_its_role(toy: Study) -> None:
    Rendering.objects.filter(condition__name="photo").delete()
    with pytest.raises(StudyError, match=r"trial \d, role '(first|second)' shows item 'photos/.*'photo'"):
        open_study(toy, silent)
    assert is_untouched(toy)


# The planner's view, from rows


def test_a_stored_pool_is_what_the_draft_was_made_of(draft: Study) -> None:
    """Item by item from the pictures' own names: left/right-03 is truly left, and the model says right."""
    pool = stored_pool(draft, definition_of(draft))
    assert len(pool.items) == 56 and [i.key for i in pool.items] == sorted(i.key for i in pool.items)
    for item in pool.items:
        truth, name = item.key.split("/")[-2:]
        assert (item.truth, item.predicted) == (truth, name.split("-")[0])
    assert [(c.name, c.role, c.slots) for c in pool.conditions] == [
        ("baseline", "baseline", 3), ("control", "control", 3), ("saliency", "method", 3),
    ]  # fmt: skip
    assert pool.explanations == () and pool.predictions == {} and pool.solutions == ()
    assert (pool.check_instructed, pool.check_repeat) == (2, 1)


def test_a_stored_pool_of_two_sources_keeps_them_apart(toy: Study) -> None:
    pool = stored_pool(toy, definition_of(toy))
    texts = [i.key for i in pool.items if i.key.startswith("texts/")]
    photos = [i.key for i in pool.items if i.key.startswith("photos/")]
    assert (len(texts), len(photos), len(pool.items)) == (12, 12, 24)
    expected = [(key, name) for name in ("marked", "shuffled") for key in texts]
    expected += [(key, "photo") for key in photos]
    assert list(pool.explanations) == expected
    # Classes of the material stand as the study's answers; pictures keep their own.
    by_key = {item.key: item for item in pool.items}
    assert {by_key[key].predicted for key in texts} <= {"single", "several"}
    assert {by_key[key].truth for key in photos} == {"left", "right"}


# Lanes


@pytest.fixture
def desks(toy: Study) -> Study:
    """Three slots at each of two desks."""
    return open_study(toy, silent)


def test_slots_are_at_the_desks_in_turn(desks: Study) -> None:
    assert list(Slot.objects.order_by("ordinal").values_list("lane", flat=True)) == list(LANES) * 3


def test_a_person_goes_where_most_places_are_free(desks: Study) -> None:
    lanes = [seated(desks).lane for _ in range(6)]
    assert lanes == list(LANES) * 3
    with pytest.raises(StudyFull, match="All places"):
        claim_slot(arrived(desks))


def test_a_person_stays_in_the_lane_and_meets_no_slot_twice(desks: Study) -> None:
    first = seated(desks)
    seated(desks), seated(desks)
    second = again(first)
    assert route(second) == first.lane
    claim_slot(second)
    second.refresh_from_db()
    assert second.lane == first.lane and second.slot_id != first.slot_id


def test_the_person_s_own_freed_slot_is_not_offered_again(desks: Study) -> None:
    """Other people can get it, and before any unused slot of its lane."""
    first = seated(desks)
    old = first.slot
    assert old is not None and release_slot(first)
    returned = again(first)
    assert claim_slot(returned).pk != old.pk
    Session.objects.filter(pk=returned.pk).update(state="withdrawn")
    release_slot(returned)
    assert claim_slot(arrived(desks)).pk == old.pk


def test_a_person_whose_lane_is_full_stays_out_and_a_new_one_goes_to_the_other(desks: Study) -> None:
    """The toy's rule: a person returns to the same desk or to none; a new person gets a free place."""
    first = seated(desks)
    Slot.objects.filter(study=desks, lane=first.lane).update(kept=True)
    assert route(again(first)) is None
    assert route(arrived(desks)) == next(lane for lane in LANES if lane != first.lane)
    Slot.objects.filter(study=desks).update(kept=True)
    assert route(arrived(desks)) is None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lanes in which a place is asked for; a rival takes the last place of the first desk each time."""
    lanes: list[str] = []
    whole = slot_assignment._claim

    def claim(session: Session, lane: str, *times: Any) -> int | None:
        lanes.append(lane)
        return None if lane == LANES[0] else whole(session, lane, *times)

    monkeypatch.setattr(slot_assignment, "_claim", claim)
    return lanes


def test_a_rival_who_takes_the_last_place_of_a_lane_sends_on(desks: Study, asked: list[str]) -> None:
    session = arrived(desks)
    slot = claim_slot(session)
    assert asked == list(LANES) and slot.lane == session.lane == LANES[1]


def test_each_lane_is_asked_once_and_then_the_study_is_full(desks: Study, asked: list[str]) -> None:
    Slot.objects.filter(study=desks, lane=LANES[1]).update(kept=True)
    with pytest.raises(StudyFull):
        claim_slot(arrived(desks))
    assert asked == [LANES[0]]


def test_a_session_that_got_nothing_leaves_nothing_behind(desks: Study) -> None:
    Slot.objects.filter(study=desks).update(kept=True)
    session = arrived(desks)
    with pytest.raises(StudyFull):
        claim_slot(session)
    session.refresh_from_db()
    assert (session.state, session.slot, session.claimed_at) == ("gates", None, None)


def test_a_session_that_has_ended_claims_nothing(desks: Study) -> None:
    session = arrived(desks)
    Session.objects.filter(pk=session.pk).update(state="withdrawn")
    with pytest.raises(SessionFinished):
        claim_slot(session)
    assert not Slot.objects.exclude(holder=None).exists()


# Leases


def test_a_lease_is_twice_the_longest_session(small: Study) -> None:
    before = timezone.now()
    slot = claim_slot(arrived(small))
    slot.refresh_from_db()
    assert slot.lease_ends_at is not None
    minutes = (slot.lease_ends_at - before).total_seconds() / 60
    assert 2 * 600 <= minutes < 2 * 600 + 1


def test_a_lapsed_slot_is_free_and_a_kept_one_never(small: Study) -> None:
    session = seated(small)
    assert free_slots(small).count() == SLOTS - 1
    Slot.objects.filter(holder=session).update(lease_ends_at=timezone.now() - timedelta(seconds=1))
    assert free_slots(small).count() == SLOTS
    assert keep_slot(session) and keep_slot(session)
    assert free_slots(small).count() == SLOTS - 1
    assert not release_slot(session), "a kept slot is not given back"


def test_who_lost_the_slot_can_neither_keep_nor_free_it(small: Study) -> None:
    late = seated(small)
    Slot.objects.filter(holder=late).update(lease_ends_at=timezone.now() - timedelta(seconds=1))
    rival = seated(small)
    assert rival.slot_id == late.slot_id
    assert not keep_slot(late) and not release_slot(late)
    assert keep_slot(rival)


def test_counts_add_up_to_what_was_wanted(small: Study) -> None:
    sessions = [seated(small) for _ in range(5)]
    for session in sessions[:2]:
        keep_slot(session)
    release_slot(sessions[4])
    counts = slot_counts(small)
    assert {name: row["wanted"] for name, row in counts.items()} == dict.fromkeys(counts, 3)
    for row in counts.values():
        assert row["wanted"] == row["passed"] + row["in_progress"] + row["free"]
    sums = {key: sum(row[key] for row in counts.values()) for key in ("passed", "in_progress", "free")}
    assert sums == {"passed": 2, "in_progress": 2, "free": 5}


def test_a_rehearsal_gives_its_places_back_to_people(small: Study) -> None:
    robots = [seated(small, "simulated") for _ in range(3)]
    human = seated(small)
    keep_slot(robots[0])
    assert free_rehearsed_slots(small) == 3
    assert free_slots(small).count() == SLOTS - 1
    human.refresh_from_db()
    assert human.slot is not None and human.slot.holder_id == human.pk


# Places left


def test_who_has_agreed_has_a_place_reserved(small: Study) -> None:
    assert places_left(small) == SLOTS
    Person("ada").join()
    assert places_left(small) == SLOTS, "a look at the first page reserves nothing"
    ben = Person("ben")
    ben.arrive(until="quiz")
    assert places_left(small) == SLOTS - 1
    Gate.objects.update(created_at=timezone.now() - timedelta(seconds=181))
    assert places_left(small) == SLOTS, "consent alone holds no place for long"
    ben.gate(ben.good_value())
    assert places_left(small) == SLOTS - 1, "a page that is passed is a sign of life"


def test_a_person_whom_a_platform_vouches_for_may_read_for_long(small: Study) -> None:
    ben = Person("ben")
    ben.arrive(until="quiz")
    session = Session.objects.filter(pk=ben.session().pk)
    session.update(arrival="verified")
    Gate.objects.update(created_at=timezone.now() - timedelta(minutes=14))
    assert places_left(small) == SLOTS - 1
    session.update(started_at=timezone.now() - timedelta(minutes=16))
    assert places_left(small) == SLOTS, "not for longer than the gates take"


def test_who_is_seated_is_not_counted_twice(small: Study) -> None:
    Person("ada").arrive()
    assert places_left(small) == SLOTS - 1


def test_places_are_counted_over_all_lanes(desks: Study) -> None:
    for left in (5, 4, 3):
        seated(desks)
        assert places_left(desks) == left
    assert free_slots(desks, LANES[0]).count() + free_slots(desks, LANES[1]).count() == 3


# The pilot


def test_the_pilot_has_places_and_people_of_its_own(small: Study) -> None:
    assert plan_pilot(small, 4, silent) == 4
    assert (places_left(small), places_left(small, pilot=True)) == (SLOTS, 4)
    pilot = seated(small, "pilot")
    assert pilot.slot is not None and pilot.slot.pilot
    assert (places_left(small), places_left(small, pilot=True)) == (SLOTS, 3)
    human = seated(small)
    assert human.slot is not None and not human.slot.pilot
    assert sum(row["wanted"] for row in slot_counts(small).values()) == SLOTS


def test_a_full_pilot_takes_no_place_of_the_study(small: Study) -> None:
    plan_pilot(small, 1, silent)
    seated(small, "pilot")
    with pytest.raises(StudyFull):
        claim_slot(arrived(small, "pilot"))


def test_a_pilot_that_grows_leaves_its_first_plans_alone(small: Study) -> None:
    def rows() -> list[tuple[Any, ...]]:
        trials = Trial.objects.filter(slot__pilot=True).order_by("slot__ordinal", "position")
        return list(
            trials.values_list("slot__ordinal", "position", "item__key", "condition__name", "choices")
        )

    plan_pilot(small, 2, silent)
    first = rows()
    assert plan_pilot(small, 2, silent) == plan_pilot(small, 1, silent) == 0 and rows() == first
    assert plan_pilot(small, 5, silent) == 3
    assert rows()[: len(first)] == first
    ordinals = Slot.objects.filter(pilot=True).order_by("ordinal").values_list("ordinal", flat=True)
    assert list(ordinals) == list(range(5))


def test_each_round_of_the_pilot_holds_every_condition_once(small: Study) -> None:
    plan_pilot(small, 6, silent)
    names = list(
        Slot.objects.filter(pilot=True).order_by("ordinal").values_list("condition__name", flat=True)
    )
    assert sorted(names[:3]) == sorted(names[3:]) == ["baseline", "control", "saliency"]


def test_only_an_open_study_has_a_pilot(draft: Study) -> None:
    with pytest.raises(StudyError, match="is draft; only an open study has a pilot"):
        plan_pilot(draft, 2, silent)
    assert not Slot.objects.exists()


# Previews


def test_a_preview_looks_at_a_slot_and_holds_none(small: Study) -> None:
    assert peek_slot(small, SLOTS - 1).ordinal == SLOTS - 1
    assert free_slots(small).count() == SLOTS
    with pytest.raises(StudyError, match=f"'small' has no slot {SLOTS}"):
        peek_slot(small, SLOTS)


def test_a_definition_is_read_from_the_row(small: Study) -> None:
    assert isinstance(definition_of(small), StudyDefinition) and definition_of(small).digest == small.digest
