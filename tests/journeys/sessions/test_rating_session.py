"""A session of ratings in Chromium against the production server, by the keyboard alone: what was pressed is
what is stored and exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.tables.response_reader import read_frames
from experiments.models import Response, Session, Study
from tests.experiments.protocols import RATING, TWO_MODELS, as_in_studies, opened
from tests.journeys.sessions.visitor import FORM, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.journeys.conftest import Site

pytestmark = pytest.mark.browser

ASKED = ["q1", "q2", "q3", "q4"]
FOUR = (
    as_in_studies(RATING)
    .replace('["q1", "q2"]', json.dumps(ASKED))
    .replace("[checks]", "min_view_ms = 50\n[checks]")
)
POINTS = ("5", "1", "4", "2", "3")


@pytest.fixture
def study(transactional_db: None, store_folder: Path, tmp_path: Path) -> Study:
    return opened(tmp_path / "r", "ratings", "rating", FOUR, sources=TWO_MODELS)


class Rater(Visitor):
    """Answers forms by digits: other points for each explanation, and the first question twice."""

    def rate(self) -> dict[str, int]:
        number = sum(1 for value in self.pressed if value.startswith("{"))
        names = [
            str(scale.get_attribute("data-question")) for scale in self.page.locator(f"{FORM} .scale").all()
        ]
        taken = {name: POINTS[(number + place) % 5] for place, name in enumerate(names)}
        self.tab_to(f'{FORM} [data-question="{names[0]}"] input')
        self.page.keyboard.press("Space")
        for key in taken.values():
            self.page.keyboard.press(key)
        self.page.locator(f"{FORM} .button.primary").wait_for()
        self.leave(".rating")
        self.page.keyboard.press("Enter")
        return {name: int(key) for name, key in taken.items()}

    def answer(self) -> None:
        if self.page.locator(FORM).count():
            self.pressed.append(json.dumps(self.rate()))
        else:
            super().answer()


def test_the_answers_of_the_keyboard_are_those_that_are_stored(
    study: Study, server: Site, page: Page
) -> None:
    practice = [row["answer"] for row in study.practice if not row["example"]]
    rater = Rater(page, practice, {})
    rater.arrive(f"{server.url}/join/ratings/?person=ada&submission=s1")
    rater.walk("finish")
    assert Session.objects.get().state == "finished"
    rows = [row for row in Response.objects.order_by("position") if row.value.keys() != {"choice"}]
    ratings = [json.loads(value) for value in rater.pressed if value.startswith("{")]
    assert len(ratings) == 8 and [row.value for row in rows] == ratings
    # In an order of this person's, the same on every page.
    (shown,) = {tuple(each["id"] for each in row.context["questions"]) for row in rows}
    for row in rows:
        noted = row.context["questions"]
        assert sorted(shown) == sorted(row.value) == ASKED
        times = [each["ms"] for each in noted]
        assert times == sorted(times) and times[0] > 0 and times[-1] <= row.rt_ms
        # The space bar took 1 of the first question; the digit then another, or the same.
        assert [each["changes"] for each in noted] == [int(row.value[shown[0]] != 1), 0, 0, 0]
        assert row.context["input"] == "keyboard" and row.context["image_px"] > 0
    table = read_frames(study).trials
    told = table[table["kind"] == "rate"].sort_values("trial_index")
    for cells, row in zip(told.to_dict("records"), rows, strict=True):
        for name in ("ms", "changes"):
            noted = {each["id"]: each[name] for each in row.context["questions"]}
            assert json.loads(cells[f"question_{name}"]) == noted
