"""People and what surrounds them: habits from a seed, messages, groups, filters, workspaces."""

from collections import Counter

import pytest

from crowd.rehearsal.people import HABITS, SHARES, Habits
from tests.crowd.rehearsal.prolific_client import researcher

pytestmark = pytest.mark.pure


def test_it_draws_habits_in_their_declared_shares() -> None:
    count = 4000
    counts = Counter(Habits(seed=2).of(index) for index in range(count))
    assert set(counts) == set(HABITS)
    for habit, share in SHARES.items():
        spread = (share * (1 - share) / count) ** 0.5
        assert abs(counts[habit] / count - share) < 4.5 * spread


def test_it_gives_the_same_person_the_same_habit() -> None:
    first, again = Habits(seed=5), Habits(seed=5)
    assert [first.of(n) for n in range(50)] == [again.of(n) for n in range(50)]
    assert first.leaves_after_share(3) == again.leaves_after_share(3)
    assert all(0.1 <= first.leaves_after_share(n) <= 0.9 for n in range(50))
    assert [Habits(seed=6).of(n) for n in range(200)] != [first.of(n) for n in range(200)]


def test_it_takes_other_shares_and_refuses_wrong_ones() -> None:
    assert {Habits(1, {"submits_twice": 1.0}).of(n) for n in range(20)} == {"submits_twice"}
    assert {Habits(1, {}).of(n) for n in range(20)} == {"plain"}
    with pytest.raises(ValueError, match="sings"):
        Habits(1, {"sings": 0.1})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="1.2"):
        Habits(1, {"comes_back": 0.6, "wrong_code": 0.6})
    with pytest.raises(ValueError):
        Habits(1, {"comes_back": -0.1})


def test_it_sends_the_people_it_has_before_making_more() -> None:
    with researcher() as client:
        people = client.verb("people", count=2)["people"]
        study = client.published()
        came = [client.verb("take", posting=study) for _ in range(3)]
        assert [row["person"] for row in came[:2]] == [row["person"] for row in people]
        assert [row["habit"] for row in came[:2]] == [row["habit"] for row in people]
        assert came[2]["person"] not in {row["person"] for row in people}


def test_it_carries_messages_both_ways() -> None:
    with researcher() as client:
        study = client.published()
        person = client.verb("take", posting=study)["person"]
        sent = {"recipient_id": person, "body": "Thank you.", "study_id": study}
        assert client.post("messages/", sent).status_code == 204
        assert client.post("messages/", {**sent, "recipient_id": "nobody"}).status_code == 400
        client.verb("message", person=person, body="The page froze.", posting=study)
        assert client.get("messages/").status_code == 400
        both = client.get("messages/", user_id=person).json()["results"]
        assert [message["body"] for message in both] == ["Thank you.", "The page froze."]
        [letter] = client.get("messages/unread/").json()["results"]
        assert (letter["sender_id"], letter["data"]["study_id"]) == (person, study)
        assert client.get("messages/unread/").json()["results"] == [letter]  # it stays unread
        assert client.verb("state")["letters"] == {person: ["Thank you."]}


def test_it_looks_back_thirty_days_for_messages() -> None:
    with researcher() as client:
        client.verb("message", person=client.verb("people")["people"][0]["person"], body="Hello")
        client.verb("advance", seconds=86_400)
        for after, status, count in (
            ("2026-01-05T00:00:00Z", 200, 1),
            ("2026-01-06T00:00:00+00:00", 200, 0),
            ("2025-12-01T00:00:00Z", 400, 0),
        ):
            answer = client.get("messages/", created_after=after)
            assert answer.status_code == status
            assert len(answer.json().get("results", [])) == count


def test_it_writes_to_many_and_to_groups() -> None:
    with researcher() as client:
        study = client.published()
        people = [row["person"] for row in client.verb("people", count=3)["people"]]
        client.post("messages/bulk/", {"ids": people[:2], "body": "One", "study_id": study})
        group = client.post(
            "participant-groups/", {"name": "g", "workspace_id": "rehearsal", "participant_ids": people[1:]}
        ).json()["id"]
        client.post("messages/participant-group/", {"participant_group_id": group, "body": "Two"})
        assert client.verb("state")["letters"] == {
            people[0]: ["One"],
            people[1]: ["One", "Two"],
            people[2]: ["Two"],
        }


def test_it_keeps_groups_as_sets_that_patch_replaces() -> None:
    with researcher() as client:
        group = client.post("participant-groups/", {"name": "seen", "workspace_id": "rehearsal"}).json()["id"]
        path = f"participant-groups/{group}/participants/"

        def members() -> list[str]:
            return [member["participant_id"] for member in client.get(path).json()["results"]]

        client.post(path, {"participant_ids": ["a1", "b2", "a1"]})
        client.post(path, {"participant_ids": ["b2", "c3"]})
        assert members() == ["a1", "b2", "c3"]
        client.http.request("DELETE", f"/api/v1/{path}", json={"participant_ids": ["b2", "stranger"]})
        assert members() == ["a1", "c3"]
        client.patch(f"participant-groups/{group}/", {"participant_ids": ["z9"]})
        assert members() == ["z9"]
        rule = {"filter_id": "participant_group_allowlist", "selected_values": [group]}
        study = client.published(filters=[rule])
        person = client.verb("people")["people"][0]["person"]
        barred = client.http.post("/_simulator/take", json={"posting": study, "person": person})
        assert barred.status_code == 409
        client.post(path, {"participant_ids": [person]})
        assert client.verb("take", posting=study, person=person)["person"] == person
        assert client.delete(f"participant-groups/{group}/").status_code == 204
        assert client.get(f"participant-groups/{group}/").status_code == 404


def test_it_counts_few_people_as_none() -> None:
    with researcher() as client:
        client.verb("people", count=24)
        asked = {"filters": [], "workspace_id": "rehearsal"}
        assert client.post("eligibility-count/", asked).json() == {"count": 0}
        client.verb("people", count=1)
        assert client.post("eligibility-count/", asked).json() == {"count": 25}


def test_it_knows_its_workspace_and_projects() -> None:
    with researcher() as client:
        assert [workspace["id"] for workspace in client.get("workspaces/").json()["results"]] == ["rehearsal"]
        assert client.get("workspaces/elsewhere/balance/").status_code == 404
        names = [project["id"] for project in client.get("workspaces/rehearsal/projects/").json()["results"]]
        assert names == ["first-project", "rehearsal"]
        assert client.get("projects/elsewhere/studies/").status_code == 404
        kinds = {
            row["filter_id"] for row in client.get("filters/", workspace_id="rehearsal").json()["results"]
        }
        assert {"age", "handedness", "previous_studies_blocklist"} <= kinds
