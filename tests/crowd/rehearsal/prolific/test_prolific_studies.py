"""Studies on the simulated Prolific: drafts, publishing, places, stopping."""

import pytest

from tests.crowd.rehearsal.prolific.prolific_client import (
    CODES,
    DONE,
    SCREEN_OUT,
    SCREENED,
    code,
    researcher,
    said,
)
from tests.crowd.rehearsal.prolific.prolific_client import study as documented

pytestmark = pytest.mark.pure


def test_it_makes_a_draft_each_time_it_is_asked() -> None:
    with researcher() as client:
        first, second = client.draft(), client.draft()
        assert first != second
        rows = client.get("projects/rehearsal/studies/").json()["results"]
        assert [row["internal_name"] for row in rows] == ["wolf-1", "wolf-1"]
        read = client.get(f"studies/{first}/").json()
        assert read["status"] == "UNPUBLISHED"
        assert read["completion_codes"] == CODES
        assert all("metadata" not in row for row in rows)


def test_it_files_a_study_without_project_under_the_first_one() -> None:
    with researcher() as client:
        client.draft(project=None)
        assert client.get("projects/rehearsal/studies/").json()["meta"]["count"] == 0
        assert client.get("projects/first-project/studies/").json()["meta"]["count"] == 1
        assert client.post("studies/", documented(project="elsewhere")).status_code == 400


def test_it_deletes_drafts_only() -> None:
    with researcher() as client:
        draft, public = client.draft(), client.published()
        assert client.delete(f"studies/{draft}/").status_code == 204
        assert client.get(f"studies/{draft}/").status_code == 404
        assert client.delete(f"studies/{public}/").status_code == 400
        assert client.status(public) == "ACTIVE"


@pytest.mark.parametrize(
    "changes",
    [
        {"maximum_allowed_time": 28},
        {"completion_codes": [*CODES, CODES[0]]},
        {"completion_codes": [code("A", "COMPLETED", {"action": "DYNAMIC_PAYMENT"})]},
        {
            "completion_codes": [
                code("A", "COMPLETED", {"action": "AUTOMATICALLY_APPROVE"}, {"action": "MANUALLY_REVIEW"})
            ]
        },
        {"completion_codes": [SCREEN_OUT], "reward": 20},
        {"access_details": [{"external_url": "https://lab.example/a", "total_allocation": 2}]},
        {
            "completion_codes": [
                code("A", "OTHER", {"action": "ADD_TO_PARTICIPANT_GROUP", "participant_group": "0" * 24})
            ]
        },
    ],
    ids=[
        "too little time",
        "same code",
        "payment by participant",
        "two decisions",
        "screen-out",
        "shares",
        "group",
    ],
)
def test_it_refuses_a_draft_that_contradicts_itself(changes: dict[str, object]) -> None:
    with researcher() as client:
        answer = client.post("studies/", documented(**changes))
        assert answer.status_code == 400
        assert client.get("projects/rehearsal/studies/").json()["meta"]["count"] == 0


def test_it_moves_through_the_documented_states_and_no_others() -> None:
    with researcher() as client:
        study = client.draft()
        for action in ("PAUSE", "START", "STOP", "CANCEL_PUBLISH"):
            assert client.move(study, action).status_code == 400
        assert client.move(study, "PUBLISH").json()["status"] == "ACTIVE"
        assert client.move(study, "PUBLISH").status_code == 400
        assert client.move(study, "PAUSE").json()["status"] == "PAUSED"
        assert client.http.post("/_simulator/take", json={"posting": study}).status_code == 409
        assert client.move(study, "START").json()["status"] == "ACTIVE"
        assert client.move(study, "STOP").json()["status"] == "COMPLETED"
        assert client.move(study, "START").status_code == 400


