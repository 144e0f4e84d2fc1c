"""Study files of the other protocols on pictures and a model in closed form, and people who take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.kinds import get_kind
from experiments.models import Study
from experiments.selectors import cards_of
from tests.world import Person, draw_images, opened_study

COMMON = """
title = "{slug}"
seed = 3
sittings_max = {sittings}
[stimuli]
items = 8
balance = "none"
{sources}
[texts]
consent = "consent.md"
instructions = "instructions.md"
debrief = "debrief.md"
[ethics]
contact = "lab@example.org"
[reward]
amount_cents = 100
expected_minutes = 5
"""
ONE = """dataset = { name = "folder", path = "images", people_share = 1.0 }
predictor = { name = "toy", input_px = 32 }
classes = ["left", "right"]"""
TWO_MODELS = """dataset = { name = "folder", path = "images", people_share = 1.0 }
[stimuli.predictors.coarse]
name = "toy"
input_px = 16
[stimuli.predictors.fine]
name = "toy"
input_px = 32"""
RATING = """
[design]
raters_per_explanation = 2
list_length = 8
asked = ["q1", "q2"]
[checks]
instructed = 1
[[conditions]]
name = "saliency-coarse"
role = "method"
predictor = "coarse"
explainer = { name = "saliency" }
[[conditions]]
name = "saliency-fine"
role = "method"
predictor = "fine"
explainer = { name = "saliency" }
"""
SENTENCES = """dataset = { name = "sentences", task = "subject_number", count = 40, model_count = 64 }
predictor = { name = "trained_text", pooling = "mean", epochs = 2 }
classes = ["singular", "plural"]"""
TURING = """
[design]
train_items = 3
test_items = 2
subsets = 1
predictions_per_item_min = 1
[checks]
instructed = 1
[[conditions]]
name = "plain"
role = "baseline"
[[conditions]]
name = "marked"
role = "method"
explainer = { name = "random_text" }
"""
SOLVE = """
[design]
role = "solve"
grid = 4
tasks_per_list = 8
[checks]
instructed = 0
[[conditions]]
name = "people"
role = "source"
"""
REVIEW = """
[design]
role = "review"
solutions_from = "tasks"
tasks_per_run = 2
[checks]
instructed = 0
[[conditions]]
name = "people"
role = "source"
slots = 3
"""
ASSISTED = """
[design]
advice_accuracy = 0.5
test_items = 4
train_items = 2
min_view_ms = 0
picture_px = 64
[checks]
instructed = 1
[[conditions]]
name = "alone"
role = "baseline"
[[conditions]]
name = "plain"
role = "advice"
[[conditions]]
name = "marked"
role = "method"
explainer = { name = "saliency" }
[[conditions]]
name = "unrelated"
role = "control"
explainer = { name = "bottom_up_saliency" }
"""


def write(
    folder: Path, slug: str, paradigm: str, tables: str, *, sources: str = ONE, sittings: int = 1
) -> Path:
    """A study file with its texts and pictures."""
    draw_images(folder, per_cell=4)
    for name in ("consent", "instructions", "debrief"):
        (folder / f"{name}.md").write_text(f"# {name}\n")
    common = COMMON.format(slug=slug, sources=sources, sittings=sittings)
    path = folder / "study.toml"
    path.write_text(f'slug = "{slug}"\nparadigm = "{paradigm}"\n{common}{tables}')
    return path


def opened(folder: Path, slug: str, paradigm: str, tables: str, **more: Any) -> Study:
    return opened_study(write(folder, slug, paradigm, tables, **more))


def take_part(person: Person) -> None:
    """Every gate, then every trial with its kind's own preview value, then the end."""
    person.arrive()
    answer(person)
    assert person.finish().status_code == 200


def answer(person: Person, most: int | None = None) -> None:
    """The next trials, each with its kind's own preview value: at most so many, or all."""
    left = most
    while person.state["step"] == "trials" and left != 0:
        session = person.session()
        assert session.slot is not None
        cards = {str(card.id): card for card in cards_of(session.slot, session.study)}
        for trial in person.state["block"]["trials"]:
            if trial["position"] < person.state["next"] or left == 0:
                continue
            view = cards[trial["id"]].view
            value = {"choice": view.expected} if view.check else get_kind(view.kind).preview(view)
            response = {"trial": trial["id"], "value": dict(value), "rt_ms": 900, "shown_ms": 900}
            reply = person.respond(response)
            assert reply.status_code == 200, reply.content
            left = left if left is None else left - 1
        person.refresh()
