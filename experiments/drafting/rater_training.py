"""The planted cases of a study's training as stored pictures, drawn with the study's own recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.item_pictures import store_view
from experiments.gates.training import NAME
from experiments.paradigms import get_paradigm
from experiments.paradigms.rater_training import TrainingQuestion, planted_cases
from experiments.wording.sentence_tables import words_for
from stimuli.render.explanation_drawing import picture_of, said_of
from stimuli.render.rater_training_cases import (
    SHAPES,
    PlantedScene,
    beside,
    copy_picture,
    draw_scene,
    planted_concepts,
    planted_map,
)
from stimuli.render.recipe import RenderSpec
from stimuli.store import Store

if TYPE_CHECKING:
    from stimuli.types import ConceptAttribution, PixelAttribution, Pixels


def store_training(definition: StudyDefinition, store: Store) -> list[dict[str, object]]:
    """Draws and stores the planted cases of raters; returns what their page needs, one row per question. None
    for a paradigm without this gate."""
    if NAME not in get_paradigm(definition.paradigm).gates:
        return []
    words, streams = words_for(definition), Streams(definition.seed)
    names = {shape: words[f"rate_training_concepts_{shape}"].split(", ") for shape in SHAPES}
    rows: list[dict[str, object]] = []
    for number, planted in enumerate(planted_cases(definition)):
        rng = streams("training pictures", number)
        scene = draw_scene(SHAPES[number % len(SHAPES)], rng)
        picture, explanation, said = _draw_question(planted, scene, names, definition.render.spec(), rng)
        rows.append(
            {
                "id": f"training-{number + 1}",
                "example": False,
                "question": planted.question,
                "form": planted.form,
                "case": planted.case,
                "shown": scene.answer,
                "accepted": list(planted.accepted),
                "answer": planted.accepted[-1] if planted.is_high else planted.accepted[0],
                **store_view(picture, store),
                "explanation": {**store_view(explanation, store), "said": said},
            }
        )
    return rows


def _draw_question(
    planted: TrainingQuestion,
    scene: PlantedScene,
    names: Mapping[str, list[str]],
    recipe: RenderSpec,
    rng: np.random.Generator,
) -> tuple[Pixels, Pixels, str]:
    """The picture, its explanation, and what that says in words; both doubled if a pair is compared."""

    def made(case: Any) -> PixelAttribution | ConceptAttribution:
        if planted.form == "concepts":
            return planted_concepts(scene, case, names)
        return planted_map(scene, case, rng)

    if planted.case not in ("same", "moved"):
        attribution = made(planted.case)
        return scene.picture, picture_of(scene.picture, attribution, recipe)[0], said_of(attribution, recipe)
    first, second = made("object"), made("object" if planted.case == "same" else "elsewhere")
    copy = copy_picture(scene.picture, "light" if planted.case == "same" else "strong")
    spoken = (("A", said_of(first, recipe)), ("B", said_of(second, recipe)))
    said = [f"{letter}: {text}" for letter, text in spoken if text]
    drawn = [picture_of(shown, of, recipe)[0] for shown, of in ((scene.picture, first), (copy, second))]
    return beside(scene.picture, copy), beside(*drawn), "; ".join(said)