def test_it_schedules_a_study() -> None:
    with researcher() as client:
        study = client.draft()
        path = f"studies/{study}/transition/"
        assert client.post(path, {"action": "SCHEDULE_PUBLISH"}).status_code == 400
        sent = {"action": "SCHEDULE_PUBLISH", "publish_at": "2026-02-01T09:00:00Z"}
        assert client.post(path, sent).json()["status"] == "SCHEDULED"
        assert client.move(study, "CANCEL_PUBLISH").json()["status"] == "UNPUBLISHED"


def test_it_publishes_after_a_while_where_it_is_slow() -> None:
    with researcher(publish_delay_s=60) as client:
        study = client.draft()
        assert client.move(study, "PUBLISH").json()["status"] == "PUBLISHING"
        client.verb("advance", seconds=60)
        assert client.status(study) == "ACTIVE"


def test_it_stops_into_either_state_while_work_is_open() -> None:
    seen = set()
    with researcher(seed=3) as client:
        for _ in range(12):
            study = client.published()
            client.take(study)
            client.move(study, "STOP")
            seen.add(client.status(study))
    assert seen == {"COMPLETED", "AWAITING REVIEW"}


def test_it_needs_the_money_for_all_places_and_slots_to_publish() -> None:
    with researcher(fee_bp=2500, vat_bp=2000, balance_cents=779) as client:
        assert client.get("workspaces/rehearsal/balance/").json()["available_balance"] == 779
        # 3 places at 200 + 50 + 10 are 780.
        study = client.draft()
        assert client.move(study, "PUBLISH").status_code == 400
        assert client.status(study) == "UNPUBLISHED"
        client.verb("fund", cents=1)
        assert client.move(study, "PUBLISH").status_code == 200
        balance = client.get("workspaces/rehearsal/balance/").json()
        assert (balance["total_balance"], balance["available_balance"]) == (780, 0)
        assert client.move(client.draft(), "PUBLISH").status_code == 400


def test_it_refuses_pay_under_the_minimum() -> None:
    with researcher() as client:
        assert client.move(client.draft(reward=99), "PUBLISH").status_code == 400
        assert client.move(client.draft(reward=100), "PUBLISH").status_code == 200
    with researcher(currency="USD") as client:
        assert client.move(client.draft(reward=133), "PUBLISH").status_code == 400
        assert client.move(client.draft(reward=134), "PUBLISH").status_code == 200


def test_it_freezes_a_published_study_but_for_more_places() -> None:
    with researcher() as client:
        study = client.published()
        for frozen in (
            {"reward": 300},
            {"external_study_url": "https://lab.example/other"},
            {"completion_codes": CODES[:1]},
            {"total_available_places": 2},
        ):
            answer = client.patch(f"studies/{study}/", frozen)
            assert answer.status_code == 400
            assert list(said(answer)) == list(frozen)
        changed = client.patch(f"studies/{study}/", {"total_available_places": 4, "internal_name": "wolf-2"})
        assert changed.json()["total_available_places"] == 4
        assert client.get(f"studies/{study}/").json()["internal_name"] == "wolf-2"


def test_it_revives_a_completed_study_when_places_are_added() -> None:
    with researcher() as client:
        study = client.published(total_available_places=1)
        submission = client.finished(study)
        assert client.status(study) == "AWAITING REVIEW"
        client.decide(submission, "APPROVE")
        assert client.status(study) == "COMPLETED"
        client.patch(f"studies/{study}/", {"total_available_places": 2})
        assert client.status(study) == "ACTIVE"
        assert client.take(study)


def test_it_refuses_places_that_the_balance_cannot_pay() -> None:
    with researcher(fee_bp=0, balance_cents=799) as client:
        study = client.published()
        assert client.patch(f"studies/{study}/", {"total_available_places": 4}).status_code == 400
        assert client.get(f"studies/{study}/").json()["total_available_places"] == 3


