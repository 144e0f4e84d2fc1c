"""A study's own questions: on the page, in the training, in the answers, and in the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.stored_reports.refresh import refresh_report
from experiments.models import Response, Study
from tests.experiments.protocols import RATING, TWO_MODELS, opened, take_part
from tests.world import Person

pytestmark = pytest.mark.django_db
WORDING = """
[[design.wording]]
id = "q3"
text = "Is it plain?"
low = "murky"
high = "plain as day"
[[design.wording]]
id = "doubt"
text = "How much doubt is left?"
low = "no doubt"
high = "nothing but doubt"
reverse = true
[checks]"""
OWN = RATING.replace('asked = ["q1", "q2"]', 'asked = ["q3", "doubt"]').replace("[checks]", WORDING)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return opened(tmp_path, "ratings", "rating", OWN, sources=TWO_MODELS, sittings=2)


def test_the_page_asks_in_the_study_s_own_words(study: Study) -> None:
    ann = Person("ann", slug="ratings")
    ann.arrive()
    rating = next(trial for trial in ann.state["block"]["trials"] if trial["kind"] == "rate")
    told = {row["id"]: (row["text"], row["low"], row["high"]) for row in rating["content"]["questions"]}
    assert told == {
        "q3": ("Is it plain?", "murky", "plain as day"),
        "doubt": ("How much doubt is left?", "no doubt", "nothing but doubt"),
    }


def test_the_training_asks_in_the_same_words_and_not_what_has_no_plain_case(study: Study) -> None:
    ann = Person("ann", slug="ratings")
    ann.arrive("training")
    asked = {(q["prompt"], q["low"], q["high"]) for q in ann.state["page"]["questions"]}
    assert asked == {("Is it plain?", "murky", "plain as day")}


def test_answers_are_stored_as_given_and_turned_in_the_report_alone(study: Study) -> None:
    """Everybody answers 3 but for one 5 of doubt on each page, which is a 1 with high as good."""
    ann = Person("ann", slug="ratings")
    take_part(ann)
    rows = Response.objects.filter(trial__kind="rate")
    assert {tuple(sorted(row.value)) for row in rows} == {("doubt", "q3")}
    rows.update(value={"doubt": 5, "q3": 3})
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    made = refresh_report(study, "human")
    means = {row["question"]: (row["mean_asked"], row["mean"]) for row in made.json["conditions"]}
    assert means == {"doubt": (5, 1), "q3": (3, 3)}
    for words in ("How much doubt is left?", "nothing but doubt", "plain as day", "doubt, reversed"):
        assert words in made.html
    assert "How easy is this explanation" not in made.html
