"""Study files of the other protocols on pictures and a model in closed form, and people who take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from django.utils import timezone

from experiments.kinds import get_kind
from experiments.kinds.base import TrialView
from experiments.models import Study
from experiments.selectors import cards_of
from tests.snapshots import once
from tests.world import CLASSES, Person, draw_images, opened_study

COMMON = """
title = "{slug}"
seed = 3
sittings_max = {sittings}
[stimuli]
items = {items}
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
USES = {"known": 2, "blank": 1, "tuning": 1}
"""How many pictures of each truth and answer of the model are no tasks, in a study of two stages."""
TASKS_PER_CELL = 4
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
picture_px = 64
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
picture_px = 64
role = "solve"
grid = 4
tasks_per_list = 10
known_per_list = 4
[checks]
instructed = 0
[[conditions]]
name = "people"
role = "source"
[[conditions]]
name = "saliency"
role = "method"
explainer = { name = "saliency" }
"""
REVIEW = """
[design]
picture_px = 64
role = "review"
solutions_from = "tasks"
tasks_per_run = 4
lures_per_run = 2
known_per_run = 2
alone_per_run = 2
[checks]
instructed = 0
[[conditions]]
name = "people"
role = "source"
slots = 3
[[conditions]]
name = "saliency"
role = "method"
slots = 3
"""
LABELS = """
[design]
picture_px = 64
role = "review"
solutions_from = "labels"
runs = 1
tasks_per_run = 4
lures_per_run = 2
known_per_run = 2
[checks]
instructed = 0
[[conditions]]
name = "labels"
role = "source"
slots = 3
[[conditions]]
name = "predicted"
role = "method"
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
    folder: Path,
    slug: str,
    paradigm: str,
    tables: str,
    *,
    sources: str = ONE,
    sittings: int = 1,
    uses: Mapping[str, int] = {},
) -> Path:
    """A study file with its texts and pictures; so many of each cell have another use than a task."""
    draw_images(folder, per_cell=TASKS_PER_CELL + sum(uses.values()))
    if uses:
        marked = [use for use, count in uses.items() for _ in range(count)]
        lines = [
            f"{truth}/{predicted}-{number:02d}.png,{use}"
            for truth, predicted in product(CLASSES, CLASSES)
            for number, use in enumerate(marked)
        ]
        (folder / "images" / "uses.csv").write_text("\n".join(["image,use", *lines]))
    for name in ("consent", "instructions", "debrief"):
        (folder / f"{name}.md").write_text(f"# {name}\n")
    items = 4 * TASKS_PER_CELL if uses else 8
    common = COMMON.format(slug=slug, sources=sources, sittings=sittings, items=items)
    path = folder / "study.toml"
    path.write_text(f'slug = "{slug}"\nparadigm = "{paradigm}"\n{common}{tables}')
    return path


def as_in_studies(tables: str) -> str:
    """With pictures as large as in studies: a browser looks at them."""
    return tables.replace("picture_px = 64\n", "picture_px = 320\n")


def opened(folder: Path, slug: str, paradigm: str, tables: str, **more: Any) -> Study:
    return opened_study(write(folder, slug, paradigm, tables, **more))


def staged(
    folder: Path, slug: str, tables: str, change: Callable[[Path], None] = lambda folder: None
) -> Study:
    """A stage of a blind review, open, on pictures of every use; `change` may still change its files."""
    return opened_study(stage_file(folder, slug, tables, change))


def stage_file(
    folder: Path, slug: str, tables: str, change: Callable[[Path], None] = lambda folder: None
) -> Path:
    path = write(folder, slug, "blind_review", tables, uses=USES)
    change(folder)
    return path


def solved(folder: Path, tables: str = SOLVE, slug: str = "tasks", **more: Any) -> Study:
    """A solve stage whose every list was solved by a person of its own, closed."""

    def make(path: Path) -> Study:
        study = opened_study(path)
        for number in range(study.slots.count()):
            take_part(Person(f"{slug}-{number}", slug=slug), seen)
        Study.objects.filter(pk=study.pk).update(state="closed", closed_at=timezone.now())
        study.refresh_from_db()
        return study

    return once(stage_file(folder, slug, tables, **more), "solved", make)


def seen(trial: TrialView) -> dict[str, Any]:
    """What a person answers who sees what is there: of a picture its truth, with cells of the half in which
    the light is."""
    if trial.kind != "solve":
        return dict(get_kind(trial.kind).preview(trial))
    side, half = int(trial.extra["grid"]), 0 if trial.predicted in ("left", "class_1") else 1
    area = 2 + trial.position % 3
    cells = [row * side + half * (side // 2) + column for row in range(side // 2) for column in range(2)]
    return {"choice": trial.truth, "region": sorted(trial.extra.get("planted") or cells[:area])}


def take_part(person: Person, values: Callable[[TrialView], dict[str, Any]] | None = None) -> None:
    """Every gate, then every trial with the value that is given for it, its kind's own preview if none is,
    then the end."""
    person.arrive()
    answer(person, values=values)
    assert person.finish().status_code == 200


def answer(
    person: Person, most: int | None = None, values: Callable[[TrialView], dict[str, Any]] | None = None
) -> None:
    """The next trials: at most so many, or all."""
    left = most
    while person.state["step"] == "trials" and left != 0:
        session = person.session()
        assert session.slot is not None
        cards = {str(card.id): card for card in cards_of(session.slot, session.study)}
        for trial in person.state["block"]["trials"]:
            if trial["position"] < person.state["next"] or left == 0:
                continue
            view = cards[trial["id"]].view
            value = values(view) if values else dict(get_kind(view.kind).preview(view))
            value = {"choice": view.expected} if view.check else value
            response = {"trial": trial["id"], "value": value, "rt_ms": 900, "shown_ms": 900}
            reply = person.respond(response)
            assert reply.status_code == 200, reply.content
            left = left if left is None else left - 1
        person.refresh()