def test_it_opens_returned_and_timed_out_places_again_while_active() -> None:
    with researcher() as client:
        study = client.published(total_available_places=2)
        first, second = client.take(study), client.take(study)
        assert client.http.post("/_simulator/take", json={"posting": study}).status_code == 409
        client.verb("return", submission=first)
        third = client.take(study)
        client.verb("advance", seconds=30 * 60)
        assert [client.work(submission)["status"] for submission in (second, third)] == [
            "TIMED-OUT",
            "TIMED-OUT",
        ]
        assert client.take(study) and client.take(study)


def test_it_awaits_review_once_all_places_are_finished_and_completes_once_all_are_decided() -> None:
    with researcher() as client:
        study = client.published(total_available_places=2)
        done = [client.finished(study)]
        assert client.status(study) == "ACTIVE"
        done.append(client.finished(study))
        assert client.status(study) == "AWAITING REVIEW"
        client.decide(done[0], "APPROVE")
        assert client.status(study) == "AWAITING REVIEW"
        client.decide(done[1], "REJECT", message="x" * 100, rejection_category="NO_DATA")
        assert client.status(study) == "COMPLETED"


def test_it_starts_again_from_review_to_replace_who_left() -> None:
    with researcher() as client:
        study = client.published(total_available_places=2)
        first, _ = client.finished(study), client.finished(study)
        assert client.move(study, "START").status_code == 400
        client.verb("return", submission=first)
        assert client.status(study) == "AWAITING REVIEW"
        assert client.move(study, "START").json()["status"] == "ACTIVE"
        assert client.take(study)


def test_it_pauses_when_the_screen_out_slots_are_used() -> None:
    with researcher(fee_bp=0) as client:
        study = client.published(completion_codes=[*CODES, SCREEN_OUT])
        out = [client.finished(study, SCREENED) for _ in range(2)]
        assert client.status(study) == "PAUSED"
        state = client.verb("state")
        assert [state["submissions"][submission]["state"] for submission in out] == ["SCREENED OUT"] * 2
        assert [state["submissions"][submission]["reward_paid_cents"] for submission in out] == [20, 20]
        assert state["paid"]["screen_out"] == 40
        assert client.move(study, "START").status_code == 400
        more = {**SCREEN_OUT, "actions": [{**SCREEN_OUT["actions"][0], "slots": 3}]}
        assert client.patch(f"studies/{study}/", {"completion_codes": [*CODES, more]}).status_code == 200
        fewer = {**SCREEN_OUT, "actions": [{**SCREEN_OUT["actions"][0], "slots": 1}]}
        assert client.patch(f"studies/{study}/", {"completion_codes": [*CODES, fewer]}).status_code == 400
        assert client.move(study, "START").json()["status"] == "ACTIVE"
        assert state["postings"][study]["free"] == 3  # a screened-out person holds a slot, not a place


def test_it_bars_who_took_part_in_an_excluded_study() -> None:
    with researcher() as client:
        first = client.published()
        person = client.verb("take", posting=first)["person"]
        rule = {"filter_id": "previous_studies_blocklist", "selected_values": [first]}
        second = client.published(filters=[rule])
        refused = client.http.post("/_simulator/take", json={"posting": second, "person": person})
        assert refused.status_code == 409
        assert client.verb("take", posting=second)["person"] != person


def test_it_shows_a_passing_status_now_and_then_if_asked() -> None:
    with researcher(transient_share=0.5) as client:
        study = client.published()
        seen = {client.status(study) for _ in range(40)}
        assert seen == {"ACTIVE", "PROCESSING"}
        assert client.verb("state")["postings"][study]["state"] == "ACTIVE"


def test_it_approves_at_once_where_the_code_says_so() -> None:
    auto = code(DONE, "COMPLETED", {"action": "AUTOMATICALLY_APPROVE"})
    with researcher() as client:
        study = client.published(completion_codes=[auto])
        submission = client.finished(study)
        assert client.work(submission)["status"] == "APPROVED"
        assert client.verb("state")["submissions"][submission]["reward_paid_count"] == 1
