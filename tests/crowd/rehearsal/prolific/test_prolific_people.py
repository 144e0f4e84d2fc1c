"""People and what surrounds them: habits from a seed, messages, groups, workspaces."""

from collections import Counter

import pytest

from crowd.rehearsal.habits import HABITS, SHARES, Habits
from tests.crowd.rehearsal.prolific.prolific_client import researcher

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
        [letter] = client.get("messages/unread/").json()["results"]
        assert (letter["sender_id"], letter["data"]["study_id"]) == (person, study)
        assert client.get("messages/unread/").json()["results"] == [letter]  # it stays unread
        assert client.verb("state")["letters"] == {person: ["Thank you."]}


def test_it_lets_in_and_keeps_out_by_group() -> None:
    with researcher() as client:
        inside, outside = (row["person"] for row in client.verb("people", count=2)["people"])
        group = client.verb("group", name="seen", people=[inside])["group"]
        for name, barred in (("allowlist", outside), ("blocklist", inside)):
            rule = {"filter_id": f"participant_group_{name}", "selected_values": [group]}
            study = client.published(filters=[rule])
            asked = {"posting": study, "person": barred}
            assert client.http.post("/_simulator/take", json=asked).status_code == 409
            other = inside if barred == outside else outside
            assert client.verb("take", posting=study, person=other)["person"] == other


def test_it_counts_few_people_as_none() -> None:
    with researcher() as client:
        client.verb("people", count=24)
        asked = {"filters": [], "workspace_id": "rehearsal"}
        assert client.post("eligibility-count/", asked).json() == {"count": 0}
        client.verb("people", count=1)
        assert client.post("eligibility-count/", asked).json() == {"count": 25}
        some = [row["person"] for row in client.verb("people", count=30)["people"]]
        group = client.verb("group", name="some", people=some)["group"]
        rule = {"filter_id": "participant_group_allowlist", "selected_values": [group]}
        assert client.post("eligibility-count/", {**asked, "filters": [rule]}).json() == {"count": 30}


def test_it_knows_its_workspace_and_projects() -> None:
    with researcher() as client:
        assert client.get("workspaces/rehearsal/balance/").status_code == 200
        assert client.get("workspaces/elsewhere/balance/").status_code == 404
        assert client.get("projects/rehearsal/studies/").json()["results"] == []
        assert client.get("projects/elsewhere/studies/").status_code == 404
