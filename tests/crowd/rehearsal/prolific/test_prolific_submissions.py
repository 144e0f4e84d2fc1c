"""Submissions on the simulated Prolific: how they come, finish, leave and are decided."""

import pytest

from tests.crowd.rehearsal.prolific.prolific_client import DECLINED, DONE, code, researcher, said

pytestmark = pytest.mark.pure

NOT_YET = "x" * 99
ENOUGH = "x" * 100


def test_it_is_active_right_after_the_redirect_and_awaits_review_later() -> None:
    with researcher() as client:
        study = client.published()
        submission = client.take(study)
        client.verb("complete", submission=submission, code=DONE)
        assert client.work(submission)["status"] == "ACTIVE"
        assert client.decide(submission, "APPROVE").status_code == 400
        client.verb("advance", seconds=4)
        assert client.work(submission)["status"] == "ACTIVE"
        client.verb("advance", seconds=1)
        assert client.work(submission)["status"] == "AWAITING REVIEW"
        assert client.decide(submission, "APPROVE").json()["status"] == "APPROVED"


def test_it_names_things_differently_in_lists_and_details() -> None:
    with researcher() as client:
        study = client.published()
        submission = client.finished(study)
        [row] = client.get("submissions/", study=study).json()["results"]
        detail = client.work(submission)
        assert set(row) == {
            "id", "participant_id", "status", "started_at", "completed_at", "study_code", "has_siblings",
            "return_requested",
        }  # fmt: skip
        assert set(detail) == {
            "id", "participant", "study_id", "parent_study_id", "status", "started_at", "completed_at",
            "entered_code", "bonus_payments", "return_requested",
        }  # fmt: skip
        assert row["participant_id"] == detail["participant"]
        assert row["study_code"] == detail["entered_code"] == DONE


def test_it_holds_a_reserved_place_for_ten_minutes() -> None:
    with researcher() as client:
        study = client.published(total_available_places=1)
        submission = client.take(study, reserve=True)
        assert client.work(submission)["status"] == "RESERVED"
        client.verb("advance", seconds=599)
        assert client.http.post("/_simulator/take", json={"posting": study}).status_code == 409
        client.verb("advance", seconds=1)
        assert client.work(submission)["status"] == "RETURNED"
        reserved = client.take(study, reserve=True)
        client.verb("start", submission=reserved)
        client.verb("advance", seconds=600)
        assert client.work(reserved)["status"] == "ACTIVE"


def test_it_times_out_after_the_maximum_time_and_notes_a_late_code() -> None:
    with researcher() as client:
        study = client.published()
        late, early = client.take(study), client.take(study)
        client.verb("advance", seconds=30 * 60 - 1)
        client.verb("complete", submission=early, code=DONE)
        client.verb("advance", seconds=5)
        assert client.work(early)["status"] == "AWAITING REVIEW"
        assert client.work(late)["status"] == "TIMED-OUT"
        client.verb("complete", submission=late, code=DONE)
        client.verb("advance", seconds=60)
        assert (client.work(late)["status"], client.work(late)["entered_code"]) == ("TIMED-OUT", DONE)
        assert client.decide(late, "APPROVE").status_code == 400


def test_it_takes_one_code_per_submission() -> None:
    with researcher() as client:
        submission = client.finished(client.published())
        again = client.http.post("/_simulator/complete", json={"submission": submission, "code": "OTHER"})
        assert again.status_code == 409
        assert client.work(submission)["entered_code"] == DONE


def test_it_leaves_a_code_that_no_one_declared_to_review() -> None:
    with researcher() as client:
        submission = client.finished(client.published(), "NOT-THE-CODE")
        work = client.work(submission)
        assert (work["status"], work["entered_code"]) == ("AWAITING REVIEW", "NOT-THE-CODE")


def test_it_asks_for_a_return_where_the_code_says_so() -> None:
    with researcher() as client:
        submission = client.finished(client.published(), DECLINED)
        work = client.work(submission)
        assert work["status"] == "AWAITING REVIEW"
        assert work["return_requested"] is not None
        client.verb("return", submission=submission)
        assert client.work(submission)["status"] == "RETURNED"


def test_it_keeps_group_membership_as_the_code_says() -> None:
    with researcher() as client:
        group = client.verb("group", name="came")["group"]
        actions = [
            {"action": "MANUALLY_REVIEW"},
            {"action": "ADD_TO_PARTICIPANT_GROUP", "participant_group": group},
        ]
        study = client.published(completion_codes=[code(DONE, "COMPLETED", *actions)])
        person = client.work(client.finished(study))["participant"]
        assert client.sim.world.groups[group].members == [person]


def test_it_counts_a_place_once_per_person_but_lets_a_returner_come_back() -> None:
    with researcher() as client:
        study = client.published()
        first = client.verb("take", posting=study)
        again = {"posting": study, "person": first["person"]}
        assert client.http.post("/_simulator/take", json=again).status_code == 409
        client.verb("return", submission=first["submission"])
        second = client.verb("take", **again)
        assert second["submission"] != first["submission"]


