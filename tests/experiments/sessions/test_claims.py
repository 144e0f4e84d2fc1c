"""Which slot each person gets when all come at once: no slot twice, even conditions, freed slots first."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from experiments.definition.study import StudyDefinition
from experiments.errors import StudyFull
from experiments.models import Condition, Item, Participant, Rendering, Session, Slot, Study
from experiments.opening.opening import open_study
from experiments.sessions.lifecycle import claim_if_due
from experiments.sessions.slot_assignment import claim_slot, keep_slot, release_slot
from experiments.tokens import new_media_id, new_token
from stimuli.models import Stimulus
from tests.world import silent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases("claims")]

CONDITIONS, EACH = 8, 15
SLOTS = CONDITIONS * EACH


@pytest.fixture
def study() -> Study:
    """Eight conditions of fifteen slots, planned and open; nothing needs to be rendered to be claimed."""
    names = ["baseline", "control", *(f"method_{i}" for i in range(CONDITIONS - 2))]
    roles = ["baseline", "control", *["method"] * (CONDITIONS - 2)]
    conditions = [
        {"name": n, "role": r, "slots": EACH, "explainer": None if r == "baseline" else {"name": "random"}}
        for n, r in zip(names, roles, strict=True)
    ]
    definition = StudyDefinition.model_validate(
        {
            "slug": "crowded", "title": "Crowded", "paradigm": "meta_predictor", "seed": 5,
            "design": {"blocks": 1, "train_per_block": 2, "test_per_block": 4},
            "stimuli": {"dataset": {"name": "folder"}, "predictor": {"name": "toy"}, "classes": [*"ab"]},
            "conditions": conditions, "checks": {"instructed": 0, "repeat": 0}, "ethics": {"contact": "a@b"},
            "texts": {"consent": "c", "instructions": "i", "debrief": "d"}, "reward": {"expected_minutes": 5},
        }
    )  # fmt: skip
    study = Study.objects.create(
        slug="crowded", title="Crowded", paradigm="meta_predictor", seed=5, digest=definition.digest,
        definition=definition.model_dump(mode="json"),
    )  # fmt: skip
    for ordinal, row in enumerate(conditions):
        Condition.objects.create(study=study, ordinal=ordinal, **row)
    Item.objects.bulk_create(
        Item(
            study=study, key=f"{truth}{predicted}{i}", truth=truth, predicted=predicted, confidence=0.9,
            group=f"{truth}{predicted}{i}", logits=[0, 1], image_key="0" * 64, width_px=8, height_px=8,
        )
        for truth in "ab" for predicted in "ab" for i in range(6)
    )  # fmt: skip
    stimulus = Stimulus.objects.create(
        key="1" * 64, spec={}, image_key="0" * 64, state="done", image_file="i", picture_digest="2" * 64
    )
    Rendering.objects.bulk_create(
        Rendering(item=item, condition=condition, stimulus=stimulus)
        for item in study.items.all()
        for condition in study.conditions.all()
    )
    return open_study(study, silent)


def people(study: Study, count: int) -> list[Session]:
    """Sessions that have passed every gate."""
    participants = Participant.objects.bulk_create(Participant(study=study) for _ in range(count))
    return Session.objects.bulk_create(
        Session(
            study=study, participant=person, origin="human", token_hash=new_token(), media_id=new_media_id()
        )
        for person in participants
    )


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Each call in a thread with its own connection, all started together; SQLite gets fewer at a time."""
    threads = len(calls) if connection.vendor == "postgresql" else min(16, len(calls))
    together = threading.Barrier(threads, timeout=60)
    arrived = threading.local()

    def in_thread(call: Callable[[], Any]) -> Any:
        if not hasattr(arrived, "at"):
            arrived.at = True
            connection.ensure_connection()
            together.wait()
        return call()

    def leave(_: int) -> None:
        connection.close()
        together.wait()

    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(in_thread, calls))
        finally:
            list(pool.map(leave, range(threads)))


def claim(session: Session) -> Callable[[], int | None]:
    """The slot that the session gets; None if the study is full."""

    def call() -> int | None:
        try:
            return claim_slot(session).pk
        except StudyFull:
            return None

    return call


def first_claims() -> dict[str, int]:
    """How many slots of each condition were ever claimed."""
    rows = Counter(Slot.objects.filter(claimed_count__gt=0).values_list("arm", flat=True))
    return {name: rows[name] for name in Condition.objects.values_list("name", flat=True)}


def spread() -> int:
    return max(first_claims().values()) - min(first_claims().values())


def test_it_gives_a_hundred_and_twenty_people_at_once_a_slot_each(study: Study) -> None:
    crowd = people(study, SLOTS)
    taken = at_once([claim(session) for session in crowd])
    assert None not in taken and len(set(taken)) == SLOTS
    assert list(first_claims().values()) == [EACH] * CONDITIONS
    assert set(Slot.objects.values_list("claimed_count", flat=True)) == {1}
    held = dict(Slot.objects.values_list("holder_id", "id"))
    assert {session.pk: slot for session, slot in zip(crowd, taken, strict=True)} == held
    [late] = people(study, 1)
    with pytest.raises(StudyFull, match="All places"):
        claim_slot(late)
    assert Session.objects.get(id=late.pk).claimed_at is None


