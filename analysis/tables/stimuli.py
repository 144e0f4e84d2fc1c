"""The table `stimuli`: what was shown of every item, and everything that is needed to make it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from experiments.models import Prediction, Rendering, Study
from stimuli.models import Stimulus
from stimuli.spec import RENDERER_VERSION, StimulusSpec, canonical_json

CHUNK = 5000
Row = tuple[object, ...]
RENDERER = "renderer"
"""Key of the renderer's version in the recipe, beside the settings of the study."""
CANVAS = "canvas"
"""Key of the picture that people see in the recipe, if it is another one than the network's view."""


def stimulus_rows(study: Study, conditions: Mapping[int, tuple[str, str]]) -> Iterator[Row]:
    """One row per rendering, in the order of the columns. `conditions`: name and role by primary key."""
    models = _models(study)
    said = _further_predictions(study)
    only = (study.definition.get("stimuli", {}).get("dataset") or {}).get("name", "")
    rows = Rendering.objects.filter(item__study=study).select_related(
        "item__copy_of", "stimulus", "condition"
    )
    rows = rows.prefetch_related("stimulus__measurements")
    for row in rows.order_by("item__key", "condition__ordinal").iterator(CHUNK):
        item, stimulus = row.item, row.stimulus
        spec = StimulusSpec.from_json(stimulus.spec)
        first = (item.predicted, item.confidence)
        yield (
            study.slug,
            item.key,
            *conditions[row.condition_id],
            item.truth,
            *said.get((item.pk, row.condition.predictor), first),
            item.group,
            row.condition.dataset or only,
            canonical_json(spec.explainer.as_json()) if spec.explainer else "",
            spec.image_key,
            stimulus.key,
            stimulus.attribution_key if spec.explainer else "",
            stimulus.picture_digest,
            stimulus.state,
            stimulus.width_px,
            stimulus.height_px,
            canonical_json(stimulus.provenance) if stimulus.provenance else "",
            _metrics(stimulus),
            *_made_of(spec, stimulus.key, models),
            row.rated_as,
            item.copy_of.key if item.copy_of else "",
            canonical_json(item.perturbation) if item.perturbation else "",
        )


def spec_of(row: Mapping[str, str]) -> StimulusSpec:
    """What a row of `stimuli.csv` says is to be made; cells are the exact texts, without guards.

    The spec leads to the picture with the row's `picture_digest`, given the model and the item that
    `predictor_key` and `image_key` name. Raises ValueError if the row was drawn by another renderer.
    """
    recipe = json.loads(row["recipe"])
    version, canvas = recipe.pop(RENDERER), recipe.pop(CANVAS, None)
    if version != RENDERER_VERSION:
        raise ValueError(
            f"This picture was drawn by version {version} of the renderer, here is version "
            f"{RENDERER_VERSION}: use the version of Legible that the manifest names."
        )
    return StimulusSpec.from_json(
        {
            "image_key": row["image_key"],
            "predictor_key": row["predictor_key"],
            "layer": row["predictor_layer"],
            "target": int(row["target"]),
            "explainer": json.loads(row["explainer"]) if row["explainer"] else None,
            "version": int(row["explainer_version"] or 0),
            "seed": int(row["seed"]),
            "render": recipe,
            "precision": row["precision"],
            # Older exports do not have these columns.
            "packages": json.loads(row.get("packages") or "[]"),
            "operator": row.get("operator") or "logit",
            "against": int(row["against"]) if row.get("against") else None,
            "canvas": canvas,
        }
    )


def _made_of(spec: StimulusSpec, key: str, models: Mapping[str, Any]) -> Row:
    """The cells from `predictor_key` on."""
    model = models.get(spec.predictor_key)
    return (
        spec.predictor_key,
        canonical_json(model) if model else "",
        spec.layer,
        _layer(spec),
        spec.target,
        spec.operator,
        spec.against,
        spec.seed,
        spec.precision,
        spec.version if spec.explainer else None,
        canonical_json(_recipe(spec, key)),
        canonical_json(list(spec.packages)) if spec.packages else "",
    )


def _layer(spec: StimulusSpec) -> str:
    """The layer that the method read: its own parameter, else the one that the study names."""
    if spec.explainer is None or "layer" not in spec.explainer.params:
        return ""
    return str(spec.explainer.params["layer"] or spec.layer)


def _recipe(spec: StimulusSpec, key: str) -> dict[str, Any]:
    """How the picture was drawn, on which picture, and by which version of the renderer: that is part of the
    picture's key and is not stored elsewhere."""
    versions = range(RENDERER_VERSION, 0, -1)
    version = next((v for v in versions if spec.picture_key_by(v) == key), None)
    on = {CANVAS: spec.canvas.as_json()} if spec.canvas else {}
    return {**spec.render.as_json(), **on, RENDERER: version}


def _models(study: Study) -> dict[str, dict[str, Any]]:
    """The study's models by key: as the definition names them, with what was noted at their preparation."""
    stimuli = study.definition.get("stimuli", {})
    models = {}
    for source, noted in study.predictor.get("several", {"": study.predictor}).items():
        # A source is "dataset/predictor", without the part that the study has only once.
        named = stimuli.get("predictor") or stimuli.get("predictors", {}).get(source.rpartition("/")[2], {})
        about = {key: noted[key] for key in ("labels", "provenance") if key in noted}
        models[str(noted.get("key", ""))] = {**named, **about}
    return models


def _further_predictions(study: Study) -> dict[tuple[int, str], tuple[str, float]]:
    """(item, model) -> what a further model says of the item, and how surely."""
    rows = Prediction.objects.filter(item__study=study)
    fields = rows.values_list("item_id", "predictor", "predicted", "confidence")
    return {(item, model): (predicted, sure) for item, model, predicted, sure in fields.iterator(CHUNK)}


def _metrics(stimulus: Stimulus) -> str:
    """What was measured, ordered by name and parameters, so that the same numbers give the same cell."""
    measured = [
        {name: getattr(m, name) for name in ("metric", "parameters", "version", "value", "unit", "scores")}
        | ({"tied": m.details["tied"]} if "tied" in m.details else {})
        for m in stimulus.measurements.all()
        if m.measured_at is not None and m.value is not None
    ]
    measured.sort(key=canonical_json)
    return canonical_json(measured) if measured else ""
