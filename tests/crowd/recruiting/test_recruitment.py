"""Publishing from a committed row, once, also if calls fail; places, replacements, closing, the pilot."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from analysis.exports.base import ExportError
from analysis.exports.study_export import Request, choose_sessions
from analysis.facts import ReportError
from analysis.seal import seal_of
from analysis.stored_reports.refresh import make_report
from analysis.tables.response_reader import read_frames, study_facts
from crowd.models import Posting
from crowd.money.needs_hand import hands_of
from crowd.money.run import look
from crowd.platforms.base import PlatformError
from crowd.recruiting.places import outstanding
from crowd.recruiting.publishing import (
    add_places,
    close,
    commit,
    ensure_pilot,
    pause,
    plan_posting,
    publish_posting,
    resume,
    room,
    top_up,
)
from crowd.study_check.publication_quote import quote_of, spec_of
from experiments.errors import StudyError
from experiments.models import Session, Slot, Study
from experiments.opening.opening import plan_pilot
from experiments.selectors import slot_counts
from experiments.sessions.slot_assignment import places_left
from tests.analysis import stored
from tests.crowd.offered_studies import (
    PLATFORMS,
    changed,
    held,
    known_there,
    offers,
    public,
    simulated,
    study_of,
)
from tests.world import silent

__all__ = ["public"]
pytestmark = pytest.mark.django_db
ENOUGH = 40
"""More faults in a row than a call has tries."""


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def publish(study: Study, platform: str, sim: Any, **more: Any) -> Posting:
    return publish_posting(study, platform, "rehearsal", site=sim.url, **more)


@pytest.mark.both_databases("constraints")
def test_it_publishes_once_however_often_it_is_asked(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        first = publish(study, platform, sim, places=5)
        again = publish(study, platform, sim, places=7)
        assert offers(platform, sim)[0]["places"] == 5 and len(offers(platform, sim)) == 1
    assert first.pk == again.pk and again.state == "open" and again.places == 5
    assert again.external_id and again.facts and again.cap_cents >= 500 and again.reward_cents == 100
    assert len(set(again.codes.values())) == len(again.codes) and {len(c) for c in again.codes.values()} == {
        10
    }
    # On Mechanical Turk every submission is paid, so a person who is due nothing cannot submit.
    assert ({"declined", "device"} & set(again.codes) == set()) == (platform == "mturk")
    assert {"complete", "failed_checks"} <= set(again.codes)


def test_it_finds_what_a_lost_call_has_made_wherever_the_line_breaks(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        publish(study, platform, sim, places=3)
        calls = sim.calls_count
    Posting.objects.all().delete()
    for broken in range(calls):
        with simulated(platform) as sim:
            row = commit(plan_posting(study, platform, "rehearsal", places=3, cap_cents=9000, site=sim.url))
            sim.faults.forced[:] = [*[""] * broken, *["lost_answer"] * ENOUGH]
            try:
                publish(study, platform, sim)
            except PlatformError:
                stored = Posting.objects.get(pk=row.pk)
                assert stored.state == "draft" and "publish it again" in stored.sync_error
            sim.faults.forced.clear()
            done = publish(study, platform, sim)
            assert done.pk == row.pk and done.state == "open" and not done.sync_error
            assert [spec["places"] for spec in offers(platform, sim)] == [3], broken
        Posting.objects.all().delete()


@pytest.mark.both_databases("constraints")
def test_it_goes_on_from_the_row_of_a_process_that_died_before_it_called(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        row = commit(plan_posting(study, platform, "rehearsal", places=4, site=sim.url))
        assert row.state == "draft" and not offers(platform, sim)
        done = publish(study, platform, sim, places=4)
        assert done.pk == row.pk and done.codes == row.codes and done.state == "open"
        assert len(offers(platform, sim)) == 1


def test_it_lets_a_draft_be_published_with_other_places(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        row = commit(plan_posting(study, platform, "rehearsal", places=4, site=sim.url))
        done = publish(study, platform, sim, places=9)
        assert done.pk == row.pk and done.places == done.wanted == 9 and done.cap_cents > row.cap_cents
        assert [spec["places"] for spec in offers(platform, sim)] == [9]


def test_it_takes_no_other_options_for_what_is_offered_already() -> None:
    study = study_of(platforms={"prolific": {"device_compatibility": ["desktop"]}})
    with simulated("prolific") as sim:
        publish(study, "prolific", sim, places=3)
        study = changed(study, platforms={"prolific": {"device_compatibility": ["mobile"]}})
        with pytest.raises(StudyError, match="device_compatibility differs from the posting that is open"):
            publish(study, "prolific", sim)


def test_it_offers_no_more_places_than_are_free(platform: str) -> None:
    study = study_of()
    stored.sitting(study, "ada", condition="control")
    with simulated(platform) as sim:
        with pytest.raises(StudyError, match="12 places are more than the 11 that are free"):
            publish(study, platform, sim, places=12)
        with pytest.raises(StudyError, match="0 places cannot be offered. Offer 1 to 11"):
            publish(study, platform, sim, places=0)
        assert not Posting.objects.exists() and not offers(platform, sim)
        assert publish(study, platform, sim).places == 11
        assert room(study) == 0


@pytest.mark.both_databases("constraints")
def test_it_promises_no_slot_on_two_platforms() -> None:
    study = study_of()
    with simulated("prolific") as there, simulated("mturk") as here:
        publish_posting(study, "prolific", "live", places=8, site=there.url)
        with pytest.raises(StudyError, match="5 places are more than the 4 that are free"):
            publish_posting(study, "mturk", "live", places=5, site=here.url)
        posting = publish_posting(study, "mturk", "live", places=4, site=here.url)
        with pytest.raises(StudyError, match="none is free"):
            add_places(posting, 1)
        assert offers("mturk", here)[0]["places"] == 4


def test_it_adds_places_and_raises_the_cap_with_them(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        posting = publish(study, platform, sim, places=3)
        cap = posting.cap_cents
        posting = add_places(posting, 4, "grace")
        assert posting.places == 7 and posting.wanted == 7 and posting.cap_cents > cap
        assert sum(spec["places"] for spec in offers(platform, sim)) == 7
        with pytest.raises(StudyError, match="6 places are more than the 5 that are free"):
            add_places(posting, 6)


def test_it_finishes_an_addition_that_was_cut_off(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        posting = publish(study, platform, sim, places=3)
        before = sim.calls_count
        quote_of(posting, 7)
        sim.faults.forced[:] = [*[""] * (sim.calls_count - before), *["5xx_before"] * ENOUGH]
        with pytest.raises(PlatformError):
            add_places(posting, 4)
        sim.faults.forced.clear()
        row = Posting.objects.get()
        assert row.places == 7 and "the next sync" in row.sync_error
        assert sum(spec["places"] for spec in offers(platform, sim)) == 3
        synced = look(row)
        assert "An addition of places that was cut off is finished." in synced.changes, synced
        posting = Posting.objects.get()
        assert posting.places == 7 and posting.wanted == 7 and not posting.sync_error
        assert sum(spec["places"] for spec in offers(platform, sim)) == 7


def test_it_pauses_resumes_and_closes_what_the_platform_confirms(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        posting = publish(study, platform, sim, places=3)
        assert pause(posting).state == "paused" and posting.raw_state
        with pytest.raises(Exception, match="(?i)place|open|assignable"):
            sim.control("take")
        assert resume(posting).state == "open"
        sim.control("take")
        assert close(posting, "grace").state == "closed" and posting.closed_at
        with pytest.raises(Exception, match="(?i)place|open|assignable"):
            sim.control("take")
        assert close(posting).state == "closed"
        assert publish(study, platform, sim, places=2).pk != posting.pk


@pytest.mark.parametrize("end", ["COMPLETED", "AWAITING REVIEW"])
def test_it_reads_back_what_stopping_came_to(end: str) -> None:
    study = study_of()
    with simulated("prolific", options={"stop_leads_to": end}) as sim:
        posting = publish(study, "prolific", sim, places=3)
        held(posting, sim, "passed")
        close(posting)
        assert posting.state == "closed" and posting.raw_state == end
        look(posting)
        assert Posting.objects.get().state == "closed"


def test_it_keeps_a_posting_open_that_could_not_be_closed(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        posting = publish(study, platform, sim, places=3)
        sim.faults.down = True
        with pytest.raises(PlatformError):
            close(posting)
        row = Posting.objects.get()
        assert row.state == "open" and row.closed_at is None and "close it again" in row.sync_error
        sim.faults.down = False
        assert close(row).state == "closed" and not row.sync_error


def test_it_closes_no_draft_that_may_exist() -> None:
    study = study_of()
    with simulated("prolific") as sim:
        row = commit(plan_posting(study, "prolific", "rehearsal", places=4, site=sim.url))
        with pytest.raises(StudyError, match="may or may not exist there"):
            close(row)


def test_it_hands_the_adapter_all_that_it_needs() -> None:
    study = study_of(
        recruitment={"description": "Look at pictures.", "maximum_minutes": 45},
        ethics={"contact": "lab@example.org", "minimum_age": 21, "content_warning": "Blood."},
        policy={"screened_share": 0.5, "turned_away_share": 0.25, "withdrawn": "none"},
        reward={
            **{"amount_cents": 100, "expected_minutes": 5, "person_cap_cents": 120},
            **{"bonus_per_match_cents": 5, "bonus_max_cents": 50},
        },
    )
    with simulated("prolific") as sim:
        first = publish(study, "prolific", sim, places=2)
        close(first)
        posting = plan_posting(study, "prolific", "rehearsal", places=3, site=sim.url)
        spec = spec_of(posting)
    assert spec.reference == f"legible-{posting.key}" and spec.places == 3
    assert spec.url.endswith(f"/join/wolf-or-husky/?via={posting.key}")
    assert (spec.reward_cents, spec.screened_cents, spec.turned_away_cents) == (100, 50, 25)
    assert (spec.withdrawn, spec.bonus_max_cents) == ("none", 20)
    assert (spec.description, spec.maximum_minutes) == ("Look at pictures.", 45)
    assert (spec.minimum_age, spec.content_warning) == (21, "Blood.")
    assert spec.excluded == (first.external_id,)


def test_it_excludes_the_people_of_earlier_studies_and_names_one_that_is_not_there() -> None:
    study = study_of(recruitment={"excludes": ["parent", "list:known"]})
    with simulated("prolific") as sim:
        with pytest.raises(StudyError, match="excludes names 'parent', and there is no such study"):
            publish(study, "prolific", sim)
        parent = Study.objects.create(
            slug="parent", title="t", paradigm="p", definition={}, digest="d", seed=1
        )
        for mode, site, external_id in (("rehearsal", sim.url, "old"), ("live", "", "elsewhere")):
            Posting.objects.create(
                study=parent,
                platform="prolific",
                mode=mode,
                site=site,
                external_id=external_id,
                state="closed",
            )
        assert spec_of(plan_posting(study, "prolific", "rehearsal", site=sim.url)).excluded == ("old",)


def test_it_replaces_who_used_a_place_up_within_the_cap(platform: str) -> None:
    study = study_of(12)
    with simulated(platform) as sim:
        posting = publish(study, platform, sim, places=4)
        price = quote_of(posting, 5).total_cents - quote_of(posting).total_cents
        Posting.objects.update(cap_cents=posting.cap_cents + price)
        for verdict in ("passed", "screened", "screened", "screened"):
            held(posting, sim, verdict)
        synced = look(posting)
        assert "1 replacements opened." in synced.changes, synced
        posting = Posting.objects.get()
        # Three are missing and one is paid for; nothing more is opened by asking again.
        assert posting.places == 5 and sum(spec["places"] for spec in offers(platform, sim)) == 5
        assert look(posting).error == "" and Posting.objects.get().places == 5
        assert top_up(Posting.objects.get(), 10**6) == 2
        assert Posting.objects.get().places == 7 and Posting.objects.get().wanted == 4
        assert outstanding(Posting.objects.get()) == 3


def test_it_opens_no_replacement_while_the_platform_says_what_nobody_knows() -> None:
    study = study_of(12)
    with simulated("prolific") as sim:
        posting = publish(study, "prolific", sim, places=4, cap_cents=10**6)
        for verdict in ("passed", "screened", "screened"):
            held(posting, sim, verdict)
        sim.control("call_by", status="UNDER INVESTIGATION", posting=posting.external_id)
        assert look(posting).error == ""
        (hand,) = hands_of(Posting.objects.get())
        assert Posting.objects.get().places == 4 and not hand.is_trouble
        Posting.objects.update(unclear_at=timezone.now() - timedelta(hours=25))
        (hand,) = hands_of(Posting.objects.get())
        assert hand.is_trouble and "UNDER INVESTIGATION" in hand.why
        assert "No replacement is offered meanwhile" in hand.why
        sim.control("call_by", status="", posting=posting.external_id)
        assert "2 replacements opened." in look(posting).changes
        assert Posting.objects.get().places == 6 and hands_of(Posting.objects.get()) == []


def test_it_replaces_no_place_that_the_platform_opens_again() -> None:
    study = study_of(12)
    with simulated("prolific") as sim:
        posting = publish(study, "prolific", sim, places=4, cap_cents=10**6)
        submission = held(posting, sim, "passed", code="")
        session = submission.session
        assert session is not None
        Session.objects.filter(pk=session.pk).update(state="running", verdict="")
        Slot.objects.filter(holder=session).update(kept=False)
        sim.control("return", submission=known_there(submission, sim)["submission"])
        synced = look(posting)
        assert "a place is free again, its person returned the work: 1." in synced.changes, synced
        submission.refresh_from_db()
        assert submission.state == "returned" and not Slot.objects.filter(holder=session).exists()
        assert Session.objects.get(pk=session.pk).verdict == "incomplete"
        assert Posting.objects.get().places == 4


def test_it_opens_no_replacement_for_which_no_slot_is_free() -> None:
    study = study_of(1)
    with simulated("prolific") as sim:
        posting = publish(study, "prolific", sim, cap_cents=10**6)
        assert posting.places == 3
        held(posting, sim, "passed")
        look(posting)
        assert Posting.objects.get().places == 3 and room(study) == 0


def test_it_gives_the_pilot_slots_of_its_own() -> None:
    study = study_of()
    before = list(Slot.objects.filter(pilot=False).values_list("arm", "ordinal"))
    assert plan_pilot(study, 7, silent) == 7 and plan_pilot(study, 7, silent) == 0
    arms = list(Slot.objects.filter(pilot=True).order_by("ordinal").values_list("arm", flat=True))
    assert sorted(arms.count(arm) for arm in set(arms)) == [2, 2, 3]
    assert {tuple(sorted(arms[at : at + 3])) for at in (0, 3)} == {("baseline", "control", "grad_cam")}
    assert plan_pilot(study, 9, silent) == 2
    more = list(Slot.objects.filter(pilot=True).order_by("ordinal").values_list("arm", flat=True))
    assert more[:7] == arms and sorted(more.count(arm) for arm in set(more)) == [3, 3, 3]
    assert list(Slot.objects.filter(pilot=False).values_list("arm", "ordinal")) == before
    assert places_left(study) == 12 and places_left(study, pilot=True) == 9


def items_of(slot: Slot) -> list[str | None]:
    return list(slot.trials.order_by("position").values_list("item__key", flat=True))


def test_it_matches_pilot_plans_among_themselves_and_draws_them_anew() -> None:
    study = study_of()
    plan_pilot(study, 6, silent)
    ranked: dict[bool, list[list[list[str | None]]]] = {}
    for pilot in (True, False):
        for arm in ("baseline", "control", "grad_cam"):
            slots = Slot.objects.filter(pilot=pilot, arm=arm).order_by("ordinal")[:2]
            ranked.setdefault(pilot, []).append([items_of(slot) for slot in slots])
    assert ranked[True][0] == ranked[True][1] == ranked[True][2]
    assert ranked[True][0] != ranked[False][0]
    first = [items_of(slot) for slot in Slot.objects.filter(pilot=True).order_by("ordinal")]
    Slot.objects.filter(pilot=True).delete()
    plan_pilot(study, 6, silent)
    assert [items_of(slot) for slot in Slot.objects.filter(pilot=True).order_by("ordinal")] == first


def test_it_publishes_the_pilot_beside_the_study(platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        pilot = publish_posting(study, platform, "live", pilot=True, places=5, site=sim.url)
        assert pilot.pilot and pilot.places == 5 and room(study) == 12 and room(study, pilot=True) == 0
        main = publish_posting(study, platform, "live", places=12, site=sim.url)
        assert main.pk != pilot.pk and main.places == 12
        assert spec_of(main).excluded == (pilot.external_id,)
        assert ensure_pilot(study, 2, silent) == 2 and Slot.objects.filter(pilot=True).count() == 7


@pytest.mark.both_databases("constraints")
def test_it_frees_what_was_rehearsed_when_the_study_goes_live() -> None:
    study = study_of()
    with simulated("prolific") as sim:
        rehearsal = publish(study, "prolific", sim, places=6)
        held(rehearsal, sim, "passed")
        assert not look(rehearsal).error
        assert room(study) == 6 and room(study, before="live") == 12
        live = publish_posting(study, "prolific", "live", site=sim.url)
        rehearsal.refresh_from_db()
        assert live.places == 12 and rehearsal.state == "closed"
        with pytest.raises(StudyError, match="has a live posting, so no simulated people may come"):
            publish(study, "prolific", sim)


def test_it_rehearses_again_in_the_same_slots() -> None:
    study = study_of()
    with simulated("prolific") as sim:
        held(publish(study, "prolific", sim), sim, "passed")
    with simulated("prolific") as sim:
        again = publish(study, "prolific", sim)
        assert again.places == 12 and Posting.objects.filter(state="open").get() == again
        assert Session.objects.filter(origin="simulated").count() == 1


def test_it_keeps_the_pilot_out_of_every_count_of_people() -> None:
    study = study_of(1)
    plan_pilot(study, 3, silent)
    with simulated("prolific") as sim:
        posting = publish_posting(study, "prolific", "live", pilot=True, places=3, site=sim.url)
        row = held(posting, sim)
        assert row.session is not None
        slot = Slot.objects.get(pilot=True, arm="control")
        Slot.objects.filter(holder=row.session).update(holder=None, kept=False)
        Slot.objects.filter(pk=slot.pk).update(holder=row.session, kept=True)
        Session.objects.filter(pk=row.session.pk).update(slot=slot)
    assert [c.kept for c in study_facts(study, "human").conditions] == [0, 0, 0]
    pilots = study_facts(study, "pilot")
    assert [(c.wanted, c.kept) for c in pilots.conditions] == [(1, 0), (1, 1), (1, 0)]
    assert seal_of(pilots, "pilot").sealed and room(study) == 3
    assert sum(counts["passed"] for counts in slot_counts(study).values()) == 0
    assert read_frames(study).origins == ["pilot"]
    with pytest.raises(ExportError, match="No session has the origin 'human'"):
        choose_sessions(study, Request(cleaned=True))
    with pytest.raises(ReportError, match="no sessions of origin 'human'"):
        make_report(study, "human")
