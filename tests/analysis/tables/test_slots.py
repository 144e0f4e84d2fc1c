"""Slots of every condition are counted: for the seal, the flow and the export."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analysis.exports.study_export import Request, export_study
from analysis.facts import SlotFacts
from analysis.reports.parts.flow import flow_section
from analysis.seal import seal_of
from analysis.stored_reports.refresh import facts_digest
from analysis.tables.response_reader import read_frames, study_facts
from experiments.models import Condition, Participant, Session, Slot, Study, Trial
from tests.analysis import stored

pytestmark = pytest.mark.django_db
CONDITIONS = ("none", "lime", "random")


def square(slots: int = 18, lanes: tuple[str, ...] = ("participant",)) -> Study:
    """A study whose slots mix three conditions, as a Latin square does."""
    study = Study.objects.create(
        slug="square",
        title="Square",
        paradigm="reverse_turing",
        definition={"conditions": [{"name": name, "slots": slots} for name in CONDITIONS]},
        digest="0" * 64,
        seed=1,
        state="open",
    )
    conditions = [
        Condition.objects.create(study=study, name=name, role="method", ordinal=i, slots=slots)
        for i, name in enumerate(CONDITIONS)
    ]
    for ordinal in range(slots):
        slot = Slot.objects.create(
            study=study, ordinal=ordinal, lane=lanes[ordinal % len(lanes)], arm=f"cell-{ordinal % 6}"
        )
        for position, condition in enumerate(conditions):
            trial_of(slot, position, condition)
    return study


def trial_of(slot: Slot, position: int, condition: Condition) -> Trial:
    return Trial.objects.create(
        slot=slot,
        position=position,
        remaining=2 - position,
        block=position,
        phase="test",
        kind="predict",
        condition=condition,
        explained=False,
        choices=[{"value": "a"}, {"value": "b"}],
    )


def keep(study: Study, count: int, origin: str = "human", verdict: str = "passed") -> None:
    """`count` people take the next slots; people who pass keep them."""
    free = list(Slot.objects.filter(study=study, pilot=False, sessions=None).order_by("ordinal")[:count])
    assert len(free) == count
    for slot in free:
        session = Session.objects.create(
            study=study,
            participant=Participant.objects.create(study=study),
            origin=origin,
            lane=slot.lane,
            slot=slot,
            state="finished",
            verdict=verdict,
            token_hash=hashlib.sha256(f"{slot.pk}".encode()).hexdigest(),
            media_id=f"m{slot.pk}",
            started_at=stored.START,
            claimed_at=stored.START,
            finished_at=stored.START + timedelta(minutes=5),
        )
        if verdict == "passed":
            Slot.objects.filter(pk=slot.pk).update(holder=session, kept=True)


def test_it_unseals_a_square_at_its_last_slot() -> None:
    study = square()
    keep(study, 17)
    seal = seal_of(study_facts(study), "human")
    assert seal.sealed
    assert seal.sentence == "Sealed until the stopping rule is met: 17 of 18 places are kept."
    keep(study, 1)
    seal = seal_of(study_facts(study), "human")
    assert not seal.sealed
    assert seal.sentence == "The stopping rule is met: all 18 places are kept."


def test_it_counts_a_slot_in_one_group_and_for_every_condition_that_it_shows() -> None:
    study = square()
    keep(study, 5)
    facts = study_facts(study)
    assert facts.slots == (SlotFacts("participant", "Participant", 18, 5, by="lane"),)
    assert [(c.name, c.wanted, c.kept) for c in facts.conditions] == [(name, 18, 5) for name in CONDITIONS]


def test_it_counts_by_lane_if_slots_mix_conditions() -> None:
    study = square(lanes=("round-0", "round-1", "round-2"))
    keep(study, 7)
    keep(study, 4, verdict="screened")
    facts = study_facts(study)
    assert [(g.key, g.wanted, g.kept) for g in facts.slots] == [
        ("lane round-0", 6, 3),
        ("lane round-1", 6, 2),
        ("lane round-2", 6, 2),
    ]
    flow = flow_section(read_frames(study).participants, facts).content
    rows = flow["by_condition"]
    assert [row["lane"] for row in rows] == ["round-0", "round-1", "round-2"]
    assert {row["condition"] for row in rows} == {""}
    for key, total in (("claimed", 11), ("passed", 7), ("screened", 4), ("lost", 4), ("wanted", 18)):
        assert sum(row[key] for row in rows) == total


def test_it_names_lanes_where_there_are_no_conditions() -> None:
    study = square(lanes=("expert", "lead"))
    keep(study, 3)
    flow = flow_section(read_frames(study).participants, study_facts(study))
    steps, places, rules = flow.tables
    assert [row[0] for row in steps.rows][3] == "Got a place"
    assert places.title == "Places by lane" and [row[0] for row in places.rows] == ["Expert", "Lead"]
    assert "Loss was not compared between lanes: nobody was lost." in places.note
    assert "equal rates in all lanes" in rules.note


def test_it_counts_slots_of_one_condition_beside_mixed_ones() -> None:
    study = square(slots=6)
    lime = study.conditions.get(name="lime")
    trial_of(Slot.objects.create(study=study, ordinal=6, arm="lime", condition=lime), 0, lime)
    keep(study, 7)
    facts = study_facts(study)
    assert [(g.by, g.name, g.wanted, g.kept) for g in facts.slots] == [
        ("condition", "lime", 1, 1),
        ("lane", "participant", 6, 6),
    ]
    assert [c.wanted for c in facts.conditions] == [6, 7, 6]
    assert facts.wanted == Slot.objects.filter(study=study).count() == facts.kept
    places = flow_section(read_frames(study).participants, facts).tables[1]
    assert places.columns[0] == "Condition or lane"
    assert [row[:4] for row in places.rows] == [("Lime", "1", "1", "1"), ("Participant", "6", "6", "6")]


def test_it_keeps_pilot_and_origins_apart() -> None:
    study = square(slots=6)
    pilot = Slot.objects.create(study=study, ordinal=0, arm="pilot", pilot=True)
    keep(study, 2, origin="simulated")
    assert (study_facts(study).kept, study_facts(study).wanted) == (0, 6)
    assert study_facts(study, "simulated").kept == 2
    session = Session.objects.filter(study=study).first()
    Slot.objects.filter(holder=session).update(holder=None, kept=False)
    Session.objects.filter(pk=session.pk).update(origin="pilot", slot=pilot)  # type: ignore[union-attr]
    Slot.objects.filter(pk=pilot.pk).update(holder=session, kept=True)
    facts = study_facts(study, "pilot")
    assert (facts.wanted, facts.kept) == (1, 1)


def test_it_takes_a_draft_s_slots_from_its_definition() -> None:
    study = square()
    Trial.objects.all().delete()
    Slot.objects.all().delete()
    facts = study_facts(study)
    assert (facts.wanted, facts.kept) == (54, 0)
    assert seal_of(facts, "human").sealed


def test_it_never_calls_an_empty_study_complete() -> None:
    study = square(slots=1)
    Trial.objects.all().delete()
    Slot.objects.all().delete()
    Condition.objects.all().delete()
    facts = study_facts(study)
    assert facts.conditions == () and facts.slots == ()
    assert seal_of(facts, "human").sealed


def test_it_exports_a_square_when_its_slots_are_kept(tmp_path: Path) -> None:
    study = square(slots=3)
    keep(study, 2)
    with pytest.raises(CommandError, match="2 of 3 places are kept"):
        call_command("export", study.slug, "--out", str(tmp_path / "early"))
    keep(study, 1)
    study.definition = stored.definition(4).model_dump(mode="json")
    study.save()
    manifest = export_study(study, tmp_path / "out", Request())
    assert manifest["seals"] == {"human": "The stopping rule is met: all 3 places are kept."}


def test_it_notices_a_slot_that_is_kept_without_a_new_session() -> None:
    study = square(slots=2)
    keep(study, 1)
    before = facts_digest(study, "human")
    Slot.objects.filter(study=study, kept=True).update(kept=False)
    assert facts_digest(study, "human") != before


def test_it_counts_every_slot_of_a_planned_study_once() -> None:
    study = stored.opened()
    stored.cast(study)
    facts = study_facts(study)
    assert facts.wanted == Slot.objects.filter(study=study, pilot=False).count()
    assert facts.kept == Slot.objects.filter(study=study, kept=True).count() == 1
    assert [g.key for g in facts.slots] == [c.name for c in facts.conditions]
