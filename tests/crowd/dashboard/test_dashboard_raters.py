"""Raters while ratings are collected: what stands on the page, and what must not."""

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from crowd.dashboard.rows.rater_review import raters_of
from experiments.models import Study, Trial
from tests.analysis import stored
from tests.analysis.stored import rater

ROOT = "/studies/wolf-or-husky/"
PAGE = f"{ROOT}participants/raters/"


@pytest.fixture
def rated(study: Study) -> Study:
    return stored.as_ratings(study, ("q1", "q2", "q3"), has_anchor=True)


def main_of(client: Client, path: str = PAGE) -> str:
    reply = client.get(path)
    assert reply.status_code == 200
    page = reply.content.decode()
    return page[page.index("</nav>", page.index('class="tabs"')) :]


def cells(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>\s*<th scope=\"row\".*?</tr>", page, re.DOTALL)
    plain = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in row] for row in plain]


def test_it_shows_each_rater_with_what_to_look_at_first(rated: Study, desk: Client) -> None:
    calm = rater(rated, "calm", {"q1": 2, "q2": 4, "q3": 5})
    hasty = rater(rated, "hasty", {"q1": 3, "q2": 3, "q3": 3}, rt_ms=900, condition="grad_cam")
    page = main_of(desk)
    assert "2 raters, 1 flagged" in page
    first, second = cells(page)
    done = ("1 of 1", "24")
    # Eight test trials of three questions each; stored people pass their two instructed checks.
    assert first[1:] == ["one answer to all, fast", "person", *done, "100%", "0.3 s", "+0.00", "2 of 2", "–"]
    assert second[1:] == ["", "person", *done, "0%", "2.0 s", "+0.00", "2 of 2", "–"]
    assert f"participants/{hasty.pk}/" in page and f"participants/{calm.pk}/" in page
    assert first[0] == raters_of(rated)[0].name and "How each rater works" in main_of(
        desk, f"{ROOT}participants/"
    )


def test_a_person_s_sittings_are_one_row_and_anchors_are_met_again(rated: Study) -> None:
    first = rater(rated, "first", {"q1": 2, "q2": 4, "q3": 5})
    again = rater(rated, "again", {"q1": 3, "q2": 4, "q3": 1}, minutes=60, verdict="")
    again.participant = first.participant
    again.save()
    (row,) = raters_of(rated)
    assert (row.session, row.finished, row.rater.sittings) == (again.pk, 1, 2)
    assert (row.rater.again, row.rater.again_distance) == (3, 5 / 3)


def test_no_condition_and_no_other_rater_is_in_it(rated: Study, desk: Client) -> None:
    """The row of a person is the same with other answers of others, and with another condition."""
    mine = rater(rated, "mine", {"q1": 2, "q2": 4, "q3": 5})
    before = cells(main_of(desk))[0]
    Trial.objects.filter(slot=mine.slot, condition__isnull=False).update(
        condition=rated.conditions.get(name="grad_cam")
    )
    for number in range(2):
        rater(rated, f"other-{number}", {"q1": 5, "q2": 1, "q3": 1}, condition="grad_cam")
    page = main_of(desk)
    assert before in cells(page)
    for word in ("grad_cam", "Grad-CAM", "control", "baseline", "alpha", "consensus"):
        assert word not in page, word


def test_previews_are_left_out_and_origins_can_be_chosen(rated: Study, desk: Client) -> None:
    for origin in ("preview", "simulated", "human"):
        rater(rated, origin, {"q1": 1, "q2": 2, "q3": 3}, origin=origin)
    assert [row.origin for row in raters_of(rated)] in (["person", "learner"], ["learner", "person"])
    assert [row[2] for row in cells(main_of(desk, f"{PAGE}?origin=simulated"))] == ["learner"]
    assert [row[2] for row in cells(main_of(desk, f"{PAGE}?origin=preview"))] != ["preview"]


@pytest.mark.parametrize("people", [1, 4])
def test_it_asks_the_same_questions_for_few_and_many(
    rated: Study, people: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(people):
        rater(rated, f"r{number}", {"q1": 1, "q2": 2, "q3": 3})
    raters_of(rated)
    with django_assert_num_queries(1):
        assert len(raters_of(rated)) == people


def test_a_study_without_ratings_says_so(study: Study, desk: Client) -> None:
    stored.cast(study)
    assert "explanations are not rated" in main_of(desk)
    assert "How each rater works" not in main_of(desk, f"{ROOT}participants/")
