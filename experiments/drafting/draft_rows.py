"""The rows of a draft: conditions, items, what the models said of them, practice."""

from __future__ import annotations

from experiments.definition.study import StudyDefinition
from experiments.definition.text_tables import practice_of
from experiments.drafting.decoding import NOTE
from experiments.drafting.item_pictures import store_view
from experiments.drafting.material_set import MaterialSet, item_row
from experiments.drafting.model_answers import looks_of, notes_of, stored_look
from experiments.drafting.perturbed_copies import store_copies
from experiments.models import Condition, Item, Prediction, Rendering, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import SurveyItem
from stimuli.spec import Component
from stimuli.store import Store


def store_conditions(study: Study, definition: StudyDefinition) -> dict[str, Condition]:
    return {
        c.name: Condition.objects.create(
            study=study,
            name=c.name,
            role=c.role,
            ordinal=ordinal,
            slots=c.slots,
            explainer=c.explainer.component().as_json() if c.explainer else None,
            dataset=c.dataset,
            predictor=c.predictor,
        )
        for ordinal, c in enumerate(definition.conditions)
    }


def store_items(study: Study, gathered: MaterialSet) -> dict[str, Item]:
    """Every chosen item once, as the first model that has it says, and what the other models say of it."""
    rows: dict[str, Item] = {}
    further: list[tuple[str, str, SurveyItem]] = []
    for source, items in gathered.material.chosen.items():
        for item in items:
            if item.key in rows:
                further.append((item.key, source[1], item))
            else:
                rows[item.key] = item_row(study, item, gathered.views[source][item.key])
    by_key = {item.key: item for item in Item.objects.bulk_create(rows.values())}
    Prediction.objects.bulk_create(
        Prediction(
            item=by_key[key],
            predictor=predictor,
            predicted=item.predicted,
            confidence=item.confidence,
            logits=list(item.logits),
        )
        for key, predictor, item in further
    )
    return by_key | store_copies(study, gathered, by_key)


def store_practice(definition: StudyDefinition, store: Store) -> list[dict[str, object]]:
    """What the practice page needs: neutral pictures, drawn and stored, or sentences if the paradigm's pages
    show texts alone."""
    from stimuli.datasets.practice import practice_pictures, practice_sentences

    if get_paradigm(definition.paradigm).modalities == ("text",):
        sentences = practice_of(definition.language, definition.interface)
        return [
            {"id": name, "text": text, "answer": answer, "example": name.startswith("example")}
            for name, text, answer in practice_sentences(definition.seed, sentences)
        ]
    rows: list[dict[str, object]] = []
    for name, pixels, answer in practice_pictures(definition.seed):
        shown = store_view(pixels, store)
        rows.append({"id": name, "answer": answer, "example": name.startswith("example"), **shown})
    return rows


def predictor_json(definition: StudyDefinition, gathered: MaterialSet) -> dict[str, object]:
    """What the study's page says of its model; every model by name if there are several."""
    looks = looks_of(definition, gathered)
    several = {
        "/".join(filter(None, source)): {
            "key": opened.predictor_key,
            "labels": list(opened.predictor.labels),
            "layer": getattr(opened.predictor, "layer", ""),
            "provenance": dict(opened.predictor.provenance),
            "answers": stored_look(looks[source]),
            **({"packages": list(opened.packages)} if opened.packages else {}),
            **({"regions": opened.regions} if opened.regions else {}),
            **({NOTE: gathered.decoding} if gathered.decoding > 1 else {}),
        }
        for source, opened in gathered.opened.items()
    }
    first = dict(next(iter(several.values())))
    return first if len(several) == 1 else {**first, "several": several}


def predictor_keys(gathered: MaterialSet) -> dict[str, str]:
    """The key of each model's weights and architecture, by the name of its source; "" if there is one."""
    keys = {"/".join(filter(None, s)): opened.predictor_key for s, opened in gathered.opened.items()}
    return keys if len(keys) > 1 else {"": next(iter(keys.values()))}


def picture_keys(study: Study) -> list[str]:
    """The stimuli that a study needs, one condition after the other."""
    rows = Rendering.objects.filter(item__study=study).order_by("condition__ordinal", "item__key")
    return list(dict.fromkeys(rows.values_list("stimulus__key", flat=True)))


def is_buildable(study: Study) -> bool:
    """Whether this draft can be finished: it has items, it was noted whether its models know them, and what
    is missing was asked for from the methods' versions of today."""
    from stimuli.explainers import packages_of, version_of

    if any("answers" not in noted for noted in notes_of(study)):
        return False
    open_specs = Rendering.objects.filter(item__study=study).exclude(stimulus__state="done")
    for spec in open_specs.values_list("stimulus__spec", flat=True).iterator():
        if spec["explainer"]:
            explainer = Component.from_json(spec["explainer"])
            if version_of(explainer) != spec["version"]:
                return False
            if packages_of(explainer) != tuple(spec.get("packages", ())):
                return False
    return study.items.exists()