@pytest.mark.parametrize("action", ["COMPLETE", "RETURN", "START", "SCREEN_OUT", "UNREJECT", "UNRETURN"])
def test_it_offers_no_undescribed_transition(action: str) -> None:
    with researcher() as client:
        submission = client.finished(client.published())
        assert client.decide(submission, action).status_code == 400
        assert client.work(submission)["status"] == "AWAITING REVIEW"


def test_it_rejects_only_with_a_category_and_a_hundred_characters() -> None:
    with researcher() as client:
        submission = client.finished(client.published())
        short = client.decide(submission, "REJECT", message=NOT_YET, rejection_category="FAILED_CHECK")
        assert short.status_code == 400 and list(said(short)) == ["message"]
        bare = client.decide(submission, "REJECT", message=ENOUGH)
        assert bare.status_code == 400 and list(said(bare)) == ["rejection_category"]
        odd = client.decide(submission, "REJECT", message=ENOUGH, rejection_category="BAD_MOOD")
        assert odd.status_code == 400
        assert client.work(submission)["status"] == "AWAITING REVIEW"
        good = client.decide(submission, "REJECT", message=ENOUGH, rejection_category="FAILED_CHECK")
        assert good.json()["status"] == "REJECTED"
        assert client.verb("state")["paid"]["reward"] == 0


def test_it_ignores_the_same_decision_again_and_refuses_another() -> None:
    with researcher() as client:
        study = client.published()
        yes, no = client.finished(study), client.finished(study)
        reject = {"message": ENOUGH, "rejection_category": "LOW_EFFORT"}
        for _ in range(3):
            assert client.decide(yes, "APPROVE").status_code == 200
            assert client.decide(no, "REJECT", **reject).status_code == 200
        assert client.decide(yes, "REJECT", **reject).status_code == 400
        assert client.decide(no, "APPROVE").status_code == 400
        state = client.verb("state")["submissions"]
        assert (state[yes]["reward_paid_count"], state[yes]["reward_paid_cents"]) == (1, 200)
        assert state[no]["reward_paid_count"] == 0


def test_it_approves_untouched_work_after_21_days() -> None:
    with researcher() as client:
        submission = client.finished(client.published())
        client.verb("advance", seconds=21 * 86_400 - 1)
        assert client.work(submission)["status"] == "AWAITING REVIEW"
        client.verb("advance", seconds=1)
        assert client.work(submission)["status"] == "APPROVED"
        assert client.verb("state")["submissions"][submission]["reward_paid_count"] == 1


def test_it_approves_in_bulk_and_passes_over_what_is_not_ready() -> None:
    with researcher() as client:
        study = client.published(total_available_places=4)
        ready, other = client.finished(study), client.published(total_available_places=1)
        elsewhere, active = client.finished(other), client.take(study)
        answer = client.post(
            "submissions/bulk-approve/", {"submission_ids": [ready, elsewhere, active, ready]}
        )
        assert answer.status_code == 200 and isinstance(answer.json(), str)
        client.post("submissions/bulk-approve/", {"submission_ids": [ready]})
        assert [client.work(submission)["status"] for submission in (ready, elsewhere, active)] == [
            "APPROVED",
            "APPROVED",
            "ACTIVE",
        ]
        assert client.verb("state")["submissions"][ready]["reward_paid_count"] == 1


def test_it_approves_in_bulk_later_where_it_is_slow() -> None:
    with researcher(approve_delay_s=120) as client:
        submission = client.finished(client.published())
        client.post("submissions/bulk-approve/", {"submission_ids": [submission]})
        client.post("submissions/bulk-approve/", {"submission_ids": [submission]})
        assert client.work(submission)["status"] == "AWAITING REVIEW"
        client.verb("advance", seconds=120)
        assert client.work(submission)["status"] == "APPROVED"
        assert client.verb("state")["submissions"][submission]["reward_paid_count"] == 1


def test_it_asks_for_a_return() -> None:
    with researcher() as client:
        submission = client.finished(client.published())
        path = f"submissions/{submission}/request-return/"
        asked = client.post(path, {"request_return_reasons": ["Did not finish."]}).json()
        assert set(asked) == {"id", "status", "participant", "return_requested"}
        assert asked["return_requested"] is not None
        client.decide(submission, "APPROVE")
        assert client.post(path, {"request_return_reasons": ["Too late."]}).status_code == 400


def test_it_lists_in_the_order_asked_for() -> None:
    with researcher() as client:
        study = client.published(total_available_places=3)
        came = []
        for _ in range(3):
            came.append(client.take(study))
            client.verb("advance", seconds=1)

        def listed(ordering: str) -> list[str]:
            rows = client.get("submissions/", study=study, ordering=ordering).json()["results"]
            return [row["id"] for row in rows]

        assert listed("started_at") == listed("-started_at")[::-1] == came