def test_it_keeps_conditions_even_after_every_wave(study: Study) -> None:
    crowd, start = people(study, SLOTS), 0
    for size in (1, 3, 7, 24, 37, 8, 40):
        at_once([claim(session) for session in crowd[start : start + size]])
        start += size
        assert sum(first_claims().values()) == start and spread() <= 1
        ordinals = (
            Slot.objects.filter(claimed_count__gt=0).order_by("ordinal").values_list("ordinal", flat=True)
        )
        assert list(ordinals) == list(range(start))
    assert start == SLOTS


def test_it_serves_dropped_slots_again_first(study: Study) -> None:
    crowd = people(study, 90)
    taken = at_once([claim(session) for session in crowd[:54]])
    leavers = np.random.default_rng(3).choice(54, size=18, replace=False)
    assert all(at_once([partial(release_slot, crowd[i]) for i in leavers]))
    dropped = {taken[i] for i in leavers}
    again = at_once([claim(session) for session in crowd[54:66]])
    assert set(again) < dropped and Slot.objects.filter(ordinal__gte=54, claimed_count__gt=0).count() == 0
    rest = at_once([claim(session) for session in crowd[66:90]])
    assert dropped - set(again) < set(rest)
    fresh = (
        Slot.objects.filter(id__in=set(rest) - dropped).order_by("ordinal").values_list("ordinal", flat=True)
    )
    assert list(fresh) == list(range(54, 72)) and spread() <= 1


def test_it_ends_exactly_full_however_many_leave(study: Study) -> None:
    """Each person passes or leaves at random, others take the free slots: 15 of each condition are kept."""
    chance, rounds = np.random.default_rng(11), 0
    while free := Slot.objects.filter(kept=False).count():
        crowd = people(study, free + 9)
        taken = at_once([claim(session) for session in crowd])
        assert taken.count(None) == 9 and len(set(taken) - {None}) == free
        stay = chance.random(len(crowd)) < 0.6
        ends = []
        for session, slot, stays in zip(crowd, taken, stay, strict=True):
            session.refresh_from_db()
            if slot is not None:
                ends.append(partial(keep_slot if stays else release_slot, session))
        assert all(at_once(ends))
        rounds += 1
    assert rounds > 3
    counts = Counter(Slot.objects.filter(kept=True).values_list("condition__name", flat=True))
    assert len(counts) == CONDITIONS and set(counts.values()) == {EACH}
    assert Slot.objects.filter(kept=True).values("holder").distinct().count() == SLOTS
    assert claim(people(study, 1)[0])() is None


def test_it_gives_a_session_one_slot_however_often_it_asks(study: Study) -> None:
    crowd = people(study, 3)
    taken = at_once([claim(session) for session in crowd for _ in range(8)])
    assert Slot.objects.filter(holder__isnull=False).count() == 3 == len(set(taken))
    assert set(Slot.objects.filter(holder__isnull=False).values_list("claimed_count", flat=True)) == {1}
    for session in crowd:
        session.refresh_from_db()
        assert session.state == Session.State.ASSIGNED and claim(session)() == session.slot_id


def test_it_does_not_turn_away_the_person_who_holds_the_last_slot(study: Study) -> None:
    last = Slot.objects.order_by("ordinal").last()
    assert last is not None
    Slot.objects.exclude(id=last.pk).update(kept=True)
    [session] = people(study, 1)
    taken = at_once([claim(session)] * 8)
    assert taken == [last.pk] * 8
    session.refresh_from_db()
    assert claim_if_due(session).slot_id == last.pk and session.state != Session.State.TURNED_AWAY


def test_it_lets_either_the_holder_or_a_rival_have_a_slot_whose_lease_is_over(study: Study) -> None:
    holders = people(study, 20)
    taken = at_once([claim(session) for session in holders])
    Slot.objects.exclude(id__in=taken).update(kept=True)
    Slot.objects.filter(id__in=taken).update(lease_ends_at=timezone.now() - timedelta(seconds=1))
    for session in holders:
        session.refresh_from_db()
    rivals = people(study, 20)
    calls = [call for h, r in zip(holders, rivals, strict=True) for call in (partial(keep_slot, h), claim(r))]
    results = at_once(calls)
    kept, won = results[::2], [slot for slot in results[1::2] if slot is not None]
    assert len(set(won)) == len(won) and kept.count(True) + len(won) == 20
    for session, slot, is_kept in zip(holders, taken, kept, strict=True):
        row = Slot.objects.get(id=slot)
        assert (row.holder_id == session.pk) == row.kept == is_kept == (slot not in won)
